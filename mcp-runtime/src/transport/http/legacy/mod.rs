//! What only revisions before 2026-07-28 need over HTTP: sessions, their requests to clients, streams that can be
//! resumed, batches, and HTTP+SSE. The rest of the transport knows [`Legacy`] and
//! [`LegacyCalls`](super::stream::LegacyCalls) only.

mod capabilities;
mod get;
mod http_sse;
mod post;
mod resumable;
mod revoked;
mod session_id;
mod standalone;
mod table;

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use http::{Method, Response, StatusCode};

use http_sse::SseStreams;
use resumable::{ResumableStream, session_name};
use revoked::Revoked;
use session_id::{Session, SessionIds, Sid};
use table::SessionTable;

use super::{
    exchange::Exchange,
    headers::ProtocolHeaders,
    response::{self, HttpError, ResponseBody},
    service::Endpoint,
};
use crate::{
    config::HttpOptions,
    connection::{Caller, PendingRequests},
    dispatch::{InFlight, OpenRequests},
    server::Server,
    store::{EventStore, MemoryEvents},
};

/// What an endpoint keeps for older revisions.
#[derive(Debug)]
pub(super) struct Legacy {
    /// Absent in stateless mode.
    sessions: Option<Arc<Sessions>>,
    /// Clients of the transport of 2024-11-05.
    pub(super) sse: SseStreams,
}

/// What little there is to keep of sessions.
struct Sessions {
    ids: SessionIds,
    revoked: Revoked,
    in_flight: InFlight,
    /// Requests of the server that wait for their responses.
    pending: PendingRequests,
    /// What is kept beside the ids.
    table: Arc<SessionTable<Arc<ResumableStream>>>,
    /// Where events are kept, if they have ids.
    store: Option<Arc<dyn EventStore>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

impl Sessions {
    /// The requests of a session, in both directions.
    fn open_requests(&self, sid: Sid) -> OpenRequests<'_> {
        OpenRequests { client: sid, in_flight: &self.in_flight, pending: &self.pending }
    }

    /// The session that a request belongs to.
    fn find(&self, head: &ProtocolHeaders<'_>, caller: Option<&Caller>) -> Result<Arc<Session>, HttpError> {
        let Some(id) = head.session.first() else {
            return Err(HttpError::bad_request(
                "`Mcp-Session-Id` is missing\nstart a session with `initialize`",
            ));
        };
        let session = self.ids.open(id.as_bytes(), caller, now());
        session.filter(|session| !self.revoked.contains(&session.sid)).ok_or_else(HttpError::no_session)
    }
}

impl Legacy {
    pub(super) fn new(server: &Server, options: &HttpOptions) -> Self {
        let sessions = (!options.stateless).then(|| {
            Arc::new(Sessions {
                ids: SessionIds::new(server.keys(), options.session_lifetime.as_secs(), server.name()),
                revoked: Revoked::new(options.max_revoked),
                in_flight: InFlight::default(),
                pending: PendingRequests::default(),
                table: SessionTable::new(options.max_sessions, server.hub().clone()),
                store: options.resumable.then(|| events(options)),
            })
        });
        Self { sessions, sse: SseStreams::default() }
    }

    /// The methods that are served.
    pub(super) fn allow(&self) -> &'static str {
        if self.sessions.is_some() { "GET, POST, DELETE" } else { "POST" }
    }

    /// Clients that wait learn that the server stops.
    pub(super) fn stop(&self) {
        if let Some(sessions) = &self.sessions {
            sessions.pending.close_all();
            sessions.table.end_all();
        }
    }

    /// Opens a stream of a session, or ends the session.
    pub(super) async fn get_or_delete(
        &self,
        endpoint: &Arc<Endpoint>,
        exchange: &Arc<Exchange>,
        head: &ProtocolHeaders<'_>,
    ) -> Response<ResponseBody> {
        if head.is_unknown_version() {
            return HttpError::bad_request("`MCP-Protocol-Version` is not a version that is served").into();
        }
        let Some(sessions) = self.sessions.as_ref().filter(|_| !head.is_modern()) else {
            return response::not_allowed(endpoint.allow(head));
        };
        if let Err(name) = head.once() {
            return head.repeated(name).into();
        }
        let answered = if exchange.parts().method == Method::DELETE {
            sessions.delete(endpoint, exchange, head).await
        } else {
            sessions.get(endpoint, exchange, head).await
        };
        answered.unwrap_or_else(Into::into)
    }
}

#[cfg(test)]
impl Legacy {
    /// How many sessions something is kept of.
    pub(super) fn kept(&self) -> usize {
        self.sessions.as_ref().map_or(0, |sessions| sessions.table.len())
    }

    /// Subscribes the session of that id.
    pub(super) fn subscribe(&self, id: &str, uri: &str) -> bool {
        let sessions = self.sessions.as_ref().expect("sessions");
        let session = sessions.ids.open(id.as_bytes(), None, now()).expect("a session");
        sessions.table.subscribe(&session.sid, uri)
    }
}

impl Sessions {
    async fn delete(
        &self,
        endpoint: &Endpoint,
        exchange: &Exchange,
        head: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let session = self.find(head, endpoint.caller(exchange.parts()).as_deref())?;
        if !self.revoked.revoke(session.sid, session.expires, now()) {
            return Ok(response::not_allowed("POST"));
        }
        self.in_flight.cancel_all(&session.sid);
        self.pending.close(&session.sid);
        self.table.end(&session.sid);
        if let Some(store) = &self.store {
            store.forget(&session_name(&session.sid)).await;
        }
        Ok(response::empty(StatusCode::NO_CONTENT))
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Where events are kept.
fn events(options: &HttpOptions) -> Arc<dyn EventStore> {
    options.event_store.clone().unwrap_or_else(|| Arc::new(MemoryEvents::new(options.event_bounds)))
}
