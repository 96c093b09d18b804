//! Files are replaced whole: whatever fails, and whenever the process is killed, there is the old file or the new one. The
//! first change of a file that was there leaves a copy of it beside it. Of several installations at once, each adds to what
//! the others have written.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::core::{
    project_file,
    whole_file::{Temporary, with_ending},
};

/// How many links lead to a file at most.
const MAX_LINKS: usize = 32;
/// The largest file that is read.
const MAX_FILE: u64 = 16 << 20;
/// The suffix of a copy, after the file's name.
const BACKUP: &str = ".before-mcp";
/// The longest wait for other installations, each of which holds the lock while it replaces one file.
const LOCK_TIME: Duration = Duration::from_secs(30);

/// The outcome of replacing a file.
#[derive(Debug, PartialEq)]
pub(super) enum Replaced {
    /// It is replaced; the path is that of the copy, if one was made.
    Done(Option<PathBuf>),
    /// It is not what was read any more, and stays.
    Changed,
}

/// A file as it was read.
pub(super) struct TextFile {
    /// Where it is, after links.
    path: PathBuf,
    /// `None` if it does not exist.
    bytes: Option<Vec<u8>>,
    /// Whether it is a project's, and others may read it.
    is_public: bool,
}

impl TextFile {
    /// Reads a file, which need not exist: one inside of a project, or one of the user, which may have secrets and is for its
    /// user only once it is written.
    ///
    /// # Errors
    /// It cannot be read or written, is too large, or links of the project lead out of it.
    pub(super) fn read(path: &Path, project: Option<&Path>) -> Result<Self, String> {
        let real = match project {
            Some(project) => project_file::resolve_in(project, path),
            None => follow_links(path),
        };
        let real = real.map_err(|error| cannot("read", path, &error))?;
        let bytes = match fs::metadata(&real) {
            Ok(found) if found.is_dir() => return Err(format!("`{}` is a folder", path.display())),
            // reading a pipe would wait for its writer
            Ok(found) if !found.is_file() => return Err(format!("`{}` is not a file", path.display())),
            Ok(_) => Some(read_bounded(&real).map_err(|error| cannot("read", path, &error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(cannot("read", path, &error)),
        };
        Ok(Self { path: real, bytes, is_public: project.is_some() })
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

    /// Replaces it by this text, and copies what was there unless there is a copy.
    ///
    /// # Errors
    /// It cannot be written, or other installations hold the lock for too long.
    pub(super) fn replace(&self, text: &str) -> Result<Replaced, String> {
        self.check_writable()?;
        let in_words = |error: io::Error| format!("it cannot be written: {error}");
        let folder = self.path.parent().ok_or("it has no folder")?;
        fs::create_dir_all(folder).map_err(in_words)?;
        let _lock = lock(folder)?;
        if self.is_changed().map_err(in_words)? {
            return Ok(Replaced::Changed);
        }
        let mut bytes = Vec::new();
        if self.bytes.as_deref().is_some_and(|old| old.starts_with("\u{feff}".as_bytes())) {
            bytes.extend_from_slice("\u{feff}".as_bytes());
        }
        bytes.extend_from_slice(text.as_bytes());
        let copy = self.back_up().map_err(|error| format!("it cannot be copied: {error}"))?;
        let new = Temporary::write(&self.path, &bytes, self.is_public).map_err(in_words)?;
        // programs that take no lock, such as the client itself
        if self.is_changed().map_err(in_words)? {
            return Ok(Replaced::Changed);
        }
        new.become_file(&self.path).map_err(in_words)?;
        Ok(Replaced::Done(copy))
    }

    /// Whether another program has changed it since it was read.
    fn is_changed(&self) -> io::Result<bool> {
        let now = match read_bounded(&self.path) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(now != self.bytes)
    }

    /// Copies what was read, unless there is a copy.
    fn back_up(&self) -> io::Result<Option<PathBuf>> {
        let Some(bytes) = &self.bytes else { return Ok(None) };
        let copy = with_ending(&self.path, BACKUP);
        if fs::symlink_metadata(&copy).is_ok() {
            return Ok(None);
        }
        Temporary::write(&copy, bytes, false)?.become_file(&copy)?;
        Ok(Some(copy))
    }
}

/// Where a path leads, also if nothing is there: a link stays a link.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().map_or(target.clone(), |folder| folder.join(&target)),
            // not a link, or nothing
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links lead to it"))
}

/// Locks a folder for other installations, until the result is dropped; where it cannot be locked, only the checks of the
/// file are left.
///
/// # Errors
/// Others have held the lock for too long.
fn lock(folder: &Path) -> Result<Option<File>, String> {
    let end = Instant::now() + LOCK_TIME;
    loop {
        match try_lock(folder) {
            Ok(lock) => return Ok(Some(lock)),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Ok(None),
            Err(_) if Instant::now() > end => {
                return Err(format!(
                    "another installation has locked `{}` for more than {} s",
                    folder.display(),
                    LOCK_TIME.as_secs()
                ));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// The folder itself is locked, so that no file is left beside those of a client.
#[cfg(unix)]
fn try_lock(folder: &Path) -> io::Result<File> {
    let folder = File::open(folder)?;
    folder.try_lock()?;
    Ok(folder)
}

/// A folder cannot be locked there: a file in it is opened for this process only, and removed when it is closed.
#[cfg(windows)]
fn try_lock(folder: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const GENERIC_WRITE: u32 = 0x4000_0000;
    const DELETE: u32 = 0x0001_0000;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    const ERROR_SHARING_VIOLATION: i32 = 32;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    options.access_mode(GENERIC_WRITE | DELETE).share_mode(0).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    options.open(folder.join(".mcp-install.lock")).map_err(|error| match error.raw_os_error() {
        Some(ERROR_SHARING_VIOLATION) => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

#[cfg(not(any(unix, windows)))]
fn try_lock(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
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
