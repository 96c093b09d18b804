//! The `state` example.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/state.rs"]
mod example;

fn server() -> TestServer {
    TestServer::new(example::server()).unwrap()
}

#[tokio::test]
async fn calls_share_state() {
    let server = server();
    server.call("visit", json!({})).await.expect_text("1");
    server.call("visit", json!({})).await.expect_text("2");
}

#[tokio::test]
async fn an_error_from_tool_error_new_is_public() {
    let reply = server().call("read_note", json!({ "id": 7 })).await;
    reply.expect_failure("note 7 does not exist");
}

#[tokio::test]
async fn an_error_of_the_store_is_private() {
    let server = server();
    server.call("add_note", json!({ "text": "one" })).await.expect_text("1");
    server.call("add_note", json!({ "text": "two" })).await.expect_text("2");
    let reply = server.call("add_note", json!({ "text": "three" })).await;
    reply.expect_failure("tool 'add_note' failed");
    assert!(!reply.to_string().contains("/var/notes"), "{reply}");
}

#[tokio::test]
async fn the_author_is_the_client() {
    let server = server();
    server.call("add_note", json!({ "text": "buy milk" })).await.expect_text("1");
    server.call("read_note", json!({ "id": 1 })).await.expect_text("buy milk (someone)");
    let server = server.legacy(Revision::V2025_11_25);
    server.call("add_note", json!({ "text": "buy tea" })).await.expect_text("2");
    server.call("read_note", json!({ "id": 2 })).await.expect_text("buy tea (test)");
}
