//! One connection over a byte stream, one message per line: lines are cut out of what has been read; requests that
//! complete immediately are answered in place; the others are scheduled, which decides how many run at once, which are
//! queued or refused as busy, and how they end when the connection does. Replies are written in the order in which
//! requests complete.
//!
//! See [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).

use std::{
    collections::VecDeque,
    ops::Range,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::{Context as TaskContext, Poll, Waker},
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;

use super::writer::{ConnectionWriter, OutputBuffer};
use crate::{
    admission::{Owner, Shares},
    blocking::CallPermit,
    connection::{ClientConnection, NOT_INITIALIZED, PendingResponse, RequestContext, SessionState},
    dispatch::{
        Batch, Calls, ConnectionState, ListenStream, OpenRequests, Registration, Reply, Request,
        RequestRevision, RunningRequest, StartedRequest, THE_CLIENT, encode, id_in_use, is_initialized,
        resolve_revision,
    },
    events::{Filter, ListChanges, Subscriber},
    jsonrpc::{JsonRpcMessage, MalformedMessage, ProtocolError, parse, parse_batch, write_error_response},
    protocol::Revision,
    server::Server,
    spawn::spawn_on,
    sync::{Mutex, MutexGuard},
};

/// Bytes of replies after which they are flushed even if more requests have been read already.
pub(crate) const FLUSH_SIZE: usize = 64 << 10;
/// How long calls may run after the input has ended, unless `drain` is set.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of one read, and the initial size of the buffer.
const READ_SIZE: usize = 64 << 10;
/// A buffer that a long line has grown beyond this size is freed once it is empty.
const MAX_KEPT: usize = 1 << 20;

/// One line, without its line ending.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its range in the buffer.
    Text(Range<usize>),
    /// The line exceeds the limit; the rest of it is discarded.
    TooLong,
}

/// A buffer that bytes are read into and lines are taken from, in place and with a limit on the length of a line.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// `start..end` has been read and not yet returned; it contains no line ending before `scanned`.
    start: usize,
    scanned: usize,
    end: usize,
    limit: usize,
    /// The bytes up to the next line ending belong to a line that exceeds the limit.
    skipping: bool,
}

impl LineBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: vec![0; READ_SIZE], start: 0, scanned: 0, end: 0, limit, skipping: false }
    }

    /// Space for the next bytes, never empty; [`advance`](Self::advance) makes those that were read part of the buffer.
    pub(crate) fn spare_capacity(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.scanned, self.end) = (0, 0, 0);
            if self.bytes.len() > MAX_KEPT {
                self.bytes = vec![0; READ_SIZE];
            }
        } else if self.bytes.len() - self.end < READ_SIZE / 4 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.scanned, self.end) = (self.scanned - self.start, self.end - self.start);
            self.start = 0;
            if self.end > self.bytes.len() / 2 {
                let larger = (self.bytes.len() * 2)
                    .min(self.limit.saturating_add(READ_SIZE))
                    .max(self.end + READ_SIZE / 2);
                self.bytes.resize(larger, 0);
            }
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    /// The text of a line.
    #[cfg(feature = "client")]
    pub(crate) fn text(&self, line: Range<usize>) -> &[u8] {
        self.bytes.get(line).unwrap_or_default()
    }

    /// Appends the first `bytes` bytes of the spare capacity.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.bytes.len());
    }

    /// The next complete line that has been read.
    pub(crate) fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', self.bytes.get(self.scanned..self.end)?) else {
                self.scanned = self.end;
                if self.skipping {
                    self.start = self.end;
                } else if self.end - self.start > self.limit {
                    self.start = self.end;
                    self.skipping = true;
                    return Some(Line::TooLong);
                }
                return None;
            };
            let (start, end) = (self.start, self.scanned + offset);
            self.start = end + 1;
            self.scanned = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if end - start > self.limit {
                return Some(Line::TooLong);
            }
            return Some(Line::Text(start..end));
        }
    }

    /// What follows the last line ending, once the stream has ended.
    pub(crate) fn last_line(&mut self) -> Option<Line> {
        let start = std::mem::replace(&mut self.start, self.end);
        if self.skipping || start == self.end { None } else { Some(Line::Text(start..self.end)) }
    }
}

/// The client of a connection, as its requests see it.
struct StreamClient {
    writer: Arc<ConnectionWriter>,
    state: Arc<ConnectionState>,
    /// The HTTP request that opened the connection, if one did.
    opening_request: Option<Arc<dyn ClientConnection>>,
}

impl ClientConnection for StreamClient {
    fn notify(&self, message: Vec<u8>) {
        self.writer.notify(message);
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        self.writer.deliver(message)
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        if self.state.closed.is_cancelled() {
            return Err("it has closed the connection");
        }
        if !self.state.initialized.load(Ordering::Acquire) {
            return Err(NOT_INITIALIZED);
        }
        self.state.pending.expect_response(THE_CLIENT)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.opening_request.as_deref()?.header(name)
    }

    fn transport(&self) -> Option<&'static str> {
        // the connection of HTTP+SSE is one of HTTP
        Some(self.opening_request.as_ref().map_or("pipe", |_| "tcp"))
    }

    fn session(&self) -> Option<&dyn SessionState> {
        Some(&*self.state)
    }
}

/// What a connection is created from.
pub(crate) struct ConnectionParts {
    pub(crate) server: Server,
    pub(crate) writer: Arc<ConnectionWriter>,
    pub(crate) runtime: Handle,
    /// The context of the client's requests; its `connection` is the HTTP request that opened this connection.
    pub(crate) context: RequestContext,
    /// The limit on requests that it shares with other connections, if there is one.
    pub(crate) requests: Option<SharedRequests>,
}

/// A limit on requests, and whose share of it a connection uses.
pub(crate) struct SharedRequests {
    pub(crate) permits: Arc<Shares>,
    pub(crate) owner: Owner,
}

/// The reading side of one connection.
pub(crate) struct StreamConnection {
    scheduler: Arc<RequestScheduler>,
    buffer: LineBuffer,
    /// The revision that `initialize` negotiated.
    handshake: Option<Revision>,
    legacy: RequestContext,
    modern: RequestContext,
    /// Set by `initialize`; the client is notified of these changes from its next message on.
    filter: Option<Arc<Filter>>,
    session: SessionTimer,
}

/// Records how long a connection was open.
struct SessionTimer {
    server: Server,
    transport: Option<&'static str>,
    opened: Instant,
    /// That of `initialize`.
    revision: Option<Revision>,
}

impl Drop for SessionTimer {
    fn drop(&mut self) {
        let revision = self.revision.unwrap_or(Revision::LATEST).as_str();
        self.server.telemetry().end_session(self.transport, revision, self.opened.elapsed());
    }
}

impl StreamConnection {
    pub(crate) fn new(parts: ConnectionParts) -> (Self, Arc<RequestScheduler>) {
        let ConnectionParts { server, writer, runtime, context, requests } = parts;
        let state = Arc::new(ConnectionState::default());
        let client = StreamClient {
            writer: writer.clone(),
            state: state.clone(),
            opening_request: context.connection.clone(),
        };
        let context = RequestContext { connection: Some(Arc::new(client)), ..context };
        let buffer = LineBuffer::new(server.options().stdio.max_line);
        let transport = context.connection.as_ref().and_then(|connection| connection.transport());
        let timer =
            SessionTimer { server: server.clone(), transport, opened: Instant::now(), revision: None };
        let scheduler = RequestScheduler::new(server, writer, runtime, state, requests);
        let connection = Self {
            scheduler: scheduler.clone(),
            buffer,
            handshake: None,
            legacy: context.clone(),
            modern: context,
            filter: None,
            session: timer,
        };
        (connection, scheduler)
    }

    /// Space for the next bytes, never empty; [`advance`](Self::advance) makes those that were read part of the input.
    pub(crate) fn spare_capacity(&mut self) -> &mut [u8] {
        self.buffer.spare_capacity()
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.buffer.advance(bytes);
    }

    /// Serves the next complete line that has been read; `false` if there is none.
    pub(crate) fn serve_line(&mut self, out: &mut OutputBuffer) -> bool {
        let Some(line) = self.buffer.next_line() else { return false };
        self.serve(line, out);
        true
    }

    /// Serves what follows the last line ending, once the input has ended.
    pub(crate) fn serve_last_line(&mut self, out: &mut OutputBuffer) {
        if let Some(line) = self.buffer.last_line() {
            self.serve(line, out);
        }
    }

    fn serve(&mut self, line: Line, out: &mut OutputBuffer) {
        match line {
            Line::Text(range) => {
                // `serve_text` borrows `self` mutably, so the text must not be borrowed from it
                let buffer = std::mem::take(&mut self.buffer.bytes);
                self.serve_text(buffer.get(range).unwrap_or_default(), out);
                self.buffer.bytes = buffer;
            }
            Line::TooLong => {
                let limit = self.scheduler.server.options().stdio.max_line;
                let error =
                    format!("the line is longer than {limit} bytes\nsend less at once, or raise `max_line`");
                self.refuse(None, &ProtocolError::invalid_request(error), out);
            }
        }
    }

    /// Serves one message.
    pub(crate) fn serve_text(&mut self, text: &[u8], out: &mut OutputBuffer) {
        match parse(text) {
            Ok(message) => self.receive_message(&message, text, out),
            Err(malformed) => self.receive_malformed(text, &malformed, out),
        }
    }

    fn receive_malformed(&mut self, text: &[u8], malformed: &MalformedMessage, out: &mut OutputBuffer) {
        if text.trim_ascii().is_empty() {
            return;
        }
        if self.handshake == Some(Revision::V2025_03_26)
            && let Some(members) = parse_batch(text)
        {
            return self.receive_batch(&Batch::parse(&members), text, out);
        }
        if !malformed.expects_response {
            tracing::debug!(error = %malformed.error, "a malformed notification was ignored");
        } else {
            self.refuse(malformed.id.as_deref(), &malformed.error, out);
        }
    }

    /// Writes an error, unless it has no id and the connection's revision requires one.
    fn refuse(&self, id: Option<&str>, error: &ProtocolError, out: &mut OutputBuffer) {
        if id.is_none() && self.handshake.is_some_and(|revision| revision < Revision::V2025_11_25) {
            tracing::warn!(error = %error, "a message could not be read");
            return;
        }
        let start = out.bytes.len();
        write_error_response(&mut out.bytes, id, error);
        out.end_line(start);
    }

    fn receive_message(&mut self, message: &JsonRpcMessage<'_>, text: &[u8], out: &mut OutputBuffer) {
        if message.is_response() {
            if !self.scheduler.open_requests().deliver_response(message) {
                tracing::debug!("a response that no request waits for was ignored");
            }
            return;
        }
        if let Some(filter) = self.filter.take() {
            self.subscribe_to_changes(filter, out);
        }
        let Some(id) = message.id() else { return self.scheduler.receive_notification(message) };
        let revision = match resolve_revision(message, self.handshake) {
            RequestRevision::Known(revision) => revision,
            RequestRevision::Unsupported(error) => return self.refuse(Some(id), &error, out),
            RequestRevision::Initialize => {
                let reply = self.initialize(message);
                return self.scheduler.write(&reply, id, Revision::LATEST_LEGACY, out);
            }
        };
        let context = if revision.is_modern() { &self.modern } else { &self.legacy };
        let Some(request) = Request::from_message(message, revision, context) else { return };
        if request.is_listen() {
            return self.listen(request, out);
        }
        // a ping checks whether the server is alive, so it is answered even if the server is busy
        let admission =
            if request.method == "ping" { Admission::Now } else { self.scheduler.admit(1, text.len()) };
        match admission {
            Admission::Now => match self.scheduler.start_request(request, &mut Vec::new()) {
                StartedRequest::Reply(reply) => self.scheduler.write(&reply, id, revision, out),
                StartedRequest::Running(running) => self.scheduler.spawn_request(running, revision),
            },
            Admission::Queue => {
                if !self.scheduler.queue(&[id], text, revision, context) {
                    self.refuse(Some(id), &id_in_use(id), out);
                }
            }
            refused => self.refuse(Some(id), &self.scheduler.refuse(refused, context), out),
        }
    }

    fn initialize(&mut self, message: &JsonRpcMessage<'_>) -> Reply {
        let server = &self.scheduler.server;
        let uncounted = (!self.legacy.counted).then(|| self.legacy.owner());
        let (reply, handshake) = server.initialize(message.params(), true, uncounted);
        if let Some(handshake) = handshake {
            self.handshake = Some(handshake.revision);
            self.session.revision = Some(handshake.revision);
            self.legacy.client = handshake.client;
            let changes = server.offers(handshake.revision).changes;
            if changes != ListChanges::default() {
                self.filter = self.scheduler.state.set_filter(server.hub().filter(changes));
            }
        }
        reply
    }

    /// Notifies the client of changes from now on; the reply to `initialize` must be sent before.
    fn subscribe_to_changes(&self, filter: Arc<Filter>, out: &mut OutputBuffer) {
        out.flush(&self.scheduler.writer);
        let RequestContext { caller, access_rules, .. } = &self.legacy;
        match self.scheduler.server.hub().subscribe(
            filter,
            caller.clone(),
            access_rules.clone(),
            &self.legacy.owner(),
        ) {
            Some(subscriber) => self.scheduler.notify_changes(subscriber),
            None => tracing::warn!(
                "a client is not notified of changes: too many subscribers\nraise `max_subscribers`"
            ),
        }
    }

    /// Opens a subscription, which does not count as a call in flight.
    fn listen(&self, request: Request<'_>, out: &mut OutputBuffer) {
        if self.scheduler.is_stopping() {
            let error = self.scheduler.refuse(Admission::Stopping, request.context);
            return self.refuse(Some(request.id), &error, out);
        }
        match self.scheduler.server.start_listen(request, Some(self.scheduler.open_requests())) {
            Ok((subscription, registration)) => {
                out.flush(&self.scheduler.writer);
                self.scheduler.spawn_subscription(subscription, registration);
            }
            Err(reply) => self.scheduler.write(&reply, request.id, request.revision, out),
        }
    }

    /// Serves an array of messages, which only 2025-03-26 has.
    fn receive_batch(&mut self, messages: &Batch<'_>, text: &[u8], out: &mut OutputBuffer) {
        let ids: Vec<&str> = messages.ids().collect();
        let refusal = match messages.check() {
            Err(error) => Some(error),
            Ok(()) => match self.scheduler.admit(ids.len(), text.len()) {
                Admission::Now => None,
                Admission::Queue => {
                    if self.scheduler.queue(&ids, text, Revision::V2025_03_26, &self.legacy) {
                        return;
                    }
                    None
                }
                refused => Some(self.scheduler.refuse(refused, &self.legacy)),
            },
        };
        let Some(error) = refusal else {
            if messages.contains_initialized() {
                self.scheduler.state.initialized.store(true, Ordering::Release);
            }
            let clients = Some(self.scheduler.open_requests());
            let batch = self.scheduler.server.start_batch(messages, &self.legacy, clients, &mut Vec::new());
            return self.scheduler.answer_batch(batch.calls, out);
        };
        if ids.is_empty() {
            return self.refuse(None, &error, out);
        }
        // this revision has no errors without an id, so each request gets one
        let replies: Vec<_> = ids.iter().map(|id| (Box::from(*id), Reply::from(error.clone()))).collect();
        self.scheduler.write_batch(&replies, out);
    }
}

/// Whether a message is served now, later or not at all.
#[derive(Clone, Copy)]
enum Admission {
    Now,
    Queue,
    Busy,
    Stopping,
}

/// The requests of one connection: those that run, those that are queued, and how each of them ends.
pub(crate) struct RequestScheduler {
    server: Server,
    writer: Arc<ConnectionWriter>,
    runtime: Handle,
    state: Arc<ConnectionState>,
    requests: Option<SharedRequests>,
    table: Mutex<SchedulerTable>,
    /// Notified when the last request has ended.
    idle: Notify,
    /// Fires when every request is dropped.
    aborted: CancellationToken,
}

#[derive(Default)]
struct SchedulerTable {
    /// Requests that run; those of a batch are counted individually.
    running: usize,
    /// Subscriptions that are open.
    streams: usize,
    queue: VecDeque<QueuedMessage>,
    queued_bytes: usize,
    stopping: bool,
    /// The task that notifies the client of changes.
    notifying: Option<tokio::task::AbortHandle>,
}

/// A message that waits until it can be served, as text.
struct QueuedMessage {
    text: Box<[u8]>,
    registrations: Vec<Registration>,
    revision: Revision,
    context: RequestContext,
}

impl RequestScheduler {
    /// A scheduler without requests; `requests` is the limit shared with other connections, if any.
    fn new(
        server: Server,
        writer: Arc<ConnectionWriter>,
        runtime: Handle,
        state: Arc<ConnectionState>,
        requests: Option<SharedRequests>,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            writer,
            runtime,
            state,
            requests,
            table: Mutex::default(),
            idle: Notify::new(),
            aborted: CancellationToken::default(),
        })
    }

    fn table(&self) -> MutexGuard<'_, SchedulerTable> {
        self.table.lock()
    }

    fn open_requests(&self) -> OpenRequests<'_> {
        OpenRequests { client: THE_CLIENT, in_flight: &self.state.in_flight, pending: &self.state.pending }
    }

    fn has_capacity(&self, table: &SchedulerTable, requests: usize) -> bool {
        let limit = self.server.options().limits.max_in_flight;
        // a batch that exceeds the limit is served as well, but alone
        let used = table.running + self.writer.unwritten_replies();
        used == 0 || used + requests <= limit
    }

    /// Decides about a message with this number of requests. Only the reader calls it, so the decision holds until it
    /// has been carried out.
    fn admit(&self, requests: usize, bytes: usize) -> Admission {
        let table = self.table();
        let options = self.server.options();
        if table.stopping {
            Admission::Stopping
        } else if table.queue.is_empty() && self.has_capacity(&table, requests) {
            Admission::Now
        } else if table.queue.len() < options.limits.max_queued
            && table.queued_bytes + bytes <= options.limits.max_queued_bytes
        {
            Admission::Queue
        } else {
            Admission::Busy
        }
    }

    fn is_stopping(&self) -> bool {
        self.table().stopping
    }

    /// The error for a message that is not served, which is recorded.
    fn refuse(&self, refused: Admission, context: &RequestContext) -> ProtocolError {
        let (reason, text) = match refused {
            Admission::Stopping => ("stopping", "the server is stopping"),
            _ => ("busy", "the server is busy\nsend the request again when others have been answered"),
        };
        self.server.record_refused_message(reason, context.caller.as_deref());
        ProtocolError::internal(text)
    }

    /// Serves a notification; messages of which every request has been cancelled leave the queue.
    fn receive_notification(&self, message: &JsonRpcMessage<'_>) {
        if is_initialized(message) {
            return self.state.initialized.store(true, Ordering::Release);
        }
        self.open_requests().handle_notification(message);
        let mut table = self.table();
        let SchedulerTable { queue, queued_bytes, .. } = &mut *table;
        queue.retain_mut(|queued| {
            let cancelled = queued.registrations.iter_mut().all(Registration::is_cancelled);
            *queued_bytes -= if cancelled { queued.text.len() } else { 0 };
            !cancelled
        });
    }

    /// Starts a request.
    fn start_request(&self, request: Request<'_>, registrations: &mut Vec<Registration>) -> StartedRequest {
        let Some(SharedRequests { permits, owner }) = &self.requests else {
            return self.server.start_request(request, Some(self.open_requests()), registrations);
        };
        let Some(permit) = permits.try_acquire(owner, 1) else {
            return StartedRequest::Reply(self.refuse(Admission::Busy, request.context).into());
        };
        match self.server.start_request(request, Some(self.open_requests()), registrations) {
            StartedRequest::Reply(reply) => StartedRequest::Reply(reply),
            StartedRequest::Running(mut running) => {
                running.pending.hold(CallPermit::Budget(permit));
                StartedRequest::Running(running)
            }
        }
    }

    /// Writes one reply as a line.
    fn write(&self, reply: &Reply, id: &str, revision: Revision, out: &mut OutputBuffer) {
        let start = out.bytes.len();
        encode(&mut out.bytes, reply, id, revision, self.server.identity());
        out.end_line(start);
    }

    /// Writes the replies to a batch as one line.
    fn write_batch(&self, replies: &[(Box<str>, Reply)], out: &mut OutputBuffer) {
        if replies.is_empty() {
            return;
        }
        let start = out.bytes.len();
        for (id, reply) in replies {
            out.bytes.push(if out.bytes.len() == start { b'[' } else { b',' });
            encode(&mut out.bytes, reply, id, Revision::V2025_03_26, self.server.identity());
        }
        out.bytes.push(b']');
        out.end_line(start);
    }

    /// Queues a message; `false` if one of its ids is in use.
    fn queue(
        self: &Arc<Self>,
        ids: &[&str],
        text: &[u8],
        revision: Revision,
        context: &RequestContext,
    ) -> bool {
        let register = |id: &&str| self.state.in_flight.register(THE_CLIENT, id);
        let Some(registrations) = ids.iter().map(register).collect() else { return false };
        {
            let mut table = self.table();
            table.queued_bytes += text.len();
            let context = context.clone();
            table.queue.push_back(QueuedMessage { text: text.into(), registrations, revision, context });
        }
        // a request may have ended since the decision to queue the message
        self.start_queued();
        true
    }

    /// Runs a request that did not complete immediately.
    fn spawn_request(self: &Arc<Self>, running: RunningRequest, revision: Revision) {
        self.table().running += 1;
        let (scheduler, id) = (Arc::clone(self), running.id.clone());
        spawn_on(&self.runtime, async move {
            let reply = tokio::select! {
                biased;
                () = scheduler.aborted.cancelled() => None,
                reply = running => reply,
            };
            let mut out = OutputBuffer::default();
            if let Some(reply) = reply {
                scheduler.write(&reply, &id, revision, &mut out);
            }
            scheduler.finish(1, out);
        });
    }

    /// Writes the replies to a batch, immediately if all of its requests have completed.
    fn answer_batch(self: &Arc<Self>, mut calls: Calls, out: &mut OutputBuffer) {
        if !calls.is_running() {
            return self.write_batch(&calls.take_replies(), out);
        }
        let count = calls.len();
        self.table().running += count;
        let scheduler = Arc::clone(self);
        spawn_on(&self.runtime, async move {
            let mut out = OutputBuffer::default();
            scheduler.complete_batch(calls, &mut out).await;
            scheduler.finish(count, out);
        });
    }

    /// Waits for the requests of a batch and writes their replies.
    async fn complete_batch(&self, mut calls: Calls, out: &mut OutputBuffer) {
        tokio::select! {
            biased;
            () = self.aborted.cancelled() => return,
            () = std::future::poll_fn(|cx| calls.poll(cx)) => {}
        }
        self.write_batch(&calls.take_replies(), out);
    }

    /// Starts queued messages while there is capacity.
    fn start_queued(self: &Arc<Self>) {
        loop {
            let queued = {
                let mut table = self.table();
                let requests = table.queue.front().map(|queued| queued.registrations.len());
                let Some(requests) = requests.filter(|requests| self.has_capacity(&table, *requests)) else {
                    return;
                };
                let Some(queued) = table.queue.pop_front() else { return };
                table.queued_bytes -= queued.text.len();
                table.running += requests;
                queued
            };
            let (scheduler, count) = (Arc::clone(self), queued.registrations.len());
            spawn_on(&self.runtime, async move {
                let mut out = OutputBuffer::default();
                scheduler.answer_queued(queued, &mut out).await;
                scheduler.finish(count, out);
            });
        }
    }

    async fn answer_queued(&self, queued: QueuedMessage, out: &mut OutputBuffer) {
        let QueuedMessage { text, mut registrations, revision, context } = queued;
        if let Some(members) = parse_batch(&text) {
            let (batch, open) = (Batch::parse(&members), Some(self.open_requests()));
            let started = self.server.start_batch(&batch, &context, open, &mut registrations);
            return self.complete_batch(started.calls, out).await;
        }
        // cancelled while it was queued
        if registrations.iter_mut().any(Registration::is_cancelled) {
            return;
        }
        let running = {
            let Ok(message) = parse(&text) else { return };
            let Some(request) = Request::from_message(&message, revision, &context) else { return };
            match self.start_request(request, &mut registrations) {
                StartedRequest::Reply(reply) => return self.write(&reply, request.id, revision, out),
                StartedRequest::Running(running) => running,
            }
        };
        let id = running.id.clone();
        tokio::select! {
            biased;
            () = self.aborted.cancelled() => {}
            reply = running => if let Some(reply) = reply {
                self.write(&reply, &id, revision, out);
            }
        }
    }

    /// Records that this number of requests has ended, with these replies.
    fn finish(self: &Arc<Self>, requests: usize, mut out: OutputBuffer) {
        // before the count: the connection is not idle while replies are unwritten
        out.flush(&self.writer);
        self.table().running -= requests;
        self.start_queued();
        self.wake_if_idle();
    }

    fn wake_if_idle(&self) {
        if self.is_idle() {
            self.idle.notify_waiters();
        }
    }

    fn is_idle(&self) -> bool {
        let table = self.table();
        table.running == 0 && table.streams == 0 && table.queue.is_empty()
    }

    /// Serves a subscription until the client or the server ends it; its acknowledgement is sent immediately.
    fn spawn_subscription(
        self: &Arc<Self>,
        mut subscription: ListenStream,
        registration: Option<Registration>,
    ) {
        let mut cx = TaskContext::from_waker(Waker::noop());
        if let Poll::Ready(Some(acknowledgement)) = subscription.poll_next(&mut cx) {
            self.writer.send_line(acknowledgement, 0);
        }
        self.table().streams += 1;
        let scheduler = Arc::clone(self);
        spawn_on(&self.runtime, async move {
            let cancelled = async {
                match registration {
                    Some(mut registration) => registration.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = scheduler.aborted.cancelled() => {}
                () = cancelled => {}
                () = scheduler.serve_subscription(&mut subscription) => {
                    // in this order: clients treat the reverse as a lost subscription
                    scheduler.writer.send_line(subscription.result(), 1);
                    scheduler.writer.send_line(subscription.cancelled_notification(), 0);
                }
            }
            scheduler.table().streams -= 1;
            scheduler.wake_if_idle();
        });
    }

    async fn serve_subscription(&self, subscription: &mut ListenStream) {
        let messages = async {
            loop {
                // changes that the client has not read yet are kept in the hub, each of them once
                self.writer.wait_until_caught_up().await;
                match std::future::poll_fn(|cx| subscription.poll_next(cx)).await {
                    Some(message) => self.writer.send_line(message, 0),
                    None => return,
                }
            }
        };
        tokio::select! {
            biased;
            () = self.state.closed.cancelled() => {}
            () = messages => {}
        }
    }

    /// Notifies a client of a legacy revision of changes.
    fn notify_changes(self: &Arc<Self>, mut subscriber: Subscriber) {
        let writer = self.writer.clone();
        let task = spawn_on(&self.runtime, async move {
            loop {
                writer.wait_until_caught_up().await;
                let change = std::future::poll_fn(|cx| subscriber.poll(cx)).await;
                writer.send_line(change.notification(|_| {}), 0);
            }
        });
        if let Some(previous) = self.table().notifying.replace(task.abort_handle()) {
            previous.abort();
        }
    }

    /// Refuses further requests, and lets requests to the client fail.
    fn stop(&self) {
        self.state.close();
        self.table().stopping = true;
    }

    /// Waits until no request runs or is queued.
    async fn wait_until_idle(&self) {
        loop {
            let mut idle = pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Runs the connection until `reader` has ended, its calls and `rest` have ended or `shutdown_timeout` has passed,
    /// and the replies are written.
    pub(crate) async fn supervise(
        self: Arc<Self>,
        reader: impl Future<Output = ()>,
        rest: impl Future<Output = ()>,
        shutdown_timeout: Duration,
    ) {
        let abort = AbortOnDrop(Arc::clone(&self));
        let writer = &self.writer;
        let mut scheduler = pin!(async {
            reader.await;
            self.stop();
            let finished = async {
                self.wait_until_idle().await;
                rest.await;
            };
            if timeout(shutdown_timeout, finished).await.is_err() {
                tracing::warn!(
                    "calls were still running {shutdown_timeout:?} after the end of the input and were stopped"
                );
            }
        });
        let mut closed = pin!(writer.wait_until_closed());
        loop {
            let mut shrunk = pin!(writer.backlog_shrunk());
            shrunk.as_mut().enable();
            // unread replies count as calls in flight, so queued requests may be waiting for them
            self.start_queued();
            tokio::select! {
                () = &mut scheduler => break,
                () = &mut closed => break,
                () = shrunk => {}
            }
        }
        drop(abort);
        if timeout(shutdown_timeout, writer.wait_until_flushed()).await.is_err() {
            tracing::warn!("the client did not read its last replies");
        }
    }
}

/// Stops every request of a connection when it is dropped.
struct AbortOnDrop(Arc<RequestScheduler>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        let scheduler = &self.0;
        scheduler.stop();
        scheduler.aborted.cancel();
        let (queue, notifying) = {
            let mut table = scheduler.table();
            table.queued_bytes = 0;
            (std::mem::take(&mut table.queue), table.notifying.take())
        };
        drop(queue);
        if let Some(task) = notifying {
            task.abort();
        }
        scheduler.idle.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits `input`, read in pieces of `step` bytes; a line over the limit is returned as `!`.
    fn split(input: &[u8], step: usize, limit: usize) -> Vec<String> {
        let mut lines = LineBuffer::new(limit);
        let mut out = Vec::new();
        let mut push = |lines: &LineBuffer, line: Line| match line {
            Line::Text(range) => out.push(String::from_utf8_lossy(&lines.bytes[range]).into_owned()),
            Line::TooLong => out.push("!".into()),
        };
        for mut piece in input.chunks(step) {
            while !piece.is_empty() {
                let space = lines.spare_capacity();
                let (read, rest) = piece.split_at(piece.len().min(space.len()));
                space[..read.len()].copy_from_slice(read);
                lines.advance(read.len());
                piece = rest;
                while let Some(line) = lines.next_line() {
                    push(&lines, line);
                }
            }
        }
        if let Some(line) = lines.last_line() {
            push(&lines, line);
        }
        out
    }

    #[test]
    fn lines_are_complete_however_their_bytes_arrive() {
        for step in [1, 2, 3, 7, 100] {
            assert_eq!(split(b"one\n\ntwo\r\nlast", step, 100), ["one", "", "two\r", "last"]);
        }
    }

    #[test]
    fn a_line_over_the_limit_is_reported_once_and_the_next_line_is_read() {
        for step in [1, 5, 64] {
            assert_eq!(
                split(b"0123456789abcdef\nok\n0123456789a\n0123456789\n", step, 10),
                ["!", "ok", "!", "0123456789"]
            );
        }
    }

    #[test]
    fn a_line_over_the_limit_is_not_buffered() {
        let mut lines = LineBuffer::new(1000);
        for _ in 0..1000 {
            let space = lines.spare_capacity();
            space.fill(b'x');
            let n = space.len();
            lines.advance(n);
            while lines.next_line().is_some() {}
            assert!(lines.bytes.len() <= 2 * READ_SIZE, "{}", lines.bytes.len());
        }
    }

    #[test]
    fn a_long_line_within_the_limit_is_read() {
        let long = "y".repeat(3 << 20);
        let input = format!("{long}\nz\n");
        assert_eq!(split(input.as_bytes(), 30_000, 4 << 20), [long.as_str(), "z"]);
    }
}
