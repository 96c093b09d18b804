//! Serves a server over HTTP: in a user's router, or with an accept loop of our own, which also bounds connections
//! and header times and ends gracefully.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, http::StatusCode, routing::any};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{Instant, timeout, timeout_at},
};

use super::{endpoint::Endpoint, reply};
use crate::server::{Error, Result, Server};

impl Server {
    /// This server as a router with one route, `/mcp` unless [`path`](crate::ServerBuilder::path) says otherwise.
    ///
    /// Merge it into a router beside your own routes, nest it, put layers around it. Types that your middleware puts
    /// into a request's extensions reach functions if they are declared with
    /// [`from_request`](crate::ServerBuilder::from_request). Hosts and origins are checked as on a loopback address:
    /// a public server needs [`allowed_hosts`](crate::ServerBuilder::allowed_hosts).
    pub fn into_router(self) -> Router {
        let endpoint = Endpoint::new(&self);
        let paths = endpoint.options.paths();
        let answer = move |request: Request| {
            let endpoint = endpoint.clone();
            async move { endpoint.answer(request).await.map(Body::new) }
        };
        paths.iter().fold(Router::new(), |router, path| router.route(path, any(answer.clone())))
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
    /// for which hosts to serve.
    pub async fn serve_http(self, address: impl ToSocketAddrs) -> Result<()> {
        self.serve_http_on(TcpListener::bind(address).await?).await
    }

    /// Serves over HTTP on a listener until the process is told to stop; see [`serve_http`](Self::serve_http).
    ///
    /// # Errors
    /// The listener's address is public, and no hosts are named.
    pub async fn serve_http_on(self, listener: TcpListener) -> Result<()> {
        self.serve_http_until(listener, told_to_stop()).await
    }

    /// Serves over HTTP on a listener until `stop` is ready; see [`serve_http`](Self::serve_http).
    ///
    /// # Errors
    /// The listener's address is public, and no hosts are named.
    pub async fn serve_http_until(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let address = listener.local_addr()?;
        self.may_serve(address)?;
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

impl crate::ServerBuilder {
    /// Builds the server and makes a [router](Server::into_router) of it.
    ///
    /// # Errors
    /// What [`build`](Self::build) says.
    pub fn into_router(self) -> Result<Router> {
        Ok(self.build()?.into_router())
    }

    /// Builds the server and [serves HTTP](Server::serve_http) with it.
    ///
    /// # Errors
    /// What [`build`](Self::build) and [`Server::serve_http`] say.
    pub async fn serve_http(self, address: impl ToSocketAddrs) -> Result<()> {
        self.build()?.serve_http(address).await
    }
}

/// How long a client of the old transport may take for the last words on its stream, after the calls there have had
/// their time to end, and for the stream's end.
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
    let deadline = Instant::now() + endpoint.server.options().drain;
    endpoint.stop();
    drop(stopping);
    // each connection ends by itself within the drain time
    let all = u32::try_from(endpoint.options.max_connections).unwrap_or(u32::MAX);
    let _all_closed = places.acquire_many(all).await;
    let tasks = endpoint.server.tasks();
    if timeout_at(deadline, tasks.ended()).await.is_err() {
        tracing::warn!("tasks were still running when the time to end was over; they were cancelled");
        tasks.stop();
    }
}

/// Accepting failed: for one connection, or because the process has no more file descriptors.
async fn refused(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "cannot accept connections");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Serves one connection.
async fn serve(
    endpoint: Arc<Endpoint>,
    socket: TcpStream,
    _place: OwnedSemaphorePermit,
    mut told: watch::Receiver<()>,
) {
    let drain = endpoint.server.options().drain;
    let header_timeout = endpoint.options.header_timeout;
    let old = Arc::new(AtomicBool::new(false));
    let is_old = old.clone();
    let service = service_fn(move |request| {
        let endpoint = endpoint.clone();
        // the only thing that a connection can bring from then on is its stream
        is_old.fetch_or(endpoint.options.opens_old(&request), Ordering::Relaxed);
        async move {
            Ok::<_, Infallible>(if endpoint.options.serves(request.uri().path()) {
                endpoint.answer(request).await
            } else {
                reply::empty(StatusCode::NOT_FOUND)
            })
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .serve_connection(TokioIo::new(socket), service)
    );
    tokio::select! {
        biased;
        // clients break off all the time; nobody is left to be told
        _ = connection.as_mut() => return,
        _ = told.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let in_time = timeout(drain, connection.as_mut()).await.is_ok();
    if !in_time && old.load(Ordering::Relaxed) {
        let _in_time = timeout(LAST_WORDS, connection).await;
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
