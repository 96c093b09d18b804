//! The other side of a connection: what it said of itself, who it is, and how notifications reach it.
//! Transports fill it in.

use std::{fmt, sync::Arc};

use serde::Deserialize;
use serde_json::Value;

use super::{Link, LogLevel, Slots};

/// Where messages to the client go, beside the reply to its request. A transport implements it.
pub(crate) trait Outlet: Send + Sync {
    /// Takes one JSON-RPC notification, on one line without its end; never blocks, drops it when there is no room.
    fn notify(&self, message: Vec<u8>);

    /// Takes a message that must not get lost, such as a request of ours; `false` when there is no room.
    fn deliver(&self, message: Vec<u8>) -> bool;
}

/// The headers that came with a request. HTTP implements it.
pub(crate) trait Headers: Send + Sync {
    /// The value of the first header of that name, if it is text.
    fn get(&self, name: &str) -> Option<&str>;
}

/// The other side of one request.
#[derive(Clone, Default)]
pub(crate) struct Peer {
    pub(crate) outlet: Option<Arc<dyn Outlet>>,
    pub(crate) request: Arc<Slots>,
    pub(crate) caller: Option<Arc<Caller>>,
    /// Whether callers are told apart, so that no caller means one without any scope; stdio trusts its one client.
    pub(crate) restricted: bool,
    /// What a handshake told of the client; requests of the stateless era tell it themselves.
    pub(crate) client: ClientData,
    /// The connection or session that requests come in on; absent where a request stands alone.
    pub(crate) link: Option<Arc<dyn Link>>,
    pub(crate) headers: Option<Arc<dyn Headers>>,
}

impl Peer {
    /// What this side may see and call.
    pub(crate) fn viewer(&self) -> Viewer<'_> {
        Viewer::new(self.caller.as_deref(), self.restricted)
    }

    /// The least level of log messages that a client of the handshake era has asked for.
    pub(crate) fn session_level(&self) -> Option<LogLevel> {
        self.link.as_ref()?.session()?.level()
    }
}

/// Whose request it is, for everything that scopes hide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Viewer<'a> {
    caller: Option<&'a Caller>,
    restricted: bool,
}

impl<'a> Viewer<'a> {
    /// A caller, or nobody; `restricted` where callers are told apart.
    pub(crate) fn new(caller: Option<&'a Caller>, restricted: bool) -> Self {
        Self { caller, restricted }
    }

    /// Somebody who may do everything: the one client of a pipe, or anyone where callers are not told apart.
    pub(crate) const TRUSTED: Self = Self { caller: None, restricted: false };

    /// Whether nothing at all is hidden.
    pub(crate) fn sees_all(self) -> bool {
        self.caller.is_none() && !self.restricted
    }

    /// What has been granted, each once and in order.
    pub(crate) fn scopes(self) -> Vec<&'a str> {
        let granted = self.caller.into_iter().flat_map(|caller| &caller.scopes);
        let mut scopes: Vec<&str> = granted.map(String::as_str).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// Whether an item with these scopes is there.
    pub(crate) fn sees(self, scopes: &[&str]) -> bool {
        match self.caller {
            Some(caller) => caller.may(scopes),
            None => !self.restricted || scopes.is_empty(),
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// A client's name and version: the wire's `clientInfo`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The wire's `name`.
    pub name: String,
    /// The wire's `title`.
    pub title: Option<String>,
    /// The wire's `version`.
    #[serde(default)]
    pub version: String,
}

/// What a client says of itself, as raw JSON that is read only when asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientData {
    pub(crate) info: Option<Arc<str>>,
    pub(crate) capabilities: Option<Arc<str>>,
}

impl ClientData {
    pub(crate) fn info(&self) -> Option<ClientInfo> {
        serde_json::from_str(self.info.as_deref()?).ok()
    }

    pub(crate) fn capabilities(&self) -> Value {
        let parsed = self.capabilities.as_deref().and_then(|json| serde_json::from_str(json).ok());
        parsed.unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }
}

/// An authenticated caller: the `subject` that an `issuer` vouches for, with the scopes granted to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Who vouches for it.
    pub issuer: String,
    /// Who it is, unique within the issuer.
    pub subject: String,
    /// What it may do; items that need other scopes are hidden from it and refused.
    pub scopes: Vec<String>,
}

impl Caller {
    /// A caller without scopes.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), subject: subject.into(), scopes: Vec::new() }
    }

    /// The same caller with these scopes.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    fn may(&self, scopes: &[&str]) -> bool {
        scopes.iter().all(|needed| self.scopes.iter().any(|granted| granted == needed))
    }
}
