//! The standalone streams of one session, and which of them brings the next message: each goes to exactly one, the one
//! that was opened last and is being read. Their owners take turns at it.

use std::task::{Context, Poll, Waker};

use crate::{
    events::{Change, Subscriber},
    sync::Mutex,
};

/// The standalone streams of one session.
#[derive(Debug, Default)]
pub(crate) struct Standalone(Mutex<StandaloneState>);

#[derive(Debug, Default)]
struct StandaloneState {
    /// As long as there is a stream.
    follower: Option<Subscriber>,
    /// In the order in which they were opened.
    streams: Vec<OpenStream>,
    serial: u64,
}

#[derive(Debug)]
struct OpenStream {
    serial: u64,
    /// Whether its client is connected.
    read: bool,
    waker: Option<Waker>,
}

impl StandaloneState {
    /// The stream that brings the next message.
    fn next(&mut self) -> Option<&mut OpenStream> {
        self.streams.iter_mut().rev().find(|stream| stream.read)
    }

    fn wake_next(&mut self) {
        if let Some(waker) = self.next().and_then(|stream| stream.waker.take()) {
            waker.wake();
        }
    }
}

impl Standalone {
    /// A new stream, by its number; `None` if `follow` gives the first one nothing to bring.
    pub(crate) fn join(&self, follow: impl FnOnce() -> Option<Subscriber>) -> Option<u64> {
        let mut state = self.0.lock();
        if state.follower.is_none() {
            state.follower = Some(follow()?);
        }
        state.serial += 1;
        let serial = state.serial;
        state.streams.push(OpenStream { serial, read: true, waker: None });
        Some(serial)
    }

    /// A stream is over.
    pub(crate) fn leave(&self, serial: u64) {
        let mut state = self.0.lock();
        state.streams.retain(|stream| stream.serial != serial);
        if state.streams.is_empty() {
            let follower = state.follower.take();
            drop(state);
            drop(follower);
        } else {
            state.wake_next();
        }
    }

    /// Whether the client of a stream is connected.
    pub(crate) fn reads(&self, serial: u64, read: bool) {
        let mut state = self.0.lock();
        if let Some(stream) = state.streams.iter_mut().find(|stream| stream.serial == serial) {
            stream.read = read;
        }
        state.wake_next();
    }

    /// What that stream is to bring next; `None` when it must end, so that its client knows that something was lost.
    pub(crate) fn poll(&self, serial: u64, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        let mut state = self.0.lock();
        let turn = state.next().is_some_and(|stream| stream.serial == serial);
        if turn && let Some(follower) = &mut state.follower {
            match follower.poll(cx) {
                Poll::Ready(change) => return Poll::Ready(Some(change)),
                Poll::Pending if follower.must_close() => return Poll::Ready(None),
                Poll::Pending => {}
            }
        }
        if let Some(stream) = state.streams.iter_mut().find(|stream| stream.serial == serial) {
            stream.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Hub, ListChanges};

    #[test]
    fn each_message_goes_to_one_stream_the_newest_that_is_read() {
        let hub = Hub::default();
        let follow =
            || hub.subscribe(hub.filter(ListChanges { tools: true, ..ListChanges::default() }), None, false);
        let standalone = Standalone::default();
        let old = standalone.join(follow).unwrap();
        let new = standalone.join(|| panic!("there is one already")).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut taken = |serial| match standalone.poll(serial, &mut cx) {
            Poll::Ready(change) => change,
            Poll::Pending => None,
        };
        hub.publish(Change::Tools);
        assert_eq!((taken(old), taken(new), taken(new)), (None, Some(Change::Tools), None));
        standalone.reads(new, false);
        hub.publish(Change::Tools);
        assert_eq!((taken(new), taken(old), taken(old)), (None, Some(Change::Tools), None));
        standalone.reads(old, false);
        hub.publish(Change::Tools);
        assert_eq!((taken(new), taken(old)), (None, None), "it waits for a client that comes back");
        standalone.reads(old, true);
        assert_eq!(taken(old), Some(Change::Tools));
        standalone.leave(new);
        standalone.leave(old);
        assert_eq!(hub.subscriber_count(), 0);
    }
}
