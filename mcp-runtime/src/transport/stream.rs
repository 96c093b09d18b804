//! Any pair of byte streams: sockets, pipes, an in-memory duplex. Programs call `Server::serve` for each connection.

use std::{future::ready, pin::pin, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    runtime::Handle,
};

use super::{
    BURST,
    calls::Calls,
    connection::{Connection, Replies},
    lines::Lines,
    sink::{Piece, Port, Sink},
    supervise,
};
use crate::{Result, context::Peer, server::Server};

impl Server {
    /// Serves one connection, a line a message, until `reader` ends.
    ///
    /// Calls that still run then get [`drain`](crate::ServerBuilder::drain) to end, and are answered. Dropping the
    /// future stops the connection and all of its calls. Any number of connections can be served at once.
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
        self.serve_peer(reader, writer, Peer::default()).await
    }

    /// The same for a client of whom something is known already.
    pub(crate) async fn serve_peer<R, W>(&self, reader: R, writer: W, peer: Peer) -> Result<()>
    where
        R: AsyncRead + Send,
        W: AsyncWrite + Send,
    {
        crate::server::report_forgotten();
        let (reader, writer) = (pin!(reader), pin!(writer));
        serve(self, reader, writer, peer).await
    }
}

type Pinned<'a, T> = std::pin::Pin<&'a mut T>;

async fn serve(
    server: &Server,
    mut reader: Pinned<'_, dyn AsyncRead + Send + '_>,
    mut writer: Pinned<'_, dyn AsyncWrite + Send + '_>,
    peer: Peer,
) -> Result<()> {
    let sink = Sink::new(Port::Backlog);
    let calls = Calls::new(server.clone(), Arc::clone(&sink), Handle::current());
    let mut connection = Connection::new(server.clone(), Arc::clone(&calls), Arc::clone(&sink), peer);
    let mut failed = None;
    let read = async {
        let mut lines = Lines::new(server.options().max_line);
        let mut out = Replies::default();
        loop {
            match reader.read(lines.space()).await {
                Ok(0) => break,
                Ok(bytes) => lines.filled(bytes),
                Err(error) => {
                    failed = Some(error);
                    return;
                }
            }
            while let Some(line) = lines.next() {
                connection.line(&line, &mut out);
                if out.bytes.len() >= BURST {
                    out.flush(&sink);
                    sink.room().await;
                }
            }
            out.flush(&sink);
            if sink.is_full() {
                sink.room().await;
            }
        }
        if let Some(line) = lines.rest() {
            connection.line(&line, &mut out);
            out.flush(&sink);
        }
    };
    let write = async {
        let mut piece = Piece::default();
        while let Some(next) = sink.taken(piece).await {
            piece = next;
            if let Err(error) = write(&mut writer, &piece.bytes).await {
                sink.fail(&error);
            }
        }
        // whoever supervises sees that the sink has closed
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = supervise(&sink, &calls, read, ready(()), server.options().drain) => {}
        () = write => {}
    }
    // the other side may be gone already
    let _closed = writer.shutdown().await;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

async fn write(writer: &mut Pinned<'_, dyn AsyncWrite + Send + '_>, bytes: &[u8]) -> std::io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}
