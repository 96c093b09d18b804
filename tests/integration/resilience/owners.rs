//! What one client uses up does not affect the others: connections, streams, requests, unfinished bodies, sessions, tasks
//! and consumed calls. A client is a principal, or else an address.

use std::net::IpAddr;

use axum::{Router, extract::Request, middleware::Next};

use super::{here, modern};
use crate::prelude::*;

/// Ends as a task
#[mcp_tool(task = required)]
async fn report() -> &'static str {
    "reported"
}

/// The two clients of these tests.
const ADA: &str = "192.0.2.1";
const BOB: &str = "192.0.2.2";

/// A server behind a proxy that names its clients in a header.
fn behind_a_proxy() -> ServerBuilder {
    mcp_runtime::server!().tool::<here>().with_handle(drop).http(|http| {
        http.client_address(|parts, _peer| {
            parts.headers.get("x-client").and_then(|address| address.to_str().ok()?.parse::<IpAddr>().ok())
        })
    })
}

fn listen() -> HttpRequest {
    HttpRequest::modern("s", "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
}

/// Opens streams until one is refused.
async fn open_all(request: &HttpRequest, at: SocketAddr) -> Vec<EventStream> {
    let mut open = Vec::new();
    loop {
        match EventStream::open(request, at).await {
            Ok(stream) => open.push(stream),
            Err(refused) => {
                assert_eq!(
                    (refused.status, refused.header("connection")),
                    (503, Some("close")),
                    "{refused:?}"
                );
                return open;
            }
        }
    }
}

#[tokio::test]
async fn streams_of_one_client_leave_streams_for_others_and_requests_for_all() {
    let served = HttpServer::start(behind_a_proxy().http(|http| http.max_connections(64))).await;
    let hers = open_all(&listen().header("x-client", ADA), served.address).await;
    assert_eq!(hers.len(), 24, "half of three quarters of the connections");
    let his = open_all(&listen().header("x-client", BOB), served.address).await;
    assert_eq!(his.len(), 18, "an eighth is left to clients without a stream");
    for client in [ADA, BOB, "192.0.2.3"] {
        assert_eq!(modern("here").header("x-client", client).send(served.address).await.status, 200);
    }
    let third = listen().header("x-client", "192.0.2.3");
    let open = EventStream::open(&third, served.address).await;
    assert!(open.is_ok(), "the third client has none");
    let refused = EventStream::open(&third, served.address).await;
    assert_eq!(refused.err().expect("it has one").status, 503);
    drop(hers);
    within(async {
        while EventStream::open(&listen().header("x-client", ADA), served.address).await.is_err() {}
    })
    .await;
    drop(his);
}

#[tokio::test]
async fn standalone_streams_share_the_places_of_listen_streams() {
    let served = HttpServer::start(behind_a_proxy().http(|http| http.max_streams(8))).await;
    let at = served.address;
    let session = HttpRequest::initialize("2025-11-25").header("x-client", ADA).send(at).await.session();
    let get = HttpRequest::standalone_stream(&session).header("x-client", ADA);
    let listening = [listen(), listen()].map(|request| request.header("x-client", ADA));
    let mut open = Vec::new();
    for request in [&get, &listening[0], &get, &listening[1]] {
        open.push(EventStream::open(request, at).await.expect("a stream"));
    }
    for request in [&get, &listening[0]] {
        assert_eq!(EventStream::open(request, at).await.err().expect("her share is used").status, 503);
    }
    assert!(EventStream::open(&listen().header("x-client", BOB), at).await.is_ok());
}

/// Sends all but the last byte of a request.
async fn unfinished(client: &str, at: SocketAddr) -> HttpConnection {
    let bytes = modern("here").header("x-client", client).bytes();
    let mut connection = HttpConnection::open(at).await;
    connection.write(bytes.split_last().expect("a request").1).await;
    connection
}

/// Calls until the status is this one.
async fn until_status(client: &str, at: SocketAddr, status: u16) {
    within(async { while modern("here").header("x-client", client).send(at).await.status != status {} })
        .await;
}

#[tokio::test]
async fn a_slow_sender_holds_its_own_places_only() {
    let served = HttpServer::start(behind_a_proxy().http(|http| http.max_requests(4))).await;
    let at = served.address;
    let dropped = [unfinished(ADA, at).await, unfinished(ADA, at).await];
    until_status(ADA, at, 503).await;
    drop(dropped);
    until_status(ADA, at, 200).await;
    let mut slow = vec![unfinished(ADA, at).await, unfinished(ADA, at).await];
    until_status(ADA, at, 503).await;
    // one more of hers may be a response that a call waits for; as a request it is refused
    let mut third = unfinished(ADA, at).await;
    third.write(b"}").await;
    assert_eq!(third.response().await.status, 503);
    for _ in 0..10 {
        assert_eq!(modern("here").header("x-client", BOB).send(at).await.status, 200);
    }
    for connection in &mut slow {
        connection.write(b"}").await;
        assert_eq!(text_of(&connection.response().await.json()), "here");
    }
    until_status(ADA, at, 200).await;
}

#[tokio::test]
async fn bytes_of_unfinished_bodies_are_limited_for_each_client() {
    // of 128 MiB for all clients she has half
    let served = HttpServer::start(behind_a_proxy().http(|http| http.max_body(34 << 20))).await;
    let at = served.address;
    let params = json!({ "name": "here", "arguments": {}, "_meta": { "note": "NOTE" } });
    let large = HttpRequest::modern(1, "tools/call", params);
    let large = large.map_text(|text| text.replace("NOTE", &"x".repeat(33 << 20)));
    let large = |client: &str| large.clone().header("x-client", client);
    let mut first = HttpConnection::open(at).await;
    let bytes = large(ADA).bytes();
    let (last, most) = bytes.split_last().expect("a request");
    first.write(most).await;
    // the second body does not fit into her share as soon as the server has seen the first
    within(async {
        loop {
            let mut second = HttpConnection::open(at).await;
            // the server may refuse it before it has read the whole body
            second.try_write(most).await;
            if let Ok(response) = tokio::time::timeout(Duration::from_secs(3), second.response()).await {
                assert_eq!(response.status, 503);
                return;
            }
        }
    })
    .await;
    let mut his = HttpConnection::open(at).await;
    let bytes = large(BOB).bytes();
    let (his_last, most) = bytes.split_last().expect("a request");
    his.write(most).await;
    his.write(&[*his_last]).await;
    assert_eq!(his.response().await.status, 200);
    // the budget suffices for a small one of hers, and for another large one when the first is finished
    assert_eq!(modern("here").header("x-client", ADA).send(at).await.status, 200);
    first.write(&[*last]).await;
    assert_eq!(first.response().await.status, 200);
    within(async { while large(ADA).send(at).await.status != 200 {} }).await;
}

/// A call that becomes a task.
fn start_task() -> HttpRequest {
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    HttpRequest::modern(1, "tools/call", json!({ "name": "report", "_meta": meta }))
}

fn is_task(reply: &Value) -> bool {
    reply["result"]["resultType"] == "task"
}

#[tokio::test]
async fn tasks_that_one_client_leaves_behind_cost_no_other_client_a_task() {
    let builder = behind_a_proxy().tool::<report>().tasks(|tasks| tasks.max_kept(8));
    let served = HttpServer::start(builder).await;
    let mut refused = 0;
    for _ in 0..10 {
        let reply = start_task().header("x-client", ADA).send(served.address).await.json();
        refused += usize::from(!is_task(&reply));
    }
    assert_eq!(refused, 6, "four are her share of the store");
    let reply = start_task().header("x-client", BOB).send(served.address).await.json();
    assert!(is_task(&reply), "{reply}");
}

#[tokio::test]
async fn a_principal_is_one_client_wherever_it_calls_from() {
    let builder = behind_a_proxy().http(|http| http.max_streams(8).caller(x_user));
    let served = HttpServer::start(builder).await;
    let mut open = Vec::new();
    for address in [ADA, BOB, ADA, BOB] {
        let request = listen().header("x-user", "ada").header("x-client", address);
        open.push(EventStream::open(&request, served.address).await.expect("a stream"));
    }
    let ada = listen().header("x-user", "ada").header("x-client", "192.0.2.3");
    assert_eq!(EventStream::open(&ada, served.address).await.err().expect("her share").status, 503);
    let bob = listen().header("x-user", "bob").header("x-client", ADA);
    assert!(EventStream::open(&bob, served.address).await.is_ok());
}

/// Serves a router; with the address of each client in its requests if `known` is set.
async fn serve_router(app: Router, known: bool) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    spawn(async move {
        if known {
            axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
        } else {
            axum::serve(listener, app).await
        }
    });
    at
}

#[tokio::test]
async fn a_nested_service_takes_the_address_from_the_request() {
    let service = || {
        let server = mcp_runtime::server!().tool::<here>().with_handle(drop);
        server.http(|http| http.max_streams(4)).into_service().expect("a service")
    };
    let plain = |mut request: Request, next: Next| async move {
        request.extensions_mut().insert(SocketAddr::from(([192, 0, 2, 1], 1)));
        next.run(request).await
    };
    let app = || Router::new().nest_service("/mcp", service());
    let known = serve_router(app(), true).await;
    assert_eq!(open_all(&listen(), known).await.len(), 2, "the share of one address");
    let known = serve_router(app().layer(axum::middleware::from_fn(plain)), false).await;
    assert_eq!(open_all(&listen(), known).await.len(), 2, "the share of one address");
    let unknown = serve_router(app(), false).await;
    assert_eq!(open_all(&listen(), unknown).await.len(), 4, "clients are not told apart");
}

/// Connects from another address of this machine.
#[cfg(target_os = "linux")]
async fn connect_from(address: [u8; 4], at: SocketAddr) -> tokio::net::TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((address, 0))).expect("a loopback address");
    socket.connect(at).await.expect("a connection")
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_of_one_address_leave_connections_for_others() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let served =
        HttpServer::start(mcp_runtime::server!().tool::<here>().http(|http| http.max_connections(8))).await;
    let at = served.address;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut connection = HttpConnection::open(at).await;
        connection.send(&modern("here")).await;
        assert_eq!(connection.response().await.status, 200);
        open.push(connection);
    }
    for _ in 0..20 {
        assert!(HttpConnection::open(at).await.is_closed().await, "its address has its share");
    }
    let mut other = connect_from([127, 0, 0, 2], at).await;
    other.write_all(&modern("here").with("Connection", "close").bytes()).await.expect("written");
    let mut reply = String::new();
    other.read_to_string(&mut reply).await.expect("a reply");
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    open.truncate(3);
    within(async {
        loop {
            let mut connection = HttpConnection::open(at).await;
            connection.try_write(&modern("here").bytes()).await;
            if !connection.is_closed().await {
                return;
            }
        }
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_that_may_open_few_files_accepts_fewer_connections() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    let mut command = tokio::process::Command::new("/bin/sh");
    command.args(["-c", "ulimit -n 100 && exec \"$0\" --http \"$1\"", env!("CARGO_BIN_EXE_fixture")]);
    let _child = command.arg(free.to_string()).kill_on_drop(true).spawn().expect("a process");
    within(async {
        while tokio::net::TcpStream::connect(free).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let streams = open_all(&listen(), free).await;
    assert_eq!(streams.len(), 26, "half of three quarters of 68 connections");
    let list = HttpRequest::modern(1, "tools/list", json!({}));
    // far more connections than there are files
    let mut open = Vec::new();
    for _ in 0..200 {
        open.push(HttpConnection::open(free).await);
    }
    drop(open);
    within(async {
        loop {
            let mut connection = HttpConnection::open(free).await;
            connection.try_write(&list.bytes()).await;
            if !connection.is_closed().await {
                return;
            }
        }
    })
    .await;
}
