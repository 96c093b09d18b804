//! The sessions of an endpoint: the content of their ids, which of them have ended, their requests in both directions, and
//! the little that is stored besides.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use http::{Response, StatusCode};

use super::{
    event_log::EventLogs,
    other_replicas::{OpenReplicas, OtherReplicas},
    resumable::{ResumableStream, StreamLogs},
    session_id::{Session, SessionIds, SessionUid, uid_of},
    session_records::{EndedSession, SessionRecords},
    session_table::SessionTable,
    shared_sessions::{Listening, SessionChange, SharedSession, SharedSessions},
};
use crate::{
    core::{
        admission::Owner,
        config::HttpOptions,
        connection::{PendingRequests, Principal},
        crypto::random_bytes,
        dispatch::{Handshake, InFlight, OpenRequests},
        jsonrpc::ProtocolError,
        server::Server,
    },
    transport::http::{
        headers::ProtocolHeaders,
        http_error::{HttpError, method_not_allowed},
        request_connection::RequestConnection,
        response_body::{ResponseBody, empty_response},
    },
};

/// How often a log level is read again because another one was set meanwhile.
const LEVEL_ATTEMPTS: usize = 4;

/// The sessions of one endpoint.
pub(super) struct Sessions {
    pub(super) ids: SessionIds,
    pub(super) records: SessionRecords,
    pub(super) in_flight: InFlight,
    /// The server's requests that wait for responses.
    pub(super) pending: PendingRequests,
    /// The stored state of sessions.
    pub(super) table: Arc<SessionTable<Arc<ResumableStream>>>,
    /// The state of sessions that replicas share.
    pub(super) shared: Option<SharedSessions>,
    /// The number of log levels received from other replicas.
    pub(super) told_levels: AtomicU64,
    /// The other replicas, if they share a store.
    pub(super) replicas: Option<Arc<dyn OtherReplicas>>,
    /// Where events are logged; absent if streams cannot be resumed.
    pub(super) event_logs: Option<Arc<EventLogs>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

impl Sessions {
    pub(super) fn new(server: &Server, options: &HttpOptions) -> Arc<Self> {
        let limits = &server.options().limits;
        let open_replicas = server.options().of_capabilities.get::<OpenReplicas>();
        let replicas = open_replicas.and_then(|open| open.0(server));
        let event_logs = || {
            let process = replicas.as_ref().map(|replicas| replicas.process().to_owned());
            let share_percent = limits.share_percent;
            Arc::new(EventLogs::new(server.store(), options.event_bounds, share_percent, process))
        };
        let sessions = Arc::new(Self {
            ids: SessionIds::new(server.keys(), options.session_lifetime.as_secs(), server.name()),
            records: SessionRecords::new(
                limits.quota(options.max_session_records),
                server.keys().is_random(),
            ),
            in_flight: InFlight::default(),
            pending: PendingRequests::default(),
            table: SessionTable::new(limits.quota(options.max_sessions), server.hub().clone()),
            shared: server.store().shared_store().map(|store| {
                let records = (options.max_session_records, limits.share_percent);
                let unchecked = server.options().stores.allows_unchecked_sessions;
                SharedSessions::new(store, records, limits.subscriptions, unchecked)
            }),
            told_levels: AtomicU64::new(0),
            event_logs: options.resumable.then(event_logs),
            replicas,
        });
        if let Some(replicas) = sessions.replicas.clone() {
            replicas.answer_for(&sessions);
        }
        sessions
    }

    /// The requests of a session, in both directions.
    pub(super) fn open_requests(&self, uid: SessionUid) -> OpenRequests<'_> {
        OpenRequests { client: uid, in_flight: &self.in_flight, pending: &self.pending, elsewhere: None }
    }

    /// Where a new stream logs its events; `None` if streams cannot be resumed.
    pub(super) fn stream_logs(&self) -> Option<StreamLogs> {
        let logs = self.event_logs.clone()?;
        Some(StreamLogs { logs, replicas: self.replicas.clone() })
    }

    /// Starts a session, and returns its id.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(super) fn start(
        &self,
        server: &Server,
        handshake: &Handshake,
        caller: Option<&Principal>,
        owner: &Owner,
    ) -> Result<String, ProtocolError> {
        let failed = || ProtocolError::internal("a session cannot be started now");
        let (nonce, now) = (random_bytes().map_err(|_| failed())?, unix_time());
        let Handshake { revision, client } = handshake;
        record_ended(server, self.records.take_expired(now));
        let recorded = self.records.start(uid_of(&nonce), *revision, owner, now);
        self.ids.issue(nonce, recorded, *revision, client, caller, now).ok_or_else(failed)
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
            self.pending.close(&session.uid);
            self.table.end(&session.uid);
        }
        ended
    }

    /// Checks that the session of a request, if it names one, has not ended at another replica or in an earlier process,
    /// and takes over the log level that was set there.
    ///
    /// # Errors
    /// It has ended, or that cannot be found out.
    pub(super) async fn check_shared(
        &self,
        headers: &ProtocolHeaders<'_>,
        connection: &RequestConnection,
    ) -> Result<(), HttpError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        // other problems with the session are reported later
        let Ok(session) = self.peek(headers, connection.caller().map(|caller| &**caller)) else {
            return Ok(());
        };
        for _ in 0..LEVEL_ATTEMPTS {
            let told = self.told_levels.load(Ordering::Acquire);
            match shared.get(&session.uid).await {
                Ok(SharedSession { has_ended: true, .. }) => return Err(HttpError::unknown_session()),
                Ok(SharedSession { level: None, .. }) => break,
                Ok(SharedSession { level: Some(level), .. }) => {
                    // a notice received meanwhile may be newer than the state that was read
                    if self.told_levels.load(Ordering::Acquire) == told {
                        if self.table.level(&session.uid) != Some(level) {
                            // a table that is full forgets it, as it may forget any
                            let _is_set = self.table.set_level(&session.uid, &connection.owner(), level);
                        }
                        break;
                    }
                }
                Err(error) if shared.allows_unchecked => {
                    tracing::debug!(%error, "a session goes on that may have ended");
                    break;
                }
                Err(error) => {
                    tracing::debug!(%error, "what replicas share of a session cannot be looked up");
                    return Err(HttpError::sessions_unavailable());
                }
            }
        }
        Ok(())
    }

    /// Answers DELETE: ends a session and cancels its requests.
    pub(super) async fn delete(
        &self,
        server: &Server,
        connection: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let session = self.peek(headers, connection.caller().map(|caller| &**caller))?;
        if let Some(shared) = &self.shared {
            let owner = connection.owner();
            let of = Listening { uid: &session.uid, expires: session.expires, owner: &owner };
            let ended =
                shared.change(of, |session| *session = SharedSession { has_ended: true, level: None });
            match ended.await {
                Ok(SessionChange::Done | SessionChange::Ended) => {}
                Ok(SessionChange::Full) => return Ok(method_not_allowed("POST")),
                Err(error) => {
                    tracing::debug!(%error, "the end of a session cannot be recorded");
                    return Err(HttpError::sessions_unavailable());
                }
            }
        }
        record_ended(server, self.records.take_expired(unix_time()));
        let recorded = self.records.end(&session, &connection.owner(), unix_time());
        if !recorded && self.shared.is_none() {
            return Ok(method_not_allowed("POST"));
        }
        self.end_here(&session.uid);
        if let Some(replicas) = &self.replicas {
            replicas.tell_ended(&session.uid).await;
        }
        if let Some(shared) = &self.shared {
            shared.forget_listener(&session.uid).await;
        }
        let age = self.ids.age(&session, unix_time());
        server.telemetry().end_session(Some("tcp"), session.revision.as_str(), age);
        Ok(empty_response(StatusCode::NO_CONTENT))
    }

    /// Ends what this process has of a session that has ended.
    pub(super) fn end_here(&self, uid: &SessionUid) {
        self.in_flight.cancel_all(uid);
        self.pending.close(uid);
        self.table.end(uid);
    }

    /// Ends the requests to clients of all sessions, and refuses new streams. Standalone streams end by themselves.
    pub(super) fn stop(&self, server: &Server) {
        self.pending.close_all();
        self.table.refuse_streams();
        let now = unix_time();
        record_ended(server, self.records.take_expired(now));
        record_ended(server, self.records.take_all(now));
    }
}

/// Records how long sessions have lasted.
fn record_ended(server: &Server, sessions: Vec<EndedSession>) {
    for EndedSession { revision, lasted } in sessions {
        server.telemetry().end_session(Some("tcp"), revision.as_str(), lasted);
    }
}

/// Seconds since 1970.
pub(super) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
