//! Calls that continue as tasks for clients with the extension, and stay calls for all others.

use super::{Cell, Protocol, cells, connect_to};
use crate::prelude::*;

/// The extension's key.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Runs an errand
#[mcp_tool(task)]
async fn errand(ctx: &Context, gate: &Gate) -> Result<String, ToolError> {
    let inside = gate.enter();
    let Name { name } = ctx.elicit("whose", "For whom?").await?;
    ctx.progress(1.0).message("under way").send();
    gate.wait().await;
    inside.finish();
    Ok(format!("done for {name}"))
}

fn answers(method: &str, _: &Value) -> Value {
    assert_eq!(method, "elicitation/create");
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

fn served() -> (Server, Gate) {
    let gate = Gate::default();
    (mcp_runtime::server!().tool::<errand>().state(gate.clone()).build().unwrap(), gate)
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
            let (server, gate) = served();
            let mut client = connect(&server, cell, has_tasks).await;
            gate.open(1);
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
        let (server, gate) = served();
        let mut client = connect(&server, cell, true).await;
        let id = client.start_task("errand", json!({})).await;
        let task = client.until_status(&id, "input_required").await;
        answer(&mut client, &id, &task).await;
        let task = client.until_task(&id, |task| task["statusMessage"] == "under way").await;
        assert_eq!(task["status"], "working", "{cell:?}: {task}");
        gate.open(1);
        let task = client.until_status(&id, "completed").await;
        assert_eq!(task["result"]["content"][0]["text"], "done for Ada", "{cell:?}: {task}");
        gate.until_ended(0, 1).await;

        let id = client.start_task("errand", json!({})).await;
        client.until_status(&id, "input_required").await;
        client.cancel_task(&id).await;
        gate.until_ended(1, 1).await;
        assert_eq!(client.until_status(&id, "cancelled").await.get("result"), None, "{cell:?}");
        let unknown = client.reply("tasks/get", json!({ "taskId": "anything" })).await;
        assert_eq!(unknown["error"]["code"], -32602, "{cell:?}: {unknown}");
    }
}

#[tokio::test]
async fn subscribers_are_notified_of_input_requests_failures_and_cancellation() {
    for cell in cells("task lifecycle") {
        let (server, gate) = served();
        let mut client = connect(&server, cell, true).await;
        // it subscribes before the task elicits, or right afterwards
        let id = client.start_task("errand", json!({})).await;
        assert_eq!(client.listen(json!({ "taskIds": [id] })).await, json!({ "taskIds": [id] }), "{cell:?}");
        client.until_status(&id, "input_required").await;
        client.cancel_task(&id).await;
        gate.until_ended(1, 0).await;
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
