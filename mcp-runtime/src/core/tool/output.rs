//! The return types of tools, and their conversion into a `CallToolResult`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
#[cfg(feature = "client")]
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[cfg(feature = "client")]
use crate::core::content::{WireMembers, WireRest, parse_exact};
use crate::core::{
    content::{Content, ContentWriter, Json, meta_setter},
    error::ToolError,
    item_output::{IntoOutput, ListOutput, TextOutput},
    jsonrpc::{Object, legible_json, write_array},
    protocol::Revision,
};

/// The complete result of `tools/call`, for tools that decide every part of it.
///
/// See [tool results](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result).
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The blocks.
    pub content: Vec<Content>,
    /// JSON text of `structuredContent`.
    pub(crate) structured: Option<String>,
    /// Whether it is a failure: `isError` on the wire.
    pub is_error: bool,
    /// `_meta` on the wire.
    pub meta: Option<Box<Map<String, Value>>>,
    /// Members that another server has sent besides.
    #[cfg(feature = "client")]
    pub(crate) rest: WireRest,
}

impl ToolResult {
    /// Reads the result of `tools/call` as another server has sent it, for programs that pass it on: what is written is
    /// equal to it as JSON, as far as the revision of the client has it. Blocks of unknown kinds, known ones with other
    /// members, and members of the result that this type does not have are kept; the structured content keeps its text.
    ///
    /// ```
    /// use mcp_runtime::ToolResult;
    /// use serde_json::value::RawValue;
    ///
    /// # fn main() -> serde_json::Result<()> {
    /// let json = RawValue::from_string(r#"{"content":[{"type":"text","text":"hi"}],"com.example/cost":3}"#.to_owned())?;
    /// assert_eq!(ToolResult::from_wire(&json)?.content[0].as_text(), Some("hi"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A member is not what the protocol requires.
    #[cfg(feature = "client")]
    pub fn from_wire(json: &RawValue) -> serde_json::Result<Self> {
        let mut members = WireMembers::read(json)?;
        let blocks: Vec<Value> = members.take("content")?.unwrap_or_default();
        Ok(Self {
            content: blocks.into_iter().map(parse_exact).collect(),
            structured: members.take_raw("structuredContent").map(|json| json.get().to_owned()),
            is_error: members.take("isError")?.unwrap_or_default(),
            meta: members.take("_meta")?,
            rest: members.into_rest(),
        })
    }

    /// A result with these blocks.
    pub fn new(content: impl IntoIterator<Item = Content>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// A result with one text block.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self { content: vec![text.into().into()], ..Self::default() }
    }

    /// A result whose `structuredContent` is `value`, and whose text block is the same JSON, as [`Json`] gives it; declare its schema
    /// with `output = Type` on the tool.
    ///
    /// # Errors
    /// `value` has no JSON form.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        let json = legible_json(value)?;
        Ok(Self { structured: Some(json.clone()), ..Self::text(json) })
    }

    /// A failed result that shows `text` to the model.
    pub fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds a block.
    #[must_use]
    pub fn with(mut self, block: impl Into<Content>) -> Self {
        self.content.push(block.into());
        self
    }

    /// Sets `structuredContent`; declare its schema with `output = Type` on the tool.
    ///
    /// The blocks stay as they are; [`json`](Self::json) adds the same JSON as text, for clients that read only text.
    ///
    /// # Errors
    /// `value` has no JSON form.
    pub fn structured<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, serde_json::Error> {
        self.structured = Some(legible_json(value)?);
        Ok(self)
    }

    /// Marks the call as failed: `isError` on the wire.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// `structuredContent` on the wire, if it was set.
    #[must_use]
    pub fn structured_content(&self) -> Option<Value> {
        self.structured.as_deref().and_then(|json| serde_json::from_str(json).ok())
    }

    meta_setter!("result");
}

/// Writes the members of a tool's result. Legacy clients accept only objects as structured values: they get all of a tool
/// under `result` with `wrap`, else those that are not objects, which a tool without a schema and failures may have.
pub(crate) fn write_tool_result(
    object: &mut Object<'_>,
    result: &ToolResult,
    revision: Revision,
    wrap: bool,
) {
    let writer = ContentWriter(revision);
    write_array(object.key("content"), &result.content, |out, block| writer.write_content(out, block));
    if let Some(json) = result.structured.as_deref().filter(|_| revision >= Revision::V2025_06_18) {
        if !revision.is_modern() && (wrap || !json.starts_with('{')) {
            object.object("structuredContent", |s| {
                s.raw("result", json);
            });
        } else {
            object.raw("structuredContent", json);
        }
    }
    if result.is_error {
        object.raw("isError", "true");
    }
    #[cfg(feature = "client")]
    result.rest.write(object);
}

impl ListOutput for ToolResult {
    type Part = Content;

    fn of_parts(content: Vec<Content>) -> Self {
        Self { content, ..Self::default() }
    }
}

impl TextOutput for ToolResult {
    const MIME: Option<&'static str> = None;

    fn of_text(text: Cow<'static, str>) -> Self {
        Self::text(text)
    }
}

impl IntoOutput<Self> for ToolResult {
    fn into_output(self) -> Result<Self, ToolError> {
        Ok(self)
    }
}

impl IntoOutput<ToolResult> for () {
    fn into_output(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::default())
    }
}

impl<T: IntoOutput<ToolResult>> IntoOutput<ToolResult> for Option<T> {
    fn into_output(self) -> Result<ToolResult, ToolError> {
        self.map_or_else(|| Ok(T::none()), T::into_output)
    }

    fn none() -> ToolResult {
        T::none()
    }

    fn schema(generator: &mut SchemaGenerator, _: bool) -> Option<Schema> {
        T::schema(generator, true)
    }
}

/// Types that can be sent as structured content.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned as `Json`",
    label = "not serializable with a schema",
    note = "put `#[mcp_type]` on it, or derive `serde::Serialize` and `schemars::JsonSchema` (1.x)"
)]
pub trait Structured: Serialize + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> Structured for T {}

impl<T: Structured> IntoOutput<ToolResult> for Json<T> {
    fn into_output(self) -> Result<ToolResult, ToolError> {
        ToolResult::json(&self.0).map_err(ToolError::private)
    }

    fn none() -> ToolResult {
        ToolResult { structured: Some("null".into()), ..ToolResult::text("null") }
    }

    fn schema(generator: &mut SchemaGenerator, optional: bool) -> Option<Schema> {
        Some(match optional {
            false => generator.subschema_for::<T>(),
            true => generator.subschema_for::<Option<T>>(),
        })
    }
}
