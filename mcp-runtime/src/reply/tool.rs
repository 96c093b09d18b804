//! What a tool may return.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::{Failure, IntoFailure, Json, ToolError};
use crate::content::{Audio, Content, Embedded, Image, IntoContent, ResourceLink, Text, ToolResult};

macro_rules! blocks {
    ($($t:ty)*) => {$(
        impl IntoToolResult for $t {
            fn into_tool_result(self) -> Result<ToolResult, Failure> {
                Ok(ToolResult::new([self.into()]))
            }
        }
    )*};
}
blocks!(Content Text Image Audio ResourceLink Embedded);

macro_rules! texts {
    ($($t:ty)*) => {$(
        impl IntoToolResult for $t {
            fn into_tool_result(self) -> Result<ToolResult, Failure> {
                Ok(ToolResult::text(self))
            }
        }
    )*};
}
texts!(String &'static str Cow<'static, str>);

/// Types that a tool may return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "no tool result can be made of this",
    note = "return text, a number, `()`, `Option<T>`, `Json<T>`, content blocks, `ToolResult`, or a `Result` of these",
    note = "for your own type: `Json<{Self}>`"
)]
pub trait IntoToolResult {
    /// The result.
    ///
    /// # Errors
    /// The function failed, or its value has no JSON form.
    fn into_tool_result(self) -> Result<ToolResult, Failure>;

    /// What `None` of this type gives.
    #[doc(hidden)]
    fn none() -> ToolResult
    where
        Self: Sized,
    {
        ToolResult::default()
    }

    /// The schema of the structured value, if there is one.
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

macro_rules! plain {
    ($($t:ty)*) => {$(
        impl IntoToolResult for $t {
            fn into_tool_result(self) -> Result<ToolResult, Failure> {
                Ok(ToolResult::text(self.to_string()))
            }
        }
    )*};
}
plain!(bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        Ok(ToolResult::default())
    }
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        Ok(self)
    }
}

impl<T: IntoToolResult> IntoToolResult for Option<T> {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        self.map_or_else(|| Ok(T::none()), T::into_tool_result)
    }

    fn output_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        T::optional_output_schema(generator)
    }
}

impl<T: IntoToolResult, E: IntoFailure> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        self.map_err(E::into_failure)?.into_tool_result()
    }

    fn output_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        T::output_schema(generator)
    }
}

/// Types that can be sent as structured content.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned as `Json`",
    label = "not serializable with a schema",
    note = "put `#[mcp_type]` on it, or derive `serde::Serialize` and `schemars::JsonSchema` (1.x)"
)]
pub trait Structured: Serialize + JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> Structured for T {}

fn structured<T: Serialize>(value: &T) -> Result<ToolResult, Failure> {
    let json = serde_json::to_string(value).map_err(|e| Failure::Body(ToolError::private(e)))?;
    Ok(ToolResult {
        content: vec![Content::text(json.clone())],
        structured: Some(json),
        ..ToolResult::default()
    })
}

impl<T: Structured> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        structured(&self.0)
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

impl<T: IntoContent> IntoToolResult for Vec<T> {
    fn into_tool_result(self) -> Result<ToolResult, Failure> {
        Ok(ToolResult::new(self.into_iter().map(T::into_content)))
    }
}

macro_rules! tuples {
    ($(($($t:ident)*))*) => {$(
        impl<$($t: IntoContent),*> IntoToolResult for ($($t,)*) {
            #[allow(non_snake_case)]
            fn into_tool_result(self) -> Result<ToolResult, Failure> {
                let ($($t,)*) = self;
                Ok(ToolResult::new([$($t.into_content()),*]))
            }
        }

        impl<__T: Structured, $($t: IntoContent),*> IntoToolResult for (Json<__T>, $($t,)*) {
            #[allow(non_snake_case)]
            fn into_tool_result(self) -> Result<ToolResult, Failure> {
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
tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F)(A B C D E F G));
