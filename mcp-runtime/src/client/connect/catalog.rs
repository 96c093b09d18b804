//! Finds the endpoint of a host by its catalog (`/.well-known/ai-catalog.json`, or the same at
//! `/.well-known/ard.json`) and the server card that this leads to, for
//! a URL that names a host and does not answer MCP itself. A card or an endpoint of another origin is not requested unless
//! the program asks for that, and then without a header or a token of the first one. Nothing in a card is believed but
//! where the endpoint is.
//!
//! See [SEP-2127](https://modelcontextprotocol.io/seps/2127-mcp-server-cards).

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::client_builder::ClientOptions;
use crate::{
    client::{Error, link::http_link::network},
    core::visible_text::in_one_line,
    fetch::{Fetcher, Reach, tls_config},
};

const CATALOG_PATHS: [&str; 2] = ["/.well-known/ai-catalog.json", "/.well-known/ard.json"];
const CATALOG_TYPE: HeaderValue = HeaderValue::from_static("application/ai-catalog+json, application/json");
const CARD: &str = "application/mcp-server-card+json";
const CARD_TYPE: HeaderValue = HeaderValue::from_static("application/mcp-server-card+json, application/json");
/// Servers of a catalog that a message names.
const MAX_NAMED: usize = 10;

/// An endpoint that a catalog leads to.
pub(super) struct FoundEndpoint {
    url: Url,
    /// Of another origin: which addresses it may have.
    pub(super) foreign: Option<Reach>,
}

/// The host that a URL names, if it names nothing else and if what failed says that MCP is not served there.
pub(super) fn host_without_endpoint(url: &str, failed: &Error) -> Option<Url> {
    let mut url: Url = url.parse().ok()?;
    // of a path, the program knows what it means
    if url.path() != "/" || url.query().is_some() || !is_not_mcp(failed) {
        return None;
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_fragment(None);
    Some(url)
}

/// Whether an error is what servers without MCP answer, rather than one that is busy or wants a token.
fn is_not_mcp(error: &Error) -> bool {
    match error {
        Error::Http { status, .. } => match status {
            401 | 407 | 408 | 425 | 429 => false,
            300..=499 | 501 => true,
            _ => false,
        },
        // a page, instead of an error of MCP
        Error::Forbidden { content_type, .. } => {
            content_type.as_deref().is_some_and(|kind| kind.trim_start().starts_with("text/html"))
        }
        Error::Invalid { .. } => true,
        _ => false,
    }
}

#[derive(Deserialize)]
struct Catalog {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    identifier: String,
    // earlier drafts
    #[serde(rename = "type", alias = "mediaType", default)]
    media_type: String,
    url: Option<String>,
    data: Option<Value>,
}

#[derive(Deserialize)]
struct Card {
    #[serde(default)]
    remotes: Vec<Remote>,
}

#[derive(Deserialize)]
struct Remote {
    #[serde(rename = "type")]
    kind: String,
    url: String,
}

impl Entry {
    fn is_card(&self) -> bool {
        let essence = self.media_type.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case(CARD) && (self.url.is_some() || self.data.is_some())
    }
}

/// The endpoint that the catalog of a host leads to; `None` if the host has no catalog.
///
/// # Errors
/// The catalog leads to no endpoint that may be used, or to several.
pub(super) async fn find_endpoint(
    host: &Url,
    options: &ClientOptions,
) -> Result<Option<FoundEndpoint>, Error> {
    let tls = tls_config(&options.roots).map_err(Error::not_connected)?;
    // the program has named this host
    let own = Fetcher::of_client(network(Reach::Any, tls.clone()));
    let mut catalog = None;
    for path in CATALOG_PATHS {
        let url = host.join(path).map_err(Error::not_connected)?;
        if catalog.is_none() {
            catalog = fetch::<Catalog>(&own, &url, CATALOG_TYPE).await;
        }
    }
    let Some(catalog) = catalog else { return Ok(None) };
    let mut cards = catalog.entries.into_iter().filter(Entry::is_card);
    let failed = |reason: String| Error::not_connected(format!("`{host}` does not answer MCP, and {reason}"));
    let Some(entry) = cards.next() else {
        return Err(failed("its catalog names no MCP server".into()));
    };
    let others: Vec<_> = cards.map(|entry| entry.identifier).collect();
    if !others.is_empty() {
        let all = std::iter::once(&entry.identifier).chain(&others);
        let named: Vec<_> = all.take(MAX_NAMED).map(|id| format!("`{}`", shortened(id))).collect();
        return Err(failed(format!(
            "its catalog names {} MCP servers: {}\nconnect to the URL of one of them",
            others.len() + 1,
            named.join(", ")
        )));
    }
    // its targets may be as far from this client as the host is
    let reach = Reach::of(host);
    let foreign = Fetcher::of_client(network(reach, tls));
    let check = |text: &str, what: &str| -> Result<(Url, bool), Error> {
        let url = host
            .join(text)
            .map_err(|_| failed(format!("the address of {what}, `{}`, is not a URL", shortened(text))))?;
        if url.origin() == host.origin() {
            return Ok((url, false));
        }
        if !options.follows_origins {
            return Err(failed(format!(
                "its catalog leads to another origin: {what} is `{}`\n\
                 connect to the URL of the endpoint, or follow it with `Client::builder().follow_origins()`",
                shortened(url.as_str())
            )));
        }
        let checked = foreign.check_url(url.as_str());
        checked.map(|url| (url, true)).map_err(|error| failed(format!("{what} cannot be used: {error}")))
    };
    let card: Option<Card> = match (entry.data, entry.url) {
        (Some(data), _) => serde_json::from_value(data).ok(),
        (None, url) => {
            let (url, is_foreign) = check(&url.unwrap_or_default(), "the server card")?;
            fetch(if is_foreign { &foreign } else { &own }, &url, CARD_TYPE).await
        }
    };
    let Some(card) = card else {
        return Err(failed("the server card that its catalog names cannot be read".into()));
    };
    let endpoint = card.remotes.into_iter().find(|remote| remote.kind == "streamable-http");
    let Some(Remote { url, .. }) = endpoint else {
        return Err(failed("its server card names no endpoint of Streamable HTTP".into()));
    };
    if url.contains(['{', '}']) {
        return Err(failed(format!(
            "the endpoint of its server card has variables: `{}`\nconnect to the URL with values in their place",
            shortened(&url)
        )));
    }
    let (url, is_foreign) = check(&url, "the endpoint")?;
    Ok(Some(FoundEndpoint { url, foreign: is_foreign.then_some(reach) }))
}

impl FoundEndpoint {
    /// The URL to connect to. Name and password in the URL of the host are for its own origin.
    pub(super) fn url_with_credentials_of(mut self, host: &str) -> String {
        if self.foreign.is_none()
            && let Ok(host) = host.parse::<Url>()
        {
            let _no_host = self.url.set_username(host.username());
            let _no_host = self.url.set_password(host.password());
        }
        self.url.into()
    }
}

/// A document, which is requested without any credentials; `None` if it cannot be read.
async fn fetch<T: serde::de::DeserializeOwned>(
    fetcher: &Fetcher,
    url: &Url,
    accept: HeaderValue,
) -> Option<T> {
    let url = fetcher.check_url(url.as_str()).ok()?;
    let headers = HeaderMap::from_iter([(header::ACCEPT, accept)]);
    match fetcher.send(Method::GET, url, headers, "").await {
        Ok(document) if document.status() == StatusCode::OK => serde_json::from_slice(document.body()).ok(),
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(%error, "a catalog or a server card could not be fetched");
            None
        }
    }
}

fn shortened(text: &str) -> String {
    let shown: String = text.chars().take(200).collect();
    in_one_line(&shown).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(status: u16) -> Error {
        Error::Http { status, content_type: None, body: String::new() }
    }

    #[test]
    fn only_a_url_that_names_nothing_but_a_host_has_a_catalog() {
        let host = |url: &str| host_without_endpoint(url, &http(404)).map(String::from);
        assert_eq!(host("https://example.com").as_deref(), Some("https://example.com/"));
        assert_eq!(
            host("HTTPS://ada:secret@example.com:8443/#a").as_deref(),
            Some("https://example.com:8443/")
        );
        for url in
            ["https://example.com/mcp", "https://example.com/?a", "https://example.com//", "example.com"]
        {
            assert_eq!(host(url), None, "{url}");
        }
    }

    #[test]
    fn a_server_that_is_busy_or_wants_a_token_is_taken_at_its_word() {
        let page = |kind: &str| Error::Forbidden {
            scopes: Vec::new(),
            content_type: Some(kind.into()),
            body: String::new(),
        };
        for error in [
            http(301),
            http(400),
            http(404),
            http(405),
            http(415),
            http(501),
            page("text/html; charset=utf-8"),
        ] {
            assert!(is_not_mcp(&error), "{error}");
        }
        assert!(is_not_mcp(&Error::invalid("the reply has no response")));
        for error in [http(429), http(500), http(502), http(503), http(200), page("application/json")] {
            assert!(!is_not_mcp(&error), "{error}");
        }
        for error in [
            Error::Unauthorized { challenge: None },
            Error::not_connected("refused"),
            Error::unsupported("any revision"),
            Error::Cancelled,
        ] {
            assert!(!is_not_mcp(&error), "{error}");
        }
    }
}
