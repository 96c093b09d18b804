//! Stores of artifacts: in memory, and in a directory.

use std::{
    collections::{HashMap, VecDeque},
    fs, io,
    path::{Path, PathBuf},
};

use super::artifact::{ArtifactStore, hex_digest};
use crate::core::{blocking, store::StoreFuture, sync::Mutex, whole_file};

type StoredKey = (String, String);

/// Artifacts in memory. When they are full, the oldest are dropped.
#[derive(Debug)]
pub struct MemoryArtifacts {
    max_bytes: usize,
    stored: Mutex<StoredArtifacts>,
}

#[derive(Debug, Default)]
struct StoredArtifacts {
    contents: HashMap<StoredKey, Vec<u8>>,
    oldest_first: VecDeque<StoredKey>,
    bytes: usize,
}

impl MemoryArtifacts {
    /// A store of 500 MiB at most.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(500 << 20)
    }

    /// A store of that many bytes at most.
    #[must_use]
    pub fn with_limit(bytes: usize) -> Self {
        Self { max_bytes: bytes, stored: Mutex::default() }
    }
}

impl Default for MemoryArtifacts {
    fn default() -> Self {
        Self::new()
    }
}

impl StoredArtifacts {
    fn remove(&mut self, key: &StoredKey) {
        if let Some(contents) = self.contents.remove(key) {
            self.bytes -= contents.len();
            self.oldest_first.retain(|other| other != key);
        }
    }
}

impl ArtifactStore for MemoryArtifacts {
    fn put<'a>(&'a self, scope: &'a str, id: &'a str, bytes: Vec<u8>) -> StoreFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let key = (scope.to_owned(), id.to_owned());
            if bytes.len() > self.max_bytes {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            let mut stored = self.stored.lock();
            stored.remove(&key);
            while stored.bytes + bytes.len() > self.max_bytes
                && let Some(oldest) = stored.oldest_first.front().cloned()
            {
                stored.remove(&oldest);
            }
            stored.bytes += bytes.len();
            stored.oldest_first.push_back(key.clone());
            stored.contents.insert(key, bytes);
            Ok(())
        })
    }

    fn get<'a>(&'a self, scope: &'a str, id: &'a str) -> StoreFuture<'a, io::Result<Option<Vec<u8>>>> {
        let key = (scope.to_owned(), id.to_owned());
        Box::pin(async move { Ok(self.stored.lock().contents.get(&key).cloned()) })
    }

    fn exists<'a>(&'a self, scope: &'a str, id: &'a str) -> StoreFuture<'a, io::Result<bool>> {
        let key = (scope.to_owned(), id.to_owned());
        Box::pin(async move { Ok(self.stored.lock().contents.contains_key(&key)) })
    }

    fn delete<'a>(&'a self, scope: &'a str, id: &'a str) -> StoreFuture<'a, io::Result<()>> {
        let key = (scope.to_owned(), id.to_owned());
        Box::pin(async move {
            self.stored.lock().remove(&key);
            Ok(())
        })
    }
}

/// Artifacts as files of a directory: one folder for each scope, named by a digest of it, and in it one file for each
/// artifact, named by its id. On Unix, only the user of this program may read them.
#[derive(Debug, Clone)]
pub struct DirectoryArtifacts {
    path: PathBuf,
}

impl DirectoryArtifacts {
    /// A store in this directory, which is created when it is needed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn folder(&self, scope: &str) -> PathBuf {
        let mut name = hex_digest(scope.as_bytes());
        name.truncate(32);
        self.path.join(name)
    }

    /// The file of an artifact.
    ///
    /// # Errors
    /// The id is not the name of a file.
    fn file(&self, scope: &str, id: &str) -> io::Result<PathBuf> {
        let is_name = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if is_name { Ok(self.folder(scope).join(id)) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }
}

impl ArtifactStore for DirectoryArtifacts {
    fn put<'a>(&'a self, scope: &'a str, id: &'a str, bytes: Vec<u8>) -> StoreFuture<'a, io::Result<()>> {
        let file = self.file(scope, id);
        Box::pin(async move {
            let file = file?;
            on_thread(move || write_whole(&file, &bytes)).await
        })
    }

    fn get<'a>(&'a self, scope: &'a str, id: &'a str) -> StoreFuture<'a, io::Result<Option<Vec<u8>>>> {
        let file = self.file(scope, id);
        Box::pin(async move {
            let file = file?;
            on_thread(move || found(fs::read(file))).await
        })
    }

    fn exists<'a>(&'a self, scope: &'a str, id: &'a str) -> StoreFuture<'a, io::Result<bool>> {
        let file = self.file(scope, id);
        Box::pin(async move {
            let file = file?;
            on_thread(move || file.try_exists()).await
        })
    }

    fn delete<'a>(&'a self, scope: &'a str, id: &'a str) -> StoreFuture<'a, io::Result<()>> {
        let file = self.file(scope, id);
        Box::pin(async move {
            let file = file?;
            on_thread(move || found(fs::remove_file(file)).map(drop)).await
        })
    }
}

/// Runs what may block.
async fn on_thread<T: Send + 'static>(f: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    blocking::run(f).await.map_err(io::Error::other)?
}

/// `None` for what does not exist.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Writes a file, so that readers find all of it or nothing.
fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some(folder) = file.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut directories = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut directories, 0o700);
    directories.recursive(true).create(folder)?;
    whole_file::replace(file, bytes, false)
}
