//! A process of the server: its messages line by line, through bounded queues, and the end of its stderr. Its group ends with
//! it: closing its stdin comes first, then SIGTERM, then SIGKILL; one that is dropped is killed. If this program is killed, the
//! server sees the end of its stdin.

use std::{
    collections::VecDeque,
    io,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

#[cfg(windows)]
use process_wrap::tokio::JobObject;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use serde_json::json;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{launch::Program, trace::Trace};
use crate::{report, server::visible};

/// The longest message; a longer line is dropped.
pub(super) const MAX_MESSAGE: usize = 64 << 20;
/// Messages of each queue of a process or a client.
pub(super) const QUEUE: usize = 64;
/// Lines of stderr that are kept.
const STDERR_LINES: usize = 20;
/// The longest line of stderr that is kept whole.
const STDERR_LINE: usize = 4096;
/// How long a process may take to end after its stdin was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long output of a process that has ended may still arrive, since processes that it started can hold the pipe.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// The pause after the first crash; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A process that lives this long has not failed to start.
pub(super) const STABLE: Duration = Duration::from_secs(5);
/// How often a program that is being replaced is tried again, and after how long.
const SPAWN_RETRIES: u32 = 40;
const SPAWN_PAUSE: Duration = Duration::from_millis(50);

/// How long a program rests that has failed this often before.
pub(super) fn pause_after(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE)
}

/// A running process.
pub(super) struct Child {
    /// Lines for its stdin, which is closed when this is taken.
    pub(super) stdin: Option<mpsc::Sender<Vec<u8>>>,
    /// Lines of its stdout; the end is the end of the process.
    pub(super) stdout: mpsc::Receiver<Vec<u8>>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    /// Knows the secrets that its stderr may have.
    trace: Trace,
    exit: oneshot::Receiver<Option<ExitStatus>>,
    stop: CancellationToken,
    kill: CancellationToken,
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill.cancel();
    }
}

impl Child {
    /// Starts a program. A file that is being written is tried again for two seconds.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) async fn start(program: &Program, trace: &Trace, session: &str) -> io::Result<Self> {
        let mut process = GroupGuard(spawn(program).await?);
        let pipes = (process.0.stdin().take(), process.0.stdout().take(), process.0.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let (to_stdin, lines) = mpsc::channel(QUEUE);
        tokio::spawn(write_lines(stdin, lines));
        let (lines, from_stdout) = mpsc::channel(QUEUE);
        let (ended, exited) = (CancellationToken::new(), CancellationToken::new());
        tokio::spawn({
            let (guard, gone) = (ended.clone().drop_guard(), exited.clone());
            async move {
                let _ended = guard;
                read_lines(BufReader::new(stdout), lines, "the server", gone).await;
            }
        });
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let log = tokio::spawn(pass_stderr(
            BufReader::new(stderr),
            kept.clone(),
            trace.clone(),
            session.to_owned(),
        ));
        let (status_sender, exit) = oneshot::channel();
        let tokens = (stop.clone(), kill.clone());
        tokio::spawn(async move {
            let (stop, kill) = tokens;
            let status = tokio::select! {
                status = process.0.wait() => status.ok(),
                () = stop.cancelled() => end(&mut process, &kill).await,
                // it cannot be heard any more
                () = ended.cancelled() => end(&mut process, &kill).await,
                () = kill.cancelled() => end(&mut process, &kill).await,
            };
            // what it started is in its group, and has no other owner
            let _ended = process.0.start_kill();
            exited.cancel();
            let mut log = log;
            if timeout(LAST_OUTPUT, &mut log).await.is_err() {
                log.abort();
            }
            let _dropped = status_sender.send(status);
        });
        let trace = trace.clone();
        Ok(Self { stdin: Some(to_stdin), stdout: from_stdout, stderr: kept, trace, exit, stop, kill })
    }

    /// Closes its stdin, and ends it if that does not.
    pub(super) fn stop(&mut self) {
        self.stdin = None;
        self.stop.cancel();
    }

    /// Closes its stdin; it may take its time to end.
    pub(super) fn close(&mut self) {
        self.stdin = None;
    }

    /// Its status, once its stdout has ended; `None` if that is not known.
    pub(super) async fn status(&mut self) -> Option<ExitStatus> {
        timeout(GRACE * 3, &mut self.exit).await.ok()?.ok()?
    }

    /// The last lines of its stderr, masked: clients get them, and models read them.
    pub(super) fn stderr(&self) -> String {
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        self.trace.masked(&lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n"))
    }
}

/// Kills the group of a process that is dropped before it has ended.
struct GroupGuard(Box<dyn ChildWrapper>);

impl Drop for GroupGuard {
    fn drop(&mut self) {
        // fails if the group has ended
        let _ended = self.0.start_kill();
    }
}

async fn spawn(program: &Program) -> io::Result<Box<dyn ChildWrapper>> {
    let mut tries = 0;
    loop {
        let mut command = program.to_command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut wrapped = CommandWrap::from(command);
        #[cfg(unix)]
        wrapped.wrap(ProcessGroup::leader());
        #[cfg(windows)]
        wrapped.wrap(JobObject);
        match wrapped.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < SPAWN_RETRIES => {
                tries += 1;
                sleep(SPAWN_PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Ends a process, as politely as `kill` allows.
async fn end(process: &mut GroupGuard, kill: &CancellationToken) -> Option<ExitStatus> {
    let polite = async {
        if let Ok(status) = timeout(GRACE, process.0.wait()).await {
            return Some(status.ok());
        }
        #[cfg(unix)]
        {
            const SIGTERM: i32 = 15;
            let _ended = process.0.signal(SIGTERM);
            if let Ok(status) = timeout(GRACE, process.0.wait()).await {
                return Some(status.ok());
            }
        }
        None
    };
    let status = tokio::select! {
        status = polite => status,
        () = kill.cancelled() => None,
    };
    if let Some(status) = status {
        return status;
    }
    let _ended = process.0.start_kill();
    timeout(GRACE, process.0.wait()).await.ok()?.ok()
}

/// Writes lines until the sender is dropped, or the pipe has no reader.
pub(super) async fn write_lines(mut pipe: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        if pipe.write_all(&line).await.is_err() || pipe.flush().await.is_err() {
            return;
        }
    }
    let _closed = pipe.shutdown().await;
}

/// Reads lines until the end, until the receiver is dropped, or until `gone` and a moment later. One that is too long is
/// reported and dropped.
pub(super) async fn read_lines(
    mut pipe: impl AsyncBufRead + Unpin,
    lines: mpsc::Sender<Vec<u8>>,
    sender: &'static str,
    gone: CancellationToken,
) {
    loop {
        let next = tokio::select! {
            biased;
            next = read_line(&mut pipe, MAX_MESSAGE) => next,
            () = async { gone.cancelled().await; sleep(LAST_OUTPUT).await } => return,
        };
        match next {
            Ok(Some((line, true))) => {
                if line.iter().any(|byte| !byte.is_ascii_whitespace()) && lines.send(line).await.is_err() {
                    return;
                }
            }
            Ok(Some((_, false))) => {
                report(&format!(
                    "mcp-dev: a message of {sender} is longer than {} MiB: dropped",
                    MAX_MESSAGE >> 20
                ));
            }
            Ok(None) | Err(_) => return,
        }
    }
}

/// The next line without its end, and whether it is whole; of one that is not, the beginning.
async fn read_line(
    pipe: &mut (impl AsyncBufRead + Unpin),
    most: usize,
) -> io::Result<Option<(Vec<u8>, bool)>> {
    let (mut line, mut is_whole) = (Vec::new(), true);
    loop {
        let bytes = pipe.fill_buf().await?;
        if bytes.is_empty() {
            return Ok((!line.is_empty()).then_some((line, is_whole)));
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let room = most.saturating_sub(line.len());
        is_whole &= part.len() <= room;
        line.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
        let used = end.map_or(bytes.len(), |end| end + 1);
        pipe.consume(used);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(Some((line, is_whole)));
        }
    }
}

/// Prints what a process writes to stderr, and keeps the end of it.
async fn pass_stderr(
    mut pipe: BufReader<impl AsyncRead + Unpin>,
    kept: Arc<Mutex<VecDeque<String>>>,
    trace: Trace,
    session: String,
) {
    while let Ok(Some((line, _))) = read_line(&mut pipe, STDERR_LINE).await {
        let line = String::from_utf8_lossy(&line).into_owned();
        report(&line);
        trace.event("stderr", json!({ "session": session, "text": visible(&line) }));
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == STDERR_LINES {
            kept.pop_front();
        }
        kept.push_back(visible(&line));
    }
}
