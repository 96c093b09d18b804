//! The contents of resources, as `resources/read` returns them and as blocks embed them.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

#[cfg(feature = "client")]
use super::WireRest;
use super::{block::BinaryData, meta_setter};
use crate::core::jsonrpc::legible_json;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResourceBody {
    Text(String),
    Blob(BinaryData),
}

/// One item of the `contents` of `resources/read`: text or bytes, with a URI and a MIME type.
///
/// Without a URI, the requested one is sent; without a MIME type, the attribute's.
///
/// See [resource contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-contents).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// `uri` on the wire; the requested URI if not set.
    pub uri: Option<String>,
    /// `mimeType` on the wire; the attribute's if not set.
    pub mime: Option<String>,
    pub(crate) body: ResourceBody,
    /// `_meta` on the wire.
    pub meta: Option<Box<Map<String, Value>>>,
    /// Members that another server has sent besides.
    #[cfg(feature = "client")]
    pub(crate) rest: WireRest,
}

impl ResourceContents {
    fn new(body: ResourceBody) -> Self {
        Self {
            uri: None,
            mime: None,
            body,
            meta: None,
            #[cfg(feature = "client")]
            rest: WireRest::default(),
        }
    }

    /// Text contents.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(ResourceBody::Text(text.into()))
    }

    /// Text contents that are a value as JSON.
    ///
    /// # Errors
    /// `value` has no JSON form.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        legible_json(value).map(Self::text)
    }

    /// Binary contents.
    pub fn blob(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(ResourceBody::Blob(BinaryData::Bytes(bytes.into())))
    }

    /// Binary contents that are base64 already.
    pub fn blob_from_base64(data: impl Into<String>) -> Self {
        Self::new(ResourceBody::Blob(BinaryData::Base64(data.into())))
    }

    /// `uri` on the wire; the requested URI by default.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// `mimeType` on the wire.
    #[must_use]
    pub fn mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// Bytes of the text, or of the binary contents as base64.
    pub(crate) fn size(&self) -> usize {
        match &self.body {
            ResourceBody::Text(text) => text.len(),
            ResourceBody::Blob(data) => data.base64_size(),
        }
    }

    /// `text` on the wire, of text contents.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Blob(_) => None,
        }
    }

    /// `blob` on the wire, of binary contents.
    #[must_use]
    pub fn to_base64(&self) -> Option<Cow<'_, str>> {
        match &self.body {
            ResourceBody::Text(_) => None,
            ResourceBody::Blob(data) => Some(data.to_base64()),
        }
    }

    /// The bytes of binary contents; `None` if they were made from malformed base64.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match &self.body {
            ResourceBody::Text(_) => None,
            ResourceBody::Blob(data) => data.to_bytes(),
        }
    }

    meta_setter!("item");
}

/// Values for the fields that an item of `contents` does not set.
#[derive(Clone, Copy, Default)]
pub(crate) struct ResourceDefaults<'a> {
    /// The requested URI.
    pub(crate) uri: &'a str,
    pub(crate) mime: Option<&'a str>,
    /// The JSON of `_meta.ui`.
    pub(crate) ui: Option<&'a str>,
}

/// Whether a text is `type/subtype`, perhaps with parameters, so that it can be the value of a header.
pub(crate) fn is_media_type(text: &str) -> bool {
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    text.len() <= 256
        && text.bytes().all(|b| (0x20..0x7f).contains(&b))
        && essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_a_type_and_a_subtype_that_a_header_can_have() {
        for valid in ["text/plain", "image/svg+xml", "text/html; charset=utf-8", "application/vnd.a.b"] {
            assert!(is_media_type(valid), "{valid}");
        }
        for invalid in
            ["", "text", "../../x", "text/", "a/b\r\nX: y", "a/b/c", "text /plain", "text/pl\u{e4}in"]
        {
            assert!(!is_media_type(invalid), "{invalid}");
        }
    }
}
