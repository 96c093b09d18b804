//! Responses: their body, which is complete or an event stream, and their status and headers.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::sse::{EventReader, StreamContent, StreamDeadline};
use crate::{
    connection::Receiver,
    dispatch::{Reply, Status},
    jsonrpc::{ProtocolError, write_error_response},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The body of a response: complete, or an event stream.
pub struct ResponseBody(BodySource);

enum BodySource {
    /// Empty once it has been sent.
    Complete(Bytes),
    EventStream(Box<EventReader>),
}

impl ResponseBody {
    pub(super) fn complete(bytes: impl Into<Bytes>) -> Self {
        Self(BodySource::Complete(bytes.into()))
    }

    /// An event stream of the messages of a channel; it begins with a comment if `opening_comment` is set.
    pub(super) fn from_messages(receiver: Receiver, opening_comment: bool) -> Self {
        Self::event_stream(receiver, StreamContent::Messages, opening_comment)
    }

    /// An event stream of the events of a channel, which are sent unchanged.
    /// It breaks off when `end` completes.
    pub(super) fn from_events(receiver: Receiver, end: Option<StreamDeadline>) -> Self {
        let events = EventReader::new(receiver, StreamContent::Events, false).until(end);
        Self(BodySource::EventStream(Box::new(events)))
    }

    fn event_stream(receiver: Receiver, content: StreamContent, opening_comment: bool) -> Self {
        Self(BodySource::EventStream(Box::new(EventReader::new(receiver, content, opening_comment))))
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
            BodySource::Complete(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodySource::Complete(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            BodySource::EventStream(events) => {
                events.poll(cx).map(|events| events.map(|e| Ok(Frame::data(e))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodySource::Complete(bytes) => bytes.is_empty(),
            BodySource::EventStream(events) => events.is_finished(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodySource::Complete(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodySource::EventStream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            BodySource::Complete(_) => "ResponseBody::Complete",
            BodySource::EventStream(_) => "ResponseBody::EventStream",
        })
    }
}

/// A response without a body.
pub(super) fn empty_response(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::complete(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// A JSON response.
pub(super) fn json_response(status: StatusCode, body: Vec<u8>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::complete(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// A response with an event stream.
pub(super) fn event_stream_response(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // otherwise nginx buffers the events
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Marks the response to a request whose method was looked at, so that it was recorded there.
#[derive(Debug, Clone, Copy)]
pub(super) struct DispatchReply;

/// Copies the status and headers of a reply to its response. Clients of legacy revisions expect errors with status 200,
/// except for missing authorization, so any other status is copied only if `modern` is set.
pub(super) fn copy_status_and_headers(response: &mut Response<ResponseBody>, reply: &Reply, modern: bool) {
    if modern || reply.status == Status::Forbidden {
        *response.status_mut() = match reply.status {
            Status::Ok => StatusCode::OK,
            Status::BadRequest => StatusCode::BAD_REQUEST,
            Status::Forbidden => StatusCode::FORBIDDEN,
            Status::NotFound => StatusCode::NOT_FOUND,
            Status::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        if reply.status != Status::Ok {
            response.extensions_mut().insert(DispatchReply);
        }
    }
    for (name, value) in &reply.headers {
        if let Ok(value) = HeaderValue::try_from(value.as_str()) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
}

/// An error reply to the request with this id.
pub(super) fn error_response(
    status: StatusCode,
    id: Option<&str>,
    error: &ProtocolError,
) -> Response<ResponseBody> {
    let mut body = Vec::with_capacity(128);
    write_error_response(&mut body, id, error);
    json_response(status, body)
}
