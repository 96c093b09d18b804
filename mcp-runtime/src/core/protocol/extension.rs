//! Extensions: their keys and settings among capabilities, and which clients support MCP Apps.

use serde_json::Value;

/// MCP Apps: resources of the scheme `ui:` that clients render.
pub(crate) const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The MIME type of UI resources.
pub(crate) const UI_MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The settings of the extension: the MIME types that are supported.
pub(crate) const UI_SETTINGS: &str = r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#;

/// Skills (SEP-2640).
#[cfg(feature = "skills")]
pub(crate) const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The settings of the extension: directories can be read.
#[cfg(feature = "skills")]
pub(crate) const SKILLS_SETTINGS: &str = r#"{"directoryRead":true}"#;

/// Tasks: tool calls that continue after their response (SEP-2663).
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Events (SEP-3415).
pub(crate) const EVENTS_EXTENSION: &str = "io.modelcontextprotocol/events";

/// Checks an extension that a program declares.
///
/// # Errors
/// It cannot be declared: the reason.
pub(crate) fn check_extension(name: &str, settings: &Value) -> Result<(), String> {
    const OWN: [&str; 4] =
        [UI_EXTENSION, "io.modelcontextprotocol/skills", TASKS_EXTENSION, EVENTS_EXTENSION];
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
    };
    if !name.split_once('/').is_some_and(|(prefix, name)| is_word(prefix) && is_word(name)) {
        return Err(format!(
            "`{name}` is not the name of an extension\nwrite a prefix of yours and a name: `com.example/prices`"
        ));
    }
    if OWN.contains(&name) {
        return Err(format!("`{name}` is declared without `.extension(..)`, by what implements it"));
    }
    match settings.is_object() {
        true => Ok(()),
        false => Err(format!("the settings of the extension `{name}` are not an object")),
    }
}

/// Whether a URI is that of a UI resource.
pub(crate) fn is_ui_uri(uri: &str) -> bool {
    uri.starts_with("ui://")
}

/// Whether a client with these capabilities renders UI resources of [`UI_MIME_TYPE`].
pub(crate) fn supports_ui(capabilities: &Value) -> bool {
    let settings = capabilities.get("extensions").and_then(|extensions| extensions.get(UI_EXTENSION));
    let types = settings.and_then(|settings| settings.get("mimeTypes")).and_then(Value::as_array);
    types.is_some_and(|types| types.iter().filter_map(Value::as_str).any(is_ui_mime_type))
}

// case, and spaces around the `;`, are insignificant in a media type
fn is_ui_mime_type(mime: &str) -> bool {
    let mut expected = UI_MIME_TYPE.chars();
    mime.chars().filter(|c| *c != ' ').all(|c| expected.next() == Some(c.to_ascii_lowercase()))
        && expected.next().is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_supports_ui_if_it_declares_the_mime_type() {
        let is_supported =
            |settings: Value| supports_ui(&json!({ "extensions": { UI_EXTENSION: settings } }));
        for types in [json!([UI_MIME_TYPE]), json!(["text/x", "text/HTML; profile=mcp-app"])] {
            assert!(is_supported(json!({ "mimeTypes": types })), "{types}");
        }
        for types in [
            json!([]),
            json!(["text/html"]),
            json!(UI_MIME_TYPE),
            json!([1]),
            json!([format!("{UI_MIME_TYPE}2")]),
        ] {
            assert!(!is_supported(json!({ "mimeTypes": types })), "{types}");
        }
        assert!(!is_supported(json!({})));
        assert!(!supports_ui(&json!({ UI_EXTENSION: { "mimeTypes": [UI_MIME_TYPE] } })));
        assert!(!supports_ui(&json!([])));
        let settings: Value = serde_json::from_str(UI_SETTINGS).unwrap();
        assert!(is_supported(settings));
    }
}
