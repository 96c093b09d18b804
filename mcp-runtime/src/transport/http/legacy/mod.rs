//! The parts of HTTP that only revisions before 2026-07-28 need: sessions, their requests to clients, resumable streams,
//! batches, and HTTP+SSE.

mod capabilities;
mod event_id;
mod event_log;
mod event_sender;
mod get;
mod http_sse;
mod kept_responses;
mod legacy_connection;
mod other_replicas;
mod post;
mod replicas;
mod resumable;
mod session_id;
mod session_records;
mod session_table;
mod sessions;
mod shared_sessions;
mod sse_replicas;
mod standalone;

use std::sync::Arc;

use http::{Method, Response};
use http_sse::{OpenSseReplicas, SseStreams};
use other_replicas::OpenReplicas;
use replicas::open_replicas;
use sessions::Sessions;
use sse_replicas::open_sse_replicas;

use super::{
    endpoint::Endpoint,
    headers::ProtocolHeaders,
    http_error::{HttpError, method_not_allowed},
    request_connection::RequestConnection,
    response_body::ResponseBody,
};
#[cfg(test)]
use crate::core::admission::Owner;
use crate::core::{
    config::{HttpOptions, Options},
    jsonrpc::parse,
    server::Server,
};

/// Lets replicas share sessions, and the streams of HTTP+SSE.
pub(crate) fn share_sessions(options: &mut Options) {
    options.of_capabilities.insert(OpenReplicas(open_replicas));
    options.of_capabilities.insert(OpenSseReplicas(open_sse_replicas));
}

/// Serves legacy revisions.
#[derive(Debug)]
pub(super) struct Legacy {
    /// Absent in stateless mode.
    sessions: Option<Arc<Sessions>>,
    /// The clients of HTTP+SSE.
    pub(super) sse: SseStreams,
}

impl Legacy {
    pub(super) fn new(server: &Server, options: &HttpOptions) -> Self {
        let sessions = (!options.stateless).then(|| Sessions::new(server, options));
        Self { sessions, sse: SseStreams::new(server) }
    }

    /// The methods that are served, for `Allow`.
    pub(super) fn allow(&self) -> &'static str {
        if self.sessions.is_some() { "GET, POST, DELETE" } else { "POST" }
    }

    /// Ends the requests to clients of all sessions, and refuses new streams.
    pub(super) fn stop(&self, server: &Server) {
        if let Some(sessions) = &self.sessions {
            sessions.stop(server);
        }
    }

    /// Whether a store knows of sessions what other replicas know.
    pub(super) fn shares_sessions(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.shared.is_some())
    }

    /// Checks that the session of a request has not ended elsewhere, and learns what was set there, where a store knows
    /// that.
    ///
    /// # Errors
    /// Returns the errors of [`Sessions::check_shared`].
    pub(super) async fn check_shared(
        &self,
        server: &Server,
        headers: &ProtocolHeaders<'_>,
        connection: &RequestConnection,
    ) -> Result<(), HttpError> {
        match &self.sessions {
            Some(sessions) => {
                // a router that is mounted in another program begins to listen to its replicas here
                server.join_replicas();
                sessions.check_shared(headers, connection).await
            }
            None => Ok(()),
        }
    }

    /// Keeps a message until it can be looked up what replicas share of its session, if it is a response to a request that a
    /// replica has sent to this client. Returns whether it is kept.
    pub(super) fn keep_response(
        &self,
        text: &[u8],
        headers: &ProtocolHeaders<'_>,
        connection: &RequestConnection,
    ) -> bool {
        let Some(sessions) = &self.sessions else { return false };
        let Some(replicas) = sessions.replicas.clone() else { return false };
        let Ok(session) = sessions.peek(headers, connection.caller().map(|caller| &**caller)) else {
            return false;
        };
        let Ok(message) = parse(text) else { return false };
        let (Some(id), Some(response)) = (message.id(), message.response()) else { return false };
        let response = response.map(Into::into).map_err(Into::into);
        replicas.keep_response(session.uid, id, response, connection.owner())
    }

    /// Answers GET, which opens a stream of a session, and DELETE, which ends the session.
    pub(super) async fn get_or_delete(
        &self,
        endpoint: &Arc<Endpoint>,
        connection: &Arc<RequestConnection>,
        headers: &ProtocolHeaders<'_>,
    ) -> Response<ResponseBody> {
        // a session is of a revision before 2026-07-28, which has no such version
        if headers.unknown_version().is_some() && headers.session.first().is_some() {
            return HttpError::bad_request("`MCP-Protocol-Version` is not a version that is served").into();
        }
        let Some(sessions) = self.sessions.as_ref().filter(|_| !headers.is_modern()) else {
            return method_not_allowed("POST");
        };
        if let Err(name) = headers.check_repeated() {
            return headers.repeated_error(name).into();
        }
        if let Err(error) = self.check_shared(&endpoint.server, headers, connection).await {
            return error.into();
        }
        let response = if connection.parts().method == Method::DELETE {
            sessions.delete(&endpoint.server, connection, headers).await
        } else {
            sessions.get(endpoint, connection, headers).await
        };
        response.unwrap_or_else(Into::into)
    }
}

#[cfg(test)]
impl Legacy {
    /// The number of sessions of which a record is kept.
    pub(super) fn recorded_sessions(&self) -> usize {
        self.sessions.as_ref().map_or(0, |sessions| sessions.records.len())
    }

    /// The number of sessions of which something is stored.
    pub(super) fn stored_sessions(&self) -> usize {
        self.sessions.as_ref().map_or(0, |sessions| sessions.table.len())
    }

    /// Subscribes the session with this id to a resource.
    pub(super) fn subscribe(&self, id: &str, uri: &str) -> bool {
        let sessions = self.sessions.as_ref().expect("sessions");
        let session = sessions.ids.open(id.as_bytes(), None, sessions::unix_time()).expect("a session");
        sessions.table.subscribe(&session.uid, &Owner::local(), uri).is_ok()
    }
}
