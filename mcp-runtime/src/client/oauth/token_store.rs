//! Where tokens and registrations are kept: in memory, or in a file that several processes share.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::sync::Mutex;

/// Keeps what a client knows of servers, as JSON by the server's URL.
///
/// What is kept are secrets: no other user may read it.
pub trait TokenStore: Send + Sync {
    /// What was kept for this server.
    ///
    /// # Errors
    /// It cannot be read.
    fn load(&self, server: &str) -> io::Result<Option<Value>>;

    /// Keeps this instead.
    ///
    /// # Errors
    /// It cannot be written.
    fn save(&self, server: &str, kept: &Value) -> io::Result<()>;

    /// Waits until no other process renews tokens. The lock ends when the value is dropped. It may block its thread.
    ///
    /// # Errors
    /// The lock cannot be taken.
    fn lock(&self) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(()))
    }
}

/// Keeps tokens as long as the program runs.
#[derive(Default)]
pub struct MemoryTokens(Mutex<HashMap<String, Value>>);

impl std::fmt::Debug for MemoryTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTokens").finish_non_exhaustive()
    }
}

impl TokenStore for MemoryTokens {
    fn load(&self, server: &str) -> io::Result<Option<Value>> {
        Ok(self.0.lock().get(server).cloned())
    }

    fn save(&self, server: &str, kept: &Value) -> io::Result<()> {
        self.0.lock().insert(server.to_owned(), kept.clone());
        Ok(())
    }
}

/// Keeps tokens in a file that only its owner can read (on Unix, mode 0600), for all programs that use the same file.
/// Only one of them renews tokens at a time.
#[derive(Debug, Clone)]
pub struct FileTokens(PathBuf);

impl FileTokens {
    /// The file, which is made when there is something to keep.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        self.0.with_file_name(name)
    }

    fn read(&self) -> io::Result<serde_json::Map<String, Value>> {
        match fs::read(&self.0) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(serde_json::Map::new()),
            Err(error) => Err(error),
        }
    }
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl TokenStore for FileTokens {
    fn load(&self, server: &str) -> io::Result<Option<Value>> {
        Ok(self.read()?.get(server).cloned())
    }

    fn save(&self, server: &str, kept: &Value) -> io::Result<()> {
        // entries of other servers may be written at the same time
        let _lock = lock_file(&self.beside(".write"))?;
        let mut all = self.read()?;
        all.insert(server.to_owned(), kept.clone());
        // a reader sees the old file or the new one
        let next = self.beside(".next");
        let mut file = open_private(&next)?;
        io::Write::write_all(&mut file, Value::Object(all).to_string().as_bytes())?;
        file.sync_all()?;
        fs::rename(next, &self.0)
    }

    fn lock(&self) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(lock_file(&self.beside(".lock"))?))
    }
}

pub(super) fn lock_file(path: &Path) -> io::Result<File> {
    let file = open_private(path)?;
    file.lock()?;
    Ok(file)
}
