//! Sessions of clients over HTTP, which outlive the processes that they are connected to: each has an id of its own, and what is
//! needed to begin it again in the next process.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use hyper::{HeaderMap, header::HeaderValue, http::request::Parts};
use serde_json::Value;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        page::access,
        replay::{Asked, Handshake, MAX_CALLS},
    },
    SESSION_ID,
};

/// Every session, by its id.
pub(super) struct Clients {
    known: Mutex<HashMap<String, Arc<ClientSession>>>,
    most: usize,
}

/// One session of a revision before 2026-07-28.
pub(super) struct ClientSession {
    pub(super) id: HeaderValue,
    /// In which process it is.
    pub(super) link: AsyncMutex<Link>,
    pub(super) streams: AtomicUsize,
    /// It has ended.
    pub(super) end: CancellationToken,
    state: Mutex<SessionState>,
}

pub(super) struct Link {
    pub(super) start: u64,
    /// Its id there, if it has one.
    pub(super) id: Option<HeaderValue>,
}

pub(super) struct SessionState {
    pub(super) handshake: Handshake,
    pub(super) asked: Asked,
    /// The head of its last message: the next process gets the same credentials.
    pub(super) head: Parts,
    /// Messages of this program that no stream has taken.
    pub(super) due: Vec<Value>,
    /// Whether lists may have changed, which no stream has told.
    pub(super) has_changed: bool,
    /// Ids of calls that go on in the process without a stream.
    pub(super) suspended: Vec<(u64, Value)>,
    used: Instant,
}

impl ClientSession {
    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes calls whose stream has ended before they have.
    pub(super) fn suspend(&self, start: u64, ids: impl Iterator<Item = Value>) {
        let mut state = self.state();
        for id in ids {
            if state.suspended.len() >= MAX_CALLS {
                state.suspended.remove(0);
            }
            state.suspended.push((start, id));
        }
    }

    /// Messages for a stream: `is_standalone` if it does not belong to a call.
    pub(super) fn take_due(&self, is_standalone: bool) -> Vec<Value> {
        let mut state = self.state();
        let mut due = std::mem::take(&mut state.due);
        if is_standalone && std::mem::take(&mut state.has_changed) {
            due.extend(state.handshake.list_changes());
        }
        due
    }
}

impl Clients {
    pub(super) fn new(most: usize) -> Self {
        Self { known: Mutex::default(), most }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<ClientSession>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session. If there are too many, the one ends that was not used for longest, first of those without a stream.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn begin(&self, head: &Parts, params: Value, link: Link) -> Option<Arc<ClientSession>> {
        let text = access::random().ok()?;
        let id = HeaderValue::try_from(&text).ok()?;
        let state = SessionState {
            handshake: Handshake::new(params),
            asked: Asked::default(),
            head: head.clone(),
            due: Vec::new(),
            has_changed: false,
            suspended: Vec::new(),
            used: Instant::now(),
        };
        let session = Arc::new(ClientSession {
            id,
            link: AsyncMutex::new(link),
            streams: AtomicUsize::new(0),
            end: CancellationToken::new(),
            state: Mutex::new(state),
        });
        let mut known = self.known();
        if known.len() >= self.most {
            let oldest = known.iter().min_by_key(|(_, session)| {
                (session.streams.load(Ordering::Relaxed) > 0, session.state().used)
            });
            if let Some(old) = oldest.map(|(id, _)| id.clone()).and_then(|id| known.remove(&id)) {
                old.end.cancel();
            }
        }
        known.insert(text, session.clone());
        Some(session)
    }

    /// The session that a request names: `None` if it names none, `Some(None)` if nothing is known of that one.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<Option<Arc<ClientSession>>> {
        let id = headers.get(SESSION_ID)?.to_str().unwrap_or_default();
        let session = self.known().get(id).cloned();
        if let Some(session) = &session {
            session.state().used = Instant::now();
        }
        Some(session)
    }

    pub(super) fn remove(&self, session: &ClientSession) {
        session.end.cancel();
        self.known().remove(session.id.to_str().unwrap_or_default());
    }
}
