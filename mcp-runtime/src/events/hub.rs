//! Brings changes to those who follow, without ever waiting for them: a change that a follower has not taken yet is
//! not put in twice, and what waits for one follower is bounded.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use crate::events::{Change, Filter, ListChanges};
use crate::{
    admission::{SharePermit, Shares},
    connection::{Access, Caller, owner},
    protocol::normalize_uri,
    sync::{Mutex, RwLock},
};

/// The bounds of a hub.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubscriptionLimits {
    /// Followers at once.
    pub(crate) followers: usize,
    /// Resources that one follower subscribes to.
    pub(crate) uris: usize,
    /// Changes that wait for one follower.
    pub(crate) pending: usize,
}

impl Default for SubscriptionLimits {
    /// Room for whoever else may be there by default: one follower for each connection over HTTP, of which there are
    /// 4096, and for each stream that waits there for its client. So it is another bound that is met first.
    fn default() -> Self {
        Self { followers: 5000, uris: 1024, pending: 1024 }
    }
}

/// Where a server's changes go; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Hub(Arc<HubInner>);

#[derive(Debug)]
struct HubInner {
    limits: SubscriptionLimits,
    permits: Arc<Shares>,
    places: RwLock<HashMap<u64, Arc<SubscriberEntry>>>,
    serial: AtomicU64,
}

/// What is kept of one follower.
#[derive(Debug)]
struct SubscriberEntry {
    filter: Arc<Filter>,
    caller: Option<Arc<Caller>>,
    restricted: bool,
    state: Mutex<ChangeQueue>,
}

#[derive(Debug, Default)]
struct ChangeQueue {
    /// In the order of the first of each.
    pending: VecDeque<Change>,
    /// The same.
    waiting: HashSet<Change>,
    waker: Option<Waker>,
    over: bool,
}

impl SubscriberEntry {
    /// Puts a change in, if it is wanted; whom to wake.
    fn offer(&self, change: &Change, limit: usize) -> Option<Waker> {
        let change = self.filter.wants(change)?;
        let mut state = self.state.lock();
        if state.waiting.contains(&change) {
            return None;
        }
        if state.pending.len() >= limit {
            // once for each follower, or a log would grow in its stead
            if !std::mem::replace(&mut state.over, true) {
                tracing::warn!("a subscriber does not take its {limit} pending changes; it loses later ones");
            }
            return state.waker.take();
        }
        state.waiting.insert(change.clone());
        state.pending.push_back(change);
        state.waker.take()
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
        let permits = Shares::new(limits.followers);
        Self(Arc::new(HubInner { limits, permits, places: RwLock::default(), serial: AtomicU64::new(0) }))
    }

    /// A filter for these lists, with room for as many resources as one follower may have.
    pub(crate) fn filter(&self, lists: ListChanges) -> Arc<Filter> {
        Arc::new(Filter::new(lists, self.0.limits.uris))
    }

    /// How many resources one follower may have.
    pub(crate) fn max_uris(&self) -> usize {
        self.0.limits.uris
    }

    /// Tells everyone who wants to know; never waits for them.
    pub(crate) fn publish(&self, change: Change) {
        self.publish_to(change, |_| true);
    }

    /// The same, to those only who `may` know.
    pub(crate) fn publish_to(&self, change: Change, may: impl Fn(Access<'_>) -> bool) {
        let change = match change {
            Change::Updated(uri) => Change::Updated(normalize_uri(&uri).into()),
            other => other,
        };
        let limit = self.0.limits.pending;
        let places = self.0.places.read();
        let told =
            places.values().filter(|place| may(Access::new(place.caller.as_deref(), place.restricted)));
        let wakers: Vec<Waker> = told.filter_map(|place| place.offer(&change, limit)).collect();
        drop(places);
        // a waker runs code of others, which may drop a follower
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Follows the changes of a filter, as that caller; `None` if there are too many followers, or too many of its.
    pub(crate) fn follow(
        &self,
        filter: Arc<Filter>,
        caller: Option<Arc<Caller>>,
        restricted: bool,
    ) -> Option<Subscriber> {
        let permit = self.0.permits.try_acquire(owner(caller.as_deref()))?;
        let place = Arc::new(SubscriberEntry { filter, caller, restricted, state: Mutex::default() });
        let key = self.0.serial.fetch_add(1, Ordering::Relaxed);
        self.0.places.write().insert(key, place.clone());
        Some(Subscriber { hub: self.clone(), key, place, _permit: permit })
    }

    /// Ends everyone's subscription who can be told so.
    pub(crate) fn end(&self) {
        let places = self.0.places.read();
        let end = |place: &Arc<SubscriberEntry>| {
            let mut state = place.state.lock();
            state.over = true;
            state.waker.take()
        };
        let wakers: Vec<Waker> = places.values().filter_map(end).collect();
        drop(places);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How many follow.
    #[cfg(test)]
    pub(crate) fn followers(&self) -> usize {
        self.0.places.read().len()
    }
}

/// One who follows; dropping it ends that.
#[derive(Debug)]
pub(crate) struct Subscriber {
    hub: Hub,
    key: u64,
    place: Arc<SubscriberEntry>,
    _permit: SharePermit,
}

impl Subscriber {
    /// The next change, oldest first.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Change> {
        let mut state = self.place.state.lock();
        match state.pending.pop_front() {
            Some(change) => {
                state.waiting.remove(&change);
                Poll::Ready(change)
            }
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether it has lost changes, or the server ends all subscriptions: a stream that can be ended must be, so
    /// that its client knows. Whoever waits in [`poll`](Self::poll) is woken when this turns true.
    pub(crate) fn is_over(&self) -> bool {
        self.place.state.lock().over
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.hub.0.places.write().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ListChanges = ListChanges { tools: true, prompts: true, resources: true };

    fn updated(uri: &str) -> Change {
        Change::Updated(uri.into())
    }

    fn taken(follower: &mut Subscriber) -> Vec<Change> {
        let mut cx = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match follower.poll(&mut cx) {
            Poll::Ready(change) => Some(change),
            Poll::Pending => None,
        })
        .collect()
    }

    #[test]
    fn a_change_reaches_whoever_wants_it_and_waits_only_once() {
        let hub = Hub::default();
        let filter = hub.filter(ListChanges { tools: true, ..ListChanges::default() });
        assert!(filter.subscribe("HTTP://Host/a") && filter.subscribe("x://b"));
        filter.unsubscribe("x://b");
        let mut one = hub.follow(filter, None, false).unwrap();
        let mut other = hub.follow(hub.filter(ALL), None, false).unwrap();
        for _ in 0..3 {
            hub.publish(updated("http://host/a"));
            hub.publish(updated("http://host/A"));
            hub.publish(updated("x://b"));
            hub.publish(Change::Prompts);
            hub.publish(Change::Tools);
        }
        assert_eq!(taken(&mut one), [updated("HTTP://Host/a"), Change::Tools]);
        assert_eq!(taken(&mut other), [Change::Prompts, Change::Tools]);
        hub.publish(Change::Tools);
        assert_eq!(taken(&mut one), [Change::Tools], "once taken, it can wait again");
    }

    #[test]
    fn only_those_who_may_know_are_told() {
        let hub = Hub::default();
        let caller = |scopes: &[&str]| Some(Arc::new(Caller::new("i", "s").scopes(scopes.iter().copied())));
        let mut admin = hub.follow(hub.filter(ALL), caller(&["admin"]), true).unwrap();
        let mut user = hub.follow(hub.filter(ALL), caller(&[]), true).unwrap();
        hub.publish_to(Change::Tools, |viewer| viewer.allows(&["admin"]));
        assert_eq!((taken(&mut admin).len(), taken(&mut user).len()), (1, 0));
    }

    #[test]
    fn followers_uris_and_pending_changes_are_bounded() {
        let hub = Hub::new(SubscriptionLimits { followers: 2, uris: 3, pending: 2 });
        let filter = hub.filter(ALL);
        assert!(["a:1", "a:2", "a:3"].iter().all(|uri| filter.subscribe(uri)));
        assert!(!filter.subscribe("a:4") && filter.subscribe("A:1"), "one that is there needs no room");
        let mut slow = hub.follow(filter, None, false).unwrap();
        let second = hub.follow(hub.filter(ALL), None, false);
        assert!(second.is_some() && hub.follow(hub.filter(ALL), None, false).is_none());
        drop(second);
        assert_eq!(hub.followers(), 1);

        hub.publish(updated("a:1"));
        hub.publish(updated("a:2"));
        assert!(!slow.is_over());
        hub.publish(updated("a:3"));
        assert!(slow.is_over());
        assert_eq!(taken(&mut slow), [updated("a:1"), updated("a:2")]);
    }

    #[test]
    fn whoever_waits_is_woken_by_a_change_and_by_the_end() {
        struct Woken(AtomicU64);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let woken = Arc::new(Woken(AtomicU64::new(0)));
        let waker = Waker::from(woken.clone());
        let mut cx = Context::from_waker(&waker);
        let hub = Hub::default();
        let mut follower = hub.follow(hub.filter(ALL), None, false).unwrap();
        assert!(follower.poll(&mut cx).is_pending());
        hub.publish(updated("a:1"));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0, "not for what it does not want");
        hub.publish(Change::Tools);
        hub.publish(Change::Prompts);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert_eq!(taken(&mut follower).len(), 2);
        assert!(follower.poll(&mut cx).is_pending());
        hub.end();
        assert!(woken.0.load(Ordering::Relaxed) == 2 && follower.is_over());
    }
}
