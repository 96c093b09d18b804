//! The status of tasks while they run, and how they end.

use super::{Probe, builder, connect, connect_to, names};
use crate::prelude::*;

#[tokio::test]
async fn progress_is_the_status_message() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe)).await;
    let mut params = json!({ "name": "report", "arguments": {} });
    params["_meta"]["progressToken"] = "token".into();
    let (seen, reply) = client.round_trip("tools/call", params).await;
    assert_eq!(seen, [] as [Value; 0]);
    let id = reply["taskId"].as_str().unwrap();
    for message in ["1 of 4", "half of it"] {
        client.until_task(id, |task| task["statusMessage"] == message).await;
        probe.open(1);
    }
    // a value that does not increase is dropped; when the gate has no permits left, the function is past that
    until(|| probe.left() == 0).await;
    assert_eq!(client.task(id).await["statusMessage"], "half of it");
    probe.open(1);
    client.until_task(id, |task| task["statusMessage"] == "3.5").await;
    probe.open(1);
    let done = client.until_status(id, "completed").await;
    assert!(done.get("statusMessage").is_none(), "{done}");
    assert!(done["lastUpdatedAt"].as_str() >= done["createdAt"].as_str());
}

#[tokio::test]
async fn only_json_rpc_errors_make_a_task_fail() {
    let mut client = connect(builder(&Probe::default())).await;
    let id = client.start_task("fail", json!({ "how": "protocol" })).await;
    let task = client.until_status(&id, "failed").await;
    assert_eq!(task["error"], json!({ "code": 1001, "message": "out of ink", "data": { "left": 0 } }));
    assert_eq!(task["statusMessage"], "out of ink");
    assert!(task.get("result").is_none());

    for (how, text) in [("public", "out of paper"), ("private", "'fail' failed"), ("panic", "'fail' failed")]
    {
        let id = client.start_task("fail", json!({ "how": how })).await;
        let task = client.until_status(&id, "completed").await;
        assert_eq!(task["result"]["isError"], true);
        let said = task["result"]["content"][0]["text"].as_str().unwrap();
        assert!(said.contains(text) && !said.contains("secret"), "{said}");
        assert!(task.get("error").is_none());
    }
}

#[tokio::test]
async fn cancelling_a_task_drops_the_function() {
    let probe = Probe::default();
    let mut client = connect(builder(&probe)).await;
    let id = client.start_task("wait", json!({})).await;
    probe.until_running(1).await;
    client.cancel_task(&id).await;
    let task = client.task(&id).await;
    assert_eq!(task["status"], "cancelled");
    assert!(task.get("result").is_none() && task.get("error").is_none(), "{task}");
    probe.until_running(0).await;
    until(|| probe.cancelled() == 1).await;
    // its status stays `cancelled`, and it may be cancelled again
    probe.open(1);
    client.cancel_task(&id).await;
    assert_eq!(client.task(&id).await["status"], "cancelled");

    let asking = client.start_task("ask", json!({})).await;
    client.until_status(&asking, "input_required").await;
    client.cancel_task(&asking).await;
    let task = client.task(&asking).await;
    assert_eq!(task["status"], "cancelled");
    assert!(task.get("inputRequests").is_none());
    client.update_task(&asking, names(&[("first", json!("Ada"))])).await;

    let done = client.start_task("crunch", json!({})).await;
    client.until_status(&done, "completed").await;
    client.cancel_task(&done).await;
    assert_eq!(client.task(&done).await["status"], "completed");
}

#[tokio::test]
async fn cancelled_tasks_leave_nothing_running() {
    // twice as many are more than may run at once
    const TASKS: usize = 60;
    let probe = Probe::default();
    let mut client = connect(builder(&probe).tasks(|tasks| tasks.max_running(100))).await;
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        ids.push(client.start_task("wait", json!({})).await);
    }
    probe.until_running(TASKS).await;
    for id in &ids {
        client.cancel_task(id).await;
    }
    probe.until_running(0).await;
    until(|| probe.cancelled() == TASKS).await;
    // their permits are released
    for id in &ids {
        assert_eq!(client.task(id).await["status"], "cancelled");
    }
    probe.open(TASKS);
    for _ in 0..TASKS {
        ids.push(client.start_task("wait", json!({})).await);
    }
    probe.until_running(0).await;
}

#[tokio::test]
async fn dropping_the_server_cancels_its_tasks() {
    let probe = Probe::default();
    let server: Server = builder(&probe).build().unwrap();
    let mut client = connect_to(&server).await;
    client.start_task("wait", json!({})).await;
    client.start_task("ask", json!({})).await;
    probe.until_running(1).await;
    drop(client);
    tokio::task::yield_now().await;
    assert_eq!(probe.running(), 1, "the server is still there");
    drop(server);
    probe.until_running(0).await;
    assert_eq!(probe.cancelled(), 1);
}

/// Returns while its client cancels it
#[mcp_tool(task)]
async fn quick() -> &'static str {
    tokio::task::yield_now().await;
    "quick"
}

#[tokio::test]
async fn a_task_either_completes_or_is_cancelled() {
    let mut client = connect(mcp_runtime::server!().tool::<quick>()).await;
    for _ in 0..100 {
        let id = client.start_task("quick", json!({})).await;
        client.cancel_task(&id).await;
        let first = client.task(&id).await["status"].clone();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert_eq!(client.task(&id).await["status"], first);
        assert!(first == "cancelled" || first == "completed", "{first}");
    }
    assert_eq!(error_code(&client.reply("tasks/cancel", json!({ "taskId": "x" })).await), -32602);
}
