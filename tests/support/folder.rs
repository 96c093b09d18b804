//! Folders of tests.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
};

use super::unique;

/// An empty folder below the temporary directory, which is removed with everything in it when it is dropped.
#[derive(Debug)]
pub struct TestFolder(PathBuf);

impl Default for TestFolder {
    fn default() -> Self {
        // without links, since programs print paths so
        let temporary = std::env::temp_dir().canonicalize().expect("a directory");
        let path = temporary.join(format!("mcp-test-{}", unique()));
        // a process of the same id may have been killed
        let _from_before = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl TestFolder {
    /// Writes a file and the folders above it, and returns its path.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, bytes).expect("a file");
        path
    }
}

impl Deref for TestFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _best_effort = fs::remove_dir_all(&self.0);
    }
}
