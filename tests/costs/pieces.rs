//! Requests that arrive in the smallest pieces, or are the smallest ones: what they cost beside an echo of as many bytes.

use std::{net::SocketAddr, sync::mpsc, thread};

use mcp_tests::support::{HttpConnection, HttpRequest, HttpSse, legacy_call};
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot};

use super::{cpu_time, server};

/// A server on a thread of its own, whose CPU time can be asked for.
struct ServerThread {
    address: SocketAddr,
    runtime: tokio::runtime::Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl ServerThread {
    fn start() -> Self {
        let (started, start) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let address = listener.local_addr().expect("an address");
                started.send((address, tokio::runtime::Handle::current())).expect("the test waits");
                let stopped = async {
                    let _closed = stopped.await;
                };
                let server =
                    server::builder().http(|http| http.legacy_sse("/sse")).build().expect("a server");
                server.serve_http_until(listener, stopped).await.expect("served");
            });
        });
        let (address, runtime) = start.recv().expect("it starts");
        Self { address, runtime, stop: Some(stop), thread: Some(thread) }
    }

    /// The CPU time of the server since it started, in milliseconds.
    async fn cpu_time(&self) -> f64 {
        self.runtime.spawn(async { cpu_time() }).await.expect("a time")
    }

    /// What the server takes to answer these bytes, the least of some rounds.
    async fn cost(&self, bytes: &[u8], responses: usize) -> f64 {
        let mut least = f64::INFINITY;
        for _ in 0..3 {
            let mut connection = HttpConnection::open(self.address).await;
            let start = self.cpu_time().await;
            connection.try_write(bytes).await;
            for _ in 0..responses {
                // what comes after the head of a body of too many pieces, or after too long a head, is not read
                assert!(matches!(connection.response().await.status, 200 | 400 | 431));
            }
            least = least.min(self.cpu_time().await - start);
        }
        least
    }
}

impl ServerThread {
    /// What the server takes to answer a call over HTTP+SSE whose request is in chunks of one byte, the least of some rounds.
    async fn cost_over_sse(&self, text: &str) -> f64 {
        let mut least = f64::INFINITY;
        for _ in 0..3 {
            let mut client = HttpSse::open(self.address, "/sse", &[]).await;
            client.initialize(&json!({})).await;
            let call = legacy_call(1, "echo", &json!({ "text": text }));
            let bytes = HttpRequest::post(call.to_string()).path(&client.endpoint).chunked(1);
            let start = self.cpu_time().await;
            let mut connection = HttpConnection::open(self.address).await;
            connection.try_write(&bytes).await;
            if connection.response().await.status == 202 {
                client.message().await;
            }
            least = least.min(self.cpu_time().await - start);
        }
        least
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server ends");
        }
    }
}

fn call(bytes: usize) -> HttpRequest {
    HttpRequest::modern(
        1,
        "tools/call",
        json!({ "name": "echo", "arguments": { "text": "a".repeat(bytes) } }),
    )
}

#[tokio::test]
#[ignore = "measures CPU time: run it with `--release`"]
async fn requests_in_the_smallest_pieces_cost_a_few_times_an_echo_of_their_bytes() {
    let server = ServerThread::start();
    let mut found = Vec::new();
    let mut add = |name: &str, cost: f64, echo: f64| {
        let line = format!("{:6.2} times an echo: {name} ({cost:.1} ms, echo {echo:.1} ms)", cost / echo);
        eprintln!("{line}");
        if cost / echo > super::FACTOR {
            found.push(line);
        }
    };
    for size in [64 << 10, 700_000] {
        let chunked = call(size).chunked(1);
        let echo = server.cost(&call(chunked.len().min(4_000_000)).bytes(), 1).await;
        let cost = server.cost(&chunked, 1).await;
        add(&format!("{size} chunks of one byte, beside the bytes on the wire"), cost, echo);
        let initialized = HttpRequest::initialize("2025-11-25").send(server.address).await;
        let legacy = HttpRequest::legacy(
            &initialized.session(),
            1,
            "tools/call",
            &json!({ "name": "echo", "arguments": { "text": "a".repeat(size) } }),
        );
        add("the same of a legacy client", server.cost(&legacy.chunked(1), 1).await, echo);
        add("the same over HTTP+SSE", server.cost_over_sse(&"a".repeat(size)).await, echo);
        let mut cut = call(size).bytes();
        if let Some(last) = cut.iter_mut().rfind(|byte| **byte == b'a') {
            *last = 0xff;
        }
        let echo = server.cost(&call(size).bytes(), 1).await;
        add("a text whose last byte is not UTF-8", server.cost(&cut, 1).await, echo);
    }
    let one = call(1).bytes();
    let count = 2_000;
    let alone = server.cost(&one, 1).await;
    let cost = server.cost(&one.repeat(count), count).await;
    add("one of 2,000 pipelined requests, beside one alone", cost / count as f64, alone);
    let many = (0..90).fold(call(1), |request, n| request.header(&format!("x-{n}"), &"a".repeat(100)));
    let echo = server.cost(&call(many.bytes().len()).bytes(), 1).await;
    add("90 headers", server.cost(&many.bytes(), 1).await, echo);
    let types = (0..600).fold("application/json".to_owned(), |types, n| format!("{types},a/b{n};q=0.1"));
    for (name, value) in [("Accept", types.clone()), ("Cookie", types.replace(',', "; ")), ("Baggage", types)]
    {
        let one = call(1).with(name, &value);
        let echo = server.cost(&call(one.bytes().len()).bytes(), 1).await;
        add(&format!("a long header `{name}`"), server.cost(&one.bytes(), 1).await, echo);
    }
    assert!(found.is_empty(), "{found:#?}");
}
