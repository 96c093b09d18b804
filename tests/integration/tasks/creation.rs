//! When a call becomes a task, and what the response contains.

use mcp_runtime::tool::TaskMode;

use super::{Probe, TASKS, assert_failure, builder, call, connect, connect_to, plain};
use crate::prelude::*;

#[tokio::test]
async fn only_a_server_with_task_tools_declares_tasks_and_only_to_modern_clients() {
    let server = TestServer::new(builder(&Probe::default())).unwrap();
    assert_eq!(server.capabilities().await["extensions"], json!({ TASKS: {} }));
    let tools = server.list_tools().await;
    assert_eq!(tools.len(), 9);
    for tool in tools {
        assert!(tool.get("execution").is_none() && tool.get("_meta").is_none(), "{tool}");
    }
    for revision in [Revision::V2025_11_25, Revision::V2024_11_05] {
        let legacy = TestServer::new(builder(&Probe::default())).unwrap().legacy(revision);
        let capabilities = legacy.capabilities().await;
        assert!(capabilities.get("extensions").is_none() && capabilities.get("tasks").is_none());
    }

    let mut without = connect(mcp_runtime::server!().tool::<plain>()).await;
    assert!(without.memory().capabilities().await.get("extensions").is_none());
    let reply = without.reply("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(error_code(&reply), -32601);
}

#[tokio::test]
async fn the_first_task_tool_may_be_added_to_a_server_that_runs() {
    let server = mcp_runtime::server!().tool::<plain>().build().unwrap();
    let mut client = connect_to(&server).await;
    let unknown = client.reply("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(error_code(&unknown), -32601);

    let late = |reply: &'static str| {
        ToolDef::builder("late").task(TaskMode::Capable).handler(move |_| async move { reply })
    };
    let handle = server.handle();
    handle.add(late("first")).unwrap();
    assert_eq!(client.memory().capabilities().await["extensions"], json!({ TASKS: {} }));
    let id = client.start_task("late", json!({})).await;
    // what has begun is brought to its end, whatever the items are by then
    handle.add(late("second")).unwrap();
    assert!(handle.remove_tool("late").unwrap());
    let ended = client.until_status(&id, "completed").await;
    assert_eq!(ended["result"]["content"][0]["text"], "first", "{ended}");
}

#[tokio::test]
async fn a_builder_that_names_tasks_declares_them_before_a_tool_needs_them() {
    let server = mcp_runtime::server!().tool::<plain>().tasks(|tasks| tasks).build().unwrap();
    let mut client = connect_to(&server).await;
    assert_eq!(client.memory().capabilities().await["extensions"], json!({ TASKS: {} }));
    let unknown = client.reply("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(error_code(&unknown), -32602);
    let late = ToolDef::builder("late").task(TaskMode::Required).handler(async |_| "done");
    server.handle().add(late).unwrap();
    TestServer::of(&server).call("late", json!({})).await.expect_code(-32021);
    let id = client.start_task("late", json!({})).await;
    client.until_status(&id, "completed").await;
}

#[tokio::test]
async fn clients_without_tasks_get_results_inline_or_are_refused() {
    let probe = Probe::default();
    for revision in [Revision::V2025_11_25, Revision::V2025_03_26] {
        probe.open(1);
        let legacy = TestServer::new(builder(&probe)).unwrap().legacy(revision);
        legacy.call("must", json!({})).await.expect_text("done");
        for method in ["tasks/get", "tasks/list", "tasks/result", "tasks/cancel"] {
            legacy.request(method, json!({ "taskId": "x" })).await.expect_code(-32601);
        }
    }
    probe.open(1);
    let server = TestServer::new(builder(&probe)).unwrap();
    server.call("wait", json!({ "label": "!" })).await.expect_text("waited!");
    server.call("crunch", json!({})).await.expect_text("crunched");
    server.call("plain", json!({})).await.expect_text("false");

    let refused = server.call("must", json!({})).await.error().expect("an error");
    assert_eq!(refused.code, -32021);
    let required = json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } });
    assert_eq!(refused.data, Some(required.clone()));
    assert_eq!(probe.entered(), 3, "the refused function did not run");
    // also for a task that does not exist
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = server.request(method, json!({ "taskId": "x" })).await.error().expect("an error");
        assert_eq!((refused.code, refused.data), (-32021, Some(required.clone())), "{method}");
    }
}

#[tokio::test]
async fn the_response_is_the_task_and_it_can_be_polled_at_once() {
    let probe = Probe::default();
    let server = builder(&probe).tasks(|tasks| tasks.ttl(Duration::from_secs(60))).build().unwrap();
    let mut client = connect_to(&server).await;
    let reply = call(&mut client, "wait", json!({ "label": "!" })).await;
    let created = reply;
    let mut keys: Vec<_> = created.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let expected =
        ["_meta", "createdAt", "lastUpdatedAt", "pollIntervalMs", "resultType", "status", "taskId", "ttlMs"];
    assert_eq!(keys, expected);
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert_eq!(created["pollIntervalMs"], 1000);
    let ttl = created["ttlMs"].as_u64().unwrap();
    assert!((59_000..=61_000).contains(&ttl), "{ttl}");
    let at = created["createdAt"].as_str().unwrap();
    assert!(at.len() == 24 && at.starts_with("20") && at.ends_with('Z') && at.contains('T'), "{at}");
    // 128 bits need more than 21 characters of base64
    let id = created["taskId"].as_str().unwrap();
    assert!(id.len() > 21 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{id}");

    assert_eq!(client.task(id).await["status"], "working");
    probe.open(1);
    let done = client.until_status(id, "completed").await;
    assert_eq!(done["createdAt"], created["createdAt"]);

    // what the call would have returned inline
    probe.open(1);
    let in_line = TestServer::of(&server).call("wait", json!({ "label": "!" })).await;
    assert_eq!(&done["result"], in_line.value());
}

#[tokio::test]
async fn ids_are_unique_and_unknown_ids_are_invalid_params() {
    let mut client = connect(builder(&Probe::default())).await;
    let first = client.start_task("wait", json!({})).await;
    let second = client.start_task("wait", json!({})).await;
    assert_ne!(first, second);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [json!(""), json!("nope"), json!(7), json!(null), json!({})] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            assert_eq!(error_code(&client.reply(method, params).await), -32602, "{method} {id}");
        }
    }
    let update = json!({ "taskId": first, "inputResponses": [] });
    assert_eq!(error_code(&client.reply("tasks/update", update).await), -32602);
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(error_code(&client.reply(method, json!({ "taskId": first })).await), -32601);
    }
}

#[tokio::test]
async fn arguments_are_validated_before_the_task_is_created() {
    let mut client = connect(builder(&Probe::default())).await;
    assert_failure(&call(&mut client, "wait", json!({ "label": 7.5 })).await, "label");
    assert_failure(&call(&mut client, "fail", json!({})).await, "how");
}
