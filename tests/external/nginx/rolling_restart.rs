//! Replicas behind nginx that are restarted one by one, while clients send requests over connections that are kept open.

use std::{
    net::SocketAddr,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_external_tests::{
    nginx::Nginx,
    replicas::{free_addresses, until_accepted},
    skip,
};
use mcp_tests::support::PATIENCE;
use mcp_tests::{
    programs::example::program,
    support::{HttpConnection, HttpRequest, LineConnection, text_of},
};
use serde_json::json;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

const CLIENTS: usize = 8;
const REQUESTS: usize = 10_000;
const RESTARTS: usize = 10;
/// A connection that begins in the instant in which a listener is closed is reset: this has not happened yet, and may.
const MAX_LOST: usize = 5;
/// A replica that accepts requests.
async fn replica(at: SocketAddr) -> LineConnection {
    let server = LineConnection::spawn(
        Command::new(program("fixture")).args(["--http", &at.to_string()]).env("FIXTURE_DELAY_MS", "200"),
    );
    until_accepted(at);
    server
}

/// Sends requests until there were enough of them and the restarts are over; counts them, and those without a result.
async fn send(at: SocketAddr, sent: Arc<AtomicUsize>, restarted: Arc<AtomicBool>) -> Vec<String> {
    let mut lost = Vec::new();
    let mut connection = HttpConnection::open(at).await;
    let call = HttpRequest::modern(1, "tools/call", json!({"name": "echo", "arguments": {"message": "m"}}));
    while sent.fetch_add(1, Ordering::Relaxed) < REQUESTS || !restarted.load(Ordering::Relaxed) {
        connection.send(&call).await;
        let response = connection.response().await;
        if response.status != 200 || text_of(&response.json()) != "m" {
            lost.push(format!("{} {}", response.status, response.text()));
        }
        if response.header("connection") == Some("close") {
            connection = HttpConnection::open(at).await;
        }
    }
    lost
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_behind_nginx_loses_hardly_a_request() {
    let [at, one, other] = free_addresses();
    let proxy = match Nginx::start(at, &[one, other]) {
        Ok(proxy) => proxy,
        Err(missing) => return skip("a_rolling_restart_behind_nginx_loses_hardly_a_request", &missing),
    };
    let test = async {
        let mut replicas = [(one, replica(one).await), (other, replica(other).await)];
        let (sent, restarted) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let clients: Vec<_> =
            (0..CLIENTS).map(|_| tokio::spawn(send(at, sent.clone(), restarted.clone()))).collect();
        for n in 0..RESTARTS {
            let (address, running) = &mut replicas[n % 2];
            running.terminate();
            while TcpStream::connect(*address).await.is_ok() {
                sleep(Duration::from_millis(20)).await;
            }
            let stopped = std::mem::replace(running, replica(*address).await);
            let (status, log) = stopped.exit().await;
            assert!(status.success(), "{log}");
        }
        restarted.store(true, Ordering::Relaxed);
        let mut lost = Vec::new();
        for client in clients {
            lost.extend(client.await.expect("no panic"));
        }
        let sent = sent.load(Ordering::Relaxed);
        let log = proxy.errors();
        // refused connections are expected: nginx sends the request to the other replica
        let log: Vec<_> = log.lines().filter(|line| !line.contains("Connection refused")).collect();
        assert!(lost.len() <= MAX_LOST, "{} of {sent} requests: {lost:?}\n{}", lost.len(), log.join("\n"));
        assert!(sent >= REQUESTS);
    };
    timeout(PATIENCE, test).await.expect("it takes too long");
    drop(proxy);
}
