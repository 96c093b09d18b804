//! Servers behind nginx.

mod client_certificates;
mod rolling_restart;
