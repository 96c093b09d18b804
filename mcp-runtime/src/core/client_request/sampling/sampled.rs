//! The answer of a client's model: `CreateMessageResult` on the wire.

use serde::Deserialize;

use super::message::{SamplingBlock, SamplingMessage, ToolUse, deserialize_blocks};
use crate::core::content::Role;

/// The answer of a client's model: `CreateMessageResult` on the wire.
///
/// See [result fields](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#result-fields).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Sampled {
    /// `role` on the wire; usually the assistant.
    pub role: Role,
    /// `content` on the wire.
    #[serde(deserialize_with = "deserialize_blocks")]
    pub content: Vec<SamplingBlock>,
    /// `model` on the wire: the name of the model.
    pub model: String,
    /// `stopReason` on the wire, where the client knows it: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or
    /// another.
    pub stop_reason: Option<String>,
}

impl Sampled {
    /// All of its text, concatenated.
    #[must_use]
    pub fn text(&self) -> String {
        let text = |block: &'_ SamplingBlock| match block {
            SamplingBlock::Text { text } => Some(text.clone()),
            _ => None,
        };
        self.content.iter().filter_map(text).collect()
    }

    /// The tools that the model requests, in order; none when it is done.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.content.iter().filter_map(|block| match block {
            SamplingBlock::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    /// Decodes a client's result.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub(super) fn decode(result: &str) -> Result<Self, String> {
        serde_json::from_str(result).map_err(|error| error.to_string())
    }
}

/// The answer as a message of the next request.
impl From<Sampled> for SamplingMessage {
    fn from(answer: Sampled) -> Self {
        Self { role: answer.role, content: answer.content }
    }
}
