//! Rates: of the server over HTTP, before anything is read, and of items, on every transport.

use mcp_runtime::{
    auth::ApiKeys,
    prompt::{PromptCall, PromptDef},
    resource::{ResourceCall, ResourceDef},
};

use super::{call, here, seen_by};
use crate::prelude::*;

/// May be called twice
#[mcp_tool(rate = "2/1h")]
async fn seldom() -> &'static str {
    "called"
}

/// May be read once
#[mcp_resource(uri = "news://today", rate = "1/1h")]
fn news() -> &'static str {
    "nothing"
}

/// May be got once
#[mcp_prompt(rate = "1/24h")]
fn plan() -> &'static str {
    "Plan my day."
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<here>().tool::<seldom>().resource::<news>().prompt::<plan>()
}

/// A server with a rate behind a proxy on the loopback interface.
fn limited(rate: &str) -> ServerBuilder {
    builder().limits(|limits| limits.rate(rate)).http(|http| http.trusted_proxies(["127.0.0.1"]))
}

fn from(client: &str) -> HttpRequest {
    call("here").header("X-Forwarded-For", client)
}

#[tokio::test]
async fn a_client_over_its_rate_is_told_when_to_come_back_before_its_body_is_read() {
    let server = HttpServer::start(limited("2/1h")).await;
    for _ in 0..2 {
        assert_eq!(text_of(&from("192.0.2.1").send(server.address).await.json()), "here");
    }
    let mut connection = HttpConnection::open(server.address).await;
    connection
        .write(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
              X-Forwarded-For: 192.0.2.1\r\nContent-Length: 1000000\r\n\r\n",
        )
        .await;
    // not a byte of the body has been sent
    let refused = connection.response().await;
    assert_eq!((refused.status, refused.code()), (429, -32603));
    let seconds: u64 = refused.header("retry-after").and_then(|text| text.parse().ok()).expect("a time");
    assert!((1..=1800).contains(&seconds), "{seconds} s of half an hour");
    let message = refused.json()["error"]["message"].clone();
    assert_eq!(
        message,
        format!(
            "too many requests: a client may send at most 2 requests in 1 hour\ntry again in {seconds} s"
        )
    );
    // every method, and every path of the protocol
    for request in [HttpRequest::new("GET"), HttpRequest::new("DELETE"), HttpRequest::post("not JSON")] {
        let status = request.header("X-Forwarded-For", "192.0.2.1").send(server.address).await.status;
        assert_eq!(status, 429);
    }
    assert_eq!(HttpRequest::new("GET").path("/readyz").send(server.address).await.status, 200);
    assert_eq!(text_of(&from("192.0.2.2").send(server.address).await.json()), "here");
}

#[tokio::test]
async fn a_flood_of_one_principal_leaves_another_its_rate() {
    let builder = builder().limits(|limits| limits.rate("20/1h")).http(|http| http.caller(x_user));
    let server = HttpServer::start(builder).await;
    let at = server.address;
    let flood: Vec<_> = (0..200)
        .map(|_| spawn(async move { call("here").header("x-user", "eve").send(at).await.status }))
        .collect();
    let mut served = 0;
    for status in flood {
        served += usize::from(status.await.expect("no panic") == 200);
    }
    assert_eq!(served, 20);
    for _ in 0..20 {
        assert_eq!(call("here").header("x-user", "ada").send(at).await.status, 200);
    }
    // those without a principal are told apart by their address
    assert_eq!(call("here").send(at).await.status, 200);
}

#[tokio::test]
async fn the_streams_and_messages_of_http_sse_count() {
    let builder = limited("3/1h").http(|http| http.legacy_sse("/sse"));
    let server = HttpServer::start(builder).await;
    let mut client = HttpSse::open(server.address, "/sse", &[]).await;
    client.initialize(&json!({})).await;
    let again = HttpRequest::new("GET").path("/sse").header("Accept", "text/event-stream");
    assert_eq!(again.send(server.address).await.status, 429);
}

#[tokio::test]
async fn the_rate_of_a_server_holds_on_connections_too() {
    // the handshake counts as well
    let server = builder().limits(|limits| limits.rate("4/1h")).build().expect("a server");
    let mut lines = LineConnection::serve(&server, 1 << 16);
    lines.reply_to(&initialize(0, "2025-11-25", &json!({}))).await;
    for id in 1..=3 {
        assert_eq!(text_of(&lines.reply_to(&legacy_call(id, "here", &json!({}))).await), "here");
    }
    let refused = lines.reply_to(&legacy_call(4, "here", &json!({}))).await;
    assert_eq!(refused["error"]["code"], -32603);
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("at most 4 requests in 1 hour") && message.contains("try again in"),
        "{message}"
    );
    assert!(lines.reply_to(&ping(5)).await.get("result").is_some(), "the host sees that the server is alive");
}

#[tokio::test]
async fn the_rate_of_an_item_is_an_answer_to_the_model_on_every_transport() {
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        for transport in Transport::ALL {
            let server = builder().build().expect("a server");
            let mut client = Client::connect(&server, transport, revision, json!({}), |_, _| json!({})).await;
            for _ in 0..2 {
                assert_eq!(client.call("seldom", json!({})).await.text(), "called");
            }
            let refused = client.call("seldom", json!({})).await;
            assert_eq!(refused.reply["isError"], true, "{transport:?} {revision}: {}", refused.reply);
            let text = refused.text();
            assert!(
                text.starts_with("tool 'seldom' may be called 2 times in 1 hour\ntry again in"),
                "{text}"
            );
            assert_eq!(client.call("here", json!({})).await.text(), "here", "another tool");
        }
    }
}

#[tokio::test]
async fn resources_and_prompts_over_their_rate_are_errors() {
    let server = builder().build().expect("a server");
    let (ada, bob) = (seen_by(&server, "ada"), seen_by(&server, "bob"));
    ada.read("news://today").await.expect_ok();
    let (code, message) = refusal(&ada.read("news://today").await);
    assert_eq!(code, -32603);
    assert!(message.starts_with("resource 'news' may be called once in 1 hour"), "{message}");
    ada.prompt("plan", json!({})).await.expect_ok();
    let (code, message) = refusal(&ada.prompt("plan", json!({})).await);
    assert_eq!(code, -32603);
    assert!(message.starts_with("prompt 'plan' may be called once in 1 day\ntry again in 86"), "{message}");
    bob.read("news://today").await.expect_ok();
    bob.prompt("plan", json!({})).await.expect_ok();
}

#[tokio::test]
async fn the_items_of_a_mount_share_its_rate() {
    let mounted = mcp_runtime::server!().tool::<here>().tool::<seldom>().limits(|limits| limits.rate("3/1h"));
    let outer = mcp_runtime::server!().mount("in", mounted);
    let server = serve(mcp_runtime::server!().tool::<here>().mount("out", outer));
    for _ in 0..2 {
        server.call("out_in_seldom", json!({})).await.expect_text("called");
    }
    server.call("out_in_here", json!({})).await.expect_text("here");
    server.call("out_in_here", json!({})).await.expect_failure("may be called 3 times in 1 hour");
    server.call("out_in_seldom", json!({})).await.expect_failure("may be called 2 times in 1 hour");
    server.call("here", json!({})).await.expect_text("here");
}

#[tokio::test]
async fn items_made_at_run_time_have_rates_that_survive_changes_of_the_server() {
    let tool = ToolDef::builder("one").rate("1/1h").handler(|_: ToolCall| async { "called" });
    let resource =
        ResourceDef::builder("made://one").rate("1/1h").handler(|_: ResourceCall| async { "read" });
    let prompt = PromptDef::builder("one").rate("1/1h").handler(|_: PromptCall| async { "got" });
    let built = builder().add(tool).add(resource).add(prompt).build().expect("a server");
    let (server, handle) = (TestServer::of(&built), built.handle());
    server.call("seldom", json!({})).await.expect_ok();
    server.call("seldom", json!({})).await.expect_ok();
    server.call("one", json!({})).await.expect_ok();
    server.read("made://one").await.expect_ok();
    server.prompt("one", json!({})).await.expect_ok();
    handle.add(ToolDef::builder("two").handler(|_: ToolCall| async { "two" })).expect("a tool");
    server.call("one", json!({})).await.expect_failure("may be called once in 1 hour");
    server.call("seldom", json!({})).await.expect_failure("may be called 2 times in 1 hour");
    server.read("made://one").await.expect_code(-32603);
    server.prompt("one", json!({})).await.expect_code(-32603);
    // what replaces an item has a rate of its own
    handle.add(ToolDef::builder("one").rate("1/1h").handler(|_: ToolCall| async { "anew" })).expect("a tool");
    server.call("one", json!({})).await.expect_text("anew");
}

#[test]
fn what_is_not_a_rate_or_a_proxy_is_an_error_of_the_build() {
    let wrong = build_error(builder().limits(|limits| limits.rate("60 per minute")));
    assert!(wrong.contains("`60 per minute` is not a rate"), "{wrong}");
    let tool = ToolDef::builder("one").rate("0/1m").handler(|_: ToolCall| async { "called" });
    let wrong = build_error(builder().add(tool));
    assert!(wrong.contains("tool `one`: `0/1m` is not a rate"), "{wrong}");
    let mounted = mcp_runtime::server!().limits(|limits| limits.rate("x"));
    let wrong = build_error(builder().mount("in", mounted));
    assert!(wrong.contains("a mounted builder: `x` is not a rate"), "{wrong}");
    let wrong = build_error(builder().limits(|limits| limits.timeout(Duration::ZERO)));
    assert!(wrong.contains("a time limit of 0 s ends every call before it begins"), "{wrong}");
    let mounted = mcp_runtime::server!().limits(|limits| limits.timeout(Duration::ZERO));
    let wrong = build_error(builder().mount("in", mounted));
    assert!(wrong.contains("a mounted builder: a time limit of 0 s ends every call"), "{wrong}");
    let proxies =
        Server::builder("x", "1").http(|http| http.trusted_proxies(["10.0.0.0/8", "proxy.internal"]));
    let wrong = build_error(proxies);
    assert!(wrong.contains("`proxy.internal` is not the address of a proxy"), "{wrong}");
    let both = Server::builder("x", "1")
        .http(|http| http.trusted_proxies(["10.0.0.0/8"]).client_address(|_, peer| peer));
    assert!(build_error(both).contains("remove one of them"));
    let unnamed = Server::builder("x", "1").http(|http| http.forwarded_header("Forwarded"));
    assert!(build_error(unnamed).contains("`forwarded_header` names what trusted proxies write"));
    let wrong = Server::builder("x", "1")
        .http(|http| http.trusted_proxies(["10.0.0.0/8"]).forwarded_header("for: warded"));
    assert!(build_error(wrong).contains("`for: warded` is not a header in which a proxy names clients"));
}

#[tokio::test]
async fn guesses_of_a_token_count_for_their_address_and_for_no_caller() {
    let ada = Principal::new("https://example.com", "ada");
    let builder = limited("5/1h").auth(ApiKeys::new([("0123456789abcdef", ada)]));
    let server = HttpServer::start(builder).await;
    let mut statuses = Vec::new();
    for guess in 0..7 {
        let token = format!("Bearer 0123456789abcde{guess}");
        statuses.push(from("192.0.2.1").header("Authorization", &token).send(server.address).await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429]);
    let hers = from("192.0.2.1").header("Authorization", "Bearer 0123456789abcdef");
    assert_eq!(hers.send(server.address).await.status, 200, "the caller has a rate of its own");
}
