//! What getting a prompt gives.

use serde_json::{Map, Value};

use super::{Content, IntoContent, Role};

/// One message of a prompt.
///
/// See [prompt messages](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#promptmessage).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said, one block.
    pub content: Content,
}

impl Message {
    /// A message of the user: a text, or any block.
    pub fn user(content: impl IntoContent) -> Self {
        Self { role: Role::User, content: content.into_content() }
    }

    /// A message of the assistant: a text, or any block.
    pub fn assistant(content: impl IntoContent) -> Self {
        Self { role: Role::Assistant, content: content.into_content() }
    }
}

/// The whole answer to `prompts/get`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptResult {
    /// The wire's `description`; without it, the prompt's own.
    pub description: Option<String>,
    /// The wire's `messages`, in order.
    pub messages: Vec<Message>,
    pub(crate) meta: Option<Box<Map<String, Value>>>,
}

impl PromptResult {
    /// An answer of these messages.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }

    /// Sets the wire's `description`.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds a member to the result's `_meta`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }
}
