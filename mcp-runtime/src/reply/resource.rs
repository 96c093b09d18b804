//! What a resource may return.

use std::borrow::Cow;

use serde::Serialize;

use super::{Failure, IntoFailure, Json, ToolError};
use crate::content::{Bytes, ResourceContents, ResourceResult};

/// Types that a resource may return.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    label = "no resource contents can be made of this",
    note = "return text, a number, `Json<T>`, `Bytes` or `Vec<u8>`, `ResourceContents`, or an `Option` or `Result` of these",
    note = "for your own type: `Json<{Self}>`"
)]
pub trait IntoResourceResult {
    /// The MIME type where neither the attribute nor the value names one.
    #[doc(hidden)]
    const MIME: Option<&'static str>;

    /// The contents.
    ///
    /// # Errors
    /// The function failed, the resource does not exist, or its value has no JSON form.
    fn into_resource_result(self) -> Result<ResourceResult, Failure>;
}

macro_rules! texts {
    ($($t:ty)*) => {$(
        impl IntoResourceResult for $t {
            const MIME: Option<&'static str> = Some("text/plain");

            fn into_resource_result(self) -> Result<ResourceResult, Failure> {
                Ok(ResourceContents::text(self.to_string()).into())
            }
        }
    )*};
}
texts!(&'static str Cow<'static, str> bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

impl IntoResourceResult for String {
    const MIME: Option<&'static str> = Some("text/plain");

    fn into_resource_result(self) -> Result<ResourceResult, Failure> {
        Ok(ResourceContents::text(self).into())
    }
}

impl<T: Serialize> IntoResourceResult for Json<T> {
    const MIME: Option<&'static str> = Some("application/json");

    fn into_resource_result(self) -> Result<ResourceResult, Failure> {
        let json = serde_json::to_string(&self.0).map_err(|e| Failure::Body(ToolError::private(e)))?;
        Ok(ResourceContents::text(json).into())
    }
}

macro_rules! binary {
    ($($t:ty => $bytes:expr;)*) => {$(
        impl IntoResourceResult for $t {
            const MIME: Option<&'static str> = Some("application/octet-stream");

            fn into_resource_result(self) -> Result<ResourceResult, Failure> {
                let bytes: fn(Self) -> Vec<u8> = $bytes;
                Ok(ResourceContents::blob(bytes(self)).into())
            }
        }
    )*};
}
binary! {
    Vec<u8> => |v| v;
    Bytes => |b| b.0;
    &'static [u8] => |b| b.to_vec();
}

macro_rules! whole {
    ($($t:ty)*) => {$(
        impl IntoResourceResult for $t {
            const MIME: Option<&'static str> = None;

            fn into_resource_result(self) -> Result<ResourceResult, Failure> {
                Ok(self.into())
            }
        }
    )*};
}
whole!(ResourceContents ResourceResult);

impl IntoResourceResult for Vec<ResourceContents> {
    const MIME: Option<&'static str> = None;

    fn into_resource_result(self) -> Result<ResourceResult, Failure> {
        Ok(ResourceResult::new(self))
    }
}

impl<T: IntoResourceResult> IntoResourceResult for Option<T> {
    const MIME: Option<&'static str> = T::MIME;

    fn into_resource_result(self) -> Result<ResourceResult, Failure> {
        self.ok_or(Failure::NotFound)?.into_resource_result()
    }
}

impl<T: IntoResourceResult, E: IntoFailure> IntoResourceResult for Result<T, E> {
    const MIME: Option<&'static str> = T::MIME;

    fn into_resource_result(self) -> Result<ResourceResult, Failure> {
        self.map_err(E::into_failure)?.into_resource_result()
    }
}
