//! Links that add a server to a client.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// The characters that `encodeURIComponent` keeps.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'');

fn encode(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}

/// JSON as base64 that is the same in its two alphabets, and without padding: clients differ in which they read.
fn encode_base64(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        // those whose last six bits are the two letters that differ, which can be written otherwise only in strings; JSON
        // has them nowhere else
        if c.is_ascii() && !"~>?\u{7f}".contains(c) {
            text.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    while !text.len().is_multiple_of(3) {
        text.push(' ');
    }
    BASE64_URL_SAFE_NO_PAD.encode(text)
}

pub(super) fn cursor(name: &str, entry: &Value) -> String {
    let config = encode_base64(entry);
    format!("cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={config}", encode(name))
}

pub(super) fn vscode(name: &str, entry: &Value) -> String {
    let mut entry = entry.clone();
    entry["name"] = name.into();
    format!("vscode:mcp/install?{}", encode(&entry.to_string()))
}

/// A link of VS Code for pages that open no links but those of the web, such as Markdown on GitHub.
pub(super) fn on_page(link: &str) -> String {
    format!("https://insiders.vscode.dev/redirect?url={}", encode(link))
}

pub(super) fn goose(name: &str, entry: &Value) -> String {
    let name = encode(name);
    let Some(command) = entry["cmd"].as_str() else {
        let url = encode(entry["uri"].as_str().unwrap_or_default());
        return format!(
            "goose://extension?url={url}&type=streamable_http&id={name}&name={name}&description={name}"
        );
    };
    let arguments = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let arguments: String = arguments.map(|argument| format!("&arg={}", encode(argument))).collect();
    format!("goose://extension?cmd={}{arguments}&id={name}&name={name}&description={name}", encode(command))
}

pub(super) fn kiro(name: &str, entry: &Value) -> String {
    format!("https://kiro.dev/launch/mcp/add?name={}&config={}", encode(name), encode(&entry.to_string()))
}

pub(super) fn lm_studio(name: &str, entry: &Value) -> String {
    format!("lmstudio://add_mcp?name={}&config={}", encode(name), encode_base64(entry))
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_is_the_same_in_both_alphabets_of_base64() {
        for text in ["", "a", "??>>~~", "ümläut 🦀", "C:\\x\u{7f}~?>"] {
            for padding in 0..3 {
                let value = json!({ "command": format!("{text}{}", "x".repeat(padding)) });
                let encoded = encode_base64(&value);
                for bytes in [BASE64_STANDARD.decode(&encoded), BASE64_URL_SAFE.decode(&encoded)] {
                    let read: Value = serde_json::from_slice(&bytes.expect("base64")).expect("JSON");
                    assert_eq!(read, value);
                }
            }
        }
    }

    #[test]
    fn links_have_names_and_entries_encoded() {
        let entry = json!({ "command": "a b", "args": ["&"] });
        assert!(
            cursor("my server", &entry)
                .starts_with("cursor://anysphere.cursor-deeplink/mcp/install?name=my%20server&config=ey")
        );
        assert_eq!(
            vscode("n", &json!({ "command": "x" })),
            "vscode:mcp/install?%7B%22command%22%3A%22x%22%2C%22name%22%3A%22n%22%7D"
        );
        assert_eq!(
            on_page("vscode:mcp/install?%7B%22"),
            "https://insiders.vscode.dev/redirect?url=vscode%3Amcp%2Finstall%3F%257B%2522"
        );
        let entry = json!({ "cmd": "/bin/x", "args": ["a", "b&c"] });
        assert_eq!(
            goose("n", &entry),
            "goose://extension?cmd=%2Fbin%2Fx&arg=a&arg=b%26c&id=n&name=n&description=n"
        );
        assert!(kiro("n", &entry).starts_with("https://kiro.dev/launch/mcp/add?name=n&config=%7B"));
    }
}
