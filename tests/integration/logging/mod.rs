//! Log messages for legacy and modern clients, over each transport.

mod floods;
mod tracing_events;

use mcp_runtime::context::LogLevel;

use crate::{
    http::legacy::session,
    prelude::*,
    process::{legacy, until_counted},
};

/// Logs at every level
#[mcp_tool]
fn talk(ctx: &Context) -> &'static str {
    for level in LogLevel::ALL {
        ctx.log(level, level.as_str()).send();
    }
    "talked"
}

/// Logs things of all kinds
#[mcp_tool]
async fn kinds(ctx: &Context) {
    ctx.log(LogLevel::Error, json!({ "a": [1, null] })).logger("db").send();
    ctx.log(LogLevel::Error, Some(1.5)).logger(format!("db {}", 2)).send();
    // a value that cannot be serialized is not sent
    ctx.log(LogLevel::Error, BTreeMap::from([((1, 2), 3)])).send();
    tokio::task::yield_now().await;
    ctx.log(LogLevel::Error, "last\nline").send();
}

#[mcp_resource(uri = "log://one")]
fn read(ctx: &Context) -> &'static str {
    ctx.log(LogLevel::Notice, "read").send();
    "one"
}

#[mcp_prompt]
fn prompt(ctx: &Context) -> &'static str {
    ctx.log(LogLevel::Notice, "prompted").send();
    "one"
}

fn builder() -> ServerBuilder {
    let quiet = ToolDef::builder("quiet").handler(|call: ToolCall| async move {
        call.context.log(LogLevel::Debug, "quiet").send();
    });
    mcp_runtime::server!().tool::<talk>().tool::<kinds>().resource::<read>().prompt::<prompt>().add(quiet)
}

fn logging() -> ServerBuilder {
    builder().telemetry(|telemetry| telemetry.client_logging())
}

fn on() -> TestServer {
    serve(logging())
}

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Parameters of a modern call with that log level.
fn asking(name: &str, level: &str) -> Value {
    json!({ "name": name, "_meta": { LEVEL: level } })
}

/// Levels of the notifications, all of which must be log messages.
fn levels(reply: &Reply) -> Vec<&str> {
    reply.expect_ok();
    let level = |message: &'_ Value| {
        assert_eq!(message["method"], "notifications/message", "{reply}");
        assert!(message.get("id").is_none(), "{reply}");
    };
    reply.notifications().iter().for_each(level);
    reply.notifications().iter().map(|m| m["params"]["level"].as_str().expect("a level")).collect()
}

const ALL: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

#[tokio::test]
async fn a_modern_request_sets_its_own_level() {
    let server = on();
    for (at, level) in ALL.into_iter().enumerate() {
        let reply = server.request("tools/call", asking("talk", level)).await;
        assert_eq!(levels(&reply), ALL[at..], "{level}");
    }
    assert!(levels(&server.call("talk", json!({})).await).is_empty(), "no level is set");
    let params = json!({ "uri": "log://one", "_meta": { LEVEL: "info" } });
    assert_eq!(levels(&server.request("resources/read", params).await), ["notice"]);
    assert_eq!(levels(&server.request("prompts/get", asking("prompt", "info")).await), ["notice"]);
    assert_eq!(levels(&server.request("tools/call", asking("quiet", "debug")).await), ["debug"]);
}

#[tokio::test]
async fn an_unknown_level_is_refused() {
    let server = on();
    for level in [json!("trace"), json!("Info"), json!(3)] {
        let params = json!({ "name": "talk", "_meta": { LEVEL: level } });
        let (code, text) = refusal(&server.request("tools/call", params).await);
        assert_eq!(code, -32602);
        assert!(text.contains("logLevel") && text.contains("debug, info, notice"), "{text}");
    }
}

#[tokio::test]
async fn data_is_serialized_with_serde() {
    let reply = on().request("tools/call", asking("kinds", "error")).await;
    let params: Vec<_> = reply.notifications().iter().map(|m| m["params"].clone()).collect();
    let expected = [
        json!({ "level": "error", "logger": "db", "data": { "a": [1, null] } }),
        json!({ "level": "error", "logger": "db 2", "data": 1.5 }),
        json!({ "level": "error", "data": "last\nline" }),
    ];
    assert_eq!(params, expected);
}

#[tokio::test]
async fn a_legacy_client_sets_a_level_for_its_session() {
    for revision in LEGACY {
        let server = on().legacy(revision);
        assert_eq!(
            levels(&server.call("talk", json!({})).await),
            ALL[1..],
            "info, before it has said anything"
        );
        for (at, level) in ALL.into_iter().enumerate() {
            let reply = server.request("logging/setLevel", json!({ "level": level })).await;
            assert_eq!(*reply.value(), json!({}), "{revision}");
            assert_eq!(levels(&server.call("talk", json!({})).await), ALL[at..], "{revision}");
        }
        for params in [json!({}), json!({ "level": "loud" }), json!({ "level": 1 }), json!({ "level": null })]
        {
            assert_eq!(refusal(&server.request("logging/setLevel", params).await).0, -32602, "{revision}");
        }
        assert_eq!(levels(&server.call("talk", json!({})).await), ["emergency"], "{revision}");
        // the `_meta` of modern requests is ignored here
        let reply = server.request("tools/call", asking("talk", "nonsense")).await;
        assert_eq!(levels(&reply), ["emergency"]);
    }
}

#[tokio::test]
async fn logging_is_declared_where_it_is_enabled() {
    for &revision in Revision::ALL {
        let server = if revision.is_modern() { on() } else { on().legacy(revision) };
        assert_eq!(server.capabilities().await["logging"], json!({}), "{revision}");
        let off = serve(builder());
        let off = if revision.is_modern() { off } else { off.legacy(revision) };
        assert_eq!(off.capabilities().await.get("logging"), None, "{revision}");
        assert!(levels(&off.request("tools/call", asking("talk", "debug")).await).is_empty());
        assert_eq!(refusal(&off.request("logging/setLevel", json!({ "level": "info" })).await).0, -32601);
    }
    let removed = on().request("logging/setLevel", json!({ "level": "info" })).await;
    assert_eq!(refusal(&removed).0, -32601, "the stateless era has no such method");
}

#[tokio::test]
async fn nothing_is_logged_for_a_finished_call() {
    let mut server = legacy("2025-11-25").await;
    assert_eq!(server.reply_to(&set_level("set", "debug")).await["result"], json!({}));
    // `hang` logs once it has been cancelled; `ask` fails if anything but its response comes
    server.send(&legacy_call("never", "hang", &json!({}))).await;
    server.send(&cancelled("never")).await;
    until_counted(&mut server, "fired 1").await;
    server.reply_to(&ping("after")).await;
}

#[tokio::test]
async fn work_that_outlives_a_function_which_returns_at_once_learns_that_the_call_has_ended() {
    let (ended, mut has_ended) = tokio::sync::mpsc::channel(1);
    let leaves = ToolDef::builder("leaves").handler(move |call: ToolCall| {
        let ended = ended.clone();
        async move {
            spawn(async move {
                call.context.cancelled().await;
                call.context.log(LogLevel::Error, "late").send();
                ended.send(call.context.is_cancelled()).await
            });
            "left"
        }
    });
    let server = mcp_runtime::server!().add(leaves).telemetry(|telemetry| telemetry.client_logging());
    let server = TestServer::new(server).unwrap();
    assert_eq!(levels(&server.request("tools/call", asking("leaves", "debug")).await), [""; 0]);
    assert_eq!(within(has_ended.recv()).await, Some(false), "it was not cancelled");
}

fn set_level(id: &str, level: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "logging/setLevel", "params": { "level": level } })
}

#[tokio::test]
async fn a_level_lasts_for_its_connection() {
    let mut server = legacy("2025-06-18").await;
    let messages = async |server: &mut LineConnection, id: &str| {
        server.send(&legacy_call(id, "chatter", &json!({}))).await;
        let mut seen = Vec::new();
        loop {
            let message = server.message().await;
            if message["id"] == id {
                return seen;
            }
            seen.push(message["params"]["data"].clone());
        }
    };
    // `run` forwards events only where a client has set a level
    assert_eq!(messages(&mut server, "a").await, [json!("logged")]);
    assert_eq!(server.reply_to(&set_level("b", "debug")).await["result"], json!({}));
    let recorded = json!({ "message": "recorded", "answer": 42 });
    assert_eq!(messages(&mut server, "c").await, [recorded, json!("logged")]);
    assert_eq!(server.reply_to(&set_level("d", "warning")).await["result"], json!({}));
    assert_eq!(messages(&mut server, "e").await, [json!("logged")]);
    assert_eq!(server.reply_to(&set_level("f", "error")).await["result"], json!({}));
    assert!(messages(&mut server, "g").await.is_empty());
    assert_eq!(server.reply_to(&set_level("h", "x")).await["error"]["code"], -32602);
    // a modern request on the same connection sets its own level
    server.reply_to(&call("i", "chatter", &json!({}))).await;
}

#[tokio::test]
async fn over_http_a_level_lasts_for_its_session() {
    let server = HttpServer::start(logging()).await;
    let [mine, other] = [session(&server, "2025-11-25").await, session(&server, "2025-11-25").await];
    let set = json!({ "level": "alert" });
    let reply = HttpRequest::legacy(&mine, 1, "logging/setLevel", &set).send(server.address).await;
    assert_eq!(reply.json()["result"], json!({}));
    for (session, count) in [(&mine, 2), (&other, 7)] {
        let call = HttpRequest::legacy(session, 2, "tools/call", &json!({ "name": "talk" }));
        assert_eq!(logged(call, server.address).await, count);
    }
}

/// How many log messages the stream of a call has.
async fn logged(call: HttpRequest, at: SocketAddr) -> usize {
    let messages = call.send(at).await.messages();
    messages.iter().filter(|message| message["method"] == "notifications/message").count()
}

#[tokio::test]
async fn without_sessions_a_level_is_accepted_but_not_kept() {
    let server = HttpServer::start(logging().http(|http| http.stateless())).await;
    let reply = HttpRequest::post(set_level("a", "alert").to_string())
        .header("MCP-Protocol-Version", "2025-11-25")
        .send(server.address)
        .await;
    assert_eq!((reply.status, &reply.json()["result"]), (200, &json!({})));
    let call = HttpRequest::legacy("", 2, "tools/call", &json!({ "name": "talk" }));
    let call = call.without("Mcp-Session-Id").header("MCP-Protocol-Version", "2025-11-25");
    assert_eq!(logged(call, server.address).await, 7, "as before");
}
