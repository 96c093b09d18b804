//! The event streams of legacy revisions, which outlive their HTTP responses: calls go on without a client, and one whose
//! connection broke resumes the stream in the process that has it.

use std::{future::poll_fn, sync::Arc, time::Duration};

use http::Response;
use tokio::sync::watch;

use super::{
    event_id::{EventId, StreamKind},
    event_log::{EventLogs, KeptEvents, StreamKey},
    event_sender::EventSender,
    session_table::SessionData,
};
use crate::{
    core::{
        admission::{Owner, Permit},
        connection::{Outbound, Put, Receiver},
        dispatch::Calls,
        protocol::Revision,
        spawn::spawn,
        sync::{Mutex, MutexGuard},
    },
    transport::http::{
        call_response::drive_calls,
        endpoint::Endpoint,
        http_error::HttpError,
        request_connection::RequestConnection,
        response_body::{ResponseBody, event_stream_response},
        sse::COMMENT,
    },
};

/// A stream, as the responses that carry it see it.
pub(super) struct ResumableStream {
    /// The id before its first event; absent if events have no ids, so that the stream cannot be resumed.
    start: Option<EventId>,
    revision: Revision,
    state: Mutex<StreamState>,
    /// Notified when a response is attached or is to be closed.
    changed: watch::Sender<()>,
}

#[derive(Default)]
pub(super) struct StreamState {
    pub(super) kept: KeptEvents,
    /// The responses that carry the stream, in the order in which they were opened. Each event is sent to one of them: the
    /// newest whose client is connected. The others stay open, since clients that have several would reopen them at once.
    senders: Vec<EventSender>,
    /// The delay before the client reconnects, if the response is to be closed.
    closing: Option<Duration>,
    /// Whether the client has been sent that delay.
    retry_sent: bool,
    ended: bool,
}

impl ResumableStream {
    pub(super) fn new(start: Option<EventId>, revision: Revision) -> Self {
        Self { start, revision, state: Mutex::default(), changed: watch::Sender::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock()
    }

    /// Whether an event is one of this stream.
    pub(super) fn has(&self, id: &EventId) -> bool {
        self.start.is_some_and(|start| EventId { number: id.number, ..start } == *id)
    }

    /// The id of an event, as a field of the event.
    fn id_field(&self, number: u64) -> String {
        self.start.map_or_else(String::new, |start| format!("id: {}\n", EventId { number, ..start }))
    }

    /// An event without a message, with the id to resume from and the delay before the client reconnects. Empty for clients
    /// of earlier revisions, which read no empty events.
    fn empty_event(&self, number: u64, retry: Option<Duration>) -> Vec<u8> {
        if self.start.is_none() || self.revision < Revision::V2025_11_25 {
            return Vec::new();
        }
        let retry = retry.map_or_else(String::new, |retry| format!("retry: {}\n", retry.as_millis()));
        format!("{}{retry}data: \n\n", self.id_field(number)).into_bytes()
    }

    /// Attaches a response: it begins with the events after number `received`, or after the last one, and carries the stream
    /// from then on, unless the stream has ended. The first event is empty, so that its client can resume before any other.
    ///
    /// # Errors
    /// The client leaves too many bytes unread, or a call has ended and there is nothing to send.
    pub(super) fn attach(&self, sender: EventSender, received: Option<u64>) -> Result<(), HttpError> {
        let mut state = self.state();
        let received = received.unwrap_or(state.kept.last);
        sender.put_short(self.empty_event(received, state.closing));
        let mut is_last = state.ended && self.start.is_some_and(|start| start.kind == StreamKind::Call);
        for (number, event) in state.kept.after(received).filter(|(_, event)| !event.is_empty()) {
            if sender.put([self.id_field(number).as_bytes(), event].concat()) == Put::Full {
                return Err(HttpError::too_many_unread_bytes());
            }
            is_last = false;
        }
        if is_last {
            // after an empty stream the client would reconnect once more
            return Err(HttpError::method_not_allowed("POST, DELETE"));
        }
        if !state.ended {
            state.retry_sent = state.closing.is_some();
            state.senders.push(sender);
            self.changed.send_replace(());
        }
        Ok(())
    }

    /// Changes of the responses from now on.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The newest response whose client is connected.
    fn sender(&self) -> Option<EventSender> {
        self.state().senders.last().cloned()
    }

    pub(super) fn is_connected(&self) -> bool {
        !self.state().senders.is_empty()
    }

    /// Removes a response whose client has disconnected.
    fn detach(&self, sender: &EventSender) {
        self.state().senders.retain(|other| !other.is_same(sender));
    }

    /// Waits until the client of the newest response has disconnected, or the responses have changed.
    pub(super) async fn wait_for_change(&self, changes: &mut watch::Receiver<()>) {
        let disconnected = async {
            match self.sender() {
                Some(sender) => {
                    sender.abandoned().await;
                    self.detach(&sender);
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = disconnected => {}
            // the sender is not dropped before
            _ = changes.changed() => {}
        }
    }

    /// Waits until the newest response has room for an event, or there is none.
    pub(super) async fn wait_for_room(&self) {
        let mut changes = self.changes();
        while let Some(sender) = self.sender() {
            tokio::select! {
                biased;
                has_room = sender.wait_for_capacity() => match has_room {
                    true => return,
                    false => self.detach(&sender),
                },
                _ = changes.changed() => {}
            }
        }
    }

    /// Requests that the response be closed; the client reconnects after `retry`.
    pub(super) fn close(&self, retry: Duration) {
        self.state().closing = Some(retry);
        self.changed.send_replace(());
    }

    /// Whether the response is to be closed.
    pub(super) fn is_closing(&self) -> bool {
        self.state().closing.is_some()
    }

    /// Closes the responses.
    fn close_responses(&self) {
        let mut state = self.state();
        let (retry, is_sent) = (state.closing.take(), std::mem::take(&mut state.retry_sent));
        if let Some(sender) = state.senders.last().filter(|_| !is_sent) {
            sender.put_short(self.empty_event(state.kept.last, retry));
        }
        state.senders.clear();
        self.changed.send_replace(());
    }

    /// Whether it has events for clients that resume it.
    pub(super) fn keeps_events(&self) -> bool {
        !self.state().kept.is_empty()
    }

    /// Drops these events, and returns what they have cost, and whether the stream has ended.
    pub(super) fn drop_events(&self) -> (usize, bool) {
        let mut state = self.state();
        (state.kept.clear(), state.ended)
    }

    /// Ends the stream; its responses end with the events that have been sent.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.senders.clear();
    }
}

/// The server's end of a stream.
pub(in crate::transport::http) struct OpenStream {
    pub(super) stream: Arc<ResumableStream>,
    /// Absent without a session.
    session: Option<Arc<SessionData>>,
    /// Where its events are kept, if they are.
    log: Option<(Arc<EventLogs>, StreamKey)>,
}

impl OpenStream {
    /// A new stream, which can be resumed if it has a session and logs.
    pub(super) fn new(
        kind: StreamKind,
        session: Option<Arc<SessionData>>,
        logs: Option<&Arc<EventLogs>>,
        revision: Revision,
    ) -> Self {
        let log = session.as_ref().zip(logs).map(|(session, logs)| (logs.clone(), session.owner.clone()));
        let start = log.as_ref().map(|(logs, _)| logs.new_id(kind));
        let stream = Arc::new(ResumableStream::new(start, revision));
        let log = log.zip(start).map(|((logs, owner), start)| (logs, (owner, start.stream)));
        Self { stream, session, log }
    }

    pub(super) fn is_resumable(&self) -> bool {
        self.log.is_some()
    }

    /// The same stream, for the session itself to hold: clients may resume it.
    pub(super) fn of_session(mut self) -> Arc<Self> {
        self.register();
        self.session = None;
        Arc::new(self)
    }

    /// Allows clients to resume the stream until it [ends](Self::end), and after that as long as its events are kept.
    pub(super) fn register(&self) {
        if let (Some((logs, key)), Some(session)) = (&self.log, &self.session) {
            logs.lock().add(key, session.uid, self.stream.clone());
        }
    }

    /// Keeps an event and sends it, as soon as the client keeps up; `held` is for what it has held so far.
    pub(super) async fn send(&self, event: Vec<u8>, held: Option<Permit>) {
        self.stream.wait_for_room().await;
        let table = self.log.as_ref().map(|(logs, key)| (logs.lock(), key));
        // a client that resumes gets what is kept, or what is sent from then on
        let mut state = self.stream.state();
        if let Some((mut table, key)) = table {
            table.keep(key, &mut state.kept, &event);
        }
        if event.is_empty() {
            return;
        }
        let id = self.stream.id_field(state.kept.last);
        let event = if id.is_empty() { event } else { [id.as_bytes(), &event].concat() };
        if let Some(sender) = state.senders.last()
            && sender.put_held(event, held) != Put::Queued
        {
            state.senders.pop();
        }
    }

    /// Ends the stream.
    pub(super) fn end(&self) {
        let table = self.log.as_ref().map(|(logs, key)| (logs.lock(), key));
        self.stream.end();
        if let Some((mut table, key)) = table
            && !self.stream.keeps_events()
        {
            table.remove(key);
        }
    }

    /// Answers calls with this stream; the calls run whether or not a client is connected. `opening_comment`: nothing has
    /// been sent, so a comment has to open the stream.
    pub(in crate::transport::http) fn response(
        self: &Arc<Self>,
        endpoint: &Arc<Endpoint>,
        calls: Calls,
        connection: &RequestConnection,
        opening_comment: bool,
    ) -> Response<ResponseBody> {
        // the calls go on when the response breaks off, and the client may resume the stream
        let end = self.is_resumable().then(|| {
            let end = endpoint.stream_end(connection.caller(), endpoint.options.max_stream_age);
            end.of_resumable(self.stream.revision)
        });
        let (sender, body) = EventSender::new(&endpoint.budgets.outbound, connection.owner(), None, end);
        if opening_comment {
            sender.put_short(COMMENT.to_vec());
        }
        self.register();
        // a new stream has no events that could be too many
        let _attached = self.stream.attach(sender, None);
        let (open, endpoint, owner) = (self.clone(), endpoint.clone(), connection.owner());
        let outbound = connection.outbound().clone();
        spawn(async move {
            let messages = open.send_messages(Receiver::new(outbound.clone()));
            let served =
                async { tokio::join!(open.run_calls(&endpoint, calls, &outbound, &owner), messages) };
            let session_ended = async {
                match &open.session {
                    Some(session) => session.ended.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = served => {}
                // a client that does not read delays this, but not beyond the end of its session
                () = session_ended => {}
            }
            open.end();
        });
        event_stream_response(body)
    }

    /// Drives the calls of the stream, whether or not a client reads it.
    async fn run_calls(&self, endpoint: &Endpoint, mut calls: Calls, outbound: &Outbound, owner: &Owner) {
        let stream = &self.stream;
        let mut changes = stream.changes();
        let mut detached = false;
        loop {
            changes.mark_unchanged();
            let closing = stream.is_closing();
            if !detached && (closing || !stream.is_connected()) {
                // calls without a client have a budget of their own
                detached = endpoint.budgets.detach(&mut calls, owner);
                if !detached && !stream.is_connected() {
                    break;
                }
            }
            if closing && detached {
                stream.close_responses();
            }
            tokio::select! {
                biased;
                () = drive_calls(endpoint, &mut calls, outbound) => break,
                () = stream.wait_for_change(&mut changes) => {}
            }
        }
        drop(calls);
        outbound.finish();
    }

    /// Sends the messages of calls as fast as the client reads.
    async fn send_messages(&self, mut receiver: Receiver) {
        let mut is_last = false;
        while let Some(mut taken) = poll_fn(|cx| receiver.poll(cx)).await {
            while let Some((event, held)) = taken.pop() {
                is_last = taken.messages.is_empty() && receiver.is_finished();
                self.send(event, held).await;
            }
        }
        if !is_last {
            // cancelled: a client that resumes must learn that the stream has ended
            self.send(Vec::new(), None).await;
        }
    }
}
