//! Tools made at run time: a name, a schema and a closure.

use std::{fmt, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use super::{
    Hints, ToolEntry, ToolResult, ToolSpec,
    schema::{Enforcement, HandWrittenSchema},
};
use crate::core::{
    arguments::decode_member,
    context::Context,
    error::ToolError,
    item::{ItemSpec, impl_item_setters},
    item_function::{AsyncReply, DynHandler, async_handler, blocking_handler},
    item_output::IntoOutput,
};

/// One call of a tool made at run time.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The arguments, which are valid under the tool's schema. Absent ones have the `default` of their schema.
    pub arguments: Value,
    /// The context of the request.
    pub context: Context,
    pub(crate) tool: Arc<ToolEntry>,
    /// Of a tool whose input schema is not enforced.
    pub(crate) raw: Option<Arc<RawValue>>,
}

impl ToolCall {
    /// The arguments as the client wrote them, of a tool with an
    /// [unchecked input schema](ToolBuilder::unchecked_input_schema).
    #[must_use]
    pub fn raw_arguments(&self) -> Option<&RawValue> {
        self.raw.as_deref()
    }

    /// The argument `name` as a `T`; an absent argument is deserialized from `null`.
    ///
    /// # Errors
    /// It is not a `T`; the message names it and is shown to the model. For a name that the input schema does not have,
    /// the failure is private.
    pub fn arg<T: DeserializeOwned>(&self, name: &str) -> Result<T, ToolError> {
        let value = self.arguments.get(name);
        decode_member(name, value.unwrap_or(&Value::Null)).map_err(|error| match value {
            Some(_) => ToolError::new(error),
            None if self.tool.is_unknown_argument(name) => ToolError::private(format!(
                "the handler reads the argument `{name}`, and the input schema has no `{name}`\nadd it there, or name one that it has"
            )),
            None => ToolError::new(format!("`{name}` is missing")),
        })
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("arguments", &self.arguments)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

/// A tool made at run time.
///
/// ```
/// use mcp_runtime::{ToolError, tool::{ToolCall, ToolDef}};
/// use serde_json::json;
///
/// let tool = ToolDef::builder("shout")
///     .description("Say it louder")
///     .input_schema(json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}))
///     .handler(|call: ToolCall| async move { Ok::<_, ToolError>(call.arg::<String>("text")?.to_uppercase()) });
/// assert_eq!(tool.name(), "shout");
/// ```
#[derive(Debug, Clone)]
pub struct ToolDef {
    pub(crate) spec: ToolSpec,
    pub(crate) handler: DynHandler<ToolCall>,
}

impl ToolDef {
    /// Starts building a tool with this name.
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        let item = ItemSpec { name: name.into(), ..ItemSpec::default() };
        ToolBuilder(ToolSpec { item, ..ToolSpec::default() })
    }

    /// `name` on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.item.name
    }
}

/// Builds a [`ToolDef`](crate::tool::ToolDef); [`handler`](Self::handler) is the last step.
#[derive(Debug, Clone, Default)]
#[must_use = "a tool is complete with its handler"]
pub struct ToolBuilder(pub(crate) ToolSpec);

impl_item_setters!(ToolBuilder, "tool");

impl ToolBuilder {
    pub(crate) fn item_mut(&mut self) -> &mut ItemSpec {
        &mut self.0.item
    }

    /// Sets `inputSchema` on the wire, in the dialect 2020-12. It must use keywords that are enforced, and its defaults
    /// must conform to it, else adding the tool fails; `maxLength` is added to a `pattern` without one.
    ///
    /// Clients see it without forms that some of them refuse, in others that accept the same values: an array without
    /// `items`, an object without `properties`, a list of types, and an `enum` that is empty or has a value twice.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.0.input_schema = Some(HandWrittenSchema::new(schema, Enforcement::Whole));
        self
    }

    /// Sets `inputSchema` on the wire to one that was written for another program, such as OpenAPI's: it is published as
    /// it is. Arguments are checked against the part of it that can be enforced; the rest is for the handler to check.
    ///
    /// ```
    /// use mcp_runtime::tool::{ToolCall, ToolDef};
    /// use serde_json::json;
    ///
    /// let tool = ToolDef::builder("pay")
    ///     .trusted_input_schema(json!({
    ///         "type": "object",
    ///         "properties": { "iban": { "type": "string", "nullable": true, "pattern": "^(?!XX)", "example": "DE02" } }
    ///     }))
    ///     .handler(|call: ToolCall| async move { format!("{:?}", call.arguments) });
    /// ```
    pub fn trusted_input_schema(mut self, schema: Value) -> Self {
        self.0.input_schema = Some(HandWrittenSchema::new(schema, Enforcement::Trusted));
        self
    }

    /// As [`trusted_input_schema`](Self::trusted_input_schema), but clients see the schema as they see one of
    /// [`input_schema`](Self::input_schema): without forms that some of them refuse, in others that accept the same values.
    pub fn suited_input_schema(mut self, schema: Value) -> Self {
        self.0.input_schema = Some(HandWrittenSchema::new(schema, Enforcement::Suited));
        self
    }

    /// Sets `inputSchema` on the wire to one that another program enforces, such as the server that the handler calls: it
    /// is published as it is. Arguments are neither checked, nor repaired, nor completed with defaults;
    /// [`ToolCall::raw_arguments`] has them as the client wrote them.
    ///
    /// ```
    /// use mcp_runtime::tool::{ToolCall, ToolDef};
    /// use serde_json::json;
    ///
    /// let tool = ToolDef::builder("search")
    ///     .unchecked_input_schema(json!({ "type": "object", "properties": { "q": { "type": "string" } } }))
    ///     .handler(|call: ToolCall| async move { format!("sent on: {:?}", call.raw_arguments()) });
    /// ```
    pub fn unchecked_input_schema(mut self, schema: Value) -> Self {
        self.0.input_schema = Some(HandWrittenSchema::new(schema, Enforcement::Nothing));
        self
    }

    /// Takes `null` for an optional argument or a member of one as its absence, where a
    /// [trusted](Self::trusted_input_schema) schema has no `null`, but not in these arguments. With
    /// [`input_schema`](Self::input_schema), that holds for all.
    pub fn null_is_absent_except<N: Into<String>>(mut self, arguments: impl IntoIterator<Item = N>) -> Self {
        self.0.kept_nulls = Some(arguments.into_iter().map(Into::into).collect());
        self
    }

    /// Sets `outputSchema` on the wire; results are validated against it.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.0.output_schema = Some(HandWrittenSchema::new(schema, Enforcement::Whole));
        self
    }

    /// Sets `outputSchema` on the wire to one that was written for another program; results are validated against the
    /// part of it that can be enforced. See [`trusted_input_schema`](Self::trusted_input_schema).
    pub fn trusted_output_schema(mut self, schema: Value) -> Self {
        self.0.output_schema = Some(HandWrittenSchema::new(schema, Enforcement::Trusted));
        self
    }

    /// Sets `outputSchema` on the wire to one that another program enforces; results are not checked. See
    /// [`unchecked_input_schema`](Self::unchecked_input_schema).
    pub fn unchecked_output_schema(mut self, schema: Value) -> Self {
        self.0.output_schema = Some(HandWrittenSchema::new(schema, Enforcement::Nothing));
        self
    }

    /// Tells clients where a result does not fit its schema, since another program makes it; the log says what to do.
    #[doc(hidden)]
    pub fn foreign_results(mut self, remedy: &'static str) -> Self {
        self.0.remedy = Some(remedy);
        self
    }

    /// Sets the hints on its behaviour.
    pub fn hints(mut self, hints: impl FnOnce(&mut Hints)) -> Self {
        hints(&mut self.0.hints);
        self
    }

    /// Sets the entry's `_meta`, an object.
    #[allow(clippy::needless_pass_by_value, reason = "`meta(json!(..))` reads best")]
    pub fn meta(mut self, meta: Value) -> Self {
        self.0.item.meta = Some(meta.to_string());
        self
    }

    /// Sets how long a call may take.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.0.item.timeout = Some(limit);
        self
    }

    /// Sets how many calls may run at once.
    pub fn max_concurrency(mut self, calls: usize) -> Self {
        self.0.max_concurrency = Some(calls);
        self
    }

    /// Leaves the value of an argument, a property of the input schema, out of traces and the audit log.
    pub fn secret(mut self, argument: impl Into<String>) -> Self {
        self.0.item.secrets.push(argument.into());
        self
    }

    /// Refuses names that the input schema does not have, at any depth, and strings for other types instead of coercing
    /// them. An object of the schema allows other names with `additionalProperties`, `patternProperties` or
    /// `unevaluatedProperties`; a [trusted](Self::trusted_input_schema) schema stays as it is written.
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

    /// Sets the handler and builds the tool.
    pub fn handler<F, Fut>(self, handler: F) -> ToolDef
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static, // `move |call| { let x = x.clone(); async move { .. } }`
        Fut: AsyncReply + Send + 'static,
        Fut::Reply: IntoOutput<ToolResult>,
    {
        ToolDef { spec: self.0, handler: async_handler(handler, Fut::Reply::into_output) }
    }

    /// Sets a plain handler, which runs on the blocking pool, and builds the tool.
    pub fn blocking_handler<F, R>(self, handler: F) -> ToolDef
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: PlainReply + 'static,
    {
        ToolDef { spec: self.0, handler: blocking_handler(handler, R::into_output) }
    }
}

/// The return type of a plain handler: [`IntoOutput`] by another name, because its message must mention futures.
#[diagnostic::on_unimplemented(
    message = "a plain handler cannot return `{Self}`",
    label = "cannot be converted into a tool result",
    note = "a handler that is async goes to `.handler(|call| async move {{ .. }})`",
    note = "a plain one returns what a tool may: text, a number, `Json<T>`, content blocks, `ToolResult`, or a `Result` of these"
)]
pub trait PlainReply: IntoOutput<ToolResult> {}
#[diagnostic::do_not_recommend]
impl<R: IntoOutput<ToolResult>> PlainReply for R {}
