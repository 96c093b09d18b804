//! Calls of tools that may become tasks.

use serde_json::json;

use crate::{
    client::exchange::{MemoryClient, MemoryReply},
    core::{
        protocol::{META_CLIENT_CAPABILITIES, TASKS_EXTENSION},
        server::{Error, Result},
    },
};

/// Calls a tool, and waits for its task if the call becomes one. The server limits how long that takes, and ending the program
/// ends the task.
pub(super) async fn call_tool(client: &mut MemoryClient, name: &str, arguments: &str) -> Result<MemoryReply> {
    // before the call, since a server may refuse a client that does not declare it
    client.capabilities["extensions"] = json!({ TASKS_EXTENSION: {} });
    let call = client.call_with_text(name, arguments).await;
    let id = call.result()["taskId"].clone();
    let meta = json!({ META_CLIENT_CAPABILITIES: client.capabilities });
    let end = client.end_of_task(call, &meta).await;
    match end.result()["status"].as_str() {
        Some("input_required") if !id.is_null() => {
            client.request("tasks/cancel", json!({ "taskId": id, "_meta": meta })).await;
            Err(Error::call("a question of the function was not answered"))
        }
        Some("cancelled") if !id.is_null() => Err(Error::call("the task was cancelled")),
        _ => Ok(end),
    }
}
