//! Fetches small JSON documents over HTTPS: what an authorization server publishes and says of tokens. Size, time,
//! redirects and addresses are limited, since a part of the URLs comes from documents that were fetched.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::OnceLock,
    time::Duration,
};

use reqwest::{
    RequestBuilder, Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde::de::DeserializeOwned;

/// The largest document that is read.
const MAX_DOCUMENT: usize = 1 << 20;
/// For one document, from the look-up of its host to its last byte.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Which addresses are connected to, and by which schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public addresses, by `https:`.
    Public,
    /// This machine's loopback as well, also by `http:`.
    Loopback,
    /// Every address, also by `http:`.
    Any,
}

impl Reach {
    /// What a server at that URL may refer to: one on this machine may name others on it.
    pub(crate) fn of(url: &Url) -> Self {
        if is_loopback_host(url) { Self::Loopback } else { Self::Public }
    }

    fn admits(self, address: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Loopback => address.to_canonical().is_loopback() || is_public(address),
            Self::Public => is_public(address),
        }
    }
}

/// Whether a URL's host is this machine's loopback, by name or address.
pub(crate) fn is_loopback_host(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Why a document is not available.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// The server has none there, or refuses it.
    Status(u16),
    /// The server cannot be reached, or what it sent is not the document. For the log: it contains no credentials.
    Failed(String),
}

impl FetchError {
    fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "the status is {status}"),
            Self::Failed(text) => f.write_str(text),
        }
    }
}

/// Fetches documents of one authorization server. It connects to nothing before its first request.
pub(crate) struct Fetcher {
    reach: Reach,
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("reach", &self.reach).finish_non_exhaustive()
    }
}

impl Fetcher {
    pub(crate) fn new(reach: Reach) -> Self {
        Self { reach, client: OnceLock::new() }
    }

    fn client(&self) -> Result<&reqwest::Client, FetchError> {
        let client = self.client.get_or_init(|| build_client(self.reach));
        client.as_ref().map_err(FetchError::failed)
    }

    /// Checks that a URL may be connected to, as far as its text says. Names are checked when they are resolved.
    ///
    /// # Errors
    /// It is not `https:`, or has credentials or an address that is not admitted.
    pub(crate) fn check_url(&self, text: &str) -> Result<Url, FetchError> {
        let refused = |why: &str| FetchError::Failed(format!("`{}` {why}", shortened(text)));
        let url: Url = text.parse().map_err(|_| refused("is not a URL"))?;
        let is_plain = url.scheme() == "http"
            && match self.reach {
                Reach::Public => false,
                Reach::Loopback => is_loopback_host(&url),
                Reach::Any => true,
            };
        if url.scheme() != "https" && !is_plain {
            return Err(refused("is not an `https:` URL"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("contains credentials"));
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        match host.parse::<IpAddr>() {
            Ok(address) if !self.reach.admits(address) => Err(refused("is not a public address")),
            _ => Ok(url),
        }
    }

    /// The document at a URL.
    ///
    /// # Errors
    /// There is none, or it cannot be fetched.
    pub(crate) async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, FetchError> {
        self.send(self.client()?.get(self.check_url(url)?)).await
    }

    /// What the server answers to a form; the client authenticates itself with a name and a secret.
    ///
    /// # Errors
    /// The server refuses it, or cannot be reached.
    pub(crate) async fn post_form<T: DeserializeOwned>(
        &self,
        url: &str,
        fields: &[(&str, &str)],
        (client_id, secret): (&str, &str),
    ) -> Result<T, FetchError> {
        let url = self.check_url(url)?;
        let mut form = url.clone();
        form.query_pairs_mut().clear().extend_pairs(fields);
        let body = form.query().unwrap_or_default().to_owned();
        // both are form-encoded before they become a header (RFC 6749, section 2.3.1)
        let encoded = |text: &str| {
            let mut url = url.clone();
            url.query_pairs_mut().clear().append_key_only(text);
            url.query().unwrap_or_default().to_owned()
        };
        let request = self.client()?.post(url.clone()).basic_auth(encoded(client_id), Some(encoded(secret)));
        self.send(request.header("content-type", "application/x-www-form-urlencoded").body(body)).await
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, FetchError> {
        let response = request.header("accept", "application/json").send().await;
        let mut response = response.map_err(|error| FetchError::Failed(describe(error)))?;
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| FetchError::Failed(describe(error)))? {
            if body.len() + chunk.len() > MAX_DOCUMENT {
                return Err(FetchError::Failed(format!("the document is larger than {MAX_DOCUMENT} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|error| {
            // the message of serde_json may quote the document
            FetchError::Failed(format!("the document is not as expected, at line {}", error.line()))
        })
    }
}

fn build_client(reach: Reach) -> Result<reqwest::Client, String> {
    // a provider of its own: the program may have installed another, or none
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let tls = tls.with_platform_verifier().map_err(|error| format!("no TLS: {error}"))?;
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls.with_no_client_auth())
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(PublicResolver(reach))
        // a server does not read its environment, and a proxy would resolve names itself
        .no_proxy()
        .timeout(TIMEOUT);
    builder.build().map_err(|error| error.to_string())
}

/// The error and its causes, without the URL, which may contain credentials.
fn describe(error: reqwest::Error) -> String {
    crate::invoke::error_chain(&error.without_url())
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Resolves names to the addresses that are admitted.
struct PublicResolver(Reach);

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let admitted: Vec<SocketAddr> = found.filter(|address| reach.admits(address.ip())).collect();
            if admitted.is_empty() {
                return Err("the name does not lead to a public address".into());
            }
            Ok(Box::new(admitted.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is reachable from everywhere, as far as it is assigned for that: not one of this machine, of a
/// private network, or of a special purpose.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, _, _, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b, c, d) {
        // addresses of IPv4 behind a translator, and 6to4
        (0x64, 0xff9b, 0, 0) => embedded(g, h),
        (0x2002, high, low, _) => embedded(high, low),
        // documentation, and the special purposes of 2001::/23
        (0x2001, 0xdb8, ..) => false,
        (0x2001, b, ..) => b >= 0x200,
        // what is assigned for the public is 2000::/3
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_private_networks_and_special_purposes_are_not_public() {
        for private in [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "192.0.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "2001:db8::1",
            "ff02::1",
            "fec0::1",
        ] {
            let address = private.parse().unwrap();
            assert!(!Reach::Public.admits(address) && Reach::Any.admits(address), "{private}");
        }
        for public in ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "::ffff:93.184.216.34"] {
            assert!(Reach::Public.admits(public.parse().unwrap()), "{public}");
        }
        assert!(Reach::Loopback.admits("127.0.0.1".parse().unwrap()));
        assert!(!Reach::Loopback.admits("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn urls_are_https_without_credentials_and_of_public_addresses() {
        let public = Fetcher::new(Reach::Public);
        assert!(public.check_url("https://id.example.com/jwks").is_ok());
        for bad in [
            "http://id.example.com/jwks",
            "https://ada:secret@id.example.com/",
            "https://10.0.0.1/jwks",
            "https://[::1]/jwks",
            "https://2130706433/jwks",
            "http://127.0.0.1/jwks",
            "file:///etc/passwd",
            "jwks",
        ] {
            assert!(public.check_url(bad).is_err(), "{bad}");
        }
        let local = Fetcher::new(Reach::Loopback);
        assert!(local.check_url("http://127.0.0.1:8080/jwks").is_ok());
        assert!(local.check_url("http://10.0.0.1/jwks").is_err());
        assert!(local.check_url("https://192.168.0.1/jwks").is_err());
        assert!(Fetcher::new(Reach::Any).check_url("https://192.168.0.1/jwks").is_ok());
    }

    #[tokio::test]
    async fn names_of_private_addresses_are_not_resolved() {
        let resolved = PublicResolver(Reach::Public).resolve("localhost".parse().unwrap()).await;
        assert!(resolved.is_err());
        let mut resolved =
            PublicResolver(Reach::Loopback).resolve("localhost".parse().unwrap()).await.unwrap();
        assert!(resolved.all(|address| address.ip().is_loopback()));
    }
}
