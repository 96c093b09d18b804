//! What the connection of one client keeps between its requests: who is asked what, what a client of the handshake era
//! has set, and when it ends. Calls see it as their [`Link`]. Byte streams have one each, and so has the client in
//! memory.

use std::sync::{Arc, OnceLock};

use crate::{
    context::{Ending, Expected, Link, LogLevel, Mailbox, Owner, Response, Session, Threshold},
    jsonrpc::Message,
    subscribe::Filter,
};

/// There is one client only.
const CLIENT: Owner = [0; 16];

/// One connection, for as long as it lasts.
#[derive(Debug)]
pub(crate) struct Wire {
    mailbox: Mailbox,
    ending: Ending,
    level: Threshold,
    /// What it is told of, once it has shaken hands with a server that tells of changes.
    filter: OnceLock<Arc<Filter>>,
}

impl Wire {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            mailbox: Mailbox::default(),
            ending: Ending::default(),
            level: Threshold::default(),
            filter: OnceLock::new(),
        })
    }

    /// Hands a response to whoever asked; `false` if nobody did.
    pub(crate) fn respond(&self, message: &Message<'_>) -> bool {
        let (Some(id), Some(response)) = (message.id(), message.response()) else { return false };
        self.deliver(id, response.map(Into::into).map_err(Into::into))
    }

    /// The same, by the raw JSON of its id.
    pub(crate) fn deliver(&self, id: &str, response: Response) -> bool {
        self.mailbox.deliver(&CLIENT, id, response)
    }

    /// What the client is told of from now on; `None` if it was settled before.
    pub(crate) fn follows(&self, filter: Arc<Filter>) -> Option<Arc<Filter>> {
        self.filter.set(filter.clone()).ok().map(|()| filter)
    }

    /// Nothing more will come from the client: whoever waits for that must know.
    pub(crate) fn end(&self) {
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
