//! Requests that are refused before their message is parsed.

use super::fixture::{builder, plain};
use crate::prelude::*;

fn echo() -> HttpRequest {
    HttpRequest::modern(1, "tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}))
}

#[tokio::test]
async fn foreign_hosts_and_foreign_origins_are_refused() {
    let server = plain().await;
    let status = async |request: HttpRequest| request.send(server.address).await.status;
    let port = server.address.port();
    for host in
        ["localhost".to_owned(), format!("127.0.0.1:{port}"), format!("[::1]:{port}"), "LOCALHOST".into()]
    {
        assert_eq!(status(echo().with("Host", &host)).await, 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0", "x@localhost"]
    {
        let request = echo().with("Host", host).header("X-Forwarded-Host", "localhost");
        assert_eq!(status(request).await, 403, "{host}");
    }
    for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:8080"] {
        assert_eq!(status(echo().header("Origin", origin)).await, 200, "{origin}");
    }
    for origin in ["https://evil.example", "null", "http://localhost.evil.example", "file://", ""] {
        assert_eq!(status(echo().header("Origin", origin)).await, 403, "{origin}");
    }
    assert_eq!(status(echo().without("Host")).await, 400);
    assert_eq!(status(echo().header("Host", "localhost")).await, 400);
    let twice = echo().header("Origin", "http://localhost").header("Origin", "http://localhost");
    let twice = twice.send(server.address).await;
    assert_eq!((twice.status, twice.code()), (400, -32020));
    // the authority of the request target is checked like `Host`
    assert_eq!(status(echo().path("http://evil.example/mcp")).await, 403);
    assert_eq!(status(echo().path("http://localhost/mcp")).await, 200);
    // for every method, and before the body is read
    for method in ["GET", "DELETE", "OPTIONS", "PUT"] {
        assert_eq!(
            status(HttpRequest::new(method).header("Origin", "https://evil.example")).await,
            403,
            "{method}"
        );
    }
    assert_eq!(
        status(HttpRequest::post("{").without("Content-Type").with("Host", "evil.example")).await,
        403
    );
}

#[tokio::test]
async fn allow_lists_allow_only_what_they_name() {
    let listed = builder(&Gate::default())
        .http(|http| http.allowed_hosts(["mcp.example"]).allowed_origins(["null", "https://app.example"]));
    let server = HttpServer::start(listed).await;
    let status = async |host: &str, origin: &str| {
        echo().with("Host", host).header("Origin", origin).send(server.address).await.status
    };
    assert_eq!(status("mcp.example:8443", "null").await, 200);
    assert_eq!(status("mcp.example", "https://app.example").await, 200);
    assert_eq!(status("mcp.example", "https://app.example.evil.example").await, 403);
    assert_eq!(status("localhost", "null").await, 403);
    let any = HttpServer::start(builder(&Gate::default()).http(|http| http.any_host())).await;
    assert_eq!(echo().with("Host", "anything.example").send(any.address).await.status, 200);
    let page = echo().with("Host", "anything.example").header("Origin", "https://anything.example");
    assert_eq!(page.send(any.address).await.status, 403);
}

#[tokio::test]
async fn local_pages_are_admitted_only_to_local_hosts() {
    for any_host in [false, true] {
        let public = builder(&Gate::default()).http(|http| match any_host {
            true => http.any_host(),
            false => http.allowed_hosts(["mcp.example", "localhost"]),
        });
        let server = HttpServer::start(public).await;
        for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"] {
            let status = async |request: HttpRequest| {
                request.header("Origin", origin).send(server.address).await.status
            };
            assert_eq!(status(echo().with("Host", "mcp.example")).await, 403, "{origin}");
            let mixed = echo().path("http://mcp.example/mcp").with("Host", "localhost");
            assert_eq!(status(mixed).await, 403, "{origin}");
            assert_eq!(status(echo().with("Host", "localhost:8080")).await, 200, "{origin}");
        }
    }
    // unless it is listed
    let listed = builder(&Gate::default())
        .http(|http| http.allowed_hosts(["mcp.example"]).allowed_origins(["http://localhost:3000"]));
    let server = HttpServer::start(listed).await;
    let request = echo().with("Host", "mcp.example").header("Origin", "http://localhost:3000");
    assert_eq!(request.send(server.address).await.status, 200);
}

#[tokio::test]
async fn a_refusal_tells_the_client_the_reason_and_the_log_the_remedy() {
    let log = ThreadLog::capture();
    let server = plain().await;
    let refused = [
        (echo().with("Host", "evil.example"), "this host is not served", "allowed_hosts"),
        (echo().header("Origin", "https://evil.example"), "this origin is not allowed", "allowed_origins"),
    ];
    for (request, reason, method) in refused {
        let reply = request.send(server.address).await;
        assert_eq!((reply.status, &reply.json()["error"]["message"]), (403, &json!(reason)));
        assert_eq!(log.with(method).len(), 1, "{method}");
    }
    assert_eq!(log.with("evil.example").iter().filter(|line| line.starts_with("WARN")).count(), 1);
}

#[tokio::test]
async fn a_public_address_needs_allowed_hosts() {
    let start = async |builder: ServerBuilder| {
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.expect("a port");
        builder.build().expect("a server").serve_http_until(listener, async {}).await
    };
    let plain = || builder(&Gate::default());
    let error = start(plain()).await.expect_err("refused").to_string();
    assert!(error.contains("`.http(|http| http.allowed_hosts([..]))`"), "{error}");
    assert!(start(plain().http(|http| http.allowed_origins(["https://app.example"]))).await.is_err());
    assert!(start(plain().http(|http| http.allowed_hosts(["mcp.example"]))).await.is_ok());
    assert!(start(plain().http(|http| http.any_host())).await.is_ok());
}

#[tokio::test]
async fn options_that_could_never_match_are_build_errors() {
    let plain = || builder(&Gate::default());
    for (builder, named) in [
        (
            plain().http(|http| http.allowed_hosts(["https://mcp.example"])),
            "`https://mcp.example` is not a host",
        ),
        (plain().http(|http| http.allowed_origins(["app.example"])), "`app.example` is not an origin"),
        (plain().http(|http| http.allowed_origins(["*"])), "`*` is not an origin"),
        (plain().http(|http| http.path("mcp")), "`mcp` is not a path"),
    ] {
        let error = builder.build().expect_err("refused").to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[tokio::test]
async fn preflight_requests_are_answered_with_what_is_allowed() {
    let server = plain().await;
    let origin = "http://localhost:5173";
    let preflight = HttpRequest::new("OPTIONS")
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "content-type, mcp-param-region");
    let reply = preflight.send(server.address).await;
    assert_eq!((reply.status, reply.text()), (204, ""));
    assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
    assert_eq!(reply.header("access-control-allow-methods"), Some("POST, GET, DELETE"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("content-type, mcp-param-region"));
    let reply = HttpRequest::initialize("2025-11-25").header("Origin", origin).send(server.address).await;
    assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
    assert_eq!(
        reply.header("access-control-expose-headers"),
        Some("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce")
    );
    assert_eq!(reply.header("vary"), Some("Origin"));
    assert_eq!(echo().send(server.address).await.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn other_http_methods_are_not_allowed() {
    let server = plain().await;
    for method in ["PUT", "PATCH", "TRACE"] {
        let reply = HttpRequest::new(method).send(server.address).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, POST, DELETE")), "{method}");
    }
    let elsewhere = echo().path("/elsewhere").send(server.address).await;
    assert_eq!((elsewhere.status, elsewhere.text()), (404, ""));
    let slash = echo().path("/mcp/").send(server.address).await;
    assert_eq!(
        (slash.status, &slash.json()["error"]["message"]),
        (404, &json!("nothing is at this path\nwrite `/mcp`"))
    );
}

#[tokio::test]
async fn an_invalid_body_costs_one_response() {
    let server = plain().await;
    let mut wire = HttpConnection::open(server.address).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested =
        |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"x":{deep}}}}}"#);
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"none"}}"#, "i".repeat(1_000_000));
    let modern = |body: &str| HttpRequest::post(body).header("MCP-Protocol-Version", "2026-07-28");
    for (request, status, code) in [
        (modern("not json"), 400, -32700),
        (modern(""), 400, -32700),
        (modern(&deep), 400, -32600),
        (HttpRequest::post(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".as_slice()), 400, -32700),
        (modern(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#), 400, -32600),
        (modern(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), 400, -32600),
        (modern(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#), 400, -32602),
        (modern(r#"{"jsonrpc":"2.0","method":"notifications/x","params":3}"#), 400, -32602),
        (modern(&nested("tools/list")), 400, -32602),
        (modern(&long_id), 400, -32600),
        (echo().with("Content-Type", "text/plain"), 415, -32600),
        (echo().without("Content-Type"), 415, -32600),
        (echo().with("Content-Type", "application/jsonp"), 415, -32600),
    ] {
        let shown = String::from_utf8_lossy(&request.bytes()).chars().take(300).collect::<String>();
        wire.send(&request).await;
        let reply = wire.response().await;
        assert_eq!((reply.status, reply.code()), (status, code), "{shown}");
        if reply.header("connection") == Some("close") || status == 415 {
            wire = HttpConnection::open(server.address).await;
        }
    }
    wire.write(&echo().with("Content-Type", "Application/JSON; charset=utf-8").bytes()).await;
    assert_eq!(text_of(&wire.response().await.json()), "hi");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_in_any_encoding() {
    let server = HttpServer::start(builder(&Gate::default()).http(|http| http.max_body(10_000))).await;
    let body = |size: usize| {
        let message = "x".repeat(size);
        HttpRequest::modern(1, "tools/call", json!({"name": "echo", "arguments": {"message": message}}))
    };
    for size in [10_000, 200_000] {
        for bytes in [body(size).bytes(), body(size).chunked(1000)] {
            let mut wire = HttpConnection::open(server.address).await;
            wire.try_write(&bytes).await;
            let reply = wire.response().await;
            assert_eq!((reply.status, reply.code()), (413, -32600));
        }
    }
    // a client that sends `Expect: 100-continue` is refused before it sends the body
    let mut wire = HttpConnection::open(server.address).await;
    let head = String::from_utf8(body(20_000).header("Expect", "100-continue").bytes()).expect("UTF-8");
    wire.write(head.split_once("\r\n\r\n").map(|(h, _)| format!("{h}\r\n\r\n")).expect("a head").as_bytes())
        .await;
    assert_eq!(wire.response().await.status, 413);
    for bytes in [body(9_000).bytes(), body(9_000).chunked(1000)] {
        let mut wire = HttpConnection::open(server.address).await;
        wire.write(&bytes).await;
        assert_eq!(text_of(&wire.response().await.json()).len(), 9_000);
    }
}

#[tokio::test]
async fn transfer_codings_other_than_chunked_are_not_implemented() {
    let server = plain().await;
    let chunked = String::from_utf8(echo().chunked(7)).expect("ASCII");
    let one = "Transfer-Encoding: chunked\r\n";
    for coding in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked, chunked\r\n",
        "Transfer-Encoding: , chunked\r\n",
    ] {
        for path in ["/mcp", "/healthz"] {
            let mut connection = HttpConnection::open(server.address).await;
            let request = chunked.replacen(one, coding, 1).replacen("/mcp", path, 1);
            connection.write(request.as_bytes()).await;
            // hyper refuses those that it cannot read itself
            let response = connection.response().await;
            assert!(matches!(response.status, 501 | 400), "{coding} {path}: {}", response.status);
            assert!(connection.is_closed().await, "{coding}");
        }
    }
    for coding in [one, "transfer-encoding:   CHUNKED  \r\n"] {
        let mut connection = HttpConnection::open(server.address).await;
        connection.write(chunked.replacen(one, coding, 1).as_bytes()).await;
        assert_eq!(connection.response().await.status, 200, "{coding}");
    }
}
