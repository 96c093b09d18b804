//! Options of a server that bound the cost of clients and identify callers.

use std::io;

use axum::{
    Router,
    extract::Request,
    middleware::{self, Next},
    response::Response,
};
use mcp_runtime::http::IntoPrincipal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split},
    net::TcpStream,
    sync::{Semaphore, mpsc},
    time::Instant,
};

use super::{Count, CountDrop, modern, promptly, settle, until, with_progress};
use crate::prelude::*;

/// Returns at once
#[mcp_tool]
fn here() -> &'static str {
    "here"
}

/// For administrators
#[mcp_tool(scopes("admin"))]
fn purge() -> &'static str {
    "purged"
}

/// Returns a large text
#[mcp_tool]
fn large() -> String {
    "x".repeat(100_000)
}

/// Reports more progress than the socket buffers hold, and may then wait forever
#[mcp_tool]
async fn report(wait: Option<bool>, ctx: &Context, ended: &Count) -> &'static str {
    let _ended = CountDrop(ended.clone());
    let text = "x".repeat(16 << 10);
    for step in 1..=1000_u16 {
        ctx.progress(f64::from(step)).message(&text).send();
        tokio::task::yield_now().await;
    }
    if wait == Some(true) {
        std::future::pending::<()>().await;
    }
    "reported"
}

/// Waits until it is released
#[mcp_tool]
async fn wait(entered: &Count, release: &Semaphore) -> &'static str {
    entered.add();
    if let Ok(permit) = release.acquire().await {
        permit.forget();
    }
    "let go"
}

/// Sleeps, and reports nothing
#[mcp_tool]
async fn slow() -> &'static str {
    tokio::time::sleep(Duration::from_secs(25)).await;
    "slept"
}

/// Returns the caller
#[mcp_tool]
fn whoami(ctx: &Context, user: Option<&User>) -> String {
    let caller = ctx.caller().map_or("anonymous", |caller| caller.subject());
    format!("{caller} {}", user.map_or("anonymous", |user| &user.0))
}

/// The caller, as set by middleware.
#[derive(Clone)]
struct User(String);

impl IntoPrincipal for User {
    fn into_principal(self) -> Option<Principal> {
        // a guest has no principal
        (self.0 != "guest").then(|| Principal::new("test", self.0))
    }
}

async fn identify(mut request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned);
    if let Some(user) = user {
        request.extensions_mut().insert(User(user));
    }
    next.run(request).await
}

async fn listed(at: SocketAddr, path: &str) -> Vec<String> {
    let list = HttpRequest::modern(1, "tools/list", json!({})).path(path);
    tool_names(&list.send(at).await.json()).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_server_that_trusts_all_callers_lists_everything() {
    let builder = || mcp_runtime::server!().tool::<here>().tool::<purge>();
    let error = builder().into_router::<()>().expect_err("it is refused").to_string();
    assert!(error.contains("`purge`") && error.contains("trust_all_callers"), "{error}");
    let server = builder().build().expect("a server");
    assert!(server.clone().into_router::<()>().is_err());
    assert!(server.into_service().is_err());

    let served = HttpServer::start(builder().http(|http| http.trust_all_callers())).await;
    assert_eq!(listed(served.address, "/mcp").await, ["here", "purge"]);
    assert_eq!(text_of(&modern("purge").send(served.address).await.json()), "purged");
    let tool = ToolDef::builder("scoped").scopes(["admin"]);
    let server = builder().http(|http| http.trust_all_callers()).build().expect("a server");
    let served = HttpServer::of(&server).await;
    assert_eq!(listed(served.address, "/mcp").await, ["here", "purge"]);
    let handler = |_: ToolCall| async { "done" };
    server.handle().add(tool.handler(handler)).expect("it is added");
    assert_eq!(text_of(&modern("scoped").send(served.address).await.json()), "done");
}

/// A server whose middleware identifies callers.
async fn with_users() -> SocketAddr {
    let builder = mcp_runtime::server!().tool::<whoami>();
    let server = builder.http(|http| http.caller_from::<User>()).build().expect("a server");
    let app = Router::new().merge(server.into_router().expect("a router"));
    serve_router(app.layer(middleware::from_fn(identify))).await
}

#[tokio::test]
async fn the_principal_set_by_middleware_is_the_caller() {
    let at = with_users().await;
    let said = async |user: Option<&str>| {
        let request = modern("whoami");
        let request = user.map_or(request.clone(), |user| request.header("x-user", user));
        text_of(&request.send(at).await.json()).to_owned()
    };
    assert_eq!(said(Some("ada")).await, "ada ada");
    assert_eq!(said(Some("guest")).await, "anonymous guest");
    assert_eq!(said(None).await, "anonymous anonymous");
}

#[tokio::test]
async fn a_client_that_reads_nothing_loses_its_connection() {
    let ended = Count::default();
    let builder = mcp_runtime::server!().tool::<report>().state(ended.clone());
    let served =
        HttpServer::start(builder.limits(|limits| limits.write_timeout(Duration::from_millis(300)))).await;
    let waits =
        with_progress("report").map_body(|body| body["params"]["arguments"] = json!({ "wait": true }));
    let mut socket = TcpStream::connect(served.address).await.expect("a connection");
    socket.write_all(&waits.bytes()).await.expect("write");
    // the call is cancelled with its connection
    until(|| ended.get() == 1).await;
    let mut taken = Vec::new();
    let _closed_or_reset = promptly(socket.read_to_end(&mut taken)).await;
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
    let _ended_or_failed = promptly(served).await.expect("no panic");
    drop(ours);
}

/// A call whose body has that many bytes.
fn padded(bytes: usize) -> HttpRequest {
    modern("here").map_body(|body| body["params"]["_meta"]["org.example/padding"] = "x".repeat(bytes).into())
}

/// Sends all of a call except its last byte.
async fn unfinished(at: SocketAddr, request: &HttpRequest) -> HttpConnection {
    let request = request.bytes();
    let mut connection = HttpConnection::open(at).await;
    // the server may refuse it before it has read the whole body
    connection.try_write(request.split_last().expect("a request").1).await;
    settle().await;
    connection
}

#[tokio::test]
async fn unfinished_bodies_share_a_byte_budget() {
    let builder = mcp_runtime::server!()
        .tool::<here>()
        // of 128 MiB for all clients one has half
        .http(|http| http.max_body(48 << 20));
    let served = HttpServer::start(builder).await;
    let at = served.address;
    let large = padded(40 << 20);
    for finish in [true, false] {
        let mut first = unfinished(at, &large).await;
        for _ in 0..3 {
            let refused = promptly(unfinished(at, &large).await.response()).await;
            assert_eq!(refused.status, 503);
            assert!(refused.header("retry-after").is_some());
        }
        // the budget suffices for a small one
        assert_eq!(text_of(&modern("here").send(at).await.json()), "here");
        if finish {
            first.write(b"}").await;
            assert_eq!(text_of(&first.response().await.json()), "here");
        } else {
            drop(first);
        }
        // and now for another large one
        promptly(async {
            while large.send(at).await.status != 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

/// A server that runs one call at a time.
fn narrow(entered: &Count, release: &Arc<Semaphore>) -> ServerBuilder {
    let builder = mcp_runtime::server!().tool::<wait>().limits(|limits| limits.max_in_flight(1));
    builder.http(|http| http.legacy_sse("/sse")).state(entered.clone()).state(release.clone())
}

/// Bytes of a request of which four fit into the 16 MiB that may wait.
const LARGE: usize = 7 << 19;

fn waiting(id: u64, bytes: usize) -> Value {
    let mut call = legacy_call(id, "wait", &json!({}));
    call["params"]["_meta"]["org.example/padding"] = "x".repeat(bytes).into();
    call
}

#[track_caller]
fn assert_busy(reply: &Value, id: u64) {
    assert_eq!((&reply["id"], error_code(reply)), (&json!(id), -32603), "{reply}");
}

#[tokio::test]
async fn queued_requests_share_a_byte_budget() {
    let (entered, release) = (Count::default(), Arc::new(Semaphore::new(0)));
    let server = narrow(&entered, &release).build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    client.shake_hands("2025-11-25").await;
    client.send(&waiting(1, 0)).await;
    until(|| entered.get() == 1).await;
    for id in 2..=6 {
        client.send(&waiting(id, LARGE)).await;
    }
    assert_busy(&promptly(client.message()).await, 6);
    client.send(&waiting(7, 0)).await;
    release.add_permits(6);
    for id in [1, 2, 3, 4, 5, 7] {
        assert_eq!(promptly(client.message()).await["id"], id);
    }
    // the budget is released
    client.send(&waiting(8, 0)).await;
    until(|| entered.get() == 7).await;
    client.send(&waiting(9, LARGE)).await;
    release.add_permits(2);
    assert_eq!(client.message().await["id"], 8);
    assert_eq!(client.message().await["id"], 9);
}

#[tokio::test]
async fn queued_requests_over_http_sse_share_a_byte_budget() {
    let (entered, release) = (Count::default(), Arc::new(Semaphore::new(0)));
    let served = HttpServer::start(narrow(&entered, &release)).await;
    let mut client = HttpSse::open(served.address, "/sse", &[]).await;
    client.initialize(&json!({})).await;
    client.send(&waiting(1, 0)).await;
    until(|| entered.get() == 1).await;
    for id in 2..=6 {
        client.send(&waiting(id, LARGE)).await;
    }
    assert_busy(&promptly(client.message()).await, 6);
    release.add_permits(5);
    for id in 1..=5 {
        assert_eq!(promptly(client.message()).await["id"], id);
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
    assert!(promptly(head.is_closed()).await, "its head does not come");
    let whole = modern("here").bytes();
    let mut body = HttpConnection::open(server.address).await;
    body.write(&whole[..whole.len() - 1]).await;
    assert_eq!(promptly(body.response()).await.status, 408, "its body does not come");
}
