//! Shutdown: calls in flight are answered, no request finds a closed connection, and what does not end in time gets an
//! error.

use axum::Router;
use tokio::net::TcpStream;

use super::fixture::builder;
use crate::prelude::*;

fn call(name: &str) -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({"name": name}))
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    let server = HttpServer::start(builder(&Gate::default()).http(|http| http.max_connections(1))).await;
    let mut first = HttpConnection::open(server.address).await;
    first.send(&call("burst")).await;
    first.response().await;
    let mut second = HttpConnection::open(server.address).await;
    second.send(&call("burst")).await;
    first.send(&call("burst")).await;
    assert_eq!(text_of(&first.response().await.json()), "done");
    drop(first);
    assert_eq!(text_of(&second.response().await.json()), "done");
}

#[tokio::test]
async fn a_shutdown_answers_calls_in_flight_and_lets_their_event_streams_end() {
    let gate = Gate::default();
    let mut server = HttpServer::start(builder(&gate)).await;
    let at = server.address;
    let mut streams = vec![EventStream::open(&streamed(call("hold")), at).await.expect("a stream")];
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let call = json!({"name": "hold", "arguments": {}});
        let call = HttpRequest::legacy(&session(at, version).await, 1, "tools/call", &call);
        streams.push(EventStream::open(&streamed(call), at).await.expect("a stream"));
    }
    let held: Vec<_> = (0..100).map(|_| spawn(async move { call("hold").send(at).await })).collect();
    gate.more_entered(104).await;
    let (listening, mut idle) = (listen(at).await, idle(at).await);
    server.stop();
    refuses(listening).await;
    assert!(idle.is_closed().await);
    gate.open(104);
    for held in held {
        assert_eq!(text_of(&held.await.expect("no panic").json()), "let go");
    }
    for stream in &mut streams {
        assert_eq!(stream.message().await["method"], "notifications/progress");
        assert_eq!(text_of(&stream.message().await), "let go");
        assert_eq!(stream.next().await, None);
    }
    server.stopped().await;
    assert!(TcpStream::connect(at).await.is_err());
}

/// A server that serves on for so long after it was told to stop.
async fn delayed(gate: &Gate, delay: Duration) -> HttpServer {
    HttpServer::start(builder(gate).http(|http| http.shutdown_delay(delay))).await
}

/// Tells a server to stop, and waits until it knows.
async fn stop(server: &mut HttpServer) {
    server.stop();
    while HttpRequest::new("GET").path("/readyz").send(server.address).await.status != 503 {}
}

/// A stream that ends when the server accepts no more connections.
async fn listen(at: SocketAddr) -> EventStream {
    let listen = HttpRequest::modern("listen", "subscriptions/listen", json!({"notifications": {}}));
    let mut stream = EventStream::open(&listen, at).await.expect("a stream");
    stream.message().await;
    stream
}

/// Waits until the server of a stream accepts no more connections.
async fn refuses(mut stream: EventStream) {
    while stream.next().await.is_some() {}
}

/// A connection that has answered a request, and is idle now.
async fn idle(at: SocketAddr) -> HttpConnection {
    let mut connection = HttpConnection::open(at).await;
    connection.send(&call("burst")).await;
    assert_eq!(connection.response().await.header("connection"), None);
    connection
}

/// Sends a request, whose response must be the last one on its connection.
async fn last(connection: &mut HttpConnection, request: &HttpRequest) -> u16 {
    connection.send(request).await;
    let response = connection.response().await;
    assert_eq!(response.header("connection"), Some("close"), "{}", response.text());
    assert!(connection.is_closed().await);
    response.status
}

#[tokio::test]
async fn idle_connections_answer_one_more_request_until_a_second_after_the_delay() {
    let mut server = delayed(&Gate::default(), Duration::from_secs(1)).await;
    let at = server.address;
    let mut connections = Vec::new();
    for _ in 0..16 {
        connections.push(idle(at).await);
    }
    let silent = HttpConnection::open(at).await;
    connections.push(silent);
    let mut unused = [idle(at).await, HttpConnection::open(at).await];
    let listening = listen(at).await;
    stop(&mut server).await;
    let later = connections.split_off(8);
    for (n, connection) in connections.iter_mut().enumerate() {
        let (request, status) = match n % 4 {
            0 => (call("burst"), 200),
            1 => (HttpRequest::new("GET").path("/nowhere"), 404),
            2 => (HttpRequest::new("GET").path("/healthz"), 200),
            _ => (call("burst").with("Host", "evil.example"), 403),
        };
        assert_eq!(last(connection, &request).await, status);
    }
    assert_eq!(last(&mut HttpConnection::open(at).await, &call("burst")).await, 200, "a new one");
    refuses(listening).await;
    let later = later
        .into_iter()
        .map(|mut connection| spawn(async move { last(&mut connection, &call("burst")).await }));
    for status in later.collect::<Vec<_>>() {
        assert_eq!(status.await.expect("no panic"), 200);
    }
    for connection in &mut unused {
        assert!(connection.is_closed().await);
    }
    server.stopped().await;
}

#[tokio::test]
async fn a_response_to_a_request_that_was_sent_before_the_signal_closes_its_connection() {
    let gate = Gate::default();
    let mut server = delayed(&gate, Duration::from_millis(500)).await;
    let mut running = HttpConnection::open(server.address).await;
    running.send(&call("hold")).await;
    gate.more_entered(1).await;
    let bytes = call("burst").bytes();
    let (mut half_head, mut half_body) =
        (HttpConnection::open(server.address).await, HttpConnection::open(server.address).await);
    half_head.write(&bytes[..10]).await;
    half_body.write(&bytes[..bytes.len() - 10]).await;
    let listening = listen(server.address).await;
    stop(&mut server).await;
    refuses(listening).await;
    gate.open(1);
    half_head.write(&bytes[10..]).await;
    half_body.write(&bytes[bytes.len() - 10..]).await;
    for connection in [&mut running, &mut half_head, &mut half_body] {
        let response = connection.response().await;
        assert_eq!((response.status, response.header("connection")), (200, Some("close")));
        assert!(connection.is_closed().await);
    }
    server.stopped().await;
}

#[tokio::test]
async fn connections_of_http_1_0_end_with_a_whole_response() {
    let mut server = delayed(&Gate::default(), Duration::from_secs(1)).await;
    let old = b"GET /healthz HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
    let mut http10 = HttpConnection::open(server.address).await;
    http10.write(old).await;
    assert_eq!(http10.response().await.header("connection"), Some("keep-alive"));
    stop(&mut server).await;
    http10.write(old).await;
    let response = http10.response().await;
    assert_eq!((response.status, response.header("connection")), (200, Some("close")));
    assert!(http10.is_closed().await);
    server.stopped().await;
}

/// A builder with a shutdown timeout that calls of `hold` exceed.
fn impatient(gate: &Gate) -> ServerBuilder {
    builder(gate)
        .http(|http| http.legacy_sse("/sse"))
        .limits(|limits| limits.shutdown_timeout(Duration::from_millis(100)))
}

/// A call of `hold` that reports progress, so that it is answered with an event stream.
fn streamed(call: HttpRequest) -> HttpRequest {
    call.map_body(|body| body["params"]["_meta"]["progressToken"] = json!("p"))
}

#[track_caller]
fn is_cut_off(reply: &Value, id: &Value) {
    let message = reply["error"]["message"].as_str().unwrap_or_default();
    assert_eq!((&reply["id"], &reply["error"]["code"]), (id, &json!(-32603)), "{reply}");
    assert!(message.contains("has stopped"), "{reply}");
}

async fn session(at: SocketAddr, version: &str) -> String {
    HttpRequest::initialize(version).send(at).await.session()
}

#[tokio::test]
async fn a_call_that_exceeds_the_shutdown_timeout_gets_an_error_before_its_connection_closes() {
    let gate = Gate::default();
    let mut server = HttpServer::start(impatient(&gate)).await;
    let at = server.address;
    let of_session = |session: &str, id: i64| {
        HttpRequest::legacy(session, id, "tools/call", &json!({"name": "hold", "arguments": {}}))
    };
    let batch = session(at, "2025-03-26").await;
    let members = [1, 2].map(|id| request(id, "tools/call", json!({"name": "hold", "arguments": {}})));
    let batch = HttpRequest::post(json!(members).to_string()).session(&batch);
    let mut replies = Vec::new();
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        replies.push(of_session(&session(at, version).await, 7));
    }
    let ids = [json!(1), json!(7), json!(7), json!(7)];
    let mut connections = Vec::new();
    for call in [call("hold")].into_iter().chain(replies.clone()).chain([batch]) {
        let mut connection = HttpConnection::open(at).await;
        connection.send(&call).await;
        connections.push(connection);
    }
    let mut streams = Vec::new();
    for call in [call("hold")].into_iter().chain(replies) {
        let call = streamed(call).map_body(|body| body["id"] = json!(8));
        streams.push(EventStream::open(&call, at).await.expect("a stream"));
    }
    let mut sse = HttpSse::open(at, "/sse", &[]).await;
    sse.initialize(&json!({})).await;
    sse.send(&notification("notifications/initialized", json!({}))).await;
    sse.send(&request(9, "tools/call", json!({"name": "hold", "arguments": {}}))).await;
    let bytes = call("burst").bytes();
    let mut half_sent = HttpConnection::open(at).await;
    half_sent.write(&bytes[..bytes.len() - 10]).await;
    gate.more_entered(4 + 2 + 4 + 1).await;
    server.stop();
    let mut batch = connections.pop().expect("a batch");
    for (connection, id) in connections.iter_mut().zip(&ids) {
        let response = connection.response().await;
        assert_eq!(response.header("connection"), Some("close"));
        is_cut_off(&response.json(), id);
        assert!(connection.is_closed().await);
    }
    let response = batch.response().await.json();
    is_cut_off(&response[0], &json!(1));
    is_cut_off(&response[1], &json!(2));
    for mut stream in streams {
        assert_eq!(stream.message().await["method"], "notifications/progress");
        is_cut_off(&stream.message().await, &json!(8));
        assert_eq!(stream.next().await, None);
    }
    is_cut_off(&sse.message().await, &json!(9));
    assert_eq!(sse.next().await, None);
    let response = half_sent.response().await;
    assert_eq!((response.status, response.header("connection")), (503, Some("close")));
    is_cut_off(&response.json(), &Value::Null);
    server.stopped().await;
    gate.until_ended(11, 0).await;
}

#[tokio::test]
async fn a_service_in_a_router_of_others_closes_connections_and_cuts_calls_off_once_it_is_stopped() {
    let gate = Gate::default();
    let service = impatient(&gate).into_service().expect("a service");
    let at = serve_router(Router::new().nest_service("/mcp", service.clone())).await;
    let mut connection = idle(at).await;
    let mut running = HttpConnection::open(at).await;
    running.send(&call("hold")).await;
    let mut stream = EventStream::open(&streamed(call("hold")), at).await.expect("a stream");
    gate.more_entered(2).await;
    service.stop();
    assert_eq!(last(&mut connection, &call("burst")).await, 200);
    let response = running.response().await;
    assert_eq!(response.header("connection"), Some("close"));
    is_cut_off(&response.json(), &json!(1));
    assert_eq!(stream.message().await["method"], "notifications/progress");
    is_cut_off(&stream.message().await, &json!(1));
    gate.until_ended(2, 0).await;
}
