//! The messages of prompts.

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
