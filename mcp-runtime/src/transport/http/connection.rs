//! The client's side of one HTTP request: the request's head, and the messages that are sent to the client before the
//! response's result.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use http::request::Parts;
use serde_json::value::RawValue;

use super::{header_params::check_header_params, headers::Accepts};
use crate::{
    admission::Budget,
    connection::{ClientConnection, HeaderParam, Outbound, PendingResponse, SessionState},
    jsonrpc::ProtocolError,
};

/// The client of one HTTP request, as the request's calls see it.
pub(super) struct RequestConnection {
    parts: Parts,
    accepts: Accepts,
    /// Created when the first message is sent before the result.
    outbound: OnceLock<Arc<Outbound>>,
    budget: Arc<Budget>,
}

impl RequestConnection {
    /// `budget`: bytes of messages that clients have not read yet.
    pub(super) fn new(parts: Parts, budget: Arc<Budget>) -> Arc<Self> {
        let accepts = Accepts::read(&parts.headers);
        Arc::new(Self { parts, accepts, outbound: OnceLock::new(), budget })
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The media types that the client accepts.
    pub(super) fn accepts(&self) -> Accepts {
        self.accepts
    }

    /// The messages to the client.
    pub(super) fn outbound(&self) -> &Arc<Outbound> {
        self.outbound.get_or_init(|| Outbound::new(self.budget.clone()))
    }

    /// Whether messages have to be sent before the result.
    pub(super) fn has_messages(&self) -> bool {
        self.outbound.get().is_some_and(|outbound| !outbound.is_empty())
    }
}

/// The client of a modern request: the protocol has no requests to it, and nothing is kept after its request.
impl ClientConnection for RequestConnection {
    fn notify(&self, message: Vec<u8>) {
        if self.accepts.stream {
            self.outbound().notify(message);
        }
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        if self.accepts.stream {
            self.outbound().deliver(message)
        } else {
            Err("it does not accept `text/event-stream`")
        }
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        Err("2026-07-28 has no requests from the server to the client")
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    fn compare_headers(
        &self,
        params: &[HeaderParam],
        arguments: Option<&RawValue>,
    ) -> Result<(), ProtocolError> {
        check_header_params(params, arguments, &self.parts.headers)
    }

    fn session(&self) -> Option<&dyn SessionState> {
        None
    }
}

impl fmt::Debug for RequestConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestConnection").field("uri", &self.parts.uri).finish_non_exhaustive()
    }
}
