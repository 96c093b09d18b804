//! The served tree: the files that belong to it, and the only function that resolves a client's path to a file.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use ignore::{Walk, WalkBuilder};
use mcp_runtime::prelude::*;

use super::Refused;

/// Bytes of the largest file that is read.
pub(crate) const MOST: u64 = 1 << 20;

/// The root of the tree; clones are the same tree.
#[derive(Clone, Debug)]
pub(crate) struct Root(Arc<Path>);

impl Root {
    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().canonicalize()?;
        if path.is_dir() { Ok(Self(path.into())) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// A walk below `path` that honours .gitignore, and skips hidden files and symbolic links.
    pub(crate) fn walk(&self, path: &Path) -> WalkBuilder {
        let mut walk = WalkBuilder::new(path);
        walk.require_git(false).sort_by_file_name(Ord::cmp);
        walk
    }

    /// A walk of the whole tree.
    pub(crate) fn walk_all(&self) -> WalkBuilder {
        self.walk(&self.0)
    }

    /// Path of an entry as clients see it: relative to the root, with `/`.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let parts = path.strip_prefix(&self.0).unwrap_or(path).components();
        parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    }

    /// Resolves a client's path, if it is in the tree and would be listed; symbolic links are resolved first.
    pub(crate) fn find(&self, path: &str) -> Option<PathBuf> {
        if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        let found = self.0.join(path).canonicalize().ok()?;
        (found.starts_with(&self.0) && self.lists(&found)).then_some(found)
    }

    /// Whether a walk would reach `path`; walks only the directories on the way.
    fn lists(&self, path: &Path) -> bool {
        let target = path.to_owned();
        let mut walk: Walk =
            self.walk_all().filter_entry(move |entry| target.starts_with(entry.path())).build();
        walk.any(|entry| entry.is_ok_and(|entry| entry.path() == path))
    }

    /// The bytes of a file; `None` if the tree does not contain it.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, ToolError> {
        let Some(found) = self.find(path).filter(|found| found.is_file()) else { return Ok(None) };
        let file = File::open(found)?;
        let bytes = file.metadata()?.len();
        if bytes > MOST {
            return Err(Refused::TooBig { path: path.to_owned(), bytes, most: MOST }).public();
        }
        let mut read = Vec::with_capacity(usize::try_from(bytes)?);
        // a file may grow while it is read
        file.take(MOST).read_to_end(&mut read)?;
        Ok(Some(read))
    }
}

/// Whether bytes look binary: git's rule.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(8000)].contains(&0)
}

/// The beginning of a line, short enough for a model.
pub(crate) fn shortened(line: &str) -> String {
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
