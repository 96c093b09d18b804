//! A small HTTP/1.1 client: whole requests, and responses that are read as they come, decompressed if they are gzip.
//! Redirects are responses.

use std::{
    convert::Infallible,
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
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
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use url::Url;

#[cfg(feature = "client")]
use super::body_decoder::{BodyDecoder, DecodedPiece};
use super::connector::PAYER;
use super::connector::{AddressRule, Connector, Proxies};
use super::reach::Reach;
use crate::core::admission::Owner;
use crate::core::resolver::Resolver;

/// How many connections are kept without a request, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdleConnections {
    pub(crate) per_host: usize,
    pub(crate) time: Duration,
}

impl Default for IdleConnections {
    fn default() -> Self {
        Self { per_host: usize::MAX, time: Duration::from_secs(90) }
    }
}

/// Sends requests, on connections that it keeps.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: Client<Connector, WholeBody>,
    proxies: Proxies,
}

impl HttpClient {
    /// A client that connects to every address, through the proxies of the environment; `limit` is for opening one
    /// connection.
    #[cfg(feature = "client")]
    pub(crate) fn new(tls: &Arc<ClientConfig>, limit: Duration) -> Self {
        Self::with(|_| true, tls.clone(), Proxies::of_environment(), limit, IdleConnections::default())
    }

    /// A client that connects only to these addresses; a proxy of the environment resolves names itself.
    #[cfg(feature = "client")]
    pub(crate) fn within(reach: Reach, tls: &Arc<ClientConfig>, limit: Duration) -> Self {
        Self::with(reach.rule(), tls.clone(), Proxies::of_environment(), limit, IdleConnections::default())
    }

    /// Clients that connect to these addresses alone, and through no proxy, and differ in what they keep; they trust these
    /// authorities in addition to those of the operating system. `limit` is for opening one connection.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn guarded<const N: usize>(
        reach: Reach,
        resolver: &Resolver,
        roots: &[CertificateDer<'static>],
        limit: Duration,
        idle: [IdleConnections; N],
    ) -> Result<[Self; N], String> {
        let tls = super::tls::tls_config(roots)?;
        let client =
            |idle| Self::resolving(reach.rule(), resolver.clone(), tls.clone(), Proxies::none(), limit, idle);
        Ok(idle.map(client))
    }

    /// Sends a request for an owner, of whose look-ups it is one if its host is looked up.
    pub(crate) async fn send_for(
        &self,
        owner: &Owner,
        request: HttpRequest,
    ) -> Result<HttpResponse, ExchangeError> {
        PAYER.scope(owner.clone(), self.send(request)).await
    }

    pub(super) fn with(
        admits: AddressRule,
        tls: Arc<ClientConfig>,
        proxies: Proxies,
        limit: Duration,
        idle: IdleConnections,
    ) -> Self {
        Self::resolving(admits, Resolver::system(), tls, proxies, limit, idle)
    }

    fn resolving(
        admits: AddressRule,
        resolver: Resolver,
        tls: Arc<ClientConfig>,
        proxies: Proxies,
        limit: Duration,
        idle: IdleConnections,
    ) -> Self {
        let connector = Connector::new(admits, resolver, tls, proxies.clone(), limit);
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(idle.time);
        builder.pool_max_idle_per_host(idle.per_host);
        Self { client: builder.build(connector), proxies }
    }

    /// Sends a request, and waits for the head of its response.
    pub(crate) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ExchangeError> {
        let HttpRequest { method, mut url, mut headers, body } = request;
        if let Some(credentials) = take_credentials(&mut url)? {
            headers.entry(header::AUTHORIZATION).or_insert(credentials);
        }
        url.set_fragment(None);
        let uri: Uri =
            url.as_str().parse().map_err(|_| ExchangeError::text("the URL cannot be requested"))?;
        self.authorize_at_proxy(&uri, &mut headers);
        let mut request = http::Request::new(WholeBody(body.into_iter()));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        let response = self.client.request(request).await.map_err(|error| ExchangeError::of(&error))?;
        let (head, body) = response.into_parts();
        Ok(HttpResponse {
            #[cfg(feature = "client")]
            decoder: is_gzip(&head.headers).then(|| Box::new(BodyDecoder::new())),
            head,
            body,
        })
    }

    /// A proxy that forwards requests finds its credentials in each; in a tunnel there are none.
    #[cfg(feature = "client")]
    fn authorize_at_proxy(&self, uri: &Uri, headers: &mut HeaderMap) {
        if uri.scheme() == Some(&http::uri::Scheme::HTTP)
            && let Some(proxy) = self.proxies.of(uri)
            && let Some(credentials) = proxy.basic_auth()
        {
            let mut credentials = credentials.clone();
            credentials.set_sensitive(true);
            headers.insert(header::PROXY_AUTHORIZATION, credentials);
        }
    }

    #[cfg(not(feature = "client"))]
    fn authorize_at_proxy(&self, _uri: &Uri, _headers: &mut HeaderMap) {
        let _none = &self.proxies;
    }
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
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Parts, none of which is empty.
    body: Vec<Bytes>,
}

impl HttpRequest {
    pub(crate) fn new(method: Method, url: Url, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self::of_parts(method, url, headers, vec![body.into()])
    }

    /// A request whose body is made of parts, which may be those of other requests as well.
    pub(crate) fn of_parts(method: Method, url: Url, headers: HeaderMap, mut body: Vec<Bytes>) -> Self {
        body.retain(|part| !part.is_empty());
        Self { method, url, headers, body }
    }
}

/// A response, of which the head has come.
pub(crate) struct HttpResponse {
    head: Parts,
    body: Incoming,
    /// The decoder of a compressed body.
    #[cfg(feature = "client")]
    decoder: Option<Box<BodyDecoder>>,
}

fn is_gzip(headers: &HeaderMap) -> bool {
    let coding =
        headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["gzip", "x-gzip"].iter().any(|gzip| coding.trim().eq_ignore_ascii_case(gzip))
}

impl HttpResponse {
    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The address that it came from; none if it came through a proxy.
    pub(crate) fn peer(&self) -> Option<std::net::IpAddr> {
        self.head.extensions.get::<super::connector::PeerAddress>().map(|peer| peer.0)
    }

    /// The length of the body, if the head says it. That of a compressed one is not known.
    pub(crate) fn content_length(&self) -> Option<u64> {
        #[cfg(feature = "client")]
        if self.decoder.is_some() {
            return None;
        }
        self.body.size_hint().exact()
    }

    /// The next part of the body; `None` at its end.
    #[cfg(feature = "client")]
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        let Some(mut decoder) = self.decoder.take() else { return self.receive().await };
        let piece = loop {
            match decoder.next() {
                Ok(DecodedPiece::Bytes(piece)) => break Ok(Some(piece)),
                Ok(DecodedPiece::End) => break Ok(None),
                Ok(DecodedPiece::Incomplete) => match self.receive().await {
                    Ok(chunk) => decoder.receive(chunk),
                    Err(error) => break Err(error),
                },
                Err(_) => break Err(ExchangeError::text("the compressed body is broken")),
            }
        };
        if decoder.is_long() {
            // one chunk may stand for a thousand times as much
            tokio::task::yield_now().await;
        }
        self.decoder = Some(decoder);
        piece
    }

    #[cfg(not(feature = "client"))]
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        self.receive().await
    }

    async fn receive(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let Some(frame) = frame.transpose().map_err(|error| ExchangeError::of(&error))? else {
                return Ok(None);
            };
            // the other frames are trailers
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// Why a request has no response, or a response no end: an error with its causes, without the URL.
#[derive(Debug)]
pub(crate) struct ExchangeError {
    text: String,
    failure: ExchangeFailure,
}

/// The step that has failed, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExchangeFailure {
    Tls,
    Timeout,
    Other,
}

impl ExchangeFailure {
    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if error.is::<rustls::Error>() {
                return Self::Tls;
            }
            if let Some(error) = error.downcast_ref::<std::io::Error>() {
                // an error of TLS is inside of one of the connection
                if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                    return Self::Tls;
                }
                if error.kind() == std::io::ErrorKind::TimedOut {
                    return Self::Timeout;
                }
            }
            cause = error.source();
        }
        Self::Other
    }
}

impl ExchangeError {
    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        Self { text: crate::core::invoke::error_chain(error), failure: ExchangeFailure::of(error) }
    }

    fn text(text: &str) -> Self {
        Self { text: text.to_owned(), failure: ExchangeFailure::Other }
    }

    pub(crate) fn failure(&self) -> ExchangeFailure {
        self.failure
    }
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
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
