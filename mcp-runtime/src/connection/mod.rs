//! The other side of a connection as requests see it: who calls, how messages reach the client, what is kept of it
//! between its requests. Every transport implements [`ClientConnection`]; nothing above knows which one it is.

#[cfg(feature = "http")]
mod outbound;
mod pending;

use std::{fmt, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use sha2::{Digest as _, Sha256};

#[cfg(feature = "http")]
pub(crate) use outbound::{Outbound, Receiver};
pub(crate) use pending::{ClientId, ClientResponse, PendingRequests, PendingResponse};

use crate::{
    extensions::Extensions,
    jsonrpc::{self, ProtocolError},
    protocol::LogLevel,
};

/// How messages reach the client of one request, beside the reply to it.
pub(crate) trait ClientConnection: Send + Sync {
    /// Sends a notification: one line of JSON without its end. It never blocks; without room the message is dropped.
    fn notify(&self, message: Vec<u8>);

    /// Sends a message that must not be lost.
    ///
    /// # Errors
    /// Why the client does not get it.
    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str>;

    /// Makes room for the response to a request of the server.
    ///
    /// # Errors
    /// Why this client cannot be asked.
    fn expect(&self) -> Result<PendingResponse, &'static str>;

    /// Sends a request of the server; `params` is raw JSON.
    ///
    /// # Errors
    /// Why this client cannot be asked.
    fn request(&self, method: &str, params: &[u8]) -> Result<PendingResponse, &'static str> {
        let pending = self.expect()?;
        self.deliver(jsonrpc::request(pending.id(), method, params))?;
        Ok(pending)
    }

    /// Why no request of the server can ever reach this client, where that is known in advance.
    fn unreachable_reason(&self) -> Option<&'static str> {
        None
    }

    /// The value of the first HTTP header of that name, if it is text.
    fn header(&self, _name: &str) -> Option<&str> {
        None
    }

    /// Compares headers that repeat arguments with the arguments.
    ///
    /// # Errors
    /// `-32020`: they differ.
    fn compare_headers(
        &self,
        _params: &[HeaderParam],
        _arguments: Option<&RawValue>,
    ) -> Result<(), ProtocolError> {
        Ok(())
    }

    /// What the client of a handshake revision has set; absent where nothing is kept between requests.
    fn session(&self) -> Option<&dyn SessionState>;

    /// Closes the event stream of this call; the client reconnects after `retry`. `false` where clients cannot.
    fn close_stream(&self, _retry: Duration) -> bool {
        false
    }
}

/// An argument that clients repeat in the header `Mcp-Param-{header}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderParam {
    /// The header's name, without its prefix.
    pub(crate) header: String,
    /// The names of properties that lead to the argument; never empty.
    pub(crate) path: Vec<String>,
}

/// What a client of a handshake revision may set, until its session ends.
pub(crate) trait SessionState: Send + Sync {
    /// The least level of log messages that it has asked for.
    fn level(&self) -> Option<LogLevel>;

    /// Sets that level; `false` if there is no room to keep it.
    fn set_level(&self, level: LogLevel) -> bool;

    /// Subscribes to a resource; `false` if there is no room to keep it.
    fn subscribe(&self, uri: &str) -> bool;

    /// Ends that subscription.
    fn unsubscribe(&self, uri: &str);
}

/// Where a request comes from.
#[derive(Clone, Default)]
pub(crate) struct RequestContext {
    /// Absent where messages can reach the client only as the reply.
    pub(crate) connection: Option<Arc<dyn ClientConnection>>,
    /// Values that belong to this request, such as what HTTP middleware has put into it.
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) caller: Option<Arc<Caller>>,
    /// Whether callers are told apart, so that a request without one has no scopes.
    pub(crate) authenticated: bool,
    /// What `initialize` said of the client; requests of 2026-07-28 carry it themselves.
    pub(crate) client: ClientData,
}

impl RequestContext {
    /// What this request may see and call.
    pub(crate) fn access(&self) -> Access<'_> {
        Access::new(self.caller.as_deref(), self.authenticated)
    }

    pub(crate) fn session(&self) -> Option<&dyn SessionState> {
        self.connection.as_ref()?.session()
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext").field("caller", &self.caller).finish_non_exhaustive()
    }
}

/// Which items a request may see and call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'a> {
    caller: Option<&'a Caller>,
    authenticated: bool,
}

impl<'a> Access<'a> {
    /// `authenticated` where callers are told apart: no caller has no scopes then.
    pub(crate) fn new(caller: Option<&'a Caller>, authenticated: bool) -> Self {
        Self { caller, authenticated }
    }

    /// Everything: the one client of a pipe, or any client where callers are not told apart.
    pub(crate) const TRUSTED: Self = Self { caller: None, authenticated: false };

    /// Whether nothing at all is hidden.
    pub(crate) fn is_full(self) -> bool {
        self.caller.is_none() && !self.authenticated
    }

    /// What has been granted, each once and in order.
    pub(crate) fn scopes(self) -> Vec<&'a str> {
        let granted = self.caller.into_iter().flat_map(|caller| &caller.scopes);
        let mut scopes: Vec<&str> = granted.map(String::as_str).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// Whether an item that needs these scopes is visible.
    pub(crate) fn allows<S: AsRef<str>>(self, scopes: &[S]) -> bool {
        match self.caller {
            Some(caller) => caller.has(scopes),
            None => !self.authenticated || scopes.is_empty(),
        }
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
    /// Of a client that has said nothing so far.
    #[cfg(feature = "http")]
    pub(crate) const NONE: Self = Self { info: None, capabilities: None };

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

    fn has<S: AsRef<str>>(&self, scopes: &[S]) -> bool {
        scopes.iter().all(|needed| self.scopes.iter().any(|granted| granted == needed.as_ref()))
    }
}

/// What tells one caller from another; `None` for those who are not told apart.
pub(crate) fn owner(caller: Option<&Caller>) -> Option<Arc<str>> {
    let Caller { issuer, subject, .. } = caller?;
    let length = (issuer.len() as u64).to_le_bytes();
    let digest = Sha256::new().chain_update(length).chain_update(issuer).chain_update(subject).finalize();
    Some(URL_SAFE_NO_PAD.encode(digest).into())
}
