//! What servers leave in Redis, of all features: nothing is without an expiry, and after a day there is nothing but what says
//! that it lasts longer.

use std::{collections::BTreeSet, time::Duration};

use mcp_external_tests::redis::RedisServer;
use mcp_runtime::{Principal, Server, ServerBuilder, ServerHandle, event, prelude::*, store::Redis};
use mcp_tests::support::{AnyStore, EventStream, HttpRequest, HttpServer, HttpSse, server_key, within};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::redis;
use crate::shared::webhooks::Endpoint;

/// More than a day, by what clocks may differ, in milliseconds.
const DAY: i64 = (24 * 60 + 5) * 60 * 1000;

/// Withdraws, once
#[mcp_tool]
async fn withdraw(ctx: &Context) -> Result<&'static str, ToolError> {
    let _agreed: bool = ctx.elicit("agreed", "Withdraw?").await?;
    ctx.consume_once().await?;
    Ok("withdrawn")
}

/// Works, and can be begun again
#[mcp_tool(task(restart), idempotent)]
async fn job(ctx: &Context) -> Result<u32, ToolError> {
    ctx.once("seven", async || Ok::<_, ToolError>(7)).await
}

/// A note
#[mcp_type]
struct Note {
    text: String,
}

/// A note was added.
#[mcp_event(name = "note.added")]
fn note_added(#[mcp(payload)] _note: &Note, _caller: &Principal) -> bool {
    true
}

/// Adds a note, and reports progress
#[mcp_tool]
async fn add(ctx: &Context, server: &ServerHandle) -> mcp_runtime::Result<()> {
    ctx.progress(1.0).send();
    ctx.emit::<note_added>(&Note { text: "text".into() }).await?;
    server.resource_updated("test://state");
    Ok(())
}

/// Has a rate
#[mcp_tool(rate = "100/1h")]
fn rated() -> &'static str {
    "counted"
}

/// A state
#[mcp_resource(uri = "test://state")]
fn state() -> &'static str {
    "state"
}

fn server(redis: &RedisServer) -> ServerBuilder {
    let store: AnyStore = AnyStore::new(Redis::at(redis.url()));
    Server::builder("left", "1")
        .stores(|stores| stores.keys([server_key(6)]))
        .limits(|limits| limits.rate("10000/1h").events(|events| events.webhooks_on_loopback()))
        .http(|http| {
            http.legacy_sse("/sse")
                .caller(|parts| Some(Principal::new("test", parts.headers.get("x-user")?.to_str().ok()?)))
        })
        .telemetry(|telemetry| telemetry.client_logging())
        .add(event::of::<note_added>())
        .tool::<withdraw>()
        .tool::<rated>()
        .tool::<job>()
        .tool::<add>()
        .resource::<state>()
        .shared(store)
}

async fn modern(at: &HttpServer, method: &str, params: Value) -> Value {
    let request = HttpRequest::modern(1, method, params).header("x-user", "ada").map_body(|body| {
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    });
    let reply = request.send(at.address).await.json();
    assert!(reply["error"].is_null(), "{method}: {reply}");
    reply["result"].clone()
}

async fn session(at: &HttpServer) -> String {
    let initialize = HttpRequest::initialize("2025-11-25").header("x-user", "ada");
    initialize.send(at.address).await.session()
}

/// Uses everything that keeps something in the store.
async fn use_everything(one: &HttpServer, two: &HttpServer) {
    let asked = modern(one, "tools/call", json!({ "name": "withdraw" })).await;
    let answers = json!({ "agreed": { "action": "accept", "content": { "value": true } } });
    let retry =
        json!({ "name": "withdraw", "inputResponses": answers, "requestState": asked["requestState"] });
    modern(two, "tools/call", retry).await;
    modern(one, "tools/call", json!({ "name": "rated" })).await;
    let task = modern(one, "tools/call", json!({ "name": "job" })).await["taskId"].clone();
    while modern(two, "tasks/get", json!({ "taskId": task })).await["status"] != "completed" {
        sleep(Duration::from_millis(10)).await;
    }
    let url = Endpoint::start().await.url;
    for (path, ttl) in [("a", json!(3_600_000)), ("b", Value::Null)] {
        let secret = "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
        let delivery = json!({ "mode": "webhook", "url": format!("{url}/{path}"), "secret": secret });
        let params = json!({ "name": "note.added", "arguments": {}, "delivery": delivery, "ttlMs": ttl });
        modern(one, "events/subscribe", params).await;
    }
    modern(two, "tools/call", json!({ "name": "add" })).await;

    let (used, ended) = (session(one).await, session(one).await);
    let of =
        |method: &str, params: &Value| HttpRequest::legacy(&used, 7, method, params).header("x-user", "ada");
    for (method, params) in [
        ("logging/setLevel", json!({ "level": "error" })),
        ("resources/subscribe", json!({ "uri": "test://state" })),
    ] {
        let reply = of(method, &params).send(two.address).await;
        assert_eq!(reply.status, 200, "{method}: {:?}", reply.json());
    }
    let standalone = HttpRequest::standalone_stream(&used).header("x-user", "ada");
    let _standalone = EventStream::open(&standalone, two.address).await.expect("a stream");
    let call = of("tools/call", &json!({ "name": "add", "_meta": { "progressToken": 1 } }));
    let mut stream = EventStream::open(&call, one.address).await.expect("a stream");
    while stream.next_event().await.is_some() {}
    let end = HttpRequest::new("DELETE").session(&ended).header("x-user", "ada");
    assert_eq!(end.send(two.address).await.status, 204);

    let mut old = HttpSse::open(one.address, "/sse", &[("x-user", "ada")]).await;
    old.initialize(&json!({})).await;
}

/// The tables that have anything.
fn tables(redis: &RedisServer) -> BTreeSet<String> {
    let table = |key: &str| Some(key.split_once('{')?.1.split_once('}')?.0.to_owned());
    redis.keys().iter().map(|(key, _)| table(key).unwrap_or_else(|| key.clone())).collect()
}

/// Lets so many milliseconds pass for every key.
fn later(redis: &RedisServer, time: i64) {
    for (key, left) in redis.keys() {
        redis.command(&["PEXPIRE", &key, &(left - time).to_string()]);
    }
}

#[tokio::test]
async fn nothing_is_left_in_redis_a_day_later_but_what_says_that_it_lasts_longer() {
    let Some(redis) = redis("nothing_is_left_in_redis_a_day_later") else { return };
    within(async {
        let one = HttpServer::start(server(&redis)).await;
        let two = HttpServer::start(server(&redis)).await;
        sleep(Duration::from_millis(200)).await;
        use_everything(&one, &two).await;
        for mut server in [one, two] {
            server.stop();
            server.stopped().await;
        }
        // its process has given it up, or is about to
        while tables(&redis).contains("left/leases") {
            sleep(Duration::from_millis(10)).await;
        }
        let lasting: Vec<_> = redis.keys().into_iter().filter(|(_, left)| *left < 0).collect();
        assert!(lasting.is_empty(), "without an expiry: {lasting:?}");
        assert_eq!(
            tables(&redis).iter().map(String::as_str).collect::<Vec<_>>(),
            [
                "left/calls",
                "left/keys",
                "left/rate/server/requests/10000-3600000",
                "left/rate/tool/rated/100-3600000",
                "left/restartable-tasks",
                "left/sessions",
                "left/tasks",
                "left/webhook-endpoints",
                "left/webhook-indexes",
                "left/webhooks",
                "log/left/events",
            ],
            "each table is filled here: what a new one keeps is to be added"
        );
        later(&redis, DAY);
        let after_a_day = tables(&redis);
        assert_eq!(
            after_a_day.iter().map(String::as_str).collect::<Vec<_>>(),
            // the probe of the keys, the log of an event, and a subscription without an end
            ["left/keys", "left/webhook-indexes", "left/webhooks", "log/left/events",],
        );
        later(&redis, 366 * DAY);
        assert_eq!(tables(&redis), BTreeSet::new());
    })
    .await;
}
