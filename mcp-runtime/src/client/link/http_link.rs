//! A server over HTTP: each request is a POST whose reply is JSON or an event stream. Streams of legacy servers are
//! resumed, sessions are kept, busy servers get a second attempt, answers to a server's requests are sent until one has
//! reached it, and redirects never leave the origin.
//!
//! See [Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).

use std::{sync::Arc, time::Duration};

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
    http_reply::{HttpReply, keeps_method},
    http_stream::HttpStream,
    outgoing::{OutgoingRequest, cancelled_text},
};
#[cfg(feature = "client-oauth")]
use crate::client::oauth::{AuthorizedRequest, Authorizer};
use crate::{
    client::{
        Error,
        cleanup::{Cleanup, FLUSH_TIMEOUT},
        connect::client_builder::ClientOptions,
        operation::Operation,
        receive::inbox::{Inbox, Responder},
    },
    core::{protocol::Revision, resolver::Resolver, sync::RwLock},
    fetch::{HttpClient, HttpRequest, HttpResponse, Network, Reach, tls_config},
};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const BOTH_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Attempts of a request that the server is too busy for.
const MAX_ATTEMPTS: u32 = 3;
/// How long to wait before a response is posted again that may not have reached the server.
const POST_PAUSES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
const MAX_REDIRECTS: usize = 5;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

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
    pub(super) async fn open_events(&self, operation: Option<&Operation>) -> Result<HttpReply, Error> {
        let reply = self.get(None, Login::Allowed(operation)).await?;
        if !reply.status().is_success() {
            return Err(reply.into_error(self).await);
        }
        if !reply.is_event_stream() {
            return Err(Error::invalid("the response at the URL is not an event stream"));
        }
        Ok(reply)
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
    ) -> Result<HttpReply, Error> {
        headers.entry(header::CONTENT_TYPE).or_insert(JSON);
        headers.entry(header::ACCEPT).or_insert(BOTH_TYPES);
        headers.entry(header::ACCEPT_ENCODING).or_insert(GZIP);
        self.send(HttpRequest::new(Method::POST, url.clone(), headers, body), login).await.map(HttpReply::new)
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
        let reply = self.post(url, text, headers, login).await?;
        match reply.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND if sent_session => Err(LinkError::SessionLost),
            _ => Err(reply.into_error(self).await.into()),
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
        let reply = loop {
            let reply = self.post(&self.url, request.body.clone(), headers.clone(), login).await?;
            match reply.retry_after().filter(|_| attempt < MAX_ATTEMPTS) {
                Some(pause) => sleep(pause).await,
                None => break reply,
            }
            attempt += 1;
        };
        if !reply.status().is_success() {
            return Err(reply.into_request_error(self, sent_session).await);
        }
        if request.method == "initialize"
            && let Some(begun) = reply.session()
        {
            headers.insert(SESSION_ID, begun.clone());
            *self.session.write() = Some(begun.clone());
        }
        if reply.is_event_stream() {
            let stream = HttpStream::new(self, headers.remove(SESSION_ID));
            return Ok(stream.read_reply(request, reply).await?);
        }
        Ok(reply.read_result(request, self).await?)
    }

    /// Opens an event stream, or resumes one after its last event.
    pub(super) async fn get(
        &self,
        last_event_id: Option<&HeaderValue>,
        login: Login<'_>,
    ) -> Result<HttpReply, Error> {
        let mut headers = self.headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.entry(header::ACCEPT_ENCODING).or_insert(GZIP);
        if let Some(id) = last_event_id {
            headers.insert(LAST_EVENT_ID, id.clone());
        }
        let request = HttpRequest::new(Method::GET, self.url.clone(), headers, "");
        self.send(request, login).await.map(HttpReply::new)
    }
}

/// These addresses, as clients connect to them: through the proxies of the environment.
pub(in crate::client) fn network(reach: Reach, tls: Arc<ClientConfig>) -> Network {
    Network { reach, look_up: Resolver::system().into_function(), tls, uses_proxies: true }
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
    use super::http_reply::pause_of;
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
    let _for_a_panic = pause_of(text, std::time::SystemTime::UNIX_EPOCH);
}

#[cfg(all(any(test, feature = "_fuzzing"), feature = "http"))]
inventory::submit!(crate::fuzzing::Target { name: "header_values", run: fuzz });

#[cfg(test)]
mod tests {
    use super::*;

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
