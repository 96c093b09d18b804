//! The parts of HTTP that only revisions before 2026-07-28 need: sessions, their requests to clients, resumable streams,
//! batches, and HTTP+SSE.
//!
//! A session is its id, which is sealed and holds what `initialize` settled; any process with the keys serves it. Five
//! things are kept besides, where they are needed (the bounds are those of `docs/limits.md`):
//!
//! | what | where | bound | ends |
//! |---|---|---|---|
//! | that it has started or is initialized, for ten minutes, and that it has ended | `session_records`; where replicas share a store, the end in `ended_sessions` too | `max_session_records`, of which a client has half: then it cannot end sessions | when the id would have expired |
//! | its requests that run, by id | `InFlight` of `core/dispatch/inbound.rs` | the requests that are served at once | with the request, or `DELETE` |
//! | the server's requests that wait for its client | `PendingRequests` of `core/connection/pending.rs` | as many calls as run | with the response or its call, or `DELETE` |
//! | its log level, its subscriptions, and its standalone streams (`standalone`) | `session_table` | `max_sessions`, of which a client has half | `DELETE`; the one that was used longest ago is evicted, if none of its streams is open |
//! | the events that it may resume from, a log for each stream | `event_log` | 16 MiB, of which a client has half | with newer events; the oldest streams lose theirs first |

mod capabilities;
// without the feature `shared`, a stand-in with the same methods, of which a server never has a value
#[cfg_attr(not(feature = "shared"), path = "ended_here.rs")]
mod ended_sessions;
mod event_id;
mod event_log;
mod event_sender;
mod get;
#[cfg(feature = "http-sse")]
mod http_sse;
mod legacy_connection;
mod post;
mod resumable;
mod session_id;
mod session_records;
mod session_table;
mod sessions;
mod standalone;

use std::sync::Arc;

use http::Response;
pub(super) use legacy_connection::LegacyClient;
use sessions::Sessions;

use super::{
    endpoint::Endpoint, headers::ProtocolHeaders, http_error::HttpError,
    request_connection::RequestConnection, response_body::ResponseBody,
};
#[cfg(test)]
use crate::core::admission::Owner;
use crate::core::{config::HttpOptions, server::Server};

/// Serves legacy revisions.
pub(super) struct Legacy {
    /// Absent in stateless mode.
    sessions: Option<Arc<Sessions>>,
    /// The clients of HTTP+SSE.
    #[cfg(feature = "http-sse")]
    pub(super) sse: http_sse::SseStreams,
}

impl Legacy {
    pub(super) fn new(server: &Server, options: &HttpOptions) -> Self {
        let sessions = (!options.stateless).then(|| Sessions::new(server, options));
        Self {
            sessions,
            #[cfg(feature = "http-sse")]
            sse: http_sse::SseStreams::default(),
        }
    }

    /// The methods that are served, for `Allow`.
    pub(super) fn allow(&self) -> &'static str {
        if self.sessions.is_some() { "GET, POST, DELETE" } else { "POST" }
    }

    /// Ends the requests to clients of all sessions, and refuses new streams.
    pub(super) fn stop(&self) {
        if let Some(sessions) = &self.sessions {
            sessions.stop();
        }
    }

    /// Checks that the session of a request has not ended at another replica, where a store knows that.
    ///
    /// # Errors
    /// Returns the errors of [`Sessions::check_ended`].
    pub(super) async fn check_ended(
        &self,
        headers: &ProtocolHeaders<'_>,
        connection: &RequestConnection,
    ) -> Result<(), HttpError> {
        match &self.sessions {
            Some(sessions) => sessions.check_ended(headers, connection).await,
            None => Ok(()),
        }
    }

    /// Whether a store knows which sessions have ended.
    pub(super) fn shares_ended(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.ended.is_some())
    }

    /// Answers GET, which opens a stream of a session.
    pub(super) async fn get(
        &self,
        endpoint: &Arc<Endpoint>,
        connection: &Arc<RequestConnection>,
        headers: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        self.sessions_for(headers, connection).await?.get(endpoint, connection, headers)
    }

    /// Answers DELETE, which ends a session.
    pub(super) async fn delete(
        &self,
        endpoint: &Endpoint,
        connection: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        self.sessions_for(headers, connection).await?.delete(&endpoint.server, connection, headers).await
    }

    /// The sessions, if a GET or DELETE with these headers can be for one of them.
    ///
    /// # Errors
    /// There are none, or the headers are of a later revision, or name a session that has ended at another replica.
    async fn sessions_for(
        &self,
        headers: &ProtocolHeaders<'_>,
        connection: &RequestConnection,
    ) -> Result<&Arc<Sessions>, HttpError> {
        // a session is of a revision before 2026-07-28, which has no such version
        if headers.unknown_version().is_some() && headers.session.first().is_some() {
            return Err(HttpError::bad_request("`MCP-Protocol-Version` is not a version that is served"));
        }
        let sessions = self.sessions.as_ref().filter(|_| !headers.is_modern());
        let sessions = sessions.ok_or_else(|| HttpError::method_not_allowed("POST"))?;
        headers.refuse_repeated()?;
        self.check_ended(headers, connection).await?;
        Ok(sessions)
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
