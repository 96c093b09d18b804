//! Drives servers over their transports, from outside.

#[path = "integration/http/mod.rs"]
mod http;
