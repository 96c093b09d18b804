//! Behind a trusted proxy one client is one owner, whatever else it sends: the header that the proxy writes names it, and
//! no other header does.

use super::{here, modern};
use crate::prelude::*;

/// Ends with its client
#[mcp_tool]
async fn waits() {
    std::future::pending::<()>().await;
}

/// A server behind a proxy on the loopback interface, with places for eight requests.
fn proxied() -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<here>()
        .tool::<waits>()
        .http(|http| http.trusted_proxies(["127.0.0.1"]).max_requests(8))
}

/// What a client sends besides to be taken for another.
const DISGUISES: [&[(&str, &str)]; 8] = [
    &[],
    &[("Forwarded", "for=192.0.2.77")],
    &[("Forwarded", "for=unknown")],
    &[("Forwarded", "for=_hidden")],
    &[("Forwarded", "for=\"")],
    &[("Forwarded", "for=127.0.0.1")],
    &[("X-Real-IP", "192.0.2.77"), ("X-Client-IP", "192.0.2.78")],
    &[("Via", "1.1 other"), ("X-Forwarded", "for=192.0.2.77")],
];

fn disguised(mut request: HttpRequest, disguise: &[(&str, &str)]) -> HttpRequest {
    for (name, value) in disguise {
        request = request.header(name, value);
    }
    request
}

#[tokio::test]
async fn a_client_that_contradicts_the_header_of_the_proxy_is_one_owner() {
    let server = HttpServer::start(proxied()).await;
    let hers = |tool: &str, disguise| {
        disguised(modern(tool).header("X-Forwarded-For", "9.9.9.9, 192.0.2.1"), disguise)
    };
    let mut open = Vec::new();
    for disguise in DISGUISES.iter().take(4) {
        let mut connection = HttpConnection::open(server.address).await;
        connection.send(&hers("waits", disguise)).await;
        open.push(connection);
    }
    within(async { while hers("here", &[]).send(server.address).await.status != 503 {} }).await;
    for disguise in DISGUISES {
        assert_eq!(hers("here", disguise).send(server.address).await.status, 503, "{disguise:?}");
    }
    // the places of another, and those of the proxy itself, are untouched
    for _ in 0..4 {
        let mut connection = HttpConnection::open(server.address).await;
        connection.send(&modern("waits").header("X-Forwarded-For", "192.0.2.2")).await;
        open.push(connection);
    }
    drop(open.drain(..1));
    let probe = async || modern("here").send(server.address).await;
    within(async { while probe().await.status != 200 {} }).await;
    drop(open);
}

#[tokio::test]
async fn a_header_of_the_proxy_that_cannot_be_read_is_refused_and_charged_to_no_client() {
    let server = HttpServer::start(proxied().limits(|limits| limits.rate("1/1h"))).await;
    let from = |line: &str| modern("here").header("X-Forwarded-For", line);
    for line in ["nonsense", "", "192.0.2.1,", "for=192.0.2.1", "192.0.2.1:99999", "192.0.2.1 192.0.2.2"] {
        let refused = from(line).send(server.address).await;
        assert_eq!((refused.status, refused.code()), (400, -32600), "{line}");
        let message = refused.json()["error"]["message"].clone();
        assert_eq!(message, "`x-forwarded-for` does not say which client sent the request");
    }
    for session in [HttpRequest::new("GET"), HttpRequest::new("DELETE")] {
        assert_eq!(session.header("X-Forwarded-For", "nonsense").send(server.address).await.status, 400);
    }
    let probe = HttpRequest::new("GET").path("/readyz").header("X-Forwarded-For", "nonsense");
    assert_eq!(probe.send(server.address).await.status, 200, "probes are answered without a known sender");
    for line in ["192.0.2.1", "nonsense, 192.0.2.2", "::ffff:192.0.2.3", "[2001:db8:1::5]:80", "192.0.2.4:80"]
    {
        assert_eq!(text_of(&from(line).send(server.address).await.json()), "here", "{line}");
    }
    for line in ["192.0.2.1:4711", "192.0.2.3", "2001:db8:1::6", "::ffff:192.0.2.4"] {
        assert_eq!(from(line).send(server.address).await.status, 429, "{line} has used its rate");
    }
}

#[tokio::test]
async fn a_proxy_that_writes_forwarded_is_believed_in_that_header_only() {
    let builder = proxied().limits(|limits| limits.rate("2/1h"));
    let server = HttpServer::start(builder.http(|http| http.forwarded_header("Forwarded"))).await;
    let from = |line: &str| modern("here").header("Forwarded", line);
    let mut statuses = Vec::new();
    for n in 1..=3 {
        let forged = format!("for=192.0.2.{n};proto=http, for=\"[2001:db8:2::{n}]:4711\";by=_proxy");
        let request = from(&forged).header("X-Forwarded-For", &format!("192.0.2.{n}"));
        statuses.push(request.send(server.address).await.status);
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(from("for=192.0.2.1").send(server.address).await.status, 200);
    for line in ["for=192.0.2.1;for=192.0.2.2", "for=\"192.0.2.1", "192.0.2.1", "for=", ""] {
        assert_eq!(from(line).send(server.address).await.status, 400, "{line}");
    }
}
