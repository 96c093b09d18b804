//! How tasks fail whose clients cannot do what the function needs.

use mcp_runtime::{Revision, prelude::*};
use mcp_tests::support::{Client, Transport, within};
use serde_json::{Value, json};

#[mcp_type]
struct Name {
    name: String,
}

/// Asks after it has begun
#[mcp_tool(task)]
async fn ask(ctx: &Context) -> Result<String, ToolError> {
    tokio::task::yield_now().await;
    let Name { name } = ctx.elicit("name", "What is your name?").await?;
    Ok(name)
}

#[tokio::test]
async fn a_task_whose_client_cannot_be_asked_fails_with_what_is_missing() {
    within(async {
        for transport in Transport::ALL {
            let server = mcp_runtime::server!().tool::<ask>().build().expect("a server");
            let knows_tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
            let nobody_asks = |method: &str, _: &Value| panic!("nobody asks {method}");
            let mut client =
                Client::connect(&server, transport, Revision::LATEST, knows_tasks, nobody_asks).await;
            let id = client.start_task("ask", json!({})).await;
            let task = client.until_task(&id, |task| task["status"] != "working").await;
            assert_eq!(task["status"], "failed", "{transport:?}: {task}");
            assert_eq!(task["error"]["code"], -32021, "{task}");
            let required = &task["error"]["data"]["requiredCapabilities"];
            assert!(required["elicitation"].is_object(), "{task}");
            assert!(task.get("result").is_none(), "{task}");
        }
    })
    .await;
}
