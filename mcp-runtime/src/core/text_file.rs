//! Files of text that a program is configured with: they have a limit, and a pipe that no one writes does not hold it up.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

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

#[cfg(all(test, unix))]
mod tests {
    use std::{path::PathBuf, process::Command};

    use super::*;
    use crate::core::crypto::random_id;

    /// A pipe, which is removed at the end.
    struct Pipe(PathBuf);

    impl Pipe {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("mcp-pipe-{}", random_id().unwrap()));
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            Self(path)
        }
    }

    impl Drop for Pipe {
        fn drop(&mut self) {
            fs::remove_file(&self.0).unwrap();
        }
    }

    #[test]
    fn a_pipe_is_read_if_something_is_written_and_does_not_hold_up_a_program_for_ever() {
        let (written, silent) = (Pipe::new(), Pipe::new());
        let path = written.0.clone();
        let writer = thread::spawn(move || fs::write(path, "text"));
        assert_eq!(read_text(&written.0, 100).unwrap(), "text");
        writer.join().unwrap().unwrap();
        let error = read_text(&silent.0, 100).unwrap_err().to_string();
        assert!(error.contains("nothing has written it"), "{error}");
    }

    #[test]
    fn a_file_that_is_too_large_or_not_there_is_not_read() {
        let path = std::env::temp_dir().join(format!("mcp-text-{}", random_id().unwrap()));
        assert_eq!(read_text(&path, 100).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "text").unwrap();
        let read = [4, 3].map(|most| read_text(&path, most).ok());
        fs::remove_file(&path).unwrap();
        assert_eq!(read, [Some("text".into()), None]);
    }
}
