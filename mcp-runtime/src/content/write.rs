//! Puts results on the wire, lowered to what the client's revision knows (protocol: older revisions must not see
//! newer fields or kinds). Dispatch calls it with the result object open.

use base64::Engine as _;
use serde_json::{Map, Value};

use super::{
    Annotations, Content, Icon, Message, PromptResult, ResourceContents, ResourceResult, Theme, ToolResult,
    block::{Data, Extras},
    resource::Body,
};
use crate::{
    jsonrpc::{Object, array, string},
    protocol::Revision,
};

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
        Data::Base64(text) => string(out, text),
    }
}

impl Writer {
    fn knows(self, since: Revision) -> bool {
        self.0 >= since
    }

    pub(crate) fn annotations(self, object: &mut Object<'_>, annotations: &Annotations) {
        object.object("annotations", |a| {
            if !annotations.audience.is_empty() {
                array(a.key("audience"), &annotations.audience, |out, role| string(out, role.as_str()));
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
        array(object.key("icons"), icons, |out, icon| {
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

    fn resource(self, out: &mut Vec<u8>, contents: &ResourceContents, own: ResourceDefaults<'_>) {
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
                        all.any_value(key, value);
                    }
                    all.raw("ui", ui);
                });
            }
            _ => self.block_meta(&mut item, meta),
        }
        item.end();
    }

    fn message(self, out: &mut Vec<u8>, message: &Message) {
        let mut object = Object::new(out);
        object.str("role", message.role.as_str());
        self.content(object.key("content"), &message.content);
        object.end();
    }
}

/// The members of a tool's result; `wrap` puts the structured value under `result` for clients of older revisions.
pub(crate) fn tool_result(object: &mut Object<'_>, result: &ToolResult, revision: Revision, wrap: bool) {
    let writer = Writer(revision);
    array(object.key("content"), &result.content, |out, block| writer.content(out, block));
    if let Some(json) = result.structured.as_deref().filter(|_| revision >= Revision::V2025_06_18) {
        if wrap && !revision.is_modern() {
            object.object("structuredContent", |s| {
                s.raw("result", json);
            });
        } else {
            object.raw("structuredContent", json);
        }
    }
    if result.is_error {
        object.raw("isError", "true");
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

/// The `contents` of a read.
pub(crate) fn resource_result(
    object: &mut Object<'_>,
    result: &ResourceResult,
    revision: Revision,
    own: ResourceDefaults<'_>,
) {
    let writer = Writer(revision);
    array(object.key("contents"), &result.contents, |out, item| writer.resource(out, item, own));
}

/// The members of a prompt's result.
pub(crate) fn prompt_result(
    object: &mut Object<'_>,
    result: &PromptResult,
    revision: Revision,
    description: Option<&str>,
) {
    let writer = Writer(revision);
    object.opt_str("description", result.description.as_deref().or(description));
    array(object.key("messages"), &result.messages, |out, message| writer.message(out, message));
}
