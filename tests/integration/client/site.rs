//! A server over HTTP that a function plays, request by request.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
};

use axum::{
    body::Body,
    http::{HeaderMap, Method, Response, Uri},
};
use mcp_tests::support::{initialized, response, serve_router};
use serde_json::{Value, json};

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// The body as JSON; null if it is none.
    pub(crate) message: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The origin that was asked.
    pub(crate) fn host(&self) -> String {
        format!("http://{}", self.header("host").unwrap())
    }

    /// The response with this result.
    pub(crate) fn reply(&self, result: &Value) -> Response<Body> {
        json_response(200, &[], &response(&self.message, result.clone()))
    }
}

/// Every request that a server has seen.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    /// Those whose message has this method.
    pub(crate) fn of(&self, method: &str) -> Vec<Seen> {
        self.all().into_iter().filter(|seen| seen.message["method"] == method).collect()
    }

    /// Those for this path.
    pub(crate) fn to(&self, path: &str) -> Vec<Seen> {
        self.all().into_iter().filter(|seen| seen.path == path).collect()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

pub(crate) type ReplyFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// Serves a function at every path; the address of an endpoint, and what it has seen.
pub(crate) async fn serve(
    answer: impl Fn(&Seen) -> Response<Body> + Clone + Send + Sync + 'static,
) -> (String, Log) {
    serve_async(move |seen| {
        let response = answer(seen);
        Box::pin(async { response })
    })
    .await
}

/// The same with a function whose answers may take their time.
pub(crate) async fn serve_async(
    answer: impl Fn(&Seen) -> ReplyFuture + Clone + Send + Sync + 'static,
) -> (String, Log) {
    let log = Log::default();
    let kept = log.clone();
    let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: String| {
        let message = serde_json::from_str(&body).unwrap_or(Value::Null);
        let (path, query) = (uri.path().to_owned(), uri.query().map(str::to_owned));
        let seen = Seen { method, path, query, headers, body, message };
        kept.0.lock().unwrap().push(seen.clone());
        answer(&seen)
    };
    let address = serve_router(axum::Router::new().fallback(handler)).await;
    (format!("http://{address}/mcp"), log)
}

pub(crate) fn respond(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

pub(crate) fn json_response(status: u16, headers: &[(&str, &str)], body: &Value) -> Response<Body> {
    respond(status, &[&[("content-type", "application/json")], headers].concat(), body.to_string())
}

/// A stream of these events.
pub(crate) fn event_stream(text: impl Into<Body>) -> Response<Body> {
    respond(200, &[("content-type", "text/event-stream")], text)
}

pub(crate) fn empty(status: u16) -> Response<Body> {
    respond(status, &[], "")
}

/// What a legacy server answers to the messages of a handshake, with this session.
pub(crate) fn legacy_handshake(seen: &Seen, session: &str) -> Option<Response<Body>> {
    Some(match seen.message["method"].as_str() {
        Some("server/discover") => empty(400),
        Some("initialize") => {
            let capabilities = json!({ "tools": {}, "resources": { "subscribe": true } });
            let mut reply = seen.reply(&initialized("2025-11-25", capabilities));
            reply.headers_mut().insert("mcp-session-id", session.parse().unwrap());
            reply
        }
        Some("notifications/initialized") => empty(202),
        _ => return None,
    })
}
