//! Serves a server over HTTP: as a tower service, as an axum router, or with the accept loop of `accept.rs`.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::{Pin, pin},
};

use tokio::{
    net::{TcpListener, ToSocketAddrs},
    sync::{Semaphore, oneshot},
    time::sleep,
};

use super::{
    accept::Acceptor,
    open_files::max_connections,
    request_body::IncomingBody,
    service::{HttpHandler, HttpService, Route},
};
use crate::{
    core::server::{Error, Result, Server, ServerBuilder},
    transport::{
        ServingFuture,
        signal::{StopSignals, second_signal},
        stream_connection::SHUTDOWN_TIMEOUT,
    },
};

impl Server {
    /// This server as a tower service: one MCP endpoint, which does not look at the path of a request.
    ///
    /// Mount it anywhere, for example with axum's `nest_service("/mcp", service)`, and add layers to it. Types that
    /// your middleware puts into a request's extensions are available to functions if they are declared with
    /// [`caller_from`](crate::config::HttpOptions::caller_from) or
    /// [`from_request`](crate::config::HttpOptions::from_request). Hosts and origins are checked as on a loopback
    /// address: a public server needs [`allowed_hosts`](crate::config::HttpOptions::allowed_hosts).
    ///
    /// # Errors
    /// Items have `scopes`, and callers are not identified: none of [`caller`](crate::config::HttpOptions::caller),
    /// [`caller_from`](crate::config::HttpOptions::caller_from) and
    /// [`trust_all_callers`](crate::config::HttpOptions::trust_all_callers) is used.
    pub fn into_service(self) -> Result<HttpService> {
        #[cfg(feature = "config")]
        self.check_settings()?;
        self.check_callers()?;
        self.check_store()?;
        self.keys().warn_of_unread_environment();
        Ok(HttpService(HttpHandler::new(&self, None)))
    }

    /// This server as a router with everything that it serves over HTTP, to merge into a router with any axum state; see
    /// [`HttpService::into_router`], where the service beside the router can stop it.
    ///
    /// # Errors
    /// Returns the errors of [`into_service`](Self::into_service).
    #[cfg(feature = "axum")]
    pub fn into_router<S>(self) -> Result<axum::Router<S>> {
        let warning = self.warning_of_urls();
        let service = self.into_service()?;
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
        Ok(service.into_router())
    }

    /// The path of the endpoint.
    pub(crate) fn path(&self) -> &str {
        &self.options().http.path
    }

    /// Serves over HTTP on a port of `127.0.0.1`, such as `8080`, or on an address, such as `"0.0.0.0:8080"`, until the
    /// process receives SIGTERM or Ctrl-C.
    ///
    /// From then on every response says `Connection: close`. After the
    /// [shutdown delay](crate::config::HttpOptions::shutdown_delay) the server accepts no more connections, closes those
    /// that have been idle for another second, finishes the requests in flight within the
    /// [shutdown timeout](crate::config::Limits::shutdown_timeout), and returns; calls that do not finish are answered
    /// with an error. A second signal makes this return at once, and ends the process within a second, with exit code 0.
    ///
    /// # Errors
    /// The address cannot be bound, or can be reached from other machines while neither
    /// [`allowed_hosts`](crate::config::HttpOptions::allowed_hosts) nor
    /// [`any_host`](crate::config::HttpOptions::any_host) is used; or items have `scopes`, and callers are not
    /// identified.
    pub async fn serve_http<M>(self, address: impl ListenAddress<M>) -> Result<()> {
        serve_bound(self, address.bind().await).await
    }

    /// Serves over HTTP on a listener until SIGTERM or Ctrl-C; see [`serve_http`](Self::serve_http).
    ///
    /// # Errors
    /// The listener's address is public, and no hosts are allowed; or items have `scopes`, and callers are not
    /// identified.
    pub fn serve_http_on(self, listener: TcpListener) -> impl Future<Output = Result<()>> + Send {
        serve_until_signal(self, listener)
    }

    /// Serves over HTTP on a listener until `stop` completes; see [`serve_http`](Self::serve_http).
    ///
    /// # Errors
    /// The listener's address is public, and no hosts are allowed; or items have `scopes`, and callers are not
    /// identified.
    pub fn serve_http_until<'a>(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'a,
    ) -> impl Future<Output = Result<()>> + Send {
        serve_until(self, listener, Box::pin(stop))
    }

    async fn serve_until(self, listener: TcpListener, stop: impl Future<Output = ()> + Send) -> Result<()> {
        let address = listener.local_addr()?;
        self.check_before_serving(address)?;
        let serving = self.open().await?;
        let connections = max_connections(self.options().http.max_connections.min(Semaphore::MAX_PERMITS));
        let handler = HttpHandler::new(&self, Some(connections));
        crate::core::server::warn_of_unregistered_items();
        self.keys().warn_of_unread_environment();
        if let Some(warning) = self.warning_of_urls() {
            tracing::warn!("{warning}");
        }
        for warning in self.warnings_of_address(address) {
            tracing::warn!(%address, "{warning}");
        }
        tracing::info!(%address, path = self.path(), "serving over HTTP");
        if self.keys().is_random() {
            tracing::info!(
                "sessions and unfinished calls end with this process, since its key is random\n\
                 set keys with `.stores(|stores| stores.keys(..))` or `.stores(|stores| stores.keys_from_env())`, \
                 with which they survive restarts and replicas share them"
            );
        }
        #[cfg(feature = "metrics")]
        let _metrics = self.serve_metrics().await?;
        let delay = self.options().http.shutdown_delay;
        let endpoint = handler.endpoint.clone();
        let stop = pin!(async move {
            stop.await;
            endpoint.announce_stop();
            if !delay.is_zero() {
                sleep(delay).await;
            }
        });
        let limit = self.options().limits.shutdown_timeout.unwrap_or(SHUTDOWN_TIMEOUT);
        Acceptor::new(handler, connections).run(listener, stop, limit).await;
        self.end_state(serving, limit).await;
        Ok(())
    }
}

#[inline(never)]
fn serve_until<'a>(
    server: Server,
    listener: TcpListener,
    stop: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
) -> ServingFuture<'a> {
    Box::pin(server.serve_until(listener, stop))
}

#[inline(never)]
fn serve_until_signal(server: Server, listener: TcpListener) -> ServingFuture<'static> {
    Box::pin(async move {
        let mut signals = StopSignals::new();
        let (stopping, is_stopping) = oneshot::channel();
        let first = async move {
            signals.recv().await;
            // dropped only together with this
            let _received = stopping.send(signals);
        };
        let second = async {
            match is_stopping.await {
                Ok(signals) => second_signal(signals).await,
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            served = server.serve_until(listener, first) => served,
            () = second => Ok(()),
        }
    })
}

/// Where a server listens: a port of the loopback interface, or an address. `M` tells the two apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an address to listen on",
    label = "neither a port nor an address",
    note = "write a port of 127.0.0.1, such as `8080`, or an address, such as `\"0.0.0.0:8080\"`"
)]
pub trait ListenAddress<M> {
    #[doc(hidden)]
    fn bind(self) -> impl Future<Output = io::Result<TcpListener>>;
}

/// Marks a port.
#[derive(Debug)]
pub struct LoopbackPort;

/// Marks an address.
#[derive(Debug)]
pub struct SocketAddress;

#[diagnostic::do_not_recommend]
impl ListenAddress<LoopbackPort> for u16 {
    fn bind(self) -> impl Future<Output = io::Result<TcpListener>> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, self))
    }
}

#[diagnostic::do_not_recommend]
impl<A: ToSocketAddrs> ListenAddress<SocketAddress> for A {
    fn bind(self) -> impl Future<Output = io::Result<TcpListener>> {
        TcpListener::bind(self)
    }
}

/// Serves until a signal, if there is a listener.
#[inline(never)]
fn serve_bound(server: Server, bound: io::Result<TcpListener>) -> ServingFuture<'static> {
    match bound {
        Ok(listener) => serve_until_signal(server, listener),
        Err(error) => {
            let error = Error::serve("cannot listen on the address").caused_by(error);
            Box::pin(std::future::ready(Err(error)))
        }
    }
}

impl Server {
    /// Checks whether this server can be served on an address.
    pub(crate) fn check_before_serving(&self, address: SocketAddr) -> Result<()> {
        #[cfg(feature = "config")]
        self.check_settings()?;
        self.check_address(address)?;
        self.check_callers()
    }

    /// Checks that the hosts to serve are listed if other machines can reach an address.
    fn check_address(&self, address: SocketAddr) -> Result<()> {
        let options = &self.options().http;
        if address.ip().is_loopback() || options.any_host || !options.allowed_hosts.is_empty() {
            return Ok(());
        }
        Err(Error::serve(format!(
            "`{address}` can be reached from other machines\n\
             name the hosts to serve with `.http(|http| http.allowed_hosts([..]))`, or serve every host with `.http(|http| http.any_host())`"
        )))
    }
}

impl Server {
    /// Warnings about the requests that other machines can send to a server on that address, unless the options permit them.
    fn warnings_of_address(&self, address: SocketAddr) -> Vec<&'static str> {
        let options = &self.options().http;
        let mut warnings = Vec::new();
        if address.ip().is_loopback() {
            return warnings;
        }
        if !options.is_behind_proxy() {
            warnings.push(
                "serving plain HTTP to other machines: requests and tokens can be read on the way\n\
                 put a proxy with TLS in front, and write `.http(|http| http.behind_proxy())`",
            );
        }
        if !options.identifies_callers() && !options.trusts_all {
            warnings.push(
                "serving other machines without knowing who calls: every client may call everything\n\
                 identify callers with `.auth(..)` or `.http(|http| http.caller(..))`, or write `.http(|http| http.trust_all_callers())`",
            );
        }
        #[cfg(feature = "metrics")]
        warnings.extend(self.warning_of_metrics());
        warnings
    }

    /// A warning about a URL that is published to clients, if the endpoint seems not to be there; the same URL is not worth
    /// a second one.
    fn warning_of_urls(&self) -> Option<String> {
        #[cfg(feature = "auth")]
        if let Some(warning) = self.warning_of_resource() {
            return Some(warning);
        }
        #[cfg(feature = "server-card")]
        if let Some(warning) = self.warning_of_card() {
            return Some(warning);
        }
        None
    }

    /// Refuses to serve items with `scopes` to callers that are not identified.
    fn check_callers(&self) -> Result<()> {
        let options = &self.options().http;
        if options.identifies_callers() || options.trusts_all {
            return Ok(());
        }
        let (problem, everyone) = if self.options().lists.visible.is_some() {
            let problem = "`.lists(|lists| lists.visible(..))` decides by the caller, but callers are not identified over HTTP";
            (problem.to_owned(), "see everything")
        } else {
            let scoped = self.serve_without_callers();
            if scoped.is_empty() {
                return Ok(());
            }
            let items = scoped.join(", ");
            let problem = "these items have `scopes`, but callers are not identified over HTTP";
            (format!("{problem}: {items}"), "call the items")
        };
        Err(Error::serve(format!(
            "{problem}\n\
             identify them with `.auth(..)` (feature `auth`), `.http(|http| http.caller(..))` or \
             `.http(|http| http.caller_from::<T>())`, or let everyone {everyone} with \
             `.http(|http| http.trust_all_callers())`"
        )))
    }
}

impl ServerBuilder {
    /// Builds the server and makes a [service](Server::into_service) of it.
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build) and [`Server::into_service`].
    pub fn into_service(self) -> Result<HttpService> {
        self.build()?.into_service()
    }

    /// Builds the server and makes a [router](Server::into_router) of it.
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build) and [`Server::into_router`].
    #[cfg(feature = "axum")]
    pub fn into_router<S>(self) -> Result<axum::Router<S>> {
        self.build()?.into_router()
    }

    /// Builds the server and [serves HTTP](Server::serve_http) with it.
    ///
    /// # Errors
    /// Returns the errors of [`build`](Self::build) and [`Server::serve_http`].
    #[doc(alias("address", "bind", "listen", "port"))]
    pub fn serve_http<M>(self, address: impl ListenAddress<M>) -> impl Future<Output = Result<()>> {
        let built = self.build();
        async move { built?.serve_http(address).await }
    }
}

#[cfg(feature = "axum")]
impl HttpService {
    /// A router with everything that the server serves over HTTP: the endpoint at `/mcp`, unless
    /// [`path`](crate::config::HttpOptions::path) sets another path, HTTP+SSE if it is enabled, and the paths for
    /// [probes](crate::config::HttpOptions::health_paths).
    ///
    /// Its paths are absolute: merge it into a router with your own routes, of any axum state `S`. To mount only the endpoint, or under
    /// another path, mount the service itself.
    ///
    /// A clone of the service [stops](Self::stop) the router: its streams, and what probes are told.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let mcp = mcp_runtime::server!().into_service()?;
    /// let app: axum::Router = mcp.clone().into_router();
    /// // when the program is told to stop, before the graceful shutdown of its HTTP server
    /// mcp.stop();
    /// # drop(app);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_router<S>(self) -> axum::Router<S> {
        self.router(|_, _| true)
    }

    /// A router with what the server publishes at the root of its host, wherever the service itself is mounted: with
    /// `Oauth` the metadata of the protected resource, at `/.well-known/oauth-protected-resource`,
    /// with and without the path of the resource; with a [server card](crate::guide::server_card) the catalog that leads to
    /// it; the [routes](crate::addition::Addition::route) of additions.
    ///
    /// ```
    /// # fn main() -> mcp_runtime::Result<()> {
    /// let mcp = mcp_runtime::server!().into_service()?;
    /// let app: axum::Router =
    ///     axum::Router::new().merge(mcp.metadata_router()).nest_service("/tools/mcp", mcp);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`into_router`](Self::into_router) contains these routes.
    pub fn metadata_router<S>(&self) -> axum::Router<S> {
        // the card is beside the endpoint, which answers for it
        self.router(|path, route| match route {
            Route::Added(_) => true,
            Route::Mcp | Route::HttpSse => false,
            _ => path.starts_with("/.well-known/"),
        })
    }

    /// A router with those of the paths.
    fn router<S>(&self, has: fn(&str, Route) -> bool) -> axum::Router<S> {
        let routes = self.0.routes.iter().filter(|(path, route)| has(path, *route));
        let router = routes.fold(axum::Router::new(), |router, (path, route)| {
            let handler = self.0.clone();
            let answer = move |request: axum::extract::Request| {
                let (parts, body) = request.into_parts();
                let response = handler.handle(parts, IncomingBody::Axum(body), route, None);
                async move { response.await.map(axum::body::Body::new) }
            };
            router.route(path, axum::routing::any(answer))
        });
        router.with_state(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::config::HttpOptions;

    #[test]
    fn a_public_address_is_served_with_a_warning_for_each_thing_that_nothing_says_is_intended() {
        let warnings = |set: fn(HttpOptions) -> HttpOptions, address: &str| {
            let server = Server::builder("public", "1").http(set).build().unwrap();
            let warnings = server.warnings_of_address(address.parse().unwrap());
            warnings
                .iter()
                .map(|warning| warning.split([' ', ':']).take(3).collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
        };
        let (plain, unknown) = ("serving plain HTTP", "serving other machines");
        assert_eq!(warnings(|http| http, "0.0.0.0:80"), [plain, unknown]);
        assert_eq!(warnings(|http| http, "[::]:80"), [plain, unknown]);
        for address in ["127.0.0.1:80", "127.1.2.3:80", "[::1]:80"] {
            assert!(warnings(|http| http, address).is_empty(), "{address}");
        }
        assert_eq!(warnings(HttpOptions::behind_proxy, "10.0.0.1:80"), [unknown]);
        assert_eq!(warnings(|http| http.client_address(|_, _| None), "10.0.0.1:80"), [unknown]);
        assert_eq!(warnings(|http| http.caller(|_| None), "10.0.0.1:80"), [plain]);
        assert!(warnings(|http| http.behind_proxy().trust_all_callers(), "10.0.0.1:80").is_empty());
    }

    #[cfg(feature = "metrics")]
    #[test]
    fn metrics_beside_an_endpoint_that_others_reach_are_a_warning() {
        let builder =
            Server::builder("public", "1").telemetry(|telemetry| telemetry.metrics_path("/metrics"));
        let server = builder.http(|http| http.behind_proxy().trust_all_callers()).build().unwrap();
        let warnings = |address: &str| server.warnings_of_address(address.parse().unwrap());
        assert!(warnings("0.0.0.0:80")[0].contains("metrics_address"), "{:?}", warnings("0.0.0.0:80"));
        assert!(warnings("127.0.0.1:80").is_empty());
    }

    #[cfg(feature = "auth")]
    #[test]
    fn a_resource_whose_path_is_not_served_is_a_warning() {
        let warning = |resource: &str, path: &str| {
            let oauth = crate::auth::Oauth::issuer("https://id.example.com").resource(resource);
            let builder = Server::builder("a", "1").auth(oauth).http(|http| http.path(path));
            builder.build().unwrap().warning_of_urls()
        };
        assert_eq!(warning("https://example.com/mcp", "/mcp"), None);
        assert_eq!(warning("https://example.com/tools/mcp/", "/mcp"), None, "a proxy may remove the prefix");
        for (resource, path, fix) in [
            ("https://example.com", "/mcp", "http.path(\"/\")"),
            ("https://example.com/tools", "/mcp", "http.path(\"/tools\")"),
        ] {
            let text = warning(resource, path).unwrap();
            assert!(text.contains(resource) && text.contains(fix), "{text}");
        }
    }
}
