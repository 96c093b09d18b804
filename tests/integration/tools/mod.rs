//! Tools.

mod argument_errors;
mod arguments;
mod coercion;
mod constraints;
mod content;
mod duplicate_keys;
mod failures;
mod flattening;
mod headers;
mod injection;
mod limits;
mod listing;
mod registration;
mod runtime_tools;
mod structured;
mod types;
