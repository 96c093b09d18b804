//! JSON-RPC batches: part of 2025-03-26 and of no other revision.

use super::{
    fixture::{builder, plain},
    legacy::session,
};
use crate::prelude::*;

fn echo(id: u32, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn echo_call(id: u32) -> Value {
    echo(id, &json!({"name": "echo", "arguments": {"message": format!("m{id}")}}))
}

#[tokio::test]
async fn a_batch_is_answered_with_one_array() {
    let gate = Gate::default();
    let server = HttpServer::start(builder(&gate)).await;
    let id = session(&server, "2025-03-26").await;
    let send = |body: Value| HttpRequest::post(body.to_string()).session(&id);
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let body = json!([echo_call(1), note, echo(2, &json!({"name": "hold"})), {"jsonrpc": "2.0", "id": 3}, echo_call(4)]);
    gate.open(1);
    let reply = send(body).send(server.address).await.json();
    let replies = reply.as_array().expect("an array");
    assert_eq!(
        replies.iter().map(|r| r["id"].as_u64()).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3), Some(4)]
    );
    assert_eq!((text_of(&replies[0]), text_of(&replies[1]), text_of(&replies[3])), ("m1", "let go", "m4"));
    assert_eq!(replies[2]["error"]["code"], -32600);

    let nothing = send(json!([note, note])).send(server.address).await;
    assert_eq!((nothing.status, nothing.text()), (202, ""));
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let many: Vec<_> = (0..51).map(echo_call).collect();
    for bad in [json!([]), json!([echo_call(1), initialize]), json!(many)] {
        let reply = send(bad).send(server.address).await;
        assert_eq!((reply.status, reply.code()), (400, -32600));
    }
    let most: Vec<_> = (0..50).map(echo_call).collect();
    assert_eq!(send(json!(most)).send(server.address).await.json().as_array().map(Vec::len), Some(50));
}

#[tokio::test]
async fn a_batch_with_notifications_is_one_stream() {
    let server = plain().await;
    let id = session(&server, "2025-03-26").await;
    let steps = echo(2, &json!({"name": "steps", "_meta": {"progressToken": "t"}}));
    let reply = HttpRequest::post(json!([echo_call(1), steps]).to_string()).session(&id);
    let events = reply.send(server.address).await.messages();
    let ids: Vec<_> = events.iter().filter_map(|e| e["id"].as_u64()).collect();
    assert_eq!((ids.len(), events.len()), (2, 5));
    let steps_at = events.iter().position(|e| e["id"] == 2).expect("its result");
    let progress_at = events.iter().rposition(|e| e["method"] == "notifications/progress").expect("progress");
    assert!(progress_at < steps_at);
}

#[tokio::test]
async fn members_without_a_readable_id_get_no_reply_of_their_own() {
    let server = plain().await;
    let id = session(&server, "2025-03-26").await;
    let send =
        async |body: Value| HttpRequest::post(body.to_string()).session(&id).send(server.address).await;
    // responses of this revision have ids
    let replies =
        send(json!([1, echo_call(2), { "jsonrpc": "2.0", "id": null, "method": "ping" }])).await.json();
    assert_eq!(replies.as_array().map(Vec::len), Some(1));
    assert_eq!((text_of(&replies[0]), &replies[0]["id"]), ("m2", &json!(2)));
    let reply = send(json!([1, [echo_call(2)]])).await;
    assert_eq!((reply.status, reply.code()), (400, -32600));
    assert_eq!(reply.json().get("id"), None);
}

#[tokio::test]
async fn a_modern_request_in_a_batch_is_refused() {
    let server = plain().await;
    let id = session(&server, "2025-03-26").await;
    let mut modern = echo_call(1);
    modern["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!([modern, echo_call(2)]).to_string();
    let replies = HttpRequest::post(body).session(&id).send(server.address).await.json();
    assert_eq!(replies[0]["error"]["code"], -32600, "as on stdio");
    assert_eq!(text_of(&replies[1]), "m2");
}

#[tokio::test]
async fn an_array_is_refused_by_every_other_revision() {
    let server = plain().await;
    let array = || HttpRequest::post(json!([echo_call(1)]).to_string());
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let id = session(&server, version).await;
        let reply = array().session(&id).send(server.address).await;
        assert_eq!((reply.status, reply.code()), (400, -32600), "{version}");
    }
    let modern = array().header("MCP-Protocol-Version", "2026-07-28").send(server.address).await;
    assert_eq!((modern.status, modern.code()), (400, -32600));
    assert_eq!(array().send(server.address).await.status, 400);
}
