//! Responses: their body, which is complete or an event stream, and their status and headers.

use std::{
    convert::Infallible,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::{
    http_error::HttpError,
    request_connection::RequestConnection,
    sse::{EventReader, StreamDeadline},
};
use crate::core::{
    admission::Permit,
    connection::Receiver,
    dispatch::{Reply, Status},
    jsonrpc::{ProtocolError, write_error_response},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Bytes of a complete body that are not charged to the client that they wait for.
const MAX_UNCHARGED: usize = 64 << 10;

/// The body of a response: complete, or an event stream.
pub struct ResponseBody {
    source: BodySource,
    /// The permit of a stream that was opened with GET or `subscriptions/listen`.
    _stream: Option<Permit>,
}

enum BodySource {
    /// Empty once it has been sent.
    Complete(Bytes),
    EventStream(Box<EventReader>),
}

/// Bytes that stay charged to their reader until the last part of them is written.
struct ChargedBytes {
    bytes: Vec<u8>,
    _permit: Permit,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes that are charged as long as the HTTP server holds them.
pub(super) fn charged(bytes: Vec<u8>, permit: Option<Permit>) -> Bytes {
    match permit {
        Some(permit) => Bytes::from_owner(ChargedBytes { bytes, _permit: permit }),
        None => bytes.into(),
    }
}

impl ResponseBody {
    pub(super) fn complete(bytes: impl Into<Bytes>) -> Self {
        BodySource::Complete(bytes.into()).into()
    }

    /// An event stream of the events of a channel, which are text. It breaks off when `end` completes.
    pub(super) fn from_events(receiver: Receiver, end: Option<StreamDeadline>) -> Self {
        BodySource::EventStream(Box::new(EventReader::new(receiver, end))).into()
    }

    /// Holds the permit of a stream until the body is dropped.
    pub(super) fn holding(self, stream: Option<Permit>) -> Self {
        Self { _stream: stream, ..self }
    }
}

impl From<BodySource> for ResponseBody {
    fn from(source: BodySource) -> Self {
        Self { source, _stream: None }
    }
}

/// Charges the body of a response, if it is large, or answers `503` to the request with this id.
pub(super) fn charge_response(
    response: &mut Response<ResponseBody>,
    connection: &RequestConnection,
    id: Option<&str>,
) {
    // in place: a response is large, and moving it costs more than this check
    let BodySource::Complete(bytes) = &mut response.body_mut().source else { return };
    if bytes.len() <= MAX_UNCHARGED {
        return;
    }
    match connection.charge_unread(bytes.len()) {
        Some(permit) => *bytes = charged(mem::take(bytes).into(), Some(permit)),
        None => *response = HttpError::too_many_unread_bytes().into_response(id),
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.source {
            BodySource::Complete(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodySource::Complete(bytes) => Poll::Ready(Some(Ok(Frame::data(mem::take(bytes))))),
            BodySource::EventStream(events) => {
                events.poll(cx).map(|events| events.map(|e| Ok(Frame::data(e))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            BodySource::Complete(bytes) => bytes.is_empty(),
            BodySource::EventStream(events) => events.is_finished(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Complete(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodySource::EventStream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.source {
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

/// Marks the response to a request whose method was examined, so that it was recorded there.
#[derive(Debug, Clone, Copy)]
pub(super) struct DispatchReply;

/// Copies the status and headers of a reply to its response. Clients of legacy revisions expect errors with status 200,
/// except for missing authorization, so any other status is copied only if `modern` is set.
pub(super) fn copy_status_and_headers(response: &mut Response<ResponseBody>, reply: &Reply, modern: bool) {
    if modern || reply.status.is_of_all_revisions() {
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
