//! Tests of the endpoint in one process, without sockets: with questions to clients, floods, and what no client sees.

mod ask;
mod extreme;
mod flood;
mod layers;
mod stream;

use std::{pin::Pin, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use hyper::body::Body as _;
use serde_json::{Value, json};

use super::{response::ResponseBody, service::Endpoint};
use crate::{
    context::Context,
    server::{Server, ServerBuilder},
};

/// Longer than any healthy test takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// One client of an endpoint in the same process.
#[derive(Clone)]
struct Client {
    endpoint: Arc<Endpoint>,
    /// Sent with every request.
    headers: Vec<(&'static str, String)>,
}

fn server() -> ServerBuilder {
    Server::builder("test", "1").keys([[7; 32]])
}

impl Client {
    fn new(endpoint: &Arc<Endpoint>) -> Self {
        let headers = vec![
            ("host", "localhost".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        Self { endpoint: endpoint.clone(), headers }
    }

    /// A client with a session of that revision, which can list roots.
    async fn with_session(endpoint: &Arc<Endpoint>, version: &str) -> Self {
        let client = Self::new(endpoint);
        let params = json!({ "protocolVersion": version, "capabilities": { "roots": {} },
            "clientInfo": { "name": "t", "version": "1" } });
        let response = client.request(0, "initialize", &params).await;
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        client.with("mcp-session-id", &id)
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(n, _)| *n != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    async fn send(&self, method: &str, body: String) -> Response<ResponseBody> {
        let mut request = Request::builder().method(method).uri("/mcp");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let answer = self.endpoint.answer(request.body(axum::body::Body::from(body)).unwrap());
        tokio::time::timeout(PATIENCE, answer).await.expect("no answer")
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

    /// Answers a request of the server's.
    async fn respond(&self, id: &Value, result: &Value) -> StatusCode {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await.status()
    }

    async fn delete(&self) -> StatusCode {
        self.send("DELETE", String::new()).await.status()
    }
}

/// The body of a response, as it comes.
struct Coming {
    body: ResponseBody,
    text: String,
}

impl Coming {
    fn new(response: Response<ResponseBody>) -> Self {
        Self { body: response.into_body(), text: String::new() }
    }

    /// More of the body; `false` at its end.
    async fn more(&mut self) -> bool {
        let next = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
        let Some(frame) = tokio::time::timeout(PATIENCE, next).await.expect("nothing comes") else {
            return false;
        };
        let data = frame.unwrap().into_data().unwrap();
        self.text.push_str(std::str::from_utf8(&data).unwrap());
        true
    }

    /// The next event; `None` at the end.
    async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (Event::read(event), rest.to_owned());
                self.text = rest;
                if let Some(event) = event {
                    return Some(event);
                }
            } else if !self.more().await {
                return None;
            }
        }
    }

    /// The next message.
    async fn message(&mut self) -> Value {
        loop {
            let event = self.event().await.expect("the stream has ended");
            if !event.data.is_empty() {
                return event.message();
            }
        }
    }

    /// All of it, as JSON.
    async fn json(mut self) -> Value {
        while self.more().await {}
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
    fn read(text: &str) -> Option<Self> {
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
async fn ask(context: &Context) -> String {
    match context.roots("roots").await {
        Ok(roots) => format!("got {} roots", roots.len()),
        Err(error) => format!("failed: {error}"),
    }
}

fn said(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}
