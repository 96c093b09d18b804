//! An HTTP API that exists becomes tools: the operations of its OpenAPI description, 3.0 or 3.1.
//!
//! See [`OpenApi`], and the page about it in the guide of `mcp-runtime`.

mod api;
mod document;
mod open_api;
mod operation;
mod request;
mod response;
mod route;
#[cfg(feature = "routes")]
mod routes;
mod schema;
mod yaml;

pub use open_api::OpenApi;
pub use route::Route;
