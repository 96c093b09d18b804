//! Answers GET: opens a standalone stream, for messages that do not belong to a request, or resumes a stream whose
//! connection broke.
//!
//! See [listening for messages](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server).

use std::{future::poll_fn, sync::Arc, time::Duration};

use http::Response;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    event_id::{EventId, StreamKind},
    event_log::{EventLogs, MissedEvents},
    event_sender::EventSender,
    resumable::ResumableStream,
    session_id::Session,
    session_table::SessionGuard,
    sessions::{Sessions, unix_time},
    standalone::StandaloneEvent,
};
use crate::{
    core::{
        admission::{Owner, Permit},
        connection::Principal,
        spawn::spawn,
        store::LogEntry,
    },
    transport::http::{
        endpoint::Endpoint,
        headers::{HeaderField, ProtocolHeaders},
        http_error::HttpError,
        request_connection::RequestConnection,
        response_body::{ResponseBody, event_stream_response},
    },
};

/// How long a standalone stream waits for its client to reconnect.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// A GET of a session, which may have one more stream.
struct Get<'g> {
    endpoint: &'g Arc<Endpoint>,
    session: Arc<Session>,
    guard: SessionGuard<Arc<ResumableStream>>,
    caller: Option<Arc<Principal>>,
    owner: Owner,
    /// Sends to the body of the response.
    sender: EventSender,
}

impl Sessions {
    /// Opens a standalone stream, or resumes the stream of `Last-Event-ID`.
    pub(super) async fn get(
        &self,
        endpoint: &Arc<Endpoint>,
        connection: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        if !connection.accepts().stream {
            return Err(HttpError::event_stream_not_acceptable());
        }
        let caller = connection.caller().cloned();
        let session = self.find(headers, caller.as_deref())?;
        let owner = connection.owner();
        let permit =
            endpoint.budgets.streams.try_acquire(&owner, 1).ok_or_else(HttpError::too_many_streams)?;
        let guard = self.table.open_stream(session.uid, &owner).ok_or_else(HttpError::too_many_streams)?;
        // the session may have ended after it was found
        if self.records.has_ended(&session.uid) {
            self.table.end(&session.uid);
            return Err(HttpError::unknown_session());
        }
        let resumed = match headers.last_event {
            HeaderField::One(id) => {
                let id = id.to_str().ok().and_then(EventId::parse);
                Some(id.ok_or_else(HttpError::unknown_event_id)?)
            }
            HeaderField::Repeated(_) => return Err(headers.repeated_error("Last-Event-ID")),
            HeaderField::Absent => None,
        };
        let mut end = endpoint.stream_end(caller.as_ref(), endpoint.options.max_stream_age);
        if self.event_logs.is_some() {
            end = end.of_resumable(session.revision);
        }
        let (sender, body) = EventSender::new(&endpoint.budgets.outbound, owner.clone(), Some(permit), end);
        let get = Get { endpoint, session, guard, caller, owner, sender };
        match resumed {
            None => self.open_standalone(get, None)?,
            // another process has the stream, or has had it: its client starts another session
            Some(id) if !self.event_logs.as_ref().is_some_and(|logs| logs.has_sent(&id)) => {
                return Err(HttpError::unknown_session());
            }
            Some(id) => {
                get.sender.put_short(id.priming_event(get.session.revision));
                let running = get.guard.data.streams().get(id.stream).cloned();
                match (running, id.kind) {
                    (Some(stream), _) => resume_running(get, &id, stream)?,
                    (None, StreamKind::Call) => self.resume_logged(get, &id)?,
                    (None, StreamKind::Standalone) => self.open_standalone(get, Some(&id))?,
                }
            }
        }
        Ok(event_stream_response(body))
    }

    /// Resumes the stream of a call that has ended, from its log.
    fn resume_logged(&self, get: Get<'_>, id: &EventId<'_>) -> Result<(), HttpError> {
        let events = self.read_missed(&get, id).ok_or_else(HttpError::unknown_event_id)?;
        // nothing to send: after an empty stream the client would reconnect once more
        if events.iter().all(|event| event.bytes.is_empty()) {
            return Err(HttpError::method_not_allowed("POST, DELETE"));
        }
        let sender = get.sender;
        let missed = MissedEvents::new(id.stream, events, &sender);
        let missed = missed.ok_or_else(HttpError::too_many_unread_bytes)?;
        spawn(async move {
            missed.send(&sender).await;
        });
        Ok(())
    }

    /// Opens a standalone stream: a new one, or one in place of `resumed`, which has ended.
    fn open_standalone(&self, get: Get<'_>, resumed: Option<&EventId<'_>>) -> Result<(), HttpError> {
        let mut replayed = None;
        if let Some(id) = resumed {
            // evicted events are lost, but more may follow
            let events = self.read_missed(&get, id).unwrap_or_default();
            let missed = MissedEvents::new(id.stream, events, &get.sender);
            replayed = Some(missed.ok_or_else(HttpError::too_many_unread_bytes)?);
        }
        let Get { endpoint, session, guard, caller, owner, sender } = get;
        let logs = self.event_logs.as_ref();
        let standalone = StandaloneStream::open(endpoint, logs, guard, &session, caller, owner);
        spawn(standalone.ok_or_else(HttpError::too_many_streams)?.run(sender, replayed));
        Ok(())
    }

    /// The events after this one, as far as its log has them; `None` if it has no log.
    fn read_missed(&self, get: &Get<'_>, id: &EventId<'_>) -> Option<Vec<LogEntry>> {
        let logs = self.event_logs.as_ref()?;
        logs.log(&get.session.uid, id.stream, get.owner.clone(), get.session.expires).read_after(id.number)
    }
}

/// Resumes a stream that runs.
fn resume_running(get: Get<'_>, id: &EventId<'_>, stream: Arc<ResumableStream>) -> Result<(), HttpError> {
    let Get { guard, caller, sender, .. } = get;
    if id.kind == StreamKind::Standalone {
        guard.data.standalone.set_caller(caller);
    }
    let missed = stream.read_missed(&sender, id.number).ok_or_else(HttpError::too_many_unread_bytes)?;
    spawn(async move { stream.resume(&sender, missed).await });
    Ok(())
}

/// A standalone stream.
struct StandaloneStream {
    endpoint: Arc<Endpoint>,
    owner: Owner,
    stream: Arc<ResumableStream>,
    /// Its number among the session's standalone streams.
    serial: u64,
    /// When the session expires, in seconds since 1970.
    expires: u64,
}

impl StandaloneStream {
    /// `None` if the server has too many subscribers.
    fn open(
        endpoint: &Arc<Endpoint>,
        logs: Option<&Arc<EventLogs>>,
        guard: SessionGuard<Arc<ResumableStream>>,
        session: &Session,
        caller: Option<Arc<Principal>>,
        owner: Owner,
    ) -> Option<Self> {
        endpoint.server.join_replicas();
        let rules = endpoint.access_rules.clone();
        let data = guard.data.clone();
        let hub = guard.hub().clone();
        let Session { revision, expires, .. } = *session;
        let stream = ResumableStream::new(StreamKind::Standalone, guard, (revision, expires), logs)?;
        let subscriber = owner.clone();
        let subscribe = || hub.subscribe(data.filter().clone(), caller.clone(), rules.clone(), &subscriber);
        let serial = data.standalone.add(subscribe)?;
        data.standalone.set_caller(caller);
        Some(Self { endpoint: endpoint.clone(), stream, serial, owner, expires })
    }

    /// Sends what the client has missed, and changes until the session ends, the server stops, or the client does not
    /// reconnect.
    async fn run(self, sender: EventSender, missed: Option<MissedEvents>) {
        let stream = &self.stream;
        let _registration = stream.register();
        if let Some(missed) = missed {
            missed.send(&sender).await;
        }
        sender.send(stream.priming_event(), None).await;
        stream.attach(&sender, 0);
        drop(sender);
        let data = stream.session();
        let (ended, shutdown) = (data.ended.clone(), self.endpoint.shutdown.clone());
        let mut end = std::pin::pin!(async {
            tokio::select! {
                () = ended.cancelled() => {}
                () = shutdown.cancelled() => {}
                () = sleep(Duration::from_secs(self.expires.saturating_sub(unix_time()))) => {}
            }
        });
        let mut waiting: Option<(Instant, Permit)> = None;
        loop {
            let sender = stream.sender();
            data.standalone.set_connected(self.serial, sender.is_some());
            match &sender {
                Some(_) => waiting = None,
                None if waiting.is_some() => {}
                None => match self.endpoint.budgets.waiting.try_acquire(&self.owner, 1) {
                    Some(permit) => waiting = Some((Instant::now() + RECONNECT_TIMEOUT, permit)),
                    None => return,
                },
            }
            let reconnect_timeout = async {
                match &waiting {
                    Some((deadline, _)) => sleep_until(*deadline).await,
                    None => std::future::pending().await,
                }
            };
            let event = tokio::select! {
                biased;
                () = &mut end => return,
                event = poll_fn(|cx| data.standalone.poll(self.serial, cx)) => event,
                () = stream.wait_until_disconnected() => continue,
                () = stream.changed.notified() => continue,
                () = reconnect_timeout => return,
            };
            match event {
                // a client that does not read delays this, but not beyond the end of its session
                StandaloneEvent::Send(change) => tokio::select! {
                    biased;
                    () = &mut end => return,
                    () = stream.send(change.notification(|_| {}), None) => {}
                },
                StandaloneEvent::End => return,
            }
        }
    }
}

impl Drop for StandaloneStream {
    fn drop(&mut self) {
        self.stream.session().standalone.remove(self.serial);
    }
}
