//! Errors of HTTP: their message and advice. They answer requests that are refused before dispatch; which status a reason
//! has is in the list of reasons.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::response_body::{ResponseBody, error_response};
use crate::core::{
    admission::RateReached,
    jsonrpc::ProtocolError,
    observer::RefusedRequest,
    protocol::{INTERNAL_ERROR, INVALID_REQUEST},
    reason::Refusal,
};

/// Why a client does not get a reply.
pub(super) const TOO_MANY_UNREAD: &str =
    "the reply is too large as long as this client has not read its other replies\nread them, and try again";

/// The error of a request that is refused before dispatch.
#[derive(Debug)]
pub(super) struct HttpError {
    status: StatusCode,
    code: i64,
    message: Cow<'static, str>,
    pub(super) refused: RefusedRequest,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl HttpError {
    pub(super) fn new(refusal: Refusal, code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        let (status, refused) = (refusal.status(), RefusedRequest::new(refusal.reason()));
        let error = Self { status, code, message: message.into(), refused, headers: Vec::new() };
        if status == StatusCode::SERVICE_UNAVAILABLE { error.retry_after(1) } else { error }
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Sets `Retry-After`.
    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.headers.retain(|(name, _)| name != header::RETRY_AFTER);
        self.with(header::RETRY_AFTER, seconds.into())
    }

    /// Closes the connection: a client that may not open more streams must not hold a connection instead.
    fn closing(self) -> Self {
        self.with(header::CONNECTION, HeaderValue::from_static("close"))
    }

    /// The error of a request that is not valid, for a reason of its status.
    pub(super) fn invalid(refusal: Refusal, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(refusal, INVALID_REQUEST, message)
    }

    pub(super) fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::invalid(Refusal::Malformed, message)
    }

    /// `501`: the body is encoded in a way that is not decoded here. Others on the way may have read it as another one, so
    /// the rest of the connection is not read.
    pub(super) fn unknown_transfer_coding() -> Self {
        let message = "`Transfer-Encoding` is not `chunked` alone";
        Self { status: StatusCode::NOT_IMPLEMENTED, ..Self::bad_request(message) }.closing()
    }

    /// `405`: `allow` lists the methods that are served.
    pub(super) fn method_not_allowed(allow: &'static str) -> Self {
        let error = Self::invalid(Refusal::NotAllowed, "this HTTP method is not served here");
        error.with(header::ALLOW, HeaderValue::from_static(allow))
    }

    pub(super) fn unknown_session() -> Self {
        Self::invalid(
            Refusal::Session,
            "the session does not exist\nstart a new one: send `initialize` without `Mcp-Session-Id`",
        )
    }

    pub(super) fn unexpected_response() -> Self {
        Self::bad_request("no request of the server waits for this response")
    }

    pub(super) fn not_acceptable() -> Self {
        Self::invalid(
            Refusal::NotAcceptable,
            "`Accept` excludes what would be sent\naccept `application/json` and `text/event-stream`",
        )
    }

    pub(super) fn event_stream_not_acceptable() -> Self {
        Self::invalid(
            Refusal::NotAcceptable,
            "`Accept` excludes what would be sent\naccept `text/event-stream`",
        )
    }

    pub(super) fn unknown_event_id() -> Self {
        Self::bad_request("`Last-Event-ID` is not an event that this session can resume from")
    }

    pub(super) fn unsupported_media_type() -> Self {
        Self::invalid(Refusal::MediaType, "the body is not declared as `application/json`")
    }

    pub(super) fn body_too_large() -> Self {
        Self::invalid(Refusal::BodySize, "the body is larger than this server accepts")
    }

    pub(super) fn body_timeout() -> Self {
        Self::invalid(Refusal::BodyTimeout, "the body did not arrive in time")
    }

    pub(super) fn busy() -> Self {
        Self::unavailable("too many requests are being served\ntry again")
    }

    /// `503`: the request was not complete when a shutdown ended it.
    pub(super) fn stopping() -> Self {
        Self::new(Refusal::Stopping, INTERNAL_ERROR, "the server has stopped\ntry again").closing()
    }

    /// `429`: a client sends more requests than its rate allows.
    pub(super) fn too_many_requests(reached: RateReached) -> Self {
        Self::new(Refusal::RateLimited, INTERNAL_ERROR, reached.of_requests()).retry_after(reached.seconds())
    }

    pub(super) fn too_many_streams() -> Self {
        Self::unavailable("too many event streams are open\ntry again").closing()
    }

    /// `503`: the state of the server cannot be made.
    pub(super) fn not_ready() -> Self {
        Self::unavailable("the server is not ready\ntry again")
    }

    pub(super) fn too_many_body_bytes() -> Self {
        Self::unavailable("too many bytes of request bodies are being received\ntry again")
    }

    pub(super) fn too_many_unread_bytes() -> Self {
        Self::new(Refusal::Unread, INTERNAL_ERROR, TOO_MANY_UNREAD)
    }

    pub(super) fn unavailable(message: &'static str) -> Self {
        Self::new(Refusal::Busy, INTERNAL_ERROR, message)
    }

    /// The response to the request with this id.
    pub(super) fn into_response(self, id: Option<&str>) -> Response<ResponseBody> {
        let mut response = error_response(self.status, id, &ProtocolError::new(self.code, self.message));
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        let status = Some(self.status.as_u16());
        response.extensions_mut().insert(RefusedRequest { status, ..self.refused });
        response
    }
}

impl From<HttpError> for Response<ResponseBody> {
    fn from(error: HttpError) -> Self {
        error.into_response(None)
    }
}
