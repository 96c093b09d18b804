//! Resources: what is written, what a client lists, reads and gets.

mod lists;
mod named;
mod reading;
mod templates;
