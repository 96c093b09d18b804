//! Stdio: a thread reads requests from stdin and answers in place those that complete immediately. On Unix nothing but
//! messages reaches the client: other output of the program to stdout goes to stderr.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    ServingFuture,
    signal::{StopSignals, second_signal},
    stream_connection::{ConnectionParts, StreamConnection},
    writer::{ConnectionWriter, OutputBuffer, WriteMode},
};
use crate::core::server::{Result, Server, ServerBuilder};
#[cfg(unix)]
use crate::core::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// How long calls may run after the end of stdin, unless another time is set: the official clients kill the process 2 s
/// after they have closed it.
const STDIO_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1500);

impl Server {
    /// Serves the process's stdin and stdout until stdin ends or the process receives SIGTERM or Ctrl-C.
    ///
    /// Calls that are still running then have 1.5 seconds to finish, or the time set with
    /// [`shutdown_timeout`](crate::config::Limits::shutdown_timeout); those that do not finish are answered with an
    /// error. A signal during that time makes this return at once, and ends the process within a second, with exit
    /// code 0. From the first call on, stdout belongs to the client: on Unix, what `println!`, C code and child processes
    /// write to file descriptor 1 goes to stderr, and file descriptor 0 is empty. Elsewhere nothing but messages may be
    /// written to stdout. A dedicated thread reads stdin; after a signal it stays blocked until the process exits.
    ///
    /// Requires a tokio runtime with time (and, for signals, I/O) enabled.
    ///
    /// See [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio).
    ///
    /// # Errors
    /// Stdin or stdout is closed, or the thread cannot be started.
    pub fn serve_stdio(&self) -> impl Future<Output = Result<()>> + Send {
        serve_stdio(self)
    }

    // At the end of stdin, requests to the client fail, and queued calls still start; functions are not cancelled. Those that
    // outlive the timeout are dropped and answered with `cut_off_error` of `core/dispatch/inbound.rs`, `-32603`. If stdout is
    // closed, all of them are dropped at once.
    async fn serve_stdio_until_end(&self) -> Result<()> {
        crate::core::server::warn_of_unregistered_items();
        self.keys().warn_of_unread_environment();
        #[cfg(feature = "config")]
        self.log_settings();
        let serving = self.open().await?;
        #[cfg(feature = "metrics")]
        let _metrics = self.serve_metrics().await?;
        let input = open_stdin()?;
        let writer = ConnectionWriter::new(open_stdout()?);
        let runtime = Handle::current();
        let (connection, scheduler) = StreamConnection::new(ConnectionParts {
            server: self.clone(),
            writer: writer.clone(),
            runtime: runtime.clone(),
            context: self.host_context(),
            requests: None,
        });
        // before the client can know that the process serves
        let mut signals = StopSignals::new();
        let (reader_ended, reader) = oneshot::channel();
        std::thread::Builder::new().name("mcp-stdin".into()).spawn(move || {
            let _entered = runtime.enter();
            if let Err(error) = read(input, connection, &writer, &runtime) {
                tracing::error!(error = %error, "cannot read stdin");
            }
            // after SIGTERM the receiver is dropped before the reader ends
            let _dropped = reader_ended.send(());
        })?;
        let stopping = CancellationToken::default();
        let ended = async {
            tokio::select! {
                _ = reader => {}
                () = signals.recv() => {}
            }
            stopping.cancel();
            second_signal(signals).await;
        };
        let shutdown_timeout = self.options().limits.shutdown_timeout.unwrap_or(STDIO_SHUTDOWN_TIMEOUT);
        tokio::select! {
            () = scheduler.supervise(stopping.cancelled(), self.wait_until_idle(), shutdown_timeout) => {}
            () = ended => {}
        }
        self.stop_background().await;
        self.end_state(serving, shutdown_timeout).await;
        Ok(())
    }
}

impl ServerBuilder {
    /// Builds the server and [serves stdio](Server::serve_stdio) with it.
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build) and [`Server::serve_stdio`].
    pub fn serve_stdio(self) -> impl Future<Output = Result<()>> + Send {
        build_and_serve_stdio(self)
    }
}

#[inline(never)]
fn serve_stdio(server: &Server) -> ServingFuture<'_> {
    Box::pin(server.serve_stdio_until_end())
}

#[inline(never)]
fn build_and_serve_stdio(builder: ServerBuilder) -> ServingFuture<'static> {
    Box::pin(async move { serve_stdio(&builder.build()?).await })
}

/// Reads and serves requests until stdin ends or the client closes stdout.
fn read(
    mut input: impl Read,
    mut connection: StreamConnection,
    writer: &Arc<ConnectionWriter>,
    runtime: &Handle,
) -> io::Result<()> {
    let mut out = OutputBuffer::default();
    loop {
        match input.read(connection.spare_capacity()) {
            Ok(0) => break,
            Ok(bytes) => connection.advance(bytes),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        while !connection.serve_lines(&mut out) {
            runtime.block_on(writer.wait_for_capacity());
        }
        if writer.is_closed() {
            return Ok(());
        }
    }
    connection.serve_last_line(&mut out);
    Ok(())
}

/// A standard stream of the process, which the client has from the first call on; `original` keeps it for servers that
/// follow. `redirect` gives the rest of the program something else.
#[cfg(unix)]
fn take_stream(
    original: &Mutex<Option<File>>,
    stream: impl std::os::fd::AsFd,
    redirect: impl FnOnce() -> io::Result<()>,
) -> io::Result<File> {
    let mut original = original.lock();
    if let Some(file) = &*original {
        return file.try_clone();
    }
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    redirect()?;
    original.insert(file).try_clone()
}

/// The client's stdin, without the lock and the buffer of `std::io::Stdin`. From the first call on, file descriptor 0 is
/// empty: a child process that inherits it cannot read messages of the client.
#[cfg(unix)]
fn open_stdin() -> io::Result<File> {
    static CLIENT: Mutex<Option<File>> = Mutex::new(None);
    take_stream(&CLIENT, io::stdin(), || Ok(rustix::stdio::dup2_stdin(File::open("/dev/null")?)?))
}

#[cfg(windows)]
fn open_stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}

#[cfg(windows)]
fn open_stdout() -> io::Result<WriteMode> {
    use std::os::windows::io::AsHandle;
    static WARNING: std::sync::Once = std::sync::Once::new();
    WARNING.call_once(|| {
        tracing::warn!(
            "stdout carries the protocol, and on this platform a stray line breaks it\nprint to stderr only, also in logs"
        );
    });
    Ok(WriteMode::Blocking(Arc::new(File::from(io::stdout().as_handle().try_clone_to_owned()?))))
}

/// Opens stdout for the writer. Where the system allows it, a pipe is opened a second time, so that writes to it need
/// not block while the mode of the descriptor that other processes share does not change. Writes to anything else may
/// block and are made on a thread, which costs three times as much CPU if a client sends one request at a time, and
/// almost nothing if it sends many. From the first call on, file descriptor 1 is stderr, for whatever else the program
/// prints.
#[cfg(unix)]
fn open_stdout() -> io::Result<WriteMode> {
    use std::os::unix::fs::FileTypeExt;
    static CLIENT: Mutex<Option<File>> = Mutex::new(None);
    let file = take_stream(&CLIENT, io::stdout(), || Ok(rustix::stdio::dup2_stdout(io::stderr())?))?;
    if file.metadata()?.file_type().is_fifo()
        && let Some(nonblocking) = reopen_nonblocking(&file)
    {
        return Ok(WriteMode::Nonblocking { nonblocking, blocking: Arc::new(file) });
    }
    Ok(WriteMode::Blocking(Arc::new(file)))
}

#[cfg(unix)]
fn reopen_nonblocking(file: &File) -> Option<File> {
    use std::os::{fd::AsRawFd, unix::fs::OpenOptionsExt};
    /// The value is the same on each of the architectures below.
    const O_NONBLOCK: i32 = 0o4000;
    let is_known = cfg!(all(
        target_os = "linux",
        any(
            target_arch = "x86_64",
            target_arch = "x86",
            target_arch = "aarch64",
            target_arch = "arm",
            target_arch = "riscv64"
        )
    ));
    if !is_known {
        return None;
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(path).ok()
}
