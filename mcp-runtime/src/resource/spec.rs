//! The descriptor that `#[mcp_resource]` expands to.

use crate::{
    arguments::{Call, Outcome},
    error::Failure,
    item::{Handler, ItemDescriptor, Location, descriptor_setters},
    protocol,
    resource::{AnyResourceOut, ListFn, ResourceResult, SubscribeFn},
};

/// One annotated resource, or template of resources.
#[derive(Clone, Copy)]
pub struct ResourceDef {
    pub(crate) item: ItemDescriptor,
    pub(crate) uri: Option<&'static str>,
    pub(crate) mime: Option<&'static str>,
    pub(crate) audience: &'static [&'static str],
    pub(crate) priority: Option<f32>,
    pub(crate) size: Option<u64>,
    /// Milliseconds, and whether caches may share it.
    pub(crate) cache: Option<(u64, bool)>,
    pub(crate) list: Option<ListFn>,
    pub(crate) subscribe: Option<SubscribeFn>,
    /// JSON text of a page's `_meta.ui`.
    pub(crate) ui: Option<&'static str>,
    pub(crate) out: Option<&'static dyn AnyResourceOut>,
    pub(crate) handler: Handler<ResourceResult>,
}

fn missing_handler(_: &mut Call<'_>) -> Outcome<ResourceResult> {
    Err(Failure::Body("the resource has no handler".into()))
}

impl ResourceDef {
    /// A resource with this name, at this location.
    #[must_use]
    pub const fn new(name: &'static str, at: Location) -> Self {
        Self {
            item: ItemDescriptor::new(name, at),
            uri: None,
            mime: None,
            audience: &[],
            priority: None,
            size: None,
            cache: None,
            list: None,
            subscribe: None,
            ui: None,
            out: None,
            handler: missing_handler,
        }
    }

    /// Sets the URI, or the template of URIs (RFC 6570).
    #[must_use]
    pub const fn uri(mut self, uri: &'static str) -> Self {
        self.uri = Some(uri);
        self
    }

    /// Sets the wire's `mimeType`.
    #[must_use]
    pub const fn mime(mut self, mime: &'static str) -> Self {
        self.mime = Some(mime);
        self
    }

    /// Sets `annotations.audience`.
    #[must_use]
    pub const fn audience(mut self, audience: &'static [&'static str]) -> Self {
        self.audience = audience;
        self
    }

    /// Sets `annotations.priority`, from 0 to 1.
    #[must_use]
    pub const fn priority(mut self, priority: f32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the wire's `size`, in bytes.
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Sets `ttlMs`, and whether `cacheScope` is `public`.
    #[must_use]
    pub const fn cache(mut self, ttl_ms: u64, public: bool) -> Self {
        self.cache = Some((ttl_ms, public));
        self
    }

    /// Sets the function that lists a template's instances.
    #[must_use]
    pub const fn list(mut self, list: ListFn) -> Self {
        self.list = Some(list);
        self
    }

    /// Sets a page's `_meta.ui`, as JSON text.
    #[must_use]
    pub const fn ui(mut self, json: &'static str) -> Self {
        self.ui = Some(json);
        self
    }

    /// Sets the function that decides who may subscribe.
    #[must_use]
    pub const fn subscribe(mut self, check: SubscribeFn) -> Self {
        self.subscribe = Some(check);
        self
    }

    /// Sets how its return type becomes contents.
    #[must_use]
    pub const fn output(mut self, out: &'static dyn AnyResourceOut) -> Self {
        self.out = Some(out);
        self
    }

    /// Sets the function.
    #[must_use]
    pub const fn handler(mut self, handler: Handler<ResourceResult>) -> Self {
        self.handler = handler;
        self
    }

    /// The MIME type of what it returns.
    pub(crate) fn mime_type(&self) -> Option<&'static str> {
        let page = self.uri.filter(|uri| protocol::is_ui_uri(uri)).map(|_| protocol::UI_MIME_TYPE);
        self.mime.or(page).or_else(|| self.out.and_then(AnyResourceOut::mime))
    }
}
descriptor_setters!(ResourceDef);
