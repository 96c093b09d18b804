//! HTTP: one endpoint for every revision, as a tower service. What only revisions before 2026-07-28 need is in
//! [`legacy`]; the rest can be read without it.

mod exchange;
mod guard;
mod header_params;
mod headers;
mod legacy;
mod request_body;
mod response;
mod serve;
mod service;
mod sse;
mod stream;
#[cfg(test)]
mod tests;

pub use response::ResponseBody;
pub use service::HttpService;
