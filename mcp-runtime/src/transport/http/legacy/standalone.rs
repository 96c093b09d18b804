//! The standalone streams of one session. Each message is sent on exactly one of them: the one that was opened last and
//! whose client is connected.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::core::changes::{Change, Subscriber};
use crate::core::connection::Principal;
use crate::core::sync::{Mutex, MutexGuard};

/// The standalone streams of one session.
#[derive(Default)]
pub(crate) struct StandaloneStreams(Mutex<StandaloneState>);

#[derive(Default)]
struct StandaloneState {
    /// Present while a stream is open.
    subscriber: Option<Subscriber>,
    /// In the order in which they were opened.
    streams: Vec<StreamEntry>,
    serial: u64,
}

struct StreamEntry {
    serial: u64,
    connected: bool,
    waker: Option<Waker>,
}

/// The next step of a standalone stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StandaloneEvent {
    /// To send a change.
    Send(Change),
    /// To end, so that its client learns that changes were lost.
    End,
}

impl StandaloneState {
    /// The stream that sends the next message.
    fn current(&mut self) -> Option<&mut StreamEntry> {
        self.streams.iter_mut().rev().find(|stream| stream.connected)
    }

    fn wake_current(&mut self) {
        if let Some(waker) = self.current().and_then(|stream| stream.waker.take()) {
            waker.wake();
        }
    }
}

impl StandaloneStreams {
    fn lock(&self) -> MutexGuard<'_, StandaloneState> {
        self.0.lock()
    }

    /// Adds a stream and returns its number; `None` if `subscribe` returns none for the first one.
    pub(crate) fn add(&self, subscribe: impl FnOnce() -> Option<Subscriber>) -> Option<u64> {
        let mut state = self.lock();
        if state.subscriber.is_none() {
            state.subscriber = Some(subscribe()?);
        }
        state.serial += 1;
        let serial = state.serial;
        state.streams.push(StreamEntry { serial, connected: true, waker: None });
        Some(serial)
    }

    /// Sets the caller, who has just opened or resumed a stream: changes are sent if its scopes allow it.
    pub(crate) fn set_caller(&self, caller: Option<Arc<Principal>>) {
        if let Some(subscriber) = &self.lock().subscriber {
            subscriber.set_caller(caller);
        }
    }

    /// Removes a stream.
    pub(crate) fn remove(&self, serial: u64) {
        let mut state = self.lock();
        state.streams.retain(|stream| stream.serial != serial);
        if state.streams.is_empty() {
            let subscriber = state.subscriber.take();
            drop(state);
            drop(subscriber);
        } else {
            state.wake_current();
        }
    }

    /// Sets whether the client of a stream is connected.
    pub(crate) fn set_connected(&self, serial: u64, connected: bool) {
        let mut state = self.lock();
        if let Some(stream) = state.streams.iter_mut().find(|stream| stream.serial == serial) {
            stream.connected = connected;
        }
        state.wake_current();
    }

    /// Returns the next step of a stream.
    pub(crate) fn poll(&self, serial: u64, cx: &mut Context<'_>) -> Poll<StandaloneEvent> {
        let mut state = self.lock();
        let is_current = state.current().is_some_and(|stream| stream.serial == serial);
        if is_current && let Some(subscriber) = &mut state.subscriber {
            match subscriber.poll(cx) {
                Poll::Ready(change) => return Poll::Ready(StandaloneEvent::Send(change)),
                Poll::Pending if subscriber.must_close() => return Poll::Ready(StandaloneEvent::End),
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
    use crate::core::admission::Owner;
    use crate::core::changes::{Hub, ListChanges};
    use crate::core::protocol::ItemList;

    #[test]
    fn each_message_is_sent_on_the_newest_stream_whose_client_is_connected() {
        let hub = Hub::default();
        let subscribe = || {
            hub.subscribe(
                hub.filter(ListChanges::from_iter([ItemList::Tools]), &Owner::local()),
                None,
                None,
                &Owner::local(),
            )
        };
        let standalone = StandaloneStreams::default();
        let old = standalone.add(subscribe).unwrap();
        let new = standalone.add(|| panic!("the session has a subscriber")).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut next = |serial| match standalone.poll(serial, &mut cx) {
            Poll::Ready(StandaloneEvent::Send(change)) => Some(change),
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => None,
        };
        hub.publish(Change::List(ItemList::Tools));
        assert_eq!((next(old), next(new), next(new)), (None, Some(Change::List(ItemList::Tools)), None));
        standalone.set_connected(new, false);
        hub.publish(Change::List(ItemList::Tools));
        assert_eq!((next(new), next(old), next(old)), (None, Some(Change::List(ItemList::Tools)), None));
        standalone.set_connected(old, false);
        hub.publish(Change::List(ItemList::Tools));
        assert_eq!((next(new), next(old)), (None, None), "the change waits until a client reconnects");
        standalone.set_connected(old, true);
        assert_eq!(next(old), Some(Change::List(ItemList::Tools)));
        standalone.remove(new);
        standalone.remove(old);
        assert_eq!(hub.subscriber_count(), 0);
    }
}
