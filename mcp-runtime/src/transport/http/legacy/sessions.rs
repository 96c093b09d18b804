//! The sessions of an endpoint: the content of their ids, which of them have ended, their requests in both directions, and
//! the little that is stored besides.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use http::{HeaderValue, Response, StatusCode};

use super::{
    ended_sessions::EndedSessions,
    event_log::EventLogs,
    session_id::{Session, SessionIds, SessionUid, uid_of},
    session_records::SessionRecords,
    session_table::SessionTable,
};
use crate::{
    core::{
        admission::{Owner, Quota},
        config::HttpOptions,
        connection::{PendingRequests, Principal},
        crypto::random_bytes,
        dispatch::{Handshake, InFlight, OpenRequests},
        jsonrpc::ProtocolError,
        server::Server,
    },
    transport::http::{
        headers::ProtocolHeaders,
        http_error::HttpError,
        request_connection::RequestConnection,
        response_body::{ResponseBody, empty_response},
    },
};

/// The sessions of one endpoint.
pub(super) struct Sessions {
    pub(super) ids: SessionIds,
    pub(super) records: SessionRecords,
    pub(super) in_flight: InFlight,
    /// The server's requests that wait for responses.
    pub(super) pending: PendingRequests,
    /// The stored state of sessions.
    pub(super) table: SessionTable,
    /// Those that have ended, where replicas share a store.
    pub(super) ended: Option<EndedSessions>,
    /// Where events are logged; absent if streams cannot be resumed.
    pub(super) event_logs: Option<Arc<EventLogs>>,
}

impl Sessions {
    pub(super) fn new(server: &Server, options: &HttpOptions) -> Arc<Self> {
        Arc::new(Self {
            ids: SessionIds::new(server.keys(), options.session_lifetime.as_secs(), server.name()),
            records: SessionRecords::new(Quota::half(options.max_session_records), server.keys().is_random()),
            in_flight: InFlight::default(),
            pending: PendingRequests::default(),
            table: SessionTable::new(Quota::half(options.max_sessions), server.hub().clone()),
            ended: EndedSessions::new(server, options.max_session_records),
            event_logs: options.resumable.then(EventLogs::new),
        })
    }

    /// The requests of a session, in both directions.
    pub(super) fn open_requests(&self, uid: SessionUid) -> OpenRequests<'_> {
        OpenRequests { client: uid, in_flight: &self.in_flight, pending: &self.pending }
    }

    /// Starts a session, and returns its id.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(super) fn start(
        &self,
        handshake: &Handshake,
        caller: Option<&Principal>,
        owner: &Owner,
    ) -> Result<HeaderValue, ProtocolError> {
        let failed = || ProtocolError::internal("a session cannot be started now");
        let (nonce, now) = (random_bytes().map_err(|_| failed())?, unix_time());
        let Handshake { revision, client } = handshake;
        let recorded = self.records.start(uid_of(&nonce), owner, now);
        let id = self.ids.issue(nonce, recorded, *revision, client, caller, now);
        id.and_then(|id| HeaderValue::try_from(id).ok()).ok_or_else(failed)
    }

    /// The session that a request names, which is used by that.
    ///
    /// # Errors
    /// It names none, or one that has expired or ended or belongs to another caller.
    pub(super) fn find(
        &self,
        headers: &ProtocolHeaders<'_>,
        caller: Option<&Principal>,
    ) -> Result<Arc<Session>, HttpError> {
        let session = self.peek(headers, caller)?;
        self.records.mark_used(&session);
        Ok(session)
    }

    /// The session that a request names, without using it.
    ///
    /// # Errors
    /// Returns the errors of [`find`](Self::find).
    pub(super) fn peek(
        &self,
        headers: &ProtocolHeaders<'_>,
        caller: Option<&Principal>,
    ) -> Result<Arc<Session>, HttpError> {
        let Some(id) = headers.session.first() else {
            return Err(HttpError::bad_request(
                "`Mcp-Session-Id` is missing\nstart a session with `initialize`",
            ));
        };
        let now = unix_time();
        let session = self.ids.open(id.as_bytes(), caller, now);
        session.filter(|session| self.records.is_open(session, now)).ok_or_else(HttpError::unknown_session)
    }

    /// Whether a session has ended while one of its requests was started: after that was admitted, and before DELETE could
    /// find it among those in flight. The stored state of the request is removed.
    pub(super) fn has_ended_meanwhile(&self, session: &Session) -> bool {
        let ended = self.records.has_ended(&session.uid);
        if ended {
            self.close(&session.uid);
        }
        ended
    }

    /// Ends everything of a session that has ended: its calls, the requests to its client, and its streams.
    fn close(&self, uid: &SessionUid) {
        self.in_flight.cancel_all(uid);
        self.pending.close(uid);
        self.table.end(uid);
    }

    /// Checks that the session of a request, if it names one, has not ended at another replica or in an earlier process.
    ///
    /// # Errors
    /// It has ended, or that cannot be found out.
    pub(super) async fn check_ended(
        &self,
        headers: &ProtocolHeaders<'_>,
        connection: &RequestConnection,
    ) -> Result<(), HttpError> {
        let Some(ended) = &self.ended else { return Ok(()) };
        // other problems with the session are reported later
        let Ok(session) = self.peek(headers, connection.caller().map(|caller| &**caller)) else {
            return Ok(());
        };
        ended.check(&session.uid).await
    }

    /// Answers DELETE: ends a session and cancels its requests.
    pub(super) async fn delete(
        &self,
        server: &Server,
        connection: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let session = self.peek(headers, connection.caller().map(|caller| &**caller))?;
        if let Some(ended) = &self.ended {
            ended.add(&session, &connection.owner()).await?;
        }
        let recorded = self.records.end(&session, &connection.owner(), unix_time());
        if !recorded && self.ended.is_none() {
            return Err(HttpError::method_not_allowed("POST"));
        }
        self.close(&session.uid);
        let age = self.ids.age(&session, unix_time());
        server.observers().iter().for_each(|observer| {
            observer.session_ended(Some("tcp"), session.revision.as_str(), age);
        });
        Ok(empty_response(StatusCode::NO_CONTENT))
    }

    /// Ends the requests to clients of all sessions, and refuses new streams. Standalone streams end by themselves.
    pub(super) fn stop(&self) {
        self.pending.close_all();
        self.table.refuse_streams();
    }
}

/// Seconds since 1970.
pub(super) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
