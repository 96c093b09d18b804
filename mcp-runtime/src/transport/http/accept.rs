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
    http_error::HttpError, request_body::IncomingBody, request_connection::Peer, response_body::ResponseBody,
    service::HttpHandler,
};
use crate::core::{
    admission::{Permit, Quota, Shares},
    log_limit::{LogLimit, LogLine},
    spawn::spawn,
};

/// The maximum size of a connection's read buffer.
const READ_AHEAD: usize = 64 << 10;

/// How long idle connections stay open after the last one was accepted: a proxy may be sending a request on one of them.
const IDLE_GRACE: Duration = Duration::from_secs(1);
/// How long a connection may take to end after its requests have.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Accepts the connections of one server, up to a number at once, and ends all of them.
pub(super) struct Acceptor {
    handler: Arc<HttpHandler>,
    connections: usize,
    permits: Arc<Semaphore>,
    shares: Arc<Shares>,
    /// The connections of a proxy are those of all its clients.
    proxied: Arc<Shares>,
    refusals: LogLimit,
    failures: LogLimit,
    /// Dropped when no connection may stay idle any more.
    stopping: watch::Sender<()>,
}

impl Acceptor {
    /// For at most this many connections at once.
    pub(super) fn new(handler: Arc<HttpHandler>, connections: usize) -> Self {
        Self {
            handler,
            connections,
            permits: Arc::new(Semaphore::new(connections)),
            shares: Shares::new(Quota::half(connections)),
            proxied: Shares::new(Quota::undivided(connections)),
            refusals: LogLimit::new(),
            failures: LogLimit::new(),
            stopping: watch::Sender::new(()),
        }
    }

    /// Serves the connections of a listener until `stop` completes; requests then have this time to end.
    pub(super) async fn run(
        self,
        listener: TcpListener,
        mut stop: Pin<&mut (dyn Future<Output = ()> + Send)>,
        limit: Duration,
    ) {
        loop {
            let next = async {
                let permit = self.permits.clone().acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = &mut stop => break,
            };
            let Ok(permit) = permit else { break };
            match accepted {
                Ok((socket, address)) => self.serve(socket, address, permit),
                Err(error) => self.pause_after(&error).await,
            }
        }
        self.close(listener);
        self.end(Instant::now() + limit).await;
    }

    /// Serves a connection, unless its address has too many.
    fn serve(&self, socket: TcpStream, address: SocketAddr, permit: OwnedSemaphorePermit) {
        let peer = Peer::new(address.ip());
        let options = &self.handler.endpoint.options;
        let is_proxy = options.client_address.is_some() || options.trusted_proxies.contains(peer.address);
        let shares = if is_proxy { &self.proxied } else { &self.shares };
        let Some(share) = shares.try_acquire(&peer.owner, 1) else {
            if let Some(LogLine { suppressed }) = self.refusals.line() {
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
        let stopping = self.stopping.subscribe();
        spawn(serve_connection(self.handler.clone(), socket, peer, (permit, share), stopping));
    }

    /// Waits before the next connection is accepted if the process has run out of a resource, such as file descriptors.
    async fn pause_after(&self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            if let Some(LogLine { suppressed }) = self.failures.line() {
                tracing::warn!(suppressed, %error, "cannot accept connections");
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Closes a listener, and serves the connections that its queue holds: closing it resets them, also those that have sent
    /// a request already.
    fn close(&self, listener: TcpListener) {
        // tokio's listener asks the system only after its driver has been told of a connection
        let Ok(listener) = listener.into_std() else { return };
        while let Ok(permit) = self.permits.clone().try_acquire_owned()
            && let Ok((socket, address)) = listener.accept()
        {
            let socket = socket.set_nonblocking(true).and_then(|()| TcpStream::from_std(socket));
            if let Ok(socket) = socket {
                self.serve(socket, address, permit);
            }
        }
    }

    /// Waits until all connections have ended, and the work of the server beside them: until the deadline, then they are cut
    /// off.
    async fn end(self, deadline: Instant) {
        let endpoint = &self.handler.endpoint;
        self.handler.stop();
        drop(self.stopping);
        let all = u32::try_from(self.connections).unwrap_or(u32::MAX);
        let mut all_closed = pin!(self.permits.acquire_many(all));
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
