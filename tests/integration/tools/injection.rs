//! Parameters that the server provides: never in the schema, and never set by the client.

use std::{
    sync::atomic::AtomicU32,
    thread::{self, ThreadId},
};

use mcp_runtime::FromContext;

use crate::prelude::*;

#[derive(Default)]
struct Counter(AtomicU32);

trait Greeter: Send + Sync {
    fn greet(&self, name: &str) -> String;
}

struct Polite;

impl Greeter for Polite {
    fn greet(&self, name: &str) -> String {
        format!("Dear {name}")
    }
}

struct Absent;

struct Tx(String);

impl FromContext for Tx {
    type Error = ToolError;

    async fn from_context(ctx: &Context) -> Result<Self, ToolError> {
        tokio::task::yield_now().await;
        Ok(Self(format!("tx for {}", ctx.revision())))
    }
}

#[mcp_tool]
async fn everything(
    ctx: &Context,
    name: String,
    counter: &Counter,
    greeter: &dyn Greeter,
    absent: Option<&Absent>,
    #[mcp(inject)] tx: Tx,
) -> String {
    let count = counter.0.fetch_add(1, Ordering::Relaxed);
    format!("{} {count} {} {} {}", greeter.greet(&name), absent.is_some(), tx.0, ctx.is_cancelled())
}

fn polite() -> Arc<dyn Greeter> {
    Arc::new(Polite)
}

#[tokio::test]
async fn injected_parameters_are_not_in_the_schema_and_a_client_cannot_set_them() {
    let builder = mcp_runtime::server!().tool::<everything>().state(Counter::default()).state(polite());
    let server = serve(builder);
    assert_eq!(
        only_tool(&server).await["inputSchema"],
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] })
    );
    let reply = server.call("everything", json!({ "name": "Ann" })).await;
    reply.expect_text("Dear Ann 0 false tx for 2026-07-28 false");
    let sent = json!({
        "name": "Ann", "counter": 100, "ctx": { "cancelled": true }, "greeter": "rude", "absent": {}, "tx": "mine"
    });
    let reply = server.legacy(Revision::V2025_03_26).call("everything", sent).await;
    reply.expect_text("Dear Ann 1 false tx for 2025-03-26 false");
}

#[tokio::test]
async fn strict_tools_refuse_names_of_injected_parameters() {
    #[mcp_tool(strict)]
    fn count(counter: &Counter) -> String {
        counter.0.load(Ordering::Relaxed).to_string()
    }
    let server = serve(mcp_runtime::server!().tool::<count>().state(Counter(AtomicU32::new(5))));
    server.call("count", json!({})).await.expect_text("5");
    server.call("count", json!({ "counter": 9 })).await.expect_failure("unknown argument `counter`");
}

#[test]
fn missing_state_is_a_build_error() {
    let error = build_error(mcp_runtime::server!().tool::<everything>());
    assert!(error.contains("tool `everything`") && error.contains("injection.rs:"), "{error}");
    assert!(error.contains("`&Counter`") && error.contains("`&dyn Greeter`"), "{error}");
    assert!(!error.contains("Absent") && !error.contains("Context"), "{error}");
}

#[tokio::test]
async fn the_context_gives_access_to_the_request() {
    #[mcp_tool]
    fn look(ctx: &Context) -> Json<Value> {
        Json(json!({
            "client": ctx.client().map(|client| (client.name, client.version)),
            "capabilities": ctx.client_capabilities(),
            "meta": ctx.meta("org.example/k"),
            "caller": ctx.caller().is_some()
        }))
    }
    let server = serve(mcp_runtime::server!().tool::<look>());
    let params = json!({ "name": "look", "_meta": {
        "org.example/k": [1],
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "2" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} }
    } });
    assert_eq!(
        server.request("tools/call", params).await.value()["structuredContent"],
        json!({ "client": ["c", "2"], "capabilities": { "elicitation": {} }, "meta": [1], "caller": false })
    );
    let legacy = server.legacy(Revision::V2024_11_05).call("look", json!({})).await;
    let seen: Value = legacy.json();
    assert_eq!(seen["client"][0], "test");
    assert_eq!(seen["meta"], json!(null));
}

#[test]
fn two_values_of_one_type_of_state_are_a_build_error() {
    struct Db(#[allow(dead_code)] u32);
    for builder in [
        mcp_runtime::server!().state(Db(1)).state(Db(2)),
        mcp_runtime::server!().state(Db(1)).state(Arc::new(Db(2))),
        mcp_runtime::server!().state(Arc::new(Db(1))).state(Db(2)),
    ] {
        let error = build_error(builder);
        assert!(
            error.contains("two values of type `") && error.contains(" are registered with `.state(..)`"),
            "{error}"
        );
        assert!(error.contains(file!()) && error.contains("give each a type of its own"), "{error}");
    }
    let other = mcp_runtime::server!().state(Db(1));
    assert!(mcp_runtime::server!().state(Db(2)).state(7_u8).mount("other", other).build().is_ok());
}

/// Where a value was made, which a blocking function must not run on.
struct MadeOn(ThreadId);

impl FromContext for MadeOn {
    type Error = ToolError;

    async fn from_context(ctx: &Context) -> Result<Self, ToolError> {
        tokio::task::yield_now().await;
        if ctx.meta("org.example/refuse").is_some() {
            return Err("refused before the thread starts".into());
        }
        Ok(Self(thread::current().id()))
    }
}

#[mcp_tool(blocking, task)]
fn blocking_tool(n: u32, #[mcp(inject)] made: MadeOn, counter: &Counter, ctx: &Context) -> String {
    counter.0.fetch_add(n, Ordering::Relaxed);
    format!("another thread: {}, {}", thread::current().id() != made.0, ctx.is_cancelled())
}

#[mcp_resource(uri = "thread://{n}", blocking)]
fn blocking_resource(n: u32, #[mcp(inject)] made: MadeOn) -> String {
    format!("{n}: another thread: {}", thread::current().id() != made.0)
}

#[mcp_prompt(blocking)]
fn blocking_prompt(#[mcp(inject)] made: MadeOn, counter: Option<&Counter>) -> String {
    format!("another thread: {}, {}", thread::current().id() != made.0, counter.is_some())
}

struct Desk(&'static str);

#[mcp_service]
impl Desk {
    #[mcp_tool(blocking)]
    fn at(&self, #[mcp(inject)] made: MadeOn) -> String {
        format!("{}: another thread: {}", self.0, thread::current().id() != made.0)
    }
}

#[tokio::test]
async fn a_blocking_function_takes_values_that_are_awaited_before_its_thread_starts() {
    let builder = mcp_runtime::server!()
        .tool::<blocking_tool>()
        .resource::<blocking_resource>()
        .prompt::<blocking_prompt>()
        .service(Desk("desk"))
        .state(Counter::default());
    let server = serve(builder);
    server.call("blocking_tool", json!({ "n": 1 })).await.expect_text("another thread: true, false");
    let read = server.read("thread://7").await;
    assert_eq!(read.value()["contents"][0]["text"], "7: another thread: true");
    let prompt = server.prompt("blocking_prompt", json!({})).await;
    assert_eq!(prompt.value()["messages"][0]["content"]["text"], "another thread: true, true");
    server.call("at", json!({})).await.expect_text("desk: another thread: true");
    let params =
        json!({ "name": "blocking_tool", "arguments": { "n": 1 }, "_meta": { "org.example/refuse": true } });
    let reply = server.request("tools/call", params).await;
    reply.expect_failure("refused before the thread starts");
    let task = server.call_task("blocking_tool", json!({ "n": 1 })).await;
    task.expect_text("another thread: true, false");
}

#[test]
fn claims_that_are_taken_by_reference_are_an_error_that_says_how_they_are_taken() {
    #[derive(serde::Deserialize)]
    #[allow(dead_code)]
    struct Plan {
        plan: String,
    }

    #[mcp_tool]
    fn plan_of(claims: &mcp_runtime::auth::Claims<Plan>) -> String {
        claims.0.plan.clone()
    }

    let error = build_error(mcp_runtime::server!().tool::<plan_of>());
    assert!(error.contains("`#[mcp(inject)] claims: mcp_runtime::auth::Claims<Plan>`"), "{error}");
    assert!(!error.contains("by value"), "{error}");
}
