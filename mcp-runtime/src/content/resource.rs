//! The contents of resources.

use serde_json::{Map, Value};

use super::block::Data;

/// Bytes of a resource, sent as a base64 `blob`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl<T: Into<Vec<u8>>> From<T> for Bytes {
    fn from(bytes: T) -> Self {
        Self(bytes.into())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Text(String),
    Blob(Data),
}

/// One item of a read's `contents`: text or bytes, with a URI and a MIME type.
///
/// What is not set here is taken from the request (`uri`) and from the attribute (`mime`).
///
/// See [resource contents](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#resource-contents).
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContents {
    pub(crate) uri: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) body: Body,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
}

impl ResourceContents {
    /// Text contents.
    pub fn text(text: impl Into<String>) -> Self {
        Self { uri: None, mime: None, body: Body::Text(text.into()), meta: None }
    }

    /// Binary contents.
    pub fn blob(bytes: impl Into<Vec<u8>>) -> Self {
        Self { uri: None, mime: None, body: Body::Blob(Data::Bytes(bytes.into())), meta: None }
    }

    /// Binary contents that are base64 already.
    pub fn blob_from_base64(data: impl Into<String>) -> Self {
        Self { uri: None, mime: None, body: Body::Blob(Data::Base64(data.into())), meta: None }
    }

    /// The wire's `uri`; without it, the one that was read.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// The wire's `mimeType`.
    #[must_use]
    pub fn mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// Adds a member to the item's `_meta`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }
}

/// What an item of `contents` is where it does not say so itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResourceDefaults<'a> {
    /// The URI that was read.
    pub(crate) uri: &'a str,
    pub(crate) mime: Option<&'a str>,
    /// JSON text of a page's `_meta.ui`.
    pub(crate) ui: Option<&'a str>,
}
