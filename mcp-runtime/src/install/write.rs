//! Files are replaced whole: whatever fails, and whenever the process is killed, there is the old file or the new one. The
//! first change of a file that was there leaves a copy of it beside it.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::core::whole_file::{Temporary, resolve, with_ending};

/// The largest file that is read.
const MAX_FILE: u64 = 16 << 20;
/// The suffix of a copy, after the file's name.
const BACKUP: &str = ".before-mcp";

/// A file as it was read.
pub(super) struct TextFile {
    /// Where it is, after links.
    path: PathBuf,
    /// `None` if it does not exist.
    bytes: Option<Vec<u8>>,
    /// Whether others may read it if it is new.
    is_public: bool,
}

impl TextFile {
    /// Reads a file, which need not exist; a new one is `is_public`, or for its user only.
    ///
    /// # Errors
    /// It cannot be read or written, or is too large.
    pub(super) fn read(path: &Path, is_public: bool) -> Result<Self, String> {
        let real = resolve(path).map_err(|error| cannot("read", path, &error))?;
        let bytes = match fs::metadata(&real) {
            Ok(found) if found.is_dir() => return Err(format!("`{}` is a folder", path.display())),
            Ok(_) => Some(read_bounded(&real).map_err(|error| cannot("read", path, &error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(cannot("read", path, &error)),
        };
        Ok(Self { path: real, bytes, is_public })
    }

    /// Its text, without a byte order mark; nothing if it does not exist.
    ///
    /// # Errors
    /// Bytes of it are not UTF-8.
    pub(super) fn text(&self) -> Result<&str, String> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
            format!("it is not UTF-8 (line {line}, column {column})")
        })?;
        Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    pub(super) fn exists(&self) -> bool {
        self.bytes.is_some()
    }

    /// Whether it may be replaced.
    ///
    /// # Errors
    /// Its user has made it read-only.
    pub(super) fn check_writable(&self) -> Result<(), String> {
        match fs::metadata(&self.path) {
            Ok(found) if found.permissions().readonly() => Err("it is read-only".to_owned()),
            _ => Ok(()),
        }
    }

    /// Replaces it by this text, and copies what was there unless there is a copy; returns the new copy.
    ///
    /// # Errors
    /// It cannot be written, or another program has changed it since it was read.
    pub(super) fn replace(&self, text: &str) -> Result<Option<PathBuf>, String> {
        self.check_writable()?;
        let in_words = |error: io::Error| format!("it cannot be written: {error}");
        let folder = self.path.parent().ok_or("it has no folder")?;
        fs::create_dir_all(folder).map_err(in_words)?;
        let mut bytes = Vec::new();
        if self.bytes.as_deref().is_some_and(|old| old.starts_with("\u{feff}".as_bytes())) {
            bytes.extend_from_slice("\u{feff}".as_bytes());
        }
        bytes.extend_from_slice(text.as_bytes());
        let copy = self.back_up().map_err(|error| format!("it cannot be copied: {error}"))?;
        let new = Temporary::write(&self.path, &self.path, &bytes, self.is_public).map_err(in_words)?;
        let now = match read_bounded(&self.path) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(in_words(error)),
        };
        if now != self.bytes {
            return Err("another program has changed it just now\ntry again".to_owned());
        }
        new.become_file(&self.path).map_err(in_words)?;
        Ok(copy)
    }

    /// Copies what was read, unless there is a copy.
    fn back_up(&self) -> io::Result<Option<PathBuf>> {
        let Some(bytes) = &self.bytes else { return Ok(None) };
        let copy = with_ending(&self.path, BACKUP);
        if fs::symlink_metadata(&copy).is_ok() {
            return Ok(None);
        }
        // with the mode of the file, since it has what that has
        Temporary::write(&copy, &self.path, bytes, false)?.become_file(&copy)?;
        Ok(Some(copy))
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("`{}` cannot be {what}: {error}", path.display())
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if read as u64 > MAX_FILE {
        return Err(io::Error::other("it is larger than 16 MiB"));
    }
    Ok(bytes)
}
