//! What results are made of: content blocks, prompt messages, resource contents, and the three results themselves.
//! User functions return them; dispatch writes them, lowered to what the client's revision knows.

mod block;
mod icon;
mod into;
mod message;
mod resource;
mod tool_result;
mod write;

pub(crate) use block::annotated;
pub use block::{Annotations, Audio, Content, Embedded, Image, ResourceLink, Role, Text};
pub use icon::{Icon, Theme, icon};
pub use into::IntoContent;
pub use message::{Message, PromptResult};
pub use resource::{Bytes, ResourceContents, ResourceResult};
pub use tool_result::ToolResult;
pub(crate) use write::{ResourceDefaults, Writer, prompt_result, resource_result, tool_result};
