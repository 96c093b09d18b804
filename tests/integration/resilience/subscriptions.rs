//! How subscriptions end on a connection that they share with calls, and what is kept of them.

use crate::prelude::*;

/// Any text
#[mcp_resource(uri = "note://{+text}")]
fn note(text: String) -> String {
    text
}

fn notes() -> ServerBuilder {
    mcp_runtime::server!().resource::<note>().with_handle(drop).http(|http| {
        http.client_address(|parts, _peer| parts.headers.get("x-client")?.to_str().ok()?.parse().ok())
    })
}

const ADA: &str = "192.0.2.1";
const BOB: &str = "192.0.2.2";
/// Bytes of the longest URI that a subscription may have.
const LONGEST: usize = 8 << 10;

/// A URI of so many bytes.
fn uri(n: usize, bytes: usize) -> String {
    let start = format!("note://{n}/");
    format!("{start}{}", "x".repeat(bytes - start.len()))
}

fn listen_to(client: &str, uris: &[String]) -> HttpRequest {
    let params = json!({ "notifications": { "resourceSubscriptions": uris } });
    HttpRequest::modern("s", "subscriptions/listen", params).header("x-client", client)
}

#[tokio::test]
async fn a_client_that_subscribes_to_long_uris_in_both_eras_keeps_its_share_of_memory_and_no_more() {
    let server = HttpServer::start(notes()).await;
    let session = async |client: &str| {
        HttpRequest::initialize("2025-11-25").header("x-client", client).send(server.address).await.session()
    };
    let (hers, his) = (session(ADA).await, session(BOB).await);
    let subscribe = async |client: &str, session: &str, n| {
        let params = json!({ "uri": uri(n, LONGEST) });
        let request = HttpRequest::legacy(session, n, "resources/subscribe", &params);
        request.header("x-client", client).send(server.address).await.json()
    };
    let open = async |request: &HttpRequest| EventStream::open(request, server.address).await;
    // of 32 MiB for all clients she has half, and a URI counts with 128 bytes more than it has
    let uris: Vec<_> = (0..403).map(|n| uri(n, LONGEST)).collect();
    let listen = listen_to(ADA, &uris);
    let mut listening = Vec::new();
    for _ in 0..5 {
        listening.push(open(&listen).await.expect("room"));
    }
    assert!(open(&listen_to(ADA, &uris[..1])).await.is_ok());
    // until the server has noticed that it is closed
    within(async { while subscribe(ADA, &hers, 3).await["result"].is_null() {} }).await;
    let legacy = subscribe(ADA, &hers, 4).await;
    let more = listen_to(ADA, &uris[..9]);
    let refused = open(&more).await.err().expect("no room");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    for refused in [legacy, refused.json()] {
        assert_eq!(refused["error"]["code"], -32603);
        let message = refused["error"]["message"].to_string();
        assert!(message.contains("have too many bytes, of 33554432 for all clients"), "{message}");
    }
    assert!(subscribe(BOB, &his, 4).await["result"].is_object());
    assert!(open(&listen_to(BOB, &uris[..9])).await.is_ok());
    // until the server has noticed that one is closed
    listening.pop();
    within(async { while open(&more).await.is_err() {} }).await;
    within(async { while subscribe(ADA, &hers, 5).await["result"].is_null() {} }).await;
}

#[tokio::test]
async fn a_uri_that_is_too_long_is_refused_by_name_of_the_limit_on_every_transport() {
    let too_long = "the URI has 8193 bytes, and that of a subscription may have 8192";
    let refused = |reply: &Value| {
        assert_eq!((&reply["error"]["code"], &reply["error"]["message"]), (&json!(-32602), &json!(too_long)));
    };
    let (fits, long) = (uri(1, LONGEST), uri(1, LONGEST + 1));
    let built = notes().http(|http| http.legacy_sse("/sse")).build().expect("a server");
    let server = HttpServer::of(&built).await;
    let at = server.address;
    let modern = listen_to(ADA, std::slice::from_ref(&long)).send(at).await;
    refused(&modern.json());
    let session = HttpRequest::initialize("2025-11-25").send(at).await.session();
    for (uri, is_refused) in [(&fits, false), (&long, true)] {
        let params = json!({ "uri": uri });
        let reply = HttpRequest::legacy(&session, 1, "resources/subscribe", &params).send(at).await.json();
        if is_refused { refused(&reply) } else { assert!(reply["result"].is_object(), "{reply}") }
    }
    let mut sse = HttpSse::open(at, "/sse", &[]).await;
    sse.initialize(&json!({})).await;
    sse.send(&request(2, "resources/subscribe", json!({ "uri": long }))).await;
    refused(&sse.message().await);
    let mut pipe = LineConnection::serve(&built, 1 << 16);
    pipe.initialize("2025-06-18").await;
    refused(&pipe.request(2, "resources/subscribe", json!({ "uri": long })).await);
    assert!(pipe.request(3, "resources/subscribe", json!({ "uri": fits })).await["result"].is_object());
}
