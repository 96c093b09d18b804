//! Stdio: a thread that reads lines and serves, in place, what is ready at once. `ServerBuilder::run` and programs
//! with a runtime of their own start it.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    connection::{BURST, Opening, StreamConnection},
    writer::{Lines, Port, Writer},
};
use crate::{
    connection::{RequestContext, Shutdown},
    server::{Result, Server, ServerBuilder},
};

/// How long calls may go on after stdin has ended: the official clients send SIGTERM after this time.
const PATIENCE: Duration = Duration::from_secs(2);

impl Server {
    /// Serves the program's own stdin and stdout until stdin ends or the process is told to stop (`SIGTERM`).
    ///
    /// Calls that still run then get 2 seconds to end, or what [`drain`](ServerBuilder::drain) says, and are answered.
    /// `SIGTERM` after that, or a second one, ends at once. Nothing but messages may go to stdout: use `eprintln!` or
    /// `tracing` for everything else. A thread of its own reads stdin; after `SIGTERM` it stays there, waiting, until
    /// the process ends.
    ///
    /// It needs a tokio runtime with time (and, for `SIGTERM`, I/O) enabled.
    ///
    /// See [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).
    ///
    /// # Errors
    /// Stdin or stdout is closed, or no thread can be started.
    pub async fn serve_stdio(&self) -> Result<()> {
        crate::server::report_forgotten();
        let input = input()?;
        let writer = Writer::new(output()?);
        let runtime = Handle::current();
        let (connection, work) = StreamConnection::new(Opening {
            server: self.clone(),
            writer: writer.clone(),
            runtime: runtime.clone(),
            context: RequestContext::default(),
            requests: None,
        });
        let (ended, reader) = oneshot::channel();
        std::thread::Builder::new().name("mcp-stdin".into()).spawn(move || {
            let _entered = runtime.enter();
            if let Err(error) = read(input, connection, &writer, &runtime) {
                tracing::error!(error = %error, "stdin can no longer be read");
            }
            // not waited for when the process was told to stop
            let _gone = ended.send(());
        })?;
        let stopped = Shutdown::default();
        let told_again = async {
            let mut terminate = Terminate::new();
            tokio::select! {
                _ = reader => {}
                () = terminate.recv() => {}
            }
            stopped.fire();
            terminate.recv().await;
        };
        let patience = self.options().drain.unwrap_or(PATIENCE);
        tokio::select! {
            () = work.supervise(stopped.fired(), self.tasks().wait_until_idle(), patience) => {}
            () = told_again => tracing::warn!("told to stop once more: calls that still ran were dropped"),
        }
        self.tasks().stop();
        Ok(())
    }
}

impl ServerBuilder {
    /// Builds the server and [serves stdio](Server::serve_stdio) with it.
    ///
    /// # Errors
    /// What [`build`](Self::build) and [`Server::serve_stdio`] say.
    pub async fn serve_stdio(self) -> Result<()> {
        self.build()?.serve_stdio().await
    }
}

/// The reader: it ends with stdin, or when the other side does not read stdout any more.
fn read(
    mut input: impl Read,
    mut connection: StreamConnection,
    writer: &Arc<Writer>,
    runtime: &Handle,
) -> io::Result<()> {
    let mut out = Lines::default();
    loop {
        match input.read(connection.space()) {
            Ok(0) => break,
            Ok(bytes) => connection.filled(bytes),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        while connection.serve_line(&mut out) {
            if out.bytes.len() >= BURST {
                out.flush(writer);
                if writer.is_full() {
                    runtime.block_on(writer.room());
                }
            }
        }
        out.flush(writer);
        if writer.is_full() {
            runtime.block_on(writer.room());
        }
        if writer.is_closed() {
            return Ok(());
        }
    }
    connection.serve_rest(&mut out);
    out.flush(writer);
    Ok(())
}

#[cfg(unix)]
fn input() -> io::Result<File> {
    use std::os::fd::AsFd;
    // around the lock and the buffer of `std::io::Stdin`
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}

#[cfg(windows)]
fn output() -> io::Result<Port> {
    use std::os::windows::io::AsHandle;
    Ok(Port::Blocking(Arc::new(File::from(io::stdout().as_handle().try_clone_to_owned()?))))
}

/// The way to stdout. A pipe is opened once more where the system allows that, so that writing to it need not wait
/// while everyone else who holds it sees no change. Writes to anything else may block, and are made on a thread: that
/// costs three times as much CPU where a host sends one request at a time, and next to nothing where it sends many.
#[cfg(unix)]
fn output() -> io::Result<Port> {
    use std::os::{fd::AsFd, unix::fs::FileTypeExt};
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    if file.metadata()?.file_type().is_fifo()
        && let Some(now) = reopened()
    {
        return Ok(Port::Nonblocking { now, blocking: Arc::new(file) });
    }
    Ok(Port::Blocking(Arc::new(file)))
}

#[cfg(all(
    target_os = "linux",
    any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "arm",
        target_arch = "riscv64"
    )
))]
fn reopened() -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    /// The same on each of these architectures.
    const O_NONBLOCK: i32 = 0o4000;
    std::fs::OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open("/proc/self/fd/1").ok()
}

#[cfg(all(
    unix,
    not(all(
        target_os = "linux",
        any(
            target_arch = "x86_64",
            target_arch = "x86",
            target_arch = "aarch64",
            target_arch = "arm",
            target_arch = "riscv64"
        )
    ))
))]
fn reopened() -> Option<File> {
    None
}

/// The times that the process is told to stop.
#[cfg(unix)]
struct Terminate(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Terminate {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let signal = signal(SignalKind::terminate());
        if let Err(error) = &signal {
            tracing::warn!(%error, "SIGTERM will end the process without its calls");
        }
        Self(signal.ok())
    }

    /// Waits for the next time.
    async fn recv(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Elsewhere a process is ended, not told; stdin's end is the only sign.
#[cfg(not(unix))]
struct Terminate;

#[cfg(not(unix))]
impl Terminate {
    fn new() -> Self {
        Self
    }

    async fn recv(&mut self) {
        std::future::pending().await
    }
}
