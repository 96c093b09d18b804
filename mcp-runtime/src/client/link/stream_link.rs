//! A server at the other end of two streams, such as the lines of a process: its requests in flight, each answered once,
//! or failed when the streams end. Dropping a request notifies the server that it is cancelled.

use std::{
    collections::HashMap,
    future::poll_fn,
    hash::{BuildHasherDefault, Hasher},
    io, mem,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot,
    },
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    broken_response::BrokenResponse,
    child_process::ChildHandle,
    http_link::HttpLink,
    outgoing::{OutgoingRequest, cancelled_text},
    parse_error,
};
#[cfg(feature = "cli")]
use crate::client::receive::handlers::call_listener;
use crate::{
    client::{
        Error,
        cleanup::Cleanup,
        large_text::{LARGE, run_elsewhere},
        receive::inbox::{ENDED, Inbox, Responder},
    },
    core::{
        jsonrpc::{MalformedMessage, parse, parse_batch, replace_line_breaks},
        protocol::Revision,
        sync::Mutex,
    },
    transport::{Line, LineBuffer},
};

/// Messages that wait to be written; senders wait for room.
const WRITE_QUEUE: usize = 256;
/// Messages that wait are written at once up to this size.
const WRITE_BATCH: usize = 64 << 10;
/// How long what waits to be written may take when the connection is closed.
const LAST_MESSAGES: Duration = Duration::from_millis(200);

/// A connection over two streams; its tasks end with `token`.
pub(in crate::client) struct StreamLink {
    shared: Arc<StreamShared>,
    token: CancellationToken,
    pub(super) process: Option<ChildHandle>,
    /// What messages are posted with, over HTTP+SSE.
    http: Option<Arc<HttpLink>>,
}

struct StreamShared {
    outgoing: mpsc::Sender<Vec<u8>>,
    requests: Mutex<RequestTable>,
    /// Messages that wait for room in the queue.
    cleanup: Arc<Cleanup>,
}

#[derive(Default)]
struct RequestTable {
    waiting: HashMap<u64, WaitingRequest, BuildHasherDefault<IdHasher>>,
    /// Notifications and responses that were sent, and how many of them the server has read for certain: an error
    /// without an id may be that of another one.
    messages_sent: u64,
    messages_read: u64,
    /// Why there will be no more responses.
    closed: Option<Error>,
}

/// Hashes ids, which this client counts up: a server can ask for any of them and cannot add one.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, id: u64) {
        // the table uses the highest bits and the lowest ones
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }
}

struct WaitingRequest {
    reply: oneshot::Sender<Result<String, Error>>,
    /// How many notifications and responses were sent before.
    messages_before: u64,
}

/// Routes messages from the server to the callers that wait for them.
#[derive(Clone)]
pub(super) struct Received {
    shared: Arc<StreamShared>,
    inbox: Arc<Inbox>,
    process: Option<ChildHandle>,
}

impl StreamLink {
    /// A connection over byte streams, with one message per line.
    pub(in crate::client) fn lines<R, W>(
        reader: R,
        writer: W,
        process: Option<ChildHandle>,
        inbox: Arc<Inbox>,
        token: CancellationToken,
        max_message: usize,
    ) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let ended = token.clone();
        Self::new(
            process,
            None,
            inbox,
            token,
            |queue, _| write(writer, queue, ended),
            move |received| read(reader, received, max_message),
        )
    }

    /// A connection that `write` empties the queue of, and that `read` reads until its end.
    pub(super) fn new<R: Future<Output = ()> + Send + 'static, W: Future<Output = ()> + Send + 'static>(
        process: Option<ChildHandle>,
        http: Option<Arc<HttpLink>>,
        inbox: Arc<Inbox>,
        token: CancellationToken,
        write: impl FnOnce(mpsc::Receiver<Vec<u8>>, Received) -> W,
        read: impl FnOnce(Received) -> R,
    ) -> Self {
        let (outgoing, queue) = mpsc::channel(WRITE_QUEUE);
        let shared =
            Arc::new(StreamShared { outgoing, requests: Mutex::default(), cleanup: Cleanup::on_stream() });
        let received = || Received { shared: shared.clone(), inbox: inbox.clone(), process: process.clone() };
        tokio::spawn(write(queue, received()));
        let reading = read(received());
        let (of_reader, ended, handle) = (shared.clone(), token.clone(), process.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = reading => {}
                () = ended.cancelled() => {}
            }
            let error = match &handle {
                Some(handle) => handle.closed_error().await,
                None => closed(),
            };
            of_reader.close(&error);
            inbox.abort_requests();
            ended.cancel();
        });
        Self { shared, token, process, http }
    }

    pub(super) fn set_legacy_revision(&self, revision: Revision) {
        if let Some(http) = &self.http {
            http.set_legacy_revision(revision);
        }
    }

    pub(in crate::client) fn is_closed(&self) -> bool {
        self.token.is_cancelled() || self.shared.requests.lock().closed.is_some()
    }

    /// Sends a request and waits for its response: the raw JSON of the result. Dropping the future cancels the request.
    pub(in crate::client) async fn request(&self, request: OutgoingRequest<'_>) -> Result<String, Error> {
        let (reply, mut response) = oneshot::channel();
        self.shared.expect_response(request.id, reply)?;
        // a request that was not written needs no notification
        let mut guard = CancelOnDrop { shared: &self.shared, id: request.id, notify: false };
        if let Err(TrySendError::Full(body) | TrySendError::Closed(body)) =
            self.shared.outgoing.try_send(request.body)
        {
            // boxed: every request would have room for it otherwise
            let sent = Box::pin(async {
                tokio::select! {
                    sent = self.shared.outgoing.send(body) => sent.map_err(|_| Err(closed())),
                    // the connection has ended while the queue is full
                    early = &mut response => Err(early.unwrap_or_else(|_| Err(closed()))),
                }
            });
            if let Err(over) = sent.await {
                return over;
            }
        }
        // `initialize` must not be cancelled
        guard.notify = request.method != "initialize";
        let response = response.await;
        // whatever has sent a reply has removed the request
        mem::forget(guard);
        let json = response.unwrap_or_else(|_| Err(closed()))?;
        if let Some(operation) = request.operation {
            operation.charge(json.len())?;
        }
        Ok(json)
    }

    pub(in crate::client) async fn notify(&self, text: Vec<u8>) -> Result<(), Error> {
        if let Some(error) = &self.shared.requests.lock().closed {
            return Err(error.clone());
        }
        self.shared.send_message(text).await.map_err(|_| closed())
    }

    /// Closes the streams, and waits until the server's process has ended.
    pub(in crate::client) async fn close(&self) {
        self.token.cancel();
        if let Some(process) = &self.process {
            process.ended().await;
        }
    }
}

fn closed() -> Error {
    Error::Closed { status: None, stderr: String::new() }
}

/// Removes a request that was given up, and notifies the server.
struct CancelOnDrop<'a> {
    shared: &'a Arc<StreamShared>,
    id: u64,
    notify: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let is_waiting = self.shared.requests.lock().waiting.remove(&self.id).is_some();
        if is_waiting && self.notify {
            self.shared.clone().respond(cancelled_text(self.id));
        }
    }
}

impl StreamShared {
    fn expect_response(&self, id: u64, reply: oneshot::Sender<Result<String, Error>>) -> Result<(), Error> {
        let mut requests = self.requests.lock();
        if let Some(error) = &requests.closed {
            return Err(error.clone());
        }
        let messages_before = requests.messages_sent;
        requests.waiting.insert(id, WaitingRequest { reply, messages_before });
        Ok(())
    }

    fn finish(&self, id: u64, reply: Result<String, Error>) {
        let waiting = {
            let mut requests = self.requests.lock();
            let waiting = requests.waiting.remove(&id);
            let before = waiting.as_ref().map_or(0, |waiting| waiting.messages_before);
            requests.messages_read = requests.messages_read.max(before);
            waiting
        };
        if let Some(waiting) = waiting {
            // dropped concurrently
            let _dropped = waiting.reply.send(reply);
        }
    }

    /// Sends a message that gets no response.
    async fn send_message(&self, message: Vec<u8>) -> Result<(), mpsc::error::SendError<Vec<u8>>> {
        self.requests.lock().messages_sent += 1;
        self.outgoing.send(message).await
    }

    /// Fails all requests, also those to come.
    fn close(&self, error: &Error) {
        self.requests.lock().closed.get_or_insert_with(|| error.clone());
        self.fail_waiting(error);
    }

    /// Takes an error that names no request: it fails the request that waits if it can be the error of nothing else.
    fn fail_only(&self, error: Error) {
        let mut requests = self.requests.lock();
        if requests.messages_read < requests.messages_sent {
            requests.messages_read += 1;
            return;
        }
        if requests.waiting.len() != 1 {
            return;
        }
        let only = requests.waiting.drain().next();
        drop(requests);
        if let Some((_, request)) = only {
            let _dropped = request.reply.send(Err(error));
        }
    }

    fn fail_waiting(&self, error: &Error) {
        let waiting = mem::take(&mut self.requests.lock().waiting);
        for request in waiting.into_values() {
            let _dropped = request.reply.send(Err(error.clone()));
        }
    }
}

impl Responder for StreamShared {
    const IS_SHARED: bool = true;

    async fn deliver(self: Arc<Self>, message: Vec<u8>) {
        // fails if the connection is closed
        let _closed = self.send_message(message).await;
    }

    fn respond(self: Arc<Self>, message: Vec<u8>) {
        let mut requests = self.requests.lock();
        let sent = self.outgoing.try_send(message);
        requests.messages_sent += u64::from(sent.is_ok());
        drop(requests);
        if let Err(TrySendError::Full(message)) = sent {
            self.cleanup.clone().spawn(self.deliver(message));
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: mpsc::Receiver<Vec<u8>>,
    token: CancellationToken,
) {
    let is_idle = AtomicBool::new(false);
    let write_all = async {
        loop {
            is_idle.store(true, Ordering::Relaxed);
            let Some(mut batch) = queue.recv().await else { break };
            is_idle.store(false, Ordering::Relaxed);
            replace_line_breaks(&mut batch);
            batch.push(b'\n');
            while batch.len() < WRITE_BATCH
                && let Ok(mut message) = queue.try_recv()
            {
                replace_line_breaks(&mut message);
                batch.append(&mut message);
                batch.push(b'\n');
            }
            writer.write_all(&batch).await?;
            if queue.is_empty() {
                writer.flush().await?;
            }
        }
        io::Result::Ok(())
    };
    {
        let mut write_all = pin!(write_all);
        tokio::select! {
            biased;
            // the reader finds out why it failed
            _failed = &mut write_all => {}
            () = token.cancelled() => {
                // queued messages, such as the cancellation of a call that was dropped just before
                let written = poll_fn(|cx| match write_all.as_mut().poll(cx) {
                    Poll::Pending if !is_idle.load(Ordering::Relaxed) => Poll::Pending,
                    _ => Poll::Ready(()),
                });
                let _late = timeout(LAST_MESSAGES, written).await;
            }
        }
    }
    let _closed = writer.shutdown().await;
}

async fn read<R: AsyncRead + Unpin>(mut reader: R, received: Received, max_message: usize) {
    let mut lines = LineBuffer::new(max_message);
    loop {
        match reader.read(lines.spare_capacity()).await {
            Ok(0) | Err(_) => break,
            Ok(bytes) => lines.advance(bytes),
        }
        while let Some(line) = lines.next_line() {
            match line {
                Line::Text(range) if range.len() >= LARGE => {
                    // nothing is read meanwhile, so the buffer can go along
                    let taker = received.clone();
                    let taken = run_elsewhere(move || {
                        taker.take_line(Line::Text(range), &lines, max_message);
                        lines
                    });
                    match Box::pin(taken).await {
                        Ok(buffer) => lines = buffer,
                        Err(_) => return,
                    }
                }
                line => received.take_line(line, &lines, max_message),
            }
        }
    }
    if let Some(line) = lines.last_line() {
        received.take_line(line, &lines, max_message);
    }
}

impl Received {
    fn take_line(&self, line: Line, lines: &LineBuffer, max_message: usize) {
        match line {
            // the request that it responds to is not known: it was not kept
            Line::TooLong => self.fail_waiting(&Error::too_large(max_message, Some("max_message"))),
            Line::Text(range) => self.take(lines.text(range)),
        }
    }

    /// Takes one message; text that is not a message is ignored, for some servers log to stdout.
    pub(super) fn take(&self, text: &[u8]) {
        match parse(text) {
            Ok(message) if message.is_response() => {
                let id = message.id().and_then(|id| id.trim_matches('"').parse().ok());
                if let (Some(id), Some(response)) = (id, message.response()) {
                    let reply = response.map(str::to_owned).map_err(parse_error);
                    self.shared.finish(id, reply);
                }
            }
            Ok(message) => {
                let Ok(text) = std::str::from_utf8(text) else { return };
                match self.inbox.stream_ended_by(&message, text) {
                    Some(id) => self.shared.finish(id, Ok(ENDED.to_owned())),
                    None => self.inbox.receive(text, &self.shared),
                }
            }
            Err(malformed) => self.take_broken(text, &malformed),
        }
    }

    #[cold]
    fn take_broken(&self, text: &[u8], malformed: &MalformedMessage) {
        // 2025-03-26 has batches
        if let Some(batch) = parse_batch(text) {
            return batch.into_iter().for_each(|message| self.take(message.get().as_bytes()));
        }
        let Some(broken) = BrokenResponse::read(text, malformed) else {
            #[cfg(feature = "cli")]
            if let Some(listener) = &self.inbox.handlers.stray_line {
                call_listener(listener, String::from_utf8_lossy(text).into_owned());
            }
            if let Some(process) = &self.process {
                process.keep_stray_line(text);
            }
            return tracing::debug!("the server sent an invalid message");
        };
        for id in broken.ids {
            self.shared.finish(id, Err(broken.error.clone()));
        }
        if broken.is_without_id {
            self.shared.fail_only(broken.error);
        }
    }

    /// Fails the request with this id.
    pub(super) fn fail(&self, id: u64, error: Error) {
        self.shared.finish(id, Err(error));
    }

    /// Fails all requests that wait for a response.
    pub(super) fn fail_waiting(&self, error: &Error) {
        self.shared.fail_waiting(error);
    }
}
