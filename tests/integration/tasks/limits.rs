//! Limits of tasks: how many run at once, for how long, and how long they are kept.

use super::{Probe, builder, call, connect, names};
use crate::prelude::*;

/// Waits at the gate, one at a time
#[mcp_tool(task, max_concurrency = 1)]
async fn single(probe: &Probe) -> &'static str {
    probe.pass().await;
    "passed"
}

/// Exceeds its time limit
#[mcp_tool(task, timeout = "100ms")]
async fn late(probe: &Probe) -> &'static str {
    probe.pass().await;
    "in time"
}

/// Uses no time of its own
#[mcp_tool(task, timeout = "100ms")]
async fn patient(ctx: &Context) -> Result<String, ToolError> {
    let name: Name = ctx.elicit("name", "Name?").await?;
    Ok(name.name)
}

async fn limited(probe: &Probe) -> Client {
    let builder = mcp_runtime::server!().tool::<single>().tool::<late>().tool::<patient>();
    connect(builder.state(probe.clone())).await
}

#[tokio::test]
async fn a_task_waits_for_its_permit_and_keeps_it() {
    let probe = Probe::default();
    let mut client = limited(&probe).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.start_task("single", json!({})).await);
    }
    probe.until_running(1).await;
    for id in &ids {
        assert_eq!(client.task(id).await["status"], "working");
    }
    // cancelling a waiting task releases its slot in the queue
    client.cancel_task(&ids[1]).await;
    probe.open(1);
    client.until_status(&ids[0], "completed").await;
    probe.until_running(1).await;
    assert_eq!(probe.entered(), 2);
    client.cancel_task(&ids[2]).await;
    probe.until_running(0).await;
    probe.open(1);
    let next = client.start_task("single", json!({})).await;
    client.until_status(&next, "completed").await;
    assert_eq!(probe.entered(), 3, "the second one never ran");
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_excludes_waiting_for_responses() {
    let probe = Probe::default();
    let mut client = limited(&probe).await;
    let id = client.start_task("late", json!({})).await;
    let task = client.until_status(&id, "completed").await;
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(task["result"]["isError"] == true && text.contains("100ms"), "{task}");
    assert_eq!(probe.running(), 0);

    let id = client.start_task("patient", json!({})).await;
    client.until_status(&id, "input_required").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    client.update_task(&id, names(&[("name", json!("Job"))])).await;
    let task = client.until_status(&id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], "Job");
}

#[tokio::test]
async fn a_task_over_the_limit_is_refused() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe).tasks(|tasks| tasks.max_running(2))).await;
    let first = client.start_task("wait", json!({})).await;
    client.start_task("wait", json!({})).await;
    assert_eq!(error_code(&call(&mut client, "wait", json!({})).await), -32603);
    client.cancel_task(&first).await;
    probe.until_running(1).await;
    client.start_task("wait", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_not_polled_is_cancelled() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe).tasks(|tasks| tasks.ttl(Duration::from_secs(60)))).await;
    let id = client.start_task("wait", json!({})).await;
    let forgotten = client.start_task("ask", json!({})).await;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(59)).await;
        let task = client.task(&id).await;
        assert_eq!(task["status"], "working", "polling keeps it");
    }
    assert_eq!(error_code(&client.reply("tasks/get", json!({ "taskId": forgotten })).await), -32602);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(error_code(&client.reply("tasks/get", json!({ "taskId": id })).await), -32602);
    assert_eq!((probe.entered(), probe.running()), (1, 0));
}

#[tokio::test]
async fn a_result_expires_after_its_ttl() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe).tasks(|tasks| tasks.ttl(Duration::from_millis(200)))).await;
    let id = client.start_task("crunch", json!({})).await;
    let gone = async {
        loop {
            let reply = client.reply("tasks/get", json!({ "taskId": id })).await;
            if reply.get("error").is_some() {
                return error_code(&reply);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // polling does not extend the ttl
    assert_eq!(within(gone).await, -32602);
}

#[tokio::test]
async fn a_full_store_refuses_tasks() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe).tasks(|tasks| tasks.max_kept(1))).await;
    client.start_task("wait", json!({})).await;
    assert_eq!(error_code(&call(&mut client, "wait", json!({})).await), -32603);
    probe.until_running(1).await;
    assert_eq!(probe.entered(), 1, "the refused function did not run");
}
