//! Sampling: the client's model continues a conversation.
//!
//! See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).

mod create_message;
mod messages;
mod sample;
mod sampled;

pub use create_message::{SampleContext, ToolChoice};
pub use sample::Sample;
pub use sampled::{Sampled, SampledBlock, ToolUse};
