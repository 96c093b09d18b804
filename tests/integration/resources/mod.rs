//! Resources and templates.

mod attribute_functions;
mod lists;
mod read;
mod templates;
