//! Files are read whole, with limits, and replaced whole: whatever fails, and whenever the process is killed, there is the
//! old file or the new one.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::crypto::random_id;

/// How long the other end of a pipe may take to write it.
const PIPE_TIMEOUT: Duration = Duration::from_secs(5);

/// The text of a file of at most so many bytes, or of a pipe that its other end closes within five seconds.
///
/// # Errors
/// It cannot be read, or is larger.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let read = move |path: &Path| {
        let mut text = String::new();
        let read = File::open(path)?.take(most.saturating_add(1)).read_to_string(&mut text)?;
        if read as u64 > most {
            return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
        }
        Ok(text)
    };
    if fs::metadata(path)?.is_file() {
        return read(path);
    }
    // to open it may block until someone else does
    let (sender, text) = mpsc::channel();
    let path = path.to_owned();
    thread::Builder::new().name("mcp-pipe".into()).spawn(move || sender.send(read(&path)))?;
    text.recv_timeout(PIPE_TIMEOUT)
        .unwrap_or_else(|_| Err(io::Error::other("it is not a file, and nothing has written it within 5 s")))
}

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
    use std::{os::unix::fs::PermissionsExt as _, process::Command};

    use super::*;

    /// A path of its own, with what is there.
    struct At(PathBuf);

    impl At {
        fn new() -> Self {
            Self(std::env::temp_dir().join(format!("mcp-file-{}", random_id().unwrap())))
        }

        fn mode(&self) -> u32 {
            fs::metadata(&self.0).unwrap().permissions().mode() & 0o777
        }
    }

    impl Drop for At {
        fn drop(&mut self) {
            let _removed = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_that_all_could_read_is_its_owners_once_something_secret_was_written() {
        for (is_public, expected) in [(true, 0o644), (false, 0o600)] {
            let at = At::new();
            fs::write(&at.0, "old").unwrap();
            fs::set_permissions(&at.0, fs::Permissions::from_mode(0o644)).unwrap();
            replace(&at.0, b"new", is_public).unwrap();
            assert_eq!((read_text(&at.0, 3).unwrap().as_str(), at.mode()), ("new", expected));
            assert!(read_text(&at.0, 2).is_err(), "it is larger");
        }
    }

    #[test]
    fn a_pipe_is_read_if_something_is_written_and_does_not_hold_up_a_program_for_ever() {
        let at = At::new();
        assert!(Command::new("mkfifo").arg(&at.0).status().unwrap().success());
        let error = read_text(&at.0, 100).unwrap_err().to_string();
        assert!(error.contains("nothing has written it"), "{error}");
        let (path, other) = (At::new(), At::new());
        assert!(Command::new("mkfifo").arg(&path.0).status().unwrap().success());
        let written = path.0.clone();
        let writer = thread::spawn(move || fs::write(written, "text"));
        assert_eq!(read_text(&path.0, 100).unwrap(), "text");
        writer.join().unwrap().unwrap();
        assert_eq!(read_text(&other.0, 100).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
