//! What the MCP Apps extension fixes: its key, the scheme of pages and their MIME type. The registry and dispatch
//! name them, and sessions and contexts ask whether a client declared it.

use serde_json::Value;

/// The extension's key among capabilities.
pub(crate) const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The MIME type of a page.
pub(crate) const PAGE_MIME: &str = "text/html;profile=mcp-app";
/// What a declaration of the extension says: the kinds of page that are shown, or offered.
pub(crate) const UI_SETTINGS: &str = r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#;

/// Whether a URI is a page's.
pub(crate) fn is_page(uri: &str) -> bool {
    uri.starts_with("ui://")
}

/// Whether a client with these capabilities shows pages of the kind that servers have.
pub(crate) fn shows_pages(capabilities: &Value) -> bool {
    let settings = capabilities.get("extensions").and_then(|extensions| extensions.get(UI_EXTENSION));
    let types = settings.and_then(|settings| settings.get("mimeTypes")).and_then(Value::as_array);
    types.is_some_and(|types| types.iter().filter_map(Value::as_str).any(is_page_mime))
}

/// Case and blanks around the `;` mean nothing in a media type.
fn is_page_mime(mime: &str) -> bool {
    let mut known = PAGE_MIME.chars();
    mime.chars().filter(|c| *c != ' ').all(|c| known.next() == Some(c.to_ascii_lowercase()))
        && known.next().is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_shows_pages_if_it_names_their_type() {
        let declares = |settings: Value| shows_pages(&json!({ "extensions": { UI_EXTENSION: settings } }));
        for types in [json!([PAGE_MIME]), json!(["text/x", "text/HTML; profile=mcp-app"])] {
            assert!(declares(json!({ "mimeTypes": types })), "{types}");
        }
        for types in
            [json!([]), json!(["text/html"]), json!(PAGE_MIME), json!([1]), json!([format!("{PAGE_MIME}2")])]
        {
            assert!(!declares(json!({ "mimeTypes": types })), "{types}");
        }
        assert!(!declares(json!({})));
        assert!(!shows_pages(&json!({ UI_EXTENSION: { "mimeTypes": [PAGE_MIME] } })));
        assert!(!shows_pages(&json!([])));
        let ours: Value = serde_json::from_str(UI_SETTINGS).unwrap();
        assert!(declares(ours));
    }
}
