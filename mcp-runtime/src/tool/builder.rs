//! Tools made at run time: a name, a schema and a closure. Added through a server's handle, or to its builder.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Hints, IntoToolResult, TaskMode, ToolResult, ToolSpec};
use crate::{
    content::Icon,
    context::{ClientFeature, Context},
    error::{Failure, ToolError},
    item::ItemSpec,
};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub(crate) type DynHandler = Arc<dyn Fn(ToolCall) -> BoxFuture<Result<ToolResult, Failure>> + Send + Sync>;

/// One call of a tool made at run time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The arguments, which fit the tool's schema.
    pub arguments: Value,
    /// The request.
    pub context: Context,
}

impl ToolCall {
    /// The argument `name` as a `T`; absent and `null` are what `T` makes of `null`.
    ///
    /// # Errors
    /// It is not a `T`; the message names it and is shown to the model.
    pub fn arg<T: DeserializeOwned>(&self, name: &str) -> Result<T, ToolError> {
        let value = self.arguments.get(name).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value).map_err(|e| ToolError::new(format!("`{name}`: {e}")))
    }
}

/// A tool made at run time.
///
/// ```
/// use mcp_runtime::{ToolDef, ToolCall, ToolError};
/// use serde_json::json;
///
/// let tool = ToolDef::builder("shout")
///     .description("Say it louder")
///     .input_schema(json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}))
///     .handler(|call: ToolCall| async move { Ok::<_, ToolError>(call.arg::<String>("text")?.to_uppercase()) });
/// assert_eq!(tool.name(), "shout");
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(crate) spec: ToolSpec,
    pub(crate) handler: DynHandler,
}

impl Tool {
    /// Starts a tool of that name.
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        let item = ItemSpec { name: name.into(), ..ItemSpec::default() };
        ToolBuilder(ToolSpec { item, ..ToolSpec::default() })
    }

    /// Its wire name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.item.name
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

/// Describes a tool; [`handler`](Self::handler) finishes it.
#[derive(Debug, Clone, Default)]
#[must_use = "a tool is complete with its handler"]
pub struct ToolBuilder(ToolSpec);

impl ToolBuilder {
    /// Sets the wire's `title`.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.item.title = Some(title.into());
        self
    }

    /// Sets the wire's `description`.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.0.item.description = Some(text.into());
        self
    }

    /// Adds an icon: a URL, or an [`Icon`]. One that clients would reject is an error when the tool is added.
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.0.item.icons.push(icon.into());
        self
    }

    /// Sets the wire's `inputSchema`; it must use keywords that are enforced, else adding the tool fails.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.0.input_schema = Some(schema);
        self
    }

    /// Sets the wire's `outputSchema`; results are held against it.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.0.output_schema = Some(schema);
        self
    }

    /// Sets the hints on its behaviour.
    pub fn hints(mut self, hints: impl FnOnce(&mut Hints)) -> Self {
        hints(&mut self.0.hints);
        self
    }

    /// Sets the entry's `_meta`, an object.
    pub fn meta(mut self, meta: Value) -> Self {
        self.0.item.meta = Some(meta.to_string());
        self
    }

    /// Sets what a caller must have been granted.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.0.item.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what the client must be able to do; a call by any other is refused before it begins.
    pub fn requires(mut self, features: impl IntoIterator<Item = ClientFeature>) -> Self {
        self.0.item.requires = features.into_iter().collect();
        self
    }

    /// Sets how long a call may take.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.0.timeout = Some(limit);
        self
    }

    /// Sets how many calls may run at once.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.0.max_concurrency = Some(calls);
        self
    }

    /// Takes strings for other types as they are: no coercion.
    pub fn strict(mut self) -> Self {
        self.0.strict = true;
        self
    }

    /// Sets the URI of the page that shows its results; the server must have a resource of that URI.
    ///
    /// See [MCP Apps](https://github.com/modelcontextprotocol/ext-apps).
    pub fn ui(mut self, resource: impl Into<String>) -> Self {
        self.0.ui = Some(resource.into());
        self
    }

    /// Sets how its calls become tasks; without this they do not.
    pub fn task(mut self, mode: TaskMode) -> Self {
        self.0.task = Some(mode);
        self
    }

    /// Sets the function and finishes the tool.
    pub fn handler<F, Fut>(self, handler: F) -> Tool
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoToolResult,
    {
        let handler = Arc::new(handler);
        let handler: DynHandler = Arc::new(move |call| {
            let handler = handler.clone();
            // not before the first poll, where panics are contained
            Box::pin(async move { handler(call).await.into_tool_result() })
        });
        Tool { spec: self.0, handler }
    }
}
