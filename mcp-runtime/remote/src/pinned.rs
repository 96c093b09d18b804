//! The tools of a lock file: one that differs from what was accepted is not offered.

use std::path::{Path, PathBuf};

use mcp_runtime::lock_file::LockFile;
use serde_json::Value;

/// The members by which a model decides, and by which it calls.
const COMPARED: [&str; 4] = ["description", "inputSchema", "outputSchema", "annotations"];

/// A lock file that was read.
pub(crate) struct Pinned {
    path: PathBuf,
    locked: LockFile,
}

impl Pinned {
    /// # Errors
    /// It cannot be read, or is not a lock file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            format!("`{shown}` cannot be read: {error}\n`mcp-dev lock --file {shown} ..` writes it")
        })?;
        let locked = LockFile::parse(&text).map_err(|error| format!("`{shown}`: {error}"))?;
        Ok(Self { path: path.to_owned(), locked })
    }

    /// # Errors
    /// The tool is another one than that in the file: what differs, and what accepts it.
    pub(crate) fn check_tool(&self, name: &str, entry: &Value) -> Result<(), String> {
        let path = self.path.display();
        let accepts = format!("`mcp-dev lock --file {path} ..` accepts it");
        let Some(locked) = self.locked.item("tools", name) else {
            return Err(format!("it is not in `{path}`; {accepts}"));
        };
        let differing: Vec<_> =
            COMPARED.into_iter().filter(|member| locked.get(member) != entry.get(member)).collect();
        match differing.is_empty() {
            true => Ok(()),
            false => Err(format!("its {} differ from `{path}`; {accepts}", differing.join(", "))),
        }
    }
}
