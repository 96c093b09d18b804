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
pub(super) struct MemoryArtifacts {
    max_bytes: usize,
    stored: Mutex<StoredArtifacts>,
}

#[derive(Default)]
struct StoredArtifacts {
    contents: HashMap<StoredKey, Vec<u8>>,
    oldest_first: VecDeque<StoredKey>,
    bytes: usize,
}

impl MemoryArtifacts {
    /// A store of that many bytes at most.
    pub(super) fn with_limit(bytes: usize) -> Self {
        Self { max_bytes: bytes, stored: Mutex::default() }
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
#[derive(Clone)]
pub(super) struct DirectoryArtifacts {
    path: PathBuf,
}

impl DirectoryArtifacts {
    /// A store in this directory, which is created when it is needed.
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::crypto::random_id;

    /// A directory of this test, which is removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            Self(std::env::temp_dir().join(format!("mcp-artifacts-{}", random_id().unwrap())))
        }

        fn files(&self) -> Vec<PathBuf> {
            let entries = |path: &Path| -> Vec<PathBuf> {
                let entries = fs::read_dir(path).into_iter().flatten();
                entries.map(|entry| entry.unwrap().path()).collect()
            };
            entries(&self.0).iter().flat_map(|folder| entries(folder)).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _may_not_exist = fs::remove_dir_all(&self.0);
        }
    }

    #[tokio::test]
    async fn stores_put_get_and_delete_by_scope_and_id() {
        let folder = Folder::new();
        let stores: [Box<dyn ArtifactStore>; 2] =
            [Box::new(MemoryArtifacts::with_limit(10)), Box::new(DirectoryArtifacts::new(&folder.0))];
        for store in stores {
            assert_eq!(store.get("a", "1").await.unwrap(), None);
            store.put("a", "1", vec![1]).await.unwrap();
            store.put("b", "1", vec![2]).await.unwrap();
            assert_eq!(store.get("a", "1").await.unwrap(), Some(vec![1]));
            store.put("a", "1", vec![3]).await.unwrap();
            assert_eq!(store.get("a", "1").await.unwrap(), Some(vec![3]));
            store.delete("a", "1").await.unwrap();
            store.delete("a", "1").await.unwrap();
            assert_eq!(store.get("a", "1").await.unwrap(), None);
            assert_eq!(store.get("b", "1").await.unwrap(), Some(vec![2]));
        }
        let directory = DirectoryArtifacts::new(&folder.0);
        for id in ["", "..", "a/b", "/etc/passwd"] {
            assert!(directory.put("a", id, Vec::new()).await.is_err(), "{id}");
            assert!(directory.get("a", id).await.is_err(), "{id}");
        }
        directory.put("../../b", "1", vec![4]).await.unwrap();
        assert_eq!(folder.files().len(), 2, "in folders of their own, without anything left over");
        #[cfg(unix)]
        for file in folder.files() {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[tokio::test]
    async fn memory_drops_the_oldest_first() {
        let store = MemoryArtifacts::with_limit(10);
        for id in ["1", "2", "3"] {
            store.put("a", id, vec![0; 4]).await.unwrap();
        }
        assert_eq!(store.get("a", "1").await.unwrap(), None);
        assert!(store.get("a", "2").await.unwrap().is_some() && store.get("a", "3").await.unwrap().is_some());
        assert!(store.put("a", "4", vec![0; 11]).await.is_err());
    }
}
