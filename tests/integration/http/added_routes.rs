//! Routes of additions: exact paths beside the endpoint, without tokens, with a policy for each.

use std::io;

use axum::{
    Extension, Router,
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, header},
    response::{AppendHeaders, IntoResponse},
    routing::{any, get},
};
use futures_util::stream::once;
use mcp_runtime::{
    addition::Addition,
    auth::{ApiKeys, Oauth},
    http::{ClientAddress, RoutePolicy},
};

use super::fixture::builder;
use crate::prelude::*;

const OWN: &str = "https://mcp.example.com";

fn echo_route(path: &str, policy: RoutePolicy) -> Addition {
    Addition::route(path, policy, any(async |body: Bytes| body))
}

fn with(additions: impl IntoIterator<Item = Addition>) -> ServerBuilder {
    additions.into_iter().fold(builder(&Gate::default()), ServerBuilder::add)
}

fn request(method: &'static str, path: &str) -> HttpRequest {
    HttpRequest::new(method).path(path)
}

fn post(path: &str, body: &str) -> HttpRequest {
    HttpRequest::post(body).path(path)
}

#[tokio::test]
async fn a_form_takes_posts_of_its_own_origin_and_no_other() {
    let server = HttpServer::start(with([echo_route("/form", RoutePolicy::same_origin(OWN))])).await;
    let status = async |request: HttpRequest| request.send(server.address).await.status;
    let sent = || post("/form", "a=b");
    let answered =
        sent().header("Origin", OWN).header("Sec-Fetch-Site", "same-origin").send(server.address).await;
    assert_eq!((answered.status, answered.text()), (200, "a=b"));
    assert_eq!(answered.header("access-control-allow-origin"), None);
    assert_eq!(
        status(sent().header("Origin", OWN)).await,
        200,
        "older browsers do not send `Sec-Fetch-Site`"
    );
    assert_eq!(status(request("GET", "/form")).await, 200, "a link has no origin");
    for origin in [
        "null",
        "",
        "https://evil.example",
        "http://mcp.example.com",
        "https://mcp.example.com:8443",
        "https://mcp.example.com/",
        "https://mcp.example.com.evil.example",
        "HTTPS://mcp.example.com",
        "http://localhost",
    ] {
        for method in ["GET", "POST", "PUT", "OPTIONS"] {
            assert_eq!(
                status(request(method, "/form").header("Origin", origin)).await,
                403,
                "{method} {origin}"
            );
        }
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "X"] {
        assert_eq!(status(request(method, "/form")).await, 403, "{method} without an origin");
    }
    assert_eq!(status(sent().header("Origin", OWN).header("Origin", OWN)).await, 403);
    for site in ["cross-site", "same-site", "none", ""] {
        let forged = sent().header("Origin", OWN).header("Sec-Fetch-Site", site);
        assert_eq!(status(forged).await, 403, "{site}");
    }
    let forged = sent().header("Origin", OWN).header("Sec-Fetch-Site", "same-origin");
    assert_eq!(status(forged.header("Sec-Fetch-Site", "cross-site")).await, 403);
    // the guard of the endpoint is as before
    let call = HttpRequest::modern(1, "server/discover", json!({}));
    assert_eq!(status(call.header("Origin", OWN)).await, 403);
}

#[tokio::test]
async fn a_document_for_pages_of_every_origin_has_no_credentials() {
    let cookies = any(async |headers: HeaderMap| {
        let answer = format!("{:?} {:?}", headers.get("cookie"), headers.get("x-other"));
        let header = (header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        (AppendHeaders([header]), answer)
    });
    let policy = RoutePolicy::any_origin().max_body(4);
    let server = HttpServer::start(with([Addition::route("/public", policy, cookies)])).await;
    let send = async |request: HttpRequest| {
        let answered = request.header("Origin", "https://page.example").send(server.address).await;
        assert_eq!(answered.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answered.header("access-control-allow-credentials"), None);
        answered
    };
    let read = send(request("GET", "/public").header("Cookie", "id=1").header("X-Other", "2")).await;
    assert_eq!((read.status, read.text()), (200, "None Some(\"2\")"));
    let asked = request("OPTIONS", "/public").header("Access-Control-Request-Method", "PUT");
    let asked = send(asked.header("Access-Control-Request-Headers", "x-a")).await;
    assert_eq!((asked.status, asked.text()), (204, ""));
    assert_eq!(asked.header("access-control-allow-methods"), Some("POST, GET, DELETE"));
    assert_eq!(asked.header("access-control-allow-headers"), Some("x-a"));
    // a page can read why it is refused
    assert_eq!(send(post("/public", "12345")).await.status, 413);
}

#[tokio::test]
async fn a_route_is_at_its_exact_path_for_allowed_hosts_and_needs_no_token() {
    let keys = ApiKeys::new([("0123456789abcdef", Principal::new("i", "ada"))]);
    let path = "/.well-known/oauth-authorization-server/mcp";
    let server = with([echo_route(path, RoutePolicy::unchecked())]).auth(keys);
    let server = HttpServer::start(server).await;
    let status = async |request: HttpRequest| request.send(server.address).await.status;
    assert_eq!(status(HttpRequest::modern(1, "server/discover", json!({}))).await, 401);
    for method in ["GET", "HEAD", "POST", "DELETE", "OPTIONS"] {
        assert_eq!(
            status(request(method, path).header("Origin", "https://evil.example")).await,
            200,
            "{method}"
        );
    }
    assert_eq!(status(request("GET", &format!("{path}?a=b"))).await, 200);
    for other in [
        "/.well-known/oauth-authorization-server/mcp/",
        "/.well-known/oauth-authorization-server/MCP",
        "/.well-known/oauth-authorization-server//mcp",
        "/.well-known/oauth-authorization-server/%6dcp",
        "/.well-known/x/../oauth-authorization-server/mcp",
        "/.well-known/oauth-authorization-server/./mcp",
        "/.well-known/oauth-authorization-server",
        "//.well-known/oauth-authorization-server/mcp",
    ] {
        assert_eq!(status(request("GET", other)).await, 404, "{other}");
    }
    for host in ["evil.example", "localhost.evil.example", "localhost@evil.example"] {
        let asked = request("GET", path).with("Host", host).header("X-Forwarded-Host", "localhost");
        assert_eq!(status(asked).await, 403, "{host}");
    }
    assert_eq!(status(request("GET", &format!("http://evil.example{path}"))).await, 403);
    assert_eq!(status(request("GET", path).header("Host", "localhost")).await, 400);
    assert_eq!(status(request("GET", path).without("Host")).await, 400);
}

#[test]
fn a_path_that_the_server_answers_otherwise_is_an_error_of_build() {
    let error = |path: &str| {
        build_error(
            with([
                echo_route(path, RoutePolicy::unchecked()),
                echo_route("/twice", RoutePolicy::any_origin()),
            ])
            .auth(Oauth::issuer("https://id.example.com").resource("https://mcp.example.com/mcp"))
            .http(|http| http.legacy_sse("/sse"))
            .telemetry(|telemetry| telemetry.metrics_path("/metrics")),
        )
    };
    for path in [
        "/mcp",
        "/MCP",
        "/mcp/",
        "/sse",
        "/healthz",
        "/readyz/",
        "/metrics",
        "/.well-known/oauth-protected-resource",
        "/.well-known/OAuth-protected-resource/mcp",
        "/twice",
        "/Twice/",
    ] {
        let text = error(path);
        assert!(text.contains(&format!("`{path}` of an addition has the path of something else")), "{text}");
    }
    for path in [
        "", "mcp", "/a/../b", "/./a", "//a", "/a//b", "/a b", "/{a}", "/*a", "/:a", "/%61", "/a?b", "/a#b",
        "/ä",
    ] {
        let text = error(path);
        assert!(text.contains(&format!("the route `{path}` of an addition is not a path")), "{text}");
    }
    let of = |policy| build_error(with([echo_route("/a", policy)]));
    for own in
        ["", "mcp.example.com", "https://mcp.example.com/", "https://MCP.example.com", "https://a@b", "null"]
    {
        let text = of(RoutePolicy::same_origin(own));
        assert!(text.contains("which is not an origin"), "{own}: {text}");
    }
    assert!(of(RoutePolicy::unchecked().rate("often")).contains("`often` is not a rate"));
    let good = ["http://localhost:8080", "http://[::1]:80000", "https://mcp.example.com:8443"];
    assert!(with([echo_route("/a", RoutePolicy::same_origin(good[0]))]).build().is_ok());
    assert!(with([echo_route("/a", RoutePolicy::same_origin(good[1]))]).build().is_err());
    assert!(with([echo_route("/a", RoutePolicy::same_origin(good[2]))]).build().is_ok());
}

#[tokio::test]
async fn bodies_and_failing_services_are_contained() {
    let large = |bytes: usize| get(async move || "a".repeat(bytes));
    let broken = get(async || Body::from_stream(once(async { Err::<Bytes, _>(io::Error::other("broken")) })));
    let panics = get(async || if true { panic!("a route that panics") } else { "" });
    let policy = RoutePolicy::unchecked;
    let server = with([
        echo_route("/echo", policy()),
        echo_route("/large", policy().max_body(1 << 20)),
        Addition::route("/full", policy(), large(1 << 20)),
        Addition::route("/too-large", policy(), large((1 << 20) + 1)),
        Addition::route("/broken", policy(), broken),
        Addition::route("/panics", policy(), panics),
        Addition::route("/router", policy(), Router::new().route("/router", get(async || "of a router"))),
    ]);
    let server = HttpServer::start(server).await;
    let send = async |request: HttpRequest| request.send(server.address).await;
    assert_eq!(send(post("/echo", &"a".repeat(64 << 10))).await.body.len(), 64 << 10);
    assert_eq!(send(post("/echo", &"a".repeat((64 << 10) + 1))).await.status, 413);
    assert_eq!(send(post("/large", &"a".repeat(1 << 20))).await.body.len(), 1 << 20);
    assert_eq!(send(post("/large", &"a".repeat((1 << 20) + 1))).await.status, 413);
    assert_eq!(send(request("GET", "/full")).await.body.len(), 1 << 20);
    for path in ["/too-large", "/broken", "/panics"] {
        let failed = send(request("GET", path)).await;
        assert_eq!((failed.status, failed.text()), (500, ""), "{path}");
    }
    assert_eq!(send(request("GET", "/router")).await.text(), "of a router");
    assert_eq!(send(post("/router", "")).await.status, 405, "the service has answered");
    let hurried =
        with([echo_route("/echo", policy())]).http(|http| http.body_timeout(Duration::from_millis(50)));
    let hurried = HttpServer::start(hurried).await;
    let mut slow = HttpConnection::open(hurried.address).await;
    slow.write(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab").await;
    assert_eq!(slow.response().await.status, 408);
    let mut chunked = HttpConnection::open(server.address).await;
    chunked.write(&post("/echo", &"a".repeat(8_000)).chunked(1)).await;
    assert_eq!(chunked.response().await.status, 400, "too many small pieces");
    let mut head = HttpConnection::open(server.address).await;
    head.send(&request("HEAD", "/full")).await;
    assert_eq!(head.head().await.status, 200);
}

#[tokio::test]
async fn requests_to_routes_that_wait_leave_the_endpoint_alone() {
    let gate = Gate::default();
    let waits = gate.clone();
    let hangs = get(move || {
        let gate = waits.clone();
        async move { gate.pass().await }
    });
    let policy = RoutePolicy::unchecked;
    let server = with([Addition::route("/hangs", policy(), hangs), echo_route("/echo", policy())]);
    let server = HttpServer::start(server).await;
    let mut waiting = Vec::new();
    // half of them are those of one address
    for _ in 0..128 {
        let mut connection = HttpConnection::open(server.address).await;
        connection.send(&request("GET", "/hangs")).await;
        waiting.push(connection);
    }
    gate.until_entered(128).await;
    assert_eq!(request("GET", "/echo").send(server.address).await.status, 503);
    // a client that leaves ends its request
    drop(waiting.pop());
    gate.until_running(127).await;
    assert_eq!(request("GET", "/echo").send(server.address).await.status, 200);
    let call = HttpRequest::modern(1, "server/discover", json!({}));
    assert_eq!(call.send(server.address).await.status, 200);
    gate.open_for_all();
    for connection in &mut waiting {
        assert_eq!(connection.response().await.status, 200);
    }
}

#[tokio::test]
async fn each_client_address_has_a_rate_and_every_request_an_audit_line() {
    let who = async |Extension(ClientAddress(address)): Extension<ClientAddress>| {
        let caller = Principal::new("https://id.example.com", "ada");
        (Extension(caller), address.to_string()).into_response()
    };
    let lines = AuditLines::default();
    let policy = RoutePolicy::unchecked().rate("2/1h");
    let server =
        with([Addition::route("/who", policy, get(who)), echo_route("/other", RoutePolicy::unchecked())])
            .http(|http| http.trusted_proxies(["127.0.0.1"]))
            .audit(lines.sink());
    let server = HttpServer::start(server).await;
    let asked = |address: &str| request("GET", "/who").header("X-Forwarded-For", address);
    for _ in 0..2 {
        assert_eq!(asked("192.0.2.7").send(server.address).await.text(), "192.0.2.7");
        let line = lines.next().await;
        assert_eq!(
            [&line["event"], &line["kind"], &line["item"], &line["method"]],
            ["route", "route", "/who", "GET"]
        );
        assert_eq!((&line["status"], &line["address"]), (&json!(200), &json!("192.0.2.7")));
        assert_eq!([&line["subject"], &line["issuer"]], ["ada", "https://id.example.com"]);
    }
    let refused = asked("192.0.2.7").send(server.address).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    let line = lines.next().await;
    assert_eq!([&line["event"], &line["reason"], &line["address"]], ["refused", "rate_limited", "192.0.2.7"]);
    assert_eq!(asked("192.0.2.8").send(server.address).await.status, 200);
    assert_eq!(lines.next().await["event"], "route");
    assert_eq!(request("GET", "/other").send(server.address).await.status, 200, "it has no rate");
    assert_eq!(lines.next().await["item"], "/other");
    assert_eq!(asked("a name").send(server.address).await.status, 400);
    assert_eq!(lines.next().await["reason"], "forwarded");
}

#[tokio::test]
async fn routers_have_the_routes_also_those_of_mounted_builders_at_their_paths() {
    let inner = Server::builder("inner", "1").add(echo_route("/inner", RoutePolicy::unchecked()));
    let build = || with([echo_route("/outer", RoutePolicy::unchecked())]);
    let server = build().mount("in", inner).build().expect("a server");
    let service = server.clone().into_service().expect("a service");
    let nested = Router::new().merge(service.metadata_router()).nest_service("/tools/mcp", service);
    for router in [server.into_router().expect("a router"), nested] {
        let at = serve_router(router).await;
        for path in ["/inner", "/outer"] {
            assert_eq!(post(path, "a").send(at).await.text(), "a", "{path}");
        }
    }
    let both = Server::builder("inner", "1").add(echo_route("/outer", RoutePolicy::unchecked()));
    assert!(build_error(build().mount("in", both)).contains("`/outer`"));
}
