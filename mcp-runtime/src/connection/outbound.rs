//! Messages on their way to a client that reads at its own pace: nobody who sends waits for the reader unless it asks
//! to, and what waits is bounded in bytes.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::sync::Notify;

use crate::{
    admission::{Budget, Permit},
    sync::Mutex,
};

/// Bytes of notifications that may wait; more are dropped.
const MAX_NOTIFICATIONS: usize = 1 << 20;
/// What a message costs beside its bytes.
const OVERHEAD: usize = 64;
/// Bytes beyond which not even requests to the client are taken.
const FULL: usize = 8 << 20;
/// Bytes beyond which [`Outbound::send`] waits.
const ENOUGH: usize = 64 << 10;

/// The messages of one stream.
#[derive(Debug)]
pub(crate) struct Outbound {
    state: Mutex<OutboundQueue>,
    /// The receiver has taken messages, or is gone.
    room: Notify,
    /// Bytes of all streams of a server.
    budget: Arc<Budget>,
}

#[derive(Debug, Default)]
struct OutboundQueue {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// What the messages take of the budget.
    permit: Option<Permit>,
    /// The receiver; set only while it waits.
    waker: Option<Waker>,
    /// Nothing more will be sent.
    finished: bool,
    /// The receiver is gone.
    abandoned: bool,
}

impl OutboundQueue {
    fn push(&mut self, message: Vec<u8>) -> Option<Waker> {
        self.bytes += message.len() + OVERHEAD;
        self.messages.push_back(message);
        self.waker.take()
    }
}

impl Outbound {
    pub(crate) fn new(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), room: Notify::new(), budget })
    }

    /// Takes a message as long as so many bytes do not wait already, of this stream and of all streams.
    fn offer(&self, message: Vec<u8>, limit: usize) -> bool {
        let waker = {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            let size = message.len() + OVERHEAD;
            if state.abandoned || state.finished || state.bytes + size > limit {
                return false;
            }
            let permit = state.permit.get_or_insert_with(|| self.budget.empty_permit());
            if !permit.grow(size) {
                return false;
            }
            state.push(message)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Sends a notification, if there is room.
    pub(crate) fn notify(&self, message: Vec<u8>) {
        if !self.offer(message, MAX_NOTIFICATIONS) {
            tracing::debug!("a notification was dropped: the client does not read");
        }
    }

    /// Sends a message that must not be lost.
    ///
    /// # Errors
    /// Why the client does not get it.
    pub(crate) fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        if self.offer(message, FULL) { Ok(()) } else { Err("it does not read what is sent to it") }
    }

    /// Sends a message as soon as the receiver keeps up; `false` if it is gone.
    pub(crate) async fn send(&self, message: Vec<u8>) -> bool {
        if message.is_empty() {
            return true;
        }
        if !self.has_room().await {
            return false;
        }
        self.put(message)
    }

    /// Sends a message whether or not there is room: the result of a request; `false` if the receiver is gone.
    pub(crate) fn put(&self, message: Vec<u8>) -> bool {
        let mut state = self.state.lock();
        if state.abandoned {
            return false;
        }
        let waker = state.push(message);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Waits until the receiver keeps up; `false` if it is gone.
    pub(crate) async fn has_room(&self) -> bool {
        loop {
            let mut room = pin!(self.room.notified());
            room.as_mut().enable();
            {
                let state = self.state.lock();
                if state.abandoned {
                    return false;
                }
                if state.bytes <= ENOUGH {
                    return true;
                }
            }
            room.await;
        }
    }

    /// Waits until the receiver is gone.
    pub(crate) async fn abandoned(&self) {
        loop {
            let mut room = pin!(self.room.notified());
            room.as_mut().enable();
            if self.state.lock().abandoned {
                return;
            }
            room.await;
        }
    }

    /// Nothing more will be sent: the receiver ends with what is there.
    pub(crate) fn finish(&self) {
        let waker = {
            let mut state = self.state.lock();
            state.finished = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// No one reads any more: what waits is dropped, and nothing more is taken.
    pub(crate) fn abandon(&self) {
        *self.state.lock() = OutboundQueue { abandoned: true, finished: true, ..OutboundQueue::default() };
        self.room.notify_waiters();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().messages.is_empty()
    }

    /// Takes what is there.
    pub(crate) fn take(&self) -> VecDeque<Vec<u8>> {
        let messages = {
            let mut state = self.state.lock();
            state.bytes = 0;
            state.permit = None;
            std::mem::take(&mut state.messages)
        };
        self.room.notify_waiters();
        messages
    }

    /// Arranges to be woken by the next message; `false` if there is one already.
    pub(crate) fn wake_on_message(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        if !state.messages.is_empty() {
            return false;
        }
        state.waker = Some(cx.waker().clone());
        true
    }

    /// Wakes the receiver, which looks at something else as well.
    pub(crate) fn wake(&self) {
        let waker = self.state.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The reading end of a stream; dropping it abandons the stream.
#[derive(Debug)]
pub(crate) struct Receiver(Arc<Outbound>);

impl Receiver {
    /// The one receiver of that stream.
    pub(crate) fn new(outbound: Arc<Outbound>) -> Self {
        Self(outbound)
    }

    /// The messages that are there; `None` at the end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<VecDeque<Vec<u8>>>> {
        {
            let mut state = self.0.state.lock();
            if state.messages.is_empty() {
                if state.finished {
                    return Poll::Ready(None);
                }
                state.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        Poll::Ready(Some(self.0.take()))
    }

    /// Whether the end has been reached.
    pub(crate) fn is_finished(&self) -> bool {
        let state = self.0.state.lock();
        state.finished && state.messages.is_empty()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbound(budget: usize) -> Arc<Outbound> {
        Outbound::new(Budget::new(budget))
    }

    #[test]
    fn notifications_beyond_the_bound_are_dropped() {
        let outbound = outbound(usize::MAX);
        for _ in 0..3 {
            outbound.notify(vec![b'x'; MAX_NOTIFICATIONS / 2 - OVERHEAD]);
        }
        assert_eq!(outbound.take().len(), 2);
        outbound.notify(vec![b'y']);
        assert_eq!(outbound.take().len(), 1, "there is room again");
    }

    #[test]
    fn requests_to_the_client_and_results_have_room_where_notifications_have_none() {
        let outbound = outbound(usize::MAX);
        outbound.notify(vec![b'n'; MAX_NOTIFICATIONS - OVERHEAD]);
        assert!(outbound.deliver(vec![b'r'; MAX_NOTIFICATIONS]).is_ok());
        outbound.notify(vec![b'z']);
        assert!(outbound.deliver(vec![b'r'; FULL]).is_err());
        assert!(outbound.put(vec![b'r'; FULL]), "a result is always taken");
        assert_eq!(outbound.take().len(), 3);
        outbound.abandon();
        assert!(outbound.deliver(vec![b'r']).is_err() && !outbound.put(vec![b'r']), "no one reads it");
    }

    #[test]
    fn all_streams_share_one_budget() {
        let budget = Budget::new(1000);
        let (one, other) = (Outbound::new(budget.clone()), Outbound::new(budget.clone()));
        one.notify(vec![b'x'; 800]);
        other.notify(vec![b'x'; 800]);
        assert!(!one.is_empty() && other.is_empty());
        assert!(budget.used() >= 800);
        drop(Receiver::new(one));
        assert_eq!(budget.used(), 0);
        other.notify(vec![b'x'; 800]);
        assert!(!other.is_empty());
    }

    #[tokio::test]
    async fn a_sender_waits_for_a_slow_receiver_and_learns_that_it_is_gone() {
        let outbound = outbound(usize::MAX);
        let mut receiver = Receiver::new(outbound.clone());
        assert!(outbound.send(vec![b'x'; ENOUGH]).await);
        let later = tokio::spawn({
            let outbound = outbound.clone();
            async move { outbound.send(vec![b'y']).await }
        });
        tokio::task::yield_now().await;
        assert!(!later.is_finished());
        let taken = std::future::poll_fn(|cx| receiver.poll(cx)).await.expect("messages");
        assert_eq!(taken.len(), 1);
        assert!(later.await.expect("sent"));
        drop(receiver);
        assert!(!outbound.send(vec![b'z']).await);
        outbound.abandoned().await;
    }
}
