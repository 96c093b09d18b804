//! Limits: how many run at once, for how long, and how long tasks are known.

use std::time::Duration;

use mcp_runtime::{MemoryTasks, prelude::*};
use serde_json::json;

use super::{Client, Name, Probe, builder, code};

/// Waits at the gate, one at a time
#[mcp_tool(task, max_concurrency = 1)]
async fn single(probe: &Probe) -> &'static str {
    let _inside = probe.enter();
    probe.pass().await;
    "passed"
}

/// Takes too long
#[mcp_tool(task, timeout = "100ms")]
async fn late(probe: &Probe) -> &'static str {
    let _inside = probe.enter();
    probe.pass().await;
    "in time"
}

/// Takes no time itself
#[mcp_tool(task, timeout = "100ms")]
async fn patient(ctx: &Context) -> Result<String, ToolError> {
    let name: Name = ctx.elicit("name", "Name?").await?;
    Ok(name.name)
}

/// Returns so many bytes
#[mcp_tool(task)]
async fn large(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn limited(probe: &Probe) -> Client {
    let builder = mcp_runtime::server!().tool::<single>().tool::<late>().tool::<patient>();
    Client::of(builder.state(probe.clone()))
}

#[tokio::test]
async fn a_task_waits_for_its_turn_and_keeps_it() {
    let probe = Probe::new();
    let client = limited(&probe);
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.start("single", json!({})).await);
    }
    probe.until_running(1).await;
    for id in &ids {
        assert_eq!(client.get(id).await["status"], "working");
    }
    // one that waits frees its place
    client.cancel(&ids[1]).await;
    probe.open(1);
    client.until_status(&ids[0], "completed").await;
    probe.until_running(1).await;
    assert_eq!(probe.entered(), 2);
    client.cancel(&ids[2]).await;
    probe.until_running(0).await;
    probe.open(1);
    let next = client.start("single", json!({})).await;
    client.until_status(&next, "completed").await;
    assert_eq!(probe.entered(), 3, "the second one never ran");
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_is_that_of_the_run_without_waiting_for_answers() {
    let probe = Probe::new();
    let client = limited(&probe);
    let id = client.start("late", json!({})).await;
    let task = client.until_status(&id, "completed").await;
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(task["result"]["isError"] == true && text.contains("100ms"), "{task}");
    assert_eq!(probe.running(), 0);

    let id = client.start("patient", json!({})).await;
    client.until_status(&id, "input_required").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    client.answer(&id, &[("name", json!("Job"))]).await;
    let task = client.until_status(&id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "Job");
}

#[tokio::test]
async fn one_task_too_many_is_refused() {
    let probe = Probe::new();
    let client = Client::of(builder(&probe).max_tasks(2));
    let first = client.start("wait", json!({})).await;
    client.start("wait", json!({})).await;
    assert_eq!(code(&client.call("wait", json!({})).await), -32603);
    client.cancel(&first).await;
    probe.until_running(1).await;
    client.start("wait", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_asks_for_is_given_up() {
    let probe = Probe::new();
    let client = Client::of(builder(&probe).task_ttl(Duration::from_secs(60)));
    let id = client.start("wait", json!({})).await;
    let forgotten = client.start("ask", json!({})).await;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(59)).await;
        let task = client.get(&id).await;
        assert_eq!(task["status"], "working", "whoever asks keeps it");
    }
    assert_eq!(code(&client.request("tasks/get", json!({ "taskId": forgotten })).await), -32602);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(code(&client.request("tasks/get", json!({ "taskId": id })).await), -32602);
    assert_eq!((probe.entered(), probe.running()), (1, 0));
}

#[tokio::test]
async fn a_result_is_known_for_its_time_only() {
    let probe = Probe::new();
    let client = Client::of(builder(&probe).task_ttl(Duration::from_millis(200)));
    let id = client.start("crunch", json!({})).await;
    let gone = async {
        loop {
            let reply = client.request("tasks/get", json!({ "taskId": id })).await;
            if reply.error().is_some() {
                return code(&reply);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // being asked for does not keep it
    assert_eq!(tokio::time::timeout(Duration::from_secs(30), gone).await.expect("it goes"), -32602);
}

#[tokio::test]
async fn a_full_store_refuses_tasks_and_results() {
    let probe = Probe::new();
    let client = Client::of(builder(&probe).task_store(MemoryTasks::new(1, 1 << 20)));
    client.start("wait", json!({})).await;
    assert_eq!(code(&client.call("wait", json!({})).await), -32603);
    probe.until_running(1).await;
    assert_eq!(probe.entered(), 1, "the refused function did not run");

    let client = Client::of(mcp_runtime::server!().tool::<large>().task_store(MemoryTasks::new(10, 5_000)));
    let id = client.start("large", json!({ "bytes": 1_000 })).await;
    client.until_status(&id, "completed").await;
    let id = client.start("large", json!({ "bytes": 10_000 })).await;
    let task = client.until_status(&id, "failed").await;
    assert_eq!(task["error"]["code"], -32603);
    assert!(task["statusMessage"].as_str().unwrap().contains("kept"), "{task}");
}
