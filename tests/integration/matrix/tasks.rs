//! Calls that go on as tasks, for clients that know them; for all others they are calls.

use std::sync::{Arc, atomic::Ordering};

use mcp_runtime::{Server, prelude::*};
use mcp_tests::support::Client;
use serde_json::{Value, json};

use super::{Cell, Era, Name, Seen, cells, connect_to};

/// The extension's key.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Runs an errand for somebody
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

async fn connect(server: &Server, cell: Cell, knows_tasks: bool) -> Client {
    let mut capabilities = json!({ "elicitation": {} });
    if knows_tasks {
        capabilities["extensions"] = json!({ TASKS: {} });
    }
    connect_to(server, cell, capabilities, answers).await
}

async fn answer(client: &mut Client, id: &str, task: &Value) {
    let responses = client.answers_to(task);
    client.update_task(id, responses).await;
}

#[tokio::test]
async fn a_task_is_a_call_for_clients_that_know_none() {
    for cell in cells("tasks") {
        // a legacy client may say what it likes
        for knows_tasks in [false, cell.1 == Era::Legacy] {
            let (server, seen) = served();
            let mut client = connect(&server, cell, knows_tasks).await;
            seen.gate.add_permits(1);
            let params = json!({ "name": "errand", "arguments": {}, "task": { "ttl": 60_000 } });
            let exchange = client.request("tools/call", params).await;
            assert_eq!(exchange.text(), "done for Ada", "{cell:?}");
            assert_eq!(exchange.rounds, if cell.1 == Era::Modern { 2 } else { 1 }, "{cell:?}");
            let unknown = client.reply("tasks/get", json!({ "taskId": "anything" })).await;
            let code = if cell.1 == Era::Modern { -32021 } else { -32601 };
            assert_eq!(unknown["error"]["code"], code, "{cell:?}: {unknown}");
        }
    }
}

#[tokio::test]
async fn a_task_asks_ends_and_is_cancelled() {
    for cell in cells("tasks that end") {
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

/// The next thing that is told of a task, when it has that state.
async fn told(client: &mut Client, id: &str, status: &str) -> Value {
    loop {
        let message = client.next_message().await;
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        let task = &message["params"];
        assert!(task["_meta"].get("io.modelcontextprotocol/subscriptionId").is_some(), "{message}");
        assert_eq!(task["taskId"], id, "{message}");
        // one that changes again before it is told of is told of once
        match task["status"].as_str() {
            Some(now) if now == status => return task.clone(),
            Some("working") => {}
            _ => panic!("it is not {status}: {message}"),
        }
    }
}

/// The same, but for where it came from.
fn shown(mut task: Value) -> Value {
    for key in ["_meta", "resultType", "ttlMs"] {
        task.as_object_mut().expect("a task").remove(key);
    }
    task
}

#[tokio::test]
async fn whoever_listens_to_a_task_is_told_all_that_tasks_get_would_show() {
    for cell in cells("tasks that end") {
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
        let mut task = told(&mut client, &id, "working").await;
        while task["statusMessage"] != "under way" {
            task = told(&mut client, &id, "working").await;
        }
        assert_eq!(shown(task), shown(client.task(&id).await), "{cell:?}");
        // nobody listens to that one
        client.cancel_task(&other).await;
        seen.gate.add_permits(1);
        let task = told(&mut client, &id, "completed").await;
        assert_eq!(task["result"]["content"][0]["text"], "done for Ada", "{cell:?}");
        assert_eq!(shown(task), shown(client.task(&id).await), "{cell:?}");
    }
}

#[tokio::test]
async fn whoever_listens_to_a_task_is_told_of_questions_failures_and_its_cancellation() {
    for cell in cells("tasks that end") {
        let (server, seen) = served();
        let mut client = connect(&server, cell, true).await;
        // it listens before the task asks, or right afterwards
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
        // what has ended is not followed any more
        assert_eq!(client.listen(json!({ "taskIds": [id] })).await, json!({}), "{cell:?}");
    }
}
