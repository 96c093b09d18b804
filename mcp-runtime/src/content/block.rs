//! Content blocks: the parts of tool results and prompt messages.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Annotations, Icon, ResourceContents, annotations::impl_annotation_setters, data::BinaryData};

/// One content block of a tool result or a prompt message.
///
/// See [tool results](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// `"type": "text"`
    Text(Text),
    /// `"type": "image"`
    Image(Image),
    /// `"type": "audio"`; an embedded blob for clients before 2025-03-26
    Audio(Audio),
    /// `"type": "resource_link"`; a text block for clients before 2025-06-18
    ResourceLink(ResourceLink),
    /// `"type": "resource"`
    Embedded(Embedded),
}

/// The fields that every kind of block has.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CommonFields {
    pub(crate) annotations: Option<Box<Annotations>>,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
}

/// Implements the fields that all blocks have, and the conversion into [`Content`].
macro_rules! impl_block {
    ($($block:ident)*) => {$(
        impl $block {
            fn annotations_mut(&mut self) -> &mut Annotations {
                self.common.annotations.get_or_insert_default()
            }

            /// The annotations, if any was set.
            #[must_use]
            pub fn annotations(&self) -> Option<&Annotations> {
                self.common.annotations.as_deref()
            }

            /// Adds a member to the block's `_meta`.
            #[must_use]
            pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
                self.common.meta.get_or_insert_default().insert(key.into(), value.into());
                self
            }

            /// The block's `_meta`, if it has members.
            #[must_use]
            pub fn meta_map(&self) -> Option<&Map<String, Value>> {
                self.common.meta.as_deref()
            }
        }

        impl From<$block> for Content {
            fn from(block: $block) -> Self {
                Self::$block(block)
            }
        }
    )*};
}
impl_block!(Text Image Audio ResourceLink Embedded);
impl_annotation_setters!(Text Image Audio ResourceLink Embedded);

/// A text block.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Text {
    /// The wire's `text`.
    pub text: Cow<'static, str>,
    pub(super) common: CommonFields,
}

impl Text {
    /// A block with this text.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), common: CommonFields::default() }
    }
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(Text::new(text))
    }

    /// The text, if it is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

macro_rules! define_media {
    ($(#[$doc:meta] $block:ident)*) => {$(
        #[$doc]
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $block {
            pub(crate) data: BinaryData,
            /// The wire's `mimeType`.
            pub mime: Cow<'static, str>,
            pub(super) common: CommonFields,
        }

        impl $block {
            /// A block with these bytes, sent as base64, and this MIME type.
            pub fn new(bytes: impl Into<Vec<u8>>, mime: impl Into<Cow<'static, str>>) -> Self {
                Self { data: BinaryData::Bytes(bytes.into()), mime: mime.into(), common: CommonFields::default() }
            }

            /// A block with data that is base64 (RFC 4648, padded) already.
            pub fn from_base64(data: impl Into<String>, mime: impl Into<Cow<'static, str>>) -> Self {
                Self { data: BinaryData::Base64(data.into()), mime: mime.into(), common: CommonFields::default() }
            }

            /// The wire's `data`.
            #[must_use]
            pub fn to_base64(&self) -> Cow<'_, str> {
                self.data.to_base64()
            }

            /// The bytes; `None` if it was made from malformed base64.
            #[must_use]
            pub fn to_bytes(&self) -> Option<Cow<'_, [u8]>> {
                self.data.to_bytes()
            }
        }
    )*};
}
define_media! {
    /// An image block.
    Image
    /// An audio block.
    Audio
}

/// A link to a resource that the client may read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceLink {
    /// The wire's `uri`.
    pub uri: String,
    /// The wire's `name`.
    pub name: String,
    /// The wire's `title`.
    pub title: Option<String>,
    /// The wire's `description`.
    pub description: Option<String>,
    /// The wire's `mimeType`.
    pub mime: Option<String>,
    /// The wire's `size`, in bytes.
    pub size: Option<u64>,
    /// The wire's `icons`.
    pub icons: Vec<Icon>,
    pub(super) common: CommonFields,
}

impl ResourceLink {
    /// A link to `uri` with this name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime: None,
            size: None,
            icons: Vec::new(),
            common: CommonFields::default(),
        }
    }

    /// The wire's `title`.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The wire's `description`.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The wire's `mimeType`.
    #[must_use]
    pub fn mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// The wire's `size`, in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Adds an icon: a URL, or an [`Icon`]; clients before 2025-11-25 do not see it.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.icons.push(icon.into());
        self
    }
}

/// The contents of a resource inside a result or a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Embedded {
    /// The wire's `resource`.
    pub resource: ResourceContents,
    pub(super) common: CommonFields,
}

impl Embedded {
    /// A block that holds these contents.
    #[must_use]
    pub fn new(resource: ResourceContents) -> Self {
        Self { resource, common: CommonFields::default() }
    }

    /// A text resource in a block.
    pub fn text(uri: impl Into<String>, mime: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(ResourceContents::text(text).uri(uri).mime(mime))
    }

    /// A binary resource in a block; its bytes are sent as base64.
    pub fn blob(uri: impl Into<String>, mime: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(ResourceContents::blob(bytes).uri(uri).mime(mime))
    }
}
