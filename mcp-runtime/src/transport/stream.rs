//! Any pair of byte streams: sockets, pipes, an in-memory duplex. Programs call `Server::serve` for each connection.

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
    connection::{BURST, Opening, StreamConnection},
    writer::{Lines, Piece, Port, Writer},
};
use crate::{
    connection::RequestContext,
    server::{Result, Server},
};

/// How long calls may go on after the input has ended.
const PATIENCE: Duration = Duration::from_secs(10);

impl Server {
    /// Serves one connection, a line a message, until `reader` ends.
    ///
    /// Calls that still run then get 10 seconds to end, or what [`drain`](crate::ServerBuilder::drain) says, and are
    /// answered. Dropping the future stops the connection and all of its calls. Any number of connections can be served
    /// at once. A `writer` that takes nothing for [`write_timeout`](crate::ServerBuilder::write_timeout) ends the
    /// connection.
    ///
    /// See [custom transports](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports#custom-transports).
    ///
    /// # Errors
    /// `reader` fails. A `writer` that fails ends the connection like the end of `reader`.
    pub async fn serve<R, W>(&self, reader: R, writer: W) -> Result<()>
    where
        R: AsyncRead + Send,
        W: AsyncWrite + Send,
    {
        crate::server::report_forgotten();
        let (reader, writer) = (pin!(reader), pin!(writer));
        serve(self, reader, writer).await
    }
}

async fn serve(
    server: &Server,
    reader: Pin<&mut (dyn AsyncRead + Send + '_)>,
    mut target: Pin<&mut (dyn AsyncWrite + Send + '_)>,
) -> Result<()> {
    let writer = Writer::new(Port::Async);
    let (connection, work) = StreamConnection::new(Opening {
        server: server.clone(),
        writer: writer.clone(),
        runtime: Handle::current(),
        context: RequestContext::default(),
        requests: None,
    });
    let options = server.options();
    let mut failed = None;
    let read = async { failed = read(reader, connection, &writer).await.err() };
    tokio::select! {
        () = work.supervise(read, ready(()), options.drain.unwrap_or(PATIENCE)) => {}
        () = write(&writer, target.as_mut(), options.write_timeout) => {}
    }
    // the other side may be gone already
    let _closed = timeout(options.write_timeout, target.shutdown()).await;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

async fn read(
    mut reader: Pin<&mut (dyn AsyncRead + Send + '_)>,
    mut connection: StreamConnection,
    writer: &Arc<Writer>,
) -> io::Result<()> {
    let mut out = Lines::default();
    loop {
        match reader.read(connection.space()).await? {
            0 => break,
            bytes => connection.filled(bytes),
        }
        while connection.serve_line(&mut out) {
            if out.bytes.len() >= BURST {
                out.flush(writer);
                writer.room().await;
            }
        }
        out.flush(writer);
        if writer.is_full() {
            writer.room().await;
        }
    }
    connection.serve_rest(&mut out);
    out.flush(writer);
    Ok(())
}

/// Writes what comes; never ends, since the one who supervises sees that the writer has closed.
async fn write(writer: &Arc<Writer>, mut target: Pin<&mut (dyn AsyncWrite + Send + '_)>, limit: Duration) {
    let mut piece = Piece::default();
    while let Some(next) = writer.taken(piece).await {
        piece = next;
        if let Err(error) = write_all(&mut target, &piece.bytes, limit).await {
            writer.fail(&error);
        }
    }
    std::future::pending::<()>().await;
}

/// Writes all bytes, waiting at most that long for each step.
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
