//! The items of the examples, in memory or over HTTP. `tests/external` runs their programs, and those examples that need
//! crates that take long to compile.

pub(crate) mod app;
mod axum;
mod content;
mod convert;
mod events;
mod everything;
mod exchange;
mod gateway;
mod openapi;
mod protected;
mod remote;
mod runner;
mod search;
mod service;
mod state;
mod tenants;
