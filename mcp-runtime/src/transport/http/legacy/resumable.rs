//! An event stream of a session that outlives its HTTP responses: its events are numbered and logged, so that a client
//! whose connection broke can resume it.

use std::{future::poll_fn, sync::Arc, time::Duration};

use http::Response;
use tokio::sync::Notify;

use super::{
    event_id::{StreamKind, empty_event},
    event_log::{EventLog, EventLogs, MissedEvents, write_event_id},
    event_sender::EventSender,
    session_table::{SessionData, SessionGuard},
};
use crate::core::sync::{Mutex, MutexGuard};
use crate::{
    core::{
        admission::{Owner, Permit},
        connection::{Outbound, Receiver},
        dispatch::Calls,
        protocol::Revision,
        spawn::spawn,
    },
    transport::http::{
        call_response::drive_calls,
        endpoint::Endpoint,
        request_connection::RequestConnection,
        response_body::{ResponseBody, event_stream_response},
        sse::write_event,
    },
};

/// A session with resumable streams.
pub(super) type StreamSession = SessionData<Arc<ResumableStream>>;

/// One resumable stream.
pub(in crate::transport::http) struct ResumableStream {
    guard: SessionGuard<Arc<ResumableStream>>,
    pub(super) revision: Revision,
    /// Absent if events have no ids, so that the stream cannot be resumed.
    log: Option<EventLog>,
    state: Mutex<ResumableState>,
    /// Notified when a sender is attached, or is to be closed.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct ResumableState {
    /// The number of the last event, which is logged.
    last: u64,
    /// The response that currently carries the stream.
    sender: Option<EventSender>,
    /// The delay before the client reconnects, if the response is to be closed.
    closing: Option<Duration>,
    ended: bool,
}

impl ResumableStream {
    /// A new stream of a session that expires at that time; `None` if the operating system provides no randomness for its
    /// name. It cannot be resumed without logs.
    pub(super) fn new(
        kind: StreamKind,
        guard: SessionGuard<Arc<ResumableStream>>,
        (revision, expires): (Revision, u64),
        logs: Option<&Arc<EventLogs>>,
    ) -> Option<Arc<Self>> {
        let log = match logs {
            Some(logs) => Some(logs.new_log(kind, &guard.uid, guard.owner.clone(), expires)?),
            None => None,
        };
        Some(Arc::new(Self { guard, revision, log, state: Mutex::default(), changed: Notify::new() }))
    }

    fn state(&self) -> MutexGuard<'_, ResumableState> {
        self.state.lock()
    }

    pub(super) fn session(&self) -> &Arc<StreamSession> {
        &self.guard.data
    }

    /// Allows clients to resume the stream until the registration is dropped.
    pub(super) fn register(self: &Arc<Self>) -> StreamRegistration {
        if let Some(log) = &self.log {
            self.session().streams().insert(log.stream.clone(), self.clone());
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
        let Some(log) = &self.log else { return Vec::new() };
        empty_event(&log.stream, self.state().last, retry, self.revision)
    }

    /// The text of an event; empty if it has no message.
    fn write(&self, number: u64, message: &[u8]) -> Vec<u8> {
        if message.is_empty() {
            return Vec::new();
        }
        let mut out = Vec::with_capacity(message.len() + 64);
        if let Some(log) = &self.log {
            write_event_id(&mut out, &log.stream, number);
        }
        write_event(&mut out, message);
        out
    }

    /// Logs a message, and sends it as soon as the client keeps up; `held` is for what it has held so far.
    pub(super) async fn send(&self, message: Vec<u8>, held: Option<Permit>) {
        let (event, sender) = {
            // a client that resumes meanwhile gets it from the log, or as it is sent
            let mut state = self.state();
            state.last += 1;
            if let Some(log) = &self.log {
                log.append(state.last, &message);
            }
            (self.write(state.last, &message), state.sender.clone())
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
                sender.abandoned().await;
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

    /// Attaches a sender whose client has received the events up to number `received`, unless the stream has ended; the
    /// previous response ends. `false` if there are events that the client has not received yet.
    pub(super) fn attach(&self, sender: &EventSender, received: u64) -> bool {
        let mut state = self.state();
        if state.last > received {
            return false;
        }
        if !state.ended {
            state.sender = Some(sender.clone());
            drop(state);
            self.changed.notify_one();
        }
        true
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
            (state.sender.take(), state.closing.take())
        };
        let Some(sender) = sender else { return };
        if !retry_known {
            sender.put_short(self.empty_event(retry));
        }
    }

    /// Answers calls with this stream. The calls run, and their messages are stored, whether or not a client is
    /// connected.
    pub(in crate::transport::http) fn response(
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
        let (sender, body) = EventSender::new(&endpoint.budgets.outbound, connection.owner(), None, end);
        let registration = self.register();
        let retry_known = self.is_closing();
        sender.put_short(self.priming_event());
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

    /// The events after number `received`, and the number of the last one there is; `None` if their reader leaves too many
    /// bytes unread.
    pub(super) fn read_missed(&self, reader: &Outbound, received: u64) -> Option<(MissedEvents, u64)> {
        let log = self.log.as_ref()?;
        let (events, last) = {
            let state = self.state();
            (log.read_after(received).unwrap_or_default(), state.last)
        };
        Some((MissedEvents::new(&log.stream, events, reader)?, last))
    }

    /// Sends the events that a client has missed, and attaches its sender unless the stream has ended.
    pub(super) async fn resume(&self, sender: &EventSender, (mut missed, mut last): (MissedEvents, u64)) {
        // events that the log has evicted cannot be sent any more
        while missed.send(sender).await && !self.attach(sender, last) {
            // without room the response ends here, and the client comes back for the rest
            let Some(read) = self.read_missed(sender, last) else { return };
            (missed, last) = read;
        }
    }
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
                stream.send(message, held).await;
            }
        }
        if !is_last {
            // cancelled: a client that resumes must learn that the stream has ended
            if let Some(sender) = stream.sender() {
                sender.send(stream.empty_event(None), None).await;
            }
            stream.send(Vec::new(), None).await;
        }
    };
    tokio::select! {
        biased;
        () = messages => {}
        // a client that does not read delays this, but not beyond the end of its session
        () = session_ended.cancelled() => {}
    }
}

/// Allows clients to resume a stream; dropping it ends the stream.
pub(super) struct StreamRegistration(Arc<ResumableStream>);

impl Drop for StreamRegistration {
    fn drop(&mut self) {
        self.0.end();
        if let Some(log) = &self.0.log {
            let removed = self.0.session().streams().remove(&log.stream);
            drop(removed);
        }
    }
}
