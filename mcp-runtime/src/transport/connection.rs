//! One connection over bytes, a line a message: cuts what is read into lines, serves in place what is ready at once,
//! and looks after the calls that are not. The readers of stdio and of streams feed it, and so does HTTP+SSE.
//!
//! See [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).

use std::{
    collections::VecDeque,
    ops::Range,
    pin::pin,
    sync::Arc,
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify, time::timeout};

use super::writer::{Lines, Writer};
use crate::{
    admission::Budget,
    blocking::CallPermit,
    connection::{ClientConnection, PendingResponse, RequestContext, SessionState, Shutdown},
    dispatch::{
        Batch, Calls, ConnectionState, ListenStream, MethodReply, OpenRequests, Registration, Request,
        RequestRevision, RunningRequest, StartedRequest, THE_CLIENT, encode, id_in_use, resolve_revision,
    },
    events::{Filter, ListChanges, Subscriber},
    jsonrpc::{JsonRpcMessage, MalformedMessage, ProtocolError, parse, parse_batch, write_error_response},
    protocol::Revision,
    server::Server,
    sync::Mutex,
};

/// Bytes of replies that go out even though more requests are at hand.
pub(crate) const BURST: usize = 64 << 10;

/// The server's view of the client.
struct StreamClient {
    writer: Arc<Writer>,
    state: Arc<ConnectionState>,
    /// What the request that opened the connection was, where a connection has one.
    opened_by: Option<Arc<dyn ClientConnection>>,
}

impl ClientConnection for StreamClient {
    fn notify(&self, message: Vec<u8>) {
        self.writer.notify(message);
    }

    fn deliver(&self, message: Vec<u8>) -> Result<(), &'static str> {
        self.writer.deliver(message)
    }

    fn expect_response(&self) -> Result<PendingResponse, &'static str> {
        if self.state.closed.has_fired() {
            return Err("it has closed the connection");
        }
        self.state.pending.expect_response(THE_CLIENT)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.opened_by.as_deref()?.header(name)
    }

    fn session(&self) -> Option<&dyn SessionState> {
        Some(&*self.state)
    }
}

/// What a connection begins with.
pub(crate) struct Opening {
    pub(crate) server: Server,
    pub(crate) writer: Arc<Writer>,
    pub(crate) runtime: Handle,
    /// Who is at the other end; its `connection` is the request that opened this one.
    pub(crate) context: RequestContext,
    /// Requests of all connections together, where they are bounded.
    pub(crate) requests: Option<Arc<Budget>>,
}

/// The reader's side of one connection.
pub(crate) struct StreamConnection {
    work: Arc<Work>,
    buffer: Buffer,
    /// What `initialize` settled.
    handshake: Option<Revision>,
    legacy: RequestContext,
    modern: RequestContext,
    /// What a client that has shaken hands is notified of, until it shows that it has the reply.
    filter: Option<Arc<Filter>>,
}

/// Where the replies to one message go.
#[derive(Clone, Copy)]
enum Admission {
    Now,
    Queue,
    Busy,
    Stopping,
}

impl StreamConnection {
    pub(crate) fn new(opening: Opening) -> (Self, Arc<Work>) {
        let Opening { server, writer, runtime, context, requests } = opening;
        let state = Arc::new(ConnectionState::default());
        let client = StreamClient {
            writer: writer.clone(),
            state: state.clone(),
            opened_by: context.connection.clone(),
        };
        let context = RequestContext { connection: Some(Arc::new(client)), ..context };
        let buffer = Buffer::new(server.options().max_line);
        let work = Arc::new(Work {
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
            work: work.clone(),
            buffer,
            handshake: None,
            legacy: context.clone(),
            modern: context,
            filter: None,
        };
        (connection, work)
    }

    /// Where the next bytes go; never empty. Tell [`filled`](Self::filled) how many came.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        self.buffer.space()
    }

    pub(crate) fn filled(&mut self, bytes: usize) {
        self.buffer.filled(bytes);
    }

    /// Serves the next whole line that has been read; `false` if there is none.
    pub(crate) fn serve_line(&mut self, out: &mut Lines) -> bool {
        let Some(line) = self.buffer.next() else { return false };
        self.serve(line, out);
        true
    }

    /// Serves what stands after the last line end, once the input has ended.
    pub(crate) fn serve_rest(&mut self, out: &mut Lines) {
        if let Some(line) = self.buffer.rest() {
            self.serve(line, out);
        }
    }

    fn serve(&mut self, line: Line, out: &mut Lines) {
        match line {
            Line::Text(range) => {
                // the text must not be borrowed from what serves it
                let buffer = std::mem::take(&mut self.buffer.bytes);
                self.serve_text(buffer.get(range).unwrap_or_default(), out);
                self.buffer.bytes = buffer;
            }
            Line::TooLong => {
                let limit = self.work.server.options().max_line;
                let error =
                    format!("the line is longer than {limit} bytes\nsend less at once, or raise `max_line`");
                self.refuse(None, &ProtocolError::invalid_request(error), out);
            }
        }
    }

    /// Serves one message.
    pub(crate) fn serve_text(&mut self, text: &[u8], out: &mut Lines) {
        match parse(text) {
            Ok(message) => self.message(&message, text, out),
            Err(malformed) => self.malformed(text, &malformed, out),
        }
    }

    fn malformed(&mut self, text: &[u8], malformed: &MalformedMessage, out: &mut Lines) {
        if text.trim_ascii().is_empty() {
            return;
        }
        if self.handshake == Some(Revision::V2025_03_26)
            && let Some(members) = parse_batch(text)
        {
            return self.batch(&Batch::parse(&members), text, out);
        }
        if !malformed.expects_response {
            tracing::debug!(error = %malformed.error, "a malformed notification was ignored");
        } else {
            self.refuse(malformed.id.as_deref(), &malformed.error, out);
        }
    }

    /// An error, unless it has no id and the session's revision requires one.
    fn refuse(&self, id: Option<&str>, error: &ProtocolError, out: &mut Lines) {
        if id.is_none() && self.handshake.is_some_and(|revision| revision < Revision::V2025_11_25) {
            tracing::warn!(error = %error, "a message could not be read");
            return;
        }
        let start = out.bytes.len();
        write_error_response(&mut out.bytes, id, error);
        out.end_line(start);
    }

    fn message(&mut self, message: &JsonRpcMessage<'_>, text: &[u8], out: &mut Lines) {
        if message.is_response() {
            if !self.work.open_requests().deliver_response(message) {
                tracing::debug!("a response that no request waits for was ignored");
            }
            return;
        }
        if let Some(filter) = self.filter.take() {
            self.follow(filter, out);
        }
        let Some(id) = message.id() else { return self.work.notification(message) };
        let revision = match resolve_revision(message, self.handshake) {
            RequestRevision::Known(revision) => revision,
            RequestRevision::Unsupported(error) => return self.refuse(Some(id), &error, out),
            RequestRevision::Initialize => {
                let reply = self.initialize(message);
                return self.work.write(&reply, id, Revision::LATEST_LEGACY, out);
            }
        };
        let context = if revision.is_modern() { &self.modern } else { &self.legacy };
        let Some(request) = Request::from_message(message, revision, context) else { return };
        if request.is_listen() {
            return self.listen(request, out);
        }
        // a ping tells whether the server is alive: it is answered however busy that is
        let admission =
            if request.method == "ping" { Admission::Now } else { self.work.admit(1, text.len()) };
        match admission {
            Admission::Now => match self.work.receive(request, &mut Vec::new()) {
                StartedRequest::Reply(reply) => self.work.write(&reply, id, revision, out),
                StartedRequest::Running(running) => self.work.run(running, revision),
            },
            Admission::Queue => {
                if !self.work.queue(&[id], text, revision, context) {
                    self.refuse(Some(id), &id_in_use(id), out);
                }
            }
            refused => self.refuse(Some(id), &refused.error(), out),
        }
    }

    fn initialize(&mut self, message: &JsonRpcMessage<'_>) -> MethodReply {
        let server = &self.work.server;
        let (reply, handshake) = server.initialize(message.params(), true);
        if let Some(handshake) = handshake {
            self.handshake = Some(handshake.revision);
            self.legacy.client = handshake.client;
            let changes = server.offers(handshake.revision).changes;
            if changes != ListChanges::default() {
                self.filter = self.work.state.set_filter(server.hub().filter(changes));
            }
        }
        reply
    }

    /// Notifies the client of changes from now on: it goes on after `initialize`, whose reply must come first.
    fn follow(&self, filter: Arc<Filter>, out: &mut Lines) {
        out.flush(&self.work.writer);
        let RequestContext { caller, authenticated, .. } = &self.legacy;
        match self.work.server.hub().subscribe(filter, caller.clone(), *authenticated) {
            Some(follower) => self.work.notify_changes(follower),
            None => tracing::warn!(
                "a client is not notified of changes: there are too many subscribers\nraise `max_subscribers`"
            ),
        }
    }

    /// A subscription takes no place among the calls.
    fn listen(&self, request: Request<'_>, out: &mut Lines) {
        if self.work.is_stopping() {
            return self.refuse(Some(request.id), &Admission::Stopping.error(), out);
        }
        match self.work.server.start_listen(request, Some(self.work.open_requests())) {
            Ok((subscription, registration)) => {
                out.flush(&self.work.writer);
                self.work.stream(subscription, registration);
            }
            Err(reply) => self.work.write(&reply, request.id, request.revision, out),
        }
    }

    /// An array of messages, as 2025-03-26 had them.
    fn batch(&mut self, batch: &Batch<'_>, text: &[u8], out: &mut Lines) {
        let ids: Vec<&str> = batch.ids().collect();
        let refusal = match batch.check() {
            Err(error) => Some(error),
            Ok(()) => match self.work.admit(ids.len(), text.len()) {
                Admission::Now => None,
                Admission::Queue => {
                    if self.work.queue(&ids, text, Revision::V2025_03_26, &self.legacy) {
                        return;
                    }
                    None
                }
                refused => Some(refused.error()),
            },
        };
        let Some(error) = refusal else {
            let open = Some(self.work.open_requests());
            let started = self.work.server.start_batch(batch, &self.legacy, open, &mut Vec::new());
            return self.work.run_calls(started.calls, out);
        };
        if ids.is_empty() {
            return self.refuse(None, &error, out);
        }
        // this revision has no error without an id, so each request gets one
        let replies: Vec<_> =
            ids.iter().map(|id| (Box::from(*id), MethodReply::from(error.clone()))).collect();
        self.work.write_batch(&replies, out);
    }
}

impl Admission {
    fn error(self) -> ProtocolError {
        ProtocolError::internal(match self {
            Self::Stopping => "the server is stopping",
            _ => "the server is busy\nask again when calls have been answered",
        })
    }
}

/// The calls of one connection: what runs, what waits for its turn, and how each of them ends.
pub(crate) struct Work {
    server: Server,
    writer: Arc<Writer>,
    runtime: Handle,
    state: Arc<ConnectionState>,
    requests: Option<Arc<Budget>>,
    table: Mutex<RunningRequests>,
    /// The last call has ended.
    idle: Notify,
    /// Everything is dropped.
    aborted: Shutdown,
}

#[derive(Default)]
struct RunningRequests {
    /// Requests that run, those of a batch each for itself.
    running: usize,
    /// Subscriptions that are open.
    streams: usize,
    queue: VecDeque<Queued>,
    queued_bytes: usize,
    stopping: bool,
    /// The task that notifies the client of changes.
    notifying: Option<tokio::task::AbortHandle>,
}

/// A message that waits for its turn, as text.
struct Queued {
    text: Box<[u8]>,
    registrations: Vec<Registration>,
    revision: Revision,
    context: RequestContext,
}

impl Work {
    fn open_requests(&self) -> OpenRequests<'_> {
        OpenRequests { client: THE_CLIENT, in_flight: &self.state.in_flight, pending: &self.state.pending }
    }

    fn has_room(&self, table: &RunningRequests, requests: usize) -> bool {
        let limit = self.server.options().max_in_flight;
        // a batch that is larger than the limit must be served as well, alone
        let used = table.running + self.writer.unwritten();
        used == 0 || used + requests <= limit
    }

    /// What becomes of so many requests; asked by the one reader, so that the answer holds until it has acted.
    fn admit(&self, requests: usize, bytes: usize) -> Admission {
        let table = self.table.lock();
        let options = self.server.options();
        if table.stopping {
            Admission::Stopping
        } else if table.queue.is_empty() && self.has_room(&table, requests) {
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
        self.table.lock().stopping
    }

    /// What is cancelled while it waits gives its place to others.
    fn notification(&self, message: &JsonRpcMessage<'_>) {
        self.open_requests().handle_notification(message);
        let mut table = self.table.lock();
        let RunningRequests { queue, queued_bytes, .. } = &mut *table;
        queue.retain_mut(|queued| {
            let cancelled = queued.registrations.iter_mut().all(Registration::is_cancelled);
            *queued_bytes -= if cancelled { queued.text.len() } else { 0 };
            !cancelled
        });
    }

    /// Begins to answer a request.
    fn receive(&self, request: Request<'_>, registrations: &mut Vec<Registration>) -> StartedRequest {
        let Some(budget) = &self.requests else {
            return self.server.start_request(request, Some(self.open_requests()), registrations);
        };
        let Some(permit) = budget.try_acquire(1) else {
            return StartedRequest::Reply(Admission::Busy.error().into());
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
    fn write(&self, reply: &MethodReply, id: &str, revision: Revision, out: &mut Lines) {
        let start = out.bytes.len();
        encode(&mut out.bytes, reply, id, revision, self.server.identity());
        out.end_line(start);
    }

    /// Writes the replies to a batch as one line.
    fn write_batch(&self, replies: &[(Box<str>, MethodReply)], out: &mut Lines) {
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

    /// Lets a message wait for its turn; `false` if one of its ids is in use.
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
            let mut table = self.table.lock();
            table.queued_bytes += text.len();
            let context = context.clone();
            table.queue.push_back(Queued { text: text.into(), registrations, revision, context });
        }
        // a call may have ended since the message was told to wait
        self.refill();
        true
    }

    /// Runs a request that did not end at once.
    fn run(self: &Arc<Self>, running: RunningRequest, revision: Revision) {
        self.table.lock().running += 1;
        let (work, id) = (Arc::clone(self), running.id.clone());
        self.runtime.spawn(async move {
            let reply = tokio::select! {
                biased;
                () = work.aborted.fired() => None,
                reply = running => reply,
            };
            let mut out = Lines::default();
            if let Some(reply) = reply {
                work.write(&reply, &id, revision, &mut out);
            }
            work.end(1, out);
        });
    }

    /// Writes the replies of a batch, at once if they are there.
    fn run_calls(self: &Arc<Self>, mut calls: Calls, out: &mut Lines) {
        if !calls.is_running() {
            return self.write_batch(&calls.take_replies(), out);
        }
        let count = calls.len();
        self.table.lock().running += count;
        let work = Arc::clone(self);
        self.runtime.spawn(async move {
            let mut out = Lines::default();
            work.finish_calls(calls, &mut out).await;
            work.end(count, out);
        });
    }

    /// Waits for the calls of a batch and writes their replies.
    async fn finish_calls(&self, mut calls: Calls, out: &mut Lines) {
        tokio::select! {
            biased;
            () = self.aborted.fired() => return,
            () = std::future::poll_fn(|cx| calls.poll(cx)) => {}
        }
        self.write_batch(&calls.take_replies(), out);
    }

    /// Starts messages that wait, while there is room.
    fn refill(self: &Arc<Self>) {
        loop {
            let queued = {
                let mut table = self.table.lock();
                let requests = table.queue.front().map(|queued| queued.registrations.len());
                let Some(requests) = requests.filter(|requests| self.has_room(&table, *requests)) else {
                    return;
                };
                let Some(queued) = table.queue.pop_front() else { return };
                table.queued_bytes -= queued.text.len();
                table.running += requests;
                queued
            };
            let (work, count) = (Arc::clone(self), queued.registrations.len());
            self.runtime.spawn(async move {
                let mut out = Lines::default();
                work.answer_queued(queued, &mut out).await;
                work.end(count, out);
            });
        }
    }

    async fn answer_queued(&self, queued: Queued, out: &mut Lines) {
        let Queued { text, mut registrations, revision, context } = queued;
        if let Some(members) = parse_batch(&text) {
            let open = Some(self.open_requests());
            let started =
                self.server.start_batch(&Batch::parse(&members), &context, open, &mut registrations);
            return self.finish_calls(started.calls, out).await;
        }
        // cancelled while it waited
        if registrations.iter_mut().any(Registration::is_cancelled) {
            return;
        }
        let received = {
            let Ok(message) = parse(&text) else { return };
            let Some(request) = Request::from_message(&message, revision, &context) else { return };
            match self.receive(request, &mut registrations) {
                StartedRequest::Reply(reply) => return self.write(&reply, request.id, revision, out),
                StartedRequest::Running(running) => running,
            }
        };
        let id = received.id.clone();
        tokio::select! {
            biased;
            () = self.aborted.fired() => {}
            reply = received => if let Some(reply) = reply {
                self.write(&reply, &id, revision, out);
            }
        }
    }

    /// So many requests have ended, with these replies.
    fn end(self: &Arc<Self>, requests: usize, mut out: Lines) {
        // written first: the connection is not idle before
        out.flush(&self.writer);
        self.table.lock().running -= requests;
        self.refill();
        self.wake_if_idle();
    }

    fn wake_if_idle(&self) {
        if self.is_idle() {
            self.idle.notify_waiters();
        }
    }

    fn is_idle(&self) -> bool {
        let table = self.table.lock();
        table.running == 0 && table.streams == 0 && table.queue.is_empty()
    }

    /// Serves a subscription until the client or the server ends it; its acknowledgement goes out at once.
    fn stream(self: &Arc<Self>, mut subscription: ListenStream, registration: Option<Registration>) {
        let mut cx = TaskContext::from_waker(Waker::noop());
        if let Poll::Ready(Some(acknowledgement)) = subscription.poll_next(&mut cx) {
            self.writer.send_line(acknowledgement, 0);
        }
        self.table.lock().streams += 1;
        let work = Arc::clone(self);
        self.runtime.spawn(async move {
            let cancelled = async {
                match registration {
                    Some(mut registration) => registration.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = work.aborted.fired() => {}
                () = cancelled => {}
                () = work.serve_subscription(&mut subscription) => {
                    // in this order: clients take the reverse for a subscription that was lost
                    work.writer.send_line(subscription.result(), 1);
                    work.writer.send_line(subscription.cancelled_notification(), 0);
                }
            }
            work.table.lock().streams -= 1;
            work.wake_if_idle();
        });
    }

    async fn serve_subscription(&self, subscription: &mut ListenStream) {
        let messages = async {
            loop {
                // what the client has not read yet is kept in the hub, each change once
                self.writer.quiet().await;
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

    /// Notifies a client that has shaken hands of changes.
    fn notify_changes(self: &Arc<Self>, mut follower: Subscriber) {
        let writer = self.writer.clone();
        let task = self.runtime.spawn(async move {
            loop {
                writer.quiet().await;
                let change = std::future::poll_fn(|cx| follower.poll(cx)).await;
                writer.send_line(change.notification(|_| {}), 0);
            }
        });
        if let Some(before) = self.table.lock().notifying.replace(task.abort_handle()) {
            before.abort();
        }
    }

    /// From now on requests are refused, and requests to the client fail.
    fn stop(&self) {
        self.state.close();
        self.table.lock().stopping = true;
    }

    /// Waits until nothing runs and nothing waits.
    async fn ended(&self) {
        loop {
            let mut idle = pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Looks after the connection until its reader has ended, its calls and `rest` have had their time and the replies
    /// are written.
    pub(crate) async fn supervise(
        self: Arc<Self>,
        reader: impl Future<Output = ()>,
        rest: impl Future<Output = ()>,
        patience: Duration,
    ) {
        let abort = Abort(Arc::clone(&self));
        let writer = &self.writer;
        let mut work = pin!(async {
            reader.await;
            self.stop();
            let ended = async {
                self.ended().await;
                rest.await;
            };
            if timeout(patience, ended).await.is_err() {
                tracing::warn!(
                    "calls were still running {patience:?} after the input had ended; they were stopped"
                );
            }
        });
        let mut closed = pin!(writer.closed());
        loop {
            let mut shrinks = pin!(writer.shrinks());
            shrinks.as_mut().enable();
            // replies that are not read hold the places of calls, so requests may be waiting for them
            self.refill();
            tokio::select! {
                () = &mut work => break,
                () = &mut closed => break,
                () = shrinks => {}
            }
        }
        drop(abort);
        if timeout(patience, writer.flushed()).await.is_err() {
            tracing::warn!("the client did not read its last replies");
        }
    }
}

/// Stops every call of a connection when it is dropped.
struct Abort(Arc<Work>);

impl Drop for Abort {
    fn drop(&mut self) {
        let work = &self.0;
        work.stop();
        work.aborted.fire();
        let (queue, notifying) = {
            let mut table = work.table.lock();
            table.queued_bytes = 0;
            (std::mem::take(&mut table.queue), table.notifying.take())
        };
        drop(queue);
        if let Some(task) = notifying {
            task.abort();
        }
        work.idle.notify_waiters();
    }
}

/// What one read asks for, and the buffer's usual size.
const CHUNK: usize = 64 << 10;
/// A buffer that one long line has made larger than this is given back once it is empty.
const KEEP: usize = 1 << 20;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// Where it is in the buffer.
    Text(Range<usize>),
    /// A line over the limit has begun; what follows of it is dropped unseen.
    TooLong,
}

/// Cuts a stream of bytes into lines, in place and with a bound.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// `start..end` has been read and not yet handed out; there is no line end before `seen`.
    start: usize,
    seen: usize,
    end: usize,
    limit: usize,
    skipping: bool,
}

impl Buffer {
    fn new(limit: usize) -> Self {
        Self { bytes: vec![0; CHUNK], start: 0, seen: 0, end: 0, limit, skipping: false }
    }

    /// Where the next bytes go; never empty. Tell [`filled`](Self::filled) how many came.
    fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.seen, self.end) = (0, 0, 0);
            if self.bytes.len() > KEEP {
                self.bytes = vec![0; CHUNK];
            }
        } else if self.bytes.len() - self.end < CHUNK / 4 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.seen, self.end) = (self.seen - self.start, self.end - self.start);
            self.start = 0;
            if self.end > self.bytes.len() / 2 {
                let larger =
                    (self.bytes.len() * 2).min(self.limit.saturating_add(CHUNK)).max(self.end + CHUNK / 2);
                self.bytes.resize(larger, 0);
            }
        }
        self.bytes.get_mut(self.end..).unwrap_or_default()
    }

    fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.bytes.len());
    }

    /// The next whole line that has been read.
    fn next(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr::memchr(b'\n', self.bytes.get(self.seen..self.end)?) else {
                self.seen = self.end;
                if self.skipping {
                    self.start = self.end;
                } else if self.end - self.start > self.limit {
                    self.start = self.end;
                    self.skipping = true;
                    return Some(Line::TooLong);
                }
                return None;
            };
            let (start, stop) = (self.start, self.seen + at);
            self.start = stop + 1;
            self.seen = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if stop - start > self.limit {
                return Some(Line::TooLong);
            }
            return Some(Line::Text(start..stop));
        }
    }

    /// What stands after the last line end, once the stream has ended.
    fn rest(&mut self) -> Option<Line> {
        let start = std::mem::replace(&mut self.start, self.end);
        if self.skipping || start == self.end { None } else { Some(Line::Text(start..self.end)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` in pieces of `step` bytes; over-long lines come out as `!`.
    fn cut(input: &[u8], step: usize, limit: usize) -> Vec<String> {
        let mut lines = Buffer::new(limit);
        let mut out = Vec::new();
        let mut keep = |lines: &Buffer, line: Line| match line {
            Line::Text(range) => out.push(String::from_utf8_lossy(&lines.bytes[range]).into_owned()),
            Line::TooLong => out.push("!".into()),
        };
        for mut piece in input.chunks(step) {
            while !piece.is_empty() {
                let space = lines.space();
                let (now, later) = piece.split_at(piece.len().min(space.len()));
                space[..now.len()].copy_from_slice(now);
                lines.filled(now.len());
                piece = later;
                while let Some(line) = lines.next() {
                    keep(&lines, line);
                }
            }
        }
        if let Some(line) = lines.rest() {
            keep(&lines, line);
        }
        out
    }

    #[test]
    fn lines_come_out_whole_however_they_arrive() {
        for step in [1, 2, 3, 7, 100] {
            assert_eq!(cut(b"one\n\ntwo\r\nlast", step, 100), ["one", "", "two\r", "last"]);
        }
    }

    #[test]
    fn one_message_for_a_line_over_the_limit_and_the_next_line_is_read() {
        for step in [1, 5, 64] {
            assert_eq!(
                cut(b"0123456789abcdef\nok\n0123456789a\n0123456789\n", step, 10),
                ["!", "ok", "!", "0123456789"]
            );
        }
    }

    #[test]
    fn an_over_long_line_is_not_kept() {
        let mut lines = Buffer::new(1000);
        for _ in 0..1000 {
            let space = lines.space();
            space.fill(b'x');
            let n = space.len();
            lines.filled(n);
            while lines.next().is_some() {}
            assert!(lines.bytes.len() <= 2 * CHUNK, "{}", lines.bytes.len());
        }
    }

    #[test]
    fn a_long_line_within_the_limit_is_read() {
        let long = "y".repeat(3 << 20);
        let input = format!("{long}\nz\n");
        assert_eq!(cut(input.as_bytes(), 30_000, 4 << 20), [long.as_str(), "z"]);
    }
}
