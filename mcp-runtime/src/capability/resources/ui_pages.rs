//! The pages of tools (the MCP Apps extension): finds the resource that each tool names.

use std::sync::Arc;

use super::ResourceEntry;
use crate::{
    core::{
        build_error::BuildError,
        protocol::{UI_MIME_TYPE, is_ui_uri, normalize_uri, uri_with_prefix},
        server::{Assembly, Entry as _, unknown_page},
        tool::ToolEntry,
    },
    schema::nearest,
};

/// The resources that are pages.
pub(super) struct UiPages(Vec<Arc<ResourceEntry>>);

impl UiPages {
    pub(super) fn new(resources: &[Arc<ResourceEntry>]) -> Self {
        Self(resources.iter().filter(|resource| is_ui_uri(&resource.uri)).cloned().collect())
    }

    /// Sets in each tool the page that it names.
    pub(super) fn find_those_of_tools(&self, assembly: &mut Assembly<'_>) {
        assembly.found_pages = true;
        for (tool, prefix) in &mut assembly.tools {
            match self.page_uri(tool, prefix) {
                Ok(page) => tool.page = page,
                // the missing page may be the resource with an error
                Err(_) if assembly.resource_failed => {}
                Err(error) => assembly.errors.push(error),
            }
        }
    }

    /// The URI of a tool's page; `prefix` is that of the tool's service or mount.
    ///
    /// # Errors
    /// The page does not exist, or hosts would not show it.
    fn page_uri(&self, tool: &ToolEntry, prefix: &str) -> Result<Option<String>, BuildError> {
        let Some(written) = tool.spec.ui.as_deref() else { return Ok(None) };
        let error = |text: String| tool.spec.item.build_error(text);
        let name = tool.name();
        // within the mount of the tool first, then within the outer ones
        let mut prefix = Some(prefix);
        while let Some(inner) = prefix {
            let uri = uri_with_prefix(written, inner);
            if let Some(page) = self.find(&uri) {
                return match page.mime.as_deref() {
                    Some(UI_MIME_TYPE) => Ok(Some(uri)),
                    mime => Err(error(format!(
                        "tool `{name}` shows `{uri}`, whose MIME type is `{}`\nremove `mime` from that resource: a page is `{UI_MIME_TYPE}` by itself",
                        mime.unwrap_or_default()
                    ))),
                };
            }
            let outer = inner.rsplit_once('_').map_or("", |(outer, _)| outer);
            prefix = (!inner.is_empty()).then_some(outer);
        }
        let nearest = nearest(written, self.0.iter().map(|page| page.uri.as_str()));
        Err(unknown_page(tool, written, nearest))
    }

    fn find(&self, uri: &str) -> Option<&ResourceEntry> {
        let exact = normalize_uri(uri);
        let serves = |page: &&Arc<ResourceEntry>| match page.template.is_exact() {
            true => normalize_uri(&page.uri) == exact,
            false => page.bind(uri).is_some(),
        };
        self.0.iter().find(serves).map(|page| &**page)
    }
}
