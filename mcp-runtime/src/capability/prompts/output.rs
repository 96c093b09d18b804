//! The return types of prompts, and their conversion into a `GetPromptResult`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::core::{
    content::{Audio, Content, ContentWriter, Embedded, Image, Message, ResourceLink, Text, impl_meta},
    error::ToolError,
    item_output::{IntoOutput, impl_into_output},
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
}

impl PromptResult {
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
}

impl_meta!("result", PromptResult);

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
}

impl_into_output!(
    PromptResult, None, |content| PromptResult::new([Message::user(content)]),
    Content Text Image Audio ResourceLink Embedded String &'static str Cow<'static, str>
);
impl_into_output!(PromptResult, None, |message| PromptResult::new([message]), Message);
impl_into_output!(PromptResult, None, |result| result, PromptResult);

#[diagnostic::do_not_recommend]
impl<T: Into<Message>> IntoOutput<PromptResult> for Vec<T> {
    fn into_output(self) -> Result<PromptResult, ToolError> {
        Ok(PromptResult::new(self.into_iter().map(T::into)))
    }
}

macro_rules! impl_for_tuples {
    ($(($($t:ident)*))*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($t: Into<Message>),*> IntoOutput<PromptResult> for ($($t,)*) {
            #[allow(non_snake_case)]
            fn into_output(self) -> Result<PromptResult, ToolError> {
                let ($($t,)*) = self;
                Ok(PromptResult::new([$($t.into()),*]))
            }
        }
    )*};
}
impl_for_tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));
