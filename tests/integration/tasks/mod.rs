//! Tasks: when calls continue as tasks, their status, their client requests, how they end, and how long they are kept.
//! This file has the tools and the shared helpers.

mod creation;
mod input_required;
mod limits;
mod status;
mod store;
mod subscriptions;
mod transports;

use mcp_runtime::FromContext;

use crate::prelude::*;

/// The extension's key.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The gate of the tools, and how many calls have learned that they were cancelled.
#[derive(Clone, Default)]
struct Probe {
    gate: Gate,
    cancelled: Arc<AtomicUsize>,
}

impl Probe {
    fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

impl std::ops::Deref for Probe {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.gate
    }
}

/// Waits at the gate
#[mcp_tool(task)]
async fn wait(label: Option<String>, probe: &Probe, ctx: &Context) -> String {
    let inside = probe.enter();
    let (cancelled, seen, over) = (ctx.cancelled(), probe.cancelled.clone(), ctx.clone());
    spawn(async move {
        cancelled.await;
        if over.is_cancelled() {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    probe.wait().await;
    inside.finish();
    format!("waited{}", label.unwrap_or_default())
}

/// Waits at the gate, as a task only
#[mcp_tool(task = required)]
async fn must(probe: &Probe) -> &'static str {
    probe.pass().await;
    "done"
}

/// Reports progress once for each permit of the gate
#[mcp_tool(task)]
async fn report(ctx: &Context, probe: &Probe) -> &'static str {
    let _inside = probe.enter();
    ctx.progress(1.0).total(4.0).send();
    probe.wait().await;
    ctx.progress(2.0).message("half of it").send();
    probe.wait().await;
    ctx.progress(2.0).message("the same").send();
    ctx.progress(1.0).message("back").send();
    probe.wait().await;
    ctx.progress(3.5).send();
    probe.wait().await;
    "reported"
}

/// Fails in the given way
#[mcp_tool(task)]
async fn fail(how: String) -> Result<String, ToolError> {
    match how.as_str() {
        "public" => Err(ToolError::new("out of paper")),
        "protocol" => Err(ProtocolError::new(1001, "out of ink").with_data(json!({ "left": 0 })).into()),
        "panic" => panic!("secret of the panic"),
        _ => Err(ToolError::private("secret of the error")),
    }
}

/// Elicits two values at once
#[mcp_tool(task)]
async fn ask(ctx: &Context) -> Result<String, ToolError> {
    let (first, second) = tokio::join!(
        ctx.elicit::<Name>("first", "First name?"),
        ctx.elicit::<Name>("second", "Second name?")
    );
    Ok(format!("{} {}", first?.name, second?.name))
}

/// The user, elicited before the function starts.
struct User(String);

impl FromContext for User {
    type Error = ToolError;

    async fn from_context(ctx: &Context) -> Result<Self, ToolError> {
        let Name { name } = ctx.elicit("user", "Who are you?").await?;
        ctx.consume_once().await?;
        Ok(Self(name))
    }
}

/// Needs the user before it starts
#[mcp_tool(task)]
async fn injected(#[mcp(inject)] user: User, probe: &Probe) -> String {
    let _inside = probe.enter();
    user.0
}

/// Elicits in the call, continues as a task, and elicits again
#[mcp_tool(task = manual)]
async fn manual(ctx: &Context, probe: &Probe) -> Result<String, ToolError> {
    let user: Name = ctx.elicit("user", "Who are you?").await?;
    let is_task = ctx.start_task().await;
    if is_task {
        ctx.consume_once().await?;
    }
    let _inside = probe.enter();
    let more: Name = ctx.elicit("more", "Who else?").await?;
    Ok(format!("{} {} {is_task}", user.name, more.name))
}

/// Runs on the blocking pool
#[mcp_tool(task, blocking)]
fn crunch(ctx: &Context) -> &'static str {
    ctx.progress(1.0).message("crunching").send();
    "crunched"
}

/// Never runs as a task
#[mcp_tool]
async fn plain(ctx: &Context) -> String {
    ctx.start_task().await.to_string()
}

fn builder(probe: &Probe) -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<wait>()
        .tool::<must>()
        .tool::<report>()
        .tool::<fail>()
        .tool::<ask>()
        .tool::<injected>()
        .tool::<manual>()
        .tool::<crunch>()
        .tool::<plain>()
        .state(probe.clone())
}

/// The capabilities of a client with the tasks extension.
fn with_tasks() -> Value {
    json!({ "elicitation": {}, "extensions": { TASKS: {} } })
}

/// A client with the tasks extension, in memory.
async fn connect_to(server: &Server) -> Client {
    connect_as(server, with_tasks()).await
}

/// The same with other capabilities.
async fn connect_as(server: &Server, capabilities: Value) -> Client {
    Client::connect(server, Transport::Memory, Revision::LATEST, capabilities, no_requests).await
}

/// The same for a server built from `builder`.
async fn connect(builder: ServerBuilder) -> Client {
    connect_to(&builder.build().expect("a server")).await
}

/// Calls a tool once, and returns the response.
async fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    client.reply("tools/call", json!({ "name": tool, "arguments": arguments })).await
}

/// Accepting responses with names, by key.
fn names(names: &[(&str, Value)]) -> Value {
    let accept = |value: &Value| json!({ "action": "accept", "content": { "name": value } });
    names.iter().map(|(key, value)| ((*key).to_owned(), accept(value))).collect()
}

/// Asserts that the call has failed, with a message that contains `part`.
#[track_caller]
fn assert_failure(reply: &Value, part: &str) {
    assert_eq!(reply["isError"], true, "{reply}");
    let text = reply["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains(part), "{text}");
}
