//! An event stream of a session that outlives its HTTP responses: its events are numbered and stored, so that a client
//! whose connection broke can resume it.

use std::{fmt, future::poll_fn, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::Response;
use tokio::sync::Notify;

use super::{
    event_id::StreamKind,
    event_sender::EventSender,
    session_id::SessionUid,
    session_table::{SessionData, SessionGuard},
};
use crate::core::sync::{Mutex, MutexGuard};
use crate::{
    core::{
        admission::{Owner, Permit, Shares},
        connection::{Outbound, Receiver},
        dispatch::Calls,
        protocol::Revision,
        spawn::spawn,
        store::{EventStore, StoredEvent},
    },
    transport::http::{
        call_response::drive_calls,
        connection::RequestConnection,
        endpoint::Endpoint,
        replay::{replay_cost, write_event_id},
        response_body::{ResponseBody, event_stream_response},
        sse::write_event,
    },
};

/// A session with resumable streams.
pub(super) type StreamSession = SessionData<Arc<ResumableStream>>;

/// One resumable stream.
pub(super) struct ResumableStream {
    guard: SessionGuard<Arc<ResumableStream>>,
    /// The session's key in the event store.
    session_key: Box<str>,
    name: Box<str>,
    pub(super) revision: Revision,
    /// Absent if events have no ids, so that the stream cannot be resumed.
    store: Option<Arc<dyn EventStore>>,
    state: Mutex<ResumableState>,
    /// Notified when a sender is attached, or is to be closed.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct ResumableState {
    /// The number of the last event.
    last: u64,
    /// The response that currently carries the stream.
    sender: Option<EventSender>,
    /// The delay before the client reconnects, if the response is to be closed.
    closing: Option<Duration>,
    ended: bool,
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
    /// The stream of a request's calls; `None` if the operating system provides no randomness for its name.
    pub(super) fn for_calls(
        guard: SessionGuard<Arc<Self>>,
        revision: Revision,
        store: Arc<dyn EventStore>,
    ) -> Option<Arc<Self>> {
        Self::new(StreamKind::Call, guard, revision, Some(store))
    }

    /// A new stream; `None` if the operating system provides no randomness for its name.
    pub(super) fn new(
        kind: StreamKind,
        guard: SessionGuard<Arc<ResumableStream>>,
        revision: Revision,
        store: Option<Arc<dyn EventStore>>,
    ) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            session_key: store_key(&guard.uid),
            guard,
            name: kind.random_name()?,
            revision,
            store,
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

    /// Allows clients to resume the stream until the registration is dropped.
    pub(super) fn register(self: &Arc<Self>) -> StreamRegistration {
        if self.store.is_some() {
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
        if self.store.is_none() || self.revision < Revision::V2025_11_25 {
            return Vec::new();
        }
        let retry = retry.map_or_else(String::new, |retry| format!("retry: {}\n", retry.as_millis()));
        format!("id: {}.{}\n{retry}data: \n\n", self.name, self.state().last).into_bytes()
    }

    /// Appends an event.
    fn write(&self, out: &mut Vec<u8>, number: u64, message: &str) {
        if message.is_empty() {
            return;
        }
        if self.store.is_some() {
            write_event_id(out, &self.name, number);
        }
        write_event(out, message.as_bytes());
    }

    /// Stores a message, and sends it as soon as the client keeps up; `held` is for what it has held so far.
    pub(super) async fn send(&self, message: Vec<u8>, held: Option<Permit>, last: bool) {
        let Ok(message) = String::from_utf8(message) else { return };
        let number = self.state().last + 1;
        let mut event = Vec::with_capacity(message.len() + 64);
        self.write(&mut event, number, &message);
        if let Some(store) = &self.store {
            // before it is sent, so that a client that has received it can resume after it
            let event = StoredEvent::new(number, message, last).with_share(self.guard.owner.as_str().clone());
            store.append(&self.session_key, &self.name, event).await;
        }
        let sender = {
            let mut state = self.state();
            state.last = number;
            state.sender.clone()
        };
        if let Some(sender) = sender
            && !sender.send(event, held).await
        {
            self.detach(&sender);
        }
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
        state.sender = Some(sender.clone());
        drop(state);
        self.changed.notify_one();
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
        let (sender, retry) = {
            let mut state = self.state();
            let retry = state.closing.take();
            let Some(sender) = state.sender.take() else { return };
            (sender, retry)
        };
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
        let end = endpoint.stream_end(connection.caller(), endpoint.options.max_stream_age);
        let (sender, body) = EventSender::new(&endpoint.budgets.outbound, connection.owner(), None, end);
        let registration = self.register();
        let retry_known = self.is_closing();
        sender.send_now(self.priming_event());
        self.attach(&sender, 0);
        let outbound = connection.outbound().clone();
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
        let events = match &self.store {
            Some(store) => store.read(&self.session_key, &self.name, received).await.unwrap_or_default(),
            None => Vec::new(),
        };
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
                self.write(&mut out, event.number, &event.message);
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
        while let Some(mut taken) = poll_fn(|cx| receiver.poll(cx)).await {
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
    };
    tokio::select! {
        biased;
        () = messages => {}
        // a client that does not read delays this, but not beyond the end of its session
        () = session_ended.cancelled() => {}
    }
}

/// The key of a session in event stores.
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
