//! Resources and templates.

mod lists;
mod named;
mod reading;
mod templates;
