//! Publishes changes to subscribers without waiting for them: a subscriber's queue is bounded and holds equal changes
//! once.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use tokio_util::sync::CancellationToken;

use crate::core::changes::{Change, Filter, ListChanges};
use crate::core::{
    admission::{Owner, Permit, Quota, Shares},
    connection::{Access, AccessRules, Principal},
    log_limit::{LogLimit, LogLine},
    protocol::normalize_uri,
    sync::{Mutex, RwLock},
};

/// The limits of a hub.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubscriptionLimits {
    /// Subscribers at once.
    pub(crate) subscribers: usize,
    /// Resources that one subscriber subscribes to.
    pub(crate) uris: usize,
    /// Bytes of what all of them subscribe to.
    pub(crate) bytes: usize,
    /// Changes in the queue of one subscriber.
    pub(crate) pending: usize,
}

impl Default for SubscriptionLimits {
    /// More than there can be HTTP streams, with those that wait for their clients to reconnect, so that those limits are
    /// reached first.
    fn default() -> Self {
        Self { subscribers: 5000, uris: 1024, bytes: 32 << 20, pending: 1024 }
    }
}

/// Publishes the changes of a server; clones share one hub.
#[derive(Clone)]
pub(crate) struct Hub(pub(super) Arc<HubInner>);

pub(super) struct HubInner {
    pub(super) limits: SubscriptionLimits,
    permits: Arc<Shares>,
    /// Bytes of what subscribers subscribe to.
    bytes: Arc<Shares>,
    subscribers: RwLock<HashMap<u64, Arc<SubscriberEntry>>>,
    next_key: AtomicU64,
    /// The open streams of principals.
    streams: Mutex<HashMap<u64, OpenStream>>,
}

struct OpenStream {
    caller: Arc<Principal>,
    end: CancellationToken,
}

/// The hub's part of a subscriber.
pub(super) struct SubscriberEntry {
    pub(super) filter: Arc<Filter>,
    /// The caller that opened the newest stream of a legacy session.
    caller: RwLock<Option<Arc<Principal>>>,
    pub(super) access_rules: Option<Arc<AccessRules>>,
    queue: Mutex<ChangeQueue>,
}

#[derive(Default)]
struct ChangeQueue {
    /// Oldest first.
    pending: VecDeque<Change>,
    /// The same changes, to find duplicates.
    queued: HashSet<Change>,
    waker: Option<Waker>,
    /// A change was lost, or the server ends all subscriptions.
    must_close: bool,
}

impl SubscriberEntry {
    /// Who gets the changes now. A session may wait for its client to come back after the caller's authentication has expired.
    pub(super) fn current_caller(&self) -> Option<Arc<Principal>> {
        self.caller.read().clone().filter(|caller| !caller.has_expired())
    }

    /// Queues a change that the filter selects; returns the waker to wake.
    pub(super) fn enqueue(&self, change: &Change, limit: usize) -> Option<Waker> {
        let change = self.filter.select(change)?;
        let mut queue = self.queue.lock();
        if queue.queued.contains(&change) {
            return None;
        }
        if queue.pending.len() >= limit {
            // once for each subscriber: a slow client must not fill the log
            static LIMIT: LogLimit = LogLimit::new();
            if !std::mem::replace(&mut queue.must_close, true)
                && let Some(LogLine { suppressed }) = LIMIT.line()
            {
                tracing::warn!(
                    suppressed,
                    "a slow subscriber has {limit} pending changes; later ones are lost"
                );
            }
            return queue.waker.take();
        }
        queue.queued.insert(change.clone());
        queue.pending.push_back(change);
        queue.waker.take()
    }
}

#[cfg(test)]
impl Default for Hub {
    fn default() -> Self {
        Self::new(SubscriptionLimits::default())
    }
}

impl Hub {
    pub(crate) fn new(limits: SubscriptionLimits) -> Self {
        let shares = |limit| Shares::new(Quota::half(limit));
        let (permits, bytes) = (shares(limits.subscribers), shares(limits.bytes));
        Self(Arc::new(HubInner {
            limits,
            permits,
            bytes,
            subscribers: RwLock::default(),
            next_key: AtomicU64::new(0),
            streams: Mutex::default(),
        }))
    }

    /// A filter for these lists, with the limits on resources, whose bytes are charged to that owner.
    pub(crate) fn filter(&self, lists: ListChanges, owner: &Owner) -> Arc<Filter> {
        Arc::new(Filter::new(lists, self.0.limits, self.0.bytes.empty_permit(owner)))
    }

    /// The owner whose subscriptions have most bytes.
    pub(crate) fn largest_owner(&self) -> Option<Owner> {
        self.0.bytes.largest()
    }

    /// Bytes of all subscriptions.
    #[cfg(all(test, feature = "http"))]
    pub(crate) fn subscribed_bytes(&self) -> usize {
        self.0.bytes.used()
    }

    /// How many resources one subscriber may subscribe to.
    pub(crate) fn max_uris(&self) -> usize {
        self.0.limits.uris
    }

    /// Publishes a change to its subscribers; never waits for them.
    pub(crate) fn publish(&self, change: Change) {
        self.publish_to(change, |_| true);
    }

    /// Publishes a change to those of its subscribers whose access `is_allowed`.
    pub(crate) fn publish_to(&self, change: Change, is_allowed: impl Fn(Access<'_>) -> bool) {
        let change = match change {
            Change::Updated(uri) => Change::Updated(normalize_uri(&uri).into()),
            other => other,
        };
        let limit = self.0.limits.pending;
        for subscriber in self.subscribers() {
            let caller = subscriber.current_caller();
            if is_allowed(Access::new(caller.as_deref(), subscriber.access_rules.as_deref()))
                && let Some(waker) = subscriber.enqueue(&change, limit)
            {
                waker.wake();
            }
        }
    }

    /// Those there are now. No lock is held while they are told: what decides whether, and wakers, are foreign code, which may
    /// publish changes itself.
    pub(super) fn subscribers(&self) -> Vec<Arc<SubscriberEntry>> {
        self.0.subscribers.read().values().cloned().collect()
    }

    /// Subscribes that caller to the changes of a filter; `None` if the limit, or the owner's share of it, is reached.
    pub(crate) fn subscribe(
        &self,
        filter: Arc<Filter>,
        caller: Option<Arc<Principal>>,
        access_rules: Option<Arc<AccessRules>>,
        owner: &Owner,
    ) -> Option<Subscriber> {
        let permit = self.0.permits.try_acquire(owner, 1)?;
        let (caller, queue) = (RwLock::new(caller), Mutex::default());
        let entry = Arc::new(SubscriberEntry { filter, caller, access_rules, queue });
        let key = self.0.next_key.fetch_add(1, Ordering::Relaxed);
        self.0.subscribers.write().insert(key, entry.clone());
        Some(Subscriber { hub: self.clone(), key, entry, _permit: permit })
    }

    /// Registers an open stream of a principal, until the registration is dropped.
    pub(crate) fn register_stream(&self, caller: Arc<Principal>) -> StreamTicket {
        let key = self.0.next_key.fetch_add(1, Ordering::Relaxed);
        let end = CancellationToken::new();
        self.0.streams.lock().insert(key, OpenStream { caller, end: end.clone() });
        StreamTicket { hub: self.clone(), key, end }
    }

    /// Ends the open streams of a principal.
    pub(crate) fn end_streams_of(&self, principal: &Principal) {
        let ends: Vec<_> = {
            let streams = self.0.streams.lock();
            let own = streams.values().filter(|stream| stream.caller.is_same(principal));
            own.map(|stream| stream.end.clone()).collect()
        };
        ends.iter().for_each(CancellationToken::cancel);
    }

    /// Closes every subscription whose stream can be closed.
    pub(crate) fn close(&self) {
        for subscriber in self.subscribers() {
            let waker = {
                let mut queue = subscriber.queue.lock();
                queue.must_close = true;
                queue.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// The number of subscribers.
    #[cfg(test)]
    pub(crate) fn subscriber_count(&self) -> usize {
        self.0.subscribers.read().len()
    }
}

/// The registration of an open stream.
pub(crate) struct StreamTicket {
    hub: Hub,
    key: u64,
    /// Fires when the streams of its principal end.
    pub(crate) end: CancellationToken,
}

impl Drop for StreamTicket {
    fn drop(&mut self) {
        self.hub.0.streams.lock().remove(&self.key);
    }
}

/// A subscription; dropping it ends it.
pub(crate) struct Subscriber {
    hub: Hub,
    key: u64,
    entry: Arc<SubscriberEntry>,
    _permit: Permit,
}

impl Subscriber {
    /// The next change, oldest first.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Change> {
        let mut queue = self.entry.queue.lock();
        while let Some(change) = queue.pending.pop_front() {
            queue.queued.remove(&change);
            // the client may have unsubscribed meanwhile
            if self.entry.filter.contains(&change) {
                return Poll::Ready(change);
            }
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next change, for a stream that can be closed: `None` if a change was lost, or the server ends all subscriptions, so
    /// that its client notices.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        match self.poll(cx) {
            Poll::Pending if self.must_close() => Poll::Ready(None),
            polled => polled.map(Some),
        }
    }

    /// Sets who gets the changes from now on.
    pub(crate) fn set_caller(&self, caller: Option<Arc<Principal>>) {
        *self.entry.caller.write() = caller;
    }

    /// Whether a stream that can be closed must be. The task that polls is woken when this becomes true.
    fn must_close(&self) -> bool {
        self.entry.queue.lock().must_close
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.hub.0.subscribers.write().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::connection::SubscribeError;
    use crate::core::connection::{ItemKind, ItemView};
    use crate::core::protocol::ItemList;

    fn every_list() -> ListChanges {
        ItemList::ALL.iter().copied().collect()
    }

    fn updated(uri: &str) -> Change {
        Change::Updated(uri.into())
    }

    fn take_all(subscriber: &mut Subscriber) -> Vec<Change> {
        let mut cx = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match subscriber.poll(&mut cx) {
            Poll::Ready(change) => Some(change),
            Poll::Pending => None,
        })
        .collect()
    }

    #[test]
    fn what_decides_who_is_told_may_use_the_hub_itself() {
        let hub = Hub::default();
        let subscribe =
            || hub.subscribe(hub.filter(every_list(), &Owner::local()), None, None, &Owner::local());
        let mut one = subscribe().unwrap();
        hub.publish_to(Change::List(ItemList::Tools), |_| {
            hub.publish(Change::List(ItemList::Prompts));
            drop(subscribe());
            true
        });
        assert_eq!(take_all(&mut one).len(), 2);
    }

    #[test]
    fn a_change_reaches_its_subscribers_and_is_queued_once() {
        let hub = Hub::default();
        let filter = hub.filter(ListChanges::from_iter([ItemList::Tools]), &Owner::local());
        assert_eq!(filter.subscribe("HTTP://Host/a").and(filter.subscribe("x://b")), Ok(()));
        filter.unsubscribe("x://b");
        let mut one = hub.subscribe(filter, None, None, &Owner::local()).unwrap();
        let mut other =
            hub.subscribe(hub.filter(every_list(), &Owner::local()), None, None, &Owner::local()).unwrap();
        for _ in 0..3 {
            hub.publish(updated("http://host/a"));
            hub.publish(updated("http://host/A"));
            hub.publish(updated("x://b"));
            hub.publish(Change::List(ItemList::Prompts));
            hub.publish(Change::List(ItemList::Tools));
        }
        assert_eq!(take_all(&mut one), [updated("HTTP://Host/a"), Change::List(ItemList::Tools)]);
        assert_eq!(take_all(&mut other), [Change::List(ItemList::Prompts), Change::List(ItemList::Tools)]);
        hub.publish(Change::List(ItemList::Tools));
        assert_eq!(take_all(&mut one), [Change::List(ItemList::Tools)], "once taken, it is queued again");
    }

    #[test]
    fn only_subscribers_with_access_are_notified() {
        let hub = Hub::default();
        let caller =
            |scopes: &[&str]| Some(Arc::new(Principal::new("i", "s").with_scopes(scopes.iter().copied())));
        let rules = || Some(Arc::new(AccessRules::default()));
        let mut admin = hub
            .subscribe(
                hub.filter(every_list(), &Owner::local()),
                caller(&["admin"]),
                rules(),
                &Owner::local(),
            )
            .unwrap();
        let mut user = hub
            .subscribe(hub.filter(every_list(), &Owner::local()), caller(&[]), rules(), &Owner::local())
            .unwrap();
        let scopes = ["admin".to_owned()];
        let view = ItemView::new(ItemKind::Tool, "a", &scopes);
        hub.publish_to(Change::List(ItemList::Tools), |access| access.allows(view));
        assert_eq!((take_all(&mut admin).len(), take_all(&mut user).len()), (1, 0));
    }

    #[test]
    fn subscribers_uris_and_pending_changes_are_bounded() {
        let hub = Hub::new(SubscriptionLimits {
            subscribers: 2,
            uris: 3,
            pending: 2,
            ..SubscriptionLimits::default()
        });
        let filter = hub.filter(every_list(), &Owner::local());
        assert!(["a:1", "a:2", "a:3"].iter().all(|uri| filter.subscribe(uri).is_ok()));
        assert_eq!(filter.subscribe("a:4"), Err(SubscribeError::TooMany(3)));
        assert_eq!(filter.subscribe("A:1"), Ok(()), "the same resource");
        let mut slow = hub.subscribe(filter, None, None, &Owner::local()).unwrap();
        let second = hub.subscribe(hub.filter(every_list(), &Owner::local()), None, None, &Owner::local());
        assert!(
            second.is_some()
                && hub
                    .subscribe(hub.filter(every_list(), &Owner::local()), None, None, &Owner::local())
                    .is_none()
        );
        drop(second);
        assert_eq!(hub.subscriber_count(), 1);

        hub.publish(updated("a:1"));
        hub.publish(updated("a:2"));
        assert!(!slow.must_close());
        hub.publish(updated("a:3"));
        assert!(slow.must_close());
        assert_eq!(take_all(&mut slow), [updated("a:1"), updated("a:2")]);
    }

    #[test]
    fn a_pending_subscriber_is_woken_by_a_change_and_by_the_end() {
        struct WakeCount(AtomicU64);
        impl std::task::Wake for WakeCount {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let wakes = Arc::new(WakeCount(AtomicU64::new(0)));
        let waker = Waker::from(wakes.clone());
        let mut cx = Context::from_waker(&waker);
        let hub = Hub::default();
        let mut subscriber =
            hub.subscribe(hub.filter(every_list(), &Owner::local()), None, None, &Owner::local()).unwrap();
        assert!(subscriber.poll(&mut cx).is_pending());
        hub.publish(updated("a:1"));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0, "it is not subscribed to this resource");
        hub.publish(Change::List(ItemList::Tools));
        hub.publish(Change::List(ItemList::Prompts));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert_eq!(take_all(&mut subscriber).len(), 2);
        assert!(subscriber.poll(&mut cx).is_pending());
        hub.close();
        assert!(wakes.0.load(Ordering::Relaxed) == 2 && subscriber.must_close());
    }
}
