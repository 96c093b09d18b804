//! Calls that continue as tasks for clients with the extension, and stay calls for all others.

use super::{Cell, Name, Protocol, Seen, cells, connect_to};
use crate::prelude::*;

/// The extension's key.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Runs an errand
#[mcp_tool(task)]
async fn errand(ctx: &Context, seen: &Arc<Seen>) -> Result<String, ToolError> {
    struct Inside(Arc<Seen>);
    impl Drop for Inside {
        fn drop(&mut self) {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _inside = Inside(Arc::clone(seen));
    let Name { name } = ctx.elicit("whose", "For whom?").await?;
    ctx.progress(1.0).message("under way").send();
    seen.entered.fetch_add(1, Ordering::SeqCst);
    if let Ok(permit) = seen.gate.acquire().await {
        permit.forget();
    }
    Ok(format!("done for {name}"))
}

fn answers(method: &str, _: &Value) -> Value {
    assert_eq!(method, "elicitation/create");
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

fn served() -> (Server, Arc<Seen>) {
    let seen = Arc::<Seen>::default();
    (mcp_runtime::server!().tool::<errand>().state(Arc::clone(&seen)).build().unwrap(), seen)
}

async fn connect(server: &Server, cell: Cell, has_tasks: bool) -> Client {
    let mut capabilities = json!({ "elicitation": {} });
    if has_tasks {
        capabilities["extensions"] = json!({ TASKS: {} });
    }
    connect_to(server, cell, capabilities, answers).await
}

async fn answer(client: &mut Client, id: &str, task: &Value) {
    let responses = client.answers_to(task);
    client.update_task(id, responses).await;
}

#[tokio::test]
async fn a_task_tool_is_a_plain_call_for_clients_without_the_extension() {
    for cell in cells("tasks") {
        // a legacy client may declare anything
        for has_tasks in [false, cell.1 == Protocol::Legacy] {
            let (server, seen) = served();
            let mut client = connect(&server, cell, has_tasks).await;
            seen.gate.add_permits(1);
            let params = json!({ "name": "errand", "arguments": {}, "task": { "ttl": 60_000 } });
            let exchange = client.request("tools/call", params).await;
            assert_eq!(exchange.text(), "done for Ada", "{cell:?}");
            assert_eq!(exchange.round_trips, if cell.1 == Protocol::Modern { 2 } else { 1 }, "{cell:?}");
            let unknown = client.reply("tasks/get", json!({ "taskId": "anything" })).await;
            let code = if cell.1 == Protocol::Modern { -32021 } else { -32601 };
            assert_eq!(unknown["error"]["code"], code, "{cell:?}: {unknown}");
        }
    }
}

#[tokio::test]
async fn a_task_elicits_completes_and_is_cancelled() {
    for cell in cells("task lifecycle") {
        let (server, seen) = served();
        let mut client = connect(&server, cell, true).await;
        let id = client.start_task("errand", json!({})).await;
        let task = client.until_status(&id, "input_required").await;
        answer(&mut client, &id, &task).await;
        seen.until_entered(1).await;
        let task = client.until_status(&id, "working").await;
        assert_eq!(task["statusMessage"], "under way", "{cell:?}: {task}");
        seen.gate.add_permits(1);
        let task = client.until_status(&id, "completed").await;
        assert_eq!(task["result"]["content"][0]["text"], "done for Ada", "{cell:?}: {task}");
        seen.until_dropped(1).await;

        let id = client.start_task("errand", json!({})).await;
        client.until_status(&id, "input_required").await;
        client.cancel_task(&id).await;
        seen.until_dropped(2).await;
        assert_eq!(client.until_status(&id, "cancelled").await.get("result"), None, "{cell:?}");
        let unknown = client.reply("tasks/get", json!({ "taskId": "anything" })).await;
        assert_eq!(unknown["error"]["code"], -32602, "{cell:?}: {unknown}");
    }
}

/// The next notification of the task, which must have that status.
async fn next_status(client: &mut Client, id: &str, status: &str) -> Value {
    loop {
        let message = client.next_message().await;
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        let task = &message["params"];
        assert!(task["_meta"].get("io.modelcontextprotocol/subscriptionId").is_some(), "{message}");
        assert_eq!(task["taskId"], id, "{message}");
        // a task that changes again before the notification is sent is notified of once
        match task["status"].as_str() {
            Some(now) if now == status => return task.clone(),
            Some("working") => {}
            _ => panic!("it is not {status}: {message}"),
        }
    }
}

/// The task without the members that depend on where it was read.
fn comparable(mut task: Value) -> Value {
    for key in ["_meta", "resultType", "ttlMs"] {
        task.as_object_mut().expect("a task").remove(key);
    }
    task
}

#[tokio::test]
async fn task_notifications_have_everything_that_tasks_get_returns() {
    for cell in cells("task lifecycle") {
        let (server, seen) = served();
        let mut client = connect(&server, cell, true).await;
        let (id, other) =
            (client.start_task("errand", json!({})).await, client.start_task("errand", json!({})).await);
        let task = client.until_status(&id, "input_required").await;
        client.until_status(&other, "input_required").await;
        let acknowledged = client.listen(json!({ "taskIds": ["unknown", id] })).await;
        assert_eq!(acknowledged, json!({ "taskIds": [id] }), "{cell:?}");

        answer(&mut client, &id, &task).await;
        seen.until_entered(1).await;
        let mut task = next_status(&mut client, &id, "working").await;
        while task["statusMessage"] != "under way" {
            task = next_status(&mut client, &id, "working").await;
        }
        assert_eq!(comparable(task), comparable(client.task(&id).await), "{cell:?}");
        // no client subscribes to that one
        client.cancel_task(&other).await;
        seen.gate.add_permits(1);
        let task = next_status(&mut client, &id, "completed").await;
        assert_eq!(task["result"]["content"][0]["text"], "done for Ada", "{cell:?}");
        assert_eq!(comparable(task), comparable(client.task(&id).await), "{cell:?}");
    }
}

#[tokio::test]
async fn subscribers_are_notified_of_input_requests_failures_and_cancellation() {
    for cell in cells("task lifecycle") {
        let (server, seen) = served();
        let mut client = connect(&server, cell, true).await;
        // it subscribes before the task elicits, or right afterwards
        let id = client.start_task("errand", json!({})).await;
        assert_eq!(client.listen(json!({ "taskIds": [id] })).await, json!({ "taskIds": [id] }), "{cell:?}");
        client.until_status(&id, "input_required").await;
        client.cancel_task(&id).await;
        seen.until_dropped(1).await;
        let mut last = client.next_message().await;
        while last["params"]["status"] != "cancelled" {
            assert!(["working", "input_required"].iter().any(|s| last["params"]["status"] == *s), "{last}");
            last = client.next_message().await;
        }
        assert_eq!(last["params"]["taskId"], id, "{cell:?}");
        // a task that has ended can no longer be subscribed to
        assert_eq!(client.listen(json!({ "taskIds": [id] })).await, json!({}), "{cell:?}");
    }
}
