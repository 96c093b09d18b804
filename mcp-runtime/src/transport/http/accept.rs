//! The accept loop of HTTP: limits connections and the time of their headers and writes, and ends them when it is told to stop.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, Sleep, sleep, sleep_until, timeout_at},
};

use super::{
    endpoint::Endpoint, http_error::HttpError, request_body::IncomingBody, request_connection::Peer,
    response_body::ResponseBody, service::HttpHandler,
};
use crate::{
    core::{
        admission::{Permit, Quota, Shares},
        log_limit::{LogLimit, LogLine},
        spawn::spawn,
    },
    transport::stream_connection::SHUTDOWN_TIMEOUT,
};

/// The maximum size of a connection's read buffer.
const READ_AHEAD: usize = 64 << 10;

/// How long idle connections stay open after the last one was accepted: a proxy may be sending a request on one of them.
const IDLE_GRACE: Duration = Duration::from_secs(1);
/// How long a connection may take to end after its requests have.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The accept loop, for at most this many connections at once.
pub(super) async fn accept(
    handler: Arc<HttpHandler>,
    listener: TcpListener,
    connections: usize,
    mut stop: Pin<&mut (dyn Future<Output = ()> + Send)>,
) {
    let endpoint = &handler.endpoint;
    let permits = Arc::new(Semaphore::new(connections));
    let shares = Shares::new(Quota::half(connections));
    // the connections of a proxy are those of all its clients
    let proxied = Shares::new(Quota::undivided(connections));
    let is_proxy = |peer: &Peer| {
        endpoint.options.client_address.is_some() || endpoint.options.trusted_proxies.contains(peer.address)
    };
    let (refusals, failures) = (LogLimit::new(), LogLimit::new());
    let (stop_sender, stop_receiver) = watch::channel(());
    let mut serve = |socket: TcpStream, address: SocketAddr, permit: OwnedSemaphorePermit| {
        let peer = Peer::new(address.ip());
        let shares = if is_proxy(&peer) { &proxied } else { &shares };
        let Some(share) = shares.try_acquire(&peer.owner, 1) else {
            if let Some(LogLine { suppressed }) = refusals.line() {
                tracing::warn!(
                    suppressed,
                    address = %address.ip(),
                    "connections are closed: too many are open from one address\n\
                     if it is a proxy, set `.http(|http| http.trusted_proxies([..]))`"
                );
            }
            return;
        };
        // a response is one write, which must not wait for the acknowledgement of the previous one
        let _best_effort = socket.set_nodelay(true);
        spawn(serve_connection(handler.clone(), socket, peer, (permit, share), stop_receiver.clone()));
    };
    loop {
        let next = async {
            let permit = permits.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let Ok(permit) = permit else { break };
        match accepted {
            Ok((socket, address)) => serve(socket, address, permit),
            Err(error) => pause_after_accept_error(&error, &failures).await,
        }
    }
    close_listener(listener, &permits, &mut serve);
    drop(stop_receiver);
    let limit = endpoint.server.options().limits.shutdown_timeout.unwrap_or(SHUTDOWN_TIMEOUT);
    let deadline = Instant::now() + limit;
    handler.stop();
    drop(stop_sender);
    end_connections(endpoint, &permits, connections, deadline).await;
}

/// Waits until all connections have ended, and the work of the server beside them: until the deadline, then they are cut off.
async fn end_connections(endpoint: &Endpoint, permits: &Semaphore, connections: usize, deadline: Instant) {
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let mut all_closed = pin!(permits.acquire_many(all));
    tokio::select! {
        biased;
        _ = &mut all_closed => {}
        () = sleep_until(deadline) => {
            endpoint.cut_off.fire();
            // each connection ends by itself soon
            let _all_closed = all_closed.await;
        }
    }
    endpoint.cut_off.fire();
    if timeout_at(deadline, endpoint.server.wait_until_idle()).await.is_err() {
        tracing::warn!("tasks were still running after the shutdown timeout and were cancelled");
        endpoint.server.stop_background().await;
    }
}

/// Closes a listener, and serves the connections that its queue holds: closing it resets them, also those that have sent a
/// request already.
fn close_listener(
    listener: TcpListener,
    permits: &Arc<Semaphore>,
    serve: &mut impl FnMut(TcpStream, SocketAddr, OwnedSemaphorePermit),
) {
    // tokio's listener asks the system only after its driver has been told of a connection
    let Ok(listener) = listener.into_std() else { return };
    while let Ok(permit) = permits.clone().try_acquire_owned()
        && let Ok((socket, address)) = listener.accept()
    {
        if socket.set_nonblocking(true).is_ok()
            && let Ok(socket) = TcpStream::from_std(socket)
        {
            serve(socket, address, permit);
        }
    }
}

/// Waits before the next connection is accepted if the process has run out of a resource, such as file descriptors.
async fn pause_after_accept_error(error: &io::Error, failures: &LogLimit) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        if let Some(LogLine { suppressed }) = failures.line() {
            tracing::warn!(suppressed, %error, "cannot accept connections");
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Answers one request of a connection.
fn answer(
    handler: &Arc<HttpHandler>,
    peer: &Arc<Peer>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody>, Infallible>> + use<> {
    let (version, handler) = (request.version(), handler.clone());
    let response = match handler.routes.find(request.uri().path()) {
        Some(route) => {
            let (parts, body) = request.into_parts();
            Ok(handler.clone().handle(parts, IncomingBody::Hyper(body), route, Some(peer.clone())))
        }
        None => Err(handler.routes.not_found(request.uri().path())),
    };
    async move {
        let response = match response {
            Ok(response) => response,
            Err(mut not_found) => {
                handler.close_if_stopping(&mut not_found, version);
                return Ok(not_found);
            }
        };
        let mut response = pin!(response);
        Ok(poll_fn(|cx| match response.as_mut().poll(cx) {
            // the connection polls this when it happens
            Poll::Pending if handler.endpoint.cut_off.has_fired() => {
                let mut response = HttpError::stopping().into();
                handler.close_if_stopping(&mut response, version);
                Poll::Ready(response)
            }
            polled => polled,
        })
        .await)
    }
}

/// Serves one connection.
async fn serve_connection(
    handler: Arc<HttpHandler>,
    socket: TcpStream,
    peer: Arc<Peer>,
    _permits: (OwnedSemaphorePermit, Permit),
    mut stop_receiver: watch::Receiver<()>,
) {
    let endpoint = &handler.endpoint;
    let write_timeout = endpoint.server.options().limits.write_timeout;
    let header_timeout = endpoint.options.header_timeout;
    let requests = handler.clone();
    let service = service_fn(move |request| answer(&requests, &peer, request));
    let socket = Socket::new(socket, write_timeout);
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(READ_AHEAD)
            .serve_connection(TokioIo::new(socket), service)
    );
    tokio::select! {
        biased;
        // errors mean that the client has disconnected, which is not worth reporting
        _ = connection.as_mut() => return,
        _ = stop_receiver.changed() => {}
    }
    // each response closes the connection from now on
    let mut idle = pin!(sleep(IDLE_GRACE));
    let mut cut_off = pin!(endpoint.cut_off.wait());
    let mut end = pin!(sleep(Duration::MAX));
    let (mut is_idle_closed, mut is_cut_off) = (false, false);
    loop {
        tokio::select! {
            biased;
            _ = connection.as_mut() => return,
            () = &mut idle, if !is_idle_closed => {
                is_idle_closed = true;
                connection.as_mut().graceful_shutdown();
            }
            // polls the connection again, and with it the response
            () = &mut cut_off, if !is_cut_off => {
                is_cut_off = true;
                end.as_mut().reset(Instant::now() + CLOSE_TIMEOUT);
            }
            () = &mut end, if is_cut_off && is_idle_closed => return,
        }
    }
}

/// A connection with a time limit for writes: a client that reads nothing for too long is disconnected.
struct Socket {
    stream: TcpStream,
    limit: Duration,
    /// Set while a write waits.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl Socket {
    fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, timer: None, waiting: false }
    }

    #[inline]
    fn check<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = false;
            return polled;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        if !std::mem::replace(&mut self.waiting, true) {
            timer.as_mut().reset(Instant::now() + self.limit);
        }
        timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.check(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.check(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
