//! What all requests to one endpoint share: the server, its options, where a request comes from, and the limits: how many
//! requests run, how many streams are open, and how many bytes are buffered. A request that exceeds one is refused as busy.

use std::{any::Any, sync::Arc};

use http::request::Parts;
use tokio_util::sync::CancellationToken;

use super::{connection::RequestConnection, headers::ProtocolHeaders, http_error::HttpError};
use crate::{
    admission::{Budget, Permit},
    blocking,
    config::HttpOptions,
    connection::{ClientConnection, ClientData, Principal, RequestContext},
    dispatch::Calls,
    extensions::Extensions,
    server::Server,
};

/// One server, served at one path.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) server: Server,
    pub(super) options: HttpOptions,
    pub(super) budgets: Budgets,
    no_extensions: Arc<Extensions>,
    /// Fires when the server stops.
    pub(super) shutdown: CancellationToken,
}

/// One POST whose body has been read.
pub(super) struct PostRequest<'a> {
    pub(super) connection: &'a Arc<RequestConnection>,
    pub(super) headers: &'a ProtocolHeaders<'a>,
    pub(super) caller: Option<Arc<Principal>>,
    pub(super) permit: MessagePermit,
}

impl Endpoint {
    pub(super) fn new(server: &Server) -> Arc<Self> {
        let options = server.options().http.clone();
        Arc::new(Self {
            server: server.clone(),
            budgets: Budgets::new(&options),
            no_extensions: Arc::default(),
            shutdown: CancellationToken::default(),
            options,
        })
    }

    /// The caller, as the head of a request identifies it.
    pub(super) fn caller(&self, parts: &Parts) -> Option<Arc<Principal>> {
        self.options.caller.as_ref().and_then(|find| find(parts)).map(Arc::new)
    }

    /// The context of a request.
    pub(super) fn context(
        &self,
        request: &RequestConnection,
        connection: Arc<dyn ClientConnection>,
        caller: Option<Arc<Principal>>,
        client: ClientData,
    ) -> RequestContext {
        RequestContext {
            connection: Some(connection),
            extensions: self.extensions(request),
            caller,
            authenticated: self.options.caller.is_some(),
            client,
        }
    }

    /// The declared values that middleware has put into a request.
    fn extensions(&self, request: &RequestConnection) -> Arc<Extensions> {
        let types = &self.server.options().http.request_types;
        if types.is_empty() {
            return self.no_extensions.clone();
        }
        let mut extensions = Extensions::default();
        let source: &dyn Any = &request.parts().extensions;
        for declared in types {
            (declared.extract)(source, &mut extensions);
        }
        Arc::new(extensions)
    }
}

/// The budgets of one endpoint.
#[derive(Debug)]
pub(super) struct Budgets {
    /// Requests that run concurrently.
    pub(super) requests: Arc<Budget>,
    /// Responses and notifications that are read while `requests` is exhausted.
    messages: Arc<Budget>,
    /// Calls that continue after their client has disconnected.
    detached: Arc<Budget>,
    /// Streams that are opened with GET.
    pub(super) streams: Arc<Budget>,
    /// Standalone streams that wait for their clients to reconnect.
    pub(super) waiting: Arc<Budget>,
    /// Bytes of request bodies that are not complete yet.
    pub(super) bodies: Arc<Budget>,
    /// Bytes of messages that clients have not read yet.
    pub(super) outbound: Arc<Budget>,
}

/// The permit to read one message.
pub(super) enum MessagePermit {
    /// Taken from the requests that run concurrently; the message's call keeps it.
    Request(Permit),
    /// For a response or a notification while `requests` is exhausted: running calls may be waiting for it.
    Message { _permit: Permit },
}

impl MessagePermit {
    /// The permit for the message's request.
    ///
    /// # Errors
    /// Too many requests are running.
    pub(super) fn into_request_permit(self) -> Result<Permit, HttpError> {
        match self {
            Self::Request(permit) => Ok(permit),
            Self::Message { .. } => Err(HttpError::busy()),
        }
    }
}

/// Messages that are read while the budget of requests is exhausted.
const MAX_MESSAGES: usize = 64;

impl Budgets {
    fn new(options: &HttpOptions) -> Self {
        Self {
            requests: Budget::new(options.max_requests),
            messages: Budget::new(MAX_MESSAGES),
            detached: Budget::new(options.max_detached),
            streams: Budget::new(options.max_streams),
            waiting: Budget::new(options.max_waiting),
            bodies: Budget::new(options.max_unfinished_bytes),
            outbound: Budget::new(options.max_unread_bytes),
        }
    }

    /// The permit for a message that has not been read yet.
    ///
    /// # Errors
    /// Too many messages are being served.
    pub(super) fn admit(&self) -> Result<MessagePermit, HttpError> {
        let request = self.requests.try_acquire(1).map(MessagePermit::Request);
        request
            .or_else(|| self.messages.try_acquire(1).map(|permit| MessagePermit::Message { _permit: permit }))
            .ok_or_else(HttpError::busy)
    }

    /// Permits for further requests of one message.
    ///
    /// # Errors
    /// Too many requests are running.
    pub(super) fn admit_more(&self, requests: usize) -> Result<Vec<Permit>, HttpError> {
        let permits = (0..requests).map(|_| self.requests.try_acquire(1));
        permits.collect::<Option<_>>().ok_or_else(HttpError::busy)
    }

    /// Lets calls continue without their client, with permits of `detached`; `false` if too many do already.
    pub(super) fn detach(&self, calls: &mut Calls) -> bool {
        calls.running_mut().all(|running| match self.detached.try_acquire(1) {
            Some(permit) => {
                running.pending.hold_instead(blocking::CallPermit::Budget(permit));
                true
            }
            None => false,
        })
    }
}
