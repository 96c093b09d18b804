//! The sessions of an endpoint: what is in their ids, which of them have ended, their requests in both directions, and
//! the little that is stored besides.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use http::{Response, StatusCode};

use super::{
    resumable::{ResumableStream, store_key},
    revoked_sessions::RevokedSessions,
    session_id::{Session, SessionIds, SessionUid},
    session_table::SessionTable,
};
use crate::{
    config::HttpOptions,
    connection::{PendingRequests, Principal},
    dispatch::{InFlight, OpenRequests},
    server::Server,
    store::{EventStore, MemoryEvents},
    transport::http::{
        connection::RequestConnection,
        endpoint::Endpoint,
        headers::ProtocolHeaders,
        http_error::{HttpError, method_not_allowed},
        response_body::{ResponseBody, empty_response},
    },
};

/// The sessions of one endpoint.
pub(super) struct Sessions {
    pub(super) ids: SessionIds,
    pub(super) revoked: RevokedSessions,
    in_flight: InFlight,
    /// The server's requests that wait for responses.
    pub(super) pending: PendingRequests,
    /// What is stored of sessions.
    pub(super) table: Arc<SessionTable<Arc<ResumableStream>>>,
    /// Where events are stored; absent if streams cannot be resumed.
    pub(super) event_store: Option<Arc<dyn EventStore>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

impl Sessions {
    pub(super) fn new(server: &Server, options: &HttpOptions) -> Arc<Self> {
        let event_store = || -> Arc<dyn EventStore> {
            let configured = server.options().stores.events.clone();
            configured.unwrap_or_else(|| Arc::new(MemoryEvents::new(options.event_bounds)))
        };
        Arc::new(Self {
            ids: SessionIds::new(server.keys(), options.session_lifetime.as_secs(), server.name()),
            revoked: RevokedSessions::new(options.max_revoked),
            in_flight: InFlight::default(),
            pending: PendingRequests::default(),
            table: SessionTable::new(options.max_sessions, server.hub().clone()),
            event_store: options.resumable.then(event_store),
        })
    }

    /// The requests of a session, in both directions.
    pub(super) fn open_requests(&self, uid: SessionUid) -> OpenRequests<'_> {
        OpenRequests { client: uid, in_flight: &self.in_flight, pending: &self.pending }
    }

    /// The session that a request names.
    ///
    /// # Errors
    /// It names none, or one that has expired or ended or belongs to another caller.
    pub(super) fn find(
        &self,
        headers: &ProtocolHeaders<'_>,
        caller: Option<&Principal>,
    ) -> Result<Arc<Session>, HttpError> {
        let Some(id) = headers.session.first() else {
            return Err(HttpError::bad_request(
                "`Mcp-Session-Id` is missing\nstart a session with `initialize`",
            ));
        };
        let session = self.ids.open(id.as_bytes(), caller, unix_time());
        session.filter(|session| !self.revoked.contains(&session.uid)).ok_or_else(HttpError::unknown_session)
    }

    /// Answers DELETE: ends a session and cancels its requests.
    pub(super) async fn delete(
        &self,
        endpoint: &Endpoint,
        connection: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let session = self.find(headers, endpoint.caller(connection.parts()).as_deref())?;
        if !self.revoked.revoke(session.uid, session.expires, unix_time()) {
            return Ok(method_not_allowed("POST"));
        }
        self.in_flight.cancel_all(&session.uid);
        self.pending.close(&session.uid);
        self.table.end(&session.uid);
        if let Some(store) = &self.event_store {
            store.forget(&store_key(&session.uid)).await;
        }
        Ok(empty_response(StatusCode::NO_CONTENT))
    }

    /// Ends the streams of all sessions, and their requests to clients.
    pub(super) fn stop(&self) {
        self.pending.close_all();
        self.table.end_all();
    }
}

/// Seconds since 1970.
pub(super) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
