//! The standalone streams of one session. Each message is sent on exactly one of them: the one that was opened last and
//! whose client is connected. Where replicas share a store, one process at a time has the changes of a session; the
//! streams of another one are idle.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::core::changes::{Change, Subscriber};
use crate::core::connection::Principal;
use crate::core::sync::{Mutex, MutexGuard};

/// The standalone streams of one session.
#[derive(Debug, Default)]
pub(crate) struct StandaloneStreams(Mutex<StandaloneState>);

#[derive(Debug, Default)]
struct StandaloneState {
    /// Present while a stream is open, unless another process has the changes.
    subscriber: Option<Subscriber>,
    /// The caller that has opened or resumed a stream last.
    caller: Option<Arc<Principal>>,
    /// In the order in which they were opened.
    streams: Vec<StreamEntry>,
    serial: u64,
    /// The change that is being sent.
    sending: Option<Change>,
}

#[derive(Debug)]
struct StreamEntry {
    serial: u64,
    connected: bool,
    /// Whether it must find out which process has the changes.
    checks: bool,
    waker: Option<Waker>,
}

/// The next step of a standalone stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StandaloneEvent {
    /// To send a change.
    Send(Change),
    /// To find out which process has the changes.
    Check,
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
        state.streams.push(StreamEntry { serial, connected: true, checks: false, waker: None });
        Some(serial)
    }

    /// Gets the changes again that another process had; `false` if `subscribe`, which is given the caller, returns none, or
    /// no stream is open.
    pub(crate) fn subscribe_again(
        &self,
        subscribe: impl FnOnce(Option<Arc<Principal>>) -> Option<Subscriber>,
    ) -> bool {
        let mut state = self.lock();
        if state.subscriber.is_none() && !state.streams.is_empty() {
            state.subscriber = subscribe(state.caller.clone());
            state.wake_current();
        }
        state.subscriber.is_some()
    }

    /// Sets the caller, who has just opened or resumed a stream: changes are sent if its scopes allow it.
    pub(crate) fn set_caller(&self, caller: Option<Arc<Principal>>) {
        let mut state = self.lock();
        state.caller.clone_from(&caller);
        if let Some(subscriber) = &state.subscriber {
            subscriber.set_caller(caller);
        }
    }

    /// Whether this process has the changes.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.lock().subscriber.is_some()
    }

    /// Whether it has them, and a client that is connected.
    pub(crate) fn is_connected(&self) -> bool {
        let mut state = self.lock();
        state.subscriber.is_some() && state.current().is_some()
    }

    /// Whether no stream is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().streams.is_empty()
    }

    /// Notes that the change that is being sent is logged.
    pub(crate) fn set_sent(&self) {
        self.lock().sending = None;
    }

    /// Adds changes that another process has not sent; `false` if there are some, and a third one has the changes now.
    pub(crate) fn carry_over(&self, changes: Vec<Change>) -> bool {
        let state = self.lock();
        let Some(subscriber) = &state.subscriber else { return changes.is_empty() };
        let wakers: Vec<Waker> =
            changes.into_iter().filter_map(|change| subscriber.enqueue(&change)).collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    /// Has each stream find out which process has the changes.
    pub(crate) fn check(&self) {
        let mut state = self.lock();
        let wakers = state.streams.iter_mut().filter_map(|stream| {
            stream.checks = true;
            stream.waker.take()
        });
        let wakers: Vec<Waker> = wakers.collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Leaves the changes to another process: the streams are idle from now on, and those end whose client is not
    /// connected. Returns what may not have been sent.
    pub(crate) fn release(&self) -> Vec<Change> {
        let mut unsent = Vec::new();
        let mut state = self.lock();
        unsent.extend(state.sending.take());
        let mut subscriber = state.subscriber.take();
        if let Some(subscriber) = &mut subscriber {
            while let Poll::Ready(change) = subscriber.poll(&mut Context::from_waker(Waker::noop())) {
                unsent.push(change);
            }
        }
        drop(state);
        drop(subscriber);
        self.check();
        unsent
    }

    /// Removes a stream.
    pub(crate) fn remove(&self, serial: u64) {
        let mut state = self.lock();
        state.streams.retain(|stream| stream.serial != serial);
        if state.streams.is_empty() {
            let subscriber = state.subscriber.take();
            state.caller = None;
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
        let own = state.streams.iter_mut().find(|stream| stream.serial == serial);
        if own.is_some_and(|stream| std::mem::take(&mut stream.checks)) {
            return Poll::Ready(StandaloneEvent::Check);
        }
        let is_current = state.current().is_some_and(|stream| stream.serial == serial);
        if is_current && let Some(subscriber) = &mut state.subscriber {
            match subscriber.poll(cx) {
                Poll::Ready(change) => {
                    // until it is logged, another process may have to send it
                    state.sending = Some(change.clone());
                    return Poll::Ready(StandaloneEvent::Send(change));
                }
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
