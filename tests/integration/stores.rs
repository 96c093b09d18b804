//! The stores that are tested without other programs.

#[path = "../../examples/shared_store/sqlite.rs"]
mod sqlite;

use std::{path::PathBuf, sync::Arc};

use mcp_runtime::store::{Memory, Shared};

use crate::shared::TestStore;

/// A file of SQLite, which is removed with those beside it.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let _best_effort = std::fs::remove_file(format!("{}{suffix}", self.0.display()));
        }
    }
}

fn memory() -> TestStore {
    let memory = Memory::default();
    let open = move || -> Arc<dyn Shared> { Arc::new(memory.clone()) };
    TestStore { name: "memory", open: Box::new(open), content: None, _kept: Box::new(()) }
}

fn sqlite(test: &str) -> TestStore {
    let path = std::env::temp_dir().join(format!("mcp-{test}-{}.sqlite", std::process::id()));
    let _from_before = std::fs::remove_file(&path);
    let file = File(path.clone());
    let open = move || -> Arc<dyn Shared> { Arc::new(sqlite::Sqlite::open(&path).expect("a file")) };
    TestStore { name: "sqlite", open: Box::new(open), content: None, _kept: Box::new(file) }
}

/// Each of them, for a test.
pub(crate) fn stores(test: &str) -> Vec<TestStore> {
    vec![memory(), sqlite(test)]
}
