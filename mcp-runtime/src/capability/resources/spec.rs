//! The descriptor that `#[mcp_resource]` expands to.

use crate::{
    core::{
        content::{Annotations, Role},
        item::{ItemDescriptor, ItemSpec},
        item_function::{Handler, missing_handler},
        item_output::Output,
        protocol,
    },
    resource::{ListFn, ResourceResult, SubscribeFn},
};

/// One annotated resource, or template of resources.
#[derive(Debug, Clone, Copy)]
pub struct ResourceDescriptor {
    /// The part that all kinds of items have.
    pub item: ItemDescriptor,
    /// The URI, or the template of URIs (RFC 6570).
    pub uri: Option<&'static str>,
    /// `mimeType` on the wire.
    pub mime: Option<&'static str>,
    /// `annotations.audience`
    pub audience: &'static [&'static str],
    /// `annotations.priority`, from 0 to 1.
    pub priority: Option<f32>,
    /// `size` on the wire, in bytes.
    pub size: Option<u64>,
    /// Milliseconds, and whether caches may share it.
    pub cache: Option<(u64, bool)>,
    /// Lists a template's instances.
    pub list: Option<ListFn>,
    /// Decides who may subscribe.
    pub subscribe: Option<SubscribeFn>,
    /// JSON text of a page's `_meta.ui`.
    pub ui: Option<&'static str>,
    /// `mimeType` on the wire of what the return type becomes.
    pub mime_of_output: Option<&'static str>,
    /// Decodes the arguments and calls the function.
    pub handler: Handler,
}

/// The description of a resource, by an attribute or by a builder.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResourceSpec {
    pub(crate) item: ItemSpec,
    /// The URI or template, with the prefix of its mount.
    pub(crate) uri: String,
    /// `mimeType` on the wire.
    pub(crate) mime: Option<String>,
    pub(crate) annotations: Annotations,
    /// Bytes.
    pub(crate) size: Option<u64>,
    /// Milliseconds, and whether caches may share it.
    pub(crate) cache: Option<(u64, bool)>,
    /// JSON text of a page's `_meta.ui`.
    pub(crate) ui: Option<String>,
}

impl ResourceSpec {
    pub(crate) fn new(name: String, uri: String, def: &ResourceDescriptor) -> Self {
        let role = |name: &&str| if *name == "assistant" { Role::Assistant } else { Role::User };
        Self {
            item: ItemSpec::new(name, &def.item),
            uri,
            mime: def.mime_type().map(str::to_owned),
            annotations: Annotations {
                audience: def.audience.iter().map(role).collect(),
                // through text, since a cast to 64 bits would add digits
                priority: def.priority.map(|p| p.to_string().parse().unwrap_or(f64::from(p))),
                last_modified: None,
            },
            size: def.size,
            cache: def.cache,
            ui: def.ui.map(str::to_owned),
        }
    }

    /// Sets the MIME type to that of a page, or of the return type, unless the builder has set one.
    pub(crate) fn set_default_mime(&mut self, returned: Option<&str>) {
        let default = if protocol::is_ui_uri(&self.uri) { Some(protocol::UI_MIME_TYPE) } else { returned };
        self.mime = self.mime.take().or_else(|| default.map(str::to_owned));
    }
}

impl ResourceDescriptor {
    /// Every field that an attribute may leave out; on its own, the descriptor of an item with errors.
    pub const EMPTY: Self = Self {
        item: ItemDescriptor::EMPTY,
        uri: None,
        mime: None,
        audience: &[],
        priority: None,
        size: None,
        cache: None,
        list: None,
        subscribe: None,
        ui: None,
        mime_of_output: None,
        handler: missing_handler,
    };

    /// The options that an attribute may leave out, for a function with this result.
    #[must_use]
    pub const fn returning<R>(output: &Output<R, ResourceResult>) -> Self {
        Self { mime_of_output: output.mime, ..Self::EMPTY }
    }

    /// The MIME type of what it returns.
    pub(crate) fn mime_type(&self) -> Option<&'static str> {
        let page = self.uri.filter(|uri| protocol::is_ui_uri(uri)).map(|_| protocol::UI_MIME_TYPE);
        self.mime.or(page).or(self.mime_of_output)
    }
}
