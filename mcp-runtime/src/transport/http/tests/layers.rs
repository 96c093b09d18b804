//! Layers wrap calls of every revision, and set the status and headers of their replies.

use std::sync::Arc;

use serde_json::json;

use super::{BodyReader, Client, HttpHandler, server, tool_text};
use crate::{
    connection::Principal,
    dispatch::{Layer, LayeredCall, Layers, Reply, ReplyFuture, Status},
    jsonrpc::ProtocolError,
    protocol::Revision,
    sync::Mutex,
    tool::{ToolCall, ToolDef},
};

/// Refuses every caller but Ada, and records the callers.
struct OnlyAda(Arc<Mutex<Vec<String>>>);

impl Layer for OnlyAda {
    fn call(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture {
        let caller = call.caller.as_ref().map_or("anonymous", |caller| &caller.subject);
        self.0.lock().push(caller.to_owned());
        if caller == "ada" {
            return next;
        }
        let error = ProtocolError::new(-32001, "not you");
        let headers = vec![("x-reason", "not-ada".to_owned())];
        Box::pin(std::future::ready(Reply { status: Status::NotFound, headers, ..Reply::from(error) }))
    }
}

#[tokio::test]
async fn a_layer_knows_the_caller_and_replies_with_status_and_headers() {
    let callers = Arc::default();
    let hello = ToolDef::builder("hello").handler(|_: ToolCall| async { "hello" });
    let builder = server().add(hello).layers(Layers::new(vec![Arc::new(OnlyAda(Arc::clone(&callers)))]));
    let handler = HttpHandler::new(
        &builder
            .http(|http| {
                http.caller(|parts| Some(Principal::new("test", parts.headers.get("x-user")?.to_str().ok()?)))
            })
            .build()
            .unwrap(),
    );
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::LATEST.as_str(),
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "hello", "_meta": meta });
    for user in ["ada", "bob"] {
        let modern = Client::new(&handler)
            .with_header("x-user", user)
            .with_header("mcp-protocol-version", Revision::LATEST.as_str())
            .with_header("mcp-method", "tools/call")
            .with_header("mcp-name", "hello");
        let response = modern.request(1, "tools/call", &params).await;
        let (status, reason) = (response.status(), response.headers().get("x-reason").cloned());
        let reply = BodyReader::new(response).json().await;
        if user == "ada" {
            assert_eq!((status.as_u16(), tool_text(&reply)), (200, "hello"));
        } else {
            assert_eq!((status.as_u16(), &reply["error"]["code"]), (404, &json!(-32001)));
            assert_eq!(reason.unwrap(), "not-ada");
        }
    }
    let legacy = Client::new(&handler).with_header("x-user", "bob");
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let response = legacy.request(0, "initialize", &params).await;
    let legacy = legacy.with_header("mcp-session-id", response.headers()["mcp-session-id"].to_str().unwrap());
    let response = legacy.call(1, "hello").await;
    assert_eq!(response.status(), 200, "clients of legacy revisions expect errors with status 200");
    assert_eq!(BodyReader::new(response).json().await["error"]["message"], "not you");
    assert_eq!(*callers.lock(), ["ada", "bob", "bob"]);
}
