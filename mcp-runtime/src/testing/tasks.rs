//! Calls of tools by a client that supports tasks.

use serde_json::{Value, json};

use super::{Reply, TestServer};
use crate::core::{
    client_error::private_causes,
    protocol::{META_CLIENT_CAPABILITIES, TASKS_EXTENSION},
};

impl TestServer {
    /// Calls a tool as a client that supports tasks: if the call becomes a task, this responds to its client requests and
    /// waits until it ends. The reply is the same as that of the call without a task. If the task is cancelled,
    /// or needs a response that [`answering`](Self::answering) does not give, the reply is the last one of `tasks/get`.
    ///
    /// ```
    /// # use mcp_runtime::{prelude::*, testing::TestServer};
    /// # use serde_json::json;
    /// /// Builds everything.
    /// #[mcp_tool(task)]
    /// async fn build(ctx: &Context) -> String {
    ///     ctx.progress(1.0).message("compiling").send();
    ///     "built".to_owned()
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let server = TestServer::new(mcp_runtime::server!().tool::<build>())?;
    /// server.call_task("build", json!({})).await.expect_text("built");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_task(&self, tool: &str, arguments: Value) -> Reply {
        let mut params = json!({ "name": tool });
        if !arguments.is_null() {
            params["arguments"] = arguments;
        }
        if let Err(reply) = self.ready().await {
            return reply;
        }
        let (reply, causes) = private_causes::collect(self.run_task(params)).await;
        Reply { causes, ..reply }
    }

    /// See [`call_task`](Self::call_task).
    async fn run_task(&self, mut params: Value) -> Reply {
        let mut capabilities = self.client.capabilities.clone();
        capabilities["extensions"][TASKS_EXTENSION] = json!({});
        let meta = json!({ META_CLIENT_CAPABILITIES: capabilities });
        params["_meta"] = meta.clone();
        let call = self.client.request("tools/call", params).await;
        self.client.end_of_task(call, &meta).await.into()
    }
}
