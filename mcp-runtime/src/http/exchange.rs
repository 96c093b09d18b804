//! One request and its way back: the head it came with, the messages of its calls on their way to the client, and the
//! session that it belongs to. The endpoint makes one for each request; its calls see it as outlet, headers and link.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use axum::http::request::Parts;

use super::{endpoint::Endpoint, queue::Queue};
use crate::{
    context::{Ending, Expected, Headers, Link, Outlet, Session},
    session::Sid,
};

const NO_SESSIONS: &str = "this server keeps no sessions, so that no answer would find its way back";

/// One request, for as long as anything of it is left. One allocation, whatever its calls want of it.
pub(super) struct Exchange {
    endpoint: Arc<Endpoint>,
    parts: Parts,
    queue: Queue,
    /// Set once the session of the request is known.
    place: OnceLock<Sid>,
}

impl Exchange {
    pub(super) fn new(endpoint: Arc<Endpoint>, parts: Parts) -> Arc<Self> {
        Arc::new(Self { endpoint, parts, queue: Queue::default(), place: OnceLock::new() })
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Messages on their way to the client.
    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The request belongs to that session.
    pub(super) fn belongs_to(&self, sid: Sid) {
        // a request is placed once
        let _placed = self.place.set(sid);
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
        let (Some(sessions), Some(sid)) = (&self.endpoint.sessions, self.place.get()) else {
            return Err(NO_SESSIONS);
        };
        let expected = sessions.mailbox.expect(*sid)?;
        // looked at last: whoever stops the server closes the mailbox after this has fired
        if self.endpoint.ending.has_fired() { Err("the server is stopping") } else { Ok(expected) }
    }

    fn never(&self) -> Option<&'static str> {
        self.place.get().is_none().then_some(NO_SESSIONS)
    }

    fn ending(&self) -> Ending {
        self.endpoint.ending.clone()
    }

    fn session(&self) -> Option<&dyn Session> {
        None
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("uri", &self.parts.uri).finish_non_exhaustive()
    }
}
