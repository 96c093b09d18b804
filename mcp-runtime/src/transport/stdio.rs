//! Stdio: a thread that reads lines and serves, in place, what is ready at once. `ServerBuilder::run` and programs
//! with a runtime of their own start it.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    BURST,
    calls::Calls,
    connection::{Connection, Replies},
    lines::Lines,
    sink::{Port, Sink},
    supervise,
};
use crate::{
    Result,
    context::Peer,
    server::{Server, ServerBuilder},
};

impl Server {
    /// Serves the program's own stdin and stdout until stdin ends or the process is told to stop (`SIGTERM`).
    ///
    /// Calls that still run then get [`drain`](ServerBuilder::drain) to end, and are answered. Nothing but messages
    /// may go to stdout: use `eprintln!` or `tracing` for everything else. A thread of its own reads stdin; after
    /// `SIGTERM` it stays there, waiting, until the process ends.
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
        let sink = Sink::new(output()?);
        let runtime = Handle::current();
        let calls = Calls::new(self.clone(), Arc::clone(&sink), runtime.clone());
        let connection =
            Connection::new(self.clone(), Arc::clone(&calls), Arc::clone(&sink), Peer::default());
        let (ended, reader) = oneshot::channel();
        let (limit, port) = (self.options().max_line, Arc::clone(&sink));
        std::thread::Builder::new().name("mcp-stdin".into()).spawn(move || {
            let _entered = runtime.enter();
            if let Err(error) = read(input, Lines::new(limit), connection, &port, &runtime) {
                tracing::error!(error = %error, "stdin can no longer be read");
            }
            // nobody waits for it when the process was told to stop
            let _gone = ended.send(());
        })?;
        let stopped = async {
            tokio::select! {
                _ = reader => {}
                () = terminated() => {}
            }
        };
        supervise(&sink, &calls, stopped, self.tasks().ended(), self.options().drain).await;
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

/// The reader: it ends with stdin, or when nobody reads stdout any more.
fn read(
    mut input: impl Read,
    mut lines: Lines,
    mut connection: Connection,
    sink: &Arc<Sink>,
    runtime: &Handle,
) -> io::Result<()> {
    let mut out = Replies::default();
    loop {
        match input.read(lines.space()) {
            Ok(0) => break,
            Ok(bytes) => lines.filled(bytes),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        while let Some(line) = lines.next() {
            connection.line(&line, &mut out);
            if out.bytes.len() >= BURST {
                out.flush(sink);
                if sink.is_full() {
                    runtime.block_on(sink.room());
                }
            }
        }
        out.flush(sink);
        if sink.is_full() {
            runtime.block_on(sink.room());
        }
        if sink.is_closed() {
            return Ok(());
        }
    }
    if let Some(line) = lines.rest() {
        connection.line(&line, &mut out);
        out.flush(sink);
    }
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
    Ok(Port::Waiting(File::from(io::stdout().as_handle().try_clone_to_owned()?)))
}

/// The way to stdout. A pipe is opened once more where the system allows that, so that writing to it need not wait
/// while everyone else who holds it sees no change; a socket gets a write timeout. Anything else takes its bytes at
/// once, or holds up the one who writes.
#[cfg(unix)]
fn output() -> io::Result<Port> {
    use std::{
        os::{fd::AsFd, unix::fs::FileTypeExt, unix::net::UnixStream},
        time::Duration,
    };
    let fd = io::stdout().as_fd().try_clone_to_owned()?;
    let file = File::from(fd.try_clone()?);
    let kind = file.metadata()?.file_type();
    if kind.is_socket() {
        let socket = UnixStream::from(fd);
        if socket.set_write_timeout(Some(Duration::from_millis(20))).is_ok() {
            return Ok(Port::Prompt { now: file.try_clone()?, patient: Arc::new(file) });
        }
    } else if kind.is_fifo()
        && let Some(now) = reopened()
    {
        return Ok(Port::Prompt { now, patient: Arc::new(file) });
    }
    Ok(Port::Waiting(file))
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

/// Ends when the process is told to stop.
#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(error) => {
            tracing::warn!(error = %error, "SIGTERM will end the process without its calls");
            std::future::pending::<()>().await;
        }
    }
}

/// Elsewhere a process is ended, not told; stdin's end is the only sign.
#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}
