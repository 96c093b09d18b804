//! Asking the client: forms, URLs, models and folders, through real calls in both eras.

mod forms;
mod models;
mod required;
mod urls;

use mcp_runtime::{Revision, ServerBuilder, testing::TestServer};
use mcp_tests::support::{ClientRequests, answering};
use serde_json::{Value, json};

use crate::common::{LEGACY, serve};

/// Everything that a client can declare.
fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {}, "context": {} }, "roots": {} })
}

/// A client that can do everything and gives these answers, and what it is asked.
fn client(
    builder: ServerBuilder,
    answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static,
) -> (TestServer, ClientRequests) {
    answering(serve(builder), everything(), move |method, params| Ok(answer(method, params)))
}

/// Every revision from one on.
fn since(first: Revision) -> impl Iterator<Item = Revision> {
    LEGACY.into_iter().chain([Revision::LATEST]).filter(move |revision| *revision >= first)
}
