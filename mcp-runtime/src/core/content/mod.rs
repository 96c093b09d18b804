//! Content of results: blocks, prompt messages and resource contents, written for the client's revision.

mod block;
mod bytes;
pub(crate) mod icon;
pub(crate) mod json;
#[cfg(feature = "client")]
mod parse;
mod prompt_message;
mod resource_contents;
#[cfg(feature = "client")]
mod wire;

pub use crate::core::item_output::IntoOutput;
pub use block::{Annotations, Audio, Content, Embedded, Image, ResourceLink, Role, Text};
pub(crate) use block::{ContentWriter, meta_setter};
pub use bytes::Bytes;
pub use icon::{Icon, Theme};
pub(crate) use json::Json;
#[cfg(feature = "client")]
pub(crate) use parse::{parse_content, parse_message};
pub use prompt_message::Message;
pub use resource_contents::ResourceContents;
pub(crate) use resource_contents::{ResourceDefaults, is_media_type};
#[cfg(feature = "client")]
pub(crate) use wire::{WireMembers, WireRest, parse_exact, parse_message_exactly, wire_error};
