//! Sampling: the client's model continues a conversation.
//!
//! See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).

mod message;
mod request;
mod sampled;
#[cfg(test)]
mod tests;

pub use message::{SamplingBlock, SamplingMessage, ToolUse};
pub use request::{CreateMessage, ModelHint, ModelPreferences, SampleContext, SamplingTool, ToolChoice};
pub use sampled::Sampled;
