//! A small HTTP/1.1 client: whole requests, and responses that are read as they come, decompressed if they are gzip.
//! Redirects are responses.

use std::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
    vec,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, response::Parts};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use percent_encoding::percent_decode_str;
use url::Url;

use super::{
    connector::{Connector, Network, PeerAddress},
    proxies::Proxies,
    response_body::ResponseBody,
};

/// The name of the runtime in `User-Agent`.
const RUNTIME: &str = "mcp-runtime";

/// Sends requests, on connections that it keeps.
#[derive(Clone)]
pub struct HttpClient {
    client: Client<Connector, WholeBody>,
    proxies: Proxies,
    agent: Option<HeaderValue>,
}

impl HttpClient {
    /// `limit` is for opening one connection.
    #[must_use]
    pub fn new(network: Network, limit: Duration) -> Self {
        Self::with_idle(network, limit, usize::MAX, Duration::from_secs(90))
    }

    /// Keeps at most so many connections to a host without a request, for so long.
    #[must_use]
    pub fn with_idle(network: Network, limit: Duration, per_host: usize, time: Duration) -> Self {
        let proxies = if network.uses_proxies { Proxies::of_environment() } else { Proxies::none() };
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(time);
        builder.pool_max_idle_per_host(per_host);
        let client = builder.build(Connector::new(network, proxies.clone(), limit));
        Self { client, proxies, agent: user_agent("", "") }
    }

    /// Names the program in requests that have no `User-Agent`: see [`user_agent`].
    #[must_use]
    pub fn named(self, name: &str, version: &str) -> Self {
        Self { agent: user_agent(name, version), ..self }
    }

    /// Sends a request, and waits for the head of its response.
    ///
    /// # Errors
    /// No response comes.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ExchangeError> {
        let HttpRequest { method, mut url, mut headers, body } = request;
        if let Some(credentials) = take_credentials(&mut url)? {
            headers.entry(header::AUTHORIZATION).or_insert(credentials);
        }
        if let Some(agent) = &self.agent {
            headers.entry(header::USER_AGENT).or_insert_with(|| agent.clone());
        }
        // servers refuse these methods without a length (RFC 9110, section 8.6), and hyper sends none of an empty body
        if body.is_empty() && [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        url.set_fragment(None);
        let uri: Uri =
            url.as_str().parse().map_err(|_| ExchangeError::text("the URL cannot be requested"))?;
        self.proxies.authorize(&uri, &mut headers);
        let mut request = http::Request::new(WholeBody(body.into_iter()));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        let response = self.client.request(request).await.map_err(|error| ExchangeError::of(&error))?;
        let (head, body) = response.into_parts();
        Ok(HttpResponse { body: ResponseBody::new(&head.headers, body), head })
    }
}

/// The header `User-Agent` of a program: `name/version mcp-runtime/version`. What cannot be in a token becomes `-`; without a
/// name, only `mcp-runtime` is named.
#[must_use]
pub fn user_agent(name: &str, version: &str) -> Option<HeaderValue> {
    let token = |text: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        text.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect::<String>()
    };
    let product = |name: &str, version: &str| match (name, version) {
        ("" | RUNTIME, _) => String::new(),
        (name, "") => token(name) + " ",
        (name, version) => format!("{}/{} ", token(name), token(version)),
    };
    let text = format!("{}{RUNTIME}/{}", product(name, version), env!("CARGO_PKG_VERSION"));
    HeaderValue::try_from(text).ok()
}

/// Takes a name and a password out of a URL, as a header.
fn take_credentials(url: &mut Url) -> Result<Option<HeaderValue>, ExchangeError> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let credentials = [decoded(url.username()), decoded(url.password().unwrap_or_default())].join(&b':');
    let invalid = |()| ExchangeError::text("the credentials in the URL cannot be sent");
    url.set_username("").map_err(invalid)?;
    url.set_password(None).map_err(invalid)?;
    let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(credentials)));
    let mut value = value.map_err(|_| invalid(()))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// A request.
#[derive(Clone)]
pub struct HttpRequest {
    /// Its method.
    pub method: Method,
    /// Where it is sent; a name and a password in it become a header.
    pub url: Url,
    /// Its headers.
    pub headers: HeaderMap,
    /// Parts, none of which is empty.
    body: Vec<Bytes>,
}

impl HttpRequest {
    /// A request with a whole body.
    pub fn new(method: Method, url: Url, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self::of_parts(method, url, headers, vec![body.into()])
    }

    /// A request whose body is made of parts, which may be those of other requests as well.
    #[must_use]
    pub fn of_parts(method: Method, url: Url, headers: HeaderMap, mut body: Vec<Bytes>) -> Self {
        body.retain(|part| !part.is_empty());
        Self { method, url, headers, body }
    }
}

/// A response, of which the head has come.
pub struct HttpResponse {
    head: Parts,
    body: ResponseBody,
}

impl HttpResponse {
    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Its headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The address that it came from; none if it came through a proxy.
    #[must_use]
    pub fn peer(&self) -> Option<std::net::IpAddr> {
        self.head.extensions.get::<PeerAddress>().map(|peer| peer.0)
    }

    /// The length of the body, if the head says it. That of a compressed one is not known.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        self.body.length()
    }

    /// The next part of the body; `None` at its end.
    ///
    /// # Errors
    /// The connection has ended before, or the body is broken.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        self.body.chunk().await
    }
}

/// The next part of a body as it was sent; `None` at its end.
pub(super) async fn receive(body: &mut Incoming) -> Result<Option<Bytes>, ExchangeError> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame.transpose().map_err(|error| ExchangeError::of(&error))? else {
            return Ok(None);
        };
        // the other frames are trailers
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// Why a request has no response, or a response no end: an error with its causes, without the URL.
#[derive(Debug)]
pub enum ExchangeError {
    /// TLS could not be agreed upon, or a certificate is refused.
    Tls(String),
    /// The connection was not opened in time.
    Timeout(String),
    /// Any other step has failed.
    Other(String),
}

/// The error of the step that has failed, where that is known.
fn known_step(error: &(dyn std::error::Error + 'static)) -> Option<fn(String) -> ExchangeError> {
    let error_of_connection = error.downcast_ref::<std::io::Error>();
    // an error of TLS may be inside of one of the connection
    let inner = error_of_connection.and_then(|error| error.get_ref());
    if error.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
        return Some(ExchangeError::Tls);
    }
    match error_of_connection?.kind() {
        std::io::ErrorKind::TimedOut => Some(ExchangeError::Timeout),
        _ => None,
    }
}

impl ExchangeError {
    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        /// An error may be its own cause.
        const MOST_CAUSES: usize = 64;
        let (mut text, mut step) = (error.to_string(), None);
        for error in std::iter::successors(Some(error), |error| error.source()).take(MOST_CAUSES) {
            let line = error.to_string();
            // many errors have their cause in their own text
            if !text.contains(&line) {
                text.push_str(": ");
                text.push_str(&line);
            }
            step = step.or_else(|| known_step(error));
        }
        step.unwrap_or(Self::Other)(text)
    }

    pub(super) fn text(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Tls(text) | Self::Timeout(text) | Self::Other(text)) = self;
        f.write_str(text)
    }
}

/// The body of a request: the parts that were not sent yet.
#[derive(Debug)]
struct WholeBody(vec::IntoIter<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_slice().iter().map(|part| part.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_name_of_a_program_is_a_token_in_its_requests() {
        let runtime = concat!("mcp-runtime/", env!("CARGO_PKG_VERSION"));
        for (name, version, product) in [
            ("shop", "1.2.0", "shop/1.2.0 "),
            ("Ada's Shop (é)\r\nHost: x", "1.0+b 7", "Ada's-Shop------Host--x/1.0+b-7 "),
            ("shop", "", "shop "),
            ("", "1.0", ""),
            (RUNTIME, "1.0", ""),
        ] {
            assert_eq!(user_agent(name, version).unwrap(), format!("{product}{runtime}"));
        }
    }

    #[test]
    fn a_failure_is_that_of_the_cause_that_tells() {
        let tls = || io::Error::other(rustls::Error::General("no".into()));
        let of = |error: io::Error| ExchangeError::of(&error);
        assert!(matches!(of(io::ErrorKind::TimedOut.into()), ExchangeError::Timeout(_)));
        assert!(matches!(of(io::ErrorKind::ConnectionRefused.into()), ExchangeError::Other(_)));
        assert!(matches!(of(tls()), ExchangeError::Tls(_)));
    }
}
