//! Records of sessions besides their ids: a start is kept for ten minutes, and an end until the session would have expired.
//! Each owner has a share of the records; an owner that has used up its share cannot end its sessions for a while, and all
//! others can.

use std::sync::atomic::{AtomicBool, Ordering};

use super::session_id::{Session, SessionUid};
use crate::core::{
    admission::{OwnedEntry, OwnedTable, Owner, Quota},
    sync::RwLock,
};

/// How long a session lasts that is never used, in seconds.
const UNUSED_LIFETIME: u64 = 10 * 60;

/// The records of one endpoint's sessions. Times are in seconds since 1970.
pub(crate) struct SessionRecords {
    /// Whether only this process opens the ids of its sessions, so that it knows which of them are used.
    exclusive: bool,
    /// Set when the first session ends, so that servers without one look nothing up for sessions that are used.
    any_ended: AtomicBool,
    table: RwLock<OwnedTable<SessionUid, Record, u64>>,
}

struct Record {
    stage: Stage,
    /// Whether the client has sent `notifications/initialized`.
    initialized: bool,
    /// From then on the record does not count.
    until: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No request has named the session yet.
    Started,
    Used,
    Ended,
}

impl SessionRecords {
    pub(crate) fn new(quota: Quota, exclusive: bool) -> Self {
        let table = OwnedTable::new(quota, Quota::undivided(usize::MAX));
        Self { exclusive, any_ended: AtomicBool::new(false), table: RwLock::new(table) }
    }

    /// Records the start of a session. Whether its id must say so: it is valid only while there is a record then.
    pub(crate) fn start(&self, uid: SessionUid, owner: &Owner, now: u64) -> bool {
        let until = now.saturating_add(UNUSED_LIFETIME);
        let record = Record { stage: Stage::Started, initialized: false, until };
        let mut table = self.table.write();
        table.expire(now);
        let entry = OwnedEntry { owner: owner.clone(), bytes: 0, expires: until, value: record };
        table.put(uid, entry).is_ok() && self.exclusive
    }

    /// Whether a session may be used: it has not ended, and was not left unused for too long.
    pub(crate) fn is_open(&self, session: &Session, now: u64) -> bool {
        if !self.any_ended.load(Ordering::Acquire)
            && (!session.recorded || session.used.load(Ordering::Relaxed))
        {
            return true;
        }
        let table = self.table.read();
        match table.get(&session.uid).filter(|record| record.until > now) {
            Some(record) => record.stage != Stage::Ended,
            None => !session.recorded,
        }
    }

    /// Whether a session has ended.
    pub(crate) fn has_ended(&self, uid: &SessionUid) -> bool {
        self.any_ended.load(Ordering::Acquire)
            && self.table.read().get(uid).is_some_and(|record| record.stage == Stage::Ended)
    }

    /// Records the use of a session, which lasts until it expires from then on.
    pub(crate) fn mark_used(&self, session: &Session) {
        if !session.recorded || session.used.swap(true, Ordering::Relaxed) {
            return;
        }
        // a session without a record has just ended
        let _recorded = self.table.write().update(&session.uid, |record, expires| {
            if record.stage == Stage::Started {
                record.stage = Stage::Used;
                (record.until, *expires) = (session.expires, session.expires);
            }
        });
    }

    /// Records that the client of a session has sent `notifications/initialized`.
    pub(crate) fn mark_initialized(&self, session: &Session) {
        let mut table = self.table.write();
        let is_started = table.get(&session.uid).is_some_and(|record| record.stage == Stage::Started);
        if is_started && !self.exclusive {
            // other processes do not remember notices for longer either, so no record needs to be kept
            table.remove(&session.uid);
        } else {
            let _recorded = table.update(&session.uid, |record, _| record.initialized = true);
        }
    }

    /// Whether the client may not have sent `notifications/initialized` yet, as far as this process knows.
    pub(crate) fn is_initializing(&self, session: &Session) -> bool {
        let table = self.table.read();
        table.get(&session.uid).is_some_and(|record| record.stage != Stage::Ended && !record.initialized)
    }

    /// Ends a session; `false` if the owner's share of the records is full.
    pub(crate) fn end(&self, session: &Session, owner: &Owner, now: u64) -> bool {
        let mut table = self.table.write();
        table.expire(now);
        let updated = table.update(&session.uid, |record, expires| {
            // the id of a recorded session that was never used is not valid for longer than its record
            let until = match record.stage {
                Stage::Started if session.recorded => record.until,
                _ => session.expires,
            };
            record.stage = Stage::Ended;
            (record.until, *expires) = (until, until);
        });
        let ended = updated.is_some() || {
            let until = session.expires;
            let record = Record { stage: Stage::Ended, initialized: false, until };
            let entry = OwnedEntry { owner: owner.clone(), bytes: 0, expires: until, value: record };
            table.put(session.uid, entry).is_ok()
        };
        if ended {
            self.any_ended.store(true, Ordering::Release);
        }
        ended
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.read().size().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{connection::ClientData, protocol::Revision};

    const DAY: u64 = 24 * 60 * 60;

    fn session(uid: u8, recorded: bool, expires: u64) -> Session {
        Session {
            uid: [uid; 16],
            revision: Revision::LATEST_LEGACY,
            client: ClientData::default(),
            expires,
            recorded,
            used: AtomicBool::new(false),
        }
    }

    fn owner(name: &str) -> Owner {
        Owner::principal(name.into())
    }

    #[test]
    fn a_session_that_is_never_used_lasts_ten_minutes_and_so_does_the_record_of_its_end() {
        let records = SessionRecords::new(Quota::half(10), true);
        assert!(records.start([1; 16], &owner("ada"), 0) && records.start([2; 16], &owner("ada"), 0));
        let (unused, used) = (session(1, true, DAY), session(2, true, DAY));
        assert!(records.is_open(&unused, 599) && !records.is_open(&unused, 600));
        records.mark_used(&used);
        assert!(records.is_open(&used, 600) && records.is_open(&session(2, true, DAY), DAY - 1));
        assert!(records.end(&unused, &owner("ada"), 1) && !records.is_open(&unused, 2));
        assert!(records.end(&used, &owner("ada"), 1) && !records.is_open(&used, 2));
        assert!(records.start([3; 16], &owner("ada"), 600));
        assert_eq!(records.len(), 2, "the end of the unused one is forgotten");
        assert!(!records.is_open(&unused, 700) && !records.is_open(&used, 700));
    }

    #[test]
    fn the_ids_of_a_process_that_shares_its_keys_do_not_need_a_record() {
        let records = SessionRecords::new(Quota::half(10), false);
        assert!(!records.start([1; 16], &owner("ada"), 0), "another replica may be told of its use");
        let session = session(1, false, DAY);
        assert!(records.is_open(&session, 601) && records.is_initializing(&session));
        assert!(records.end(&session, &owner("ada"), 1));
        records.start([2; 16], &owner("ada"), 601);
        assert!(!records.is_open(&session, 601), "its end is recorded until it expires");
    }

    #[test]
    fn an_owner_with_a_full_share_cannot_end_sessions_and_all_others_can() {
        let records = SessionRecords::new(Quota::half(4), false);
        for uid in 1..=2 {
            assert!(records.end(&session(uid, false, 100), &owner("ada"), 0));
        }
        assert!(!records.end(&session(3, false, 100), &owner("ada"), 99));
        assert!(records.is_open(&session(3, false, 100), 99));
        assert!(records.end(&session(4, false, 100), &owner("bob"), 99));
        assert!(records.end(&session(3, false, 200), &owner("ada"), 100), "the others have expired");
        assert!(records.end(&session(3, false, 200), &owner("ada"), 100), "twice");
    }

    #[test]
    fn a_session_is_initializing_until_its_client_says_otherwise() {
        for exclusive in [true, false] {
            let records = SessionRecords::new(Quota::half(4), exclusive);
            let session = session(1, records.start([1; 16], &owner("ada"), 0), DAY);
            assert!(records.is_initializing(&session));
            records.mark_used(&session);
            assert!(records.is_initializing(&session));
            records.mark_initialized(&session);
            assert!(!records.is_initializing(&session) && records.is_open(&session, 601));
            assert!(records.end(&session, &owner("ada"), 700) && !records.is_open(&session, 701));
        }
    }
}
