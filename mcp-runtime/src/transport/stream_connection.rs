//! The reading side of one connection over a byte stream, one message per line: requests that complete immediately are
//! answered in place, the others are scheduled.
//!
//! See [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tokio::runtime::Handle;

use super::{
    lines::{Line, LineBuffer},
    scheduler::{RequestScheduler, SharedRequests, Turn},
    writer::{ConnectionWriter, FLUSH_SIZE, OutputBuffer},
};
use crate::core::{
    changes::{Filter, ListChanges},
    config::MAX_LINE,
    connection::{
        ClientConnection, HttpHead, NOT_INITIALIZED, PendingResponse, RequestContext, SessionState,
    },
    dispatch::{
        Batch, Calls, ConnectionState, Reply, Request, RequestRevision, StartedRequest, THE_CLIENT,
        id_in_use, is_limited, resolve_revision,
    },
    jsonrpc::{JsonRpcMessage, MalformedMessage, ProtocolError, parse, parse_batch, write_error_response},
    log_limit::LogLine,
    protocol::Revision,
    server::Server,
};

/// How long calls may run after the input of a byte stream has ended, unless `shutdown_timeout` is set.
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

    fn http_head(&self) -> Option<HttpHead<'_>> {
        self.opening_request.as_deref()?.http_head()
    }

    fn session(&self) -> Option<&dyn SessionState> {
        Some(&*self.state)
    }
}

/// The parts from which a connection is created.
pub(crate) struct ConnectionParts {
    pub(crate) server: Server,
    pub(crate) writer: Arc<ConnectionWriter>,
    pub(crate) runtime: Handle,
    /// The context of the client's requests; its `connection` is the HTTP request that opened this connection.
    pub(crate) context: RequestContext,
    /// The limit on requests that it shares with other connections, if there is one.
    pub(crate) requests: Option<SharedRequests>,
}

/// The reading side of one connection.
pub(crate) struct StreamConnection {
    scheduler: Arc<RequestScheduler>,
    buffer: LineBuffer,
    /// The revision that `initialize` negotiated.
    handshake: Option<Revision>,
    context: RequestContext,
    /// Set by `initialize`; the client is notified of these changes from its next message on.
    filter: Option<Arc<Filter>>,
    opened: Instant,
}

impl Drop for StreamConnection {
    fn drop(&mut self) {
        let transport = self.context.connection.as_ref().and_then(|connection| connection.transport());
        let (revision, lasted) = (self.handshake.unwrap_or(Revision::LATEST), self.opened.elapsed());
        for observer in self.scheduler.server.observers().iter() {
            observer.session_ended(transport, revision.as_str(), lasted);
        }
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
        let scheduler = RequestScheduler::new(server, writer, runtime, state, requests);
        let connection = Self {
            scheduler: scheduler.clone(),
            buffer: LineBuffer::new(MAX_LINE),
            handshake: None,
            context,
            filter: None,
            opened: Instant::now(),
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

    /// Serves the complete lines that have been read, and sends the replies; `false` if the client must read some of them
    /// before it continues.
    pub(crate) fn serve_lines(&mut self, out: &mut OutputBuffer) -> bool {
        loop {
            let line = self.buffer.next_line();
            let is_last = line.is_none();
            if let Some(line) = line {
                self.serve(line, out);
            }
            if is_last || out.bytes.len() >= FLUSH_SIZE {
                let writer = &self.scheduler.writer;
                out.flush(writer);
                if writer.is_full() {
                    return false;
                }
            }
            if is_last {
                return true;
            }
        }
    }

    /// Serves what follows the last line ending, once the input has ended.
    pub(crate) fn serve_last_line(&mut self, out: &mut OutputBuffer) {
        if let Some(line) = self.buffer.last_line() {
            self.serve(line, out);
        }
        out.flush(&self.scheduler.writer);
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
                let error = format!("the line is longer than {MAX_LINE} bytes\nsend less at once");
                self.refuse(None, &ProtocolError::invalid_request(error), out);
            }
        }
    }

    /// Serves one message. Its size is bounded where it was read: a line by [`MAX_LINE`], a body by `http.max_body`.
    pub(crate) fn serve_text(&mut self, text: &[u8], out: &mut OutputBuffer) {
        // most messages begin with their brace
        if text.first() != Some(&b'{') && text.trim_ascii_start().is_empty() {
            return;
        }
        if self.context.caller.as_ref().is_some_and(|caller| caller.has_expired()) {
            tracing::warn!(
                "the caller's authentication has expired: the client is an anonymous caller from now on"
            );
            self.context.caller = None;
        }
        match parse(text) {
            Ok(message) => self.receive_message(&message, text, out),
            Err(malformed) => self.receive_batch_or_error(text, &malformed, out),
        }
    }

    fn receive_batch_or_error(&mut self, text: &[u8], malformed: &MalformedMessage, out: &mut OutputBuffer) {
        if self.handshake == Some(Revision::V2025_03_26)
            && let Some(members) = parse_batch(text)
        {
            return self.receive_batch(&Batch::parse(&members), text, out);
        }
        if !malformed.expects_response {
            tracing::debug!(error = %malformed.error, "a malformed notification was ignored");
        } else {
            let requires_id = self.handshake.is_some_and(|revision| revision < Revision::V2025_11_25);
            let long_id = malformed.long_id.as_deref().filter(|_| requires_id);
            self.refuse(malformed.id.as_deref().or(long_id), &malformed.error, out);
        }
    }

    /// Writes an error, unless it has no id and the connection's revision requires one.
    fn refuse(&self, id: Option<&str>, error: &ProtocolError, out: &mut OutputBuffer) {
        if id.is_none() && self.handshake.is_some_and(|revision| revision < Revision::V2025_11_25) {
            if let Some(LogLine { suppressed }) = self.scheduler.server.log_limits().unreadable.line() {
                tracing::warn!(suppressed, error = %error, "a message could not be read");
            }
            return;
        }
        let start = out.bytes.len();
        write_error_response(&mut out.bytes, id, error);
        out.end_line(start);
    }

    fn receive_message(&mut self, message: &JsonRpcMessage<'_>, text: &[u8], out: &mut OutputBuffer) {
        self.begin_changes(out);
        let Some(id) = message.id().filter(|_| !message.is_response()) else {
            return self.receive_response_or_notification(message);
        };
        let revision = match resolve_revision(message, self.handshake) {
            RequestRevision::Known(revision) => revision,
            RequestRevision::Unsupported(error) => return self.refuse(Some(id), &error, out),
            RequestRevision::Initialize => {
                let reply = self.initialize(message);
                return self.scheduler.write(&reply, id, Revision::LATEST_LEGACY, out);
            }
        };
        let context = &self.context;
        let Some(request) = Request::from_message(message, revision, context) else { return };
        if request.opens_stream() {
            return self.listen(request, out);
        }
        let admission =
            if is_limited(request.method) { self.scheduler.admit(1, text.len()) } else { Turn::Now };
        match admission {
            Turn::Now => match self.scheduler.start_request(request, &mut Vec::new()) {
                StartedRequest::Ready(reply) => self.scheduler.write(&reply, id, revision, out),
                StartedRequest::Pending(running) => {
                    self.scheduler.answer(Calls::single(running, revision), out);
                }
            },
            Turn::Queue => {
                if !self.scheduler.queue(&[id], 1, text, revision, context) {
                    self.refuse(Some(id), &id_in_use(id), out);
                }
            }
            refused => self.refuse(Some(id), &self.scheduler.refuse(refused, context), out),
        }
    }

    fn initialize(&mut self, message: &JsonRpcMessage<'_>) -> Reply {
        let server = &self.scheduler.server;
        let rate_owner = (!self.context.rate_taken).then(|| self.context.owner());
        let connection = self.context.connection.as_deref();
        let (reply, handshake) = server.initialize(message.params(), true, rate_owner, connection);
        if let Some(handshake) = handshake {
            self.handshake = Some(handshake.revision);
            self.context.client = handshake.client;
            let changes = server.list_changes();
            if changes != ListChanges::default() {
                self.filter =
                    self.scheduler.state.set_filter(server.hub().filter(changes, &self.context.owner()));
            }
        }
        reply
    }

    fn receive_response_or_notification(&self, message: &JsonRpcMessage<'_>) {
        if !message.is_response() {
            self.scheduler.receive_notification(message);
        } else if !self.scheduler.open_requests().deliver_response(message) {
            tracing::debug!("a response that no request waits for was ignored");
        }
    }

    /// Notifies the client of changes, if this is its first message after `initialize`.
    fn begin_changes(&mut self, out: &mut OutputBuffer) {
        if let Some(filter) = self.filter.take() {
            self.subscribe_to_changes(filter, out);
        }
    }

    /// Notifies the client of changes from now on; the reply to `initialize` must be sent before.
    fn subscribe_to_changes(&self, filter: Arc<Filter>, out: &mut OutputBuffer) {
        out.flush(&self.scheduler.writer);
        let RequestContext { caller, access_rules, .. } = &self.context;
        let server = &self.scheduler.server;
        let subscriber =
            server.hub().subscribe(filter, caller.clone(), access_rules.clone(), &self.context.owner());
        if let Some(subscriber) = subscriber {
            self.scheduler.notify_changes(subscriber);
        } else if let Some(LogLine { suppressed }) = server.log_limits().subscribers.line() {
            tracing::warn!(
                suppressed,
                "a client is not notified of changes: too many subscribers\nraise `max_subscribers`"
            );
        }
    }

    /// Opens a subscription, which does not count as a call in flight.
    fn listen(&self, request: Request<'_>, out: &mut OutputBuffer) {
        if self.scheduler.is_stopping() {
            let error = self.scheduler.refuse(Turn::Stopping, request.context);
            return self.refuse(Some(request.id), &error, out);
        }
        match self.scheduler.server.start_stream(request, Some(self.scheduler.open_requests())) {
            Ok((subscription, registration)) => {
                out.flush(&self.scheduler.writer);
                self.scheduler.spawn_subscription(subscription, registration);
            }
            Err(reply) => self.scheduler.write(&reply, request.id, request.revision, out),
        }
    }

    /// Serves an array of messages, which only 2025-03-26 has.
    fn receive_batch(&mut self, messages: &Batch<'_>, text: &[u8], out: &mut OutputBuffer) {
        self.begin_changes(out);
        if let Err(error) = messages.check() {
            // this revision has no errors without an id, so each request gets one
            let replies: Vec<_> =
                messages.ids().map(|id| (Box::<str>::from(id), Reply::from(error.clone()))).collect();
            return match replies.is_empty() {
                true => self.refuse(None, &error, out),
                false => self.scheduler.write_batch(&replies, out),
            };
        }
        if messages.contains_initialized() {
            self.scheduler.state.initialized.store(true, Ordering::Release);
        }
        let requests = messages.limited_requests();
        let turn = match requests {
            0 => Turn::Now,
            requests => self.scheduler.admit(requests, text.len()),
        };
        let admitted = match turn {
            Turn::Now => Some(Ok(())),
            Turn::Queue => {
                let ids: Vec<&str> = messages.ids().collect();
                let is_queued =
                    self.scheduler.queue(&ids, requests, text, Revision::V2025_03_26, &self.context);
                // none of them waits, or runs before others that wait
                let text = "an id of the batch is in use by a request that is still running\nno request of it was started";
                (!is_queued).then(|| Err(ProtocolError::invalid_request(text)))
            }
            refused => Some(Err(self.scheduler.refuse(refused, &self.context))),
        };
        if let Some(admitted) = admitted {
            let calls = self.scheduler.start_batch(messages, &self.context, &mut Vec::new(), admitted);
            self.scheduler.answer(calls, out);
        }
        for message in messages.responses_and_notifications() {
            self.receive_response_or_notification(message);
        }
    }
}
