//! A process of the server: its messages line by line, through bounded queues, and the end of its stderr. It is started and
//! ended as the client does it. If this program is killed, the server sees the end of its stdin.

use std::{
    collections::VecDeque,
    io,
    pin::pin,
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mcp_runtime::__dev::{ChildProcess, visible};
use serde_json::json;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{launch::Program, trace::Trace};
use crate::report;

/// The longest message; a longer line is dropped.
const MAX_MESSAGE: usize = 64 << 20;
/// Messages of each queue of a process or a client.
pub(super) const QUEUE: usize = 64;
/// Lines of stderr that are kept.
const STDERR_LINES: usize = 20;
/// The longest line of stderr that is kept whole.
const STDERR_LINE: usize = 4096;
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
    /// Its status, once it has ended and its stderr was read.
    ended: JoinHandle<Option<ExitStatus>>,
    /// Ends it when it is dropped.
    end: Option<DropGuard>,
}

impl Child {
    /// Starts a program. A file that is being written is tried again for two seconds.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) async fn start(program: &Program, trace: &Trace, session: &str) -> io::Result<Self> {
        let token = CancellationToken::new();
        let process = spawn(program, &token).await?;
        let (status, gone) = (process.ended(), process.ended());
        let (to_stdin, lines) = mpsc::channel(QUEUE);
        tokio::spawn(write_lines(process.stdin, lines));
        let (lines, from_stdout) = mpsc::channel(QUEUE);
        // what cannot be heard any more is ended
        let unheard = token.clone().drop_guard();
        tokio::spawn(async move {
            let _unheard = unheard;
            read_lines(BufReader::new(process.stdout), lines, "the server", gone).await;
        });
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let mut log = tokio::spawn(pass_stderr(
            BufReader::new(process.stderr),
            kept.clone(),
            trace.clone(),
            session.to_owned(),
        ));
        let ended = tokio::spawn(async move {
            let status = status.await;
            if timeout(LAST_OUTPUT, &mut log).await.is_err() {
                log.abort();
            }
            status
        });
        let (trace, end) = (trace.clone(), Some(token.drop_guard()));
        Ok(Self { stdin: Some(to_stdin), stdout: from_stdout, stderr: kept, trace, ended, end })
    }

    /// Closes its stdin, and ends it if that does not.
    pub(super) fn stop(&mut self) {
        self.stdin = None;
        self.end = None;
    }

    /// Closes its stdin; it may take its time to end.
    pub(super) fn close(&mut self) {
        self.stdin = None;
    }

    /// Its status, once it has ended; `None` if that is not known.
    pub(super) async fn status(&mut self) -> Option<ExitStatus> {
        (&mut self.ended).await.ok()?
    }

    /// The last lines of its stderr, masked: clients get them, and models read them.
    pub(super) fn stderr(&self) -> String {
        let lines = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        self.trace.masked(&lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n"))
    }
}

async fn spawn(program: &Program, token: &CancellationToken) -> io::Result<ChildProcess> {
    let mut tries = 0;
    loop {
        match ChildProcess::start(program.to_command(), token) {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < SPAWN_RETRIES => {
                tries += 1;
                sleep(SPAWN_PAUSE).await;
            }
            other => return other,
        }
    }
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
pub(super) async fn read_lines<T>(
    mut pipe: impl AsyncBufRead + Unpin,
    lines: mpsc::Sender<Vec<u8>>,
    sender: &'static str,
    gone: impl Future<Output = T>,
) {
    let mut gone = pin!(async {
        gone.await;
        sleep(LAST_OUTPUT).await;
    });
    loop {
        let next = tokio::select! {
            biased;
            next = read_line(&mut pipe, MAX_MESSAGE) => next,
            () = &mut gone => return,
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
pub(super) async fn read_line(
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
