//! An event stream of a session that outlives its HTTP responses: its events are numbered and logged, so that a client
//! whose connection broke can resume it, at another replica too where these share a store. While that is away, events
//! reach the client that is connected, and are logged later.

use std::{cmp::Ordering, collections::VecDeque, fmt, future::poll_fn, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Response;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use super::{
    event_id::StreamKind,
    event_log::{EventLog, EventLogs, Logged, decode},
    event_sender::EventSender,
    other_replicas::{FollowNews, Follower, OtherReplicas},
    session_id::SessionUid,
    session_table::{SessionData, SessionGuard},
};
use crate::core::sync::{Mutex, MutexGuard};
use crate::{
    core::{
        admission::{Owner, Permit, Shares},
        changes::Hub,
        connection::{Outbound, Receiver},
        dispatch::Calls,
        protocol::Revision,
        spawn::spawn,
    },
    transport::http::{
        call_response::drive_calls,
        endpoint::Endpoint,
        replay::{StoredEvent, replay_cost, write_event_id},
        request_connection::RequestConnection,
        response_body::{ResponseBody, event_stream_response},
        sse::write_event,
    },
};

/// A session with resumable streams.
pub(super) type StreamSession = SessionData<Arc<ResumableStream>>;

/// One resumable stream.
pub(super) struct ResumableStream {
    guard: SessionGuard<Arc<ResumableStream>>,
    name: Box<str>,
    pub(super) revision: Revision,
    /// Absent if events have no ids, so that the stream cannot be resumed.
    log: Option<EventLog>,
    /// Events that could not be logged yet, oldest first.
    backlog: Mutex<VecDeque<UnloggedEvent>>,
    unread: Arc<Shares>,
    /// Other replicas that clients may resume the stream at.
    replicas: Option<Arc<dyn OtherReplicas>>,
    state: Mutex<ResumableState>,
    /// Notified when a sender is attached, or is to be closed.
    pub(super) changed: Notify,
}

/// How long a replica follows a stream without asking for it again.
const FOLLOWED: Duration = Duration::from_secs(15);
/// Between attempts to log what could not be logged.
const LOG_RETRY: Duration = Duration::from_millis(500);
/// How many of them are made once the stream has ended.
const LOG_ATTEMPTS: usize = 120;

/// An event that is sent and not logged yet.
struct UnloggedEvent {
    number: u64,
    entry: Arc<[u8]>,
    _permit: Permit,
}

/// A message that is logged, and not sent yet.
pub(super) struct LoggedMessage {
    number: u64,
    event: Vec<u8>,
}

/// Creates streams that can be resumed.
#[derive(Clone)]
pub(super) struct StreamLogs {
    pub(super) logs: Arc<EventLogs>,
    pub(super) replicas: Option<Arc<dyn OtherReplicas>>,
}

#[derive(Default)]
struct ResumableState {
    /// The number of the last event.
    last: u64,
    /// The response that currently carries the stream.
    sender: Option<EventSender>,
    /// The last event that the client of the sender had received when it was attached: perhaps one that was logged, but had
    /// not been sent.
    received: u64,
    /// The delay before the client reconnects, if the response is to be closed.
    closing: Option<Duration>,
    ended: bool,
    /// Whether the first event that is sent has to be preceded by the one that a stream begins with.
    is_unprimed: bool,
    /// Whether the log misses events for good, so that the stream cannot be resumed any more.
    is_log_lost: bool,
    /// When to log again what could not be logged.
    retry_at: Option<Instant>,
    /// The last response of another replica that has carried the stream.
    follower: Option<Follower>,
    /// Until when it does, unless it asks again.
    followed_until: Option<Instant>,
}

impl ResumableState {
    /// The response of another replica that carries the stream, which it does not from now on.
    fn take_follower(&mut self) -> Option<Follower> {
        self.followed_until.take().and_then(|_| self.follower.clone())
    }

    /// Whether the client has resumed the stream elsewhere since it had this response.
    fn has_left(&self, response: &Follower) -> bool {
        match &self.follower {
            Some(last) if last.process == response.process => match response.number.cmp(&last.number) {
                Ordering::Less => true,
                Ordering::Equal => self.followed_until.is_none(),
                Ordering::Greater => false,
            },
            _ => false,
        }
    }
}

/// The outcome of attaching a sender.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AttachOutcome {
    Attached,
    /// There are events that its client has not received yet.
    Behind,
    /// The stream has ended.
    Ended,
}

impl ResumableStream {
    /// A new stream of a session that expires at that time; `None` if the operating system provides no randomness for its
    /// name. It cannot be resumed without logs.
    pub(super) fn new(
        kind: StreamKind,
        guard: SessionGuard<Arc<ResumableStream>>,
        (revision, expires): (Revision, u64),
        logs: Option<StreamLogs>,
        unread: &Arc<Shares>,
    ) -> Option<Arc<Self>> {
        let name = kind.random_name()?;
        let log = logs.as_ref().map(|logs| logs.logs.log(&guard.uid, &name, guard.owner.clone(), expires));
        Some(Arc::new(Self {
            guard,
            name,
            revision,
            log,
            backlog: Mutex::default(),
            unread: unread.clone(),
            replicas: logs.and_then(|logs| logs.replicas),
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, ResumableState> {
        self.state.lock()
    }

    pub(super) fn session(&self) -> &Arc<StreamSession> {
        &self.guard.data
    }

    pub(super) fn uid(&self) -> &SessionUid {
        &self.guard.uid
    }

    /// The hub that publishes the changes.
    pub(super) fn hub(&self) -> &Hub {
        self.guard.hub()
    }

    /// Allows clients to resume the stream until the registration is dropped.
    pub(super) fn register(self: &Arc<Self>) -> StreamRegistration {
        if self.log.is_some() {
            self.session().streams().insert(self.name.clone(), self.clone());
        }
        StreamRegistration(self.clone())
    }

    /// The event that a stream begins with, so that its client can resume before any other event.
    pub(super) fn priming_event(&self) -> Vec<u8> {
        let retry = self.state().closing;
        self.empty_event(retry)
    }

    /// An event without a message, with the id to resume from and the delay before the client reconnects.
    fn empty_event(&self, retry: Option<Duration>) -> Vec<u8> {
        if self.log.is_none() || self.revision < Revision::V2025_11_25 {
            return Vec::new();
        }
        let retry = retry.map_or_else(String::new, |retry| format!("retry: {}\n", retry.as_millis()));
        format!("id: {}.{}\n{retry}data: \n\n", self.name, self.state().last).into_bytes()
    }

    /// Appends an event.
    fn write(&self, out: &mut Vec<u8>, number: u64, message: &[u8]) {
        if message.is_empty() {
            return;
        }
        if self.log.is_some() {
            write_event_id(out, &self.name, number);
        }
        write_event(out, message);
    }

    /// Logs a message, and sends it as soon as the client keeps up; `held` is for what it has held so far.
    pub(super) async fn send(&self, message: Vec<u8>, held: Option<Permit>, last: bool) {
        let logged = self.log_message(message, last).await;
        self.send_logged(logged, held).await;
    }

    /// Logs a message, to be sent with [`send_logged`](Self::send_logged).
    pub(super) async fn log_message(&self, message: Vec<u8>, last: bool) -> LoggedMessage {
        let mut event = Vec::with_capacity(message.len() + 64);
        let number = self.state().last + 1;
        if std::mem::take(&mut self.state().is_unprimed) {
            event = self.priming_event();
        }
        self.write(&mut event, number, &message);
        // before it is sent, so that a client that has received it can resume after it
        self.log_event(number, &message, last).await;
        LoggedMessage { number, event }
    }

    /// Sends a message as soon as the client keeps up.
    pub(super) async fn send_logged(
        &self,
        LoggedMessage { number, event }: LoggedMessage,
        held: Option<Permit>,
    ) {
        let sender = {
            let mut state = self.state();
            state.last = number;
            state.sender.clone().filter(|_| number > state.received)
        };
        if let Some(sender) = sender
            && !sender.send(event, held).await
        {
            self.detach(&sender);
        }
        self.tell_follower(FollowNews::Appended).await;
    }

    /// Logs an event, or keeps it until that is possible.
    async fn log_event(&self, number: u64, message: &[u8], last: bool) {
        let Some(log) = self.log.as_ref().filter(|_| !self.state().is_log_lost) else { return };
        let entry = log.encode(message, last);
        if self.backlog.lock().is_empty() {
            match log.append(number, &entry).await {
                Ok(Logged::Stored) => return,
                Ok(Logged::Overtaken) => return self.lose_log(),
                Err(error) => tracing::debug!(%error, "an event cannot be logged yet"),
            }
        }
        match self.unread.acquire_last(&self.guard.owner, entry.len()) {
            Some(permit) => {
                self.state().retry_at.get_or_insert_with(|| Instant::now() + LOG_RETRY);
                self.backlog.lock().push_back(UnloggedEvent { number, entry, _permit: permit });
            }
            None => self.lose_log(),
        }
    }

    fn lose_log(&self) {
        tracing::debug!("a stream cannot be resumed any more, since its log misses events");
        {
            let mut state = self.state();
            (state.is_log_lost, state.retry_at) = (true, None);
        }
        self.backlog.lock().clear();
    }

    /// Waits until it is time to log what could not be logged; forever if there is nothing.
    pub(super) async fn wait_for_retry(&self) {
        let retry_at = self.state().retry_at;
        match retry_at {
            Some(retry_at) => sleep_until(retry_at).await,
            None => std::future::pending().await,
        }
    }

    /// Logs what could not be logged before.
    pub(super) async fn log_backlog(&self) {
        let Some(log) = &self.log else { return };
        self.state().retry_at = Some(Instant::now() + LOG_RETRY);
        loop {
            let oldest = self.backlog.lock().front().map(|event| (event.number, event.entry.clone()));
            let Some((number, entry)) = oldest else { break };
            match log.append(number, &entry).await {
                Ok(Logged::Stored) => drop(self.backlog.lock().pop_front()),
                Ok(Logged::Overtaken) => return self.lose_log(),
                Err(_) => return,
            }
        }
        self.state().retry_at = None;
        self.tell_follower(FollowNews::Appended).await;
    }

    /// Lets another replica follow the stream, whose client has resumed it there; the response here ends. `false` if the
    /// stream cannot be resumed any more.
    pub(super) fn follow(&self, follower: &Follower) -> bool {
        let previous = {
            let mut state = self.state();
            if state.ended || state.is_log_lost {
                return false;
            }
            // asked before that, and answered late
            if state.has_left(follower) {
                return true;
            }
            state.sender = None;
            let previous = state.take_follower();
            state.follower = Some(follower.clone());
            state.followed_until = Some(Instant::now() + FOLLOWED);
            previous
        };
        self.changed.notify_one();
        // of its own previous response, the process knows
        if let Some(previous) = previous.filter(|previous| previous.process != follower.process) {
            self.tell_later(previous, FollowNews::Replaced);
        }
        true
    }

    async fn tell_follower(&self, news: FollowNews) {
        let follower = {
            let state = self.state();
            let is_followed = state.followed_until.is_some_and(|until| until > Instant::now());
            if is_followed { state.follower.clone() } else { None }
        };
        if let (Some(follower), Some(replicas)) = (follower, &self.replicas) {
            // a replica that is not told finds out a little later
            replicas.tell_follower(&follower, &self.guard.uid, &self.name, news).await;
        }
    }

    fn tell_later(&self, follower: Follower, news: FollowNews) {
        let Some(replicas) = self.replicas.clone() else { return };
        let (uid, name) = (self.guard.uid, self.name.clone());
        spawn(async move { replicas.tell_follower(&follower, &uid, &name, news).await });
    }

    /// The response that currently carries the stream.
    pub(super) fn sender(&self) -> Option<EventSender> {
        self.state().sender.clone()
    }

    /// Waits until the client has disconnected; forever if it is not connected.
    pub(super) async fn wait_until_disconnected(&self) {
        match self.sender() {
            Some(sender) => {
                sender.wait_until_disconnected().await;
                self.detach(&sender);
            }
            None => std::future::pending().await,
        }
    }

    /// Removes a sender whose client has disconnected.
    pub(super) fn detach(&self, sender: &EventSender) {
        let mut state = self.state();
        if state.sender.as_ref().is_some_and(|current| current.is_same(sender)) {
            state.sender = None;
        }
    }

    /// Attaches a sender whose client has received the events up to number `received`; the previous response ends.
    pub(super) fn attach(&self, sender: &EventSender, received: u64) -> AttachOutcome {
        let mut state = self.state();
        if state.last > received {
            return AttachOutcome::Behind;
        }
        if state.ended {
            return AttachOutcome::Ended;
        }
        (state.sender, state.received) = (Some(sender.clone()), received);
        let follower = state.take_follower();
        drop(state);
        self.changed.notify_one();
        if let Some(follower) = follower {
            self.tell_later(follower, FollowNews::Replaced);
        }
        AttachOutcome::Attached
    }

    /// Requests that the response be closed; the client reconnects after `retry`.
    pub(super) fn close(&self, retry: Duration) {
        self.state().closing = Some(retry);
        self.changed.notify_one();
    }

    /// Whether the response is to be closed.
    pub(super) fn is_closing(&self) -> bool {
        self.state().closing.is_some()
    }

    /// Closes the response if a client is connected; `retry_known`: the client has been sent the delay already.
    fn close_response(&self, retry_known: bool) {
        let (sender, follower, retry) = {
            let mut state = self.state();
            (state.sender.take(), state.take_follower(), state.closing.take())
        };
        if let Some(follower) = follower {
            let retry = retry.map_or(0, |retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX));
            self.tell_later(follower, FollowNews::Closed { retry });
        }
        let Some(sender) = sender else { return };
        if !retry_known {
            sender.send_now(self.empty_event(retry));
        }
    }

    /// Answers calls with this stream. The calls run, and their messages are stored, whether or not a client is
    /// connected.
    pub(super) fn response(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        calls: Calls,
        connection: &RequestConnection,
    ) -> Response<ResponseBody> {
        // the calls go on when the response breaks off, and the client may resume the stream
        let mut end = endpoint.stream_end(connection.caller(), endpoint.options.max_stream_age);
        if self.log.is_some() {
            end = end.of_resumable(self.revision);
        }
        let (sender, mut body) = EventSender::new(&endpoint.budgets.outbound, connection.owner(), None, end);
        let registration = self.register();
        let mut retry_known = self.is_closing();
        let outbound = connection.outbound().clone();
        let shared = self.log.as_ref().filter(|log| log.is_shared());
        match shared {
            // another replica can answer a client that comes back once something is logged
            Some(log) => {
                log.set_requests(calls.open_ids());
                self.state().is_unprimed = true;
                retry_known = false;
                // clients wait in vain that have the head of a stream and no event to resume after
                if self.revision >= Revision::V2025_11_25 {
                    body.hold_head();
                }
            }
            None => sender.send_now(self.priming_event()),
        }
        self.attach(&sender, 0);
        spawn(store_messages(self.clone(), registration, Receiver::new(outbound.clone())));
        spawn(run_calls(endpoint.clone(), self.clone(), calls, outbound, connection.owner(), retry_known));
        event_stream_response(body)
    }

    /// Ends the stream; the response ends with the events that have been sent.
    fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.sender = None;
    }

    /// The events after number `received`, charged to their reader, and the number of the last one there is; `None` if the
    /// reader leaves too many bytes unread.
    pub(super) async fn read_missed(
        &self,
        unread: &Arc<Shares>,
        owner: &Owner,
        received: u64,
    ) -> Option<ChargedEvents> {
        let last = self.state().last;
        let read = match &self.log {
            Some(log) => log.read_after(received).await.ok().flatten(),
            None => None,
        };
        let mut events = read.map(|read| read.events).unwrap_or_default();
        let logged = events.last().map_or(received, |event| event.number);
        let backlog = self.backlog.lock();
        let unlogged = backlog.iter().filter(|event| event.number > logged);
        events.extend(unlogged.filter_map(|event| Some(decode(event.number, event.entry.clone())?.0)));
        drop(backlog);
        let permit = unread.acquire_last(owner, replay_cost(&events))?;
        Some(ChargedEvents { events, last, permit })
    }

    /// Sends the events that a client has missed, one after the other, and attaches its sender unless the stream has ended.
    pub(super) async fn resume(
        &self,
        sender: &EventSender,
        mut missed: ChargedEvents,
        mut received: u64,
        (unread, owner): (&Arc<Shares>, &Owner),
    ) {
        loop {
            let ChargedEvents { events, last, mut permit } = missed;
            for event in events {
                received = received.max(event.number);
                let held = permit.split(replay_cost(std::slice::from_ref(&event)));
                if !sender.wait_for_capacity().await {
                    return;
                }
                let mut out = Vec::new();
                self.write(&mut out, event.number, event.message());
                if !sender.send(out, Some(held)).await {
                    return;
                }
            }
            // events that the store has evicted cannot be sent any more
            received = received.max(last);
            if self.attach(sender, received) != AttachOutcome::Behind {
                return;
            }
            // without room the response ends here, and the client comes back for the rest
            missed = match self.read_missed(unread, owner, received).await {
                Some(missed) => missed,
                None => return,
            };
        }
    }
}

/// Events that a client has missed.
pub(super) struct ChargedEvents {
    events: Vec<StoredEvent>,
    /// The number of the stream's last event.
    last: u64,
    permit: Permit,
}

/// Drives the calls of a stream, whether or not a client reads it.
async fn run_calls(
    endpoint: Arc<Endpoint>,
    stream: Arc<ResumableStream>,
    mut calls: Calls,
    outbound: Arc<Outbound>,
    owner: Owner,
    mut retry_known: bool,
) {
    let mut detached = false;
    loop {
        let closing = stream.is_closing();
        if !detached && (closing || stream.sender().is_none()) {
            // calls without a client have a budget of their own
            detached = endpoint.budgets.detach(&mut calls, &owner);
            if !detached && stream.sender().is_none() {
                break;
            }
        }
        if closing && detached {
            stream.close_response(std::mem::take(&mut retry_known));
        }
        tokio::select! {
            biased;
            () = drive_calls(&endpoint, &mut calls, &outbound) => break,
            () = stream.wait_until_disconnected() => {}
            () = stream.changed.notified() => {}
        }
    }
    drop(calls);
    outbound.finish();
}

/// Stores the messages of calls, and sends them as fast as the client reads.
async fn store_messages(
    stream: Arc<ResumableStream>,
    registration: StreamRegistration,
    mut receiver: Receiver,
) {
    let _registration = registration;
    let session_ended = stream.session().ended.clone();
    let mut is_last = false;
    let messages = async {
        if stream.state().is_unprimed && receiver.is_empty() {
            // nothing is logged soon
            stream.state().is_unprimed = false;
            stream.send(Vec::new(), None, false).await;
            if let Some(sender) = stream.sender() {
                sender.send_now(stream.priming_event());
            }
        }
        loop {
            let taken = tokio::select! {
                biased;
                () = stream.wait_for_retry() => {
                    stream.log_backlog().await;
                    continue;
                }
                taken = poll_fn(|cx| receiver.poll(cx)) => taken,
            };
            let Some(mut taken) = taken else { break };
            while let Some((message, held)) = taken.pop() {
                is_last = taken.messages.is_empty() && receiver.is_finished();
                stream.send(message, held, is_last).await;
            }
        }
        if !is_last {
            // cancelled: a client that resumes must learn that the stream has ended
            if let Some(sender) = stream.sender() {
                sender.send(stream.empty_event(None), None).await;
            }
            stream.send(Vec::new(), None, true).await;
        }
        // the response ends, and the rest is for clients that come back
        stream.state().sender = None;
        for _ in 0..LOG_ATTEMPTS {
            if stream.backlog.lock().is_empty() {
                break;
            }
            sleep(LOG_RETRY).await;
            stream.log_backlog().await;
        }
    };
    tokio::select! {
        biased;
        () = messages => {}
        // a client that does not read delays this, but not beyond the end of its session
        () = session_ended.cancelled() => {}
    }
}

/// The key of a session in stores.
pub(super) fn store_key(uid: &SessionUid) -> Box<str> {
    URL_SAFE_NO_PAD.encode(uid).into()
}

impl fmt::Debug for ResumableStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumableStream").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Allows clients to resume a stream; dropping it ends the stream.
pub(super) struct StreamRegistration(Arc<ResumableStream>);

impl Drop for StreamRegistration {
    fn drop(&mut self) {
        self.0.end();
        let removed = self.0.session().streams().remove(&self.0.name);
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use hyper::body::Body as _;

    use super::*;
    use crate::{
        core::{admission::Quota, config::HttpOptions, server::Server},
        transport::http::{
            legacy::sessions::{Sessions, unix_time},
            sse::StreamDeadline,
        },
    };

    #[tokio::test]
    async fn a_client_that_resumes_after_an_event_was_logged_and_before_it_is_sent_gets_it_once() {
        let server = Server::builder("streams", "1").build().expect("a server");
        let sessions = Sessions::new(&server, &HttpOptions::default());
        let owner = Owner::local();
        let guard = sessions.table.open_stream([1; 16], &owner).expect("room");
        let unread = Shares::new(Quota::half(1 << 20));
        let expires = unix_time() + 60;
        let (kind, revision) = (StreamKind::Call, Revision::V2025_11_25);
        let stream = ResumableStream::new(kind, guard, (revision, expires), sessions.stream_logs(), &unread);
        let stream = stream.expect("a name");
        stream.send(b"1".to_vec(), None, false).await;
        let logged = stream.log_message(b"2".to_vec(), false).await;

        let end = StreamDeadline::new(std::future::pending());
        let (sender, mut body) = EventSender::new(&unread, owner.clone(), None, end);
        let missed = stream.read_missed(&unread, &owner, 1).await.expect("room");
        stream.resume(&sender, missed, 1, (&unread, &owner)).await;
        drop(sender);
        stream.send_logged(logged, None).await;
        stream.send(b"3".to_vec(), None, true).await;
        stream.end();

        let mut text = Vec::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            text.extend(frame.expect("a frame").into_data().expect("text"));
        }
        let text = String::from_utf8(text).expect("UTF-8");
        let messages: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(messages, ["2", "3"]);
    }
}
