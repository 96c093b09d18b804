//! What goes up and what does not: credentials of the program, and nothing of the caller's but what its call is made of.

use std::sync::Mutex;

use mcp_runtime::{
    client::Client,
    tool::{ToolCall, ToolDef},
};
use mcp_runtime_remote::Remote;
use serde_json::{Value, json};

use crate::support::{Served, built, names, test_server};

const CANARY: &str = "canary-7f3a";

struct Token(Mutex<&'static str>);

fn echo() -> ToolDef {
    ToolDef::builder("echo").handler(|_: ToolCall| async { "heard" })
}

#[tokio::test]
async fn nothing_of_the_callers_connection_goes_up() {
    let upstream = Served::new(&built(mcp_runtime::server!().add(echo()))).await;
    let token = |token: &Token| token.0.lock().expect("a token").to_owned();
    let relay = mcp_runtime::server!()
        .state(Token(Mutex::new("ours-1")))
        .add(Remote::new("up", upstream.url()).bearer(token).header("x-team", |_: &Token| "tea"));
    let relay = Served::new(&built(relay)).await;
    let client = Client::builder().bearer_token(CANARY).header("x-canary", CANARY).header("baggage", CANARY);
    let client = client
        .header("cookie", CANARY)
        .info(CANARY, CANARY)
        .connect(relay.url())
        .await
        .expect("a connection");
    client.tools().await.expect("tools");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let call = client
        .call("up_echo", json!({ "text": "said" }))
        .meta("baggage", CANARY)
        .meta("com.modelcontextprotocol/secret", CANARY)
        .meta("dev.mcp/secret", CANARY)
        .meta("io.modelcontextprotocol/logLevel", "debug")
        .meta("traceparent", trace)
        .meta("tracestate", "a=b")
        .meta("com.example/tenant", "acme")
        .on_progress(|_| {});
    call.await.expect("a result").ok().expect("success");

    let calls = upstream.of("tools/call");
    assert_eq!(calls.len(), 1);
    let meta = &calls[0].message()["params"]["_meta"];
    assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!(trace), &json!("a=b")));
    assert_eq!(meta["com.example/tenant"], "acme");
    assert_eq!(calls[0].message()["params"]["arguments"], json!({ "text": "said" }));
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], Value::Null);
    let (of_caller, of_relay) =
        (&relay.of("tools/call")[0].message()["params"]["_meta"]["progressToken"], &meta["progressToken"]);
    assert!(of_relay.is_number() && of_caller.is_number());
    for arrived in upstream.all() {
        assert!(!arrived.body.contains(CANARY), "{}", arrived.body);
        assert!(arrived.headers.iter().all(|(_, value)| !value.contains(CANARY)), "{:?}", arrived.headers);
        assert_eq!(arrived.header("authorization"), Some("Bearer ours-1"));
        assert_eq!(arrived.header("x-team"), Some("tea"));
    }
}

#[tokio::test]
async fn the_progress_tokens_of_two_callers_are_two_tokens_of_the_relay() {
    let upstream = Served::new(&built(mcp_runtime::server!().add(echo()))).await;
    let relay = Served::new(&built(mcp_runtime::server!().add(Remote::new("up", upstream.url())))).await;
    let (one, two) = (relay.client().await, relay.client().await);
    for client in [&one, &two] {
        client.tools().await.expect("tools");
        client.call("up_echo", json!({})).on_progress(|_| {}).await.expect("a result");
    }
    let tokens = |served: &Served| -> Vec<Value> {
        let calls = served.of("tools/call");
        calls.iter().map(|call| call.message()["params"]["_meta"]["progressToken"].clone()).collect()
    };
    assert_eq!(tokens(&relay)[0], tokens(&relay)[1], "the callers count alike");
    assert_ne!(tokens(&upstream)[0], tokens(&upstream)[1]);
}

#[tokio::test]
async fn the_token_is_that_of_the_moment() {
    let upstream = Served::new(&built(mcp_runtime::server!().add(echo()))).await;
    let token: &'static Token = Box::leak(Box::new(Token(Mutex::new("first"))));
    let remote = Remote::new("up", upstream.url());
    let relay = test_server(
        mcp_runtime::server!()
            .state(token)
            .add(remote.bearer(|token: &&'static Token| token.0.lock().expect("a token").to_owned())),
    );
    assert_eq!(names(&relay.list_tools().await), ["up_echo"]);
    *token.0.lock().expect("a token") = "second";
    relay.call("up_echo", json!({})).await.expect_text("heard");
    assert_eq!(upstream.of("tools/list")[0].header("authorization"), Some("Bearer first"));
    assert_eq!(upstream.of("tools/call")[0].header("authorization"), Some("Bearer second"));
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    let upstream = Served::new(&built(mcp_runtime::server!().add(echo()))).await;
    let remote =
        Remote::new("up", upstream.url()).bearer(|token: &Token| token.0.lock().expect("a token").to_owned());
    let relay = mcp_runtime::server!().state(Token(Mutex::new("not\na header"))).add(remote);
    let relay = test_server(relay);
    assert!(relay.list_tools().await.is_empty());
    assert!(upstream.all().is_empty(), "no credential, and nothing to fall back to");
}

#[test]
fn a_credential_whose_state_is_missing_is_an_error() {
    let url = "https://example.com/mcp";
    for (remote, method) in [
        (Remote::new("up", url).bearer(|_: &Token| "t"), "`.bearer(..)`"),
        (Remote::new("up", url).header("x-key", |_: &Token| "t"), "`.header(..)`"),
        (Remote::new("up", "server").env("KEY", |_: &Token| "t"), "`.env(..)`"),
    ] {
        // that of the server into which it is mounted is not its own
        let server = mcp_runtime::server!()
            .state(Token(Mutex::new("")))
            .mount("m", mcp_runtime::server!().add(remote));
        let error = server.build().expect_err(method).to_string();
        assert!(error.contains(&format!("{method} takes `&")) && error.contains("secrecy.rs"), "{error}");
    }
}

#[test]
fn a_target_that_others_can_read_or_that_has_no_place_for_credentials_is_an_error() {
    let error = |remote: Remote| {
        let built = mcp_runtime::server!().add(remote).build();
        built.err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (remote, part) in [
        (Remote::new("up", "http://example.com/mcp"), "write `https`"),
        (Remote::new("up", "http://localhost.example.com/mcp"), "write `https`"),
        (Remote::new("up", "https://me:secret@example.com/mcp"), "use `.bearer(..)`"),
        (Remote::new("up", ""), "neither a URL nor a command line"),
        (Remote::new("a b", "https://example.com/mcp"), "is not a name"),
        (Remote::new("up", "server --stdio").bearer(|_: &String| "t"), "pass credentials to it with `.env"),
        (Remote::new("up", "https://example.com").env("T", |_: &String| "t"), "a URL has no environment"),
        (
            Remote::new("up", "https://example.com").header("a b", |_: &String| "t"),
            "is not the name of a header",
        ),
    ] {
        let text = error(remote);
        assert!(text.contains(part) && !text.contains("secret"), "{text}");
    }
    for url in
        ["https://example.com/mcp", "http://127.0.0.1:1/mcp", "http://[::1]:1/mcp", "http://localhost:1/mcp"]
    {
        assert_eq!(error(Remote::new("up", url)), "");
    }
}
