//! Answers GET: opens a standalone stream, for messages that do not belong to a request, or resumes a stream whose
//! connection broke.
//!
//! See [listening for messages](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server).

use std::{future::poll_fn, sync::Arc, time::Duration};

use http::Response;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, sleep_until},
};

use super::{
    event_id::{EventId, StreamKind},
    event_log::{EventLog, LoggedEvents},
    event_sender::EventSender,
    other_replicas::Following,
    resumable::{ResumableStream, StreamSession},
    session_id::Session,
    session_table::SessionGuard,
    sessions::{Sessions, unix_time},
    shared_sessions::{CLAIM_AGAIN, Listening},
    standalone::StandaloneEvent,
};
use crate::{
    core::{
        admission::{Owner, Permit},
        changes::Hub,
        connection::Principal,
        protocol::Revision,
        spawn::spawn,
        store::StoreError,
    },
    transport::http::{
        endpoint::Endpoint,
        headers::{HeaderField, ProtocolHeaders},
        http_error::{HttpError, method_not_allowed},
        replay::{Replay, StoredEvent, replay_cost, write_event_id},
        request_connection::RequestConnection,
        response_body::{ResponseBody, event_stream_response},
        sse::{StreamDeadline, write_event},
    },
};

/// How long a standalone stream waits for its client to reconnect.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a stream whose session has its changes at another process asks whether that has a client.
const IDLE_CHECK: Duration = Duration::from_secs(15);
/// After a failure.
const CHECK_RETRY: Duration = Duration::from_secs(1);

/// A GET of a session, which may have one more stream.
struct Get<'g> {
    endpoint: &'g Arc<Endpoint>,
    session: Arc<Session>,
    guard: SessionGuard<Arc<ResumableStream>>,
    caller: Option<Arc<Principal>>,
    owner: Owner,
    permit: Permit,
    /// When its response ends.
    end: StreamDeadline,
}

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
        let get = Get { endpoint, session, guard, caller, owner, permit, end };
        let Some(id) = resumed else { return self.open_standalone(get, None).await };
        let running = get.guard.data.streams().get(id.stream).cloned();
        match (running, id.kind) {
            (Some(stream), _) => self.resume_running(get, id, stream).await,
            (None, StreamKind::Call) => self.resume_logged(get, id).await,
            (None, StreamKind::Standalone) => self.open_standalone(get, Some(id)).await,
        }
    }

    /// Resumes a stream that runs in this process.
    async fn resume_running(
        &self,
        get: Get<'_>,
        id: EventId<'_>,
        stream: Arc<ResumableStream>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let Get { endpoint, session, guard, caller, owner, permit, end } = get;
        if id.kind == StreamKind::Standalone {
            guard.data.standalone.set_caller(caller);
            self.claim_for_resumed(endpoint, &guard, &session, &owner).await?;
        }
        let unread = endpoint.budgets.outbound.clone();
        let missed = stream.read_missed(&unread, &owner, id.number).await;
        let missed = missed.ok_or_else(HttpError::too_many_unread_bytes)?;
        let (sender, body) = EventSender::new(&unread, owner.clone(), Some(permit), end);
        sender.send_now(id.priming_event(session.revision));
        let received = id.number;
        spawn(async move {
            stream.resume(&sender, missed, received, (&unread, &owner)).await;
        });
        Ok(event_stream_response(body))
    }

    /// Resumes the stream of a call that has ended, or that another replica runs: from its log.
    async fn resume_logged(
        &self,
        get: Get<'_>,
        id: EventId<'_>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let log = self.log_of(&get, &id).ok_or_else(HttpError::unknown_event_id)?;
        let read = log.read_after(id.number).await.map_err(|error| unreadable(&error))?;
        let read = read.ok_or_else(HttpError::unknown_event_id)?;
        let Get { endpoint, session, guard, owner, permit, end, .. } = get;
        let LoggedEvents { events, ended, origin, .. } = read;
        // nothing to send: after an empty stream the client would reconnect once more
        if ended && events.iter().all(|event| event.message().is_empty()) {
            return Ok(method_not_allowed("POST, DELETE"));
        }
        let first = id.priming_event(session.revision);
        if !ended && let (Some(origin), Some(replicas)) = (origin, self.replicas.clone()) {
            let following = Following {
                endpoint: endpoint.clone(),
                uid: session.uid,
                owner: owner.clone(),
                stream: id.stream.into(),
                log,
                origin,
                received: id.number,
                has_empty_events: session.revision >= Revision::V2025_11_25,
            };
            let (sender, body) = EventSender::new(&endpoint.budgets.outbound, owner, Some(permit), end);
            sender.send_now(first);
            spawn(async move {
                // the session keeps its streams while one is open
                replicas.follow(following, sender, guard.data.ended.clone()).await;
            });
            return Ok(event_stream_response(body));
        }
        let unread = endpoint.budgets.outbound.acquire_last(&owner, replay_cost(&events));
        let unread = unread.ok_or_else(HttpError::too_many_unread_bytes)?;
        let replay = Replay::new(id.stream, (first, events), unread, end);
        Ok(event_stream_response(ResponseBody::from_replay(replay).holding(Some(permit))))
    }

    /// Opens a standalone stream: a new one, or one in place of `resumed`, which this process does not have any more.
    async fn open_standalone(
        self: &Arc<Self>,
        get: Get<'_>,
        resumed: Option<EventId<'_>>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        // evicted events are lost, but more may follow
        let missed_of = resumed.as_ref().and_then(|id| Some((id, self.log_of(&get, id)?)));
        let Get { endpoint, session, guard, caller, owner, permit, end } = get;
        let (sender, body) = EventSender::new(&endpoint.budgets.outbound, owner.clone(), Some(permit), end);
        if let Some(id) = &resumed {
            sender.send_now(id.priming_event(session.revision));
        }
        let standalone =
            StandaloneStream::open(endpoint, self, guard, &session, StreamClaim { caller, owner });
        let standalone = standalone.ok_or_else(HttpError::too_many_streams)?;
        let data = standalone.stream.session();
        if let Some(replicas) = &self.replicas {
            replicas.claim_changes(data, standalone.listening(), missed_of.is_some()).await?;
        }
        let replayed = match missed_of {
            // after another replica has left the changes to this one
            Some((id, log)) => {
                let read = log.read_after(id.number).await.map_err(|error| unreadable(&error))?;
                let mut events = read.map(|read| read.events).unwrap_or_default();
                events.retain(|event| !event.message().is_empty());
                let permit = endpoint.budgets.outbound.acquire_last(&standalone.owner, replay_cost(&events));
                Some((id.stream.into(), events, permit.ok_or_else(HttpError::too_many_unread_bytes)?))
            }
            None => None,
        };
        spawn(standalone.run(sender, replayed));
        Ok(event_stream_response(body))
    }

    /// The log of a stream, if events are logged.
    fn log_of(&self, get: &Get<'_>, id: &EventId<'_>) -> Option<EventLog> {
        let logs = self.event_logs.as_ref()?;
        Some(logs.log(&get.session.uid, id.stream, get.owner.clone(), get.session.expires))
    }

    /// Has this process get the changes of a session whose standalone stream is resumed here, if another one has them.
    async fn claim_for_resumed(
        &self,
        endpoint: &Endpoint,
        guard: &SessionGuard<Arc<ResumableStream>>,
        session: &Session,
        owner: &Owner,
    ) -> Result<(), HttpError> {
        let Some(replicas) = &self.replicas else { return Ok(()) };
        subscribe_again(endpoint, &guard.data, guard.hub(), owner);
        let of = Listening { uid: &session.uid, expires: session.expires, owner };
        replicas.claim_changes(&guard.data, of, false).await
    }
}

/// Has the streams of a session get the changes again that another process had; `false` if the server has too many
/// subscribers.
fn subscribe_again(endpoint: &Endpoint, data: &StreamSession, hub: &Hub, owner: &Owner) -> bool {
    let rules = endpoint.access_rules.clone();
    data.standalone.subscribe_again(|caller| hub.subscribe(data.filter().clone(), caller, rules, owner))
}

/// The store of replicas cannot be read.
fn unreadable(error: &StoreError) -> HttpError {
    tracing::debug!(%error, "what replicas share cannot be read");
    HttpError::sessions_unavailable()
}

/// The events that a client has missed of an earlier standalone stream of that name, which are sent first.
type ReplayedEvents = (Box<str>, Vec<StoredEvent>, Permit);

/// The caller that opens a standalone stream, and its owner.
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
    sessions: Arc<Sessions>,
    /// When the session expires, in seconds since 1970.
    expires: u64,
}

impl StandaloneStream {
    /// `None` if the server has too many subscribers.
    fn open(
        endpoint: &Arc<Endpoint>,
        sessions: &Arc<Sessions>,
        guard: SessionGuard<Arc<ResumableStream>>,
        session: &Session,
        StreamClaim { caller, owner }: StreamClaim,
    ) -> Option<Self> {
        endpoint.server.join_replicas();
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
        Some(Self { endpoint: endpoint.clone(), stream, serial, owner, sessions: sessions.clone(), expires })
    }

    fn listening(&self) -> Listening<'_> {
        Listening { uid: self.stream.uid(), expires: self.expires, owner: &self.owner }
    }

    /// Finds out which process has the changes of the session; returns when to do it again.
    async fn check(&self) -> Instant {
        let data = self.stream.session();
        let hub = self.stream.hub();
        let subscribe = || subscribe_again(&self.endpoint, data, hub, &self.owner);
        let checked = match &self.sessions.replicas {
            Some(replicas) => replicas.check_changes(data, self.listening(), &subscribe).await,
            None => Ok(true),
        };
        match checked {
            Ok(true) => Instant::now() + CLAIM_AGAIN,
            Ok(false) => Instant::now() + IDLE_CHECK,
            Err(_) => Instant::now() + CHECK_RETRY,
        }
    }

    /// Sends what the client has missed, and changes until the session ends, the server stops, or the client does not
    /// reconnect.
    async fn run(self, sender: EventSender, replayed: Option<ReplayedEvents>) {
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
                () = sleep(Duration::from_secs(self.expires.saturating_sub(unix_time()))) => {}
            }
        });
        let mut check_at = self.sessions.replicas.is_some().then(|| Instant::now() + CLAIM_AGAIN);
        let mut waiting: Option<(Instant, Permit)> = None;
        loop {
            let sender = stream.sender();
            data.standalone.set_connected(self.serial, sender.is_some());
            match &sender {
                Some(_) => waiting = None,
                // another process collects the changes
                None if !data.standalone.is_subscribed() => return,
                None if waiting.is_some() => {}
                None => match self.endpoint.budgets.waiting.try_acquire(&self.owner, 1) {
                    Some(permit) => {
                        waiting = Some((Instant::now() + RECONNECT_TIMEOUT, permit));
                        if let Some(replicas) = self.sessions.replicas.clone()
                            && !data.standalone.is_connected()
                        {
                            let uid = *stream.uid();
                            spawn(async move { replicas.tell_idle(&uid).await });
                        }
                    }
                    None => return,
                },
            }
            let reconnect_timeout = async {
                match &waiting {
                    Some((deadline, _)) => sleep_until(*deadline).await,
                    None => std::future::pending().await,
                }
            };
            let next_check = async {
                match check_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let event = tokio::select! {
                biased;
                () = &mut end => return,
                event = poll_fn(|cx| data.standalone.poll(self.serial, cx)) => event,
                () = stream.wait_for_retry() => {
                    stream.log_backlog().await;
                    continue;
                }
                () = stream.wait_until_disconnected() => continue,
                () = stream.changed.notified() => continue,
                () = reconnect_timeout => return,
                () = next_check => StandaloneEvent::Check,
            };
            match event {
                // a client that does not read delays this, but not beyond the end of its session
                StandaloneEvent::Send(change) => tokio::select! {
                    biased;
                    () = &mut end => return,
                    () = async {
                        let logged = stream.log_message(change.notification(|_| {}), false).await;
                        // from there another process sends it
                        data.standalone.set_sent();
                        stream.send_logged(logged, None).await;
                    } => {}
                },
                StandaloneEvent::Check => tokio::select! {
                    biased;
                    () = &mut end => return,
                    next = self.check() => check_at = Some(next),
                },
                StandaloneEvent::End => return,
            }
        }
    }
}

impl Drop for StandaloneStream {
    fn drop(&mut self) {
        let data = self.stream.session();
        data.standalone.remove(self.serial);
        if let Some(replicas) = self.sessions.replicas.clone()
            && data.standalone.is_empty()
            && Handle::try_current().is_ok()
        {
            let (data, owner) = (data.clone(), self.owner.clone());
            let (uid, expires) = (*self.stream.uid(), self.expires);
            spawn(async move {
                replicas.leave_changes(&data, Listening { uid: &uid, expires, owner: &owner }).await;
            });
        }
    }
}
