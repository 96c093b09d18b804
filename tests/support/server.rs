//! A server over HTTP on a free port of the loopback interface, for as long as a test holds it.

use std::{net::SocketAddr, time::Duration};

use mcp_runtime::{Principal, Server, ServerBuilder};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle, time::sleep};

use super::within;

/// A running server; it shuts down when it is dropped.
pub struct HttpServer {
    /// The address that it listens on.
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<mcp_runtime::Result<()>>,
}

impl HttpServer {
    /// Builds and serves it.
    pub async fn start(builder: ServerBuilder) -> Self {
        Self::of(&builder.build().expect("a server")).await
    }

    /// Serves a server that is already built.
    pub async fn of(server: &Server) -> Self {
        Self::at(([127, 0, 0, 1], 0).into(), server).await
    }

    /// The same at an address, which another server may have had until now.
    pub async fn at(address: SocketAddr, server: &Server) -> Self {
        let bound = async {
            loop {
                if let Ok(listener) = TcpListener::bind(address).await {
                    return listener;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        let listener = within(bound).await;
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(server.clone().serve_http_until(listener, async {
            let _dropped_or_sent = stopped.await;
        }));
        tokio::task::yield_now().await;
        if served.is_finished() {
            let refused = served.await.expect("no panic").expect_err("it serves until it is told to stop");
            panic!("the server does not serve: {refused}");
        }
        Self { address, stop: Some(stop), served }
    }

    /// Starts the shutdown.
    pub fn stop(&mut self) {
        self.stop = None;
    }

    /// Waits until it has shut down.
    pub async fn stopped(self) {
        within(self.served).await.expect("no panic").expect("no error");
    }
}

/// Serves an application as long as the test's runtime lives.
pub async fn serve_router(app: axum::Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// The principal of the issuer `test` that the header `X-User` names: `http.caller(x_user)`.
pub fn x_user(parts: &axum::http::request::Parts) -> Option<Principal> {
    Some(Principal::new("test", parts.headers.get("x-user")?.to_str().ok()?))
}

/// A key for tests, which is not random but passes for it.
pub fn server_key(first: u8) -> [u8; 32] {
    std::array::from_fn(|n| first.wrapping_add(u8::try_from(n).expect("a small number")))
}
