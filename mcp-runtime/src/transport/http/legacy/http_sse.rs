//! HTTP+SSE, the transport of 2024-11-05: one event stream carries every message of the server, and a POST each message
//! of the client. A stream is served like a connection of stdio, within the limits of the endpoint.
//!
//! See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).

use std::{collections::HashMap, sync::Arc};

use http::{Method, Response, StatusCode, request::Parts};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::event_sender::EventSender;
use crate::{
    core::{
        admission::Owner,
        config::HttpOptions,
        connection::{ClientData, Principal, Put},
        crypto::random_id,
        reason::Refusal,
        spawn::spawn,
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

impl HttpError {
    fn unknown_stream() -> Self {
        Self::invalid(Refusal::Stream, "the event stream does not exist\nopen a new one with GET")
    }
}

impl RequestBody {
    /// Charges a body that has to wait to its sender, also if it arrived as a whole.
    ///
    /// # Errors
    /// It exceeds what all bodies or those of its owner may hold.
    pub(in crate::transport::http) fn charge(
        &mut self,
        endpoint: &Endpoint,
        owner: &Owner,
    ) -> Result<(), HttpError> {
        if self.permit.is_none() {
            let permit = endpoint.budgets.bodies.try_acquire(owner, self.text.len());
            self.permit = Some(permit.ok_or_else(HttpError::too_many_body_bytes)?);
        }
        Ok(())
    }
}

impl HttpOptions {
    /// Serves HTTP+SSE as well, the transport of 2024-11-05 that newer revisions have replaced, at a separate path.
    ///
    /// For clients that know no other; disabled by default. A client opens an event stream there with GET,
    /// and sends its messages to the URL that the first event names. The stream is the session: it ends with
    /// the connection, and only the process that has it takes the client's messages.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let server = mcp_runtime::server!().http(|http| http.legacy_sse("/sse")).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn legacy_sse(mut self, path: impl Into<String>) -> Self {
        self.sse_path = Some(path.into());
        self
    }
}

/// The streams that the clients of one endpoint have opened, by name; clones share them.
#[derive(Default, Clone)]
pub(in crate::transport::http) struct SseStreams(Arc<Mutex<HashMap<Box<str>, SseStream>>>);

/// One open stream.
#[derive(Clone)]
struct SseStream {
    /// The client's messages.
    messages: mpsc::Sender<RequestBody>,
    caller: Option<Arc<Principal>>,
}

/// The registration of an open stream; after it is dropped no more messages are received.
struct SseRegistration {
    name: Box<str>,
    streams: SseStreams,
}

impl Drop for SseRegistration {
    fn drop(&mut self) {
        self.streams.0.lock().remove(&self.name);
    }
}

impl SseStreams {
    fn register(&self, name: Box<str>, stream: SseStream) -> SseRegistration {
        self.0.lock().insert(name.clone(), stream);
        SseRegistration { name, streams: self.clone() }
    }

    pub(in crate::transport::http) async fn answer(
        &self,
        endpoint: &Arc<Endpoint>,
        request: &Arc<RequestConnection>,
        headers: &ProtocolHeaders<'_>,
        body: IncomingBody,
    ) -> Response<ResponseBody> {
        let answer = match request.parts().method {
            Method::GET => self.open(endpoint, request),
            Method::POST => self.post(endpoint, request, headers, body).await,
            _ => return HttpError::method_not_allowed("GET, POST").into(),
        };
        answer.unwrap_or_else(Into::into)
    }

    /// Answers GET: opens a stream, whose first event contains the path for messages, as some clients resolve nothing else.
    fn open(
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
        // a name that cannot be guessed
        let name = random_id().map_err(|_| HttpError::too_many_streams())?;
        let registration = self.register(name.into(), SseStream { messages, caller: caller.clone() });
        // a router that is mounted in another program begins to listen to its replicas here
        endpoint.server.join_replicas();
        let (sender, body) = EventSender::new(&budgets.outbound, owner.clone(), Some(permit), Some(end));
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
    async fn post(
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
        let stream = self.0.lock().get(name).cloned().filter(|stream| match (&stream.caller, caller) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one.is_none() && other.is_none(),
        });
        let stream = stream.ok_or_else(HttpError::unknown_stream)?;
        if !headers.is_json() {
            return Err(HttpError::unsupported_media_type());
        }
        let mut permit = endpoint.budgets.admit(request)?;
        let limit = endpoint.options.max_body;
        let mut message =
            read_body(body, limit, endpoint, request, headers.expects_continue, &mut permit).await?;
        message.charge(endpoint, &request.owner())?;
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
    sender.put_short(first.into_bytes());
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
                write_event(&mut events, |out| out.extend_from_slice(line));
            }
            // until then the text is charged as that of the connection
            if !sender.wait_for_capacity().await {
                return;
            }
            chunk = next;
            // its bytes have been passed on
            chunk.permit = None;
            if sender.put(events) != Put::Queued {
                return;
            }
        }
    };
    let shutdown_timeout = endpoint.server.options().limits.shutdown_timeout.unwrap_or(SHUTDOWN_TIMEOUT);
    tokio::select! {
        () = scheduler.supervise(read, std::future::ready(()), shutdown_timeout) => {}
        () = write => {}
        () = sender.abandoned() => {}
    }
}
