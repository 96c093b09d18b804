//! `Server::serve`: one connection over any pair of byte streams, such as a socket, pipes or an in-memory duplex.

use std::{
    future::ready,
    io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    runtime::Handle,
    time::timeout,
};

use super::{
    ServingFuture,
    stream_connection::{ConnectionParts, SHUTDOWN_TIMEOUT, StreamConnection},
    writer::{BacklogChunk, ConnectionWriter, OutputBuffer, WriteMode},
};
use crate::core::server::{Result, Server};

impl Server {
    /// Serves one connection, one message per line, until `reader` ends.
    ///
    /// Calls that are still running then have 10 seconds to finish, or the time set with
    /// [`shutdown_timeout`](crate::config::Limits::shutdown_timeout), and are answered. Dropping the future stops the
    /// connection and all of its calls. Any number of connections can be served concurrently. If `writer` accepts
    /// nothing for [`write_timeout`](crate::config::Limits::write_timeout), the connection ends.
    ///
    /// See [custom transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-transports).
    ///
    /// # Errors
    /// `reader` fails. If `writer` fails, the connection ends as it does with the end of `reader`.
    pub async fn serve<R, W>(&self, reader: R, writer: W) -> Result<()>
    where
        R: AsyncRead + Send,
        W: AsyncWrite + Send,
    {
        crate::core::server::warn_of_unregistered_items();
        let (reader, writer) = (pin!(reader), pin!(writer));
        serve(self, reader, writer).await
    }
}

#[inline(never)]
fn serve<'a>(
    server: &'a Server,
    reader: Pin<&'a mut (dyn AsyncRead + Send + 'a)>,
    writer: Pin<&'a mut (dyn AsyncWrite + Send + 'a)>,
) -> ServingFuture<'a> {
    Box::pin(serve_until_end(server, reader, writer))
}

async fn serve_until_end(
    server: &Server,
    reader: Pin<&mut (dyn AsyncRead + Send + '_)>,
    mut target: Pin<&mut (dyn AsyncWrite + Send + '_)>,
) -> Result<()> {
    let _serving = server.open().await?;
    let writer = ConnectionWriter::new(WriteMode::Async);
    let (connection, scheduler) = StreamConnection::new(ConnectionParts {
        server: server.clone(),
        writer: writer.clone(),
        runtime: Handle::current(),
        context: server.host_context(),
        requests: None,
    });
    let options = server.options();
    let mut read_error = None;
    let read = async { read_error = read(reader, connection, &writer).await.err() };
    tokio::select! {
        () = scheduler.supervise(read, ready(()), options.limits.shutdown_timeout.unwrap_or(SHUTDOWN_TIMEOUT)) => {}
        () = write(&writer, target.as_mut(), options.limits.write_timeout) => {}
    }
    // fails if the client has disconnected
    let _closed = timeout(options.limits.write_timeout, target.shutdown()).await;
    read_error.map_or(Ok(()), |error| Err(error.into()))
}

async fn read(
    mut reader: Pin<&mut (dyn AsyncRead + Send + '_)>,
    mut connection: StreamConnection,
    writer: &Arc<ConnectionWriter>,
) -> io::Result<()> {
    let mut out = OutputBuffer::default();
    loop {
        match reader.read(connection.spare_capacity()).await? {
            0 => break,
            bytes => connection.advance(bytes),
        }
        while !connection.serve_lines(&mut out) {
            writer.wait_for_capacity().await;
        }
    }
    connection.serve_last_line(&mut out);
    Ok(())
}

/// Writes the backlog; never completes, since `supervise` ends when the writer has closed.
async fn write(
    writer: &Arc<ConnectionWriter>,
    mut target: Pin<&mut (dyn AsyncWrite + Send + '_)>,
    limit: Duration,
) {
    let mut chunk = BacklogChunk::default();
    while let Some(next) = writer.next_chunk(chunk).await {
        chunk = next;
        if let Err(error) = write_all(&mut target, &chunk.bytes, limit).await {
            writer.close(&error);
        }
    }
    std::future::pending::<()>().await;
}

/// Writes all bytes; each write and the flush may take at most `limit`.
async fn write_all(
    target: &mut Pin<&mut (dyn AsyncWrite + Send + '_)>,
    mut bytes: &[u8],
    limit: Duration,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match timeout(limit, target.write(bytes)).await?? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = bytes.get(written..).unwrap_or_default(),
        }
    }
    timeout(limit, target.flush()).await?
}
