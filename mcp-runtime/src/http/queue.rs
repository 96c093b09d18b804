//! Messages on their way from running calls to their response: notifications, and requests to the client. Dispatch
//! puts them in, the response takes them.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

/// Notifications that may wait for a client that reads slowly; more are dropped. Results do not wait here.
const MAX_MESSAGES: usize = 256;
const MAX_BYTES: usize = 1 << 20;
/// Bytes beyond which nothing more waits, not even requests to the client.
const FULL: usize = 8 << 20;

/// Messages of the calls of one request.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Set only while nobody is about to look anyway.
    waker: Option<Waker>,
    /// Nobody will look any more.
    closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().messages.is_empty()
    }

    /// Takes what is there.
    pub(super) fn take(&self) -> VecDeque<Vec<u8>> {
        let mut state = self.state();
        state.bytes = 0;
        std::mem::take(&mut state.messages)
    }

    /// Takes what is there, as events.
    pub(super) fn drain(&self, out: &mut Vec<u8>) {
        let messages = self.take();
        out.reserve(messages.iter().map(|message| message.len() + 8).sum());
        for message in messages {
            event(out, &message);
        }
    }

    /// Arranges to be woken by the next message; `false` if there is one already.
    pub(super) fn wake_on_message(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state();
        if !state.messages.is_empty() {
            return false;
        }
        state.waker = Some(cx.waker().clone());
        true
    }

    /// Takes a notification, if there is room.
    pub(super) fn notify(&self, message: Vec<u8>) {
        let state = self.state();
        if state.messages.len() < MAX_MESSAGES && state.bytes + message.len() <= MAX_BYTES {
            Self::push(state, message);
        }
    }

    /// Takes a message that must not get lost; `false` if nobody will read it, or far too many wait already.
    pub(super) fn deliver(&self, message: Vec<u8>) -> bool {
        let state = self.state();
        state.bytes + message.len() <= FULL && Self::push(state, message)
    }

    fn push(mut state: MutexGuard<'_, State>, message: Vec<u8>) -> bool {
        if state.closed {
            return false;
        }
        state.bytes += message.len();
        state.messages.push_back(message);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Has whoever is about to look look at once.
    pub(super) fn wake(&self) {
        let waker = self.state().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Nobody reads any more: what waits is lost, and nothing is taken.
    pub(super) fn close(&self) {
        *self.state() = State { closed: true, ..State::default() };
    }
}

/// Appends one event of a single line.
pub(super) fn event(out: &mut Vec<u8>, message: &[u8]) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(message);
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_what_comes_later() {
        let queue = Queue::default();
        for n in 0..MAX_MESSAGES + 10 {
            queue.notify(n.to_string().into_bytes());
        }
        let mut out = Vec::new();
        queue.drain(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("data: ").count(), MAX_MESSAGES);
        assert!(text.starts_with("data: 0\n\n") && text.ends_with("data: 255\n\n"));

        queue.notify(vec![b'x'; MAX_BYTES]);
        queue.notify(vec![b'y']);
        let mut out = Vec::new();
        queue.drain(&mut out);
        assert!(!out.contains(&b'y') && queue.is_empty());
    }

    #[test]
    fn what_must_not_get_lost_has_room_where_notifications_have_none() {
        let queue = Queue::default();
        for _ in 0..MAX_MESSAGES {
            queue.notify(vec![b'n']);
        }
        assert!(queue.deliver(vec![b'r'; MAX_BYTES]));
        queue.notify(vec![b'z']);
        let mut out = Vec::new();
        queue.drain(&mut out);
        assert!(out.contains(&b'r') && !out.contains(&b'z'));
        assert!(!queue.deliver(vec![b'r'; FULL + 1]));
        queue.close();
        assert!(!queue.deliver(vec![b'r']) && queue.is_empty(), "nobody reads it");
    }
}
