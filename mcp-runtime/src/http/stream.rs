//! An event stream: the notifications of running calls, then their results, then its end. The HTTP server polls it as
//! the body of a response.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use hyper::body::Bytes;
use tokio::time::{Instant, Sleep, sleep};

use super::call::Calls;

/// After that much silence a comment is sent, so that nothing on the way takes the connection for dead.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The events of one request's calls.
#[derive(Debug)]
pub(crate) struct Stream {
    /// `None` once all of them are answered.
    calls: Option<Calls>,
    silence: Pin<Box<Sleep>>,
}

impl Stream {
    pub(super) fn new(calls: Calls) -> Self {
        Self { calls: Some(calls), silence: Box::pin(sleep(KEEP_ALIVE)) }
    }

    pub(super) fn is_over(&self) -> bool {
        self.calls.is_none()
    }

    /// The next events; `None` at the end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(calls) = &mut self.calls else { return Poll::Ready(None) };
        let mut out = Vec::new();
        if calls.poll_events(cx, &mut out).is_ready() {
            self.calls = None;
        }
        if out.is_empty() {
            if self.is_over() {
                return Poll::Ready(None);
            }
            std::task::ready!(self.silence.as_mut().poll(cx));
            out.extend_from_slice(b":\n\n");
        }
        self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(out.into()))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use hyper::body::Body as _;

    use super::*;
    use crate::{
        def::{RuntimeTool, ToolCall},
        http::endpoint::Endpoint,
        server::Server,
    };

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_by_comments() {
        let tool = RuntimeTool::builder("nap").handler(|call: ToolCall| async move {
            call.context.progress(1.0).send();
            sleep(Duration::from_secs(40)).await;
            "napped"
        });
        let endpoint = Endpoint::new(&Server::builder("t", "1").add_tool(tool).build().unwrap());
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nap","_meta":{"progressToken":1,
            "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "nap")
            .body(axum::body::Body::from(call))
            .unwrap();
        let mut stream = endpoint.answer(request).await.into_body();
        let mut frames: Vec<Bytes> = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_frame(cx)).await {
            frames.push(frame.unwrap().into_data().unwrap());
        }
        let starts: Vec<_> = frames.iter().map(|frame| &frame[..3]).collect();
        assert_eq!(starts, [b"dat", b":\n\n", b":\n\n", b"dat"]);
    }
}
