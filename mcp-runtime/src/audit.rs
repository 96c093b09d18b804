//! The audit log: one line of JSON for each call, and for each request that is refused.
//!
//! A line says when, who, what, how it ended and how long it took:
//!
//! ```json
//! {"time":"2026-11-22T21:04:36.120Z","event":"call","method":"tools/call","kind":"tool","item":"transfer","arguments":["account","amount"],"outcome":"tool_error","issuer":"https://id.example.com","subject":"ada","address":"192.0.2.7","request":"7","trace":"0af7651916cd43dd8448eb211c80319c","ms":12.5}
//! ```
//!
//! | member | value |
//! |---|---|
//! | `event` | `call`; `task`, a call that went on as a task and has ended; `refused`, which no item got to see; `dropped`, in place of lines that the sink was too slow for |
//! | `method`, `kind`, `item` | of a call: the method, `tool`, `resource` or `prompt`, and its wire name or URI |
//! | `arguments` | the names of the arguments; with [`values`](Audit::values) an object, but for those that are secret |
//! | `outcome` | `ok`, `tool_error`, `error`, `input_required`, `task`, `cancelled`, `refused` |
//! | `outcome` of a task | `completed`, `tool_error`, `failed`, `cancelled`, `expired` (no client asked for it in time) |
//! | `task` | the id of the task; its first eight characters if it belongs to no principal, since who has the id may see it |
//! | `reason` | why a call was refused: `unknown`, `hidden` (from this caller), `scopes` (that the caller lacks), `capability`, `state` (of an unfinished call), `busy`, `stopping` |
//! | `code`, `status` | of a JSON-RPC error; of a refusal over HTTP |
//! | `issuer`, `subject`, `address` | the caller, and its address, as far as they are known |
//! | `request`, `trace` | the request's id as JSON text, and the trace that the request is part of |
//! | `ms` | milliseconds |
//! | `count` | of `dropped`: how many lines are missing here |

use std::{
    fmt,
    fs::OpenOptions,
    io::Write,
    path::Path,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use crate::{invoke::discard, jsonrpc::Object, sync::Mutex};

/// What gets the lines.
type Sink = Box<dyn FnMut(&str) + Send>;

/// Lines that wait for their sink, unless the options say otherwise.
const CAPACITY: usize = 4096;
/// How long a server that is dropped waits for its sink to take the lines that are left.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Where the audit log goes, and what is in it; for [`ServerBuilder::audit`](crate::ServerBuilder::audit).
///
/// A thread of its own passes the lines on, so that a slow sink never holds up a call: up to
/// [`capacity`](Self::capacity) lines wait, the rest is counted, and the count is a line of its own.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use mcp_runtime::{audit::Audit, prelude::*, testing::TestServer};
/// use serde_json::{Value, json};
///
/// /// Signs in.
/// #[mcp_tool]
/// fn sign_in(user: String, #[mcp(secret)] password: String) -> String {
///     format!("welcome, {user} ({})", password.len())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mcp_runtime::Result<()> {
/// let lines = Arc::new(Mutex::new(Vec::new()));
/// let sink = lines.clone();
/// let audit = Audit::to(move |line: &str| sink.lock().unwrap().push(line.to_owned())).values();
/// let server = TestServer::new(mcp_runtime::server!().tool::<sign_in>().audit(audit))?;
/// server.call("sign_in", json!({ "user": "ada", "password": "xyzzy" })).await.expect_ok();
/// drop(server);
///
/// let line: Value = serde_json::from_str(&lines.lock().unwrap()[0]).unwrap();
/// assert_eq!(line["item"], "sign_in");
/// assert_eq!(line["arguments"], json!({ "user": "ada", "password": "[secret]" }));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Audit {
    sink: Result<Sink, String>,
    capacity: usize,
    values: bool,
}

impl Audit {
    fn new(sink: Result<Sink, String>) -> Self {
        Self { sink, capacity: CAPACITY, values: false }
    }

    /// Passes each line, without its line end, to a function. It may block.
    pub fn to(sink: impl FnMut(&str) + Send + 'static) -> Self {
        Self::new(Ok(Box::new(sink)))
    }

    /// Writes the lines to a writer, and flushes it after each. Errors are logged, and the line is lost.
    pub fn to_writer(mut writer: impl Write + Send + 'static) -> Self {
        Self::to(move |line| {
            if let Err(error) = writeln!(writer, "{line}").and_then(|()| writer.flush()) {
                tracing::error!(%error, "a line of the audit log could not be written");
            }
        })
    }

    /// Appends the lines to a file, which is created if it does not exist. The server is not built if it cannot be
    /// opened.
    pub fn to_file(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        match OpenOptions::new().create(true).append(true).open(path) {
            Ok(file) => Self::to_writer(file),
            Err(error) => {
                Self::new(Err(format!("the audit log `{}` cannot be opened: {error}", path.display())))
            }
        }
    }

    /// Sets how many lines may wait for the sink; 4096 by default, and at least one.
    pub fn capacity(mut self, lines: usize) -> Self {
        self.capacity = lines.max(1);
        self
    }

    /// Writes the values of arguments of items that exist, but for those that are declared `#[mcp(secret)]` or with
    /// [`ToolBuilder::secret`](crate::tool::ToolBuilder::secret).
    pub fn values(mut self) -> Self {
        self.values = true;
        self
    }

    /// Starts the log.
    ///
    /// # Errors
    /// The sink cannot be opened.
    pub(crate) fn open(self) -> Result<AuditLog, String> {
        let Self { sink, capacity, values } = self;
        let mut sink = sink?;
        let (lines, waiting) = sync_channel::<String>(capacity);
        let (ended, end) = channel();
        let write = move || {
            // ends when the log is dropped, after the lines that wait
            while let Ok(line) = waiting.recv() {
                // a panic of the sink loses its line
                let _contained =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sink(&line))).map_err(discard);
            }
            drop(ended);
        };
        let thread = thread::Builder::new().name("mcp audit log".into());
        thread.spawn(write).map_err(|error| format!("the thread of the audit log cannot start: {error}"))?;
        Ok(AuditLog { lines: Some(lines), end: Mutex::new(end), dropped: AtomicU64::new(0), values })
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit")
            .field("capacity", &self.capacity)
            .field("values", &self.values)
            .finish_non_exhaustive()
    }
}

/// The audit log of a running server.
#[derive(Debug)]
pub(crate) struct AuditLog {
    /// Unset while the log is dropped.
    lines: Option<SyncSender<String>>,
    /// Disconnected when the thread has ended.
    end: Mutex<Receiver<()>>,
    /// Lines since the last one that was not dropped.
    dropped: AtomicU64,
    /// Whether values are written.
    pub(crate) values: bool,
}

impl AuditLog {
    /// Writes a line, unless too many wait.
    pub(crate) fn write(&self, event: &str, members: impl FnOnce(&mut Object<'_>)) {
        let missing = self.dropped.swap(0, Ordering::Relaxed);
        if missing > 0 && !self.send(line("dropped", |line| _ = line.value("count", &missing))) {
            self.dropped.fetch_add(missing + 1, Ordering::Relaxed);
            return;
        }
        if !self.send(line(event, members)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn send(&self, line: String) -> bool {
        let sent = self.lines.as_ref().map(|lines| lines.try_send(line));
        !matches!(sent, Some(Err(TrySendError::Full(_))))
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let missing = self.dropped.load(Ordering::Relaxed);
        if missing > 0 {
            self.send(line("dropped", |line| _ = line.value("count", &missing)));
        }
        self.lines = None;
        if self.end.lock().recv_timeout(LAST_LINES) == Err(RecvTimeoutError::Timeout) {
            tracing::error!("the sink of the audit log is too slow: its last lines may be lost");
        }
    }
}

/// One line without its end.
fn line(event: &str, members: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = Vec::with_capacity(384);
    let mut object = Object::new(&mut out);
    object.str("time", &humantime::format_rfc3339_millis(SystemTime::now()).to_string());
    object.str("event", event);
    members(&mut object);
    object.end();
    String::from_utf8(out).unwrap_or_default()
}
