//! The content of a server card and of the catalog that lists it: identity and connection, nothing that clients list once
//! they are connected. Texts have at most the length that the schema of cards allows.

use http::Uri;

use crate::core::{
    config::{HttpOptions, ServerInfo},
    content::ContentWriter,
    jsonrpc::{Object, write_array, write_string},
    protocol::Revision,
};

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
/// Characters of a title or description.
const MAX_TEXT: usize = 100;

/// The header that a client must send.
struct RequiredHeader {
    description: &'static str,
    /// Of a token that is sent as it is.
    value: Option<&'static str>,
}

/// The card of a server whose endpoint is at `url`.
pub(super) fn card(info: &ServerInfo, name: &str, url: &str, options: &HttpOptions) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let mut card = Object::new(&mut out);
    let title = info.title.as_deref().map(shortened).filter(|title| !title.is_empty());
    card.str("$schema", SCHEMA)
        .str("name", name)
        .str("version", &info.version)
        .str("description", &description(info, name))
        .opt_str("title", title.as_deref())
        .opt_str("websiteUrl", info.website.as_deref().filter(|website| is_url(website)));
    if let Some(url) = &info.card.repository {
        card.object("repository", |repository| {
            repository.str("url", url).str("source", &source(url));
        });
    }
    ContentWriter(Revision::LATEST).write_icons(&mut card, &info.icons);
    write_array(card.key("remotes"), [url], |out, url| {
        let mut remote = Object::new(out);
        remote.str("type", "streamable-http").str("url", url);
        if let Some(header) = required_header(options) {
            write_array(remote.key("headers"), [header], |out, header| write_header(out, &header));
        }
        // the transport is that of 2025-03-26
        let versions = Revision::ALL.iter().filter(|revision| **revision >= Revision::V2025_03_26);
        write_array(remote.key("supportedProtocolVersions"), versions, |out, revision| {
            write_string(out, revision.as_str());
        });
        remote.end();
    });
    card.end();
    out
}

/// The catalog of a host with one server, whose card is at `card_url`.
pub(super) fn catalog(info: &ServerInfo, name: &str, card_url: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let mut catalog = Object::new(&mut out);
    catalog.str("specVersion", "0.9");
    write_array(catalog.key("entries"), [card_url], |out, card_url| {
        let title = info.title.as_deref().map(shortened).filter(|title| !title.is_empty());
        let mut entry = Object::new(out);
        entry
            .str("identifier", &identifier(name))
            .str("displayName", title.as_deref().unwrap_or(&info.name))
            .str("type", "application/mcp-server-card+json")
            .str("url", card_url);
        entry.end();
    });
    catalog.end();
    out
}

/// The service that hosts a repository: `github` or `gitlab`, else its host.
fn source(repository: &str) -> String {
    let uri = repository.parse::<Uri>().ok();
    match uri.as_ref().and_then(Uri::host).unwrap_or_default() {
        "github.com" => "github".to_owned(),
        "gitlab.com" => "gitlab".to_owned(),
        other => other.to_owned(),
    }
}

/// `urn:air:example.com:mcp:notes` of `com.example/notes`.
fn identifier(name: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let publisher: Vec<&str> = namespace.rsplit('.').collect();
    format!("urn:air:{}:mcp:{name}", publisher.join("."))
}

fn description(info: &ServerInfo, name: &str) -> String {
    let texts = [info.description.as_deref(), info.title.as_deref()];
    let written = texts.into_iter().flatten().map(shortened).find(|text| !text.is_empty());
    // it must not be empty, and says as much as the server does
    written.unwrap_or_else(|| shortened(&format!("The MCP server {name}")))
}

/// The text in one line of at most [`MAX_TEXT`] characters, cut between two words.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_TEXT {
        return line;
    }
    let cut: String = line.chars().take(MAX_TEXT - 1).collect();
    let whole = cut.rfind(' ').filter(|_| line.chars().nth(MAX_TEXT - 1) != Some(' '));
    let cut = whole.and_then(|end| cut.get(..end)).unwrap_or(&cut);
    format!("{}…", cut.trim_end())
}

fn is_url(text: &str) -> bool {
    text.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some())
}

#[cfg(feature = "auth")]
fn required_header(options: &HttpOptions) -> Option<RequiredHeader> {
    let authenticator = options.authenticator.as_ref()?;
    Some(match authenticator.metadata() {
        Some(_) => RequiredHeader {
            description: "An access token of an authorization server that the endpoint names in its metadata.",
            value: (!authenticator.requires_proofs()).then_some("Bearer {token}"),
        },
        None => RequiredHeader {
            description: "A token or a key that the operator of the server has given out.",
            value: Some("Bearer {token}"),
        },
    })
}

#[cfg(not(feature = "auth"))]
fn required_header(_: &HttpOptions) -> Option<RequiredHeader> {
    None
}

fn write_header(out: &mut Vec<u8>, header: &RequiredHeader) {
    let input = |object: &mut Object<'_>, description: &str| {
        object.str("description", description).raw("isRequired", "true").raw("isSecret", "true");
    };
    let mut object = Object::new(out);
    object.str("name", "Authorization");
    input(&mut object, header.description);
    if let Some(value) = header.value {
        object.str("value", value);
        object.object("variables", |variables| {
            variables.object("token", |token| input(token, "The token, without its scheme."));
        });
    }
    object.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_words_and_count_characters() {
        assert_eq!(shortened("  Notes\n\tof a  team. "), "Notes of a team.");
        let exact = "ä".repeat(100);
        assert_eq!(shortened(&exact), exact);
        let cut = shortened(&"ä".repeat(101));
        assert!(cut.chars().count() == 100 && cut.ends_with('…'), "{cut}");
        let words = shortened(&"word ".repeat(40));
        assert!(words.ends_with("word…") && words.chars().count() <= 100, "{words}");
    }

    #[test]
    fn an_identifier_is_anchored_at_the_domain_that_the_name_reverses() {
        assert_eq!(identifier("com.example/weather"), "urn:air:example.com:mcp:weather");
        assert_eq!(identifier("io.github.me/notes"), "urn:air:me.github.io:mcp:notes");
        assert_eq!(identifier("example-org/minimal"), "urn:air:example-org:mcp:minimal");
    }
}
