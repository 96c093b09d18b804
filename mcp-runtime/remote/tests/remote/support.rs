//! Servers at ports of their own, which record what arrives.

use std::{
    future::IntoFuture as _,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    middleware::{Next, from_fn},
};
use mcp_runtime::{Server, ServerBuilder, client::Client, testing::TestServer};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Arrived {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The message, if it is one.
    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// A server over HTTP, until it is dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) arrived: Arc<Mutex<Vec<Arrived>>>,
    serving: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Served {
    pub(crate) async fn new(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self::at(listener, server)
    }

    pub(crate) fn at(listener: TcpListener, server: &Server) -> Self {
        let arrived = Arc::<Mutex<Vec<Arrived>>>::default();
        let record = arrived.clone();
        let routes: Router = server.clone().into_router().expect("routes").layer(from_fn(
            move |request: Request, next: Next| {
                let record = record.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let body = to_bytes(body, 1 << 20).await.expect("a body");
                    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                    let headers =
                        head.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes())));
                    record
                        .lock()
                        .expect("requests")
                        .push(Arrived { headers: headers.collect(), body: text(&body) });
                    next.run(Request::from_parts(head, Body::from(body))).await
                }
            },
        ));
        let address = listener.local_addr().expect("an address");
        let serving = axum::serve(listener, routes).into_future();
        let serving = tokio::spawn(async move { drop(serving.await) });
        Self { address, arrived, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Everything that has arrived.
    pub(crate) fn all(&self) -> Vec<Arrived> {
        self.arrived.lock().expect("requests").clone()
    }

    /// The requests for a method.
    pub(crate) fn of(&self, method: &str) -> Vec<Arrived> {
        self.all().into_iter().filter(|arrived| arrived.message()["method"] == method).collect()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.url()).await.expect("a connection")
    }
}

pub(crate) fn built(builder: ServerBuilder) -> Server {
    match builder.build() {
        Ok(server) => server,
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn test_server(builder: ServerBuilder) -> TestServer {
    TestServer::of(&built(builder))
}

pub(crate) fn names(listed: &[Value]) -> Vec<&str> {
    listed.iter().filter_map(|entry| entry["name"].as_str()).collect()
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it has not happened");
}
