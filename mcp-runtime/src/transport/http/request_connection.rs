//! The client's side of one HTTP request: the request's head, and the messages that are sent to the client before the
//! response's result.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use http::{Version, request::Parts};
use serde_json::value::RawValue;

use super::{
    header_params::check_header_params, headers::Accepts, http_error::HttpError, sse::message_event,
};
use crate::core::{
    admission::{Owner, Permit, Shares},
    connection::{
        ClientConnection, HeaderParam, HttpHead, Outbound, PendingResponse, Principal, SessionState,
        find_owner,
    },
    jsonrpc::ProtocolError,
};

/// The client of one HTTP request, as the request's calls see it.
pub(super) struct RequestConnection {
    parts: Parts,
    accepts: Accepts,
    sender: RequestSender,
    caller: OnceLock<Arc<Principal>>,
    /// Created when the first message is sent before the result.
    outbound: OnceLock<Arc<Outbound>>,
    unread: Arc<Shares>,
}

/// The sender of a request, besides its caller.
pub(super) struct RequestSender {
    pub(super) peer: Option<Arc<Peer>>,
    /// Whether the peer is the one to charge: a trusted proxy that names no client in a readable way is not.
    pub(super) is_known: bool,
    /// Whether the server identifies callers.
    pub(super) authenticated: bool,
}

/// The client's address, and the owner that it stands for; all requests of a connection share one.
pub(super) struct Peer {
    pub(super) address: IpAddr,
    pub(super) owner: Owner,
}

impl Peer {
    pub(super) fn new(address: IpAddr) -> Arc<Self> {
        Arc::new(Self { address, owner: Owner::address(address) })
    }
}

impl RequestConnection {
    /// `unread`: bytes of messages that clients have not read yet.
    pub(super) fn new(parts: Parts, sender: RequestSender, unread: Arc<Shares>) -> Arc<Self> {
        let accepts = Accepts::read(&parts.headers);
        let (caller, outbound) = (OnceLock::new(), OnceLock::new());
        Arc::new(Self { parts, accepts, sender, caller, outbound, unread })
    }

    /// Sets who sent the request, once the server has found out.
    pub(super) fn set_caller(&self, caller: Arc<Principal>) {
        // the request's head is looked at once
        let _unchanged = self.caller.set(caller);
    }

    pub(super) fn caller(&self) -> Option<&Arc<Principal>> {
        self.caller.get()
    }

    pub(super) fn sender(&self) -> &RequestSender {
        &self.sender
    }

    /// The owner whose share of each limit the request uses.
    pub(super) fn owner(&self) -> Owner {
        match (self.caller.get(), &self.sender.peer) {
            (None, Some(peer)) => peer.owner.clone(),
            (caller, _) => find_owner(caller.map(|caller| &**caller), self.sender.authenticated, None),
        }
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The media types that the client accepts.
    pub(super) fn accepts(&self) -> Accepts {
        self.accepts
    }

    /// Checks that the client accepts a media type that replies have.
    ///
    /// # Errors
    /// `406`: it accepts none.
    pub(super) fn check_acceptable(&self) -> Result<(), HttpError> {
        if self.accepts.json || self.accepts.stream { Ok(()) } else { Err(HttpError::not_acceptable()) }
    }

    /// Charges the sender for a response that it has not read yet; `None` if it leaves too many bytes unread.
    pub(super) fn charge_unread(&self, bytes: usize) -> Option<Permit> {
        self.unread.acquire_last(&self.owner(), bytes)
    }

    /// The messages to the client, as events.
    pub(super) fn outbound(&self) -> &Arc<Outbound> {
        self.outbound.get_or_init(|| Outbound::new(self.unread.clone(), self.owner()))
    }

    /// Whether messages have to be sent before the result.
    pub(super) fn has_messages(&self) -> bool {
        self.outbound.get().is_some_and(|outbound| !outbound.is_empty())
    }
}

/// Why the client of a single request cannot be sent requests; since 2026-07-28 the protocol has none.
const STATELESS: &str = "the server is stateless, so it cannot receive responses";

/// The client of a request without a session: nothing is kept after its request.
impl ClientConnection for RequestConnection {
    fn notify(&self, message: Vec<u8>) {
        if self.accepts.stream {
            self.outbound().notify(message_event(&message));
        }
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        if self.accepts.stream {
            self.outbound().deliver(message_event(&message))
        } else {
            Err("it does not accept `text/event-stream`")
        }
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        Err(STATELESS)
    }

    fn unreachable_reason(&self) -> Option<&'static str> {
        Some(STATELESS)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.parts.headers.get_all(name).iter();
        let value = values.next()?;
        values.next().is_none().then(|| value.to_str().ok())?
    }

    fn compare_headers(
        &self,
        params: &[HeaderParam],
        arguments: Option<&RawValue>,
    ) -> Result<(), ProtocolError> {
        check_header_params(params, arguments, &self.parts.headers)
    }

    fn transport(&self) -> Option<&'static str> {
        Some("tcp")
    }

    fn http_head(&self) -> Option<HttpHead<'_>> {
        let version = match self.parts.version {
            Version::HTTP_10 => "1.0",
            Version::HTTP_2 => "2",
            Version::HTTP_3 => "3",
            _ => "1.1",
        };
        let target = self.parts.uri.authority().map(http::uri::Authority::as_str);
        Some(HttpHead { version, host: self.header("host").or(target) })
    }

    fn session(&self) -> Option<&dyn SessionState> {
        None
    }
}
