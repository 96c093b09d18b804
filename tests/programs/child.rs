//! Runs a process to its end, within a time limit, and never leaves it behind.

use std::{
    io::{Read, Write},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// A process that is killed when it is dropped, also by a panic.
#[derive(Debug)]
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process: `TERM`, `INT` or `KILL`. No program is needed, as `kill` is one that not every system has.
///
/// # Panics
///
/// If the signal is unknown, or the process does not exist.
#[cfg(unix)]
pub fn send(id: u32, signal: &str) {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match signal {
        "TERM" => Signal::TERM,
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        other => panic!("`{other}` is not known here"),
    };
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).expect("an id");
    kill_process(id, signal).expect("it is ours");
}

/// The result of a process.
#[derive(Debug)]
pub struct Finished {
    /// Whether its exit status was 0.
    pub success: bool,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

impl Finished {
    /// The output of a process that must succeed.
    ///
    /// # Panics
    ///
    /// With the whole output, if it failed.
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
/// If the program cannot be started: for a program that is looked up by name, it is missing.
///
/// # Panics
///
/// If it exceeds the limit; the message has its output so far.
pub fn run(command: &mut Command, input: &str, limit: Duration) -> std::io::Result<Finished> {
    let started = Instant::now();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut child = Guard(child);
    let stdout = read_in_background(child.0.stdout.take());
    let stderr = read_in_background(child.0.stderr.take());
    if let Some(mut stdin) = child.0.stdin.take() {
        let input = input.to_owned();
        // a process that exits without reading its input breaks the pipe; its exit status is reported instead
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

struct Output(mpsc::Receiver<Vec<u8>>);

impl Output {
    /// The text up to the end of the pipe. A grandchild may keep the pipe open, so the wait is limited.
    fn text(&self) -> String {
        let mut bytes = Vec::new();
        while let Ok(chunk) = self.0.recv_timeout(Duration::from_secs(2)) {
            bytes.extend(chunk);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn read_in_background(pipe: Option<impl Read + Send + 'static>) -> Output {
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
    Output(receiver)
}
