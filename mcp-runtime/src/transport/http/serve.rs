//! Serves a server over HTTP: as a service for other servers, as a router, or with an accept loop of our own, which also
//! bounds connections and header times and ends gracefully.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, Sleep, sleep, timeout, timeout_at},
};

use super::{
    response::{self, ResponseBody},
    service::{Endpoint, HttpService},
};
use crate::server::{Error, Result, Server, ServerBuilder};

/// How long requests may go on after the server was told to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a connection that are read ahead.
const READ_AHEAD: usize = 64 << 10;

impl Server {
    /// This server as a tower service: one MCP endpoint, which does not look at the path of a request.
    ///
    /// Mount it where you like, such as with axum's `nest_service("/mcp", service)`, and put layers around it. Types
    /// that your middleware puts into a request's extensions reach functions if they are declared with
    /// [`caller_from`](crate::ServerBuilder::caller_from) or [`from_request`](crate::ServerBuilder::from_request). Hosts
    /// and origins are checked as on a loopback address: a public server needs
    /// [`allowed_hosts`](crate::ServerBuilder::allowed_hosts).
    ///
    /// # Errors
    /// Items have `scopes`, and nothing says who calls: neither [`caller`](crate::ServerBuilder::caller) nor
    /// [`caller_from`](crate::ServerBuilder::caller_from) nor
    /// [`trust_all_callers`](crate::ServerBuilder::trust_all_callers).
    pub fn into_service(self) -> Result<HttpService> {
        self.check_callers()?;
        Ok(HttpService(Endpoint::new(&self)))
    }

    /// This server as a router with everything that it serves over HTTP; see [`HttpService::into_router`].
    ///
    /// # Errors
    /// As [`into_service`](Self::into_service).
    #[cfg(feature = "axum")]
    pub fn into_router(self) -> Result<axum::Router> {
        Ok(self.into_service()?.into_router())
    }

    /// The path of the endpoint.
    pub(crate) fn path(&self) -> &str {
        &self.options().http.path
    }

    /// Serves over HTTP on an address until the process is told to stop, by SIGTERM or Ctrl-C.
    ///
    /// Then no connection is accepted any more, requests in flight are answered within the
    /// [drain](crate::ServerBuilder::drain) time, and this returns.
    ///
    /// # Errors
    /// The address cannot be bound, or can be reached from other machines while neither
    /// [`allowed_hosts`](crate::ServerBuilder::allowed_hosts) nor [`any_host`](crate::ServerBuilder::any_host) says
    /// for which hosts to serve; or items have `scopes`, and nothing says who calls.
    pub async fn serve_http(self, address: impl ToSocketAddrs) -> Result<()> {
        self.serve_http_on(TcpListener::bind(address).await?).await
    }

    /// Serves over HTTP on a listener until the process is told to stop; see [`serve_http`](Self::serve_http).
    ///
    /// # Errors
    /// The listener's address is public, and no hosts are named; or items have `scopes`, and nothing says who calls.
    pub async fn serve_http_on(self, listener: TcpListener) -> Result<()> {
        self.serve_http_until(listener, told_to_stop()).await
    }

    /// Serves over HTTP on a listener until `stop` is ready; see [`serve_http`](Self::serve_http).
    ///
    /// # Errors
    /// The listener's address is public, and no hosts are named; or items have `scopes`, and nothing says who calls.
    pub async fn serve_http_until(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let address = listener.local_addr()?;
        self.may_serve(address)?;
        self.check_callers()?;
        let endpoint = Endpoint::new(&self);
        let options = &endpoint.options;
        crate::server::report_forgotten();
        tracing::info!(%address, path = options.path, "serving over HTTP");
        if self.keys().is_random() {
            tracing::info!(
                "sessions and unfinished calls end with this process, since its key is random\n\
                 set `MCP_SERVER_KEYS` or `.keys(..)` so that restarts and replicas know them"
            );
        }
        accept(endpoint, listener, stop).await;
        Ok(())
    }
}

impl Server {
    /// Whether hosts are named, if others than this machine can reach an address.
    pub(crate) fn may_serve(&self, address: SocketAddr) -> Result<()> {
        let options = &self.options().http;
        if address.ip().is_loopback() || options.any_host || !options.allowed_hosts.is_empty() {
            return Ok(());
        }
        Err(Error::from(format!(
            "`{address}` can be reached from other machines\n\
             name the hosts to serve with `.allowed_hosts([..])`, or serve every host with `.any_host()`"
        )))
    }
}

impl Server {
    /// Refuses to let everyone call what only some may, and warns where callers may have been meant to be told apart.
    fn check_callers(&self) -> Result<()> {
        let options = &self.options().http;
        if options.caller.is_some() {
            return Ok(());
        }
        for name in &options.suspects {
            tracing::warn!(
                "`{name}` of `.from_request` seems to say who calls, but nothing is bound to it\n\
                 declare it with `.caller_from::<{name}>()`, so that sessions and tasks belong to their callers"
            );
        }
        if options.trusts_all {
            return Ok(());
        }
        let scoped = self.serve_without_callers();
        if scoped.is_empty() {
            return Ok(());
        }
        Err(Error::from(format!(
            "these items have `scopes`, but over HTTP nothing says who calls: {}\n\
             tell callers apart with `.caller(..)` or `.caller_from::<T>()`, or let everyone call them with \
             `.trust_all_callers()`",
            scoped.join(", ")
        )))
    }
}

impl ServerBuilder {
    /// Builds the server and makes a [service](Server::into_service) of it.
    ///
    /// # Errors
    /// What [`build`](Self::build) and [`Server::into_service`] say.
    pub fn into_service(self) -> Result<HttpService> {
        self.build()?.into_service()
    }

    /// Builds the server and makes a [router](Server::into_router) of it.
    ///
    /// # Errors
    /// What [`build`](Self::build) and [`Server::into_router`] say.
    #[cfg(feature = "axum")]
    pub fn into_router(self) -> Result<axum::Router> {
        self.build()?.into_router()
    }

    /// Builds the server and [serves HTTP](Server::serve_http) with it.
    ///
    /// # Errors
    /// What [`build`](Self::build) and [`Server::serve_http`] say.
    pub async fn serve_http(self, address: impl ToSocketAddrs) -> Result<()> {
        self.build()?.serve_http(address).await
    }
}

#[cfg(feature = "axum")]
impl HttpService {
    /// A router with everything that the server serves over HTTP: the endpoint at `/mcp`, unless
    /// [`path`](crate::ServerBuilder::path) says otherwise, and HTTP+SSE where that is switched on.
    ///
    /// It is a whole site: merge it into a router beside your own routes. To mount only the endpoint, or under another
    /// path, mount the service itself.
    pub fn into_router(self) -> axum::Router {
        let endpoint = self.0;
        let (path, sse) = (endpoint.options.path.clone(), endpoint.options.sse_path.clone());
        let answer = {
            let endpoint = endpoint.clone();
            move |request: axum::extract::Request| async move {
                endpoint.answer(request).await.map(axum::body::Body::new)
            }
        };
        let router = axum::Router::new().route(&path, axum::routing::any(answer));
        let Some(path) = sse else { return router };
        let answer = move |request: axum::extract::Request| async move {
            endpoint.answer_sse(request).await.map(axum::body::Body::new)
        };
        router.route(&path, axum::routing::any(answer))
    }
}

/// How long a client of HTTP+SSE may take for the end of its stream, after the calls there have had their time to end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The accept loop.
async fn accept(endpoint: Arc<Endpoint>, listener: TcpListener, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(endpoint.options.max_connections.min(Semaphore::MAX_PERMITS)));
    let (stopping, told) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let Ok(place) = place else { break };
        match accepted {
            Ok((socket, _)) => {
                // a reply is one write, which must not wait for the acknowledgement of the one before
                let _best_effort = socket.set_nodelay(true);
                tokio::spawn(serve(endpoint.clone(), socket, place, told.clone()));
            }
            Err(error) => refused(&error).await,
        }
    }
    drop((listener, told));
    let deadline = Instant::now() + endpoint.server.options().drain.unwrap_or(PATIENCE);
    endpoint.stop();
    drop(stopping);
    // each connection ends by itself within the drain time
    let all = u32::try_from(endpoint.options.max_connections).unwrap_or(u32::MAX);
    let _all_closed = places.acquire_many(all).await;
    let tasks = endpoint.server.tasks();
    if timeout_at(deadline, tasks.wait_until_idle()).await.is_err() {
        tracing::warn!("tasks were still running when the time to end was over; they were cancelled");
        tasks.stop();
    }
}

/// Accepting failed: for one connection, or because the process has no more file descriptors.
async fn refused(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "cannot accept connections");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Serves one connection.
async fn serve(
    endpoint: Arc<Endpoint>,
    socket: TcpStream,
    _place: OwnedSemaphorePermit,
    mut told: watch::Receiver<()>,
) {
    let options = endpoint.server.options();
    let (patience, write_timeout) = (options.drain.unwrap_or(PATIENCE), options.write_timeout);
    let header_timeout = endpoint.options.header_timeout;
    let sse = Arc::new(AtomicBool::new(false));
    let is_sse = sse.clone();
    let service = service_fn(move |request| {
        let (endpoint, is_sse) = (endpoint.clone(), is_sse.clone());
        async move { Ok::<_, Infallible>(answer(&endpoint, request, &is_sse).await) }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(READ_AHEAD)
            .serve_connection(TokioIo::new(WriteTimeout::new(socket, write_timeout)), service)
    );
    tokio::select! {
        biased;
        // clients break off all the time: no one is left to tell
        _ = connection.as_mut() => return,
        _ = told.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let in_time = timeout(patience, connection.as_mut()).await.is_ok();
    if !in_time && sse.load(Ordering::Relaxed) {
        let _in_time = timeout(LAST_WORDS, connection).await;
    }
}

/// A stream with a limit on writes that wait: a client that reads nothing for too long loses its connection.
#[derive(Debug)]
struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    /// Set while a write waits.
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl<S> WriteTimeout<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, timer: None, waiting: false }
    }

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

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
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

/// Answers one request, to whichever path it is.
async fn answer(
    endpoint: &Arc<Endpoint>,
    request: Request<Incoming>,
    is_sse: &AtomicBool,
) -> Response<ResponseBody> {
    let path = request.uri().path();
    if path == endpoint.options.path {
        endpoint.answer(request).await
    } else if endpoint.options.sse_path.as_deref() == Some(path) {
        // the only thing that the connection can bring from then on is its stream
        is_sse.fetch_or(request.method() == Method::GET, Ordering::Relaxed);
        endpoint.answer_sse(request).await
    } else {
        response::empty(StatusCode::NOT_FOUND)
    }
}

/// Ready when the process gets SIGTERM or Ctrl-C.
async fn told_to_stop() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminated) => tokio::select! {
                () = interrupted => {}
                _ = terminated.recv() => {}
            },
            Err(_) => interrupted.await,
        }
    }
    #[cfg(not(unix))]
    interrupted.await;
}
