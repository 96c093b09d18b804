//! Writes content for one revision, without the fields and kinds of content that the revision does not have.

use serde_json::{Map, Value};

use super::{
    Annotations, Content, Icon, Message, ResourceContents, Theme,
    block::CommonFields,
    resource_contents::{ResourceBody, ResourceDefaults},
};
use crate::{
    jsonrpc::{Object, write_array, write_string},
    protocol::Revision,
};

/// Writes content for one revision, downgraded where that revision is older.
#[derive(Debug, Clone, Copy)]
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
            if let Some(priority) = annotations.priority {
                a.value("priority", &priority);
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

    fn write_common(self, object: &mut Object<'_>, common: &CommonFields) {
        if let Some(annotations) = &common.annotations {
            self.write_annotations(object, annotations);
        }
        self.write_meta(object, common.meta.as_deref());
    }

    fn write_meta(self, object: &mut Object<'_>, meta: Option<&Map<String, Value>>) {
        if let Some(meta) = meta.filter(|_| self.supports(Revision::V2025_06_18)) {
            object.value("_meta", meta);
        }
    }

    pub(crate) fn write_content(self, out: &mut Vec<u8>, content: &Content) {
        let mut block = Object::new(out);
        match content {
            Content::Text(text) => {
                block.raw("type", "\"text\"").str("text", &text.text);
                self.write_common(&mut block, &text.common);
            }
            Content::Image(image) => {
                block.raw("type", "\"image\"");
                image.data.write(block.key("data"));
                block.str("mimeType", &image.mime);
                self.write_common(&mut block, &image.common);
            }
            Content::Audio(audio) if self.supports(Revision::V2025_03_26) => {
                block.raw("type", "\"audio\"");
                audio.data.write(block.key("data"));
                block.str("mimeType", &audio.mime);
                self.write_common(&mut block, &audio.common);
            }
            Content::Audio(audio) => {
                block.raw("type", "\"resource\"").object("resource", |r| {
                    r.raw("uri", "\"audio:inline\"").str("mimeType", &audio.mime);
                    audio.data.write(r.key("blob"));
                });
                self.write_common(&mut block, &audio.common);
            }
            Content::ResourceLink(link) if self.supports(Revision::V2025_06_18) => {
                block.raw("type", "\"resource_link\"").str("uri", &link.uri).str("name", &link.name);
                block
                    .opt_str("title", link.title.as_deref())
                    .opt_str("description", link.description.as_deref());
                block.opt_str("mimeType", link.mime.as_deref());
                if let Some(size) = link.size {
                    block.value("size", &size);
                }
                self.write_icons(&mut block, &link.icons);
                self.write_common(&mut block, &link.common);
            }
            Content::ResourceLink(link) => {
                block.raw("type", "\"text\"").str("text", &format!("{}: {}", link.name, link.uri));
                self.write_common(&mut block, &link.common);
            }
            Content::Embedded(embedded) => {
                block.raw("type", "\"resource\"");
                self.write_resource(block.key("resource"), &embedded.resource, ResourceDefaults::default());
                self.write_common(&mut block, &embedded.common);
            }
        }
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
        item.str("mimeType", contents.mime.as_deref().or(defaults.mime).unwrap_or(fallback));
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
        item.end();
    }

    pub(crate) fn write_message(self, out: &mut Vec<u8>, message: &Message) {
        let mut object = Object::new(out);
        object.raw("role", message.role.as_json());
        self.write_content(object.key("content"), &message.content);
        object.end();
    }
}
