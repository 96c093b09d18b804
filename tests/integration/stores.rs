//! The store that is tested without other programs.

use mcp_runtime::store::Memory;
use mcp_tests::support::AnyStore;

use crate::shared::TestStore;

/// It alone, for a test.
pub(crate) fn stores(_test: &str) -> Vec<TestStore> {
    let memory = Memory::default();
    let open = move || -> AnyStore { AnyStore::new(memory.clone()) };
    vec![TestStore { name: "memory", open: Box::new(open), content: None, _kept: Box::new(()) }]
}
