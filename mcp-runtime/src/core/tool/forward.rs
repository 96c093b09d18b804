//! Tools that pass their calls on: a function names another tool and its arguments, and the call is one of that tool.

use serde_json::Value;

use super::{ToolBuilder, ToolCall, ToolDef, ToolSpec};
use crate::core::{callback::Callback, context::Context, error::ToolError, item_function::async_handler};

/// Names the tool that is called in place of a forwarder, and its arguments.
pub(crate) type ForwardFn =
    Callback<dyn Fn(&Context, Value) -> Result<(String, Value), ToolError> + Send + Sync>;

impl ToolBuilder {
    /// Passes each call on to another tool, and builds the tool. `forward` gets the arguments, which are valid under the input
    /// schema, and returns the name of the other tool and its arguments, an object; its error refuses the call.
    ///
    /// What runs is one call, that of the other tool: its scopes, layers, rates and limits hold, its name is in the audit
    /// log, and progress, cancellation, questions to the client and tasks are its own. Of this tool, only the scopes, the
    /// required features of the client and the input schema count. A tool that does not exist, or not for the caller, is
    /// answered as if the client had called it by its name. A call is passed on once: not to a tool that passes it on itself,
    /// and not to one that repeats arguments in headers, which the client has not sent.
    ///
    /// `forward` may run more than once for a call, so it must not do anything but decide; [`Context::tools`] has the tools to
    /// choose from, as they are when the call runs.
    ///
    /// ```
    /// use mcp_runtime::{ToolError, prelude::*, testing::TestServer, tool::ToolDef};
    /// use serde_json::json;
    ///
    /// /// Adds two numbers.
    /// #[mcp_tool]
    /// fn add_v2(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// let old_name = ToolDef::builder("sum")
    ///     .input_schema(json!({ "type": "object", "properties": { "numbers": { "type": "array" } }, "required": ["numbers"] }))
    ///     .forwards(|_, arguments| match arguments["numbers"].as_array().map(Vec::as_slice) {
    ///         Some([a, b]) => Ok(("add_v2".into(), json!({ "a": a, "b": b }))),
    ///         _ => Err(ToolError::new("give it two numbers")),
    ///     });
    /// let server = TestServer::new(mcp_runtime::server!().tool::<add_v2>().add(old_name))?;
    /// server.call("sum", json!({ "numbers": [1, 2] })).await.expect_text("3");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// `build()` fails if the tool has an option of its function, such as a time limit: these are options of the other tool.
    pub fn forwards<F>(mut self, forward: F) -> ToolDef
    where
        F: Fn(&Context, Value) -> Result<(String, Value), ToolError> + Send + Sync + 'static,
    {
        self.0.forward = Some(Callback(std::sync::Arc::new(forward)));
        let handler = |_: ToolCall| async { Err(ToolError::private("its calls are passed on")) };
        ToolDef {
            spec: self.0,
            handler: async_handler(handler, |result: Result<super::ToolResult, _>| result),
        }
    }
}

impl ToolSpec {
    /// An option that is set and concerns a function of the tool itself.
    pub(super) fn option_of_function(&self) -> Option<&'static str> {
        let item = &self.item;
        #[cfg(feature = "tasks")]
        let has_task = self.task.is_some();
        #[cfg(not(feature = "tasks"))]
        let has_task = false;
        let options = [
            ("timeout", item.timeout.is_some()),
            ("rate", item.rate.is_some()),
            ("max_concurrency", self.max_concurrency.is_some()),
            ("max_concurrency_per_caller", item.max_concurrency_per_caller.is_some()),
            ("max_result", item.max_result.is_some()),
            ("layer", !item.layers.is_empty()),
            ("output_schema", self.output_schema.is_some()),
            ("ui", self.ui.is_some()),
            ("task", has_task),
        ];
        options.into_iter().find_map(|(name, is_set)| is_set.then_some(name))
    }
}
