//! `subscriptions/listen` over HTTP: a stream of events that stays open, without a place among the requests that are
//! served at once. The endpoint makes it; the HTTP server polls it as the body of a response, and drops it when the
//! client is gone, which ends the subscription.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::http::Response;
use hyper::body::Bytes;
use tokio::time::{Instant, Sleep, sleep};

use super::{
    call::whole,
    endpoint::{Endpoint, Received, Started},
    queue::event,
    reply::{self, Refusal, Reply},
    stream::KEEP_ALIVE,
};
use crate::{
    dispatch::{Begun, Listening, Status},
    jsonrpc::Message,
    protocol::Revision,
};

/// Bytes that are handed over at once.
const ENOUGH: usize = 64 << 10;

impl Endpoint {
    /// Serves one listen request.
    pub(super) fn subscription(self: &Arc<Self>, message: &Message<'_>, request: &Received<'_>) -> Started {
        let accepts = request.accepts();
        if !accepts.stream {
            return Refusal::not_acceptable().reply(message.id()).into();
        }
        let peer = self.peer(request, None, accepts, Revision::LATEST);
        let mut out = Vec::new();
        let status = match self.server.begin(message, Revision::LATEST, &peer, &mut out) {
            Begun::Listening(listening) => return self.follow(listening).into(),
            Begun::Done(status) => status,
            // listening is never a call
            Begun::Running(_) => Status::Ok,
        };
        whole(status, out, request.exchange.queue(), accepts).into()
    }

    pub(super) fn follow(&self, listening: Listening) -> Response<Reply> {
        let ending = self.ending.clone();
        reply::events(Reply::Listen(Box::new(Stream {
            listening: Some(listening),
            ending: Box::pin(async move { ending.fired().await }),
            silence: Box::pin(sleep(KEEP_ALIVE)),
        })))
    }
}

/// The events of one subscription.
pub(crate) struct Stream {
    /// `None` once it has ended.
    listening: Option<Listening>,
    /// The server is told to stop.
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
    silence: Pin<Box<Sleep>>,
}

impl Stream {
    pub(super) fn is_over(&self) -> bool {
        self.listening.is_none()
    }

    /// The next events; `None` at the end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(listening) = &mut self.listening else { return Poll::Ready(None) };
        let mut out = Vec::new();
        let ended = loop {
            match listening.poll_next(cx) {
                Poll::Ready(Some(message)) => event(&mut out, &message),
                Poll::Ready(None) => break true,
                Poll::Pending => break self.ending.as_mut().poll(cx).is_ready(),
            }
            if out.len() >= ENOUGH {
                break false;
            }
        };
        if ended {
            event(&mut out, &listening.result());
            self.listening = None;
        }
        if out.is_empty() {
            std::task::ready!(self.silence.as_mut().poll(cx));
            out.extend_from_slice(b":\n\n");
        }
        self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(out.into()))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("listening", &self.listening).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use hyper::body::Body as _;

    use super::*;
    use crate::server::Server;

    #[tokio::test(start_paused = true)]
    async fn silence_is_broken_by_comments_and_dropping_the_body_ends_the_subscription() {
        let server = Server::builder("t", "1").build().unwrap();
        let handle = server.handle();
        let endpoint = Endpoint::new(&server);
        let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{
            "notifications":{"toolsListChanged":true},"_meta":{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "subscriptions/listen")
            .body(axum::body::Body::from(listen))
            .unwrap();
        let mut stream = endpoint.answer(request).await.into_body();
        let mut next = async || {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut stream).poll_frame(cx)).await;
            String::from_utf8(frame.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap()
        };
        assert!(next().await.contains("acknowledged"));
        assert_eq!([next().await, next().await], [":\n\n", ":\n\n"]);
        handle.tools_changed();
        assert!(next().await.contains("list_changed"));
        assert_eq!(server.hub().followers(), 1);
        drop(stream);
        assert_eq!(server.hub().followers(), 0);
    }
}
