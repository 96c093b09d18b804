//! Calls of one caller at once, and the time of functions that set none.

use mcp_runtime::{Completion, tool::TaskMode};

use super::{here, seen_by};
use crate::prelude::*;

/// One at a time for each caller
#[mcp_tool(max_concurrency_per_caller = 1)]
async fn hold(gate: &Gate) -> &'static str {
    gate.pass().await
}

/// Holds without a limit of its own
#[mcp_tool]
async fn wait(gate: &Gate) -> &'static str {
    gate.pass().await
}

fn builder(gate: &Gate) -> ServerBuilder {
    mcp_runtime::server!().tool::<hold>().tool::<wait>().tool::<here>().state(gate.clone())
}

/// Starts a call and waits until its function has entered.
async fn start(client: TestServer, tool: &'static str, gate: &Gate) -> tokio::task::JoinHandle<String> {
    let running = spawn(async move { client.call(tool, json!({})).await.text() });
    gate.more_entered(1).await;
    running
}

#[tokio::test]
async fn a_caller_runs_as_many_calls_of_an_item_as_it_may_and_others_run_theirs() {
    let gate = Gate::default();
    let server = builder(&gate).build().expect("a server");
    let ada = seen_by(&server, "ada");
    let hers = start(seen_by(&server, "ada"), "hold", &gate).await;
    ada.call("hold", json!({}))
        .await
        .expect_failure("tool 'hold' is already running for this caller\ntry again when it has ended");
    ada.call("here", json!({})).await.expect_text("here");
    let his = start(seen_by(&server, "bob"), "hold", &gate).await;
    gate.open(2);
    assert_eq!(
        (hers.await.expect("no panic"), his.await.expect("no panic")),
        ("let go".into(), "let go".into())
    );
    gate.open(1);
    ada.call("hold", json!({})).await.expect_text("let go");
}

#[tokio::test]
async fn the_limit_of_a_server_counts_the_calls_of_all_its_items() {
    let gate = Gate::default();
    let builder = builder(&gate).limits(|limits| limits.max_concurrency_per_caller(2));
    let server = builder.build().expect("a server");
    let (ada, bob) = (seen_by(&server, "ada"), seen_by(&server, "bob"));
    let running = [
        start(seen_by(&server, "ada"), "hold", &gate).await,
        start(seen_by(&server, "ada"), "wait", &gate).await,
    ];
    for tool in ["wait", "here"] {
        ada.call(tool, json!({})).await.expect_failure("is already running 2 times for this caller");
    }
    bob.call("here", json!({})).await.expect_text("here");
    // a call that its client gives up is not running any more
    let [given_up, other] = running;
    given_up.abort();
    within(async {
        while ada.call("here", json!({})).await.is_error() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    gate.open(1);
    assert_eq!(other.await.expect("no panic"), "let go");
}

#[tokio::test]
async fn a_call_that_continues_as_a_task_is_still_running() {
    let gate = Gate::default();
    let held = gate.clone();
    let task = ToolDef::builder("task").task(TaskMode::Capable).max_concurrency_per_caller(1).handler(
        move |_: ToolCall| {
            let held = held.clone();
            async move { held.pass().await }
        },
    );
    let built = mcp_runtime::server!().add(task).build().expect("a server");
    let (first, server) = (TestServer::of(&built), TestServer::of(&built));
    let running = spawn(async move { first.call_task("task", json!({})).await.text() });
    gate.more_entered(1).await;
    server.call("task", json!({})).await.expect_failure("is already running for this caller");
    gate.open(1);
    assert_eq!(running.await.expect("no panic"), "let go");
    gate.open(1);
    assert_eq!(server.call_task("task", json!({})).await.text(), "let go");
    assert_eq!(gate.entered(), 2);
}

/// Never ends
#[mcp_tool]
async fn forever() -> &'static str {
    std::future::pending().await
}

/// Ends after a while
#[mcp_tool(timeout = "1h")]
async fn patient() -> &'static str {
    tokio::time::sleep(Duration::from_millis(300)).await;
    "done"
}

/// Never ends
#[mcp_resource(uri = "slow://resource/{id}", list = list)]
async fn resource(#[mcp(complete = complete)] id: String) -> String {
    std::future::pending::<()>().await;
    id
}

async fn list() -> Vec<String> {
    std::future::pending().await
}

async fn complete(_: &Completion) -> Vec<String> {
    std::future::pending().await
}

/// Never ends
#[mcp_prompt]
async fn prompt() -> &'static str {
    std::future::pending().await
}

#[tokio::test]
async fn a_function_without_a_time_limit_has_that_of_the_server() {
    let task = ToolDef::builder("task").task(TaskMode::Capable).handler(|_: ToolCall| async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        "done"
    });
    let builder = mcp_runtime::server!()
        .tool::<forever>()
        .tool::<patient>()
        .resource::<resource>()
        .prompt::<prompt>()
        .add(task)
        .limits(|limits| limits.timeout(Duration::from_millis(50)));
    let server = serve(builder);
    server.call("forever", json!({})).await.expect_failure("took longer than its limit of 50ms");
    for error in [
        server.read("slow://resource/1").await,
        server.prompt("prompt", json!({})).await,
        server.complete("slow://resource/{id}", "id", "x").await,
        server.request("resources/list", json!({})).await,
    ] {
        let error = error.error().expect("an error");
        assert!(error.message.contains("took longer than its limit of 50ms"), "{}", error.message);
    }
    // its own limit counts, and what continues as a task is meant to take long
    server.call("patient", json!({})).await.expect_text("done");
    server.call_task("task", json!({})).await.expect_text("done");
}
