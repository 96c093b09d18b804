//! What a prompt may return.

use std::borrow::Cow;

use super::{Failure, IntoFailure};
use crate::content::{Audio, Content, Embedded, Image, Message, PromptResult, ResourceLink, Text};

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
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    label = "no prompt messages can be made of this",
    note = "return text, `Message`, `Vec<Message>`, content blocks, `PromptResult`, or a `Result` of these"
)]
pub trait IntoPromptResult {
    /// The messages.
    ///
    /// # Errors
    /// The function failed.
    fn into_prompt_result(self) -> Result<PromptResult, Failure>;
}

macro_rules! messages {
    ($($t:ty => $message:expr;)*) => {$(
        impl IntoMessage for $t {
            fn into_message(self) -> Message {
                let message: fn(Self) -> Message = $message;
                message(self)
            }
        }
        impl IntoPromptResult for $t {
            fn into_prompt_result(self) -> Result<PromptResult, Failure> {
                Ok(PromptResult::new([self.into_message()]))
            }
        }
    )*};
}
messages! {
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
    fn into_prompt_result(self) -> Result<PromptResult, Failure> {
        Ok(self)
    }
}

impl<T: IntoMessage> IntoPromptResult for Vec<T> {
    fn into_prompt_result(self) -> Result<PromptResult, Failure> {
        Ok(PromptResult::new(self.into_iter().map(T::into_message)))
    }
}

impl<T: IntoPromptResult, E: IntoFailure> IntoPromptResult for Result<T, E> {
    fn into_prompt_result(self) -> Result<PromptResult, Failure> {
        self.map_err(E::into_failure)?.into_prompt_result()
    }
}

macro_rules! tuples {
    ($(($($t:ident)*))*) => {$(
        impl<$($t: IntoMessage),*> IntoPromptResult for ($($t,)*) {
            #[allow(non_snake_case)]
            fn into_prompt_result(self) -> Result<PromptResult, Failure> {
                let ($($t,)*) = self;
                Ok(PromptResult::new([$($t.into_message()),*]))
            }
        }
    )*};
}
tuples!((A)(A B)(A B C)(A B C D)(A B C D E)(A B C D E F));
