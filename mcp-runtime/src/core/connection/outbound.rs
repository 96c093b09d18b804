//! The queue of messages to a slow client: bounded in bytes, and only senders that choose to wait are blocked by it.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::sync::Notify;

use crate::core::{
    admission::{Owner, Permit, Shares},
    sync::{Mutex, MutexGuard},
};

/// Queued bytes beyond which notifications are dropped.
const NOTIFICATION_LIMIT: usize = 1 << 20;
/// Bytes that a message is charged in addition to its own.
const OVERHEAD: usize = 64;
/// Queued bytes beyond which client requests are refused.
const REQUEST_LIMIT: usize = 8 << 20;
/// Queued bytes beyond which [`Outbound::wait_for_capacity`] waits, and up to which messages are accepted that are not charged.
const SEND_THRESHOLD: usize = 64 << 10;

/// The messages of one stream.
pub(crate) struct Outbound {
    state: Mutex<OutboundQueue>,
    /// Notified when the receiver has taken messages, or was dropped.
    taken: Notify,
    /// Shared by all streams of a server.
    bytes: Arc<Shares>,
    owner: Owner,
}

#[derive(Default)]
struct OutboundQueue {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The part of `bytes` that is not charged.
    uncharged: usize,
    /// For the others, of the owner's share.
    permit: Option<Permit>,
    /// Set while the receiver waits.
    waker: Option<Waker>,
    /// Senders send no more messages.
    finished: bool,
    /// The receiver was dropped.
    abandoned: bool,
}

/// Messages that were taken from a queue, and stay charged until they are dropped or passed on.
#[derive(Default)]
pub(crate) struct TakenMessages {
    pub(crate) messages: VecDeque<Vec<u8>>,
    pub(crate) permit: Option<Permit>,
}

impl TakenMessages {
    /// The next message, with its part of the permit.
    pub(crate) fn pop(&mut self) -> Option<(Vec<u8>, Option<Permit>)> {
        let message = self.messages.pop_front()?;
        let permit = self.permit.as_mut().map(|permit| permit.split(message.len() + OVERHEAD));
        Some((message, permit))
    }
}

/// The outcome of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Queued,
    /// The receiver was dropped.
    Abandoned,
    /// Its owner leaves too many bytes unread.
    Full,
}

/// Queues a message, and wakes the receiver.
fn push(mut state: MutexGuard<'_, OutboundQueue>, message: Vec<u8>) {
    state.bytes += message.len() + OVERHEAD;
    state.messages.push_back(message);
    wake(state);
}

/// Wakes the receiver, which needs the lock.
fn wake(mut state: MutexGuard<'_, OutboundQueue>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Outbound {
    /// `bytes`: of the messages that clients have not read yet.
    pub(crate) fn new(bytes: Arc<Shares>, owner: Owner) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), taken: Notify::new(), bytes, owner })
    }

    /// Queues a message within `limit` bytes of this stream and the owner's share of all streams; `false` if it does not fit.
    fn try_push(&self, message: Vec<u8>, limit: usize) -> bool {
        let mut state = self.state.lock();
        let size = message.len() + OVERHEAD;
        if state.abandoned || state.finished || state.bytes + size > limit {
            return false;
        }
        let permit = state.permit.get_or_insert_with(|| self.bytes.empty_permit(&self.owner));
        if !permit.grow(size) {
            return false;
        }
        push(state, message);
        true
    }

    /// Sends a notification, or drops it if the queue is full.
    pub(crate) fn notify(&self, message: Vec<u8>) {
        if !self.try_push(message, NOTIFICATION_LIMIT) {
            tracing::debug!("a notification was dropped: the client does not read");
        }
    }

    /// Sends a message that must not be dropped silently.
    ///
    /// # Errors
    /// The reason why the client does not get it.
    pub(crate) fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        if self.try_push(message, REQUEST_LIMIT) {
            Ok(())
        } else {
            Err("it does not read what is sent to it")
        }
    }

    /// Sends a message that need not fit into the queue, such as the result of a request, if less than the owner's share of
    /// all unread bytes waits; one that is short enough is sent anyway.
    pub(crate) fn put(&self, message: Vec<u8>) -> Put {
        self.put_held(message, None)
    }

    /// The same for a message that has held this permit so far, which counts for it.
    pub(crate) fn put_held(&self, message: Vec<u8>, held: Option<Permit>) -> Put {
        let mut state = self.state.lock();
        if state.abandoned {
            return Put::Abandoned;
        }
        let permit = state.permit.get_or_insert_with(|| self.bytes.empty_permit(&self.owner));
        let held = held.map_or(0, |held| permit.merge(held));
        let rest = (message.len() + OVERHEAD).saturating_sub(held);
        if !permit.grow_last(rest) {
            if state.uncharged + rest > SEND_THRESHOLD {
                return Put::Full;
            }
            state.uncharged += rest;
        }
        push(state, message);
        Put::Queued
    }

    /// Sends a short message regardless of all limits; no effect if it is empty, or the receiver was dropped.
    pub(crate) fn put_short(&self, message: Vec<u8>) {
        let mut state = self.state.lock();
        if !state.abandoned && !message.is_empty() {
            state.uncharged += message.len() + OVERHEAD;
            push(state, message);
        }
    }

    /// Waits until the queue is short enough; `false` if the receiver was dropped.
    pub(crate) async fn wait_for_capacity(&self) -> bool {
        loop {
            let mut notified = pin!(self.taken.notified());
            notified.as_mut().enable();
            {
                let state = self.state.lock();
                if state.abandoned {
                    return false;
                }
                if state.bytes <= SEND_THRESHOLD {
                    return true;
                }
            }
            notified.await;
        }
    }

    /// Waits until the receiver is dropped.
    pub(crate) async fn abandoned(&self) {
        loop {
            let mut notified = pin!(self.taken.notified());
            notified.as_mut().enable();
            if self.state.lock().abandoned {
                return;
            }
            notified.await;
        }
    }

    /// Ends the stream after the messages in the queue.
    pub(crate) fn finish(&self) {
        let mut state = self.state.lock();
        state.finished = true;
        wake(state);
    }

    /// Drops the queue and refuses further messages.
    pub(crate) fn abandon(&self) {
        *self.state.lock() = OutboundQueue { abandoned: true, finished: true, ..OutboundQueue::default() };
        self.taken.notify_waiters();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().messages.is_empty()
    }

    /// Takes all messages from the queue.
    pub(crate) fn take(&self) -> TakenMessages {
        let taken = {
            let mut state = self.state.lock();
            (state.bytes, state.uncharged) = (0, 0);
            TakenMessages { messages: std::mem::take(&mut state.messages), permit: state.permit.take() }
        };
        self.taken.notify_waiters();
        taken
    }

    /// Registers to be woken by the next message; `false` if the queue has one already.
    pub(crate) fn wake_on_message(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        if !state.messages.is_empty() {
            return false;
        }
        state.waker = Some(cx.waker().clone());
        true
    }

    /// Wakes the receiver without a message, for an event of another source that its task polls.
    pub(crate) fn wake(&self) {
        wake(self.state.lock());
    }
}

/// The reading end of a stream; dropping it abandons the stream.
pub(crate) struct Receiver(Arc<Outbound>);

impl Receiver {
    /// The receiver of that stream, which has one only.
    pub(crate) fn new(outbound: Arc<Outbound>) -> Self {
        Self(outbound)
    }

    /// Takes all messages from the queue; `None` at the end of the stream.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<TakenMessages>> {
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

    /// Whether the stream has ended.
    pub(crate) fn is_finished(&self) -> bool {
        let state = self.0.state.lock();
        state.finished && state.messages.is_empty()
    }

    /// Stops to receive, as if it was dropped.
    pub(crate) fn abandon(&self) {
        self.0.abandon();
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
    use crate::core::admission::Quota;

    fn outbound(budget: usize) -> Arc<Outbound> {
        Outbound::new(Shares::new(Quota::undivided(budget)), Owner::local())
    }

    #[test]
    fn notifications_beyond_the_limit_are_dropped() {
        let outbound = outbound(usize::MAX);
        for _ in 0..3 {
            outbound.notify(vec![b'x'; NOTIFICATION_LIMIT / 2 - OVERHEAD]);
        }
        assert_eq!(outbound.take().messages.len(), 2);
        outbound.notify(vec![b'y']);
        assert_eq!(outbound.take().messages.len(), 1, "the queue was emptied");
    }

    #[test]
    fn client_requests_and_results_have_higher_limits_than_notifications() {
        let outbound = outbound(usize::MAX);
        outbound.notify(vec![b'n'; NOTIFICATION_LIMIT - OVERHEAD]);
        assert!(outbound.deliver(vec![b'r'; NOTIFICATION_LIMIT]).is_ok());
        outbound.notify(vec![b'z']);
        assert!(outbound.deliver(vec![b'r'; REQUEST_LIMIT]).is_err());
        assert_eq!(outbound.put(vec![b'r'; REQUEST_LIMIT]), Put::Queued, "a result need not fit");
        assert_eq!(outbound.take().messages.len(), 3);
        outbound.abandon();
        assert!(
            outbound.deliver(vec![b'r']).is_err() && outbound.put(vec![b'r']) == Put::Abandoned,
            "the stream was abandoned"
        );
    }

    #[test]
    fn the_streams_of_one_owner_share_what_it_may_leave_unread() {
        let shares = Shares::new(Quota::half(2000));
        let of = |owner: &str| Outbound::new(shares.clone(), Owner::principal(owner.into()));
        let (one, other, elsewhere) = (of("ada"), of("ada"), of("bob"));
        for outbound in [&one, &other, &elsewhere] {
            outbound.notify(vec![b'x'; 800]);
        }
        assert!(!one.is_empty() && other.is_empty() && !elsewhere.is_empty());
        assert!(shares.used() >= 1600);
        drop((Receiver::new(one), Receiver::new(elsewhere)));
        assert_eq!(shares.used(), 0);
        other.notify(vec![b'x'; 800]);
        assert!(!other.is_empty());
    }

    #[test]
    fn results_are_charged_until_they_are_dropped_and_refused_while_a_share_waits() {
        let shares = Shares::new(Quota::half(200 << 10));
        let of = |owner: &str| Outbound::new(shares.clone(), Owner::principal(owner.into()));
        let (one, other, his) = (of("ada"), of("ada"), of("bob"));
        assert_eq!(one.put(vec![b'x'; 150 << 10]), Put::Queued, "one result may be larger than a share");
        assert_eq!(other.put(vec![b'x'; 70 << 10]), Put::Full);
        assert_eq!(other.put(vec![b'x'; 60 << 10]), Put::Queued, "a short one is not charged");
        assert_eq!(other.put(vec![b'x'; 60 << 10]), Put::Full, "only so many of them");
        assert_eq!(his.put(vec![b'x'; 70 << 10]), Put::Queued);
        let mut taken = one.take();
        assert_eq!(other.put(vec![b'x'; 70 << 10]), Put::Full, "it is not written yet");
        let (_message, permit) = taken.pop().unwrap();
        drop(permit);
        assert_eq!(other.put(vec![b'x'; 70 << 10]), Put::Queued);
        drop((Receiver::new(one), Receiver::new(other), Receiver::new(his)));
        assert_eq!(shares.used(), 0);
    }

    #[tokio::test]
    async fn a_sender_waits_for_a_slow_receiver_and_notices_that_it_was_dropped() {
        let outbound = outbound(usize::MAX);
        let mut receiver = Receiver::new(outbound.clone());
        assert_eq!(outbound.put(vec![b'x'; SEND_THRESHOLD]), Put::Queued);
        let later = tokio::spawn({
            let outbound = outbound.clone();
            async move { outbound.wait_for_capacity().await }
        });
        tokio::task::yield_now().await;
        assert!(!later.is_finished());
        let messages = std::future::poll_fn(|cx| receiver.poll(cx)).await.expect("messages");
        assert_eq!(messages.messages.len(), 1);
        assert!(later.await.expect("room"));
        drop(receiver);
        assert!(!outbound.wait_for_capacity().await);
        outbound.abandoned().await;
    }
}
