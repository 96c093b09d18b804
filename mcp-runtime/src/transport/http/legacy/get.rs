//! Answers GET: opens a standalone stream, for messages that do not belong to a request, or resumes a stream whose
//! connection broke.
//!
//! See [listening for messages](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server).

use std::{future::poll_fn, sync::Arc, time::Duration};

use http::Response;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    event_id::{EventId, StreamKind},
    event_log::LoggedEvents,
    event_sender::EventSender,
    other_replicas::Following,
    resumable::ResumableStream,
    session_id::Session,
    session_table::SessionGuard,
    sessions::{Sessions, unix_time},
};
use crate::{
    core::{
        admission::{Owner, Permit},
        connection::Principal,
        protocol::Revision,
        spawn::spawn,
    },
    transport::http::{
        connection::RequestConnection,
        endpoint::Endpoint,
        headers::{HeaderField, ProtocolHeaders},
        http_error::{HttpError, method_not_allowed},
        replay::{Replay, StoredEvent, replay_cost, write_event_id},
        response_body::{ResponseBody, event_stream_response},
        sse::write_event,
    },
};

/// How long a standalone stream waits for its client to reconnect.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);
impl Sessions {
    /// Opens a standalone stream, or resumes the stream of `Last-Event-ID`.
    pub(super) async fn get(
        self: &Arc<Self>,
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
        let end = endpoint.stream_end(caller.as_ref(), endpoint.options.max_stream_age);
        let mut replayed = None;
        if let HeaderField::One(id) = headers.last_event {
            let event_id =
                id.to_str().ok().and_then(EventId::parse).ok_or_else(HttpError::unknown_event_id)?;
            let running = guard.data.streams().get(event_id.stream).cloned();
            if let Some(stream) = running {
                if event_id.kind == StreamKind::Standalone {
                    guard.data.standalone.set_caller(caller);
                }
                let unread = endpoint.budgets.outbound.clone();
                let received = event_id.number;
                let missed = stream.read_missed(&unread, &owner, received).await;
                let missed = missed.ok_or_else(HttpError::too_many_unread_bytes)?;
                let (sender, body) = EventSender::new(&unread, owner.clone(), Some(permit), end);
                spawn(async move {
                    stream.resume(&sender, missed, received, (&unread, &owner)).await;
                });
                return Ok(event_stream_response(body));
            }
            let logs = self.event_logs.as_ref();
            let log =
                logs.map(|logs| logs.log(&session.uid, event_id.stream, owner.clone(), session.expires));
            let read = match &log {
                Some(log) => log.read_after(event_id.number).await.map_err(|error| {
                    tracing::debug!(%error, "the events of a stream cannot be read");
                    HttpError::sessions_unavailable()
                })?,
                None => None,
            };
            let charge = |events: &[StoredEvent]| {
                let permit = endpoint.budgets.outbound.acquire_last(&owner, replay_cost(events));
                permit.ok_or_else(HttpError::too_many_unread_bytes)
            };
            match (event_id.kind, read, log) {
                (StreamKind::Call, None, _) | (StreamKind::Call, _, None) => {
                    return Err(HttpError::unknown_event_id());
                }
                // nothing to send: after an empty stream the client would reconnect once more
                (StreamKind::Call, Some(LoggedEvents { ended: true, events, .. }), _)
                    if events.iter().all(|event| event.message().is_empty()) =>
                {
                    return Ok(method_not_allowed("POST, DELETE"));
                }
                (
                    StreamKind::Call,
                    Some(LoggedEvents { ended: false, origin: Some(origin), .. }),
                    Some(log),
                ) if self.replicas.is_some() => {
                    let following = Following {
                        endpoint: endpoint.clone(),
                        uid: session.uid,
                        owner: owner.clone(),
                        stream: event_id.stream.into(),
                        log,
                        origin,
                        received: event_id.number,
                        has_empty_events: session.revision >= Revision::V2025_11_25,
                    };
                    let (sender, body) =
                        EventSender::new(&endpoint.budgets.outbound, owner, Some(permit), end);
                    let replicas = self.replicas.clone();
                    spawn(async move {
                        if let Some(replicas) = replicas {
                            // the session keeps its streams while one is open
                            replicas.follow(following, sender, guard.data.ended.clone()).await;
                        }
                    });
                    return Ok(event_stream_response(body));
                }
                (StreamKind::Call, Some(LoggedEvents { events, .. }), _) => {
                    let unread = charge(&events)?;
                    let replay = Replay::new(event_id.stream, events, unread, end);
                    return Ok(event_stream_response(
                        ResponseBody::from_replay(replay).holding(Some(permit)),
                    ));
                }
                // evicted events are lost, but more may follow
                (StreamKind::Standalone, read, _) => {
                    let mut events = read.map(|read| read.events).unwrap_or_default();
                    events.retain(|event| !event.message().is_empty());
                    let unread = charge(&events)?;
                    replayed = Some((event_id.stream.into(), events, unread));
                }
            }
        }
        let (sender, body) = EventSender::new(&endpoint.budgets.outbound, owner.clone(), Some(permit), end);
        let standalone =
            StandaloneStream::open(endpoint, self, guard, &session, StreamClaim { caller, owner });
        let standalone = standalone.ok_or_else(HttpError::too_many_streams)?;
        spawn(standalone.run(sender, replayed, session.expires));
        Ok(event_stream_response(body))
    }
}

/// The events that a client has missed of an earlier standalone stream of that name, which are sent first.
type ReplayedEvents = (Box<str>, Vec<StoredEvent>, Permit);

/// Who opens a standalone stream.
struct StreamClaim {
    caller: Option<Arc<Principal>>,
    owner: Owner,
}

/// A standalone stream.
struct StandaloneStream {
    endpoint: Arc<Endpoint>,
    owner: Owner,
    stream: Arc<ResumableStream>,
    /// Its number among the session's standalone streams.
    serial: u64,
}

impl StandaloneStream {
    /// `None` if the server has too many subscribers.
    fn open(
        endpoint: &Arc<Endpoint>,
        sessions: &Sessions,
        guard: SessionGuard<Arc<ResumableStream>>,
        session: &Session,
        StreamClaim { caller, owner }: StreamClaim,
    ) -> Option<Self> {
        endpoint.server.start_relay();
        let rules = endpoint.access_rules.clone();
        let data = guard.data.clone();
        let hub = guard.hub().clone();
        let Session { revision, expires, .. } = *session;
        let (logs, unread) = (sessions.stream_logs(), &endpoint.budgets.outbound);
        let stream = ResumableStream::new(StreamKind::Standalone, guard, (revision, expires), logs, unread)?;
        let subscriber = owner.clone();
        let subscribe = || hub.subscribe(data.filter().clone(), caller.clone(), rules.clone(), &subscriber);
        let serial = data.standalone.add(subscribe)?;
        data.standalone.set_caller(caller);
        Some(Self { endpoint: endpoint.clone(), stream, serial, owner })
    }

    /// Sends changes until the session ends, the server stops, or the client does not reconnect.
    async fn run(self, sender: EventSender, replayed: Option<ReplayedEvents>, expires: u64) {
        let stream = &self.stream;
        let _registration = stream.register();
        if let Some((name, events, mut permit)) = replayed {
            for event in events {
                let held = permit.split(replay_cost(std::slice::from_ref(&event)));
                if !sender.wait_for_capacity().await {
                    break;
                }
                let mut out = Vec::new();
                write_event_id(&mut out, &name, event.number);
                write_event(&mut out, event.message());
                sender.send(out, Some(held)).await;
            }
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
                () = sleep(Duration::from_secs(expires.saturating_sub(unix_time()))) => {}
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
            tokio::select! {
                biased;
                () = &mut end => return,
                change = poll_fn(|cx| data.standalone.poll(self.serial, cx)) => match change {
                    // a client that does not read delays this, but not beyond the end of its session
                    Some(change) => tokio::select! {
                        biased;
                        () = &mut end => return,
                        () = stream.send(change.notification(|_| {}), None, false) => {}
                    },
                    None => return,
                },
                () = stream.wait_for_retry() => stream.log_backlog().await,
                () = stream.wait_until_disconnected() => {}
                () = stream.changed.notified() => {}
                () = reconnect_timeout => return,
            }
        }
    }
}

impl Drop for StandaloneStream {
    fn drop(&mut self) {
        self.stream.session().standalone.remove(self.serial);
    }
}
