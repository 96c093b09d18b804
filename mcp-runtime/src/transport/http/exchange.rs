//! One HTTP request and the way back to its client: the head that it came with, and the messages of its calls on their
//! way to its response.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use http::request::Parts;
use serde_json::value::RawValue;

use super::{header_params, headers::Accepts};
use crate::{
    admission::Budget,
    connection::{ClientConnection, HeaderParam, Outbound, PendingResponse, SessionState},
    jsonrpc::ProtocolError,
};

/// One request, for as long as anything of it is left.
pub(super) struct Exchange {
    parts: Parts,
    accepts: Accepts,
    /// Made when something is sent before the result.
    outbound: OnceLock<Arc<Outbound>>,
    budget: Arc<Budget>,
}

impl Exchange {
    /// `budget`: bytes of messages that wait for clients.
    pub(super) fn new(parts: Parts, budget: Arc<Budget>) -> Arc<Self> {
        let accepts = Accepts::read(&parts.headers);
        Arc::new(Self { parts, accepts, outbound: OnceLock::new(), budget })
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// What kinds of response body the client takes.
    pub(super) fn accepts(&self) -> Accepts {
        self.accepts
    }

    /// Messages on their way to the client.
    pub(super) fn outbound(&self) -> &Arc<Outbound> {
        self.outbound.get_or_init(|| Outbound::new(self.budget.clone()))
    }

    /// Whether nothing has to be sent before the result.
    pub(super) fn is_quiet(&self) -> bool {
        self.outbound.get().is_none_or(|outbound| outbound.is_empty())
    }
}

/// A request of 2026-07-28 stands alone: its client cannot be asked, and nothing is kept of it.
impl ClientConnection for Exchange {
    fn notify(&self, message: Vec<u8>) {
        if self.accepts.stream {
            self.outbound().notify(message);
        }
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        if self.accepts.stream { self.outbound().deliver(message) } else { Err("it accepts no event stream") }
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        Err("this request stands alone")
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    fn compare_headers(
        &self,
        params: &[HeaderParam],
        arguments: Option<&RawValue>,
    ) -> Result<(), ProtocolError> {
        header_params::arguments(params, arguments, &self.parts.headers)
    }

    fn session(&self) -> Option<&dyn SessionState> {
        None
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("uri", &self.parts.uri).finish_non_exhaustive()
    }
}
