//! Options of a server that bound the cost of clients and identify callers.

use std::io;

use axum::Router;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split},
    sync::mpsc,
    time::Instant,
};

use super::{here, modern, slow_clients::send_reports, wait, with_progress};
use crate::prelude::*;

/// Returns a large text
#[mcp_tool]
fn large() -> String {
    "x".repeat(100_000)
}

/// Reports more progress than the socket buffers hold, and may then wait forever
#[mcp_tool]
async fn report(wait: Option<bool>, ctx: &Context, gate: &Gate) -> &'static str {
    let _inside = gate.enter();
    send_reports(ctx).await;
    if wait == Some(true) {
        std::future::pending::<()>().await;
    }
    "reported"
}

/// Sleeps, and reports nothing
#[mcp_tool]
async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_secs(25)).await;
    "slept"
}

#[tokio::test]
async fn a_client_that_reads_nothing_loses_its_connection() {
    let gate = Gate::default();
    let builder = mcp_runtime::server!().tool::<report>().state(gate.clone());
    let served =
        HttpServer::start(builder.limits(|limits| limits.write_timeout(Duration::from_millis(300)))).await;
    let waits =
        with_progress("report").map_body(|body| body["params"]["arguments"] = json!({ "wait": true }));
    let mut socket = narrow_socket(served.address).await;
    socket.write_all(&waits.bytes()).await.expect("write");
    // the call is cancelled with its connection
    until(|| gate.dropped() == 1).await;
    let mut taken = Vec::new();
    let _closed_or_reset = within(socket.read_to_end(&mut taken)).await;
    assert!(!taken.ends_with(b"0\r\n\r\n"), "all {} bytes have come", taken.len());
    // a client that reads gets the whole response
    let whole = with_progress("report").send(served.address).await;
    assert_eq!(text_of(whole.messages().last().expect("a result")), "reported");
}

#[tokio::test]
async fn a_byte_stream_that_is_not_read_is_closed() {
    let builder = mcp_runtime::server!()
        .tool::<large>()
        .limits(|limits| limits.write_timeout(Duration::from_millis(300)));
    let server = builder.build().expect("a server");
    let (mut ours, theirs) = duplex(1 << 12);
    let (reader, writer) = split(theirs);
    let served = spawn(async move { server.serve(reader, writer).await });
    for id in 0..3 {
        ours.write_all(format!("{}\n", call(id, "large", &json!({}))).as_bytes()).await.expect("write");
    }
    // its input has not ended
    let _ended_or_failed = within(served).await.expect("no panic");
    drop(ours);
}

/// A server that runs one call at a time.
fn narrow(gate: &Gate) -> ServerBuilder {
    let builder = mcp_runtime::server!().tool::<wait>().limits(|limits| limits.max_in_flight(1));
    builder.http(|http| http.legacy_sse("/sse")).state(gate.clone())
}

/// Bytes of a request of which four fit into the 16 MiB that may wait.
const LARGE: usize = 7 << 19;

/// A call with so much padding, which is not encoded as JSON: that is slow in debug builds.
fn waiting(id: u64, bytes: usize) -> String {
    let mut call = legacy_call(id, "wait", &json!({}));
    call["params"]["_meta"]["org.example/padding"] = "PADDING".into();
    call.to_string().replace("PADDING", &"x".repeat(bytes))
}

#[track_caller]
fn assert_busy(reply: &Value, id: u64) {
    assert_eq!((&reply["id"], error_code(reply)), (&json!(id), -32603), "{reply}");
}

#[tokio::test]
async fn queued_requests_share_a_byte_budget() {
    let gate = Gate::default();
    let server = narrow(&gate).build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    client.shake_hands("2025-11-25").await;
    let line = |id, bytes| waiting(id, bytes) + "\n";
    client.write(line(1, 0).as_bytes()).await;
    gate.until_entered(1).await;
    for id in 2..=6 {
        client.write(line(id, LARGE).as_bytes()).await;
    }
    assert_busy(&within(client.message()).await, 6);
    client.write(line(7, 0).as_bytes()).await;
    gate.open(6);
    for id in [1, 2, 3, 4, 5, 7] {
        assert_eq!(within(client.message()).await["id"], id);
    }
    // the budget is released
    client.write(line(8, 0).as_bytes()).await;
    gate.until_entered(7).await;
    client.write(line(9, LARGE).as_bytes()).await;
    gate.open(2);
    assert_eq!(client.message().await["id"], 8);
    assert_eq!(client.message().await["id"], 9);
}

#[tokio::test]
async fn queued_requests_over_http_sse_share_a_byte_budget() {
    let gate = Gate::default();
    let served = HttpServer::start(narrow(&gate)).await;
    let mut client = HttpSse::open(served.address, "/sse", &[]).await;
    client.initialize(&json!({})).await;
    assert_eq!(client.post(waiting(1, 0)).await, 202);
    gate.until_entered(1).await;
    for id in 2..=6 {
        assert_eq!(client.post(waiting(id, LARGE)).await, 202);
    }
    assert_busy(&within(client.message()).await, 6);
    gate.open(5);
    for id in 1..=5 {
        assert_eq!(within(client.message()).await["id"], id);
    }
}

/// Connections in memory, so that time can be paused: it advances when every task is idle.
struct Connections(mpsc::UnboundedReceiver<DuplexStream>);

impl axum::serve::Listener for Connections {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(connection) => (connection, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A response, and when its parts arrived.
struct Timed {
    head: Duration,
    end: Duration,
    text: String,
}

impl Timed {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.text.split("\r\n").take_while(|line| !line.is_empty());
        let mut named = lines.filter_map(|line| line.split_once(": "));
        named.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The body, which must be chunked.
    fn body(&self) -> String {
        let (_, mut rest) = self.text.split_once("\r\n\r\n").expect("a body");
        let mut body = String::new();
        while let Some((size, chunks)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).expect("a size");
            body.push_str(chunks.get(..size).expect("a chunk"));
            rest = chunks.get(size + 2..).expect("the end of a chunk");
        }
        body
    }
}

async fn exchange(connect: &mpsc::UnboundedSender<DuplexStream>, request: HttpRequest) -> Timed {
    let (mut ours, theirs) = duplex(1 << 16);
    connect.send(theirs).expect("it is served");
    let start = Instant::now();
    ours.write_all(&request.header("Connection", "close").bytes()).await.expect("write");
    let mut bytes = vec![ours.read_u8().await.expect("a response")];
    let head = start.elapsed();
    ours.read_to_end(&mut bytes).await.expect("read");
    Timed { head, end: start.elapsed(), text: String::from_utf8(bytes).expect("UTF-8") }
}

fn serve_in_memory(server: Server) -> mpsc::UnboundedSender<DuplexStream> {
    let (connect, connections) = mpsc::unbounded_channel();
    let app = Router::new().nest_service("/mcp", server.into_service().expect("a service"));
    spawn(async move { axum::serve(Connections(connections), app).await });
    connect
}

#[tokio::test(start_paused = true)]
async fn a_silent_call_becomes_a_stream_before_proxies_time_out() {
    let server = mcp_runtime::server!().tool::<slow>().tool::<here>().build().expect("a server");
    let connect = serve_in_memory(server);
    let initialized = exchange(&connect, HttpRequest::initialize("2025-11-25")).await;
    let session = initialized.header("mcp-session-id").expect("a session");
    let legacy = HttpRequest::legacy(session, 1, "tools/call", &json!({ "name": "slow" }));
    for request in [modern("slow"), legacy] {
        let response = exchange(&connect, request.clone()).await;
        assert!((10..12).contains(&response.head.as_secs()), "{:?}", response.head);
        assert_eq!(response.end.as_secs(), 25);
        assert_eq!(response.header("content-type"), Some("text/event-stream"));
        let events = events(&response.body());
        let (last, before) = events.split_last().expect("events");
        assert!(before.iter().any(|event| !event.comments.is_empty()), "{before:?}");
        assert!(before.iter().all(|event| event.message().is_none()), "{before:?}");
        assert_eq!(text_of(&last.message().expect("a result")), "slept");

        // a client that does not accept event streams gets JSON
        let response = exchange(&connect, request.with("Accept", "application/json")).await;
        assert_eq!((response.head.as_secs(), response.end.as_secs()), (25, 25));
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert!(response.text.contains("slept"), "{}", response.text);
    }
    // a call that finishes earlier is answered with JSON
    let quick = exchange(&connect, modern("here")).await;
    assert_eq!((quick.end.as_secs(), quick.header("content-type")), (0, Some("application/json")));
}

#[tokio::test]
async fn connections_that_send_no_head_or_body_time_out() {
    let limit = Duration::from_millis(100);
    let builder = mcp_runtime::server!().tool::<here>();
    let server = HttpServer::start(builder.http(|http| http.header_timeout(limit).body_timeout(limit))).await;
    let mut head = HttpConnection::open(server.address).await;
    head.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n").await;
    assert!(within(head.is_closed()).await, "its head does not come");
    let whole = modern("here").bytes();
    let mut body = HttpConnection::open(server.address).await;
    body.write(&whole[..whole.len() - 1]).await;
    assert_eq!(within(body.response()).await.status, 408, "its body does not come");
}
