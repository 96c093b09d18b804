//! A server as a child process: its environment is an allow-list, its stderr is kept, and its process group ends with the
//! connection, or with the loop of `mcp-dev`. Closing its stdin comes first, then SIGTERM, then SIGKILL; where no time is left for that, as on a runtime
//! that shuts down, SIGKILL at once.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    process::{Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[cfg(windows)]
use process_wrap::tokio::JobObject;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::{
    io::AsyncReadExt,
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{client::Error, core::sync::Mutex};

/// How much of stderr is kept.
const STDERR_KEPT: usize = 64 << 10;
/// How much of a line of stdout that is not a message is kept with it.
const STRAY_LINE: usize = 1 << 10;
/// How long a server may take to exit after its stdin was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long output of a process that has exited may still arrive, since grandchildren can hold its pipe open.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// How long a process whose output ended may take to exit before its status is reported as unknown.
const LAST_STATUS: Duration = Duration::from_millis(500);

/// The variables that servers get without being asked: where programs and the user's files are, and the language.
const ENVIRONMENT: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Windows
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// A child process; clones are the same one.
#[derive(Clone)]
pub(in crate::client) struct ChildHandle {
    exit: Exit,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    pub(in crate::client) id: Option<u32>,
}

/// A process in a group of its own.
#[derive(Debug)]
pub struct ChildProcess {
    /// Closing it asks the process to end.
    pub stdin: ChildStdin,
    /// What the process answers.
    pub stdout: ChildStdout,
    /// What the process logs.
    pub stderr: ChildStderr,
    exit: Exit,
    id: Option<u32>,
}

/// The status of a process that has exited, if it is known; the rest of its group has ended when the sender is gone.
type Exit = watch::Receiver<Option<ExitStatus>>;

/// Every child that runs, for [`end_children`].
static CHILDREN: Mutex<Vec<(CancellationToken, Exit)>> = Mutex::new(Vec::new());
/// Whether `main` is the crate's, which ends children when it returns and on signals.
static MANAGED_MAIN: AtomicBool = AtomicBool::new(false);
static HANDLES_SIGNALS: AtomicBool = AtomicBool::new(false);

/// Kills the group of a process that is dropped before it was ended.
struct GroupGuard(Box<dyn ChildWrapper>);

impl Drop for GroupGuard {
    fn drop(&mut self) {
        // fails if the group has ended
        let _ended = self.0.start_kill();
    }
}

impl ChildProcess {
    /// Starts a process. `token` ends it; it is cancelled when the process has exited by itself.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command, token: &CancellationToken) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut wrapped = CommandWrap::from(tokio::process::Command::from(command));
        #[cfg(unix)]
        wrapped.wrap(ProcessGroup::leader());
        #[cfg(windows)]
        wrapped.wrap(JobObject);
        let mut child = GroupGuard(wrapped.spawn()?);
        let pipes = (child.0.stdin().take(), child.0.stdout().take(), child.0.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        let (sender, exit) = watch::channel(None);
        let id = child.0.id();
        let mut children = CHILDREN.lock();
        // those that have ended
        children.retain(|(_, exit)| exit.has_changed().is_ok());
        children.push((token.clone(), exit.clone()));
        drop(children);
        tokio::spawn(own(child, sender, token.clone()));
        Ok(Self { stdin, stdout, stderr, exit, id })
    }

    /// Waits until the process and its group have ended; returns the status, `None` if it is not known.
    pub fn ended(&self) -> impl Future<Output = Option<ExitStatus>> + Send + 'static {
        ended(self.exit.clone())
    }
}

async fn ended(mut exit: Exit) -> Option<ExitStatus> {
    while exit.changed().await.is_ok() {}
    *exit.borrow()
}

/// Starts the server of a client, and keeps its stderr.
pub(in crate::client) fn spawn(
    command: &Command,
    inherit_environment: bool,
    token: &CancellationToken,
) -> Result<(ChildHandle, ChildStdout, ChildStdin), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut started = Command::new(resolve(command.get_program()));
    started.args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        started.current_dir(dir);
    }
    if !inherit_environment {
        started.env_clear();
        for name in ENVIRONMENT {
            if let Some(value) = std::env::var_os(name) {
                started.env(name, value);
            }
        }
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => started.env(name, value),
            None => started.env_remove(name),
        };
    }
    let not_started =
        |error: io::Error| Error::not_connected(format!("`{program}` cannot be started: {error}"));
    let ChildProcess { stdin, stdout, stderr, exit, id } =
        ChildProcess::start(started, token).map_err(not_started)?;
    let kept = Arc::new(Mutex::new(VecDeque::new()));
    let handle = ChildHandle { exit, stderr: kept.clone(), id };
    tokio::spawn(keep_stderr(stderr, kept));
    if MANAGED_MAIN.load(Ordering::Relaxed) {
        end_children_on_signal();
    }
    Ok((handle, stdout, stdin))
}

/// Owns a process until its group has ended.
async fn own(mut child: GroupGuard, exit: watch::Sender<Option<ExitStatus>>, token: CancellationToken) {
    let exited = tokio::select! {
        status = child.0.wait() => Some(status.ok()),
        () = token.cancelled() => None,
    };
    match exited {
        Some(status) => {
            exit.send_replace(status);
            // its last messages may be in the pipe
            tokio::select! {
                () = sleep(LAST_OUTPUT) => {}
                () = token.cancelled() => {}
            }
            token.cancel();
        }
        None => drop(exit.send_replace(end(&mut child).await)),
    }
    // its child processes are in its group, and have no other owner
    drop(child);
    drop(exit);
}

/// Ends a process whose stdin has been closed.
async fn end(child: &mut GroupGuard) -> Option<ExitStatus> {
    if let Ok(status) = timeout(GRACE, child.0.wait()).await {
        return status.ok();
    }
    #[cfg(unix)]
    {
        const SIGTERM: i32 = 15;
        let _ended = child.0.signal(SIGTERM);
        if let Ok(status) = timeout(GRACE, child.0.wait()).await {
            return status.ok();
        }
    }
    let _ended = child.0.start_kill();
    timeout(GRACE, child.0.wait()).await.ok()?.ok()
}

async fn keep_stderr(mut stderr: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut chunk = [0; 4096];
    while let Ok(bytes @ 1..) = stderr.read(&mut chunk).await {
        keep(&mut kept.lock(), chunk.get(..bytes).unwrap_or_default());
    }
}

fn keep(kept: &mut VecDeque<u8>, text: &[u8]) {
    kept.extend(text);
    let excess = kept.len().saturating_sub(STDERR_KEPT);
    kept.drain(..excess);
}

impl ChildHandle {
    /// Keeps a line of stdout that is not a message: programs say there why they end, or that they are not found.
    pub(in crate::client) fn keep_stray_line(&self, line: &[u8]) {
        let line = line.get(..line.len().min(STRAY_LINE)).unwrap_or_default();
        keep(&mut self.stderr.lock(), &[b"stdout: ", line, b"\n"].concat());
    }

    /// The end of what the process wrote to stderr, and to stdout besides messages.
    pub(in crate::client) fn stderr(&self) -> String {
        let kept: Vec<u8> = self.stderr.lock().iter().copied().collect();
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// Waits until the process and its group have ended.
    pub(in crate::client) async fn ended(&self) {
        let _status = ended(self.exit.clone()).await;
    }

    /// The error of requests to the process, whose output has ended.
    pub(in crate::client) async fn closed_error(&self) -> Error {
        let mut exit = self.exit.clone();
        let known = timeout(LAST_STATUS, exit.wait_for(Option::is_some)).await;
        let status = known.ok().and_then(|known| *known.ok()?);
        Error::Closed { status, stderr: self.stderr() }
    }
}

/// Ends every child process of this program's clients, and waits for their end.
///
/// [`mcp_runtime::main`](crate::main) does so when `main` returns.
pub async fn end_children() {
    let children = CHILDREN.lock().clone();
    for (token, _) in &children {
        token.cancel();
    }
    for (_, exit) in children {
        let _status = ended(exit).await;
    }
}

/// Ends every child process when this program gets SIGTERM or SIGINT, and then exits.
///
/// Without it a signal ends the program alone: its children's stdin is closed, on which most servers exit. Call it on the
/// runtime, once; programs with [`mcp_runtime::main`](crate::main) need not.
pub fn end_children_on_signal() {
    if HANDLES_SIGNALS.swap(true, Ordering::Relaxed) {
        return;
    }
    tokio::spawn(async {
        let number = signalled().await;
        end_children().await;
        if MANAGED_MAIN.load(Ordering::Relaxed) {
            // a server in the same program answers its last calls, and `main` returns
            sleep(Duration::from_secs(15)).await;
        }
        std::process::exit(128 + i32::from(number));
    });
}

/// Waits for SIGTERM or SIGINT; returns its number.
#[cfg(unix)]
pub async fn signalled() -> u8 {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => 15,
        _ = interrupt.recv() => 2,
    }
}

/// Waits until the user ends this program; returns the number of SIGINT.
#[cfg(not(unix))]
pub async fn signalled() -> u8 {
    match tokio::signal::ctrl_c().await {
        Ok(()) => 2,
        Err(_) => std::future::pending().await,
    }
}

/// Marks that `main` is the crate's.
pub(crate) fn manage_main() {
    MANAGED_MAIN.store(true, Ordering::Relaxed);
}

/// On Windows, programs like `npx` are `.cmd` files, which are not found without the extension.
#[cfg(windows)]
fn resolve(program: &std::ffi::OsStr) -> OsString {
    let path = std::path::Path::new(program);
    if path.extension().is_some() || path.components().count() != 1 {
        return program.to_owned();
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&folders).flat_map(|folder| {
        ["exe", "cmd", "bat"].map(|extension| folder.join(path).with_extension(extension))
    });
    candidates.into_iter().find(|file| file.is_file()).map_or_else(|| program.to_owned(), Into::into)
}

#[cfg(not(windows))]
fn resolve(program: &std::ffi::OsStr) -> OsString {
    program.to_owned()
}
