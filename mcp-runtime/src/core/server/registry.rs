//! What a server offers at one moment: its tools by name, its capabilities, and the pages of its lists.

use std::sync::Arc;

use super::{Capabilities, PageCache};
use crate::core::{
    connection::Access,
    protocol::Revision,
    tool::{ToolCatalog, ToolEntry},
};

/// The items of a server.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) tools: ToolCatalog,
    pub(crate) tool_pages: PageCache,
    /// What else the server answers.
    pub(crate) capabilities: Capabilities,
    /// Those of them that stay when the items change.
    pub(super) lasting: Capabilities,
}

impl Registry {
    pub(super) fn new(tools: Vec<Arc<ToolEntry>>, catalogs: Capabilities, lasting: Capabilities) -> Self {
        Self {
            tools: ToolCatalog::new(tools),
            tool_pages: PageCache::default(),
            capabilities: catalogs.and(&lasting),
            lasting,
        }
    }

    /// The entries of `tools/list`, each as JSON.
    pub(crate) fn tool_entries(&self, revision: Revision, access: Access<'_>) -> Vec<Vec<u8>> {
        let visible = self.tools.iter().filter(|tool| access.sees(tool.view()));
        visible.map(|tool| write_entry(|out| tool.write(out, revision))).collect()
    }

    /// Whether what a client subscribes to may differ by caller; nothing that is added at run time does.
    pub(crate) fn differs_by_caller(&self) -> bool {
        self.capabilities.iter().any(|capability| capability.differs_by_caller())
    }

    /// The items with `scopes`, for an error message.
    pub(crate) fn scoped(&self) -> Vec<String> {
        let tools = self.tools.iter().filter(|tool| !tool.spec.item.scopes.is_empty());
        let tools = tools.map(|tool| format!("tool `{}`", tool.name()));
        tools.chain(self.capabilities.iter().flat_map(|capability| capability.scoped())).collect()
    }
}

/// The JSON of an entry in a list.
pub(crate) fn write_entry(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out);
    out
}
