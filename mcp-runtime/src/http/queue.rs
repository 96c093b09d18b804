//! Notifications on their way from running calls to their response. Dispatch puts them in, the response takes them.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use crate::context::Outlet;

/// What may wait for a client that reads slowly; more is dropped. Results do not wait here.
const MAX_MESSAGES: usize = 256;
const MAX_BYTES: usize = 1 << 20;

/// Notifications of the calls of one request.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Set only while nobody is about to look anyway.
    waker: Option<Waker>,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().messages.is_empty()
    }

    /// Takes what is there, as events.
    pub(super) fn drain(&self, out: &mut Vec<u8>) {
        let mut state = self.state();
        out.reserve(state.bytes + state.messages.len() * 8);
        state.bytes = 0;
        for message in state.messages.drain(..) {
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
}

impl Outlet for Queue {
    fn notify(&self, message: Vec<u8>) {
        self.deliver(message);
    }

    fn deliver(&self, message: Vec<u8>) -> bool {
        let mut state = self.state();
        if state.messages.len() >= MAX_MESSAGES || state.bytes + message.len() > MAX_BYTES {
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
}
