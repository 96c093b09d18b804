//! What goes back: response bodies, and refusals as JSON-RPC errors. Made by the endpoint and its calls.

use std::{
    borrow::Cow,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::http::{HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::{feed::Events, stream::Stream, subscription};
use crate::{
    dispatch::Status,
    jsonrpc::{ProtocolError, error_reply},
    protocol::{INTERNAL_ERROR, INVALID_REQUEST},
};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The body of a response.
#[derive(Debug)]
pub(crate) enum Reply {
    /// All of it; empty once it is sent.
    Whole(Bytes),
    /// Events of calls that are still running.
    Stream(Box<Stream>),
    /// Events of a stream that outlives its connection.
    Events(Events),
    /// Events of a subscription.
    Listen(Box<subscription::Stream>),
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(stream) => stream.poll_next(cx).map(|events| events.map(|e| Ok(Frame::data(e)))),
            Self::Events(events) => events.poll_recv(cx).map(|events| events.map(|e| Ok(Frame::data(e)))),
            Self::Listen(stream) => stream.poll_next(cx).map(|events| events.map(|e| Ok(Frame::data(e)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Stream(stream) => stream.is_over(),
            // whether more will come is not known before the end
            Self::Events(_) => false,
            Self::Listen(stream) => stream.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) | Self::Events(_) | Self::Listen(_) => SizeHint::default(),
        }
    }
}

/// A response without body.
pub(super) fn empty(status: StatusCode) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// A JSON response.
pub(super) fn json(status: StatusCode, body: Vec<u8>) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// An event stream.
pub(super) fn events(body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would hold the events back otherwise
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(super) fn status(status: Status) -> StatusCode {
    match status {
        Status::Ok => StatusCode::OK,
        Status::BadRequest => StatusCode::BAD_REQUEST,
        Status::NotFound => StatusCode::NOT_FOUND,
        Status::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// An error reply to the request of that id.
pub(super) fn error(status: StatusCode, id: Option<&str>, error: &ProtocolError) -> Response<Reply> {
    let mut body = Vec::with_capacity(128);
    error_reply(&mut body, id, error);
    json(status, body)
}

/// A request that never reaches dispatch.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    code: i64,
    message: Cow<'static, str>,
}

impl Refusal {
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
        Self::bad_request("no request of ours waits for this response")
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

    pub(super) fn no_old_session() -> Self {
        Self::invalid(StatusCode::NOT_FOUND, "there is no such event stream\nopen another one with GET")
    }

    pub(super) fn no_event() -> Self {
        Self::bad_request("`Last-Event-ID` names no event that this session can go on from")
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
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            INTERNAL_ERROR,
            "too many requests are being served\ntry again",
        )
    }

    pub(super) fn too_many_streams() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            INTERNAL_ERROR,
            "too many event streams are open\ntry again",
        )
    }

    /// The reply to the request of that id.
    pub(super) fn reply(&self, id: Option<&str>) -> Response<Reply> {
        error(self.status, id, &ProtocolError::new(self.code, self.message.clone()))
    }
}

impl From<Refusal> for Response<Reply> {
    fn from(refusal: Refusal) -> Self {
        refusal.reply(None)
    }
}

/// `405`, with the methods that are served instead.
pub(super) fn not_allowed(allow: &'static str) -> Response<Reply> {
    let refusal = Refusal::invalid(StatusCode::METHOD_NOT_ALLOWED, "this HTTP method is not served here");
    let mut response = refusal.reply(None);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}
