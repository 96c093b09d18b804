//! Opens connections: TCP to addresses that are admitted, TLS, and the proxies of the environment.
//!
//! The addresses of a name are checked before one of them is connected to, so that a later change of the name has no effect.
//! A proxy resolves names itself; for a URL that goes through a proxy, only the text is checked.

use std::{
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

use super::{proxies::Proxies, reach::Reach};

/// Looks a name up: its addresses, whose ports do not count.
pub type LookUp = Arc<dyn Fn(&str) -> LookUpFuture + Send + Sync>;
/// The addresses of a name, when they are known.
pub type LookUpFuture = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// The look-up of the system, on threads of tokio.
#[must_use]
pub fn system_look_up() -> LookUp {
    Arc::new(|name| {
        let name = name.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    })
}

/// The addresses that a client connects to, and how.
#[derive(Clone)]
pub struct Network {
    /// The addresses that it connects to; a proxy resolves names itself.
    pub reach: Reach,
    /// How names are looked up.
    pub look_up: LookUp,
    /// The TLS of its connections.
    pub tls: Arc<ClientConfig>,
    /// Whether it uses the proxies that the environment of the program names.
    pub uses_proxies: bool,
}

pub(super) type ConnectError = Box<dyn std::error::Error + Send + Sync>;
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
    pub(super) network: Network,
    pub(super) proxies: Proxies,
    pub(super) limit: Duration,
}

impl Connector {
    /// `limit` is for one connection, from the look-up of its name to the end of its handshakes.
    pub(super) fn new(network: Network, proxies: Proxies, limit: Duration) -> Self {
        let resolver = GuardedResolver { reach: network.reach, look_up: network.look_up.clone() };
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        Self { tcp, network, proxies, limit }
    }

    async fn connect(self, target: Uri) -> Result<HttpStream, ConnectError> {
        let opened = async {
            match self.connect_through_proxy(&target).await {
                Some(opened) => opened,
                None => self.connect_directly(&target).await,
            }
        };
        timeout(self.limit, opened).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    pub(super) async fn connect_directly(&self, target: &Uri) -> Result<HttpStream, ConnectError> {
        let refused = || ConnectError::from("it is not an address that may be connected to");
        // an address is not resolved
        let literal = host_of(target)?.parse::<IpAddr>();
        if literal.is_ok_and(|address| !self.network.reach.admits(address)) {
            return Err(refused());
        }
        let stream = self.tcp.clone().call(target.clone()).await?;
        let peer = stream.inner().peer_addr()?;
        if !self.network.reach.admits(peer.ip()) {
            return Err(refused());
        }
        let stream = HttpStream { io: Box::new(stream), peer: Some(peer), is_forwarded: false };
        if target.scheme() == Some(&Scheme::HTTPS) { self.secure(stream, target).await } else { Ok(stream) }
    }

    /// TLS over an open connection.
    pub(super) async fn secure(&self, stream: HttpStream, target: &Uri) -> Result<HttpStream, ConnectError> {
        let name = ServerName::try_from(host_of(target)?)?.to_owned();
        let peer = stream.peer;
        let stream = TlsConnector::from(self.network.tls.clone()).connect(name, TokioIo::new(stream)).await?;
        Ok(HttpStream { io: Box::new(TokioIo::new(stream)), peer, is_forwarded: false })
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

/// Resolves names to the addresses that are admitted.
#[derive(Clone)]
struct GuardedResolver {
    reach: Reach,
    look_up: LookUp,
}

impl Service<Name> for GuardedResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = ConnectFuture<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (reach, found) = (self.reach, (self.look_up)(name.as_str()));
        Box::pin(async move {
            let admitted: Vec<_> =
                found.await?.into_iter().filter(|address| reach.admits(address.ip())).collect();
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
pub(super) trait StreamIo: Read + Write + Unpin + Send {}

impl<T: Read + Write + Unpin + Send> StreamIo for T {}

/// The address that a response came from; none if it came through a proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerAddress(pub(super) IpAddr);

/// An open connection.
pub(super) struct HttpStream {
    pub(super) io: Box<dyn StreamIo>,
    pub(super) peer: Option<SocketAddr>,
    /// Whether a proxy forwards requests, so that each contains the whole URL.
    pub(super) is_forwarded: bool,
}

impl Connection for HttpStream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_forwarded);
        match self.peer {
            Some(peer) => connected.extra(PeerAddress(peer.ip())),
            None => connected,
        }
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

#[cfg(test)]
mod tests {
    use std::{
        net::{IpAddr, TcpListener, ToSocketAddrs as _},
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::tls_config;

    fn of_system() -> LookUp {
        Arc::new(|name| {
            let found = (name, 0).to_socket_addrs().map(Iterator::collect);
            Box::pin(async { found })
        })
    }

    fn connector(reach: Reach, look_up: LookUp, limit: Duration) -> Connector {
        let tls = tls_config(&[]).expect("TLS");
        Connector::new(Network { reach, look_up, tls, uses_proxies: false }, Proxies::none(), limit)
    }

    fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[tokio::test]
    async fn names_of_private_addresses_are_not_resolved() {
        let name = || "localhost".parse::<Name>().unwrap();
        let resolver = |reach| GuardedResolver { reach, look_up: of_system() };
        assert!(resolver(Reach::Public).call(name()).await.is_err());
        let mut resolved = resolver(Reach::Loopback).call(name()).await.unwrap();
        assert!(resolved.all(|address| address.ip().is_loopback()));
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_each_time_is_looked_up_once_and_connected_to_only_where_it_was_checked()
     {
        let look_ups = Arc::<AtomicUsize>::default();
        let count = look_ups.clone();
        // admitted at first, this machine from then on
        let rebound: LookUp = Arc::new(move |_| {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            // of a private network, where no one listens at this port
            let address = IpAddr::from(if first { [10, 255, 255, 254] } else { [127, 0, 0, 1] });
            Box::pin(async move { Ok(vec![(address, 0).into()]) })
        });
        let (listener, port) = listener();
        let connector = connector(Reach::Private, rebound, Duration::from_millis(200));
        let target: Uri = format!("http://rebound.example:{port}/").parse().unwrap();
        for expected in 1..=3 {
            assert!(connector.clone().connect(target.clone()).await.is_err());
            assert_eq!(look_ups.load(Ordering::SeqCst), expected, "between the check and the connection");
            assert!(listener.accept().is_err(), "this machine was connected to");
        }
    }

    #[tokio::test]
    async fn addresses_that_are_not_admitted_are_not_connected_to() {
        let (listener, port) = listener();
        for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "localhost."] {
            let target: Uri = format!("http://{host}:{port}/").parse().unwrap();
            let connector = |reach| connector(reach, of_system(), Duration::from_secs(5));
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
