//! The `state` example.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/state.rs"]
mod example;

#[tokio::test]
async fn notes_and_visits_are_shared_and_the_author_is_the_client() {
    let server = TestServer::new(example::server()).unwrap();
    server.call("visit", json!({})).await.expect_text("1");
    server.call("visit", json!({})).await.expect_text("2");
    server.call("read_note", json!({ "id": 7 })).await.expect_failure("note 7 does not exist");
    server.call("add_note", json!({ "text": "buy milk" })).await.expect_text("1");
    server.call("read_note", json!({ "id": 1 })).await.expect_text("buy milk (someone)");
    let server = server.legacy(Revision::V2025_11_25);
    server.call("add_note", json!({ "text": "buy tea" })).await.expect_text("2");
    server.call("read_note", json!({ "id": 2 })).await.expect_text("buy tea (test)");
    // the store is full, and says where it is
    let reply = server.call("add_note", json!({ "text": "three" })).await;
    reply.expect_failure("tool 'add_note' failed");
    assert!(!reply.to_string().contains("/var/notes"), "{reply}");
}
