//! Content of results: blocks, prompt messages and resource contents, written for the client's revision.

mod annotations;
mod block;
mod data;
pub(crate) mod icon;
mod into_content;
mod json;
mod prompt_message;
mod resource_contents;
mod writer;

pub(crate) use annotations::impl_annotation_setters;
pub use annotations::{Annotations, Role};
pub use block::{Audio, Content, Embedded, Image, ResourceLink, Text};
pub use icon::{Icon, Theme};
pub use into_content::IntoContent;
pub use json::Json;
pub use prompt_message::Message;
pub(crate) use resource_contents::ResourceDefaults;
pub use resource_contents::{Bytes, ResourceContents};
pub(crate) use writer::ContentWriter;
