//! What one connection keeps between its requests: who is asked what, what a client of the handshake era has set, and
//! when it ends. Calls see it as their [`Link`].

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    context::{Ending, Expected, Link, LogLevel, Mailbox, Owner, Session, Threshold},
    jsonrpc::Message,
};

/// Resources that one client may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1024;
/// There is one client only.
const CLIENT: Owner = [0; 16];

/// One connection, for as long as it lasts.
#[derive(Debug)]
pub(super) struct Wire {
    mailbox: Mailbox,
    ending: Ending,
    level: Threshold,
    subscriptions: Mutex<BTreeSet<Box<str>>>,
}

impl Wire {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            mailbox: Mailbox::default(),
            ending: Ending::default(),
            level: Threshold::default(),
            subscriptions: Mutex::default(),
        })
    }

    /// Hands a response to whoever asked; `false` if nobody did.
    pub(super) fn respond(&self, message: &Message<'_>) -> bool {
        let (Some(id), Some(response)) = (message.id(), message.response()) else { return false };
        self.mailbox.deliver(&CLIENT, id, response.map(Into::into).map_err(Into::into))
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
        let mut subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        let room = subscriptions.len() < MAX_SUBSCRIPTIONS || subscriptions.contains(uri);
        if room {
            subscriptions.insert(uri.into());
        }
        room
    }

    fn unsubscribe(&self, uri: &str) {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }
}
