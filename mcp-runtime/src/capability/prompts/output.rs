//! The return types of prompts, and their conversion into a `GetPromptResult`.

use std::borrow::Cow;

#[cfg(feature = "client")]
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[cfg(feature = "client")]
use crate::core::content::{WireMembers, WireRest, parse_message_exactly, wire_error};
use crate::core::{
    content::{ContentWriter, Message, meta_setter},
    error::ToolError,
    item_output::{IntoOutput, ListOutput},
    jsonrpc::{Object, write_array},
    protocol::Revision,
};

/// The complete result of `prompts/get`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct PromptResult {
    /// `description` on the wire; without it, the prompt's own.
    pub description: Option<String>,
    /// `messages` on the wire, in order.
    pub messages: Vec<Message>,
    /// `_meta` on the wire.
    pub meta: Option<Box<Map<String, Value>>>,
    /// Members that another server has sent besides.
    #[cfg(feature = "client")]
    pub(crate) rest: WireRest,
}

impl PromptResult {
    /// Reads the result of `prompts/get` as another server has sent it, as
    /// [`ToolResult::from_wire`](crate::ToolResult::from_wire) reads that of a tool.
    ///
    /// # Errors
    /// A member is not what the protocol requires.
    #[cfg(feature = "client")]
    pub fn from_wire(json: &RawValue) -> serde_json::Result<Self> {
        let mut members = WireMembers::read(json)?;
        let messages: Vec<Value> = members.take("messages")?.unwrap_or_default();
        let parse = |message: Value| {
            parse_message_exactly(message).ok_or_else(|| wire_error("a message has no role or content"))
        };
        Ok(Self {
            description: members.take("description")?,
            messages: messages.into_iter().map(parse).collect::<Result<_, _>>()?,
            meta: members.take("_meta")?,
            rest: members.into_rest(),
        })
    }

    /// A result with these messages.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }

    /// Sets `description` on the wire.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    meta_setter!("result");
}

/// Writes the members of a prompt's result.
pub(crate) fn write_prompt_result(
    object: &mut Object<'_>,
    result: &PromptResult,
    revision: Revision,
    description: Option<&str>,
) {
    let writer = ContentWriter(revision);
    object.opt_str("description", result.description.as_deref().or(description));
    write_array(object.key("messages"), &result.messages, |out, message| writer.write_message(out, message));
    #[cfg(feature = "client")]
    result.rest.write(object);
}

impl ListOutput for PromptResult {
    type Part = Message;

    fn of_parts(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }
}

#[diagnostic::do_not_recommend]
impl IntoOutput<Self> for PromptResult {
    fn into_output(self) -> Result<Self, ToolError> {
        Ok(self)
    }
}

// unlike the other results, a prompt's is text only where the function returns text
macro_rules! impl_for_texts {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl IntoOutput<PromptResult> for $t {
            fn into_output(self) -> Result<PromptResult, ToolError> {
                Ok(PromptResult::new([Message::user(self)]))
            }
        }
    )*};
}
impl_for_texts!(String &'static str Cow<'static, str>);
