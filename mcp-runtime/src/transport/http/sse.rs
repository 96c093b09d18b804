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
use crate::core::{
    connection::{Receiver, TakenMessages},
    jsonrpc::replace_line_breaks,
    protocol::Revision,
};

/// After this much silence a comment is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A comment, which clients ignore.
pub(super) const COMMENT: &[u8] = b":\n\n";
/// The delay before a client resumes a stream that has broken off for its age.
const RETRY: &[u8] = b"retry: 1000\n\n";

/// Reads the events of a stream.
pub(super) struct EventReader {
    receiver: Receiver,
    /// Events that are handed on one at a time: a body that has handed on all of them is dropped, and with it the permit of its
    /// stream.
    taken: TakenMessages,
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
    /// Reads events as text, until `end` completes.
    pub(super) fn new(receiver: Receiver, end: Option<StreamDeadline>) -> Self {
        Self { receiver, taken: TakenMessages::default(), silence: Box::pin(sleep(KEEP_ALIVE)), end }
    }

    /// Whether every event has been read.
    pub(super) fn is_finished(&self) -> bool {
        self.taken.messages.is_empty() && self.receiver.is_finished()
    }

    /// The next events as text.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (mut out, mut permit) = (Vec::new(), None);
        if let Some(end) = &mut self.end
            && let Poll::Ready(final_text) = Pin::new(end).poll(cx)
        {
            self.end = None;
            self.receiver.abandon();
            self.taken = TakenMessages::default();
            out.extend_from_slice(final_text);
        }
        if self.taken.messages.is_empty() {
            match self.receiver.poll(cx) {
                Poll::Ready(Some(taken)) => self.taken = taken,
                Poll::Ready(None) if out.is_empty() => return Poll::Ready(None),
                Poll::Pending if out.is_empty() => {
                    ready!(self.silence.as_mut().poll(cx));
                    out.extend_from_slice(COMMENT);
                }
                Poll::Ready(None) | Poll::Pending => {}
            }
        }
        if let Some((event, held)) = self.taken.pop() {
            if out.is_empty() {
                out = event;
            } else {
                out.extend_from_slice(&event);
            }
            permit = held;
        }
        self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(charged(out, permit)))
    }
}

/// Appends an event that holds the message which `write` appends. Some clients ignore events that do not name their type.
pub(super) fn write_event(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"event: message\ndata: ");
    let start = out.len();
    write(out);
    replace_line_breaks(out.get_mut(start..).unwrap_or_default());
    out.extend_from_slice(b"\n\n");
}

/// The event that holds a message.
pub(super) fn message_event(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 24);
    write_event(&mut out, |out| out.extend_from_slice(message));
    out
}
