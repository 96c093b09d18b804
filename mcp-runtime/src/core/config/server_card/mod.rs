//! The server card: a public document at `<endpoint>/server-card` that says who a server is and where it is reached, and
//! the catalog of its host, which leads to it. Both are made when the server is built, from its options and never from a
//! request. A program that sets no registry name does not contain them.
//!
//! See [SEP-2127](https://modelcontextprotocol.io/seps/2127-mcp-server-cards).

mod card;

use http::Uri;

use self::card::{card, catalog};
use super::{HttpOptions, Options, ServerInfo};

/// Where the catalog of a host is.
const CATALOG_PATH: &str = "/.well-known/ai-catalog.json";
/// Where registries of agentic resources look for the same document.
const ARD_PATH: &str = "/.well-known/ard.json";
/// The suffix that makes the URL of a card from that of its endpoint.
pub(crate) const CARD_SUFFIX: &str = "/server-card";

/// What a program says about its server for the card alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct CardInfo {
    /// The name in registries.
    registry_name: Option<String>,
    /// The URL of the endpoint over HTTP.
    public_url: Option<String>,
    /// The URL of the server's source.
    repository: Option<String>,
}

/// The card of a server, and the catalog at both of its paths.
#[derive(Clone)]
pub(crate) struct ServerCard {
    /// The URL of the endpoint.
    pub(crate) url: String,
    /// The path, the media type and the text of each document, that of the card first.
    pub(crate) documents: [(String, &'static str, Vec<u8>); 3],
}

impl ServerInfo {
    /// Sets the name of the server in registries, in reverse DNS: `io.github.me/notes`. With it, and with a
    /// [public URL](Self::public_url), the server publishes a [server card](crate::guide::server_card) over HTTP. **Preview**:
    /// the format of the card is a draft.
    ///
    /// ```
    /// let server = mcp_runtime::server!()
    ///     .info(|info| info.registry_name("com.example/notes").public_url("https://example.com/mcp"));
    /// ```
    pub fn registry_name(mut self, name: impl Into<String>) -> Self {
        self.card.registry_name = Some(name.into());
        self
    }

    /// Sets the URL under which clients reach the endpoint over HTTP, for the [server card](crate::guide::server_card); by
    /// default the `resource` of `Oauth`. Requests do not change it, whatever host they name.
    ///
    /// It is `https:`, or a URL of this machine.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.card.public_url = Some(url.into());
        self
    }

    /// Sets the URL of the repository with the server's source, for the [server card](crate::guide::server_card).
    ///
    /// ```
    /// let server = mcp_runtime::server!().info(|info| info.repository("https://github.com/me/notes"));
    /// ```
    pub fn repository(mut self, url: impl Into<String>) -> Self {
        self.card.repository = Some(url.into());
        self
    }
}

impl ServerCard {
    /// The card of a server with these options; `None` without a name or a public URL.
    ///
    /// # Errors
    /// The values that a card cannot contain.
    pub(crate) fn new(info: &ServerInfo, options: &Options) -> Result<Option<Self>, Vec<String>> {
        let Some(name) = &info.card.registry_name else { return Ok(None) };
        let mut problems = Vec::new();
        if !is_registry_name(name) {
            problems.push(format!(
                "`{name}` is not a name for registries\nwrite it in reverse DNS, such as `com.example/notes`"
            ));
        }
        if is_range(&info.version) {
            problems.push(format!(
                "the server's version `{}` is a range, which registries refuse\nwrite the version of this program",
                info.version
            ));
        }
        if let Some(repository) = info.card.repository.as_deref().filter(|url| !is_repository(url)) {
            problems.push(format!(
                "`{repository}` is not the URL of a repository\nwrite one such as `https://github.com/me/notes`"
            ));
        }
        let http = &options.http;
        let url = public_url(info, http);
        problems.extend(url.and_then(|url| problem_of_url(url, info.card.public_url.is_some())));
        let Some(url) = url.filter(|_| problems.is_empty()) else {
            return if problems.is_empty() { Ok(None) } else { Err(problems) };
        };
        let card_path = format!("{}{CARD_SUFFIX}", http.path.trim_end_matches('/'));
        if let Some(path) =
            [&card_path, CATALOG_PATH, ARD_PATH].into_iter().find(|path| options.has_http_path(path))
        {
            return Err(vec![format!(
                "`{path}` is a path of the server card and of something else\nwrite another"
            )]);
        }
        let card_url = format!("{}{CARD_SUFFIX}", url.trim_end_matches('/'));
        let catalog = catalog(info, name, &card_url);
        let documents = [
            (card_path, "application/mcp-server-card+json", card(info, name, url, http)),
            (CATALOG_PATH.to_owned(), "application/ai-catalog+json", catalog.clone()),
            (ARD_PATH.to_owned(), "application/json", catalog),
        ];
        Ok(Some(Self { url: url.to_owned(), documents }))
    }
}

/// The URL of the endpoint, as clients outside know it.
fn public_url<'a>(info: &'a ServerInfo, options: &'a HttpOptions) -> Option<&'a str> {
    #[cfg(feature = "auth")]
    let resource =
        options.authenticator.as_ref().and_then(|auth| auth.metadata()).map(|known| known.resource());
    #[cfg(not(feature = "auth"))]
    let resource = {
        let _without_auth = options;
        None
    };
    info.card.public_url.as_deref().or(resource)
}

/// Why a card cannot name this URL, if that is so.
fn problem_of_url(text: &str, is_set: bool) -> Option<String> {
    let option = if is_set { "public_url" } else { "resource" };
    let problem = |advice: &str| {
        Some(format!("`{text}` of `.{option}(..)` is not a URL that a server card can name\n{advice}"))
    };
    // a client would take the braces for a variable
    let is_plain = text.is_ascii() && !text.contains(['?', '#', '{', '}', '@']);
    let uri = text.parse::<Uri>().ok().filter(|uri| is_plain && uri.host().is_some());
    let Some((uri, scheme)) = uri.as_ref().and_then(|uri| Some((uri, uri.scheme_str()?))) else {
        return problem("write the URL of the endpoint, such as `https://mcp.example.com/mcp`");
    };
    let is_local = || {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    match scheme {
        "https" => None,
        "http" if is_local() => None,
        _ => problem("it is an `https:` URL, unless its host is this machine"),
    }
}

/// `namespace/name` with exactly one slash, as the schema of cards has it.
fn is_registry_name(name: &str) -> bool {
    let allows = |text: &str, others: &[u8]| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || others.contains(&b))
    };
    let parts = name.split_once('/').filter(|_| name.len() <= 200);
    parts.is_some_and(|(namespace, name)| allows(namespace, b".-") && allows(name, b"._-"))
}

fn is_repository(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some())
}

/// Whether a version stands for several.
fn is_range(version: &str) -> bool {
    version.starts_with(['^', '~', '>', '<', '='])
        || version.split('.').any(|part| matches!(part, "x" | "X" | "*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_slash_and_the_characters_of_the_schema() {
        for good in ["com.example/notes", "io.github.me/my_notes.v2", "a/b", "example-org/minimal"] {
            assert!(is_registry_name(good), "{good}");
        }
        let long = format!("a/{}", "b".repeat(199));
        for bad in [
            "",
            "/",
            "a/",
            "/b",
            "notes",
            "a/b/c",
            "a_b/c",
            "com.example/größe",
            "a b/c",
            "a/b c",
            "a/b\n",
            &long,
        ] {
            assert!(!is_registry_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_version_is_not_a_range() {
        for good in ["1.0.2", "2.1.0-alpha", "v2", "1.0.0-x.7.z.92x", "2026-11"] {
            assert!(!is_range(good), "{good}");
        }
        for bad in ["^1.2.3", "~1.2.3", ">=1.2.3", "1.x", "1.*"] {
            assert!(is_range(bad), "{bad}");
        }
    }

    #[test]
    fn urls_are_https_or_of_this_machine_and_are_not_templates() {
        for good in [
            "https://mcp.example.com",
            "https://mcp.example.com/mcp",
            "https://mcp.example.com:8443/a/mcp/",
            "http://localhost:3000/mcp",
            "http://127.0.0.1/mcp",
            "http://[::1]:3000/mcp",
        ] {
            assert_eq!(problem_of_url(good, true), None);
        }
        for bad in [
            "http://mcp.example.com/mcp",
            "http://10.0.0.1/mcp",
            "http://localhost.evil.example/mcp",
            "ftp://mcp.example.com",
            "/mcp",
            "mcp.example.com/mcp",
            "https://",
            "https://ada:secret@mcp.example.com/mcp",
            "https://mcp.example.com/mcp?tenant=acme",
            "https://mcp.example.com/mcp#a",
            "https://{tenant}.example.com/mcp",
            "https://mcp.example.com/a b",
            "",
        ] {
            assert!(problem_of_url(bad, true).is_some(), "{bad}");
        }
    }
}
