//! What goes back over HTTP: response bodies, replies with their status and headers, and refusals of requests that
//! never reach dispatch.

use std::{
    borrow::Cow,
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::{
    exchange::Exchange,
    sse::{write_comment, write_message},
};
use crate::{
    connection::Receiver,
    dispatch::{Calls, MethodReply, Status, encode},
    jsonrpc::{ProtocolError, write_error_response},
    protocol::{INTERNAL_ERROR, INVALID_REQUEST, Revision},
    server::Server,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// After that much silence a comment is sent, so that nothing on the way takes the connection for dead.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The body of a response: the whole of it, or an event stream.
pub struct ResponseBody(BodySource);

enum BodySource {
    /// Empty once it is sent.
    Whole(Bytes),
    EventReader(Box<EventReader>),
}

/// An event stream.
struct EventReader {
    receiver: Receiver,
    /// What the receiver gives are events already; otherwise messages.
    written: bool,
    /// A comment is due, so that the client sees the head of the response.
    opening: bool,
    silence: Pin<Box<Sleep>>,
}

impl ResponseBody {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(BodySource::Whole(bytes.into()))
    }

    /// A stream of the messages that come out of a channel.
    pub(super) fn messages(receiver: Receiver, opening: bool) -> Self {
        Self::events(receiver, false, opening)
    }

    /// A stream of events that come out of a channel as they are.
    pub(super) fn written(receiver: Receiver) -> Self {
        Self::events(receiver, true, false)
    }

    fn events(receiver: Receiver, written: bool, opening: bool) -> Self {
        let silence = Box::pin(sleep(KEEP_ALIVE));
        Self(BodySource::EventReader(Box::new(EventReader { receiver, written, opening, silence })))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            BodySource::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodySource::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            BodySource::EventReader(events) => {
                events.poll(cx).map(|events| events.map(|e| Ok(Frame::data(e))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodySource::Whole(bytes) => bytes.is_empty(),
            BodySource::EventReader(events) => events.receiver.is_finished(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodySource::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodySource::EventReader(_) => SizeHint::default(),
        }
    }
}

impl EventReader {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.opening) {
            write_comment(&mut out);
        }
        match self.receiver.poll(cx) {
            Poll::Ready(Some(messages)) if self.written => {
                messages.iter().for_each(|m| out.extend_from_slice(m));
            }
            Poll::Ready(Some(messages)) => {
                messages.iter().for_each(|message| write_message(&mut out, message));
            }
            Poll::Ready(None) if out.is_empty() => return Poll::Ready(None),
            Poll::Ready(None) => {}
            Poll::Pending if out.is_empty() => {
                ready!(self.silence.as_mut().poll(cx));
                write_comment(&mut out);
            }
            Poll::Pending => {}
        }
        self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(out.into()))
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            BodySource::Whole(_) => "ResponseBody::Whole",
            BodySource::EventReader(_) => "ResponseBody::EventReader",
        })
    }
}

/// A response without body.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// A JSON response.
pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// An event stream.
pub(super) fn events(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would hold the events back otherwise
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Puts the status and headers of a reply into a response; `modern`: older clients find errors in a 200.
pub(super) fn add_head(response: &mut Response<ResponseBody>, reply: &MethodReply, modern: bool) {
    if modern {
        *response.status_mut() = match reply.status {
            Status::Ok => StatusCode::OK,
            Status::BadRequest => StatusCode::BAD_REQUEST,
            Status::NotFound => StatusCode::NOT_FOUND,
            Status::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
    }
    for (name, value) in &reply.headers {
        if let Ok(value) = HeaderValue::try_from(value.as_str()) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
}

/// An error reply to the request of that id.
pub(super) fn error(status: StatusCode, id: Option<&str>, error: &ProtocolError) -> Response<ResponseBody> {
    let mut body = Vec::with_capacity(128);
    write_error_response(&mut body, id, error);
    json(status, body)
}

/// A request that never reaches dispatch.
#[derive(Debug)]
pub(super) struct HttpError {
    status: StatusCode,
    code: i64,
    message: Cow<'static, str>,
}

impl HttpError {
    pub(super) fn new(status: StatusCode, code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, message: message.into() }
    }

    fn invalid(status: StatusCode, message: &'static str) -> Self {
        Self::new(status, INVALID_REQUEST, message)
    }

    pub(super) fn bad_request(message: &'static str) -> Self {
        Self::invalid(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn forbidden(message: &'static str) -> Self {
        Self::invalid(StatusCode::FORBIDDEN, message)
    }

    pub(super) fn no_session() -> Self {
        Self::invalid(StatusCode::NOT_FOUND, "there is no such session\nstart another one with `initialize`")
    }

    pub(super) fn no_request() -> Self {
        Self::bad_request("no request of the server waits for this response")
    }

    pub(super) fn not_acceptable() -> Self {
        Self::invalid(
            StatusCode::NOT_ACCEPTABLE,
            "`Accept` excludes what would be sent\naccept `application/json` and `text/event-stream`",
        )
    }

    pub(super) fn no_stream() -> Self {
        Self::invalid(
            StatusCode::NOT_ACCEPTABLE,
            "`Accept` excludes what would be sent\naccept `text/event-stream`",
        )
    }

    pub(super) fn no_sse_stream() -> Self {
        Self::invalid(StatusCode::NOT_FOUND, "there is no such event stream\nopen another one with GET")
    }

    pub(super) fn no_event() -> Self {
        Self::bad_request("`Last-Event-ID` is not an event that this session can go on from")
    }

    pub(super) fn wrong_type() -> Self {
        Self::invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not declared as `application/json`")
    }

    pub(super) fn too_large() -> Self {
        Self::invalid(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than this server takes")
    }

    pub(super) fn too_slow() -> Self {
        Self::invalid(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
    }

    pub(super) fn busy() -> Self {
        Self::unavailable("too many requests are being served\ntry again")
    }

    pub(super) fn too_many_streams() -> Self {
        Self::unavailable("too many event streams are open\ntry again")
    }

    pub(super) fn too_many_bodies() -> Self {
        Self::unavailable("too much is being received\ntry again")
    }

    fn unavailable(message: &'static str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, INTERNAL_ERROR, message)
    }

    /// The reply to the request of that id.
    pub(super) fn reply(&self, id: Option<&str>) -> Response<ResponseBody> {
        let mut response = error(self.status, id, &ProtocolError::new(self.code, self.message.clone()));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<HttpError> for Response<ResponseBody> {
    fn from(refusal: HttpError) -> Self {
        refusal.reply(None)
    }
}

/// `405`, with the methods that are served instead.
pub(super) fn not_allowed(allow: &'static str) -> Response<ResponseBody> {
    let refusal = HttpError::invalid(StatusCode::METHOD_NOT_ALLOWED, "this HTTP method is not served here");
    let mut response = refusal.reply(None);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

/// Lets a page of an admitted origin read a response.
pub(super) fn expose(headers: &mut HeaderMap, origin: &HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
    );
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

/// Answers a preflight request; its origin has been admitted.
pub(super) fn preflight(request: &HeaderMap, allow: &'static str) -> Response<ResponseBody> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    if request.contains_key(header::ORIGIN) {
        let methods = HeaderValue::from_static("POST, GET, DELETE");
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        // a tool's `Mcp-Param-*` headers can have any name
        if let Some(wanted) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
    }
    response
}

/// The response to one request that was answered at once.
pub(super) fn reply(
    server: &Server,
    exchange: &Exchange,
    id: &str,
    revision: Revision,
    reply: &MethodReply,
) -> Response<ResponseBody> {
    let mut out = Vec::with_capacity(256);
    encode(&mut out, reply, id, revision, server.identity());
    let mut response = if exchange.accepts().json && exchange.is_quiet() {
        json(StatusCode::OK, out)
    } else {
        as_events([out], exchange)
    };
    add_head(&mut response, reply, revision.is_modern());
    response
}

/// The response of calls of which none is running.
pub(super) fn finish(server: &Server, calls: &mut Calls, exchange: &Exchange) -> Response<ResponseBody> {
    let (batch, revision) = (calls.batch, calls.revision);
    let replies = calls.take_replies();
    let Some((id, first)) = replies.first() else {
        // cancelled: the request gets no reply, the connection a response
        return if exchange.accepts().stream {
            events(ResponseBody::whole(Bytes::new()))
        } else {
            empty(StatusCode::ACCEPTED)
        };
    };
    if !batch {
        return reply(server, exchange, id, revision, first);
    }
    let encoded = replies.iter().map(|(id, reply)| {
        let mut out = Vec::with_capacity(256);
        encode(&mut out, reply, id, revision, server.identity());
        out
    });
    if !exchange.is_quiet() || !exchange.accepts().json {
        return as_events(encoded, exchange);
    }
    let mut array = Vec::new();
    for reply in encoded {
        array.push(if array.is_empty() { b'[' } else { b',' });
        array.extend(reply);
    }
    array.push(b']');
    json(StatusCode::OK, array)
}

/// What was sent before the replies, and the replies, as the events of a whole body.
fn as_events(replies: impl IntoIterator<Item = Vec<u8>>, exchange: &Exchange) -> Response<ResponseBody> {
    let mut out = Vec::new();
    for message in exchange.outbound().take().into_iter().chain(replies) {
        write_message(&mut out, &message);
    }
    events(ResponseBody::whole(out))
}
