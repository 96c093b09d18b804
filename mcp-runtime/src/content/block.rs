//! Content blocks and their annotations. Users build them; [`Writer`] puts them on the wire, lowered to what the
//! client's revision knows: older revisions must not see newer fields or kinds.

use base64::Engine as _;
use serde_json::{Map, Value};

use super::{
    Icon, Message, ResourceContents, Theme,
    resource::{Body, ResourceDefaults},
};
use crate::{
    jsonrpc::{Object, write_array, write_string},
    protocol::Revision,
};

/// Who said or should see something: the wire's `user` or `assistant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Hints on a block or a resource: for whom it is, how much it matters, when it changed.
///
/// See [annotations](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#annotations).
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// The wire's `audience`.
    pub audience: Vec<Role>,
    /// The wire's `priority`, 0 to 1.
    pub priority: Option<f64>,
    /// The wire's `lastModified`, an ISO 8601 time; clients before 2025-06-18 do not see it.
    pub last_modified: Option<String>,
}

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

/// What every block has besides its payload.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Extras {
    pub(crate) annotations: Option<Box<Annotations>>,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
}

/// Setters of hints, for types with an `annotations(&mut self) -> &mut Annotations`.
macro_rules! annotated {
    ($($annotated:ident)*) => {$(
        impl $annotated {
            /// For whom it is: the wire's `annotations.audience`.
            #[must_use]
            pub fn audience(mut self, audience: impl IntoIterator<Item = $crate::content::Role>) -> Self {
                self.annotations().audience = audience.into_iter().collect();
                self
            }

            /// How much it matters, from 0 to 1: the wire's `annotations.priority`.
            #[must_use]
            pub fn priority(mut self, priority: f64) -> Self {
                self.annotations().priority = Some(priority.clamp(0.0, 1.0));
                self
            }

            /// When it changed, as an ISO 8601 time: the wire's `annotations.lastModified`; clients before 2025-06-18
            /// do not see it.
            #[must_use]
            pub fn last_modified(mut self, time: impl Into<String>) -> Self {
                self.annotations().last_modified = Some(time.into());
                self
            }
        }
    )*};
}
pub(crate) use annotated;

macro_rules! extras {
    ($($block:ident)*) => {$(
        impl $block {
            fn annotations(&mut self) -> &mut Annotations {
                self.extras.annotations.get_or_insert_default()
            }

            /// Adds a member to the block's `_meta`.
            #[must_use]
            pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
                self.extras.meta.get_or_insert_default().insert(key.into(), value.into());
                self
            }
        }

        impl From<$block> for Content {
            fn from(block: $block) -> Self {
                Self::$block(block)
            }
        }
    )*};
}
extras!(Text Image Audio ResourceLink Embedded);
annotated!(Text Image Audio ResourceLink Embedded);

/// A text block.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    pub(crate) text: std::borrow::Cow<'static, str>,
    pub(crate) extras: Extras,
}

impl Text {
    /// A block of this text.
    pub fn new(text: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self { text: text.into(), extras: Extras::default() }
    }
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<std::borrow::Cow<'static, str>>) -> Self {
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

/// Bytes to be sent as base64, or base64 that is sent as it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Bytes(Vec<u8>),
    Base64(String),
}

macro_rules! media {
    ($(#[$doc:meta] $block:ident)*) => {$(
        #[$doc]
        #[derive(Debug, Clone, PartialEq)]
        pub struct $block {
            pub(crate) data: Data,
            pub(crate) mime: std::borrow::Cow<'static, str>,
            pub(crate) extras: Extras,
        }

        impl $block {
            /// These bytes, of this MIME type; they travel as base64.
            pub fn new(bytes: impl Into<Vec<u8>>, mime: impl Into<std::borrow::Cow<'static, str>>) -> Self {
                Self { data: Data::Bytes(bytes.into()), mime: mime.into(), extras: Extras::default() }
            }

            /// Data that is base64 (RFC 4648, padded) already.
            pub fn from_base64(data: impl Into<String>, mime: impl Into<std::borrow::Cow<'static, str>>) -> Self {
                Self { data: Data::Base64(data.into()), mime: mime.into(), extras: Extras::default() }
            }
        }
    )*};
}
media! {
    /// An image block.
    Image
    /// An audio block.
    Audio
}

/// A link to a resource that the client may read.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceLink {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) extras: Extras,
}

impl ResourceLink {
    /// A link to `uri` under this name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime: None,
            size: None,
            icons: Vec::new(),
            extras: Extras::default(),
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

    /// Adds an icon: a URL, or an [`Icon`](Icon); clients before 2025-11-25 do not see it.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.icons.push(icon.into());
        self
    }
}

/// The contents of a resource inside a result or message.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    pub(crate) resource: ResourceContents,
    pub(crate) extras: Extras,
}

impl Embedded {
    /// A block that holds these contents.
    #[must_use]
    pub fn new(resource: ResourceContents) -> Self {
        Self { resource, extras: Extras::default() }
    }

    /// A text resource in a block.
    pub fn text(uri: impl Into<String>, mime: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(ResourceContents::text(text).uri(uri).mime(mime))
    }

    /// A binary resource in a block; its bytes travel as base64.
    pub fn blob(uri: impl Into<String>, mime: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(ResourceContents::blob(bytes).uri(uri).mime(mime))
    }
}

/// Writes blocks for one revision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer(pub(crate) Revision);

/// Appends base64 as a JSON string.
fn blob(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // the slice has exactly the encoded size, so this cannot fail; nothing is lost if that ever changes
    let written =
        base64::engine::general_purpose::STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
    out.push(b'"');
}

fn data(out: &mut Vec<u8>, data: &Data) {
    match data {
        Data::Bytes(bytes) => blob(out, bytes),
        Data::Base64(text) => write_string(out, text),
    }
}

impl Writer {
    fn knows(self, since: Revision) -> bool {
        self.0 >= since
    }

    pub(crate) fn annotations(self, object: &mut Object<'_>, annotations: &Annotations) {
        object.object("annotations", |a| {
            if !annotations.audience.is_empty() {
                write_array(a.key("audience"), &annotations.audience, |out, role| {
                    write_string(out, role.as_str())
                });
            }
            if let Some(priority) = annotations.priority {
                a.value("priority", &priority);
            }
            if self.knows(Revision::V2025_06_18) {
                a.opt_str("lastModified", annotations.last_modified.as_deref());
            }
        });
    }

    pub(crate) fn icons(self, object: &mut Object<'_>, icons: &[Icon]) {
        if icons.is_empty() || !self.knows(Revision::V2025_11_25) {
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

    fn extras(self, object: &mut Object<'_>, extras: &Extras) {
        if let Some(annotations) = &extras.annotations {
            self.annotations(object, annotations);
        }
        self.block_meta(object, extras.meta.as_deref());
    }

    fn block_meta(self, object: &mut Object<'_>, meta: Option<&Map<String, Value>>) {
        if let Some(meta) = meta.filter(|_| self.knows(Revision::V2025_06_18)) {
            object.value("_meta", meta);
        }
    }

    pub(crate) fn content(self, out: &mut Vec<u8>, content: &Content) {
        let mut block = Object::new(out);
        match content {
            Content::Text(text) => {
                block.raw("type", "\"text\"").str("text", &text.text);
                self.extras(&mut block, &text.extras);
            }
            Content::Image(image) => {
                block.raw("type", "\"image\"");
                data(block.key("data"), &image.data);
                block.str("mimeType", &image.mime);
                self.extras(&mut block, &image.extras);
            }
            Content::Audio(audio) if self.knows(Revision::V2025_03_26) => {
                block.raw("type", "\"audio\"");
                data(block.key("data"), &audio.data);
                block.str("mimeType", &audio.mime);
                self.extras(&mut block, &audio.extras);
            }
            Content::Audio(audio) => {
                block.raw("type", "\"resource\"").object("resource", |r| {
                    r.raw("uri", "\"audio:inline\"").str("mimeType", &audio.mime);
                    data(r.key("blob"), &audio.data);
                });
                self.extras(&mut block, &audio.extras);
            }
            Content::ResourceLink(link) if self.knows(Revision::V2025_06_18) => {
                block.raw("type", "\"resource_link\"").str("uri", &link.uri).str("name", &link.name);
                block
                    .opt_str("title", link.title.as_deref())
                    .opt_str("description", link.description.as_deref());
                block.opt_str("mimeType", link.mime.as_deref());
                if let Some(size) = link.size {
                    block.value("size", &size);
                }
                self.icons(&mut block, &link.icons);
                self.extras(&mut block, &link.extras);
            }
            Content::ResourceLink(link) => {
                block.raw("type", "\"text\"").str("text", &format!("{}: {}", link.name, link.uri));
                self.extras(&mut block, &link.extras);
            }
            Content::Embedded(embedded) => {
                block.raw("type", "\"resource\"");
                self.resource(block.key("resource"), &embedded.resource, ResourceDefaults::default());
                self.extras(&mut block, &embedded.extras);
            }
        }
        block.end();
    }

    pub(crate) fn resource(self, out: &mut Vec<u8>, contents: &ResourceContents, own: ResourceDefaults<'_>) {
        let mut item = Object::new(out);
        item.str("uri", contents.uri.as_deref().unwrap_or(own.uri));
        let fallback = match &contents.body {
            Body::Text(_) => "text/plain",
            Body::Blob(_) => "application/octet-stream",
        };
        item.str("mimeType", contents.mime.as_deref().or(own.mime).unwrap_or(fallback));
        match &contents.body {
            Body::Text(text) => {
                item.str("text", text);
            }
            Body::Blob(bytes) => data(item.key("blob"), bytes),
        }
        let meta = contents.meta.as_deref();
        // hosts prefer what the contents say to what the list said, so a function can decide it for each read
        let ui = own.ui.filter(|_| contents.uri.as_deref().is_none_or(|uri| uri == own.uri));
        match ui.filter(|_| meta.is_none_or(|meta| !meta.contains_key("ui"))) {
            Some(ui) if self.knows(Revision::V2025_06_18) => {
                item.object("_meta", |all| {
                    for (key, value) in meta.into_iter().flatten() {
                        all.escaped_value(key, value);
                    }
                    all.raw("ui", ui);
                });
            }
            _ => self.block_meta(&mut item, meta),
        }
        item.end();
    }

    pub(crate) fn message(self, out: &mut Vec<u8>, message: &Message) {
        let mut object = Object::new(out);
        object.raw("role", message.role.as_json());
        self.content(object.key("content"), &message.content);
        object.end();
    }
}
