//! The limits on one caller: how often it calls, how much at once, for how long, and how much it gets.

mod concurrency;
mod rates;
mod results;
mod shared_rates;

use crate::prelude::*;

/// Returns at once
#[mcp_tool]
fn here() -> &'static str {
    "here"
}

/// The server as this caller sees it.
fn seen_by(server: &Server, subject: &str) -> TestServer {
    TestServer::of(server).caller(Principal::new("https://id.example.com", subject))
}

/// A modern call over HTTP.
fn call(tool: &str) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({ "name": tool }))
}
