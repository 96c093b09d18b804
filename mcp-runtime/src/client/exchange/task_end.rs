//! The end of a task that a call in the server's process has become.

use std::time::Duration;

use serde_json::{Value, json};

use super::memory_client::{MemoryClient, MemoryReply, answer_all};
use crate::transport::memory::AnswerClientRequest;

/// How long to wait between two `tasks/get`, which is twice as long each time. The server is in this process, and its tasks may
/// be in a shared store.
const SHORTEST_TASK_POLL: Duration = Duration::from_millis(5);
const LONGEST_TASK_POLL: Duration = Duration::from_millis(160);

impl MemoryClient {
    /// Waits for the end of the task that a reply to `tools/call` has begun, and answers its requests: the reply that the call
    /// would have had. Any other reply is returned as it is, and so is one that tells of a task that was cancelled, or
    /// requires input that no one gives. `meta` is the `_meta` of each request.
    pub(crate) async fn end_of_task(&self, call: MemoryReply, meta: &Value) -> MemoryReply {
        if call.result()["resultType"] != "task" {
            return call;
        }
        let id = call.result()["taskId"].clone();
        let mut interval = SHORTEST_TASK_POLL;
        loop {
            let reply = self.request("tasks/get", json!({ "taskId": id, "_meta": meta })).await;
            let task = reply.result();
            let member = match task["status"].as_str() {
                Some("completed") => "result",
                Some("failed") => "error",
                Some("input_required") => {
                    let answers =
                        self.answers.as_ref().and_then(|answers| answer_input_requests(task, answers));
                    let Some(answers) = answers else { return reply };
                    let params = json!({ "taskId": id, "inputResponses": answers, "_meta": meta });
                    let update = self.request("tasks/update", params).await;
                    if update.message.get("error").is_some() {
                        return update;
                    }
                    continue;
                }
                Some("working") => {
                    tokio::time::sleep(interval).await;
                    interval = (interval * 2).min(LONGEST_TASK_POLL);
                    continue;
                }
                _ => return reply,
            };
            let message = json!({ "jsonrpc": "2.0", "id": 0, member: task[member] });
            return MemoryReply { message, notifications: Vec::new() };
        }
    }
}

/// The `inputResponses` to the `inputRequests` of a result; `None` if one of them is not answered.
fn answer_input_requests(result: &Value, answers: &AnswerClientRequest) -> Option<Value> {
    answer_all(result.get("inputRequests")?.as_object()?, answers).map(Value::Object)
}
