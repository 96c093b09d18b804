//! Files are replaced whole: whatever fails, and whenever the process is killed, there is the old file or the new one.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::crypto::random_id;

/// Writes a file, or replaces it; a link is replaced as well. One that `is_public` keeps its mode; another is for its owner only,
/// whatever was there.
///
/// # Errors
/// It cannot be written; it is as it was then.
pub(crate) fn replace(path: &Path, bytes: &[u8], is_public: bool) -> io::Result<()> {
    Temporary::write(path, bytes, is_public)?.become_file(path)
}

/// A path with something after the file's name.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// A file beside another that is to replace it; dropped, it is removed.
pub(crate) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Writes a file beside one: with its mode if it `is_public` and exists, and for its owner only if it is not.
    pub(crate) fn write(beside: &Path, bytes: &[u8], is_public: bool) -> io::Result<Self> {
        // another process may write the same file, and anything may lie there already
        let random = random_id().map_err(io::Error::other)?;
        let path = with_ending(beside, &format!(".{random}.tmp"));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let old = if is_public { fs::metadata(beside).ok() } else { None };
        let old = old.map(|found| found.permissions());
        // a file that may contain secrets must not be readable by other users, not even before its mode is set
        #[cfg(unix)]
        if !is_public || old.is_some() {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = is_public;
        let mut file = options.open(&path)?;
        let this = Self { path };
        file.write_all(bytes)?;
        if let Some(mode) = old {
            file.set_permissions(mode)?;
        }
        file.sync_all()?;
        Ok(this)
    }

    pub(crate) fn become_file(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        // so that the new name is on the disk too; not every system can
        if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
            let _result = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _result = fs::remove_file(&self.path);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_that_all_could_read_is_its_owners_once_something_secret_was_written() {
        for (is_public, expected) in [(true, 0o644), (false, 0o600)] {
            let path = std::env::temp_dir().join(format!("mcp-file-{}", random_id().unwrap()));
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            replace(&path, b"new", is_public).unwrap();
            let (text, mode) =
                (fs::read_to_string(&path).unwrap(), fs::metadata(&path).unwrap().permissions());
            fs::remove_file(&path).unwrap();
            assert_eq!((text.as_str(), mode.mode() & 0o777), ("new", expected));
        }
    }
}
