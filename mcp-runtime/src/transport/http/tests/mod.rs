//! Tests of the HTTP transport in one process, without sockets.

mod client_requests;
mod session_end;
mod session_flood;
mod session_streams;
mod small_pieces;
#[cfg(feature = "tasks")]
mod unlimited;

use std::{pin::Pin, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use hyper::body::Body as _;
use serde_json::{Value, json};

use super::{
    request_body::IncomingBody,
    response_body::ResponseBody,
    service::{HttpHandler, Route},
};
use crate::core::{
    context::Context,
    server::{Server, ServerBuilder},
};

/// Longer than any test takes that passes.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// One client in the same process.
#[derive(Clone)]
struct Client {
    handler: Arc<HttpHandler>,
    /// Sent with every request.
    headers: Vec<(&'static str, String)>,
}

fn server() -> ServerBuilder {
    Server::builder("test", "1").stores(|stores| stores.keys([crate::core::crypto::test_key(7)]))
}

impl Client {
    fn new(handler: &Arc<HttpHandler>) -> Self {
        let headers = vec![
            ("host", "localhost".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        Self { handler: handler.clone(), headers }
    }

    /// A client with a session of this revision and the capability `roots`.
    async fn with_session(handler: &Arc<HttpHandler>, version: &str) -> Self {
        let client = Self::new(handler);
        let params = json!({ "protocolVersion": version, "capabilities": { "roots": {} },
            "clientInfo": { "name": "t", "version": "1" } });
        let response = client.request(0, "initialize", &params).await;
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let client = client.with_header("mcp-session-id", &id);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(client.post(&initialized).await.status(), StatusCode::ACCEPTED);
        client
    }

    fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(n, _)| *n != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    async fn send(&self, method: &str, body: String) -> Response<ResponseBody> {
        let mut request = Request::builder().method(method).uri("/mcp");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let body = IncomingBody::new(axum::body::Body::from(body));
        let response = self.handler.clone().handle(parts, body, Route::Mcp, None);
        tokio::time::timeout(TEST_TIMEOUT, response).await.expect("a response")
    }

    async fn post(&self, body: &Value) -> Response<ResponseBody> {
        self.send("POST", body.to_string()).await
    }

    async fn request(&self, id: u64, method: &str, params: &Value) -> Response<ResponseBody> {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await
    }

    async fn call(&self, id: u64, tool: &str) -> Response<ResponseBody> {
        self.request(id, "tools/call", &json!({ "name": tool, "_meta": { "progressToken": id } })).await
    }

    /// Responds to a request of the server.
    async fn respond(&self, id: &Value, result: &Value) -> StatusCode {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await.status()
    }

    async fn delete(&self) -> StatusCode {
        self.send("DELETE", String::new()).await.status()
    }
}

/// Reads the body of a response as it arrives.
struct BodyReader {
    body: ResponseBody,
    text: String,
}

impl BodyReader {
    fn new(response: Response<ResponseBody>) -> Self {
        Self { body: response.into_body(), text: String::new() }
    }

    /// Reads more of the body; `false` at its end.
    async fn read_more(&mut self) -> bool {
        let next = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
        let Some(frame) = tokio::time::timeout(TEST_TIMEOUT, next).await.expect("more of the body") else {
            return false;
        };
        let data = frame.unwrap().into_data().unwrap();
        self.text.push_str(std::str::from_utf8(&data).unwrap());
        true
    }

    /// The next event; `None` at the end.
    async fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (Event::parse(event), rest.to_owned());
                self.text = rest;
                if let Some(event) = event {
                    return Some(event);
                }
            } else if !self.read_more().await {
                return None;
            }
        }
    }

    /// The next message.
    async fn next_message(&mut self) -> Value {
        loop {
            let event = self.next_event().await.expect("a message before the end of the stream");
            if !event.data.is_empty() {
                return event.message();
            }
        }
    }

    /// The complete body as JSON.
    async fn json(mut self) -> Value {
        while self.read_more().await {}
        serde_json::from_str(&self.text).unwrap()
    }
}

/// One event of a stream.
#[derive(Debug, Default, Clone, PartialEq)]
struct Event {
    id: Option<String>,
    retry: Option<u64>,
    data: String,
}

impl Event {
    /// `None` for a comment.
    fn parse(text: &str) -> Option<Self> {
        let mut event = Self::default();
        for line in text.lines() {
            match line.split_once(": ").unwrap_or((line, "")) {
                ("id", id) => event.id = Some(id.to_owned()),
                ("retry", retry) => event.retry = Some(retry.parse().unwrap()),
                ("data", data) => event.data = data.to_owned(),
                ("event", name) => assert_eq!(name, "message"),
                (comment, _) => assert_eq!(comment, ":", "{line}"),
            }
        }
        (event != Self::default() || text.contains("data")).then_some(event)
    }

    fn message(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// Requests the client's roots; the outcome as text.
async fn request_roots(context: &Context) -> String {
    match context.roots("roots").await {
        Ok(roots) => format!("got {} roots", roots.len()),
        Err(error) => format!("failed: {error}"),
    }
}

/// The text of a tool's result.
fn tool_text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}
