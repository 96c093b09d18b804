//! Tasks that fail because their clients lack a required capability.

use crate::prelude::*;

#[mcp_type]
struct Name {
    name: String,
}

/// Elicits after it has started
#[mcp_tool(task)]
async fn ask(ctx: &Context) -> Result<String, ToolError> {
    tokio::task::yield_now().await;
    let Name { name } = ctx.elicit("name", "What is your name?").await?;
    Ok(name)
}

#[tokio::test]
async fn a_task_fails_with_the_missing_client_capability() {
    for transport in Transport::ALL {
        let server = mcp_runtime::server!().tool::<ask>().build().expect("a server");
        let knows_tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let no_requests = |method: &str, _: &Value| panic!("unexpected request `{method}`");
        let mut client =
            Client::connect(&server, transport, Revision::LATEST, knows_tasks, no_requests).await;
        let id = client.start_task("ask", json!({})).await;
        let task = client.until_task(&id, |task| task["status"] != "working").await;
        assert_eq!(task["status"], "failed", "{transport:?}: {task}");
        assert_eq!(task["error"]["code"], -32021, "{task}");
        let required = &task["error"]["data"]["requiredCapabilities"];
        assert!(required["elicitation"].is_object(), "{task}");
        assert!(task.get("result").is_none(), "{task}");
    }
}
