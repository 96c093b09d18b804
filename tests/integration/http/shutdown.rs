//! Shutdown: calls in flight are answered, idle connections are closed.

use mcp_tests::support::{HttpConnection, HttpRequest, HttpServer, text_of, within};
use serde_json::json;
use tokio::net::TcpStream;

use super::fixture::{Probe, builder};

fn call(name: &str) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({"name": name}))
}

#[tokio::test]
async fn a_shutdown_answers_calls_in_flight() {
    within(async {
        let probe = Probe::default();
        let mut server = HttpServer::start(builder(&probe)).await;
        let at = server.address;
        let held: Vec<_> =
            (0..100).map(|_| tokio::spawn(async move { call("hold").send(at).await })).collect();
        probe.entered(100).await;
        let mut idle = HttpConnection::open(at).await;
        idle.send(&call("burst")).await;
        idle.response().await;
        server.stop();
        assert!(idle.is_closed().await);
        probe.release(100);
        for held in held {
            assert_eq!(text_of(&held.await.expect("no panic").json()), "let go");
        }
        server.stopped().await;
        assert!(TcpStream::connect(at).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn a_call_is_cancelled_after_the_shutdown_timeout() {
    within(async {
        let probe = Probe::default();
        let builder =
            builder(&probe).limits(|limits| limits.shutdown_timeout(std::time::Duration::from_millis(50)));
        let mut server = HttpServer::start(builder).await;
        let mut wire = HttpConnection::open(server.address).await;
        wire.send(&call("hold")).await;
        probe.entered(1).await;
        server.stop();
        server.stopped().await;
        probe.ended(1, 0).await;
        assert!(wire.is_closed().await);
    })
    .await;
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    within(async {
        let server = HttpServer::start(builder(&Probe::default()).http(|http| http.max_connections(1))).await;
        let mut first = HttpConnection::open(server.address).await;
        first.send(&call("burst")).await;
        first.response().await;
        let mut second = HttpConnection::open(server.address).await;
        second.send(&call("burst")).await;
        first.send(&call("burst")).await;
        assert_eq!(text_of(&first.response().await.json()), "done");
        drop(first);
        assert_eq!(text_of(&second.response().await.json()), "done");
    })
    .await;
}
