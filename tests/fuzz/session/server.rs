//! The server that is played with: an item of each kind, and small limits, so that short sessions reach them.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use mcp_runtime::{
    Server, ServerHandle, ToolError,
    context::LogLevel,
    prompt::{PromptArgument, PromptCall, PromptDef},
    resource::{ResourceCall, ResourceDef},
    tool::{TaskMode, ToolCall, ToolDef},
};
use serde_json::json;

pub(super) const MAX_IN_FLIGHT: usize = 8;
pub(super) const MAX_QUEUED: usize = 4;
/// Calls of `limited` that one caller may run at once.
pub(super) const MAX_PER_CALLER: usize = 2;
pub(super) const MAX_SUBSCRIBERS: usize = 6;
pub(super) const MAX_RUNNING_TASKS: usize = 3;
/// The resource that clients subscribe to.
pub(super) const BOARD: &str = "board://notes";
/// How long a request to a client waits, and a task without its client.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

async fn pause(call: &ToolCall) -> Result<(), ToolError> {
    let pause = call.arg::<Option<u64>>("ms")?.unwrap_or(5);
    tokio::time::sleep(Duration::from_millis(pause)).await;
    Ok(())
}

fn tools(handle: &Arc<OnceLock<ServerHandle>>) -> Vec<ToolDef> {
    let schema = json!({ "type": "object", "properties": { "ms": { "type": "integer", "maximum": 99 } } });
    let echo = ToolDef::builder("echo")
        .input_schema(json!({ "type": "object", "properties": { "text": { "type": "string" } } }))
        .handler(|call: ToolCall| async move {
            call.arg::<Option<String>>("text").map(Option::unwrap_or_default)
        });
    let slept = |call: ToolCall| async move {
        pause(&call).await?;
        Ok::<_, ToolError>("slept")
    };
    let one = ToolDef::builder("one").input_schema(schema.clone()).max_concurrency(1).handler(slept);
    let limited = ToolDef::builder("limited").input_schema(schema.clone());
    let limited = limited.max_concurrency_per_caller(MAX_PER_CALLER).handler(slept);
    let slow = ToolDef::builder("slow").input_schema(schema.clone()).handler(slept);
    let ask = ToolDef::builder("ask").handler(|call: ToolCall| async move {
        call.context.elicit::<bool>("sure", "Sure?").await.map(|sure| sure.to_string())
    });
    let panics = ToolDef::builder("panics").handler(|call: ToolCall| async move {
        assert!(call.arg::<Option<bool>>("not")?.unwrap_or(false), "as it should");
        Ok::<_, ToolError>("did not panic")
    });
    // its id is in what it logs; a part of it goes on when it has ended
    let chatty = ToolDef::builder("chatty").handler(|call: ToolCall| async move {
        let id: serde_json::Value = call.arg("id")?;
        for step in 1..=3 {
            call.context.progress(step).total(4).message("at work").send();
            call.context.log(LogLevel::Info, json!({ "call": id })).send();
            pause(&call).await?;
        }
        tokio::spawn(async move {
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(3)).await;
                call.context.progress(4).send();
                call.context.log(LogLevel::Error, json!({ "call": id })).send();
            }
        });
        Ok::<_, ToolError>("said")
    });
    let handle = handle.clone();
    let change = ToolDef::builder("change").handler(move |_: ToolCall| {
        let handle = handle.clone();
        async move {
            let handle = handle.get().expect("it is set with the server");
            handle.resource_updated(BOARD);
            handle.tools_changed();
            "changed"
        }
    });
    let build = ToolDef::builder("build").input_schema(schema).task(TaskMode::Capable).handler(slept);
    let sign = ToolDef::builder("sign").task(TaskMode::Capable).handler(|call: ToolCall| async move {
        call.context.progress(1).total(2).send();
        call.context.elicit::<bool>("sign", "Sign?").await.map(|signed| signed.to_string())
    });
    vec![echo, one, limited, slow, ask, panics, chatty, change, build, sign]
}

pub(super) fn server() -> Server {
    let handle = Arc::new(OnceLock::new());
    let board = ResourceDef::builder(BOARD).name("board").handler(|_: ResourceCall| async { "milk" });
    let note = ResourceDef::builder("board://notes/{id}")
        .name("note")
        .complete("id", ["7", "70", "8"])
        .handler(|call: ResourceCall| async move { call.variable::<u8>("id").map(|id| id.to_string()) });
    let review = PromptDef::builder("review")
        .argument(PromptArgument::new("code").required())
        .argument(PromptArgument::new("tone").complete(["kind", "blunt"]))
        .handler(|call: PromptCall| async move { call.arguments["code"].clone() });
    let mut builder = Server::builder("played", "1.0.0").add(board).add(note).add(review);
    for tool in tools(&handle) {
        builder = builder.add(tool);
    }
    let server = builder
        .telemetry(|telemetry| telemetry.client_logging())
        .tasks(|tasks| tasks.ttl(PATIENCE).max_running(MAX_RUNNING_TASKS))
        .limits(|limits| {
            let limits = limits.max_in_flight(MAX_IN_FLIGHT).max_queued(MAX_QUEUED);
            limits.max_subscribers(MAX_SUBSCRIBERS).client_request_timeout(PATIENCE)
        })
        .build()
        .expect("a server");
    assert!(handle.set(server.handle()).is_ok());
    server
}
