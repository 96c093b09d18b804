//! The running calls of sessions, by session and request id: how `notifications/cancelled` finds them.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{context::Cancel, jsonrpc::RequestId, session::Sid};

/// Every running call that belongs to a session.
#[derive(Debug, Default, Clone)]
pub(super) struct RunningCalls(Arc<Mutex<HashMap<Sid, Vec<Entry>>>>);

#[derive(Debug)]
struct Entry {
    id: RequestId,
    cancel: Cancel,
    /// Tells calls apart whose client used one id twice.
    serial: u64,
}

impl RunningCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<Sid, Vec<Entry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a call; dropping the registration takes it out again.
    pub(super) fn register(&self, sid: Sid, id: RequestId, cancel: Cancel) -> Registration {
        let mut calls = self.lock();
        let session = calls.entry(sid).or_default();
        let serial = session.last().map_or(0, |last| last.serial + 1);
        session.push(Entry { id, cancel, serial });
        Registration { calls: self.clone(), sid, serial }
    }

    /// Cancels the calls of that id.
    pub(super) fn cancel(&self, sid: &Sid, id: &RequestId) {
        for entry in self.lock().get(sid).into_iter().flatten().filter(|entry| entry.id == *id) {
            entry.cancel.fire();
        }
    }

    /// Cancels all calls of a session.
    pub(super) fn cancel_all(&self, sid: &Sid) {
        for entry in self.lock().get(sid).into_iter().flatten() {
            entry.cancel.fire();
        }
    }
}

/// The place of one running call.
pub(super) struct Registration {
    calls: RunningCalls,
    sid: Sid,
    serial: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        if let Some(session) = calls.get_mut(&self.sid) {
            session.retain(|entry| entry.serial != self.serial);
            if session.is_empty() {
                calls.remove(&self.sid);
            }
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Registration")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_session_and_id_until_it_is_over() {
        let calls = RunningCalls::default();
        let (a, b, c) = (Cancel::default(), Cancel::default(), Cancel::default());
        let one = calls.register([1; 16], RequestId::of("1"), a.clone());
        let two = calls.register([2; 16], RequestId::of("1"), b.clone());
        let three = calls.register([1; 16], RequestId::of("\"1\""), c.clone());
        calls.cancel(&[1; 16], &RequestId::of("1"));
        assert!(a.is_fired() && !b.is_fired() && !c.is_fired());
        calls.cancel_all(&[1; 16]);
        assert!(c.is_fired() && !b.is_fired());
        drop((one, two, three));
        assert!(calls.lock().is_empty());
    }
}
