//! One request and its way back: the head it came with, the messages of its calls on their way to the client, and the
//! session that it belongs to. The endpoint makes one for each request; its calls see it as outlet, headers and link.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::http::request::Parts;

use super::{
    endpoint::{Endpoint, Sessions},
    feed::{Feed, Kind},
    queue::Queue,
};
use crate::{
    context::{Ending, Expected, Headers, Link, LogLevel, Outlet, Session},
    protocol::Revision,
    session::{self, Sid},
};

const NO_SESSIONS: &str = "this server keeps no sessions, so that no answer would find its way back";

/// One request, for as long as anything of it is left. One allocation, whatever its calls want of it.
pub(super) struct Exchange {
    // not the endpoint: a call may go on as a task, which must not hold its server
    sessions: Option<Arc<Sessions>>,
    ending: Ending,
    parts: Parts,
    queue: Queue,
    /// Set once the session of the request is known.
    place: OnceLock<(Sid, Revision)>,
    /// The stream that its calls have become, or will; `None` inside if they cannot become one.
    feed: OnceLock<Option<Arc<Feed>>>,
}

impl Exchange {
    pub(super) fn new(endpoint: &Endpoint, parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            sessions: endpoint.sessions.clone(),
            ending: endpoint.ending.clone(),
            parts,
            queue: Queue::default(),
            place: OnceLock::new(),
            feed: OnceLock::new(),
        })
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Messages on their way to the client.
    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The request belongs to that session.
    pub(super) fn belongs_to(&self, session: &session::Session) {
        // a request is placed once
        let _placed = self.place.set((session.sid, session.revision));
    }

    fn session(&self) -> Option<(&Sessions, &Sid)> {
        Some((self.sessions.as_deref()?, &self.place.get()?.0))
    }

    /// The stream that its calls become when something comes before their results; `None` if it cannot be resumed.
    pub(super) fn feed(&self) -> Option<&Arc<Feed>> {
        let made = self.feed.get_or_init(|| {
            let sessions = self.sessions.as_deref()?;
            let (sid, revision) = self.place.get()?;
            let store = sessions.store.clone()?;
            Feed::new(Kind::Call, sessions.table.open(*sid)?, *revision, Some(store))
        });
        made.as_ref()
    }

    /// Whether its calls have to become a stream that is closed at once.
    pub(super) fn closes(&self) -> bool {
        self.feed.get().and_then(Option::as_ref).is_some_and(|feed| feed.closes())
    }
}

impl Outlet for Exchange {
    fn notify(&self, message: Vec<u8>) {
        self.queue.notify(message);
    }

    fn deliver(&self, message: Vec<u8>) -> bool {
        self.queue.deliver(message)
    }
}

impl Headers for Exchange {
    fn get(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }
}

impl Link for Exchange {
    fn expect(&self) -> Result<Expected, &'static str> {
        let (sessions, sid) = Exchange::session(self).ok_or(NO_SESSIONS)?;
        let expected = sessions.mailbox.expect(*sid)?;
        // looked at last: whoever stops the server closes the mailbox after this has fired
        if self.ending.has_fired() { Err("the server is stopping") } else { Ok(expected) }
    }

    fn never(&self) -> Option<&'static str> {
        self.place.get().is_none().then_some(NO_SESSIONS)
    }

    fn ending(&self) -> Ending {
        let memory = Exchange::session(self).and_then(|(sessions, sid)| sessions.table.find(sid));
        memory.map_or_else(|| self.ending.clone(), |memory| memory.ending.clone())
    }

    fn session(&self) -> Option<&dyn Session> {
        Exchange::session(self).map(|_| self as _)
    }

    fn close_stream(&self, retry: Duration) -> bool {
        // older clients take no event without a message, which would tell them where to go on
        let may = self.place.get().is_some_and(|(_, revision)| *revision >= Revision::V2025_11_25);
        let Some(feed) = self.feed().filter(|_| may) else { return false };
        feed.close(retry);
        self.queue.wake();
        true
    }
}

impl Session for Exchange {
    fn level(&self) -> Option<LogLevel> {
        let (sessions, sid) = self.session()?;
        sessions.table.level(sid)
    }

    fn set_level(&self, level: LogLevel) -> bool {
        self.session().is_some_and(|(sessions, sid)| sessions.table.set_level(sid, level))
    }

    fn subscribe(&self, uri: &str) -> bool {
        self.session().is_some_and(|(sessions, sid)| sessions.table.subscribe(sid, uri))
    }

    fn unsubscribe(&self, uri: &str) {
        if let Some((sessions, sid)) = self.session() {
            sessions.table.unsubscribe(sid, uri);
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("uri", &self.parts.uri).finish_non_exhaustive()
    }
}
