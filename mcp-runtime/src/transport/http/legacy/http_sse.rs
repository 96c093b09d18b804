//! HTTP+SSE, the transport of 2024-11-05: one event stream carries every message of the server, and a POST each message
//! of the client. A stream is served like a connection of stdio, within the limits of the endpoint. Where replicas share a
//! store, each of them takes the messages for it.
//!
//! See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).

use std::{collections::HashMap, fmt, sync::Arc};

use http::{Response, StatusCode, request::Parts};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::event_sender::EventSender;
use crate::{
    core::{
        admission::{Owner, Shares},
        connection::{ClientData, Principal},
        crypto::random_id,
        server::Server,
        spawn::spawn,
        store::StoreFuture,
        sync::Mutex,
    },
    transport::{
        http::{
            endpoint::Endpoint,
            headers::ProtocolHeaders,
            http_error::HttpError,
            request_body::{IncomingBody, RequestBody, read_body},
            request_connection::RequestConnection,
            response_body::{ResponseBody, empty_response, event_stream_response},
            sse::write_event,
        },
        scheduler::SharedRequests,
        stream_connection::{ConnectionParts, SHUTDOWN_TIMEOUT, StreamConnection},
        writer::{BacklogChunk, ConnectionWriter, OutputBuffer},
    },
};

/// Messages of one client that wait to be served.
const MAX_QUEUED: usize = 16;
/// The query parameter with the stream's name.
const NAME_PARAMETER: &str = "sessionId=";

/// The streams that the clients of one endpoint have opened.
#[derive(Debug)]
pub(in crate::transport::http) struct SseStreams {
    open: Arc<OpenSseStreams>,
    elsewhere: Option<Arc<dyn OtherSseStreams>>,
}

/// The open streams of this process, by name.
#[derive(Debug, Default)]
pub(super) struct OpenSseStreams(Mutex<HashMap<Box<str>, SseStream>>);

/// One open stream.
#[derive(Debug, Clone)]
pub(super) struct SseStream {
    /// The client's messages.
    messages: mpsc::Sender<RequestBody>,
    caller: Option<Arc<Principal>>,
    owner: Owner,
    /// Bytes of messages that wait.
    bodies: Arc<Shares>,
}

/// Why a stream does not take a message of another replica.
pub(super) enum MessageRefused {
    /// Too many messages wait to be served.
    Full,
    Ended,
}

/// The registration of an open stream; after it is dropped no more messages are received.
struct SseRegistration {
    name: Box<str>,
    streams: Arc<OpenSseStreams>,
}

/// The streams of other replicas. Only a program with a store that replicas share contains what implements it.
pub(super) trait OtherSseStreams: fmt::Debug + Send + Sync {
    /// The name of a new stream of this process, for that caller; `None` if the operating system provides no randomness.
    fn name(&self, caller: Option<&Principal>) -> Option<String>;

    /// The other process that has a stream of that caller; `None` if the name is not one of them.
    fn process_of(&self, name: &str, caller: Option<&Principal>) -> Option<String>;

    /// Passes a message on to the process that has the stream.
    fn pass_on<'a>(
        &'a self,
        process: &'a str,
        name: &'a str,
        message: &'a [u8],
        owner: &'a Owner,
    ) -> StoreFuture<'a, Result<(), HttpError>>;
}

/// Makes those of a server, beside the streams of this process.
type OpenOthers = fn(&Server, &Arc<OpenSseStreams>) -> Option<Arc<dyn OtherSseStreams>>;

/// The option with what makes them.
#[derive(Clone, Copy)]
pub(super) struct OpenSseReplicas(pub(super) OpenOthers);

impl OpenSseStreams {
    pub(super) fn find(&self, name: &str) -> Option<SseStream> {
        self.0.lock().get(name).cloned()
    }

    fn register(self: &Arc<Self>, name: Box<str>, stream: SseStream) -> SseRegistration {
        self.0.lock().insert(name.clone(), stream);
        SseRegistration { name, streams: self.clone() }
    }
}

impl SseStream {
    /// Takes a message that another replica has passed on.
    ///
    /// # Errors
    /// It has too many that wait, or has ended.
    pub(super) fn take(&self, message: &[u8]) -> Result<(), MessageRefused> {
        let message = RequestBody::of_replica(message, &self.bodies, &self.owner);
        let sent = self.messages.try_send(message.ok_or(MessageRefused::Full)?);
        sent.map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => MessageRefused::Full,
            mpsc::error::TrySendError::Closed(_) => MessageRefused::Ended,
        })
    }
}

impl Drop for SseRegistration {
    fn drop(&mut self) {
        self.streams.0.lock().remove(&self.name);
    }
}

impl SseStreams {
    pub(super) fn new(server: &Server) -> Self {
        let open = Arc::<OpenSseStreams>::default();
        let open_replicas = server.options().of_capabilities.get::<OpenSseReplicas>();
        let elsewhere = open_replicas.and_then(|open_replicas| open_replicas.0(server, &open));
        Self { open, elsewhere }
    }

    /// The name of a new stream, which cannot be guessed; `None` if the operating system provides no randomness.
    fn new_name(&self, caller: Option<&Principal>) -> Option<Box<str>> {
        let name = match &self.elsewhere {
            Some(elsewhere) => elsewhere.name(caller)?,
            None => random_id().ok()?,
        };
        Some(name.into())
    }

    /// Answers GET: opens a stream, whose first event contains the path for messages, as some clients resolve nothing else.
    pub(in crate::transport::http) fn open(
        &self,
        endpoint: &Arc<Endpoint>,
        request: &Arc<RequestConnection>,
    ) -> Result<Response<ResponseBody>, HttpError> {
        if !request.accepts().stream {
            return Err(HttpError::event_stream_not_acceptable());
        }
        let budgets = &endpoint.budgets;
        let caller = request.caller().cloned();
        let owner = request.owner();
        let permit = budgets.streams.try_acquire(&owner, 1).ok_or_else(HttpError::too_many_streams)?;
        // the stream is the session
        let end = endpoint.stream_end(caller.as_ref(), endpoint.options.session_lifetime);
        let (messages, receiver) = mpsc::channel(MAX_QUEUED);
        let name = self.new_name(caller.as_deref()).ok_or_else(HttpError::too_many_streams)?;
        let (of, bodies) = (owner.clone(), budgets.bodies.clone());
        let stream = SseStream { messages, caller: caller.clone(), owner: of, bodies };
        let registration = self.open.register(name, stream);
        if self.elsewhere.is_some() {
            // a router that is mounted in another program begins to listen to its replicas here
            endpoint.server.join_replicas();
        }
        let (sender, body) = EventSender::new(&budgets.outbound, owner.clone(), Some(permit), end);
        let parts = ConnectionParts {
            server: endpoint.server.clone(),
            writer: ConnectionWriter::charging(budgets.outbound.empty_permit(&owner)),
            runtime: Handle::current(),
            context: endpoint.context(request, request.clone(), caller, ClientData::NONE),
            requests: Some(SharedRequests {
                permits: budgets.requests.clone(),
                bytes: budgets.bodies.clone(),
                owner,
            }),
        };
        let path = original_path(request.parts()).into();
        spawn(serve(endpoint.clone(), registration, path, parts, receiver, sender));
        Ok(event_stream_response(body))
    }

    /// Answers POST: passes a message to the stream that the query names.
    pub(in crate::transport::http) async fn post(
        &self,
        endpoint: &Endpoint,
        request: &RequestConnection,
        headers: &ProtocolHeaders<'_>,
        body: IncomingBody,
    ) -> Result<Response<ResponseBody>, HttpError> {
        let parts = request.parts();
        let query = parts.uri.query();
        let name =
            query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix(NAME_PARAMETER)));
        let caller = request.caller();
        let name = name.ok_or_else(HttpError::unknown_stream)?;
        let stream = self.open.find(name).filter(|stream| match (&stream.caller, caller) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one.is_none() && other.is_none(),
        });
        let elsewhere = self.elsewhere.as_ref().filter(|_| stream.is_none()).and_then(|elsewhere| {
            Some((elsewhere, elsewhere.process_of(name, caller.map(|caller| &**caller))?))
        });
        if stream.is_none() && elsewhere.is_none() {
            return Err(HttpError::unknown_stream());
        }
        if !headers.is_json() {
            return Err(HttpError::unsupported_media_type());
        }
        let mut permit = endpoint.budgets.admit(request)?;
        let mut message = read_body(body, endpoint, request, headers.expects_continue, &mut permit).await?;
        message.charge(endpoint, &request.owner())?;
        let Some(stream) = stream else {
            let (elsewhere, process) = elsewhere.ok_or_else(HttpError::unknown_stream)?;
            endpoint.server.join_replicas();
            let owner = request.owner();
            // it may take long
            permit.charge(&owner)?;
            elsewhere.pass_on(&process, name, &message.text, &owner).await?;
            return Ok(empty_response(StatusCode::ACCEPTED));
        };
        if stream.messages.capacity() == 0 {
            // it may take long
            permit.charge(&request.owner())?;
        }
        match timeout(endpoint.options.body_timeout, stream.messages.send(message)).await {
            Ok(Ok(())) => Ok(empty_response(StatusCode::ACCEPTED)),
            Ok(Err(_)) => Err(HttpError::unknown_stream()),
            Err(_) => Err(HttpError::busy()),
        }
    }
}

/// The path that the client requested; a router that nests this one passes on only the rest of it.
fn original_path(parts: &Parts) -> &str {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(uri)) = parts.extensions.get() {
        return uri.path();
    }
    parts.uri.path()
}

/// Serves one stream until its client disconnects, the server stops, or the lifetime of a session has passed.
async fn serve(
    endpoint: Arc<Endpoint>,
    registration: SseRegistration,
    path: Box<str>,
    parts: ConnectionParts,
    mut receiver: mpsc::Receiver<RequestBody>,
    sender: EventSender,
) {
    let first = format!("event: endpoint\ndata: {path}?{NAME_PARAMETER}{}\n\n", registration.name);
    if !sender.send(first.into_bytes(), None).await {
        return;
    }
    let writer = parts.writer.clone();
    let (mut connection, scheduler) = StreamConnection::new(parts);
    let deadline = Instant::now() + endpoint.options.session_lifetime;
    let read = async {
        let messages = async {
            let mut out = OutputBuffer::default();
            while let Some(message) = receiver.recv().await {
                connection.serve_text(&message.text, &mut out);
                out.flush(&writer);
                if writer.is_full() {
                    writer.wait_for_capacity().await;
                }
            }
        };
        tokio::select! {
            () = messages => {}
            // the end of the input: the connection ends as it does on stdio
            () = endpoint.shutdown.cancelled() => {}
            () = sleep_until(deadline) => {}
        }
        drop(registration);
    };
    let write = async {
        let mut chunk = BacklogChunk::default();
        while let Some(next) = writer.next_chunk(chunk).await {
            let mut events = Vec::with_capacity(next.bytes.len() + 64);
            for line in next.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                write_event(&mut events, line);
            }
            // until then the text is charged as that of the connection
            if !sender.wait_for_capacity().await {
                return;
            }
            chunk = next.released();
            if !sender.send(events, None).await {
                return;
            }
        }
    };
    let shutdown_timeout = endpoint.server.options().limits.shutdown_timeout.unwrap_or(SHUTDOWN_TIMEOUT);
    tokio::select! {
        () = scheduler.supervise(read, std::future::ready(()), shutdown_timeout) => {}
        () = write => {}
        () = sender.wait_until_disconnected() => {}
    }
}
