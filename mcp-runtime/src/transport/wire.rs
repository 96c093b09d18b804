//! What one connection keeps between its requests: who is asked what, what a client of the handshake era has set, and
//! when it ends. Calls see it as their [`Link`].

use std::sync::{Arc, OnceLock};

use crate::{
    context::{Ending, Expected, Link, LogLevel, Mailbox, Owner, Session, Threshold},
    jsonrpc::Message,
    subscribe::Filter,
};

/// There is one client only.
const CLIENT: Owner = [0; 16];

/// One connection, for as long as it lasts.
#[derive(Debug)]
pub(super) struct Wire {
    mailbox: Mailbox,
    ending: Ending,
    level: Threshold,
    /// What it is told of, once it has shaken hands with a server that tells of changes.
    filter: OnceLock<Arc<Filter>>,
}

impl Wire {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            mailbox: Mailbox::default(),
            ending: Ending::default(),
            level: Threshold::default(),
            filter: OnceLock::new(),
        })
    }

    /// Hands a response to whoever asked; `false` if nobody did.
    pub(super) fn respond(&self, message: &Message<'_>) -> bool {
        let (Some(id), Some(response)) = (message.id(), message.response()) else { return false };
        self.mailbox.deliver(&CLIENT, id, response.map(Into::into).map_err(Into::into))
    }

    /// What the client is told of from now on; `None` if it was settled before.
    pub(super) fn follows(&self, filter: Arc<Filter>) -> Option<Arc<Filter>> {
        self.filter.set(filter.clone()).ok().map(|()| filter)
    }

    /// Nothing more will come from the client: whoever waits for that must know.
    pub(super) fn end(&self) {
        self.ending.fire();
        self.mailbox.close(&CLIENT);
    }
}

impl Link for Wire {
    fn expect(&self) -> Result<Expected, &'static str> {
        if self.ending.has_fired() {
            return Err("it has closed the connection");
        }
        self.mailbox.expect(CLIENT)
    }

    fn ending(&self) -> Ending {
        self.ending.clone()
    }

    fn session(&self) -> Option<&dyn Session> {
        Some(self)
    }
}

impl Session for Wire {
    fn level(&self) -> Option<LogLevel> {
        self.level.get()
    }

    fn set_level(&self, level: LogLevel) -> bool {
        self.level.set(level);
        true
    }

    fn subscribe(&self, uri: &str) -> bool {
        self.filter.get().is_some_and(|filter| filter.subscribe(uri))
    }

    fn unsubscribe(&self, uri: &str) {
        if let Some(filter) = self.filter.get() {
            filter.unsubscribe(uri);
        }
    }
}
