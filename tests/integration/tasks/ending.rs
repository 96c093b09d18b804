//! How tasks show what goes on in them, and how they end.

use mcp_runtime::{Server, prelude::*, testing::TestServer};
use serde_json::{Value, json};

use super::{Client, Probe, builder, code, until};

#[tokio::test]
async fn progress_is_the_status_message() {
    let probe = Probe::new();
    let client = Client::new(&probe);
    let mut params = json!({ "name": "report", "arguments": {} });
    params["_meta"]["progressToken"] = "token".into();
    let reply = client.request("tools/call", params).await;
    assert_eq!(reply.notifications(), &[] as &[Value]);
    let id = reply.value()["taskId"].as_str().unwrap();
    for message in ["1 of 4", "half of it"] {
        client.until(id, |task| task["statusMessage"] == message).await;
        probe.open(1);
    }
    // a value that does not increase is dropped; the function is past that when the gate has nothing to give
    until(|| probe.0.gate.available_permits() == 0).await;
    assert_eq!(client.get(id).await["statusMessage"], "half of it");
    probe.open(1);
    client.until(id, |task| task["statusMessage"] == "3.5").await;
    probe.open(1);
    let done = client.until_status(id, "completed").await;
    assert!(done.get("statusMessage").is_none(), "{done}");
    assert!(done["lastUpdatedAt"].as_str() >= done["createdAt"].as_str());
}

#[tokio::test]
async fn only_json_rpc_errors_make_a_task_fail() {
    let client = Client::new(&Probe::new());
    let id = client.start("fail", json!({ "how": "protocol" })).await;
    let task = client.until_status(&id, "failed").await;
    assert_eq!(task["error"], json!({ "code": -32050, "message": "out of ink", "data": { "left": 0 } }));
    assert_eq!(task["statusMessage"], "out of ink");
    assert!(task.get("result").is_none());

    for (how, text) in [("public", "out of paper"), ("private", "'fail' failed"), ("panic", "'fail' failed")]
    {
        let id = client.start("fail", json!({ "how": how })).await;
        let task = client.until_status(&id, "completed").await;
        assert_eq!(task["result"]["isError"], true);
        let said = task["result"]["content"][0]["text"].as_str().unwrap();
        assert!(said.contains(text) && !said.contains("secret"), "{said}");
        assert!(task.get("error").is_none());
    }
}

#[tokio::test]
async fn cancelling_drops_the_function() {
    let probe = Probe::new();
    let client = Client::new(&probe);
    let id = client.start("wait", json!({})).await;
    probe.until_running(1).await;
    client.cancel(&id).await;
    let task = client.get(&id).await;
    assert_eq!(task["status"], "cancelled");
    assert!(task.get("result").is_none() && task.get("error").is_none(), "{task}");
    probe.until_running(0).await;
    until(|| probe.cancelled() == 1).await;
    // it stays as it is, and may be cancelled again
    probe.open(1);
    client.cancel(&id).await;
    assert_eq!(client.get(&id).await["status"], "cancelled");

    let asking = client.start("ask", json!({})).await;
    client.until_status(&asking, "input_required").await;
    client.cancel(&asking).await;
    let task = client.get(&asking).await;
    assert_eq!(task["status"], "cancelled");
    assert!(task.get("inputRequests").is_none());
    client.answer(&asking, &[("first", json!("Ada"))]).await;

    let done = client.start("crunch", json!({})).await;
    client.until_status(&done, "completed").await;
    client.cancel(&done).await;
    assert_eq!(client.get(&done).await["status"], "completed");
}

#[tokio::test]
async fn a_thousand_cancelled_tasks_leave_nothing_running() {
    let probe = Probe::new();
    let client = Client::new(&probe);
    let mut ids = Vec::new();
    for _ in 0..1000 {
        ids.push(client.start("wait", json!({})).await);
    }
    probe.until_running(1000).await;
    for id in &ids {
        client.cancel(id).await;
    }
    probe.until_running(0).await;
    until(|| probe.cancelled() == 1000).await;
    // their places are free again
    for id in &ids {
        assert_eq!(client.get(id).await["status"], "cancelled");
    }
    probe.open(1000);
    for _ in 0..1000 {
        ids.push(client.start("wait", json!({})).await);
    }
    probe.until_running(0).await;
}

#[tokio::test]
async fn a_server_that_is_gone_has_no_tasks() {
    let probe = Probe::new();
    let server: Server = builder(&probe).build().unwrap();
    let client = Client(TestServer::of(&server));
    client.start("wait", json!({})).await;
    client.start("ask", json!({})).await;
    probe.until_running(1).await;
    drop(client);
    tokio::task::yield_now().await;
    assert_eq!(probe.running(), 1, "the server is still there");
    drop(server);
    probe.until_running(0).await;
    assert_eq!(probe.cancelled(), 1);
}

/// Ends while its client cancels it
#[mcp_tool(task)]
async fn quick() -> &'static str {
    tokio::task::yield_now().await;
    "quick"
}

#[tokio::test]
async fn a_task_ends_in_one_way_whoever_is_first() {
    let client = Client::of(mcp_runtime::server!().tool::<quick>());
    for _ in 0..100 {
        let id = client.start("quick", json!({})).await;
        client.cancel(&id).await;
        let first = client.get(&id).await["status"].clone();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert_eq!(client.get(&id).await["status"], first);
        assert!(first == "cancelled" || first == "completed", "{first}");
    }
    assert_eq!(code(&client.request("tasks/cancel", json!({ "taskId": "x" })).await), -32602);
}
