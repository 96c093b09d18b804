//! Event streams: the text of an event, and the stream of events that a response's body is made of. A comment is sent
//! after 15 s of silence, so that no intermediary closes the connection as idle.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::Bytes;
use tokio::time::{Instant, Sleep, sleep};

use super::response_body::charged;
use crate::core::{connection::Receiver, jsonrpc::replace_line_breaks, protocol::Revision};

/// After this much silence a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A comment, which clients ignore.
const COMMENT: &[u8] = b":\n\n";
/// The delay before a client resumes a stream that has broken off for its age.
const RETRY: &[u8] = b"retry: 1000\n\n";

/// The content that the channel of a stream carries.
#[derive(Clone, Copy)]
pub(super) enum StreamContent {
    /// JSON-RPC messages.
    Messages,
    /// Events as text.
    Events,
}

/// Reads the events of a stream.
pub(super) struct EventReader {
    receiver: Receiver,
    content: StreamContent,
    /// Whether a comment is sent first, so that the client receives the head of the response.
    opening_comment: bool,
    silence: Pin<Box<Sleep>>,
    /// When it completes, the stream breaks off.
    end: Option<StreamDeadline>,
}

/// When a stream must end, and what its client is sent then.
pub(super) struct StreamDeadline {
    reached: Pin<Box<dyn Future<Output = ()> + Send>>,
    final_text: &'static [u8],
}

impl StreamDeadline {
    pub(super) fn new(reached: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { reached: Box::pin(reached), final_text: b"" }
    }

    /// The deadline of a stream that a client of this revision can resume: it is told when.
    pub(super) fn of_resumable(self, revision: Revision) -> Self {
        // clients of earlier revisions do not expect events without data
        let final_text = if revision >= Revision::V2025_11_25 { RETRY } else { self.final_text };
        Self { final_text, ..self }
    }
}

impl Future for StreamDeadline {
    /// The text that the stream ends with.
    type Output = &'static [u8];

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.reached.as_mut().poll(cx).map(|()| self.final_text)
    }
}

impl EventReader {
    pub(super) fn new(receiver: Receiver, content: StreamContent, opening_comment: bool) -> Self {
        let silence = Box::pin(sleep(KEEP_ALIVE));
        Self { receiver, content, opening_comment, silence, end: None }
    }

    /// Breaks the stream off when `end` completes.
    pub(super) fn until(mut self, end: Option<StreamDeadline>) -> Self {
        self.end = end;
        self
    }

    /// Whether every event has been read.
    pub(super) fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// The next events as text.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (mut out, mut permit) = (Vec::new(), None);
        if let Some(end) = &mut self.end
            && let Poll::Ready(final_text) = Pin::new(end).poll(cx)
        {
            self.end = None;
            self.receiver.abandon();
            out.extend_from_slice(final_text);
        }
        if std::mem::take(&mut self.opening_comment) {
            out.extend_from_slice(COMMENT);
        }
        match self.receiver.poll(cx) {
            Poll::Ready(Some(taken)) => {
                let items = taken.messages.iter();
                match self.content {
                    StreamContent::Messages => items.for_each(|message| write_event(&mut out, message)),
                    StreamContent::Events => items.for_each(|event| out.extend_from_slice(event)),
                }
                permit = taken.permit;
            }
            Poll::Ready(None) if out.is_empty() => return Poll::Ready(None),
            Poll::Ready(None) => {}
            Poll::Pending if out.is_empty() => {
                ready!(self.silence.as_mut().poll(cx));
                out.extend_from_slice(COMMENT);
            }
            Poll::Pending => {}
        }
        self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(charged(out, permit)))
    }
}

/// Appends an event that holds a message. Some clients ignore events that do not name their type.
pub(super) fn write_event(out: &mut Vec<u8>, message: &[u8]) {
    out.reserve(message.len() + 24);
    out.extend_from_slice(b"event: message\ndata: ");
    let start = out.len();
    out.extend_from_slice(message);
    replace_line_breaks(out.get_mut(start..).unwrap_or_default());
    out.extend_from_slice(b"\n\n");
}
