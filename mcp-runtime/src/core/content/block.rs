//! Content blocks: the parts of tool results and prompt messages, with their annotations; and how content is written for
//! one revision, without the fields and kinds that the revision does not have.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Icon, Message, ResourceContents, Theme,
    resource_contents::{ResourceBody, ResourceDefaults},
};
use crate::core::{
    bound::Configure,
    jsonrpc::{Object, write_array, write_string},
    protocol::Revision,
};

/// The author or the audience of content: `user` or `assistant` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// `user`
    User,
    /// `assistant`
    Assistant,
}

impl Role {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    const fn as_json(self) -> &'static str {
        match self {
            Self::User => "\"user\"",
            Self::Assistant => "\"assistant\"",
        }
    }
}

/// Hints about a block or a resource: its audience, its priority, and when it was last modified.
///
/// See [annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations).
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// `audience` on the wire.
    pub audience: Vec<Role>,
    /// `priority` on the wire, from 0 to 1: it is written as the nearest number of these, and not at all if it is not a number.
    pub priority: Option<f64>,
    /// `lastModified` on the wire, an ISO 8601 time; clients before 2025-06-18 do not see it.
    pub last_modified: Option<String>,
}

impl Annotations {
    /// The intended audience.
    #[must_use]
    pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> Self {
        self.audience = audience.into_iter().collect();
        self
    }

    /// The importance, from 0 to 1.
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority.clamp(0.0, 1.0));
        self
    }

    /// The time of the last change, in ISO 8601.
    #[must_use]
    pub fn last_modified(mut self, time: impl Into<String>) -> Self {
        self.last_modified = Some(time.into());
        self
    }
}

/// The method that adds to `_meta`, of a type that has it as an `Option<Box<Map<..>>>`.
macro_rules! meta_setter {
    ($what:literal) => {
        #[doc = concat!("Adds a member to the ", $what, "'s `_meta`.")]
        #[must_use]
        pub fn meta(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
            self.meta.get_or_insert_default().insert(key.into(), value.into());
            self
        }
    };
}
pub(crate) use meta_setter;

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
    /// A block of another kind, as a client received it; written unchanged.
    Unknown(Value),
}

/// Implements the setters that all blocks have, and the conversion into [`Content`].
macro_rules! impl_block {
    ($($block:ident)*) => {$(
        impl $block {
            /// Sets hints on the block: `.annotated(|hints| hints.priority(0.5))`.
            #[must_use]
            pub fn annotated(mut self, set: impl Configure<Annotations>) -> Self {
                self.annotations = Some(Box::new(set(*self.annotations.unwrap_or_default())));
                self
            }

            meta_setter!("block");
        }

        impl From<$block> for Content {
            fn from(block: $block) -> Self {
                Self::$block(block)
            }
        }
    )*};
}
impl_block!(Text Image Audio ResourceLink Embedded);

/// A text block.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Text {
    /// `text` on the wire.
    pub text: Cow<'static, str>,
    /// `annotations` on the wire.
    pub annotations: Option<Box<Annotations>>,
    /// `_meta` on the wire; clients before 2025-06-18 do not see it.
    pub meta: Option<Box<Map<String, Value>>>,
}

impl Text {
    /// A block with this text.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), annotations: None, meta: None }
    }
}

/// A text block.
impl<T: Into<Cow<'static, str>>> From<T> for Content {
    fn from(text: T) -> Self {
        Self::Text(Text::new(text))
    }
}

impl Content {
    /// Bytes of what it holds, with binary data as base64.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(block) => block.text.len(),
            Self::Image(block) => block.data.base64_size(),
            Self::Audio(block) => block.data.base64_size(),
            Self::ResourceLink(link) => link.uri.len() + link.name.len(),
            Self::Embedded(block) => block.resource.size(),
            Self::Unknown(value) => value.to_string().len(),
        }
    }

    /// The text, if it is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            // one with members that a text block does not have
            Self::Unknown(block) if block.get("type")? == "text" => block.get("text")?.as_str(),
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
            /// `mimeType` on the wire.
            pub mime: Cow<'static, str>,
            /// `annotations` on the wire.
    pub annotations: Option<Box<Annotations>>,
    /// `_meta` on the wire; clients before 2025-06-18 do not see it.
    pub meta: Option<Box<Map<String, Value>>>,
        }

        impl $block {
            /// A block with these bytes, sent as base64, and this MIME type.
            pub fn new(bytes: impl Into<Vec<u8>>, mime: impl Into<Cow<'static, str>>) -> Self {
                Self { data: BinaryData::Bytes(bytes.into()), mime: mime.into(), annotations: None, meta: None }
            }

            /// A block with data that is base64 (RFC 4648, padded) already.
            pub fn from_base64(data: impl Into<String>, mime: impl Into<Cow<'static, str>>) -> Self {
                Self { data: BinaryData::Base64(data.into()), mime: mime.into(), annotations: None, meta: None }
            }

            /// `data` on the wire.
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

/// A link to a resource that the client may read, in a block or in a list.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ResourceLink {
    /// `uri` on the wire.
    pub uri: String,
    /// `name` on the wire; the URI if it is empty.
    pub name: String,
    /// `title` on the wire.
    pub title: Option<String>,
    /// `description` on the wire.
    pub description: Option<String>,
    /// `mimeType` on the wire.
    pub mime: Option<String>,
    /// `size` on the wire, in bytes.
    pub size: Option<u64>,
    /// `icons` on the wire.
    pub icons: Vec<Icon>,
    /// `annotations` on the wire.
    pub annotations: Option<Box<Annotations>>,
    /// `_meta` on the wire; clients before 2025-06-18 do not see it.
    pub meta: Option<Box<Map<String, Value>>>,
}

impl ResourceLink {
    /// A link to `uri` with this name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }

    fn shown_name(&self) -> &str {
        if self.name.is_empty() { &self.uri } else { &self.name }
    }

    /// Sets `title` on the wire.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets `description` on the wire.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets `mimeType` on the wire.
    #[must_use]
    pub fn mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }

    /// Sets `size` on the wire, in bytes.
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

impl<T: Into<String>> From<T> for ResourceLink {
    fn from(uri: T) -> Self {
        Self::new(uri, "")
    }
}

/// The contents of a resource inside a result or a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Embedded {
    /// `resource` on the wire.
    pub resource: ResourceContents,
    /// `annotations` on the wire.
    pub annotations: Option<Box<Annotations>>,
    /// `_meta` on the wire; clients before 2025-06-18 do not see it.
    pub meta: Option<Box<Map<String, Value>>>,
}

impl Embedded {
    /// A block that holds these contents. Without a URI of their own they are sent as `resource:inline`.
    #[must_use]
    pub fn new(resource: ResourceContents) -> Self {
        Self { resource, annotations: None, meta: None }
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

/// Binary data, which JSON holds as base64: bytes to be encoded, or base64 that is sent unchanged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BinaryData {
    Bytes(Vec<u8>),
    Base64(String),
}

impl BinaryData {
    /// Bytes of its base64.
    pub(crate) fn base64_size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len().div_ceil(3) * 4,
            Self::Base64(text) => text.len(),
        }
    }

    pub(super) fn to_base64(&self) -> Cow<'_, str> {
        match self {
            Self::Bytes(bytes) => STANDARD.encode(bytes).into(),
            Self::Base64(text) => text.into(),
        }
    }

    /// `None` if the base64 is malformed.
    pub(super) fn to_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Bytes(bytes) => Some(bytes.into()),
            Self::Base64(text) => STANDARD.decode(text).ok().map(Cow::Owned),
        }
    }

    /// Appends the base64 as a JSON string.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => write_base64(out, bytes),
            Self::Base64(text) => write_string(out, text),
        }
    }
}

fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // the slice has exactly the encoded size, so this does not fail; if it did, the string would be empty
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
    out.push(b'"');
}

/// Writes content for one revision, downgraded where that revision is older.
#[derive(Clone, Copy)]
pub(crate) struct ContentWriter(pub(crate) Revision);

impl ContentWriter {
    fn supports(self, since: Revision) -> bool {
        self.0 >= since
    }

    pub(crate) fn write_annotations(self, object: &mut Object<'_>, annotations: &Annotations) {
        object.object("annotations", |a| {
            if !annotations.audience.is_empty() {
                write_array(a.key("audience"), &annotations.audience, |out, role| {
                    write_string(out, role.as_str());
                });
            }
            if let Some(priority) = annotations.priority.filter(|priority| !priority.is_nan()) {
                a.value("priority", &priority.clamp(0.0, 1.0));
            }
            if self.supports(Revision::V2025_06_18) {
                a.opt_str("lastModified", annotations.last_modified.as_deref());
            }
        });
    }

    pub(crate) fn write_icons(self, object: &mut Object<'_>, icons: &[Icon]) {
        if icons.is_empty() || !self.supports(Revision::V2025_11_25) {
            return;
        }
        write_array(object.key("icons"), icons, |out, icon| {
            let mut object = Object::new(out);
            object.str("src", &icon.src).opt_str("mimeType", icon.mime.as_deref());
            if !icon.sizes.is_empty() {
                object.value("sizes", &icon.sizes);
            }
            object.opt_str("theme", icon.theme.map(Theme::as_str));
            object.end();
        });
    }

    fn write_meta(self, object: &mut Object<'_>, meta: Option<&Map<String, Value>>) {
        if let Some(meta) = meta.filter(|_| self.supports(Revision::V2025_06_18)) {
            object.value("_meta", meta);
        }
    }

    pub(crate) fn write_content(self, out: &mut Vec<u8>, content: &Content) {
        if let Content::Unknown(block) = content {
            return out.extend_from_slice(block.to_string().as_bytes());
        }
        let mut block = Object::new(out);
        let (annotations, meta) = match content {
            Content::Unknown(_) => (&None, &None),
            Content::Text(text) => {
                block.raw("type", "\"text\"").str("text", &text.text);
                (&text.annotations, &text.meta)
            }
            Content::Image(image) => {
                block.raw("type", "\"image\"");
                image.data.write(block.key("data"));
                block.str("mimeType", &image.mime);
                (&image.annotations, &image.meta)
            }
            Content::Audio(audio) if self.supports(Revision::V2025_03_26) => {
                block.raw("type", "\"audio\"");
                audio.data.write(block.key("data"));
                block.str("mimeType", &audio.mime);
                (&audio.annotations, &audio.meta)
            }
            Content::Audio(audio) => {
                block.raw("type", "\"resource\"").object("resource", |r| {
                    r.raw("uri", "\"audio:inline\"").str("mimeType", &audio.mime);
                    audio.data.write(r.key("blob"));
                });
                (&audio.annotations, &audio.meta)
            }
            Content::ResourceLink(link) if self.supports(Revision::V2025_06_18) => {
                block.raw("type", "\"resource_link\"").str("uri", &link.uri).str("name", link.shown_name());
                block
                    .opt_str("title", link.title.as_deref())
                    .opt_str("description", link.description.as_deref());
                block.opt_str("mimeType", link.mime.as_deref());
                if let Some(size) = link.size {
                    block.value("size", &size);
                }
                self.write_icons(&mut block, &link.icons);
                (&link.annotations, &link.meta)
            }
            Content::ResourceLink(link) => {
                block.raw("type", "\"text\"").str("text", &format!("{}: {}", link.shown_name(), link.uri));
                (&link.annotations, &link.meta)
            }
            Content::Embedded(embedded) => {
                block.raw("type", "\"resource\"");
                let defaults = ResourceDefaults { uri: "resource:inline", ..ResourceDefaults::default() };
                self.write_resource(block.key("resource"), &embedded.resource, defaults);
                (&embedded.annotations, &embedded.meta)
            }
        };
        if let Some(annotations) = annotations {
            self.write_annotations(&mut block, annotations);
        }
        self.write_meta(&mut block, meta.as_deref());
        block.end();
    }

    pub(crate) fn write_resource(
        self,
        out: &mut Vec<u8>,
        contents: &ResourceContents,
        defaults: ResourceDefaults<'_>,
    ) {
        let mut item = Object::new(out);
        item.str("uri", contents.uri.as_deref().unwrap_or(defaults.uri));
        let fallback = match &contents.body {
            ResourceBody::Text(_) => "text/plain",
            ResourceBody::Blob(_) => "application/octet-stream",
        };
        #[cfg(feature = "client")]
        let fallback = Some(fallback).filter(|_| !contents.rest.is_of_wire());
        #[cfg(not(feature = "client"))]
        let fallback = Some(fallback);
        item.opt_str(
            "mimeType",
            contents.mime.as_deref().or_else(|| fallback.map(|fallback| defaults.mime.unwrap_or(fallback))),
        );
        match &contents.body {
            ResourceBody::Text(text) => {
                item.str("text", text);
            }
            ResourceBody::Blob(data) => data.write(item.key("blob")),
        }
        let meta = contents.meta.as_deref();
        // hosts prefer `ui` from the contents to `ui` from the list, so that a function can set it for each read
        let ui = defaults.ui.filter(|_| contents.uri.as_deref().is_none_or(|uri| uri == defaults.uri));
        match ui.filter(|_| meta.is_none_or(|meta| !meta.contains_key("ui"))) {
            Some(ui) if self.supports(Revision::V2025_06_18) => {
                item.object("_meta", |object| {
                    for (key, value) in meta.into_iter().flatten() {
                        object.escaped_value(key, value);
                    }
                    object.raw("ui", ui);
                });
            }
            _ => self.write_meta(&mut item, meta),
        }
        #[cfg(feature = "client")]
        contents.rest.write(&mut item);
        item.end();
    }

    pub(crate) fn write_message(self, out: &mut Vec<u8>, message: &Message) {
        let mut object = Object::new(out);
        object.raw("role", message.role.as_json());
        self.write_content(object.key("content"), &message.content);
        object.end();
    }
}
