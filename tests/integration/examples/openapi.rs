use axum::{body::Body, http::Request};
use tower::ServiceExt as _;

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/openapi.rs"]
mod example;

#[tokio::test]
async fn the_api_and_the_tools_are_one_application() {
    let routes = example::routes();
    let server = TestServer::new(example::server(routes.clone()).unwrap()).unwrap();
    server.call("add_note", json!({ "text": "tea" })).await.expect_json(&json!({ "id": 0 }));
    server.call("add_note", json!({ "text": "" })).await.expect_failure("text");
    server.call("list_notes", json!({})).await.expect_text("[\"tea\"]");
    assert_eq!(server.read("notes:///notes/0").await.value()["contents"][0]["text"], "tea");
    server.read("notes:///notes/1").await.expect_code(-32602);
    let request = Request::get("/notes/0").body(Body::empty()).unwrap();
    let reply = routes.oneshot(request).await.unwrap();
    assert_eq!(axum::body::to_bytes(reply.into_body(), 100).await.unwrap(), "tea");
}
