//! Every example: its items in memory, and its program over stdio or HTTP.

pub(crate) mod app;
mod axum;
mod content;
mod convert;
mod events;
mod everything;
mod gateway;
mod notes;
mod openapi;
mod program;
mod protected;
mod repo;
mod runner;
mod service;
mod state;
mod tenants;
