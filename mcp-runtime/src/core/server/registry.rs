//! A snapshot of the items of a server: its tools by name, and its capabilities.

use serde_json::{Map, Value};

use super::{Capabilities, Entries, changing::Refused};
use crate::core::tool::ToolEntry;

/// The items of a server.
#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) tools: Entries<ToolEntry>,
    /// Capabilities besides the tools.
    pub(crate) capabilities: Capabilities,
    /// Capabilities that stay when the items change.
    pub(super) lasting: Capabilities,
    /// Items of additions that cannot be offered.
    pub(super) refused: Vec<Refused>,
    /// Its number among all registries of the process.
    pub(crate) generation: u64,
    /// Whether some tool passes its calls on.
    pub(crate) has_forwarders: bool,
}

impl Registry {
    /// Whether what a client subscribes to may differ by caller; nothing that is added at run time does.
    pub(crate) fn differs_by_caller(&self) -> bool {
        self.capabilities.iter().any(|capability| capability.differs_by_caller())
    }

    /// The scopes of tools that have some, by the tools' names.
    pub(crate) fn scopes_of_tools(&self) -> Map<String, Value> {
        let mut scopes = Map::new();
        for tool in self.tools.iter().filter(|tool| !tool.spec.item.scopes.is_empty()) {
            scopes.insert(tool.spec.item.name.to_string(), tool.spec.item.scopes.to_vec().into());
        }
        scopes
    }

    /// The items with `scopes`, for an error message.
    pub(crate) fn scoped(&self) -> Vec<String> {
        let of_capabilities = self.capabilities.iter().flat_map(|capability| capability.scoped());
        self.tools.scoped().into_iter().chain(of_capabilities).collect()
    }
}

/// The JSON of an entry in a list.
pub(crate) fn write_entry(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    write(&mut out);
    out
}
