//! Documents whose URLs come from other documents: their size, their time and the addresses that are connected to are
//! limited, and no redirect is followed.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, Response, header};
use rustls::ClientConfig;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::timeout;
use url::Url;

use super::{
    connector::{LookUp, Network},
    http_client::{ExchangeError, HttpClient, HttpRequest},
    reach::Reach,
};
use crate::tls_config;

/// The largest document that is read.
pub const MAX_DOCUMENT: usize = 1 << 20;

/// Why a document is not available.
#[derive(Debug)]
pub enum FetchError {
    /// The server has none there, or refuses it.
    Status(u16),
    /// It exceeds [`MAX_DOCUMENT`].
    TooLarge,
    /// The URL is none that may be fetched.
    Refused(String),
    /// The server cannot be reached, or what it sent is not the document. For the log: it contains no credentials.
    Failed(String),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "the status is {status}"),
            Self::TooLarge => write!(f, "the document is larger than {MAX_DOCUMENT} bytes"),
            Self::Refused(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

/// Fetches documents of one authorization server. It connects to nothing before its first request.
pub struct Fetcher {
    reach: Reach,
    look_up: LookUp,
    uses_proxies: bool,
    /// For one document, from the look-up of its host to its last byte.
    limit: Duration,
    tls: Option<Arc<ClientConfig>>,
    client: OnceLock<Result<HttpClient, String>>,
}

impl Fetcher {
    /// A server's: a server does not read its environment, and a proxy would resolve names itself.
    #[must_use]
    pub fn new(reach: Reach, look_up: LookUp) -> Self {
        let limit = Duration::from_secs(5);
        Self { reach, look_up, uses_proxies: false, limit, tls: None, client: OnceLock::new() }
    }

    /// A client's, which connects as its other requests do.
    #[must_use]
    pub fn of_client(network: Network) -> Self {
        let Network { reach, look_up, tls, uses_proxies } = network;
        let limit = Duration::from_secs(30);
        Self { reach, look_up, uses_proxies, limit, tls: Some(tls), client: OnceLock::new() }
    }

    fn client(&self) -> Result<&HttpClient, FetchError> {
        let client = self.client.get_or_init(|| {
            let tls = self.tls.clone().map_or_else(|| tls_config(&[]), Ok)?;
            let Self { reach, look_up, uses_proxies, .. } = self;
            let network =
                Network { reach: *reach, look_up: look_up.clone(), tls, uses_proxies: *uses_proxies };
            Ok(HttpClient::new(network, self.limit))
        });
        client.as_ref().map_err(|error| FetchError::Failed(error.clone()))
    }

    /// Checks that a URL may be connected to, as far as its text says. Names are checked when they are resolved.
    ///
    /// # Errors
    /// It is not `https:`, or has credentials or an address that is not admitted.
    pub fn check_url(&self, text: &str) -> Result<Url, FetchError> {
        let refused = |why: &str| FetchError::Refused(format!("`{}` {why}", shortened(text)));
        let url: Url = text.parse().map_err(|_| refused("is not a URL"))?;
        match self.reach.refusal(&url) {
            Some(why) => Err(refused(why)),
            None => Ok(url),
        }
    }

    /// Sends a request to a URL that was checked. Any status is a document; a redirect is one, too.
    ///
    /// # Errors
    /// The server cannot be reached, or its reply is too large or too late.
    pub async fn send(
        &self,
        method: Method,
        url: Url,
        mut headers: HeaderMap,
        body: impl Into<hyper::body::Bytes>,
    ) -> Result<Response<Vec<u8>>, FetchError> {
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let request = HttpRequest::new(method, url, headers, body);
        let fetched = async {
            let failed = |error: ExchangeError| FetchError::Failed(error.to_string());
            let mut response = self.client()?.send(request).await.map_err(failed)?;
            let mut body = Vec::new();
            if response.content_length().is_some_and(|length| length > MAX_DOCUMENT as u64) {
                return Err(FetchError::TooLarge);
            }
            while let Some(chunk) = response.chunk().await.map_err(failed)? {
                if body.len() + chunk.len() > MAX_DOCUMENT {
                    return Err(FetchError::TooLarge);
                }
                body.extend_from_slice(&chunk);
            }
            let mut document = Response::new(body);
            (*document.status_mut(), *document.headers_mut()) =
                (response.status(), response.headers().clone());
            Ok(document)
        };
        let late = |_| FetchError::Failed(format!("no document within {:?}", self.limit));
        timeout(self.limit, fetched).await.map_err(late)?
    }

    /// The document at a URL.
    ///
    /// # Errors
    /// There is none, or it cannot be fetched.
    pub async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, FetchError> {
        parsed(&self.send(Method::GET, self.check_url(url)?, HeaderMap::new(), "").await?)
    }

    /// The metadata of an authorization server, which must be of exactly this issuer.
    ///
    /// # Errors
    /// The server publishes none, or cannot be reached; for the log.
    pub async fn issuer_metadata<T: DeserializeOwned>(&self, issuer: &str) -> Result<T, String> {
        let mut last = String::new();
        for url in issuer_metadata_urls(issuer) {
            match self.get::<IssuerMetadata<T>>(&url).await {
                Ok(metadata) if metadata.issuer == issuer => return Ok(metadata.members),
                Ok(_) => return Err(format!("the metadata at `{url}` is of another issuer")),
                Err(error @ FetchError::Status(_)) => last = format!("`{url}`: {error}"),
                Err(error) => return Err(format!("`{url}`: {error}")),
            }
        }
        Err(format!("`{issuer}` publishes no metadata: {last}"))
    }

    /// Posts a form and returns the server's answer; the client authenticates itself with a name and a secret.
    ///
    /// # Errors
    /// The server refuses it, or cannot be reached.
    pub async fn post_form<T: DeserializeOwned>(
        &self,
        url: &str,
        fields: &[(&str, &str)],
        credentials: (&str, &str),
    ) -> Result<T, FetchError> {
        parsed(&self.send_form(self.check_url(url)?, fields, Some(credentials)).await?)
    }

    /// Posts a form to a URL that was checked, with a name and a secret in the header `Authorization`. Any status is a
    /// document.
    ///
    /// # Errors
    /// The server cannot be reached, or its reply is too large or too late.
    pub async fn send_form<S: AsRef<str>>(
        &self,
        url: Url,
        fields: &[(&str, S)],
        credentials: Option<(&str, &str)>,
    ) -> Result<Response<Vec<u8>>, FetchError> {
        let encoder = || url::form_urlencoded::Serializer::new(String::new());
        let body = encoder().extend_pairs(fields).finish();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, form)]);
        if let Some((client_id, secret)) = credentials {
            // both are form-encoded before they become a header (RFC 6749, section 2.3.1)
            let encoded = |text: &str| encoder().append_key_only(text).finish();
            let credentials = STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(secret)));
            let credentials = HeaderValue::try_from(format!("Basic {credentials}"));
            let mut credentials = credentials.map_err(|error| FetchError::Failed(error.to_string()))?;
            credentials.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, credentials);
        }
        self.send(Method::POST, url, headers, body).await
    }
}

/// The metadata that an authorization server publishes: RFC 8414, or OpenID Connect Discovery.
#[derive(Deserialize)]
struct IssuerMetadata<T> {
    issuer: String,
    #[serde(flatten)]
    members: T,
}

/// Where the metadata of an issuer may be, in the order in which clients look for it; see
/// [discovery](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery).
#[must_use]
pub fn issuer_metadata_urls(issuer: &str) -> Vec<String> {
    let bare = issuer.trim_end_matches('/');
    let authority = bare.find("://").map_or(0, |at| at + 3);
    let path_start = bare[authority..].find('/').map_or(bare.len(), |at| authority + at);
    let (origin, path) = bare.split_at(path_start);
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    urls
}

/// The value of a successful reply.
fn parsed<T: DeserializeOwned>(document: &Response<Vec<u8>>) -> Result<T, FetchError> {
    if !document.status().is_success() {
        return Err(FetchError::Status(document.status().as_u16()));
    }
    serde_json::from_slice(document.body()).map_err(|error| {
        // the message of serde_json may quote the document
        FetchError::Failed(format!("the document is not as expected, at line {}", error.line()))
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// A server's fetcher, which looks up no name.
    fn server() -> Fetcher {
        let none: LookUp = Arc::new(|_| Box::pin(async { Ok(Vec::new()) }));
        Fetcher::new(Reach::Loopback, none)
    }

    /// Sends this, and then a byte again and again.
    async fn serve(head: &'static str) -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _received = stream.read(&mut [0; 1024]).await;
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    sent = stream.write_all(b" ").await;
                }
            }
        });
        url
    }

    #[test]
    fn metadata_is_looked_for_where_clients_look_for_it() {
        assert_eq!(
            issuer_metadata_urls("https://id.example.com/tenant"),
            [
                "https://id.example.com/.well-known/oauth-authorization-server/tenant",
                "https://id.example.com/.well-known/openid-configuration/tenant",
                "https://id.example.com/tenant/.well-known/openid-configuration",
            ]
        );
        assert_eq!(issuer_metadata_urls("https://id.example.com/").len(), 2);
        assert_eq!(
            issuer_metadata_urls("https://id.example.com")[0],
            issuer_metadata_urls("https://id.example.com/")[0]
        );
    }

    #[tokio::test]
    async fn a_document_that_comes_byte_by_byte_has_a_time_limit() {
        for head in [
            "",
            "HTTP/1.1 200 OK\r\nx: ",
            "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n[",
            "HTTP/1.1 200 OK\r\n\r\n[",
        ] {
            let url = serve(head).await;
            let fetcher = Fetcher { limit: Duration::from_millis(200), ..server() };
            let sent = fetcher.send(Method::GET, url, HeaderMap::new(), "").await;
            let Err(FetchError::Failed(why)) = sent else { panic!("{head:?}: {:?}", sent.err()) };
            // the server that begins with a blank does not speak HTTP
            assert!(why.contains("no document within") || head.is_empty(), "{head:?}: {why}");
        }
    }

    #[tokio::test]
    async fn a_document_that_is_said_to_be_too_large_is_not_read() {
        let url = serve("HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n").await;
        let sent = server().send(Method::GET, url, HeaderMap::new(), "").await;
        assert!(matches!(sent, Err(FetchError::TooLarge)), "{:?}", sent.err());
    }
}
