//! One run of a program, with bounded output; no process outlives its call.

use std::{
    io,
    process::{ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use mcp_runtime::prelude::*;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
};

/// The output that is kept of one run.
const MAX_OUTPUT: usize = 4 << 20;
/// The time between two notifications of progress.
const PACE: Duration = Duration::from_millis(100);

/// A program's exit status and output.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// stdout and stderr in the order of arrival; the end may be missing.
    pub(crate) output: String,
    pub(crate) is_cut: bool,
}

/// The command for a program, in its own process group.
pub(crate) fn command(program: &str, arguments: impl Iterator<Item = String>) -> Command {
    let mut command = std::process::Command::new(program);
    // the server's stdin and stdout are the client's connection
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut command = Command::from(command);
    command.kill_on_drop(true);
    command
}

/// A program and the processes that it has started. Dropping it kills all of them: when the call is cancelled, the
/// client disconnects or the tool times out.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // `None` once the program has ended, since its id may be reused
        #[cfg(unix)]
        if let Some(id) = self.0.id().and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?)) {
            // fails only if all of them have ended
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

/// Runs a command to its end; its lines are progress.
pub(crate) async fn run(mut command: Command, ctx: &Context) -> io::Result<Finished> {
    let mut child = Group(command.spawn()?);
    let (stdout, stderr) = (child.0.stdout.take(), child.0.stderr.take());
    let log = Mutex::new(Log { bytes: Vec::new(), is_cut: false, lines: 0, reported: None });
    tokio::try_join!(read(stdout, &log, ctx), read(stderr, &log, ctx))?;
    // only now, since the id of a program may be reused after it has been waited for
    let status = child.0.wait().await?;
    let Log { bytes, is_cut, .. } = log.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Finished { status, output: String::from_utf8_lossy(&bytes).into_owned(), is_cut })
}

/// Reads a pipe to its end, even when no more is kept: a program blocks when its pipe is full.
async fn read(pipe: Option<impl AsyncRead + Unpin>, log: &Mutex<Log>, ctx: &Context) -> io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut chunk = vec![0; 8192];
    while let length @ 1.. = pipe.read(&mut chunk).await? {
        log.lock().unwrap_or_else(PoisonError::into_inner).add(&chunk[..length], ctx);
    }
    Ok(())
}

struct Log {
    bytes: Vec<u8>,
    is_cut: bool,
    lines: usize,
    reported: Option<Instant>,
}

impl Log {
    fn add(&mut self, chunk: &[u8], ctx: &Context) {
        let kept = chunk.len().min(MAX_OUTPUT - self.bytes.len());
        self.is_cut |= kept < chunk.len();
        self.bytes.extend_from_slice(&chunk[..kept]);
        let lines = chunk.iter().filter(|byte| **byte == b'\n').count();
        self.lines += lines;
        if lines > 0 && self.reported.is_none_or(|time| time.elapsed() >= PACE) {
            self.reported = Some(Instant::now());
            let text = String::from_utf8_lossy(chunk);
            let last: String = text.lines().last().unwrap_or_default().chars().take(200).collect();
            ctx.progress(self.lines).message(last).send();
        }
    }
}
