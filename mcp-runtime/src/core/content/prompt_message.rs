//! Prompt messages.

use super::{Content, Role};

/// One message of a prompt.
///
/// See [prompt messages](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#promptmessage).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// The content, one block.
    pub content: Content,
}

impl Message {
    /// A message from the user: text, or any other block.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// A message from the assistant: text, or any other block.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// A message from the user.
impl<T: Into<Content>> From<T> for Message {
    fn from(content: T) -> Self {
        Self::user(content)
    }
}
