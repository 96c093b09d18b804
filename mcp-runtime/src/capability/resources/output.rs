//! The return types of resources, and their conversion into a `ReadResourceResult`.

use std::borrow::Cow;

use serde::Serialize;
#[cfg(feature = "client")]
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[cfg(feature = "client")]
use crate::core::content::{WireMembers, WireRest, wire_error};
use crate::core::{
    content::{Bytes, ContentWriter, Json, ResourceContents, ResourceDefaults, meta_setter},
    error::ToolError,
    item_output::{IntoOutput, ListOutput, TextOutput},
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
    /// `_meta` on the wire.
    pub meta: Option<Box<Map<String, Value>>>,
    /// Members that another server has sent besides.
    #[cfg(feature = "client")]
    pub(crate) rest: WireRest,
}

impl ResourceResult {
    /// A result with these items.
    pub fn new(contents: impl IntoIterator<Item = ResourceContents>) -> Self {
        Self::of_parts(contents.into_iter().collect())
    }

    /// Reads the result of `resources/read` as another server has sent it, as
    /// [`ToolResult::from_wire`](crate::ToolResult::from_wire) reads that of a tool. How long it may be cached is not taken
    /// over: [`cache`](crate::resource::ResourceBuilder::cache) says that.
    ///
    /// # Errors
    /// A member is not what the protocol requires.
    #[cfg(feature = "client")]
    pub fn from_wire(json: &RawValue) -> serde_json::Result<Self> {
        let mut members = WireMembers::read(json)?;
        let contents: Vec<Value> = members.take("contents")?.unwrap_or_default();
        let parse = |item: Value| {
            ResourceContents::from_json_exactly(&item)
                .ok_or_else(|| wire_error("an item of `contents` has neither text nor a blob"))
        };
        members.drop_all(&["ttlMs", "cacheScope"]);
        Ok(Self {
            contents: contents.into_iter().map(parse).collect::<Result<_, _>>()?,
            meta: members.take("_meta")?,
            rest: members.into_rest(),
        })
    }

    meta_setter!("result");
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
    #[cfg(feature = "client")]
    result.rest.write(object);
}

impl ListOutput for ResourceResult {
    type Part = ResourceContents;

    fn of_parts(contents: Vec<ResourceContents>) -> Self {
        Self {
            contents,
            meta: None,
            #[cfg(feature = "client")]
            rest: WireRest::default(),
        }
    }
}

impl TextOutput for ResourceResult {
    const MIME: Option<&'static str> = Some("text/plain");

    fn of_text(text: Cow<'static, str>) -> Self {
        Self::new([ResourceContents::text(text)])
    }
}

#[diagnostic::do_not_recommend]
impl IntoOutput<Self> for ResourceResult {
    fn into_output(self) -> Result<Self, ToolError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl IntoOutput<ResourceResult> for Bytes {
    const MIME: Option<&'static str> = Some("application/octet-stream");

    fn into_output(self) -> Result<ResourceResult, ToolError> {
        Ok(ResourceResult::new([ResourceContents::blob(self.0)]))
    }
}

macro_rules! impl_for_bytes {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl IntoOutput<ResourceResult> for $t {
            const MIME: Option<&'static str> = Bytes::MIME;

            fn into_output(self) -> Result<ResourceResult, ToolError> {
                Bytes::from(self).into_output()
            }
        }
    )*};
}
impl_for_bytes!(Vec<u8> &'static [u8]);

impl<T: Serialize> IntoOutput<ResourceResult> for Json<T> {
    const MIME: Option<&'static str> = Some("application/json");

    fn into_output(self) -> Result<ResourceResult, ToolError> {
        let json = ResourceContents::json(&self.0).map_err(ToolError::private)?;
        Ok(ResourceResult::new([json]))
    }
}

impl<T: IntoOutput<ResourceResult>> IntoOutput<ResourceResult> for Option<T> {
    const MIME: Option<&'static str> = T::MIME;

    fn into_output(self) -> Result<ResourceResult, ToolError> {
        self.ok_or_else(ToolError::not_found)?.into_output()
    }
}
