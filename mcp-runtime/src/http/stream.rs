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
const KEEP_ALIVE: Duration = Duration::from_secs(15);

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
