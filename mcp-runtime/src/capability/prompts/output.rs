//! The return types of prompts, and their conversion into a `GetPromptResult`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::core::{
    arguments::{HandlerResult, poll_now},
    content::{Audio, Content, ContentWriter, Embedded, Image, Message, ResourceLink, Text, impl_meta},
    error::{Failure, IntoFailure, ToolError},
    item_output::ItemOutput,
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
    pub(crate) meta: Option<Box<Map<String, Value>>>,
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

impl_meta!("result", PromptResult, meta);

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

/// Types that are one message: a [`Message`], or a block or text of the user.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt message",
    label = "not a message",
    note = "messages are `Message`, text and content blocks"
)]
pub trait IntoMessage {
    /// The message.
    fn into_message(self) -> Message;
}

/// Types that a prompt may return.
///
/// Implement it for a type of your own that several prompts return, alone or in a `Result`.
///
/// ```
/// use mcp_runtime::{content::Message, prelude::*, prompt::{IntoPromptResult, PromptResult}};
///
/// struct Dialogue(Vec<(&'static str, &'static str)>);
///
/// impl IntoPromptResult for Dialogue {
///     fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
///         let messages = self.0.into_iter().flat_map(|(a, b)| [Message::user(a), Message::assistant(b)]);
///         Ok(PromptResult::new(messages))
///     }
/// }
///
/// /// Shows how to ask.
/// #[mcp_prompt]
/// fn example() -> Dialogue {
///     Dialogue(vec![("What is 2 + 2?", "4")])
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    label = "cannot be converted into prompt messages",
    note = "return text, `Message`, `Vec<Message>`, content blocks, `PromptResult`, or a `Result` of these",
    note = "for your own type: `impl IntoPromptResult for {Self}`"
)]
pub trait IntoPromptResult {
    /// The messages.
    ///
    /// # Errors
    /// Why the prompt fails instead.
    fn into_prompt_result(self) -> Result<PromptResult, ToolError>;
}

macro_rules! impl_for_messages {
    ($($t:ty => $message:expr;)*) => {$(
        impl IntoMessage for $t {
            fn into_message(self) -> Message {
                let message: fn(Self) -> Message = $message;
                message(self)
            }
        }
        impl IntoPromptResult for $t {
            fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
                Ok(PromptResult::new([self.into_message()]))
            }
        }
    )*};
}
impl_for_messages! {
    Message => |m| m;
    String => Message::user;
    &'static str => Message::user;
    Cow<'static, str> => Message::user;
    Content => Message::user;
    Text => Message::user;
    Image => Message::user;
    Audio => Message::user;
    ResourceLink => Message::user;
    Embedded => Message::user;
}

impl IntoPromptResult for PromptResult {
    fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
        Ok(self)
    }
}

impl<T: IntoMessage> IntoPromptResult for Vec<T> {
    fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
        Ok(PromptResult::new(self.into_iter().map(T::into_message)))
    }
}

impl<T: IntoPromptResult, E: IntoFailure> IntoPromptResult for Result<T, E> {
    fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
        self.map_err(E::into_failure)?.into_prompt_result()
    }
}

macro_rules! impl_for_tuples {
    ($(($($t:ident)*))*) => {$(
        impl<$($t: IntoMessage),*> IntoPromptResult for ($($t,)*) {
            #[allow(non_snake_case)]
            fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
                let ($($t,)*) = self;
                Ok(PromptResult::new([$($t.into_message()),*]))
            }
        }
    )*};
}
impl_for_tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));

/// How a return type `R` becomes a prompt's messages.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct PromptOutput<R: 'static> {
    convert: fn(R) -> Result<PromptResult, ToolError>,
}

impl<R: 'static> PromptOutput<R> {
    /// Converts what the function returned.
    ///
    /// # Errors
    /// The function failed.
    pub fn reply(&self, value: R) -> Result<ItemOutput, Failure> {
        Ok(ItemOutput::Prompt((self.convert)(value)?))
    }

    /// The outcome of an async function.
    ///
    /// # Errors
    /// Never fails; the type is that of handlers.
    pub fn pending(&self, future: Box<dyn Future<Output = R> + Send>) -> HandlerResult<ItemOutput> {
        poll_now(future, self.convert)
    }
}

/// The conversion of `R`. A function, so that rustc underlines the whole type if it does not implement the trait.
#[must_use]
pub const fn prompt_output<R: IntoPromptResult>() -> PromptOutput<R> {
    PromptOutput { convert: R::into_prompt_result }
}
