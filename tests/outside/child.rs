//! Runs a process to its end, within a time limit, and never leaves it behind; called by everything in `outside`.

use std::{
    io::{Read, Write},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// A process that is killed when the test lets go of it, also by panicking.
#[derive(Debug)]
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process left.
#[derive(Debug)]
pub struct Finished {
    /// Whether its exit status was 0.
    pub success: bool,
    /// All that it printed.
    pub stdout: String,
    /// All that it complained about.
    pub stderr: String,
}

impl Finished {
    /// The output of a process that had to succeed.
    ///
    /// # Panics
    ///
    /// With everything it printed, if it did not.
    #[must_use]
    pub fn or_panic(self, what: &str) -> String {
        assert!(self.success, "{what} failed\n{}\n{}", self.stdout, self.stderr);
        self.stdout
    }
}

/// Runs `command` with `input` on its stdin, for at most `limit`.
///
/// # Errors
///
/// If the program cannot be started, which for a program looked up by name means that it is missing.
///
/// # Panics
///
/// If it takes longer; what it printed so far is in the message.
pub fn run(command: &mut Command, input: &str, limit: Duration) -> std::io::Result<Finished> {
    let started = Instant::now();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut child = Guard(child);
    let stdout = gather(child.0.stdout.take());
    let stderr = gather(child.0.stderr.take());
    if let Some(mut stdin) = child.0.stdin.take() {
        let input = input.to_owned();
        // A process that ends without reading its input breaks the pipe; its exit status tells the story.
        thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    }
    loop {
        if let Some(status) = child.0.try_wait()? {
            return Ok(Finished { success: status.success(), stdout: stdout.text(), stderr: stderr.text() });
        }
        if started.elapsed() > limit {
            drop(child);
            panic!("{command:?} took longer than {limit:?}\n{}\n{}", stdout.text(), stderr.text());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

struct Gathered(mpsc::Receiver<Vec<u8>>);

impl Gathered {
    /// The text up to the end of the pipe. A grandchild may hold the pipe open for ever: its words are not waited for.
    fn text(&self) -> String {
        let mut bytes = Vec::new();
        while let Ok(chunk) = self.0.recv_timeout(Duration::from_secs(2)) {
            bytes.extend(chunk);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn gather(pipe: Option<impl Read + Send + 'static>) -> Gathered {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        thread::spawn(move || {
            let mut chunk = [0; 8192];
            while let Ok(length @ 1..) = pipe.read(&mut chunk) {
                if sender.send(chunk.get(..length).unwrap_or_default().to_vec()).is_err() {
                    return;
                }
            }
        });
    }
    Gathered(receiver)
}
