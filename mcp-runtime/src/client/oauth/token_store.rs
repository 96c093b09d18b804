//! Where tokens and registrations are kept: in memory, or in a file that several processes share.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::core::{sync::Mutex, whole_file};

/// Keeps what a client knows of servers, as JSON by the server's URL.
///
/// The entries are secrets: no other user may be able to read them.
pub trait TokenStore: Send + Sync {
    /// The entry for this server.
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
pub(super) struct MemoryTokens(Mutex<HashMap<String, Value>>);

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
/// Only one of them renews tokens at a time. A file that is broken is set aside as `.broken`, with a warning in the log.
#[derive(Debug, Clone)]
pub struct FileTokens(PathBuf);

impl FileTokens {
    /// The file, which is made when there is something to keep.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The entries by server; `None` if the file is not one of this kind.
    fn read(&self) -> io::Result<Option<Map<String, Value>>> {
        match fs::read(&self.0) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Map::new())),
            Err(error) => Err(error),
        }
    }

    /// The entries, for a caller that has the lock for writing: a broken file is set aside.
    fn read_or_set_aside(&self) -> io::Result<Map<String, Value>> {
        if let Some(entries) = self.read()? {
            return Ok(entries);
        }
        let aside = whole_file::with_ending(&self.0, ".broken");
        // it may have tokens all the same
        #[cfg(unix)]
        fs::set_permissions(&self.0, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        fs::rename(&self.0, &aside)?;
        tracing::warn!(
            aside = %aside.display(),
            "the file of tokens is broken and was set aside: servers are authorized again"
        );
        Ok(Map::new())
    }

    fn lock_for_writing(&self) -> io::Result<File> {
        lock_file(&whole_file::with_ending(&self.0, ".write"))
    }
}

impl TokenStore for FileTokens {
    fn load(&self, server: &str) -> io::Result<Option<Value>> {
        let entries = match self.read()? {
            Some(entries) => entries,
            None => {
                let _lock = self.lock_for_writing()?;
                self.read_or_set_aside()?
            }
        };
        Ok(entries.get(server).cloned())
    }

    fn save(&self, server: &str, kept: &Value) -> io::Result<()> {
        // entries of other servers may be written at the same time
        let _lock = self.lock_for_writing()?;
        let mut all = self.read_or_set_aside()?;
        all.insert(server.to_owned(), kept.clone());
        whole_file::replace(&self.0, Value::Object(all).to_string().as_bytes(), false)
    }

    fn lock(&self) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(lock_file(&whole_file::with_ending(&self.0, ".lock"))?))
    }
}

/// Locks a file, which is made if there is none, and whose content does not matter.
pub(super) fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    file.lock()?;
    Ok(file)
}
