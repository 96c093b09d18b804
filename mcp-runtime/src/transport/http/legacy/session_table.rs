//! Stored state of sessions in addition to their ids: log levels, subscriptions and open streams. The table is
//! bounded: it contains only sessions that need an entry, and evicts those that have been idle for longest.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{session_id::SessionUid, standalone::StandaloneStreams};
use crate::core::sync::{Mutex, MutexGuard};
use crate::core::{
    admission::{Full, Owner, Quota, Usage},
    changes::{Filter, Hub, ListChanges},
    connection::{SubscribeError, check_uri},
    protocol::{ItemList, LogLevel},
};
use tokio_util::sync::CancellationToken;

/// The data of one session. Its open streams hold it, and as long as one does the session is not evicted.
pub(crate) struct SessionData {
    pub(super) uid: SessionUid,
    /// The owner whose share of the table and of the logs the session uses.
    pub(super) owner: Owner,
    /// The changes that it is notified of.
    filter: Arc<Filter>,
    /// Fires when the session ends.
    pub(crate) ended: CancellationToken,
    /// Its standalone streams, if there are some.
    pub(super) standalone: Mutex<Option<StandaloneStreams>>,
}

/// The sessions of which something is stored.
pub(crate) struct SessionTable {
    hub: Hub,
    state: Mutex<TableState>,
}

struct TableState {
    sessions: HashMap<SessionUid, SessionEntry>,
    /// Sessions by owner and when they were used last.
    by_use: BTreeMap<(Owner, u64), SessionUid>,
    clock: u64,
    count: Usage,
    ended: bool,
}

struct SessionEntry {
    data: Arc<SessionData>,
    /// The minimum level of its log messages.
    level: Option<LogLevel>,
    /// When it was used last, as in the key of `by_use`.
    used: u64,
}

impl SessionEntry {
    /// Whether no stream is open.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.data) == 1
    }
}

impl TableState {
    /// A session's entry, which is used by that, and added if necessary; `None` if the table, or the owner's share of it, is
    /// full of sessions with open streams.
    fn entry(&mut self, uid: &SessionUid, owner: &Owner, hub: &Hub) -> Option<&mut SessionEntry> {
        if self.ended {
            return None;
        }
        self.clock += 1;
        if let Some(entry) = self.sessions.get(uid) {
            self.by_use.remove(&(entry.data.owner.clone(), entry.used));
        } else {
            while !self.count.fits_share(owner, 1) {
                self.evict_of(&owner.clone(), None)?;
            }
            while !self.count.fits(1) {
                self.evict_any()?;
            }
            let lists: ListChanges = ItemList::ALL.iter().copied().filter(|list| list.is_legacy()).collect();
            let data = Arc::new(SessionData {
                uid: *uid,
                owner: owner.clone(),
                filter: hub.filter(lists, owner),
                ended: CancellationToken::default(),
                standalone: Mutex::default(),
            });
            self.count.add(owner, 1);
            self.sessions.insert(*uid, SessionEntry { data, level: None, used: 0 });
        }
        let entry = self.sessions.get_mut(uid)?;
        entry.used = self.clock;
        self.by_use.insert((entry.data.owner.clone(), self.clock), *uid);
        Some(entry)
    }

    /// Evicts the session of an owner that has been idle for longest, other than `except`.
    fn evict_of(&mut self, owner: &Owner, except: Option<&SessionUid>) -> Option<()> {
        let mut own = self.by_use.range((owner.clone(), 0)..=(owner.clone(), u64::MAX)).map(|(_, uid)| uid);
        let uid = *own.find(|uid| except != Some(*uid) && self.is_idle(uid))?;
        self.remove(&uid).map(drop)
    }

    /// Evicts a session of the owner that has most, or else the one of another owner that has been idle for longest.
    fn evict_any(&mut self) -> Option<()> {
        let largest = self.count.largest().cloned()?;
        if self.evict_of(&largest, None).is_some() {
            return Some(());
        }
        let idle = self.sessions.iter().filter(|(_, entry)| entry.is_idle());
        let uid = *idle.min_by_key(|(_, entry)| entry.used)?.0;
        self.remove(&uid).map(drop)
    }

    fn is_idle(&self, uid: &SessionUid) -> bool {
        self.sessions.get(uid).is_some_and(SessionEntry::is_idle)
    }

    fn remove(&mut self, uid: &SessionUid) -> Option<SessionEntry> {
        let entry = self.sessions.remove(uid)?;
        self.by_use.remove(&(entry.data.owner.clone(), entry.used));
        self.count.remove(&entry.data.owner, 1);
        Some(entry)
    }
}

impl SessionTable {
    /// A table of at most this many sessions.
    pub(crate) fn new(sessions: Quota, hub: Hub) -> Self {
        let state = TableState {
            sessions: HashMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
            count: Usage::new(sessions),
            ended: false,
        };
        Self { hub, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, TableState> {
        self.state.lock()
    }

    /// Opens a stream of a session; `None` if the table, or the owner's share of it, is full of sessions with open streams.
    pub(crate) fn open_stream(&self, uid: SessionUid, owner: &Owner) -> Option<Arc<SessionData>> {
        self.lock().entry(&uid, owner, &self.hub).map(|entry| entry.data.clone())
    }

    /// The minimum level of a session's log messages.
    pub(crate) fn level(&self, uid: &SessionUid) -> Option<LogLevel> {
        self.lock().sessions.get(uid)?.level
    }

    /// Sets that level; `false` if the table is full.
    pub(crate) fn set_level(&self, uid: &SessionUid, owner: &Owner, level: LogLevel) -> bool {
        let mut state = self.lock();
        let Some(entry) = state.entry(uid, owner, &self.hub) else { return false };
        entry.level = Some(level);
        true
    }

    /// Subscribes a session to a resource. Sessions without open streams lose their subscriptions for it: of its owner if
    /// that has used its share, else of the owner that uses most.
    ///
    /// # Errors
    /// It exceeds a limit.
    pub(crate) fn subscribe(&self, uid: &SessionUid, owner: &Owner, uri: &str) -> Result<(), SubscribeError> {
        check_uri(uri)?;
        let mut state = self.lock();
        let entry = state.entry(uid, owner, &self.hub).ok_or(SubscribeError::NoSession)?;
        let (filter, owner) = (entry.data.filter.clone(), entry.data.owner.clone());
        while let Err(error) = filter.subscribe(uri) {
            let evicted = match error {
                SubscribeError::TooManyBytes(_, Full::Share) => state.evict_of(&owner, Some(uid)),
                SubscribeError::TooManyBytes(_, Full::Table) => {
                    let largest = self.hub.largest_owner();
                    largest.and_then(|largest| state.evict_of(&largest, Some(uid)))
                }
                _ => None,
            };
            evicted.ok_or(error)?;
        }
        Ok(())
    }

    /// Ends that subscription.
    pub(crate) fn unsubscribe(&self, uid: &SessionUid, uri: &str) {
        if let Some(entry) = self.lock().sessions.get(uid) {
            entry.data.filter.unsubscribe(uri);
        }
    }

    /// Removes a session that has ended, and closes its streams.
    pub(crate) fn end(&self, uid: &SessionUid) {
        let removed = self.lock().remove(uid);
        if let Some(entry) = removed {
            entry.data.ended.cancel();
        }
    }

    /// Refuses new streams; those of calls end with their calls.
    pub(crate) fn refuse_streams(&self) {
        self.lock().ended = true;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let state = self.lock();
        assert_eq!([state.by_use.len(), state.count.total()], [state.sessions.len(); 2]);
        state.sessions.len()
    }
}

impl SessionData {
    /// The changes that the session is notified of.
    pub(crate) fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{changes::SubscriptionLimits, connection::MAX_URI};

    impl SessionTable {
        fn contains(&self, uid: &SessionUid) -> bool {
            self.lock().sessions.contains_key(uid)
        }
    }

    fn owner() -> Owner {
        Owner::local()
    }

    fn table(limit: usize) -> SessionTable {
        SessionTable::new(Quota::half(limit), Hub::default())
    }

    #[test]
    fn the_session_that_has_been_idle_for_longest_is_evicted() {
        let table = table(2);
        assert!(!table.contains(&[1; 16]) && table.level(&[1; 16]).is_none() && table.len() == 0);
        assert!(table.set_level(&[1; 16], &owner(), LogLevel::Error));
        table.subscribe(&[2; 16], &owner(), "x://y").unwrap();
        assert!(table.set_level(&[1; 16], &owner(), LogLevel::Warning), "used last");
        table.subscribe(&[3; 16], &owner(), "x://y").unwrap();
        assert_eq!(table.level(&[1; 16]), Some(LogLevel::Warning));
        assert!(!table.contains(&[2; 16]) && table.len() == 2);
    }

    #[test]
    fn sessions_with_open_streams_are_never_evicted() {
        let table = table(2);
        let one = table.open_stream([1; 16], &owner()).unwrap();
        let again = table.open_stream([1; 16], &owner()).unwrap();
        let two = table.open_stream([2; 16], &owner()).unwrap();
        assert!(
            table.open_stream([3; 16], &owner()).is_none()
                && !table.set_level(&[3; 16], &owner(), LogLevel::Info)
        );
        assert_eq!(table.subscribe(&[3; 16], &owner(), "x://y"), Err(SubscribeError::NoSession));
        drop(one);
        assert!(table.open_stream([3; 16], &owner()).is_none(), "one of its streams is still open");
        drop(again);
        let three = table.open_stream([3; 16], &owner()).unwrap();
        assert!(!table.contains(&[1; 16]) && table.contains(&[2; 16]));
        drop((two, three));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn an_ended_session_closes_its_streams_and_is_removed() {
        let table = table(2);
        let open = table.open_stream([1; 16], &owner()).unwrap();
        table.end(&[1; 16]);
        assert!(open.ended.is_cancelled() && table.len() == 0);
        let reopened = table.open_stream([1; 16], &owner()).unwrap();
        drop(open);
        assert!(!reopened.ended.is_cancelled() && table.len() == 1);
        table.refuse_streams();
        assert!(!reopened.ended.is_cancelled() && table.open_stream([2; 16], &owner()).is_none());
        drop(reopened);
    }

    #[test]
    fn the_subscriptions_of_all_sessions_are_bounded_in_bytes() {
        let (table, limit) = (table(10_000), SubscriptionLimits::default().bytes);
        let too_long = "x".repeat(MAX_URI + 1);
        let refused = table.subscribe(&[0; 16], &owner(), &too_long);
        assert_eq!(refused, Err(SubscribeError::TooLong(MAX_URI + 1)));
        let long = |n: u32| format!("x://{n}/{}", "y".repeat(MAX_URI - 20));
        for n in 0..5_000_u32 {
            let mut uid = [0; 16];
            uid[..4].copy_from_slice(&n.to_le_bytes());
            assert_eq!(table.subscribe(&uid, &owner(), &long(n)), Ok(()));
        }
        assert!(table.hub.subscribed_bytes() <= limit && table.len() < limit / MAX_URI + 1);
        let (uid, before) = ([9; 16], table.hub.subscribed_bytes());
        for n in 0..100 {
            assert_eq!(table.subscribe(&uid, &owner(), &long(n)), Ok(()));
            table.unsubscribe(&uid, &long(n));
        }
        assert!(table.hub.subscribed_bytes() <= before);
        table.lock().sessions.clear();
        assert_eq!(table.hub.subscribed_bytes(), 0);
    }

    #[test]
    fn a_client_with_open_streams_is_refused_at_its_share_and_another_is_not() {
        let table = table(10);
        let [ada, bob] = ["ada", "bob"].map(|name| Owner::principal(name.into()));
        let _stream = table.open_stream([1; 16], &ada).unwrap();
        let long = |n: usize| format!("X://{n}/{}", "y".repeat(MAX_URI - 20));
        let kept = (0..).find(|n| table.subscribe(&[1; 16], &ada, &long(*n)).is_err()).unwrap();
        let limit = SubscriptionLimits::default();
        let expected = limit.bytes / 2 / (2 * MAX_URI);
        assert!(
            (expected - 10..=expected + 1).contains(&kept) && kept < limit.uris,
            "both spellings count: {kept}"
        );
        let refused = table.subscribe(&[2; 16], &ada, &long(0));
        assert_eq!(refused, Err(SubscribeError::TooManyBytes(limit.bytes, Full::Share)));
        assert_eq!(table.subscribe(&[3; 16], &bob, &long(0)), Ok(()));
    }

    #[test]
    fn one_owner_evicts_its_own_sessions_first() {
        let table = table(10);
        let [ada, bob] = ["ada", "bob"].map(|name| Owner::principal(name.into()));
        assert!(table.set_level(&[0; 16], &bob, LogLevel::Error));
        for uid in 1..=100 {
            table.subscribe(&[uid; 16], &ada, "x://y").unwrap();
        }
        assert!(table.contains(&[0; 16]) && table.contains(&[100; 16]) && table.len() == 6);
        let open: Vec<_> = (0..5).map(|n| table.open_stream([n + 200; 16], &ada).unwrap()).collect();
        assert!(table.open_stream([99; 16], &ada).is_none(), "her share has open streams only");
        assert!(table.open_stream([1; 16], &bob).is_some() && table.contains(&[0; 16]));
        drop(open);
    }
}
