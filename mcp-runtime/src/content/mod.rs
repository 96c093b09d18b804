//! What results are made of: content blocks, prompt messages and resource contents.
//! User functions return them; dispatch writes them, lowered to what the client's revision knows.

mod block;
mod icon;
mod into;
mod json;
mod message;
mod resource;

pub use block::{Annotations, Audio, Content, Embedded, Image, ResourceLink, Role, Text};
pub(crate) use block::{Writer, annotated};
pub use icon::{Icon, Theme, icon};
pub use into::IntoContent;
pub use json::Json;
pub use message::Message;
pub(crate) use resource::ResourceDefaults;
pub use resource::{Bytes, ResourceContents};
