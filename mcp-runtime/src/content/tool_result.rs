//! What calling a tool gives.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Content;

/// The whole answer to `tools/call`, for tools that decide every part of it.
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
    /// A result of these blocks.
    pub fn new(content: impl IntoIterator<Item = Content>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// A result of one text block.
    pub fn text(text: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// A failed result that shows `text` to the model.
    pub fn error(text: impl Into<std::borrow::Cow<'static, str>>) -> Self {
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

    /// Marks the call as failed: the wire's `isError`.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Adds a member to the result's `_meta`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// The blocks.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// Whether it is a failure.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error
    }
}
