//! A server over HTTP: each request is a POST whose reply is JSON or an event stream. Streams of legacy servers are
//! resumed, sessions are kept, busy servers get a second attempt, answers to a server's requests are sent until one has
//! reached it, and redirects never leave the origin.
//!
//! See [Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use rustls::ClientConfig;
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    LinkError,
    bearer_challenge::Challenge,
    broken_response::BrokenResponse,
    http_stream::HttpStream,
    outgoing::{OutgoingRequest, cancelled_text},
    parse_error,
};
#[cfg(feature = "client-oauth")]
use crate::client::oauth::{AuthorizedRequest, Authorizer};
use crate::{
    client::{
        Error,
        cleanup::{Cleanup, FLUSH_TIMEOUT},
        connect::client_builder::ClientOptions,
        large_text::run_by_size,
        operation::Operation,
        receive::inbox::{ENDED, Inbox, Responder},
    },
    core::{
        jsonrpc::{parse, parse_batch},
        protocol::Revision,
        resolver::Resolver,
        sync::RwLock,
    },
    fetch::{HttpClient, HttpRequest, HttpResponse, Network, Reach, tls_config},
};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const BOTH_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts of a request that the server is too busy for.
const MAX_ATTEMPTS: u32 = 3;
/// The longest `Retry-After` that is waited for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);
/// How long to wait before a response is posted again that may not have reached the server.
const POST_PAUSES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
const MAX_REDIRECTS: usize = 5;
/// How much of the body of an error is kept.
const ERROR_BODY: usize = 2000;
/// How much is shown of a reply that is not a response.
const REPLY_BEGINNING: usize = 200;
const MAX_CONTENT_TYPE: usize = 200;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How much of the body of an error is read.
const MAX_ERROR: usize = 1 << 20;

/// Changes the headers of every HTTP request.
pub(in crate::client) type HeaderHook = Arc<dyn Fn(&mut HeaderMap) + Send + Sync>;

/// Whether a request is worth a user's time.
#[derive(Clone, Copy)]
pub(in crate::client) enum Login<'a> {
    /// The program waits for it: the clock of its operation stops while the user logs in.
    Allowed(Option<&'a Operation>),
    /// It happens in the background: the user is not asked a second time for it.
    Background,
}

#[cfg(feature = "client-oauth")]
impl<'a> Login<'a> {
    /// The operation whose clock stops.
    pub(in crate::client) fn operation(self) -> Option<&'a Operation> {
        match self {
            Self::Allowed(operation) => operation,
            Self::Background => None,
        }
    }
}

/// A connection over HTTP.
pub(in crate::client) struct HttpLink {
    http: HttpClient,
    pub(super) url: Url,
    hook: Option<HeaderHook>,
    #[cfg(feature = "client-oauth")]
    authorizer: Option<Arc<Authorizer>>,
    pub(super) inbox: Arc<Inbox>,
    token: CancellationToken,
    pub(super) max_message: usize,
    /// How long the server may take to accept a message that has no response.
    request_timeout: Duration,
    /// Cancellations of legacy requests.
    cleanup: Arc<Cleanup>,
    session: RwLock<Option<HeaderValue>>,
    /// The agreed revision of a legacy server, for the header.
    legacy_revision: RwLock<Option<Revision>>,
}

impl HttpLink {
    /// Counts what may have changed the user for whom the client acts.
    pub(in crate::client) fn users(&self) -> u64 {
        #[cfg(feature = "client-oauth")]
        if let Some(authorizer) = &self.authorizer {
            return authorizer.users();
        }
        0
    }

    /// Forgets the tokens that the client has got itself.
    #[cfg(feature = "client-oauth")]
    pub(in crate::client) async fn forget_authorization(&self) -> Result<(), Error> {
        match &self.authorizer {
            Some(authorizer) => authorizer.forget().await.map_err(Error::authorization),
            None => Ok(()),
        }
    }

    /// How often authorization was begun; a request during which that happened says nothing of the server.
    pub(in crate::client) fn authorization_attempts(&self) -> u64 {
        #[cfg(feature = "client-oauth")]
        if let Some(authorizer) = &self.authorizer {
            return authorizer.attempts();
        }
        0
    }

    pub(in crate::client) fn new(
        url: &str,
        options: &ClientOptions,
        inbox: Arc<Inbox>,
        token: CancellationToken,
    ) -> Result<Arc<Self>, Error> {
        let parsed: Result<Url, _> = url.parse();
        let parsed = parsed.map_err(|error| Error::invalid(format!("`{url}` is not a URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(Error::invalid(format!("`{url}` is not an `http:` or `https:` URL")));
        }
        let tls = tls_config(&options.roots).map_err(Error::not_connected)?;
        #[cfg(feature = "client-oauth")]
        let authorizer = match &options.oauth {
            Some(oauth) => Some(Arc::new(Authorizer::new(oauth.clone(), url, tls.clone())?)),
            None => None,
        };
        let network = network(options.reach.unwrap_or(Reach::Any), tls);
        let http = HttpClient::new(network, CONNECT_TIMEOUT).named(&options.name, &options.version);
        Ok(Arc::new(Self {
            http,
            url: parsed,
            hook: options.hook.clone(),
            #[cfg(feature = "client-oauth")]
            authorizer,
            inbox,
            token,
            max_message: options.max_message,
            request_timeout: options.request_timeout,
            cleanup: Cleanup::by_connection(),
            session: RwLock::new(None),
            legacy_revision: RwLock::new(None),
        }))
    }

    /// Sends a request and waits for its response: the raw JSON of the result. Dropping the future closes the reply, which
    /// cancels a request of 2026-07-28; legacy servers get a notification.
    pub(in crate::client) async fn request(
        self: &Arc<Self>,
        request: OutgoingRequest<'_>,
    ) -> Result<String, LinkError> {
        let headers = self.request_headers(&request)?;
        let is_legacy = !request.revision.is_modern();
        let mut guard =
            CancelLegacy { link: self, id: request.id, notify: is_legacy && request.method != "initialize" };
        let reply = tokio::select! {
            reply = self.exchange(&request, headers) => reply,
            () = self.token.cancelled() => Err(Error::not_connected("the client was closed").into()),
        };
        guard.notify = false;
        reply
    }

    /// Opens the event stream at the URL.
    ///
    /// # Errors
    /// The server refuses, or has something else there.
    pub(super) async fn open_events(&self, operation: Option<&Operation>) -> Result<HttpResponse, Error> {
        let response = self.get(None, Login::Allowed(operation)).await?;
        if !response.status().is_success() {
            return Err(self.failure(response).await.error);
        }
        if !is_type(&response, "text/event-stream") {
            return Err(Error::invalid("the response at the URL is not an event stream"));
        }
        Ok(response)
    }

    /// The id of the session, if there is one.
    pub(super) fn session(&self) -> Option<HeaderValue> {
        self.session.read().clone()
    }

    /// Uses a legacy revision from now on.
    pub(in crate::client) fn set_legacy_revision(&self, revision: Revision) {
        *self.legacy_revision.write() = Some(revision);
    }

    /// Begins anew, as if nothing had been agreed.
    pub(in crate::client) fn forget_session(&self) {
        *self.session.write() = None;
        *self.legacy_revision.write() = None;
    }

    /// Opens the standalone stream of a legacy server, and again whenever it ends, until the client is closed. The
    /// receiver resolves when the server has answered for the first time.
    pub(in crate::client) fn listen(self: &Arc<Self>) -> oneshot::Receiver<()> {
        let link = self.clone();
        let (answered, first_answer) = oneshot::channel();
        tokio::spawn(async move {
            tokio::select! {
                () = HttpStream::new(&link, link.session()).listen(answered) => {}
                () = link.token.cancelled() => {}
            }
        });
        first_answer
    }

    /// Ends the session.
    pub(in crate::client) async fn close(&self) {
        self.cleanup.flush(FLUSH_TIMEOUT).await;
        self.token.cancel();
        self.inbox.abort_requests();
        if self.session.read().is_some() {
            let request = HttpRequest::new(Method::DELETE, self.url.clone(), self.headers(), "");
            // a server may refuse it, and the session ends later
            let _refused = timeout(CLOSE_TIMEOUT, self.send(request, Login::Background)).await;
        }
    }
}

/// Notifies a legacy server that a request was given up.
struct CancelLegacy<'a> {
    link: &'a Arc<HttpLink>,
    id: u64,
    notify: bool,
}

impl Drop for CancelLegacy<'_> {
    fn drop(&mut self) {
        if self.notify {
            self.link.clone().respond(cancelled_text(self.id));
        }
    }
}

impl Responder for HttpLink {
    async fn deliver(self: Arc<Self>, message: Vec<u8>) {
        tokio::select! {
            sent = timeout(self.request_timeout, self.post_until_accepted(message)) => match sent {
                Ok(Ok(())) => {}
                Ok(Err(LinkError::SessionLost)) => self.inbox.session_lost(),
                Ok(Err(LinkError::Failed(error))) => {
                    tracing::debug!(error = error.in_one_line(), "a message was not accepted by the server");
                }
                Err(_) => tracing::debug!("a message was not accepted by the server in time"),
            },
            () = self.token.cancelled() => {}
        }
    }

    fn respond(self: Arc<Self>, message: Vec<u8>) {
        self.cleanup.clone().spawn(self.deliver(message));
    }
}

impl HttpLink {
    /// The headers of every request.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(session) = &*self.session.read() {
            headers.insert(SESSION_ID, session.clone());
        }
        // earlier revisions do not have the header
        if let Some(revision) =
            self.legacy_revision.read().filter(|revision| *revision >= Revision::V2025_06_18)
        {
            headers.insert(VERSION, HeaderValue::from_static(revision.as_str()));
        }
        if let Some(hook) = &self.hook {
            hook(&mut headers);
        }
        headers
    }

    fn request_headers(&self, request: &OutgoingRequest<'_>) -> Result<HeaderMap, Error> {
        let mut headers = self.headers();
        if !request.revision.is_modern() {
            return Ok(headers);
        }
        headers.insert(VERSION, HeaderValue::from_static(request.revision.as_str()));
        headers.insert("mcp-method", encode_value(request.method));
        if let Some(name) = request.name {
            headers.insert("mcp-name", encode_value(name));
        }
        for (name, value) in &request.param_headers {
            let name = HeaderName::try_from(format!("mcp-param-{name}"))
                .map_err(|_| Error::invalid(format!("`{name}` is not a header name")))?;
            headers.insert(name, encode_value(value));
        }
        Ok(headers)
    }

    async fn post(
        &self,
        url: &Url,
        body: Vec<u8>,
        mut headers: HeaderMap,
        login: Login<'_>,
    ) -> Result<HttpResponse, Error> {
        headers.entry(header::CONTENT_TYPE).or_insert(JSON);
        headers.entry(header::ACCEPT).or_insert(BOTH_TYPES);
        headers.entry(header::ACCEPT_ENCODING).or_insert(GZIP);
        self.send(HttpRequest::new(Method::POST, url.clone(), headers, body), login).await
    }

    /// Sends a request, with an access token if the client gets them itself.
    async fn send(&self, request: HttpRequest, login: Login<'_>) -> Result<HttpResponse, Error> {
        #[cfg(feature = "client-oauth")]
        if let Some(authorizer) = &self.authorizer {
            // boxed, and of a type with a name: the futures of calls contain this one many levels down
            let sent: std::pin::Pin<Box<dyn Future<Output = Result<HttpResponse, Error>> + Send + '_>> =
                Box::pin(self.send_authorized(AuthorizedRequest::new(authorizer, request, login)));
            return sent.await;
        }
        #[cfg(not(feature = "client-oauth"))]
        let _without_logins = login;
        self.follow(request).await
    }

    /// Sends a request, also to where it is redirected within its origin. Other redirects would take credentials
    /// elsewhere, or repeat a POST as a GET: they are responses.
    async fn follow(&self, mut request: HttpRequest) -> Result<HttpResponse, Error> {
        let mut redirects = 0;
        loop {
            let response = self.http.send(request.clone()).await.map_err(Error::not_connected)?;
            let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            let target = location.and_then(|location| request.url.join(location).ok());
            match target.filter(|target| target.origin() == request.url.origin()) {
                Some(target) if keeps_method(response.status()) && redirects < MAX_REDIRECTS => {
                    request.url = target;
                }
                _ => return Ok(response),
            }
            redirects += 1;
        }
    }

    #[cfg(feature = "client-oauth")]
    async fn send_authorized(&self, mut request: AuthorizedRequest<'_>) -> Result<HttpResponse, Error> {
        loop {
            let response = self.follow(request.next().await?).await?;
            if !request.is_repeated_after(&response).await? {
                return Ok(response);
            }
        }
    }

    /// Posts a response or a cancellation. It is sent again if it may not have reached the server, such as one of several
    /// replicas that is restarted: a server ignores the second of two.
    async fn post_until_accepted(&self, text: Vec<u8>) -> Result<(), LinkError> {
        let mut pauses = POST_PAUSES.into_iter();
        loop {
            let posted = self.post_message(&self.url, text.clone(), Login::Background).await;
            let is_lost = matches!(
                &posted,
                Err(LinkError::Failed(Error::NotConnected { .. } | Error::Http { status: 502..=504, .. }))
            );
            match pauses.next().filter(|_| is_lost) {
                Some(pause) => sleep(pause).await,
                None => return posted,
            }
        }
    }

    /// Posts a notification or a response.
    pub(super) async fn post_message(
        &self,
        url: &Url,
        text: Vec<u8>,
        login: Login<'_>,
    ) -> Result<(), LinkError> {
        let headers = self.headers();
        let sent_session = headers.contains_key(SESSION_ID);
        let response = self.post(url, text, headers, login).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND if sent_session => Err(LinkError::SessionLost),
            _ => Err(self.failure(response).await.error.into()),
        }
    }

    async fn exchange(
        self: &Arc<Self>,
        request: &OutgoingRequest<'_>,
        mut headers: HeaderMap,
    ) -> Result<String, LinkError> {
        let sent_session = headers.contains_key(SESSION_ID);
        let login = if request.in_background { Login::Background } else { Login::Allowed(request.operation) };
        let mut attempt = 1;
        let response = loop {
            let response = self.post(&self.url, request.body.clone(), headers.clone(), login).await?;
            match retry_after(&response).filter(|_| attempt < MAX_ATTEMPTS) {
                Some(pause) => sleep(pause).await,
                None => break response,
            }
            attempt += 1;
        };
        let status = response.status();
        if status == StatusCode::NOT_FOUND && sent_session {
            return Err(LinkError::SessionLost);
        }
        if !status.is_success() {
            let failed = self.failure(response).await;
            if sent_session && failed.is_session_lost() {
                return Err(LinkError::SessionLost);
            }
            // a JSON-RPC error with any status is a reply
            return Err(failed.reply.unwrap_or(failed.error).into());
        }
        if request.method == "initialize"
            && let Some(begun) = response.headers().get(SESSION_ID)
        {
            headers.insert(SESSION_ID, begun.clone());
            *self.session.write() = Some(begun.clone());
        }
        if is_type(&response, "text/event-stream") {
            let stream = HttpStream::new(self, headers.remove(SESSION_ID));
            return Ok(stream.read_reply(request, response).await?);
        }
        let content_type = content_type(&response);
        let body = self.read_body(response, self.max_message, request.operation).await?;
        let beginning = beginning_of(&body, REPLY_BEGINNING);
        let reply = self.take_body(body, Some(request.id)).await?;
        reply.ok_or_else(|| no_response(request.method, status, content_type.as_deref(), &beginning).into())
    }

    /// Opens an event stream, or resumes one after its last event.
    pub(super) async fn get(
        &self,
        last_event_id: Option<&HeaderValue>,
        login: Login<'_>,
    ) -> Result<HttpResponse, Error> {
        let mut headers = self.headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.entry(header::ACCEPT_ENCODING).or_insert(GZIP);
        if let Some(id) = last_event_id {
            headers.insert(LAST_EVENT_ID, id.clone());
        }
        self.send(HttpRequest::new(Method::GET, self.url.clone(), headers, ""), login).await
    }

    /// As [`take_messages`](Self::take_messages), of a body that may be large.
    pub(super) async fn take_body(
        self: &Arc<Self>,
        body: Vec<u8>,
        id: Option<u64>,
    ) -> Result<Option<String>, Error> {
        let link = self.clone();
        run_by_size(body.len(), move || link.take_messages(&body, id)).await?
    }

    /// The result for `id` among the messages of a body; the others go to the inbox.
    ///
    /// # Errors
    /// The response is an error, or malformed.
    fn take_messages(self: &Arc<Self>, body: &[u8], id: Option<u64>) -> Result<Option<String>, Error> {
        let Some(batch) = parse_batch(body) else { return self.take_message(body, id) };
        let mut first = None;
        for message in batch {
            let reply = self.take_message(message.get().as_bytes(), id)?;
            first = first.or(reply);
        }
        Ok(first)
    }

    fn take_message(self: &Arc<Self>, text: &[u8], id: Option<u64>) -> Result<Option<String>, Error> {
        let message = match parse(text) {
            Ok(message) => message,
            Err(malformed) => {
                let broken = id
                    .and_then(|id| BrokenResponse::read(text, &malformed).filter(|broken| broken.is_of(id)));
                return broken.map_or(Ok(None), |broken| Err(broken.error));
            }
        };
        if !message.is_response() {
            let Ok(text) = std::str::from_utf8(text) else { return Ok(None) };
            if let Some(ended) = self.inbox.stream_ended_by(&message, text)
                && Some(ended) == id
            {
                return Ok(Some(ENDED.to_owned()));
            }
            self.inbox.receive(text, self);
            return Ok(None);
        }
        let of: Option<u64> = message.id().and_then(|id| id.trim_matches('"').parse().ok());
        let response = message.response().filter(|_| of.is_some() && of == id);
        response.map(|response| response.map(str::to_owned).map_err(parse_error)).transpose()
    }

    /// Reads a body, up to the limit.
    async fn read_body(
        &self,
        mut response: HttpResponse,
        limit: usize,
        operation: Option<&Operation>,
    ) -> Result<Vec<u8>, Error> {
        let too_large = Error::too_large(limit, Some("max_message"));
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(too_large);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(Error::not_connected)? {
            if body.len() + chunk.len() > limit {
                return Err(too_large);
            }
            operation.map_or(Ok(()), |operation| operation.charge(chunk.len()))?;
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Where a redirect that was not followed leads, and why it was not.
    fn refused_redirect(&self, response: &HttpResponse) -> Option<String> {
        let location =
            response.headers().get(header::LOCATION).filter(|_| response.status().is_redirection());
        let target = self.url.join(location?.to_str().ok()?).ok()?;
        let why = if target.origin() != self.url.origin() {
            "of another origin, which must not get what this one was sent"
        } else if keeps_method(response.status()) {
            "after too many others"
        } else {
            "by a status that would repeat the POST as a GET"
        };
        Some(format!(
            "a redirect to `{target}` is not followed, {why}: connect to the URL where the server is"
        ))
    }

    /// Reads a response without success.
    pub(super) async fn failure(&self, response: HttpResponse) -> FailedResponse {
        let status = response.status();
        let challenge = response.headers().get(header::WWW_AUTHENTICATE);
        let challenge = challenge.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let scopes = Challenge::of(response.headers()).scopes;
        let redirect = self.refused_redirect(&response);
        let content_type = content_type(&response).filter(|_| redirect.is_none());
        let body =
            match timeout(CONNECT_TIMEOUT, self.read_body(response, self.max_message.min(MAX_ERROR), None))
                .await
            {
                Ok(Ok(body)) => body,
                _ => Vec::new(),
            };
        let reply = json_rpc_error(&body);
        let body = redirect.unwrap_or_else(|| beginning_of(&body, ERROR_BODY));
        let error = match status {
            StatusCode::UNAUTHORIZED => Error::Unauthorized { challenge },
            StatusCode::FORBIDDEN if challenge.is_some() || reply.is_none() => {
                Error::Forbidden { scopes, content_type, body }
            }
            _ => {
                let error = Error::Http { status: status.as_u16(), content_type, body };
                return FailedResponse { error, reply };
            }
        };
        FailedResponse { error, reply: None }
    }
}

/// A response without success.
pub(super) struct FailedResponse {
    pub(super) error: Error,
    /// The JSON-RPC error in its body.
    reply: Option<Error>,
}

impl FailedResponse {
    /// Whether the server says that it does not know the session: many do so with this status, and not with 404.
    fn is_session_lost(&self) -> bool {
        let text = match (&self.error, &self.reply) {
            (Error::Http { status: 400, .. }, Some(Error::Protocol { message, .. })) => message,
            (Error::Http { status: 400, body, .. }, None) => body,
            _ => return false,
        };
        text.to_ascii_lowercase().contains("session")
    }
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
fn keeps_method(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

/// These addresses, as clients connect to them: through the proxies of the environment.
pub(in crate::client) fn network(reach: Reach, tls: Arc<ClientConfig>) -> Network {
    Network { reach, look_up: Resolver::system().into_function(), tls, uses_proxies: true }
}

/// The value of `Content-Type`, as much of it as is worth showing.
fn content_type(response: &HttpResponse) -> Option<String> {
    let value = response.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.chars().take(MAX_CONTENT_TYPE).collect())
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

/// How long to wait before a busy server is asked again; `None` if it is not busy, or does not say.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let status = response.status();
    if status != StatusCode::TOO_MANY_REQUESTS && status != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let pause = pause_of(response.headers().get(header::RETRY_AFTER)?.to_str().ok()?, SystemTime::now())?;
    Some(pause).filter(|pause| *pause <= LONGEST_RETRY_AFTER)
}

/// The time until then: a number of seconds, or a date.
fn pause_of(retry_after: &str, now: SystemTime) -> Option<Duration> {
    let text = retry_after.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

pub(super) fn is_type(response: &HttpResponse, media_type: &str) -> bool {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| {
        value.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media_type))
    })
}

/// A header's value: as it is if it is visible ASCII, else UTF-8 as `=?base64?…?=`.
fn encode_value(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\t')
        && text.trim_matches([' ', '\t']) == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let plain = if is_plain { HeaderValue::from_str(text).ok() } else { None };
    plain.unwrap_or_else(|| {
        let encoded = format!("=?base64?{}?=", STANDARD.encode(text));
        HeaderValue::from_str(&encoded).unwrap_or(HeaderValue::from_static(""))
    })
}

/// Checks that the server decodes each header value to the text that the client encoded.
#[cfg(all(any(test, feature = "_fuzzing"), feature = "http"))]
fn fuzz(data: &[u8]) {
    use crate::transport::http::decode_value;

    let round_trip = |text: &str| {
        let value = encode_value(text);
        assert!(value.to_str().is_ok(), "`{text}` is encoded as bytes that are not ASCII: {value:?}");
        assert_eq!(decode_value(&value).as_deref(), Some(text.as_bytes()), "{value:?}");
    };
    // the text that a server finds in a header can be sent in one
    if let Ok(value) = HeaderValue::from_bytes(data)
        && let Some(decoded) = decode_value(&value)
    {
        round_trip(std::str::from_utf8(&decoded).expect("a server accepts UTF-8 only"));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    round_trip(text);
    let _for_a_panic = pause_of(text, SystemTime::UNIX_EPOCH);
}

#[cfg(all(any(test, feature = "_fuzzing"), feature = "http"))]
inventory::submit!(crate::fuzzing::Target { name: "header_values", run: fuzz });

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

    #[test]
    fn header_values_are_encoded_where_they_are_not_plain_ascii() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ] {
            assert_eq!(encode_value(text), value, "{text:?}");
        }
    }
}
