//! Layers are around calls of every revision, and what they answer has the status that they give it.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{Client, Coming, Endpoint, said, server};
use crate::{
    connection::Caller,
    dispatch::{Layer, LayeredCall, Layers, MethodReply, ReplyFuture, Status},
    jsonrpc::ProtocolError,
    protocol::Revision,
    tool::{RuntimeTool, ToolCall},
};

/// Refuses everyone but Ada, and notes who called.
struct OnlyAda(Arc<Mutex<Vec<String>>>);

impl Layer for OnlyAda {
    fn call(&self, call: &LayeredCall, next: ReplyFuture) -> ReplyFuture {
        let caller = call.caller.as_ref().map_or("nobody", |caller| &caller.subject);
        self.0.lock().unwrap().push(caller.to_owned());
        if caller == "ada" {
            return next;
        }
        let error = ProtocolError::new(-32001, "not you");
        let headers = vec![("x-reason", "not-ada".to_owned())];
        Box::pin(std::future::ready(MethodReply {
            status: Status::NotFound,
            headers,
            ..MethodReply::from(error)
        }))
    }
}

#[tokio::test]
async fn a_layer_knows_the_caller_and_answers_with_status_and_headers() {
    let notes = Arc::default();
    let hello = RuntimeTool::builder("hello").handler(|_: ToolCall| async { "hello" });
    let builder = server().add_tool(hello).layers(Layers::new(vec![Arc::new(OnlyAda(Arc::clone(&notes)))]));
    let endpoint = Endpoint::new(
        &builder
            .caller(|parts| Some(Caller::new("test", parts.headers.get("x-user")?.to_str().ok()?)))
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
        let modern = Client::new(&endpoint)
            .with("x-user", user)
            .with("mcp-protocol-version", Revision::LATEST.as_str())
            .with("mcp-method", "tools/call")
            .with("mcp-name", "hello");
        let response = modern.request(1, "tools/call", &params).await;
        let (status, reason) = (response.status(), response.headers().get("x-reason").cloned());
        let reply = Coming::new(response).json().await;
        if user == "ada" {
            assert_eq!((status.as_u16(), said(&reply)), (200, "hello"));
        } else {
            assert_eq!((status.as_u16(), &reply["error"]["code"]), (404, &json!(-32001)));
            assert_eq!(reason.unwrap(), "not-ada");
        }
    }
    let old = Client::new(&endpoint).with("x-user", "bob");
    let hands = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let response = old.request(0, "initialize", &hands).await;
    let old = old.with("mcp-session-id", response.headers()["mcp-session-id"].to_str().unwrap());
    let response = old.call(1, "hello").await;
    assert_eq!(response.status(), 200, "older clients look for errors in a 200");
    assert_eq!(Coming::new(response).json().await["error"]["message"], "not you");
    assert_eq!(*notes.lock().unwrap(), ["ada", "bob", "bob"]);
}
