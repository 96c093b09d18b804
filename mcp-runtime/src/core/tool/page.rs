//! Results in pages: entries, and where the next page begins.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

#[cfg(feature = "client")]
use super::Cursor;
use super::{IntoToolResult, Structured, ToolResult, output::structured_result};
use crate::core::error::ToolError;

/// One page of a tool's results: `{"items": [..], "nextCursor": ".."}` as structured content.
///
/// A client sends `nextCursor` back as the argument of type [`Cursor`](super::Cursor), with the other arguments
/// unchanged.
///
/// ```
/// use mcp_runtime::{prelude::*, testing::TestServer, tool::{Cursor, Page}};
/// use serde_json::json;
///
/// /// Lists numbers.
/// #[mcp_tool(read_only)]
/// fn count(to: u32, cursor: Option<Cursor>) -> Result<Page<u32>, ToolError> {
///     let start: u32 = cursor.map(|cursor| cursor.position()).transpose()?.unwrap_or(1);
///     let page = Page::new((start..=to).take(100).collect());
///     let next = start + 100;
///     Ok(if next <= to { page.next(&next) } else { page })
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> mcp_runtime::Result<()> {
/// let server = TestServer::new(mcp_runtime::server!().tool::<count>())?;
/// let first = server.call("count", json!({ "to": 150 })).await;
/// let cursor = &first.value()["structuredContent"]["nextCursor"];
/// let second = server.call("count", json!({ "to": 150, "cursor": cursor })).await;
/// assert_eq!(second.value()["structuredContent"]["items"][0], 101);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Page<T> {
    items: Vec<T>,
    /// JSON text of the position at which the next page begins.
    next: Option<Result<String, serde_json::Error>>,
    /// Where it begins, of a page that a client has got.
    #[cfg(feature = "client")]
    cursor: Option<Cursor>,
}

impl<T> Page<T> {
    /// The last page, unless [`next`](Self::next) is called.
    pub fn new(items: Vec<T>) -> Self {
        Self {
            items,
            next: None,
            #[cfg(feature = "client")]
            cursor: None,
        }
    }

    /// The page that a client has got.
    #[cfg(feature = "client")]
    pub(crate) fn received(items: Vec<T>, cursor: Option<Cursor>) -> Self {
        Self { items, next: None, cursor }
    }

    /// Says where the next page begins: whatever the function needs to continue, such as the id of the last entry. The
    /// client gets it sealed.
    #[must_use]
    pub fn next<P: Serialize + ?Sized>(mut self, position: &P) -> Self {
        self.next = Some(serde_json::to_string(position));
        self
    }

    /// The entries.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The entries, and nothing else.
    #[must_use]
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// The argument for the next page, of a page that a [typed call](crate::client::Client::typed) has returned; `None` on
    /// the last page.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn next_cursor(&self) -> Option<Cursor> {
        self.cursor.clone()
    }
}

/// The form on the wire.
#[derive(Serialize)]
struct PageContent<'a, T> {
    items: &'a [T],
}

/// The schema of a page of `T`.
struct PageSchema<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> JsonSchema for PageSchema<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Page_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({
            "type": "object",
            "properties": {
                "items": { "type": "array", "items": items },
                "nextCursor": {
                    "type": "string",
                    "description": "Where the next page begins; absent on the last page"
                }
            },
            "required": ["items"]
        })
    }
}

impl<T: Structured> IntoToolResult for Page<T> {
    const IS_PAGE: bool = true;

    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        let next = self.next.transpose().map_err(ToolError::private)?;
        let result = structured_result(&PageContent { items: &self.items })?;
        Ok(ToolResult { next_page: next.map(Into::into), ..result })
    }

    fn output_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(PageSchema::<T>::json_schema(generator))
    }
}

impl ToolResult {
    /// Adds the sealed cursor of the next page to the structured content of a page, and to the text that repeats it.
    pub(crate) fn add_cursor(&mut self, sealed: &str) {
        let Some(json) = &mut self.structured else { return };
        let repeats = self.content.first().is_some_and(|block| block.as_text() == Some(json));
        if json.pop() == Some('}') {
            // sealed texts are base64url
            json.push_str(",\"nextCursor\":\"");
            json.push_str(sealed);
            json.push_str("\"}");
        }
        if repeats && let Some(first) = self.content.first_mut() {
            *first = json.clone().into();
        }
    }
}
