//! The output of an item's function, whatever the kind of the item, and how return values become it: one type, so that the
//! code around functions is compiled once.

use std::{any::Any, borrow::Cow, fmt};

use schemars::{Schema, SchemaGenerator};

use crate::{
    core::{
        arguments::{HandlerResult, poll_now},
        content::{Audio, Content, Embedded, Image, Json, Message, ResourceContents, ResourceLink, Text},
        context::PendingRequest,
        error::{Failure, IntoFailure, ToolError},
        tool::{Structured, ToolResult},
    },
    prompt::PromptResult,
    resource::ResourceResult,
    schema::link_patterns,
};

/// Types that a function may return whose result is an `O`: a [`ToolResult`], a [`ResourceResult`] or a [`PromptResult`].
///
/// Implement it for a type of your own that several functions return, alone or in a `Result`; of tools and resources also
/// in an `Option`, whose `None` is a result without content, or a resource that does not exist.
///
/// ```
/// use mcp_runtime::{ToolResult, content::{Image, IntoOutput, ResourceContents}, prelude::*, resource::ResourceResult};
///
/// struct Report {
///     title: String,
///     chart: Vec<u8>,
/// }
///
/// impl IntoOutput<ToolResult> for Report {
///     fn into_output(self) -> Result<ToolResult, ToolError> {
///         if self.chart.is_empty() {
///             return Err("there is nothing to report".into());
///         }
///         Ok(ToolResult::text(self.title).with(Image::new(self.chart, "image/png")))
///     }
/// }
///
/// impl IntoOutput<ResourceResult> for Report {
///     fn into_output(self) -> Result<ResourceResult, ToolError> {
///         if self.chart.is_empty() {
///             return Err(ToolError::not_found());
///         }
///         Ok(ResourceResult::new([ResourceContents::blob(self.chart).mime("image/png")]))
///     }
/// }
///
/// /// Reports what was sold.
/// #[mcp_tool]
/// fn sales(month: u8) -> Result<Report, ToolError> {
///     Ok(report(month))
/// }
///
/// /// The chart of a month.
/// #[mcp_resource(uri = "reports://{month}", mime = "image/png")]
/// fn report(month: u8) -> Report {
///     Report { title: format!("Sales of month {month}"), chart: vec![1, 2, 3] }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a function whose result is `{O}` cannot return `{Self}`",
    label = "cannot be converted into `{O}`",
    note = "a tool returns text, a number, `()`, `Option<T>`, `Json<T>` or content blocks; a resource text, a number, `Json<T>`, `Bytes`, `Vec<u8>` or `ResourceContents`; a prompt text, messages or content blocks; the function of an event `bool` or an `Option` of what the subscriber sees; all of them `{O}`, or a `Result` of these",
    note = "for a type of yours, or a list of it: `Json<..>` of it, which no prompt returns, or `impl IntoOutput<{O}> for {Self}`; for bytes of a tool: `Image`, `Audio` or `Embedded`",
    note = "the `Json` of another crate cannot be returned: write `mcp_runtime::Json` instead"
)]
pub trait IntoOutput<O> {
    /// `mimeType` on the wire of a resource, if neither the attribute nor the contents set one.
    #[doc(hidden)]
    const MIME: Option<&'static str> = None;

    /// The result.
    ///
    /// # Errors
    /// Why the call fails instead; [`ToolError::not_found`] if a resource does not exist.
    fn into_output(self) -> Result<O, ToolError>;

    /// The result of a `None` of this type.
    #[doc(hidden)]
    fn none() -> O
    where
        Self: Sized,
        O: Default,
    {
        O::default()
    }

    /// The schema of the value, or of an `Option` of it, if it has one.
    #[doc(hidden)]
    fn schema(_: &mut SchemaGenerator, _optional: bool) -> Option<Schema>
    where
        Self: Sized,
    {
        None
    }
}

impl<O, T: IntoOutput<O>, E: IntoFailure> IntoOutput<O> for Result<T, E> {
    const MIME: Option<&'static str> = T::MIME;

    fn into_output(self) -> Result<O, ToolError> {
        self.map_err(E::into_failure)?.into_output()
    }

    fn none() -> O
    where
        O: Default,
    {
        T::none()
    }

    fn schema(generator: &mut SchemaGenerator, optional: bool) -> Option<Schema> {
        T::schema(generator, optional)
    }
}

/// Results that are lists: of content blocks, of messages, or of resource contents.
pub trait ListOutput {
    /// A member of the list.
    type Part;

    /// The result with these parts.
    fn of_parts(parts: Vec<Self::Part>) -> Self;
}

/// Results that text, or a value that is written as text, becomes.
pub trait TextOutput {
    /// `mimeType` on the wire of a resource.
    const MIME: Option<&'static str>;

    /// The result with this text.
    fn of_text(text: Cow<'static, str>) -> Self;
}

macro_rules! impl_for_parts {
    ($($part:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<O: ListOutput> IntoOutput<O> for $part
        where
            $part: Into<O::Part>,
        {
            fn into_output(self) -> Result<O, ToolError> {
                Ok(O::of_parts(vec![self.into()]))
            }
        }
    )*};
}
impl_for_parts!(Content Text Image Audio ResourceLink Embedded Message ResourceContents);

#[diagnostic::do_not_recommend]
impl<O: ListOutput, T: Into<O::Part>> IntoOutput<O> for Vec<T> {
    fn into_output(self) -> Result<O, ToolError> {
        Ok(O::of_parts(self.into_iter().map(T::into).collect()))
    }
}

macro_rules! impl_for_tuples {
    ($(($($t:ident)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<O: ListOutput, First: Into<O::Part>, $($t: Into<O::Part>),*> IntoOutput<O> for (First, $($t,)*) {
            #[allow(non_snake_case)]
            fn into_output(self) -> Result<O, ToolError> {
                let (first, $($t,)*) = self;
                Ok(O::of_parts(vec![first.into(), $($t.into()),*]))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<First: Structured, $($t: Into<Content>),*> IntoOutput<ToolResult> for (Json<First>, $($t,)*) {
            #[allow(non_snake_case)]
            fn into_output(self) -> Result<ToolResult, ToolError> {
                let (first, $($t,)*) = self;
                let mut result: ToolResult = first.into_output()?;
                result.content.extend([$($t.into()),*]);
                Ok(result)
            }

            fn schema(generator: &mut SchemaGenerator, optional: bool) -> Option<Schema> {
                (!optional).then(|| generator.subschema_for::<First>())
            }
        }
    )*};
}
impl_for_tuples!((B)(B C)(B C D));

macro_rules! impl_for_texts {
    ($text:expr, $($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<O: TextOutput> IntoOutput<O> for $t {
            const MIME: Option<&'static str> = O::MIME;

            fn into_output(self) -> Result<O, ToolError> {
                let text: fn(Self) -> Cow<'static, str> = $text;
                Ok(O::of_text(text(self)))
            }
        }
    )*};
}
impl_for_texts!(Into::into, String &'static str Cow<'static, str>);
impl_for_texts!(
    |value| value.to_string().into(),
    bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64
);

/// How a return type `R` becomes an `O`.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct Output<R: 'static, O: 'static> {
    convert: fn(R) -> Result<O, ToolError>,
    pub(crate) schema: OutputSchemaFn,
    pub(crate) mime: Option<&'static str>,
}

/// Writes the schema of what a function returns, if it has one.
pub(crate) type OutputSchemaFn = fn(&mut SchemaGenerator) -> Option<Schema>;

impl<R: 'static, O: 'static> Output<R, O>
where
    ItemOutput: From<O>,
{
    /// Converts what the function returned.
    ///
    /// # Errors
    /// The function failed, its value has no JSON form, or the resource does not exist.
    pub fn reply(&self, value: R) -> Result<ItemOutput, Failure> {
        Ok((self.convert)(value)?.into())
    }

    /// The outcome of an async function.
    ///
    /// # Errors
    /// Never fails; the type is that of handlers.
    pub fn pending(&self, future: Box<dyn Future<Output = R> + Send>) -> HandlerResult {
        poll_now(future, self.convert)
    }
}

/// The conversion of `R`. A function, so that rustc underlines the whole type if it does not implement the trait.
#[must_use]
pub const fn output<R: IntoOutput<O>, O>() -> Output<R, O> {
    Output { convert: R::into_output, schema: output_schema_of::<R, O>, mime: R::MIME }
}

/// The schema of what `R` returns. A type without one links no patterns.
fn output_schema_of<R: IntoOutput<O>, O>(generator: &mut SchemaGenerator) -> Option<Schema> {
    let schema = R::schema(generator, false);
    if schema.is_some() {
        link_patterns();
    }
    schema
}

/// The output of a function.
#[derive(Debug)]
pub enum ItemOutput {
    /// The result of a tool.
    Tool(ToolResult),
    /// The result of a resource.
    Resource(ResourceResult),
    /// The result of a prompt.
    Prompt(PromptResult),
    /// The values of an argument, of its `complete` function.
    Values(Vec<String>),
    /// The result of a template's `list` function: encoded entries, and where the next page begins.
    Entries(Vec<Vec<u8>>, Option<Vec<u8>>),
    /// The result of an item that only its capability knows.
    Other(Box<dyn Any + Send>),
    /// The request that its layers pass on if the function needs the client's input.
    InputRequired(PendingInput),
    /// The failure of a call whose function has not failed: one of its layers has made it.
    OfLayer(Box<Result<ItemOutput, Failure>>),
}

impl From<ToolResult> for ItemOutput {
    fn from(result: ToolResult) -> Self {
        Self::Tool(result)
    }
}

impl From<ResourceResult> for ItemOutput {
    fn from(result: ResourceResult) -> Self {
        Self::Resource(result)
    }
}

impl From<PromptResult> for ItemOutput {
    fn from(result: PromptResult) -> Self {
        Self::Prompt(result)
    }
}

/// The input that a call needs from its client; layers pass it on.
#[derive(Clone, PartialEq)]
pub struct PendingInput {
    pub(crate) requests: Vec<PendingRequest>,
    /// Sealed.
    pub(crate) state: String,
}

impl PendingInput {
    /// The keys of the requests to the client.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requests.iter().map(|request| &*request.key)
    }
}

impl fmt::Debug for PendingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

/// A layer can return anything.
pub(crate) fn wrong_kind() -> Failure {
    Failure::private("a layer has returned the result of another kind of item")
}
