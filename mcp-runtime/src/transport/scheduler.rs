//! The requests of one connection: how many run at once, which are queued or refused as busy, how each of them ends, and
//! how all of them end when the connection does. Replies are written in the order in which requests complete.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context as TaskContext, Poll, Waker},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;

use super::writer::{ConnectionWriter, FLUSH_SIZE, OutputBuffer};
use crate::core::{
    admission::{Owner, Permit, Shares},
    changes::Subscriber,
    connection::RequestContext,
    dispatch::{
        Batch, Calls, ConnectionState, NotificationStream, OpenRequests, Registration, Reply, Request,
        StartedRequest, THE_CLIENT, cut_off_error, encode, is_initialized, is_limited,
    },
    jsonrpc::{JsonRpcMessage, ProtocolError, parse, parse_batch},
    observer::RefusedRequest,
    protocol::Revision,
    reason::Reason,
    server::Server,
    spawn::spawn_on,
    sync::{Mutex, MutexGuard},
};

/// How long it may take to answer the calls that a shutdown cuts off.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes of the requests of one connection that wait for a running call to end.
const MAX_QUEUED_BYTES: usize = 16 << 20;

/// A limit on requests, and whose share of it a connection uses.
pub(crate) struct SharedRequests {
    pub(crate) permits: Arc<Shares>,
    /// Bytes of requests that wait.
    pub(crate) bytes: Arc<Shares>,
    pub(crate) owner: Owner,
}

/// Whether a message is served now, later or not at all.
#[derive(Clone, Copy)]
pub(super) enum Turn {
    Now,
    Queue,
    Busy,
    Stopping,
}

/// The requests of one connection: those that run, those that are queued, and how each of them ends.
pub(crate) struct RequestScheduler {
    pub(super) server: Server,
    pub(super) writer: Arc<ConnectionWriter>,
    runtime: Handle,
    pub(super) state: Arc<ConnectionState>,
    requests: Option<SharedRequests>,
    table: Mutex<SchedulerTable>,
    /// Notified when the last request has ended.
    idle: Notify,
    /// Fires when every request is dropped.
    aborted: CancellationToken,
    /// Whether requests that are dropped are answered: the client still reads.
    answers_aborted: AtomicBool,
}

#[derive(Default)]
struct SchedulerTable {
    /// Requests that run; those of a batch are counted individually.
    running: usize,
    /// Subscriptions that are open.
    streams: usize,
    /// Messages that wait, by number: in the order in which they came.
    queue: BTreeMap<u64, QueuedMessage>,
    queued_bytes: usize,
    last_queued: u64,
    stopping: bool,
    /// The task that notifies the client of changes.
    notifying: Option<tokio::task::AbortHandle>,
}

/// A message that waits until it can be served, as text.
struct QueuedMessage {
    text: Box<[u8]>,
    /// How many requests of it need capacity: one at least.
    requests: usize,
    /// Those of all its requests.
    registrations: Vec<Registration>,
    revision: Revision,
    context: RequestContext,
    /// For its bytes, on a connection that shares the limits of others.
    permit: Option<Permit>,
}

impl RequestScheduler {
    /// A scheduler without requests; `requests` is the limit shared with other connections, if any.
    pub(super) fn new(
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
            answers_aborted: AtomicBool::new(false),
        })
    }

    fn table(&self) -> MutexGuard<'_, SchedulerTable> {
        self.table.lock()
    }

    pub(super) fn open_requests(&self) -> OpenRequests<'_> {
        OpenRequests { client: THE_CLIENT, in_flight: &self.state.in_flight, pending: &self.state.pending }
    }

    fn has_capacity(&self, table: &SchedulerTable, requests: usize) -> bool {
        let limit = self.server.options().limits.max_in_flight;
        // a batch that exceeds the limit is served as well, but alone
        let used = table.running + self.writer.unread_replies();
        used == 0 || used + requests <= limit
    }

    /// Decides about a message with this number of requests. Only the reader calls it, so the decision holds until it
    /// has been carried out.
    pub(super) fn admit(&self, requests: usize, bytes: usize) -> Turn {
        let table = self.table();
        let options = self.server.options();
        if table.stopping {
            Turn::Stopping
        } else if table.queue.is_empty() && self.has_capacity(&table, requests) {
            Turn::Now
        } else if table.queue.len() < options.limits.max_queued
            && table.queued_bytes + bytes <= MAX_QUEUED_BYTES
            && self.shared_permit(bytes).is_some()
        {
            Turn::Queue
        } else {
            Turn::Busy
        }
    }

    /// A permit for a message that waits; `None` if the owner has used its share, empty on a separate connection.
    fn shared_permit(&self, bytes: usize) -> Option<Option<Permit>> {
        match &self.requests {
            Some(shared) => shared.bytes.try_acquire(&shared.owner, bytes).map(Some),
            None => Some(None),
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.table().stopping
    }

    /// The error for a message that is not served, which is recorded.
    pub(super) fn refuse(&self, refused: Turn, context: &RequestContext) -> ProtocolError {
        let (reason, text) = match refused {
            Turn::Stopping => (Reason::Stopping, "the server is stopping"),
            _ => (Reason::Busy, "the server is busy\nsend the request again when others have been answered"),
        };
        self.server.record_refusal(&RefusedRequest::new(reason), context.caller.as_deref(), context.address);
        ProtocolError::internal(text)
    }

    /// Serves a notification; messages of which every request has been cancelled leave the queue.
    pub(super) fn receive_notification(&self, message: &JsonRpcMessage<'_>) {
        if is_initialized(message) {
            return self.state.initialized.store(true, Ordering::Release);
        }
        let Some(number) = self.open_requests().handle_notification(message) else { return };
        let mut table = self.table();
        if let Entry::Occupied(mut queued) = table.queue.entry(number)
            && queued.get_mut().registrations.iter_mut().all(Registration::is_cancelled)
        {
            let cancelled = queued.remove();
            table.queued_bytes -= cancelled.text.len();
        }
    }

    /// Starts a request.
    pub(super) fn start_request(
        &self,
        request: Request<'_>,
        registrations: &mut Vec<Registration>,
    ) -> StartedRequest {
        let Some(SharedRequests { permits, owner, .. }) = &self.requests else {
            return self.server.start_request(request, Some(self.open_requests()), registrations);
        };
        let permit = permits.try_acquire(owner, 1);
        if permit.is_none() && is_limited(request.method) {
            return Reply::from(self.refuse(Turn::Busy, request.context)).into();
        }
        self.server.start_request(request, Some(self.open_requests()), registrations).holding(permit)
    }

    /// Starts the requests of a batch. If they are not admitted, or their owner uses its share of the requests that run, all
    /// of them but pings get that error.
    pub(super) fn start_batch(
        &self,
        batch: &Batch<'_>,
        context: &RequestContext,
        registrations: &mut Vec<Registration>,
        admitted: Result<(), ProtocolError>,
    ) -> Calls {
        let admitted = admitted.and_then(|()| match &self.requests {
            Some(SharedRequests { permits, owner, .. }) => {
                let permits = (0..batch.limited_requests()).map(|_| permits.try_acquire(owner, 1));
                permits.collect::<Option<_>>().ok_or_else(|| self.refuse(Turn::Busy, context))
            }
            None => Ok(Vec::new()),
        });
        let open = Some(self.open_requests());
        self.server.start_batch(batch, context, open, registrations, admitted).calls
    }

    /// Writes one reply as a line.
    pub(super) fn write(&self, reply: &Reply, id: &str, revision: Revision, out: &mut OutputBuffer) {
        let start = out.bytes.len();
        encode(&mut out.bytes, reply, id, revision, self.server.identity());
        out.end_line(start);
    }

    /// Writes the replies to calls that have completed, those to a batch as one line.
    fn write_replies(&self, calls: &mut Calls, out: &mut OutputBuffer) {
        let replies = calls.take_replies();
        if calls.batch {
            return self.write_batch(&replies, out);
        }
        for (id, reply) in replies {
            self.write(&reply, &id, calls.revision, out);
        }
    }

    /// Writes the replies to a batch as one line.
    pub(super) fn write_batch(&self, replies: &[(Box<str>, Reply)], out: &mut OutputBuffer) {
        if replies.is_empty() {
            return;
        }
        let start = out.bytes.len();
        self.server.encode_batch(&mut out.bytes, replies);
        out.end_line(start);
    }

    /// Queues a message of which this number of requests need capacity; `false` if one of its ids is in use.
    pub(super) fn queue(
        self: &Arc<Self>,
        ids: &[&str],
        requests: usize,
        text: &[u8],
        revision: Revision,
        context: &RequestContext,
    ) -> bool {
        {
            let mut table = self.table();
            table.last_queued += 1;
            let number = table.last_queued;
            let register = |id: &&str| self.state.in_flight.register(THE_CLIENT, id, Some(number));
            let Some(registrations) = ids.iter().map(register).collect() else { return false };
            table.queued_bytes += text.len();
            let (context, permit) = (context.clone(), self.shared_permit(text.len()).flatten());
            let text = text.into();
            let queued = QueuedMessage { text, requests, registrations, revision, context, permit };
            table.queue.insert(number, queued);
        }
        // a request may have ended since the decision to queue the message
        self.start_queued();
        true
    }

    /// Writes the replies to calls, immediately if all of them have completed.
    pub(super) fn answer(self: &Arc<Self>, mut calls: Calls, out: &mut OutputBuffer) {
        if !calls.is_running() {
            return self.write_replies(&mut calls, out);
        }
        let count = calls.running_mut().count();
        self.table().running += count;
        self.spawn_calls(calls, count, ());
    }

    /// Answers calls in a task, which drops what is `kept` once they have ended.
    fn spawn_calls(self: &Arc<Self>, calls: Calls, requests: usize, kept: impl Send + 'static) {
        let scheduler = Arc::clone(self);
        spawn_on(&self.runtime, async move {
            let mut out = OutputBuffer::default();
            scheduler.complete(calls, &mut out).await;
            drop(kept);
            scheduler.finish(requests, out);
        });
    }

    /// Waits for calls and writes their replies; those that are dropped are answered with an error, unless their client has
    /// gone.
    async fn complete(&self, mut calls: Calls, out: &mut OutputBuffer) {
        tokio::select! {
            biased;
            () = self.aborted.cancelled() => match self.answers_aborted.load(Ordering::Relaxed) {
                true => calls.cut_off(),
                false => return,
            },
            () = std::future::poll_fn(|cx| calls.poll(cx)) => {}
        }
        self.write_replies(&mut calls, out);
    }

    /// Starts queued messages while there is capacity. Those that complete at once are answered here, the others in tasks.
    fn start_queued(self: &Arc<Self>) {
        loop {
            let (mut answered, mut out) = (0, OutputBuffer::default());
            while out.bytes.len() < FLUSH_SIZE
                && let Some(queued) = self.next_queued()
            {
                answered += self.answer_queued(queued, &mut out);
            }
            if answered == 0 {
                break;
            }
            self.release(answered, out);
        }
    }

    /// The next message in the queue, which runs from now on, if there is capacity for it.
    fn next_queued(&self) -> Option<QueuedMessage> {
        let mut table = self.table();
        let requests = table.queue.first_key_value().map(|(_, queued)| queued.requests)?;
        if !self.has_capacity(&table, requests) {
            return None;
        }
        let (_, queued) = table.queue.pop_first()?;
        table.queued_bytes -= queued.text.len();
        table.running += requests;
        Some(queued)
    }

    /// Answers a message; returns how many of its requests have ended: none if a task waits for some of them.
    fn answer_queued(self: &Arc<Self>, queued: QueuedMessage, out: &mut OutputBuffer) -> usize {
        let QueuedMessage { text, requests, mut registrations, revision, context, permit } = queued;
        let mut calls = if let Some(members) = parse_batch(&text) {
            self.start_batch(&Batch::parse(&members), &context, &mut registrations, Ok(()))
        } else {
            // cancelled while it was queued
            if registrations.iter_mut().any(Registration::is_cancelled) {
                return requests;
            }
            let Ok(message) = parse(&text) else { return requests };
            let Some(request) = Request::from_message(&message, revision, &context) else { return requests };
            match self.start_request(request, &mut registrations) {
                StartedRequest::Ready(reply) => {
                    self.write(&reply, request.id, revision, out);
                    return requests;
                }
                StartedRequest::Pending(running) => Calls::single(running, revision),
            }
        };
        if calls.is_running() {
            self.spawn_calls(calls, requests, (registrations, permit));
            return 0;
        }
        self.write_replies(&mut calls, out);
        requests
    }

    /// Records that this number of requests has ended, with these replies.
    fn finish(self: &Arc<Self>, requests: usize, out: OutputBuffer) {
        self.release(requests, out);
        self.start_queued();
    }

    fn release(&self, requests: usize, mut out: OutputBuffer) {
        // before the count: the connection is not idle while replies are unwritten
        out.flush(&self.writer);
        self.table().running -= requests;
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
    pub(super) fn spawn_subscription(
        self: &Arc<Self>,
        mut subscription: NotificationStream,
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
                    if let Some(cancelled) = subscription.cancelled_notification() {
                        scheduler.writer.send_line(cancelled, 0);
                    }
                }
            }
            scheduler.table().streams -= 1;
            scheduler.wake_if_idle();
        });
    }

    async fn serve_subscription(&self, subscription: &mut NotificationStream) {
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
    pub(super) fn notify_changes(self: &Arc<Self>, subscriber: Subscriber) {
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

    /// Answers every request that runs or is queued with an error.
    async fn cut_off(&self) {
        let queue = {
            let mut table = self.table();
            table.queued_bytes = 0;
            std::mem::take(&mut table.queue)
        };
        self.answers_aborted.store(true, Ordering::Relaxed);
        self.aborted.cancel();
        let mut out = OutputBuffer::default();
        for QueuedMessage { text, mut registrations, revision, .. } in queue.into_values() {
            let error = || Reply::from(cut_off_error());
            if let Some(members) = parse_batch(&text) {
                let batch = Batch::parse(&members);
                let open = batch.ids().zip(&mut registrations).filter_map(|(id, registration)| {
                    (!registration.is_cancelled()).then(|| (Box::from(id), error()))
                });
                self.write_batch(&open.collect::<Vec<_>>(), &mut out);
            } else if let Ok(message) = parse(&text)
                && let Some(id) = message.id()
                && !registrations.iter_mut().any(Registration::is_cancelled)
            {
                self.write(&error(), id, revision, &mut out);
            }
        }
        out.flush(&self.writer);
        // a value of a user's that blocks when it is dropped does not hold up the others
        let _timed_out = timeout(CUT_OFF_TIMEOUT, self.wait_until_idle()).await;
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

    /// Runs the connection until `input_ended`. Then its calls, and `other_work` of the server such as tasks, have
    /// `shutdown_timeout` to end; calls that have not ended are answered with an error. Returns when the replies are written.
    pub(crate) async fn supervise(
        self: Arc<Self>,
        input_ended: impl Future<Output = ()>,
        other_work: impl Future<Output = ()>,
        shutdown_timeout: Duration,
    ) {
        let abort = AbortOnDrop(Arc::clone(&self));
        let writer = &self.writer;
        let mut scheduler = pin!(async {
            input_ended.await;
            self.stop();
            let finished = async {
                self.wait_until_idle().await;
                other_work.await;
            };
            if timeout(shutdown_timeout, finished).await.is_err() {
                tracing::warn!(
                    "calls were still running {shutdown_timeout:?} after the end of the input and were stopped"
                );
                self.cut_off().await;
            }
        });
        let mut closed = pin!(writer.wait_until_closed());
        loop {
            let mut shrunk = pin!(writer.backlog_shrunk());
            shrunk.as_mut().enable();
            // unread replies count as calls in flight, so queued requests may be waiting for them; in a task, since functions
            // run there, and the time limit is enforced here
            if !self.table().queue.is_empty() {
                let this = Arc::clone(&self);
                spawn_on(&self.runtime, async move { this.start_queued() });
            }
            tokio::select! {
                () = &mut scheduler => break,
                () = &mut closed => break,
                () = shrunk => {}
            }
        }
        drop(abort);
        if timeout(shutdown_timeout.max(CUT_OFF_TIMEOUT), writer.wait_until_flushed()).await.is_err() {
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
