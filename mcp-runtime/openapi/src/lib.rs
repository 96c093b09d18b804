#![doc = include_str!("../README.md")]

mod api;
mod document;
mod open_api;
mod operation;
mod reader;
mod request;
mod response;
mod route;
#[cfg(feature = "routes")]
mod routes;
mod schema;
mod writer;
mod yaml;

pub use open_api::OpenApi;
pub use route::Route;
