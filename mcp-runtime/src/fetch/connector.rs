//! Opens connections: TCP to addresses that are admitted, TLS, and the proxies of the environment.
//!
//! The addresses of a name are checked before one of them is connected to, so that a later change of the name has no effect.
//! A proxy resolves names itself; for a URL that goes through a proxy, only the text is checked.

use std::{
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
    vec,
};

use http::{Uri, uri::Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector, dns::Name},
    rt::TokioIo,
};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;
use url::{Host, Url};

use crate::core::{admission::Owner, resolver::Resolver};

tokio::task_local! {
    /// Who looks a name up, if that is not the program: set while a request of theirs is sent.
    pub(super) static PAYER: Owner;
}

/// Whether an address may be connected to; addresses of IPv4 are not written as those of IPv6.
pub(super) type AddressRule = fn(IpAddr) -> bool;

type ConnectError = Box<dyn std::error::Error + Send + Sync>;
type ConnectFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How long a peer may be silent before the connection is probed, and between two probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 3;
/// How long sent bytes may stay unacknowledged.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Opens connections for one client.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector<GuardedResolver>,
    admits: AddressRule,
    tls: Arc<ClientConfig>,
    proxies: Proxies,
    limit: Duration,
}

impl Connector {
    /// `limit` is for one connection, from the look-up of its name to the end of its handshakes.
    pub(super) fn new(
        admits: AddressRule,
        resolver: Resolver,
        tls: Arc<ClientConfig>,
        proxies: Proxies,
        limit: Duration,
    ) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(GuardedResolver { admits, resolver });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        Self { tcp, admits, tls, proxies, limit }
    }

    async fn connect(self, target: Uri) -> Result<HttpStream, ConnectError> {
        let opened = async {
            match self.proxies.of(&target) {
                Some(proxy) => self.connect_through(proxy, &target).await,
                None => self.connect_directly(&target).await,
            }
        };
        timeout(self.limit, opened).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn connect_directly(&self, target: &Uri) -> Result<HttpStream, ConnectError> {
        let refused = || ConnectError::from("it is not an address that may be connected to");
        // an address is not resolved
        let literal = host_of(target)?.parse::<IpAddr>();
        if literal.is_ok_and(|address| !(self.admits)(address.to_canonical())) {
            return Err(refused());
        }
        let stream = self.tcp.clone().call(target.clone()).await?;
        let peer = stream.inner().peer_addr()?;
        if !(self.admits)(peer.ip().to_canonical()) {
            return Err(refused());
        }
        let stream = HttpStream { io: Box::new(stream), peer: Some(peer), is_forwarded: false };
        if target.scheme() == Some(&Scheme::HTTPS) { self.secure(stream, target).await } else { Ok(stream) }
    }

    /// TLS over an open connection.
    async fn secure(&self, stream: HttpStream, target: &Uri) -> Result<HttpStream, ConnectError> {
        let name = ServerName::try_from(host_of(target)?)?.to_owned();
        let peer = stream.peer;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, TokioIo::new(stream)).await?;
        Ok(HttpStream { io: Box::new(TokioIo::new(stream)), peer, is_forwarded: false })
    }

    #[cfg(feature = "client")]
    async fn connect_through(&self, proxy: Proxy, target: &Uri) -> Result<HttpStream, ConnectError> {
        use hyper_util::client::legacy::connect::proxy::Tunnel;
        if !matches!(proxy.uri().scheme_str(), Some("http" | "https")) {
            return Err(
                "the proxy of the environment is of a kind that is not supported: `http:` and `https:` are"
                    .into(),
            );
        }
        // the program's environment names it, and no document
        let to_proxy = Self::new(|_| true, Resolver::system(), self.tls.clone(), Proxies::none(), self.limit);
        if target.scheme() != Some(&Scheme::HTTPS) {
            let stream = to_proxy.connect_directly(proxy.uri()).await?;
            return Ok(HttpStream { peer: None, is_forwarded: true, ..stream });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let stream = tunnel.call(target.clone()).await?;
        self.secure(HttpStream { peer: None, ..stream }, target).await
    }

    #[cfg(not(feature = "client"))]
    async fn connect_through(&self, proxy: Proxy, _target: &Uri) -> Result<HttpStream, ConnectError> {
        match proxy {}
    }
}

impl Service<Uri> for Connector {
    type Response = HttpStream;
    type Error = ConnectError;
    type Future = ConnectFuture<Result<HttpStream, ConnectError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        Box::pin(self.clone().connect(target))
    }
}

/// The host of a URL, an address of IPv6 without its brackets.
fn host_of(target: &Uri) -> Result<&str, ConnectError> {
    Ok(target.host().ok_or("the URL has no host")?.trim_matches(['[', ']']))
}

#[cfg(feature = "client")]
type Proxy = hyper_util::client::proxy::matcher::Intercept;
#[cfg(not(feature = "client"))]
type Proxy = std::convert::Infallible;

/// The proxies of the environment, if they are used.
#[derive(Clone)]
pub(super) struct Proxies {
    #[cfg(feature = "client")]
    matcher: Option<Arc<hyper_util::client::proxy::matcher::Matcher>>,
}

impl Proxies {
    pub(super) fn none() -> Self {
        Self {
            #[cfg(feature = "client")]
            matcher: None,
        }
    }

    #[cfg(feature = "client")]
    pub(super) fn of_environment() -> Self {
        Self { matcher: Some(Arc::new(hyper_util::client::proxy::matcher::Matcher::from_env())) }
    }

    /// The proxy for a URL. None reaches this machine's loopback.
    #[cfg(feature = "client")]
    pub(super) fn of(&self, target: &Uri) -> Option<Proxy> {
        let matcher = self.matcher.as_ref()?;
        let url = target.to_string().parse().ok()?;
        if is_loopback_host(&url) { None } else { matcher.intercept(target) }
    }

    #[cfg(not(feature = "client"))]
    fn of(&self, _target: &Uri) -> Option<Proxy> {
        None
    }
}

/// Whether a URL's host is this machine's loopback, by name or address.
pub(super) fn is_loopback_host(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(name) == "localhost",
        None => false,
    }
}

/// Resolves names to the addresses that are admitted.
#[derive(Clone)]
struct GuardedResolver {
    admits: AddressRule,
    resolver: Resolver,
}

impl Service<Name> for GuardedResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = ConnectFuture<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { admits, resolver } = self.clone();
        let payer = PAYER.try_with(Owner::clone).unwrap_or_else(|_| Owner::local());
        Box::pin(async move {
            let found = resolver.addresses(&payer, name.as_str()).await?;
            let admitted = found.into_iter().filter(|address| admits(address.ip().to_canonical()));
            let admitted: Vec<_> = admitted.collect();
            if admitted.is_empty() {
                return Err(io::Error::other(
                    "the name does not lead to an address that may be connected to",
                ));
            }
            Ok(admitted.into_iter())
        })
    }
}

/// The stream of bytes below a connection.
trait StreamIo: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> StreamIo for T {}

/// The address that a response came from; none if it came through a proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerAddress(pub(super) IpAddr);

/// An open connection.
pub(super) struct HttpStream {
    io: Box<dyn StreamIo>,
    peer: Option<SocketAddr>,
    /// Whether a proxy forwards requests, so that each contains the whole URL.
    is_forwarded: bool,
}

impl fmt::Debug for HttpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpStream").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Connection for HttpStream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_forwarded);
        #[cfg(feature = "client-oauth")]
        if let Some(peer) = self.peer {
            return connected.extra(PeerAddress(peer.ip()));
        }
        connected
    }
}

impl Read for HttpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for HttpStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }
}

#[cfg(all(test, any(feature = "auth", feature = "client-oauth")))]
mod tests {
    use super::*;
    use crate::fetch::Reach;

    #[tokio::test]
    async fn names_of_private_addresses_are_not_resolved() {
        let name = || "localhost".parse::<Name>().unwrap();
        let resolver = |reach: Reach| GuardedResolver { admits: reach.rule(), resolver: Resolver::system() };
        assert!(resolver(Reach::Public).call(name()).await.is_err());
        let mut resolved = resolver(Reach::Loopback).call(name()).await.unwrap();
        assert!(resolved.all(|address| address.ip().is_loopback()));
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_each_time_is_looked_up_once_and_connected_to_only_where_it_was_checked()
     {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);
        // admitted at first, this machine from then on
        let rebound = Resolver::new(|_| {
            let first = LOOK_UPS.fetch_add(1, Ordering::SeqCst) == 0;
            // of the addresses for benchmarks, which lead nowhere
            let address = IpAddr::from(if first { [198, 18, 0, 1] } else { [127, 0, 0, 1] });
            Ok(vec![SocketAddr::new(address, 0)])
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let tls = crate::fetch::tls::tls_config(&[]).unwrap();
        let admits: AddressRule = |address| !address.is_loopback();
        let connector = Connector::new(admits, rebound, tls, Proxies::none(), Duration::from_millis(200));
        let target: Uri = format!("http://rebound.example:{port}/").parse().unwrap();
        for look_ups in 1..=3 {
            assert!(connector.clone().connect(target.clone()).await.is_err());
            assert_eq!(LOOK_UPS.load(Ordering::SeqCst), look_ups, "between the check and the connection");
            assert!(listener.accept().is_err(), "this machine was connected to");
        }
    }

    #[tokio::test]
    async fn addresses_that_are_not_admitted_are_not_connected_to() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "localhost."] {
            let tls = crate::fetch::tls::tls_config(&[]).unwrap();
            let limit = Duration::from_secs(5);
            let target: Uri = format!("http://{host}:{port}/").parse().unwrap();
            let connector = |reach: Reach| {
                Connector::new(reach.rule(), Resolver::system(), tls.clone(), Proxies::none(), limit)
            };
            assert!(connector(Reach::Public).connect(target.clone()).await.is_err(), "{host}");
            assert!(listener.accept().is_err(), "{host}: connected to");
            // not all systems have the others
            if ["127.0.0.1", "localhost"].contains(&host) {
                assert!(connector(Reach::Loopback).connect(target).await.is_ok(), "{host}");
                assert!(listener.accept().is_ok(), "{host}");
            }
        }
    }
}
