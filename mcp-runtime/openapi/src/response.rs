//! From the response of an API to the result of a tool, and to the contents of a resource.

use http::StatusCode;
use mcp_runtime::{
    ToolError, ToolResult,
    content::{Audio, Embedded, Image, ResourceContents},
};
use serde_json::value::RawValue;

use crate::operation::{essence, is_json};

/// The most characters of a failure's body that are shown.
const MAX_EXCERPT: usize = 1000;

/// A response that was read to its end.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    /// The header `Content-Type`; empty without one.
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

/// The content of a successful response.
enum Content {
    None,
    /// JSON without blanks between its tokens.
    Json(Box<RawValue>),
    Text(String),
    Bytes(Vec<u8>),
}

impl Response {
    /// The status, the media type and the content.
    ///
    /// # Errors
    /// The API refused the request, or has failed.
    fn content(self, has_schema: bool) -> Result<(StatusCode, String, Content), ToolError> {
        let Self { status, content_type, body } = self;
        if !status.is_success() {
            let body = decoded(&content_type, body);
            let body = body.unwrap_or_else(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            return Err(ToolError::new(failure(status, &body)));
        }
        let media = essence(&content_type);
        if body.is_empty() {
            return Ok((status, media, Content::None));
        }
        let is_json = is_json(&media);
        let content = if is_json || is_text(&media) {
            match decoded(&content_type, body) {
                Ok(text) if !is_json => Content::Text(text),
                Ok(text) => match RawValue::from_string(text.clone()) {
                    Ok(json) => Content::Json(compact(&json).map_err(ToolError::private)?),
                    Err(_) if has_schema => return Err(ToolError::new("the API answered with invalid JSON")),
                    // the call was done, and nothing says that its result is JSON
                    Err(_) => Content::Text(text),
                },
                Err(_) if is_json && has_schema => {
                    return Err(ToolError::new("the API answered with invalid JSON"));
                }
                Err(bytes) => Content::Bytes(bytes),
            }
        } else {
            Content::Bytes(body)
        };
        Ok((status, media, content))
    }

    /// The result of a tool; structured, if that is what its schema says. `uri` names content that is neither text nor
    /// JSON, an image or sound.
    ///
    /// # Errors
    /// The API refused the request or has failed, or does not answer as it is described.
    pub(crate) fn into_result(self, has_schema: bool, uri: &str) -> Result<ToolResult, ToolError> {
        let (status, media, content) = self.content(has_schema)?;
        Ok(match content {
            Content::None if has_schema => {
                let text =
                    format!("the API answered {status} without content: it was done, do not repeat it");
                return Err(ToolError::new(text));
            }
            content if has_schema && !matches!(content, Content::Json(_)) => {
                let media = bytes_type(media);
                let text = format!("the API answered with `{media}`, and its description says JSON");
                return Err(ToolError::new(text));
            }
            Content::None => ToolResult::text(status.to_string()),
            Content::Json(json) => ToolResult::json(&json).map_err(ToolError::private)?,
            Content::Text(text) if media == "text/plain" => ToolResult::text(text),
            Content::Text(text) => ToolResult::new([Embedded::text(uri, media, text).into()]),
            Content::Bytes(bytes) if media.starts_with("image/") => {
                ToolResult::new([Image::new(bytes, media).into()])
            }
            Content::Bytes(bytes) if media.starts_with("audio/") => {
                ToolResult::new([Audio::new(bytes, media).into()])
            }
            Content::Bytes(bytes) => ToolResult::new([Embedded::blob(uri, bytes_type(media), bytes).into()]),
        })
    }

    /// The contents of a resource.
    ///
    /// # Errors
    /// There is none, or the API refused the request or has failed.
    pub(crate) fn into_contents(self) -> Result<ResourceContents, ToolError> {
        if matches!(self.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            return Err(ToolError::not_found());
        }
        let (_, media, content) = self.content(false)?;
        Ok(match content {
            Content::None => ResourceContents::text(""),
            Content::Json(json) => ResourceContents::json(&json).map_err(ToolError::private)?.mime(media),
            Content::Text(text) => ResourceContents::text(text).mime(media),
            Content::Bytes(bytes) => ResourceContents::blob(bytes).mime(bytes_type(media)),
        })
    }
}

/// The text of a body in UTF-8, or in one of the charsets of one byte for the west of Europe, which browsers read alike.
///
/// # Errors
/// It is none; the bytes as they came.
fn decoded(content_type: &str, body: Vec<u8>) -> Result<String, Vec<u8>> {
    const FROM_80: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    const NAMES: [&str; 5] = ["iso-8859-1", "iso8859-1", "latin1", "windows-1252", "us-ascii"];
    let charset = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"').to_ascii_lowercase())
    });
    if !charset.is_some_and(|charset| NAMES.contains(&charset.as_str())) {
        return String::from_utf8(body).map_err(|error| error.into_bytes());
    }
    let high: Vec<char> = FROM_80.chars().collect();
    let letter = |byte: u8| byte.checked_sub(0x80).and_then(|index| high.get(usize::from(index)).copied());
    Ok(body.into_iter().map(|byte| letter(byte).unwrap_or(char::from(byte))).collect())
}

/// The media type of bytes that may have come without one.
fn bytes_type(media: String) -> String {
    if media.is_empty() { "application/octet-stream".to_owned() } else { media }
}

fn is_text(media: &str) -> bool {
    const TEXTS: [&str; 6] = [
        "application/javascript",
        "application/x-ndjson",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "image/svg+xml",
    ];
    media.starts_with("text/")
        || media.ends_with("+xml")
        || media.ends_with("+yaml")
        || TEXTS.contains(&media)
}

/// The message of a failure: the status and the beginning of the body, without characters that a terminal obeys.
fn failure(status: StatusCode, body: &str) -> String {
    let redirect = if status.is_redirection() { ", and redirects are not followed" } else { "" };
    let shown = body.trim().chars().filter(|c| *c == '\n' || !c.is_control());
    let excerpt: String = shown.take(MAX_EXCERPT).collect();
    let separator = if excerpt.is_empty() || status.is_redirection() { "" } else { ": " };
    let excerpt = if status.is_redirection() { "" } else { &excerpt };
    format!("the API answered {status}{redirect}{separator}{excerpt}")
}

/// JSON without blanks between its tokens: numbers stay as they are written.
fn compact(json: &RawValue) -> serde_json::Result<Box<RawValue>> {
    let json = json.get();
    let mut compact = String::with_capacity(json.len());
    let (mut in_text, mut is_escaped) = (false, false);
    for c in json.chars() {
        if !in_text && matches!(c, ' ' | '\n' | '\r' | '\t') {
            continue;
        }
        compact.push(c);
        match c {
            '"' if !is_escaped => in_text = !in_text,
            _ => {}
        }
        is_escaped = in_text && c == '\\' && !is_escaped;
    }
    RawValue::from_string(compact)
}
