//! The reply to one request over HTTP: its status and headers, its body within the limits, and the result or the error that it
//! has.

use std::{
    ops::Deref,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderName, HeaderValue, StatusCode, header};
use tokio::time::timeout;
use url::Url;

use super::{
    LinkError,
    bearer_challenge::Challenge,
    broken_response::BrokenResponse,
    http_link::{CONNECT_TIMEOUT, HttpLink, SESSION_ID},
    outgoing::OutgoingRequest,
    parse_error,
};
use crate::{
    client::{Error, large_text::run_by_size, operation::Operation, receive::inbox::ENDED},
    core::jsonrpc::{parse, parse_batch},
    fetch::HttpResponse,
};

/// The longest `Retry-After` that is waited for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);
/// How much of the body of an error is kept.
const ERROR_BODY: usize = 2000;
/// How much of the body of an error is read.
const MAX_ERROR: usize = 1 << 20;
/// How much is shown of a reply that is not a response.
const REPLY_BEGINNING: usize = 200;
const MAX_CONTENT_TYPE: usize = 200;

/// The reply to one request over HTTP, whose body was not read.
pub(super) struct HttpReply(HttpResponse);

impl HttpReply {
    pub(super) fn new(response: HttpResponse) -> Self {
        Self(response)
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.status()
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }

    /// The session that begins.
    pub(super) fn session(&self) -> Option<&HeaderValue> {
        self.0.headers().get(SESSION_ID)
    }

    pub(super) fn is_event_stream(&self) -> bool {
        let essence = self.header(header::CONTENT_TYPE).and_then(|value| value.split(';').next());
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("text/event-stream"))
    }

    /// The value of `Content-Type`, as much of it as is worth showing.
    fn content_type(&self) -> Option<String> {
        Some(self.header(header::CONTENT_TYPE)?.chars().take(MAX_CONTENT_TYPE).collect())
    }

    /// How long to wait before a busy server is asked again; `None` if it is not busy, or does not say.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let is_busy =
            matches!(self.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let value = self.header(header::RETRY_AFTER).filter(|_| is_busy)?;
        pause_of(value, SystemTime::now()).filter(|pause| *pause <= LONGEST_RETRY_AFTER)
    }

    /// The next bytes of the body; `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<impl Deref<Target = [u8]> + use<>>, Error> {
        self.0.chunk().await.map_err(Error::not_connected)
    }

    /// Reads the body, up to the limit.
    async fn read(mut self, limit: usize, operation: Option<&Operation>) -> Result<Vec<u8>, Error> {
        let too_large = Error::too_large(limit, Some("max_message"));
        if self.0.content_length().is_some_and(|length| length > limit as u64) {
            return Err(too_large);
        }
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > limit {
                return Err(too_large);
            }
            operation.map_or(Ok(()), |operation| operation.charge(chunk.len()))?;
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Reads the result of a request.
    pub(super) async fn read_result(
        self,
        request: &OutgoingRequest<'_>,
        link: &Arc<HttpLink>,
    ) -> Result<String, Error> {
        let (status, content_type) = (self.status(), self.content_type());
        let body = self.read(link.max_message, request.operation).await?;
        let beginning = beginning_of(&body, REPLY_BEGINNING);
        let result = take_body(link, body, Some(request.id)).await?;
        result.ok_or_else(|| no_response(request.method, status, content_type.as_deref(), &beginning))
    }

    /// Where a redirect that was not followed leads, and why it was not.
    fn refused_redirect(&self, url: &Url) -> Option<String> {
        let location = self.header(header::LOCATION).filter(|_| self.status().is_redirection())?;
        let target = url.join(location).ok()?;
        let why = if target.origin() != url.origin() {
            "of another origin, which must not get what this one was sent"
        } else if keeps_method(self.status()) {
            "after too many others"
        } else {
            "by a status that would repeat the POST as a GET"
        };
        Some(format!(
            "a redirect to `{target}` is not followed, {why}: connect to the URL where the server is"
        ))
    }

    /// The error of a reply without success.
    pub(super) async fn into_error(self, link: &HttpLink) -> Error {
        self.read_failure(link).await.0
    }

    /// As [`into_error`](Self::into_error), of a request, which may have been sent within a session.
    pub(super) async fn into_request_error(self, link: &HttpLink, sent_session: bool) -> LinkError {
        if sent_session && self.status() == StatusCode::NOT_FOUND {
            return LinkError::SessionLost;
        }
        let (error, reply) = self.read_failure(link).await;
        if sent_session && is_session_lost(&error, reply.as_ref()) {
            return LinkError::SessionLost;
        }
        // a JSON-RPC error with any status is a reply
        reply.unwrap_or(error).into()
    }

    /// The error of a reply without success, and the JSON-RPC error in its body.
    async fn read_failure(self, link: &HttpLink) -> (Error, Option<Error>) {
        let status = self.status();
        let challenge = self.header(header::WWW_AUTHENTICATE).map(str::to_owned);
        let scopes = Challenge::of(self.0.headers()).scopes;
        let redirect = self.refused_redirect(&link.url);
        let content_type = self.content_type().filter(|_| redirect.is_none());
        let read = timeout(CONNECT_TIMEOUT, self.read(link.max_message.min(MAX_ERROR), None)).await;
        let body = read.ok().and_then(Result::ok).unwrap_or_default();
        let reply = json_rpc_error(&body);
        let body = redirect.unwrap_or_else(|| beginning_of(&body, ERROR_BODY));
        match status {
            StatusCode::UNAUTHORIZED => (Error::Unauthorized { challenge }, None),
            StatusCode::FORBIDDEN if challenge.is_some() || reply.is_none() => {
                (Error::Forbidden { scopes, content_type, body }, None)
            }
            _ => (Error::Http { status: status.as_u16(), content_type, body }, reply),
        }
    }
}

/// As [`take_messages`], of a body that may be large.
pub(super) async fn take_body(
    link: &Arc<HttpLink>,
    body: Vec<u8>,
    id: Option<u64>,
) -> Result<Option<String>, Error> {
    let link = link.clone();
    run_by_size(body.len(), move || take_messages(&link, &body, id)).await?
}

/// The result for `id` among the messages of a body; the others go to the inbox.
///
/// # Errors
/// The response is an error, or malformed.
fn take_messages(link: &Arc<HttpLink>, body: &[u8], id: Option<u64>) -> Result<Option<String>, Error> {
    let Some(batch) = parse_batch(body) else { return take_message(link, body, id) };
    let mut first = None;
    for message in batch {
        let reply = take_message(link, message.get().as_bytes(), id)?;
        first = first.or(reply);
    }
    Ok(first)
}

fn take_message(link: &Arc<HttpLink>, text: &[u8], id: Option<u64>) -> Result<Option<String>, Error> {
    let message = match parse(text) {
        Ok(message) => message,
        Err(malformed) => {
            let broken =
                id.and_then(|id| BrokenResponse::read(text, &malformed).filter(|broken| broken.is_of(id)));
            return broken.map_or(Ok(None), |broken| Err(broken.error));
        }
    };
    if !message.is_response() {
        let Ok(text) = std::str::from_utf8(text) else { return Ok(None) };
        if let Some(ended) = link.inbox.stream_ended_by(&message, text)
            && Some(ended) == id
        {
            return Ok(Some(ENDED.to_owned()));
        }
        link.inbox.receive(text, link);
        return Ok(None);
    }
    let of: Option<u64> = message.id().and_then(|id| id.trim_matches('"').parse().ok());
    let response = message.response().filter(|_| of.is_some() && of == id);
    response.map(|response| response.map(str::to_owned).map_err(parse_error)).transpose()
}

/// Whether the server says that it does not know the session: many do so with this status, and not with 404.
fn is_session_lost(error: &Error, reply: Option<&Error>) -> bool {
    let text = match (error, reply) {
        (Error::Http { status: 400, .. }, Some(Error::Protocol { message, .. })) => message,
        (Error::Http { status: 400, body, .. }, None) => body,
        _ => return false,
    };
    text.to_ascii_lowercase().contains("session")
}

/// The error of a reply without a response to the request.
fn no_response(method: &str, status: StatusCode, content_type: Option<&str>, beginning: &str) -> Error {
    let what = format!("the server answers `{method}` with HTTP status {} and no response", status.as_u16());
    Error::invalid(match (beginning, content_type) {
        ("", _) => format!("{what}: the body is empty"),
        (_, None) => format!("{what}: the body has no type, and begins with `{beginning}`"),
        (_, Some(kind)) => format!("{what}: the body is {kind}, and begins with `{beginning}`"),
    })
}

/// Whether a redirect repeats the request as it is.
pub(super) fn keeps_method(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

/// The first bytes of a body as text.
fn beginning_of(body: &[u8], length: usize) -> String {
    let beginning = String::from_utf8_lossy(body.get(..body.len().min(length)).unwrap_or_default());
    beginning.trim().to_owned()
}

/// A JSON-RPC error, which may lack an id.
fn json_rpc_error(body: &[u8]) -> Option<Error> {
    let message: serde_json::Value = serde_json::from_slice(body).ok()?;
    message.get("jsonrpc")?;
    let error =
        message.get("error").filter(|error| error.get("code").is_some_and(serde_json::Value::is_i64))?;
    Some(parse_error(&error.to_string()))
}

/// The time until then: a number of seconds, or a date.
pub(super) fn pause_of(retry_after: &str, now: SystemTime) -> Option<Duration> {
    let text = retry_after.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480);
        let pause = |text: &str| pause_of(text, now).map(|pause| pause.as_secs());
        assert_eq!(pause(" 7 "), Some(7));
        assert_eq!(pause("Wed, 21 Oct 2015 07:28:05 GMT"), Some(5));
        assert_eq!(pause("Wednesday, 21-Oct-15 07:28:05 GMT"), Some(5));
        assert_eq!(pause("Wed, 21 Oct 2015 07:27:00 GMT"), Some(0));
        assert_eq!((pause("soon"), pause("-1")), (None, None));
    }
}
