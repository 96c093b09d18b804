//! One connection over a byte stream, one message per line: requests that complete immediately are answered in place,
//! the others run as tasks or wait in a bounded queue. The connection ends with its input, once its calls have ended or
//! the shutdown timeout has passed.
//!
//! See [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify, time::timeout};

use super::{
    line_buffer::{Line, LineBuffer},
    writer::{ConnectionWriter, OutputBuffer},
};
use crate::{
    admission::Budget,
    blocking::Permit,
    connection::{ClientConnection, PendingResponse, RequestContext, SessionState, Shutdown},
    dispatch::{
        Calls, Clients, ConnectionState, Era, Messages, Received, Registration, Reply, Request,
        RunningRequest, Subscribed, Subscription, THE_CLIENT, encode, era, start_batch,
    },
    events::{Filter, ListChanges, Subscriber},
    jsonrpc::{Malformed, Message, ProtocolError, batch, error_reply, parse},
    protocol::Revision,
    server::Server,
};

/// Bytes of replies after which they are flushed even if more requests have been read already.
pub(crate) const FLUSH_SIZE: usize = 64 << 10;
/// How long calls may run after the input has ended, unless `drain` is set.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

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

    fn expect(&self) -> Result<PendingResponse, &'static str> {
        if self.state.closed.has_fired() {
            return Err("it has closed the connection");
        }
        self.state.pending.expect(THE_CLIENT)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.opening_request.as_deref()?.header(name)
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
    /// The budget for requests of all connections, if they share one.
    pub(crate) requests: Option<Arc<Budget>>,
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
}

/// Whether a message is served now, later or not at all.
#[derive(Clone, Copy)]
enum Admission {
    Now,
    Queue,
    Busy,
    Stopping,
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
        let buffer = LineBuffer::new(server.options().max_line);
        let scheduler = Arc::new(RequestScheduler {
            server,
            writer,
            runtime,
            state,
            requests,
            table: Mutex::default(),
            idle: Notify::new(),
            aborted: Shutdown::default(),
        });
        let connection = Self {
            scheduler: scheduler.clone(),
            buffer,
            handshake: None,
            legacy: context.clone(),
            modern: context,
            filter: None,
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
                let limit = self.scheduler.server.options().max_line;
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

    fn receive_malformed(&mut self, text: &[u8], malformed: &Malformed, out: &mut OutputBuffer) {
        if text.trim_ascii().is_empty() {
            return;
        }
        if self.handshake == Some(Revision::V2025_03_26)
            && let Some(members) = batch(text)
        {
            return self.receive_batch(&Messages::read(&members), text, out);
        }
        if malformed.silent {
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
        error_reply(&mut out.bytes, id, error);
        out.end_line(start);
    }

    fn receive_message(&mut self, message: &Message<'_>, text: &[u8], out: &mut OutputBuffer) {
        if message.is_response() {
            if !self.scheduler.clients().response(message) {
                tracing::debug!("a response that no request waits for was ignored");
            }
            return;
        }
        if let Some(filter) = self.filter.take() {
            self.subscribe_to_changes(filter, out);
        }
        let Some(id) = message.id() else { return self.scheduler.receive_notification(message) };
        let revision = match era(message, self.handshake) {
            Era::Of(revision) => revision,
            Era::Refused(error) => return self.refuse(Some(id), &error, out),
            Era::Initialize => {
                let reply = self.initialize(message);
                return self.scheduler.write(&reply, id, Revision::LATEST_LEGACY, out);
            }
        };
        let context = if revision.is_modern() { &self.modern } else { &self.legacy };
        let Some(request) = Request::of(message, revision, context) else { return };
        if request.is_listen() {
            return self.listen(request, out);
        }
        // a ping checks whether the server is alive, so it is answered even if the server is busy
        let admission =
            if request.method == "ping" { Admission::Now } else { self.scheduler.admit(1, text.len()) };
        match admission {
            Admission::Now => match self.scheduler.receive(request, &mut Vec::new()) {
                Received::Reply(reply) => self.scheduler.write(&reply, id, revision, out),
                Received::Running(running) => self.scheduler.spawn_request(running, revision),
            },
            Admission::Queue => {
                if !self.scheduler.queue(&[id], text, revision, context) {
                    let error = format!("the id {id} belongs to a request that still runs");
                    self.refuse(Some(id), &ProtocolError::invalid_request(error), out);
                }
            }
            refused => self.refuse(Some(id), &refused.error(), out),
        }
    }

    fn initialize(&mut self, message: &Message<'_>) -> Reply {
        let server = &self.scheduler.server;
        let (reply, handshake) = server.initialize(message.params(), true);
        if let Some(handshake) = handshake {
            self.handshake = Some(handshake.revision);
            self.legacy.client = handshake.client;
            let changes = server.offers(handshake.revision).changes;
            if changes != ListChanges::default() {
                self.filter = self.scheduler.state.follow(server.hub().filter(changes));
            }
        }
        reply
    }

    /// Notifies the client of changes from now on; the reply to `initialize` must be sent before.
    fn subscribe_to_changes(&self, filter: Arc<Filter>, out: &mut OutputBuffer) {
        out.flush(&self.scheduler.writer);
        let RequestContext { caller, authenticated, .. } = &self.legacy;
        match self.scheduler.server.hub().follow(filter, caller.clone(), *authenticated) {
            Some(subscriber) => self.scheduler.notify_changes(subscriber),
            None => tracing::warn!(
                "a client is not notified of changes: too many subscribers\nraise `max_subscribers`"
            ),
        }
    }

    /// Opens a subscription, which does not count as a call in flight.
    fn listen(&self, request: Request<'_>, out: &mut OutputBuffer) {
        if self.scheduler.is_stopping() {
            return self.refuse(Some(request.id), &Admission::Stopping.error(), out);
        }
        match self.scheduler.server.receive_listen(request, Some(self.scheduler.clients())) {
            Subscribed::Stream(subscription, registration) => {
                out.flush(&self.scheduler.writer);
                self.scheduler.spawn_subscription(subscription, registration);
            }
            Subscribed::Refused(reply) => self.scheduler.write(&reply, request.id, request.revision, out),
        }
    }

    /// Serves an array of messages, which only 2025-03-26 has.
    fn receive_batch(&mut self, messages: &Messages<'_>, text: &[u8], out: &mut OutputBuffer) {
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
                refused => Some(refused.error()),
            },
        };
        let Some(error) = refusal else {
            let clients = Some(self.scheduler.clients());
            let batch = start_batch(&self.scheduler.server, messages, &self.legacy, clients, &mut Vec::new());
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

impl Admission {
    fn error(self) -> ProtocolError {
        ProtocolError::internal(match self {
            Self::Stopping => "the server is stopping",
            _ => "the server is busy\nsend the request again when others have been answered",
        })
    }
}

/// The requests of one connection: those that run, those that are queued, and how each of them ends.
pub(crate) struct RequestScheduler {
    server: Server,
    writer: Arc<ConnectionWriter>,
    runtime: Handle,
    state: Arc<ConnectionState>,
    requests: Option<Arc<Budget>>,
    table: Mutex<SchedulerTable>,
    /// Notified when the last request has ended.
    idle: Notify,
    /// Fires when every request is dropped.
    aborted: Shutdown,
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
    fn table(&self) -> MutexGuard<'_, SchedulerTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clients(&self) -> Clients<'_> {
        Clients { client: THE_CLIENT, in_flight: &self.state.in_flight, pending: &self.state.pending }
    }

    fn has_capacity(&self, table: &SchedulerTable, requests: usize) -> bool {
        let limit = self.server.options().max_in_flight;
        // a batch that exceeds the limit is served as well, but alone
        let used = table.running + self.writer.unwritten_replies();
        used == 0 || used + requests <= limit
    }

    /// Decides about a message with this number of requests. Only the reader calls it, so the decision holds until it has
    /// been carried out.
    fn admit(&self, requests: usize, bytes: usize) -> Admission {
        let table = self.table();
        let options = self.server.options();
        if table.stopping {
            Admission::Stopping
        } else if table.queue.is_empty() && self.has_capacity(&table, requests) {
            Admission::Now
        } else if table.queue.len() < options.max_queued
            && table.queued_bytes + bytes <= options.max_queued_bytes
        {
            Admission::Queue
        } else {
            Admission::Busy
        }
    }

    fn is_stopping(&self) -> bool {
        self.table().stopping
    }

    /// Serves a notification; messages of which every request has been cancelled leave the queue.
    fn receive_notification(&self, message: &Message<'_>) {
        self.clients().notification(message);
        let mut table = self.table();
        let SchedulerTable { queue, queued_bytes, .. } = &mut *table;
        queue.retain_mut(|queued| {
            let cancelled = queued.registrations.iter_mut().all(Registration::is_cancelled);
            *queued_bytes -= if cancelled { queued.text.len() } else { 0 };
            !cancelled
        });
    }

    /// Starts a request.
    fn receive(&self, request: Request<'_>, registrations: &mut Vec<Registration>) -> Received {
        let Some(budget) = &self.requests else {
            return self.server.receive(request, Some(self.clients()), registrations);
        };
        let Some(permit) = budget.try_acquire(1) else {
            return Received::Reply(Admission::Busy.error().into());
        };
        match self.server.receive(request, Some(self.clients()), registrations) {
            Received::Reply(reply) => Received::Reply(reply),
            Received::Running(mut running) => {
                running.pending.hold(Permit::Budget(permit));
                Received::Running(running)
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
        self.runtime.spawn(async move {
            let reply = tokio::select! {
                biased;
                () = scheduler.aborted.fired() => None,
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
        let count = calls.members.len();
        self.table().running += count;
        let scheduler = Arc::clone(self);
        self.runtime.spawn(async move {
            let mut out = OutputBuffer::default();
            scheduler.complete_batch(calls, &mut out).await;
            scheduler.finish(count, out);
        });
    }

    /// Waits for the requests of a batch and writes their replies.
    async fn complete_batch(&self, mut calls: Calls, out: &mut OutputBuffer) {
        tokio::select! {
            biased;
            () = self.aborted.fired() => return,
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
            self.runtime.spawn(async move {
                let mut out = OutputBuffer::default();
                scheduler.answer_queued(queued, &mut out).await;
                scheduler.finish(count, out);
            });
        }
    }

    async fn answer_queued(&self, queued: QueuedMessage, out: &mut OutputBuffer) {
        let QueuedMessage { text, mut registrations, revision, context } = queued;
        if let Some(members) = batch(&text) {
            let (messages, clients) = (Messages::read(&members), Some(self.clients()));
            let batch = start_batch(&self.server, &messages, &context, clients, &mut registrations);
            return self.complete_batch(batch.calls, out).await;
        }
        // cancelled while it was queued
        if registrations.iter_mut().any(Registration::is_cancelled) {
            return;
        }
        let running = {
            let Ok(message) = parse(&text) else { return };
            let Some(request) = Request::of(&message, revision, &context) else { return };
            match self.receive(request, &mut registrations) {
                Received::Reply(reply) => return self.write(&reply, request.id, revision, out),
                Received::Running(running) => running,
            }
        };
        let id = running.id.clone();
        tokio::select! {
            biased;
            () = self.aborted.fired() => {}
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
        mut subscription: Subscription,
        registration: Option<Registration>,
    ) {
        let mut cx = TaskContext::from_waker(Waker::noop());
        if let Poll::Ready(Some(acknowledgement)) = subscription.poll_next(&mut cx) {
            self.writer.send_line(acknowledgement, 0);
        }
        self.table().streams += 1;
        let scheduler = Arc::clone(self);
        self.runtime.spawn(async move {
            let cancelled = async {
                match registration {
                    Some(mut registration) => registration.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = scheduler.aborted.fired() => {}
                () = cancelled => {}
                () = scheduler.serve_subscription(&mut subscription) => {
                    // in this order: clients treat the reverse as a lost subscription
                    scheduler.writer.send_line(subscription.result(), 1);
                    scheduler.writer.send_line(subscription.cancelled(), 0);
                }
            }
            scheduler.table().streams -= 1;
            scheduler.wake_if_idle();
        });
    }

    async fn serve_subscription(&self, subscription: &mut Subscription) {
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
            () = self.state.closed.fired() => {}
            () = messages => {}
        }
    }

    /// Notifies a client of a legacy revision of changes.
    fn notify_changes(self: &Arc<Self>, mut subscriber: Subscriber) {
        let writer = self.writer.clone();
        let task = self.runtime.spawn(async move {
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
        self.state.end();
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

    /// Runs the connection until `reader` has ended, its calls and `rest` have ended or `shutdown_timeout` has passed, and
    /// the replies are written.
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
        scheduler.aborted.fire();
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
