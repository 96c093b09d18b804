//! The client's side of a request, independent of transports: the caller, its access, the connection over which messages
//! reach the client, and the state of its session.

#[cfg(feature = "http")]
mod outbound;
mod pending;

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use sha2::{Digest as _, Sha256};

#[cfg(feature = "http")]
pub(crate) use outbound::{Outbound, Receiver};
pub(crate) use pending::{ClientId, PendingRequests, PendingResponse};

use crate::{
    admission::Owner,
    extensions::Extensions,
    jsonrpc::{self, ProtocolError},
    protocol::LogLevel,
};

/// Sends messages to the client of one request, apart from the reply.
pub(crate) trait ClientConnection: Send + Sync {
    /// Sends a notification: JSON without a line end. It never blocks; if the buffer is full, the message is dropped.
    fn notify(&self, message: Vec<u8>);

    /// Sends a message that must not be lost.
    ///
    /// # Errors
    /// The reason why the client does not get it.
    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str>;

    /// Registers a client request, before it is sent.
    ///
    /// # Errors
    /// The reason why no request can be sent to this client.
    fn expect_response(&self) -> Result<PendingResponse, &'static str>;

    /// Sends a client request; `params` is raw JSON.
    ///
    /// # Errors
    /// The reason why no request can be sent to this client.
    fn request(&self, method: &str, params: &[u8]) -> Result<PendingResponse, &'static str> {
        let pending = self.expect_response()?;
        self.deliver(jsonrpc::request(pending.id(), method, params))?;
        Ok(pending)
    }

    /// The reason why no client request can reach this client, if that is known in advance.
    fn unreachable_reason(&self) -> Option<&'static str> {
        None
    }

    /// The value of the first HTTP header of that name, if it is text.
    fn header(&self, _name: &str) -> Option<&str> {
        None
    }

    /// Compares the `Mcp-Param-*` headers with the arguments that they repeat.
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

    /// The session of a legacy client; `None` if no state is kept between requests.
    fn session(&self) -> Option<&dyn SessionState>;

    /// Closes the event stream of this call; the client reconnects after `retry`. `false` if it cannot reconnect.
    fn close_stream(&self, _retry: Duration) -> bool {
        false
    }
}

/// Why a legacy client cannot be sent requests yet.
pub(crate) const NOT_INITIALIZED: &str = "it has not sent `notifications/initialized` yet";

/// An argument that clients repeat in the header `Mcp-Param-{header}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderParam {
    /// The header's name, without its prefix.
    pub(crate) header: String,
    /// The property names from the root to the argument; never empty.
    pub(crate) path: Vec<String>,
}

/// What a legacy client sets for the rest of its session.
pub(crate) trait SessionState: Send + Sync {
    /// The minimum level of log messages that the client has set.
    fn level(&self) -> Option<LogLevel>;

    /// Sets that level; `false` if the session's memory is full.
    fn set_level(&self, level: LogLevel) -> bool;

    /// Subscribes to a resource; `false` if the session's memory is full.
    fn subscribe(&self, uri: &str) -> bool;

    /// Ends the subscription to a resource.
    fn unsubscribe(&self, uri: &str);
}

/// The origin of a request: its connection, caller and client.
#[derive(Clone, Default)]
pub(crate) struct RequestContext {
    /// `None` if the reply is the only message that can reach the client.
    pub(crate) connection: Option<Arc<dyn ClientConnection>>,
    /// Values of this request, such as those that HTTP middleware inserted.
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) caller: Option<Arc<Principal>>,
    /// Whether the server authenticates callers, so that a request without one has no scopes.
    pub(crate) authenticated: bool,
    /// The address of an HTTP client, if it is known.
    pub(crate) address: Option<IpAddr>,
    /// From `initialize`; requests of 2026-07-28 contain it themselves.
    pub(crate) client: ClientData,
}

impl RequestContext {
    /// The items that this request may see and call.
    pub(crate) fn access(&self) -> Access<'_> {
        Access::new(self.caller.as_deref(), self.authenticated)
    }

    /// Whose share of each limit the request uses.
    pub(crate) fn owner(&self) -> Owner {
        find_owner(self.caller.as_deref(), self.authenticated, self.address)
    }

    pub(crate) fn session(&self) -> Option<&dyn SessionState> {
        self.connection.as_ref()?.session()
    }
}

/// Whose share of each limit a request uses: the caller's, else that of its address.
pub(crate) fn find_owner(caller: Option<&Principal>, authenticated: bool, address: Option<IpAddr>) -> Owner {
    match (principal_digest(caller), address) {
        (Some(digest), _) => Owner::principal(digest),
        (None, Some(address)) => Owner::address(address),
        (None, None) if authenticated => Owner::anonymous(),
        (None, None) => Owner::local(),
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
    caller: Option<&'a Principal>,
    authenticated: bool,
}

impl<'a> Access<'a> {
    /// If the server authenticates callers, a request without one has no scopes.
    pub(crate) fn new(caller: Option<&'a Principal>, authenticated: bool) -> Self {
        Self { caller, authenticated }
    }

    /// Access to everything, for servers that do not authenticate callers.
    pub(crate) const TRUSTED: Self = Self { caller: None, authenticated: false };

    /// Whether every item is visible.
    pub(crate) fn is_full(self) -> bool {
        self.caller.is_none() && !self.authenticated
    }

    /// The granted scopes, sorted and without duplicates.
    pub(crate) fn scopes(self) -> Vec<&'a str> {
        let granted = self.caller.into_iter().flat_map(|caller| &caller.scopes);
        let mut scopes: Vec<&str> = granted.map(String::as_str).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// Whether an item that requires these scopes is visible.
    pub(crate) fn allows<S: AsRef<str>>(self, scopes: &[S]) -> bool {
        match self.caller {
            Some(caller) => caller.has_scopes(scopes),
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

/// A client's `clientInfo` and `capabilities`, as raw JSON that is parsed on demand.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientData {
    pub(crate) info: Option<Arc<str>>,
    pub(crate) capabilities: Option<Arc<str>>,
}

impl ClientData {
    /// The data of a client that has sent none yet.
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

/// An authenticated caller: a `subject` for which an `issuer` vouches, and the scopes granted to it.
///
/// Sessions, tasks and `requestState` belong to the principal that started them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Principal {
    pub(crate) issuer: String,
    pub(crate) subject: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) expires: Option<SystemTime>,
}

impl Principal {
    /// A principal without scopes. The subject is unique within the issuer.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), subject: subject.into(), scopes: Vec::new(), expires: None }
    }

    /// Sets the granted scopes; items that require others are hidden from the principal, and calls of them are refused.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets when the principal's authentication expires, such as the `exp` of a token: its streams end then, and from then
    /// on requests are those of an anonymous caller.
    #[must_use]
    pub fn with_expiry(mut self, expires: SystemTime) -> Self {
        self.expires = Some(expires);
        self
    }

    /// When the principal's authentication expires, if it does.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// Whether both are the same subject of the same issuer, whatever their scopes and expiry are.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.subject == other.subject
    }

    /// Who vouches for the subject.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Who calls, unique within the issuer.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The granted scopes.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    fn has_scopes<S: AsRef<str>>(&self, scopes: &[S]) -> bool {
        scopes.iter().all(|required| self.scopes.iter().any(|granted| granted == required.as_ref()))
    }
}

/// A digest that identifies a caller; `None` without an authenticated caller.
pub(crate) fn principal_digest(caller: Option<&Principal>) -> Option<Arc<str>> {
    let Principal { issuer, subject, .. } = caller?;
    let length = (issuer.len() as u64).to_le_bytes();
    let digest = Sha256::new().chain_update(length).chain_update(issuer).chain_update(subject).finalize();
    Some(URL_SAFE_NO_PAD.encode(digest).into())
}
