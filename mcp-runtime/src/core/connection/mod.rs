//! The client's side of a request, independent of transports: the caller, its access, the connection over which messages
//! reach the client, and the state of its session.

mod access;
#[cfg(feature = "http")]
mod outbound;
mod pending;
mod principal;
#[cfg(any(feature = "events-webhook", feature = "tasks"))]
mod stored_principal;
mod subscribe_error;

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

pub(crate) use access::ImpliesFn;
pub(crate) use access::{Access, AccessError, AccessRules, VisibleFn};
pub use access::{ItemKind, ItemView};
#[cfg(feature = "http")]
pub(crate) use outbound::{Outbound, Put, Receiver, TakenMessages};
pub(crate) use pending::{ClientId, PendingRequests, PendingResponse};
pub use principal::Principal;
pub(crate) use principal::principal_digest;
#[cfg(any(feature = "events-webhook", feature = "tasks"))]
pub(crate) use stored_principal::StoredPrincipal;
#[cfg(all(test, feature = "http"))]
pub(crate) use subscribe_error::MAX_URI;
pub(crate) use subscribe_error::{SubscribeError, check_uri};

use crate::core::{
    admission::Owner,
    extensions::Extensions,
    jsonrpc::{self, ProtocolError, null_is_absent},
    protocol::LogLevel,
};

/// Sends messages to the client of one request, apart from the reply.
pub(crate) trait ClientConnection: Send + Sync {
    /// Sends a notification, such as progress or a log message: JSON without a line end. It never blocks. It is dropped if the
    /// client does not read: on stdio and byte streams beyond `NOTIFICATION_BACKLOG` of `transport/writer.rs`, over HTTP beyond
    /// `NOTIFICATION_LIMIT` of `outbound.rs` for each stream; and over HTTP if the client does not accept `text/event-stream`.
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

    /// How messages travel, in OpenTelemetry's words: `tcp` for HTTP, `pipe` for stdio and other byte streams.
    fn transport(&self) -> Option<&'static str> {
        None
    }

    /// The head of the HTTP request, as far as telemetry has it.
    fn http_head(&self) -> Option<HttpHead<'_>> {
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

/// The head of an HTTP request, for telemetry.
#[derive(Clone, Copy)]
pub(crate) struct HttpHead<'a> {
    /// The version of HTTP, such as `1.1`.
    pub(crate) version: &'static str,
    /// The host that is requested, with its port if one is named; it has been checked.
    pub(crate) host: Option<&'a str>,
}

/// Why a legacy client cannot be sent requests yet.
pub(crate) const NOT_INITIALIZED: &str = "it has not sent `notifications/initialized` yet";

/// An argument that clients repeat in the header `Mcp-Param-{header}`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HeaderParam {
    /// The header's name, without its prefix.
    pub(crate) header: String,
    /// The property names from the root to the argument; never empty.
    pub(crate) path: Vec<String>,
    /// Whether the argument is an integer, so that it must be one that every reader of JSON represents exactly.
    pub(crate) is_integer: bool,
    /// For each object between the root and the argument, whether text in its place is coerced to it.
    pub(crate) coerced: Vec<bool>,
}

/// The state that a legacy client sets for the rest of its session.
pub(crate) trait SessionState: Send + Sync {
    /// The minimum level of log messages that the client has set.
    fn level(&self) -> Option<LogLevel>;

    /// Sets that level; `false` if the session's memory is full.
    fn set_level(&self, level: LogLevel) -> bool;

    /// Subscribes to a resource.
    ///
    /// # Errors
    /// It exceeds a limit.
    fn subscribe(&self, uri: &str) -> Result<(), SubscribeError>;

    /// Ends the subscription to a resource.
    fn unsubscribe(&self, uri: &str);

    /// Identifies the session in traces, and is of no use elsewhere.
    fn digest(&self) -> Option<Box<str>> {
        None
    }
}

/// Marks requests in this process whose lists of resources have no instances of templates.
pub(crate) struct WithoutInstances;

/// The origin of a request: its connection, caller and client.
#[derive(Clone, Default)]
pub(crate) struct RequestContext {
    /// `None` if the reply is the only message that can reach the client.
    pub(crate) connection: Option<Arc<dyn ClientConnection>>,
    /// Values of this request, such as those that HTTP middleware inserted.
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) caller: Option<Arc<Principal>>,
    /// Set if the server identifies callers, so that a request without one has no scopes.
    pub(crate) access_rules: Option<Arc<AccessRules>>,
    /// The address of an HTTP client, if it is known.
    pub(crate) address: Option<IpAddr>,
    /// Whether the request has been taken from the rate of its caller: by its transport, or when it was admitted.
    pub(crate) rate_taken: bool,
    /// Whether it has waited for the first items of additions.
    pub(crate) has_waited: bool,
    /// From `initialize`; requests of 2026-07-28 contain it themselves.
    pub(crate) client: ClientData,
}

impl RequestContext {
    /// The owner whose share of each limit the request uses.
    pub(crate) fn owner(&self) -> Owner {
        find_owner(self.caller.as_deref(), self.access_rules.is_some(), self.address)
    }

    pub(crate) fn session(&self) -> Option<&dyn SessionState> {
        self.connection.as_ref()?.session()
    }
}

/// The owner whose share of each limit a request uses: the caller, or else its address.
pub(crate) fn find_owner(caller: Option<&Principal>, authenticated: bool, address: Option<IpAddr>) -> Owner {
    match (principal_digest(caller), address) {
        (Some(digest), _) => Owner::principal(digest),
        (None, Some(address)) => Owner::address(address),
        (None, None) if authenticated => Owner::anonymous(),
        (None, None) => Owner::local(),
    }
}

/// A client's name and version: `clientInfo` on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ClientInfo {
    /// `name` on the wire.
    pub name: String,
    /// `title` on the wire.
    pub title: Option<String>,
    /// `version` on the wire.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub version: String,
}

/// A client's `clientInfo` and `capabilities`, as raw JSON that is parsed on demand.
#[derive(Clone, Default)]
pub(crate) struct ClientData {
    pub(crate) info: Option<Arc<str>>,
    pub(crate) capabilities: Option<Arc<str>>,
}

impl ClientData {
    /// The data of a client that has sent none yet.
    pub(crate) const NONE: Self = Self { info: None, capabilities: None };

    pub(crate) fn info(&self) -> Option<ClientInfo> {
        serde_json::from_str(self.info.as_deref()?).ok()
    }

    pub(crate) fn capabilities(&self) -> Value {
        parse_capabilities(self.capabilities.as_deref().unwrap_or("{}"))
    }
}

/// The capabilities that a JSON object declares: those that are null are not. Parts that are nested too deeply to be read are empty, so that all
/// others count.
pub(crate) fn parse_capabilities(json: &str) -> Value {
    /// Deeper than every capability that is known.
    const LEVELS: usize = 8;
    let mut capabilities = parse_levels(json, LEVELS);
    remove_nulls(&mut capabilities);
    capabilities
}

/// Removes the members that are null, at every level.
pub(crate) fn remove_nulls(value: &mut Value) {
    if let Value::Object(members) = value {
        members.retain(|_, member| !member.is_null());
        members.values_mut().for_each(remove_nulls);
    }
}

/// A value of which only so many levels are read, if the whole cannot be.
fn parse_levels(json: &str, levels: usize) -> Value {
    if let Ok(value) = serde_json::from_str(json) {
        return value;
    }
    let members = serde_json::from_str::<HashMap<String, &RawValue>>(json).ok().filter(|_| levels > 0);
    match members {
        Some(members) => {
            let mut read = serde_json::Map::new();
            for (key, raw) in members {
                read.insert(key, parse_levels(raw.get(), levels - 1));
            }
            Value::Object(read)
        }
        None if json.starts_with('[') => Value::Array(Vec::new()),
        None => Value::Object(serde_json::Map::new()),
    }
}
