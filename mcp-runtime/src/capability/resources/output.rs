//! The return types of resources, and their conversion into a `ReadResourceResult`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::core::{
    arguments::{HandlerResult, poll_now},
    content::{Bytes, ContentWriter, Json, ResourceContents, ResourceDefaults, impl_meta},
    error::{Failure, IntoFailure, ToolError},
    item_output::ItemOutput,
    jsonrpc::{Object, write_array},
    protocol::Revision,
};

/// The complete result of `resources/read`: one item, or several.
///
/// [`meta`](Self::meta) sets the `_meta` of the result, [`ResourceContents::meta`] that of one item.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceResult {
    /// `contents` on the wire, in order.
    pub contents: Vec<ResourceContents>,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
}

impl ResourceResult {
    /// A result with these items.
    pub fn new(contents: impl IntoIterator<Item = ResourceContents>) -> Self {
        Self { contents: contents.into_iter().collect(), meta: None }
    }
}

impl_meta!("result", ResourceResult, meta);

impl From<ResourceContents> for ResourceResult {
    fn from(contents: ResourceContents) -> Self {
        Self { contents: vec![contents], meta: None }
    }
}

/// Writes the `contents` of a read.
pub(crate) fn write_resource_result(
    object: &mut Object<'_>,
    result: &ResourceResult,
    revision: Revision,
    defaults: ResourceDefaults<'_>,
) {
    let writer = ContentWriter(revision);
    write_array(object.key("contents"), &result.contents, |out, item| {
        writer.write_resource(out, item, defaults);
    });
}

/// Types that a resource may return.
///
/// Implement it for a type of your own that several resources return, alone or in an `Option` or `Result`; `None` is a
/// resource that does not exist.
///
/// ```
/// use mcp_runtime::{content::ResourceContents, prelude::*, resource::{IntoResourceResult, ResourceResult}};
///
/// struct Page {
///     html: String,
///     is_deleted: bool,
/// }
///
/// impl IntoResourceResult for Page {
///     const MIME: Option<&'static str> = Some("text/html");
///
///     fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
///         if self.is_deleted {
///             return Err(ToolError::not_found());
///         }
///         Ok(ResourceContents::text(self.html).into())
///     }
/// }
///
/// /// A page of the handbook.
/// #[mcp_resource(uri = "handbook://{page}")]
/// fn handbook(page: String) -> Page {
///     Page { html: format!("<h1>{page}</h1>"), is_deleted: false }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    label = "cannot be converted into resource contents",
    note = "return text, a number, `Json<T>`, `Bytes` or `Vec<u8>`, `ResourceContents`, or an `Option` or `Result` of these",
    note = "for your own type: `Json<{Self}>`, or `impl IntoResourceResult for {Self}`"
)]
pub trait IntoResourceResult {
    /// `mimeType` on the wire if neither the attribute nor the contents set one.
    const MIME: Option<&'static str> = None;

    /// The contents.
    ///
    /// # Errors
    /// Why the read fails instead; [`ToolError::not_found`] if the resource does not exist.
    fn into_resource_result(self) -> Result<ResourceResult, ToolError>;
}

macro_rules! impl_for_texts {
    ($($t:ty)*) => {$(
        impl IntoResourceResult for $t {
            const MIME: Option<&'static str> = Some("text/plain");

            fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
                Ok(ResourceContents::text(self.to_string()).into())
            }
        }
    )*};
}
impl_for_texts!(&'static str Cow<'static, str> bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

impl IntoResourceResult for String {
    const MIME: Option<&'static str> = Some("text/plain");

    fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
        Ok(ResourceContents::text(self).into())
    }
}

impl<T: Serialize> IntoResourceResult for Json<T> {
    const MIME: Option<&'static str> = Some("application/json");

    fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
        let json = serde_json::to_string(&self.0).map_err(ToolError::private)?;
        Ok(ResourceContents::text(json).into())
    }
}

macro_rules! impl_for_binary {
    ($($t:ty => $bytes:expr;)*) => {$(
        impl IntoResourceResult for $t {
            const MIME: Option<&'static str> = Some("application/octet-stream");

            fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
                let bytes: fn(Self) -> Vec<u8> = $bytes;
                Ok(ResourceContents::blob(bytes(self)).into())
            }
        }
    )*};
}
impl_for_binary! {
    Vec<u8> => |v| v;
    Bytes => |b| b.0;
    &'static [u8] => |b| b.to_vec();
}

macro_rules! impl_for_contents {
    ($($t:ty)*) => {$(
        impl IntoResourceResult for $t {
            const MIME: Option<&'static str> = None;

            fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
                Ok(self.into())
            }
        }
    )*};
}
impl_for_contents!(ResourceContents ResourceResult);

impl IntoResourceResult for Vec<ResourceContents> {
    const MIME: Option<&'static str> = None;

    fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
        Ok(ResourceResult::new(self))
    }
}

impl<T: IntoResourceResult> IntoResourceResult for Option<T> {
    const MIME: Option<&'static str> = T::MIME;

    fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
        self.ok_or_else(ToolError::not_found)?.into_resource_result()
    }
}

impl<T: IntoResourceResult, E: IntoFailure> IntoResourceResult for Result<T, E> {
    const MIME: Option<&'static str> = T::MIME;

    fn into_resource_result(self) -> Result<ResourceResult, ToolError> {
        self.map_err(E::into_failure)?.into_resource_result()
    }
}

/// How a return type `R` becomes a resource's contents.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct ResourceOutput<R: 'static> {
    convert: fn(R) -> Result<ResourceResult, ToolError>,
    mime: Option<&'static str>,
}

impl<R: 'static> ResourceOutput<R> {
    /// Converts what the function returned.
    ///
    /// # Errors
    /// The function failed, or the resource does not exist.
    pub fn reply(&self, value: R) -> Result<ItemOutput, Failure> {
        Ok(ItemOutput::Resource((self.convert)(value)?))
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
pub const fn resource_output<R: IntoResourceResult>() -> ResourceOutput<R> {
    ResourceOutput { convert: R::into_resource_result, mime: R::MIME }
}

/// A [`ResourceOutput`] without its type.
pub trait AnyResourceOutput: Sync {
    #[doc(hidden)]
    fn mime(&self) -> Option<&'static str>;
}

impl<R> AnyResourceOutput for ResourceOutput<R> {
    fn mime(&self) -> Option<&'static str> {
        self.mime
    }
}
