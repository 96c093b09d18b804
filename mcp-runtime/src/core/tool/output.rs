//! The return types of tools, and their conversion into a `CallToolResult`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    core::{
        arguments::{HandlerResult, poll_now},
        content::{
            Audio, Content, ContentWriter, Embedded, Image, IntoContent, Json, ResourceLink, Text, impl_meta,
        },
        error::{Failure, IntoFailure, ToolError},
        item_output::ItemOutput,
        jsonrpc::{Object, write_array},
        protocol::Revision,
    },
    schema::link_patterns,
};

/// The complete result of `tools/call`, for tools that decide every part of it.
///
/// See [tool results](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    pub(crate) content: Vec<Content>,
    /// JSON text of `structuredContent`.
    pub(crate) structured: Option<String>,
    pub(crate) is_error: bool,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
}

impl ToolResult {
    /// A result with these blocks.
    pub fn new(content: impl IntoIterator<Item = Content>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// A result with one text block.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
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
    /// The blocks stay as they are. Add the same JSON as text for clients that read only text.
    ///
    /// # Errors
    /// `value` has no JSON form.
    pub fn structured<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, serde_json::Error> {
        self.structured = Some(serde_json::to_string(value)?);
        Ok(self)
    }

    /// Marks the call as failed: `isError` on the wire.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// The blocks.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// The blocks, to change them.
    pub fn content_mut(&mut self) -> &mut Vec<Content> {
        &mut self.content
    }

    /// `structuredContent` on the wire, if it was set.
    #[must_use]
    pub fn structured_content(&self) -> Option<Value> {
        self.structured.as_deref().and_then(|json| serde_json::from_str(json).ok())
    }

    /// Whether it is a failure.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error
    }
}

impl_meta!("result", ToolResult, meta);

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
}

macro_rules! impl_for_blocks {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl IntoToolResult for $t {
            fn into_tool_result(self) -> Result<ToolResult, ToolError> {
                Ok(ToolResult::new([self.into()]))
            }
        }
    )*};
}
impl_for_blocks!(Content Text Image Audio ResourceLink Embedded);

macro_rules! impl_for_texts {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl IntoToolResult for $t {
            fn into_tool_result(self) -> Result<ToolResult, ToolError> {
                Ok(ToolResult::text(self))
            }
        }
    )*};
}
impl_for_texts!(String &'static str Cow<'static, str>);

/// Types that a tool may return.
///
/// Implement it for a type of your own that several tools return, alone or in an `Option` or `Result`; `None` is a result
/// without content.
///
/// ```
/// use mcp_runtime::{content::Image, prelude::*, tool::IntoToolResult};
///
/// struct Report {
///     title: String,
///     chart: Vec<u8>,
/// }
///
/// impl IntoToolResult for Report {
///     fn into_tool_result(self) -> Result<ToolResult, ToolError> {
///         if self.chart.is_empty() {
///             return Err("there is nothing to report".into());
///         }
///         Ok(ToolResult::text(self.title).with(Image::new(self.chart, "image/png")))
///     }
/// }
///
/// /// Reports what was sold.
/// #[mcp_tool]
/// fn sales(month: u8) -> Result<Report, ToolError> {
///     Ok(Report { title: format!("Sales of month {month}"), chart: vec![1, 2, 3] })
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "cannot be converted into a tool result",
    note = "return text, a number, `()`, `Option<T>`, `Json<T>`, content blocks, `ToolResult`, or a `Result` of these",
    note = "for a type of yours, or a list of it: `mcp_runtime::Json<{Self}>`, or `impl IntoToolResult for {Self}`; for bytes: `Image`, `Audio` or `Embedded`",
    note = "the `Json` of another crate cannot be returned: write `mcp_runtime::Json` instead"
)]
pub trait IntoToolResult {
    /// The result.
    ///
    /// # Errors
    /// Why the call fails instead.
    fn into_tool_result(self) -> Result<ToolResult, ToolError>;

    /// The result of a `None` of this type.
    #[doc(hidden)]
    fn none() -> ToolResult
    where
        Self: Sized,
    {
        ToolResult::default()
    }

    /// The schema of the structured value, if it has one.
    #[doc(hidden)]
    fn output_schema(_: &mut SchemaGenerator) -> Option<Schema>
    where
        Self: Sized,
    {
        None
    }

    /// The schema of an optional structured value.
    #[doc(hidden)]
    fn optional_output_schema(_: &mut SchemaGenerator) -> Option<Schema>
    where
        Self: Sized,
    {
        None
    }
}

macro_rules! impl_for_primitives {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl IntoToolResult for $t {
            fn into_tool_result(self) -> Result<ToolResult, ToolError> {
                Ok(ToolResult::text(self.to_string()))
            }
        }
    )*};
}
impl_for_primitives!(bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::default())
    }
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl<T: IntoToolResult> IntoToolResult for Option<T> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        self.map_or_else(|| Ok(T::none()), T::into_tool_result)
    }

    fn output_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        T::optional_output_schema(generator)
    }
}

impl<T: IntoToolResult, E: IntoFailure> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        self.map_err(E::into_failure)?.into_tool_result()
    }

    fn output_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        T::output_schema(generator)
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

pub(super) fn structured_result<T: Serialize>(value: &T) -> Result<ToolResult, ToolError> {
    let json = serde_json::to_string(value).map_err(ToolError::private)?;
    Ok(ToolResult {
        content: vec![Content::text(json.clone())],
        structured: Some(json),
        ..ToolResult::default()
    })
}

impl<T: Structured> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        structured_result(&self.0)
    }

    fn none() -> ToolResult {
        ToolResult { structured: Some("null".into()), ..ToolResult::text("null") }
    }

    fn output_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }

    fn optional_output_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<Option<T>>())
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoContent> IntoToolResult for Vec<T> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::new(self.into_iter().map(T::into_content)))
    }
}

macro_rules! impl_for_tuples {
    ($(($($t:ident)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($t: IntoContent),*> IntoToolResult for ($($t,)*) {
            #[allow(non_snake_case)]
            fn into_tool_result(self) -> Result<ToolResult, ToolError> {
                let ($($t,)*) = self;
                Ok(ToolResult::new([$($t.into_content()),*]))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<__T: Structured, $($t: IntoContent),*> IntoToolResult for (Json<__T>, $($t,)*) {
            #[allow(non_snake_case)]
            fn into_tool_result(self) -> Result<ToolResult, ToolError> {
                let (json, $($t,)*) = self;
                let mut result = json.into_tool_result()?;
                result.content.extend([$($t.into_content()),*]);
                Ok(result)
            }

            fn output_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
                Json::<__T>::output_schema(generator)
            }
        }
    )*};
}
impl_for_tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F)(A B C D E F G));

/// How a return type `R` becomes a tool's result.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct ToolOutput<R: 'static> {
    convert: fn(R) -> Result<ToolResult, ToolError>,
    schema: fn(&mut SchemaGenerator) -> Option<Schema>,
}

impl<R: 'static> ToolOutput<R> {
    /// Converts what the function returned.
    ///
    /// # Errors
    /// The function failed, or its value has no JSON form.
    pub fn reply(&self, value: R) -> Result<ItemOutput, Failure> {
        Ok(ItemOutput::Tool((self.convert)(value)?))
    }

    /// The outcome of an async function.
    ///
    /// # Errors
    /// Never fails; the type is that of handlers.
    pub fn pending(&self, future: Box<dyn Future<Output = R> + Send>) -> HandlerResult<ItemOutput> {
        poll_now(future, self.convert)
    }
}

/// The conversion of `R`. A function, so that rustc underlines the whole type if it does not implement the trait.
#[must_use]
pub const fn tool_output<R: IntoToolResult>() -> ToolOutput<R> {
    ToolOutput { convert: R::into_tool_result, schema: output_schema_of::<R> }
}

/// The schema of what `R` returns. A type without one links no patterns.
fn output_schema_of<R: IntoToolResult>(generator: &mut SchemaGenerator) -> Option<Schema> {
    let schema = R::output_schema(generator);
    if schema.is_some() {
        link_patterns();
    }
    schema
}

/// A [`ToolOutput`] without its type.
pub trait AnyToolOutput: Sync {
    #[doc(hidden)]
    fn schema(&self, generator: &mut SchemaGenerator) -> Option<Schema>;
}

impl<R> AnyToolOutput for ToolOutput<R> {
    fn schema(&self, generator: &mut SchemaGenerator) -> Option<Schema> {
        (self.schema)(generator)
    }
}
