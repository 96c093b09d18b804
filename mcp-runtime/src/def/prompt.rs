//! Descriptors of prompts.

use super::{Common, Handler, Location, common_setters};
use crate::{
    content::PromptResult,
    extract::{Call, Outcome},
    reply::{Failure, IntoPromptResult},
};

/// One annotated prompt.
#[derive(Clone, Copy)]
pub struct PromptDef {
    pub(crate) common: Common,
    pub(crate) handler: Handler<PromptResult>,
}

fn unset(_: &mut Call<'_>) -> Outcome<PromptResult> {
    Err(Failure::Body("the prompt has no handler".into()))
}

impl PromptDef {
    /// A prompt of that name, at that place.
    #[must_use]
    pub const fn new(name: &'static str, at: Location) -> Self {
        Self { common: Common::new(name, at), handler: unset }
    }

    /// Binds its return type; the conversion itself is in the handler.
    #[must_use]
    pub const fn output(self, _: &'static dyn AnyPromptOut) -> Self {
        self
    }

    /// Sets the function.
    #[must_use]
    pub const fn handler(mut self, handler: Handler<PromptResult>) -> Self {
        self.handler = handler;
        self
    }
}
common_setters!(PromptDef);

/// How a return type `R` becomes a prompt's messages.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct PromptOut<R: 'static> {
    convert: fn(R) -> Result<PromptResult, Failure>,
}

impl<R: 'static> PromptOut<R> {
    /// Converts what the function returned.
    ///
    /// # Errors
    /// The function failed.
    pub fn reply(&self, value: R) -> Result<PromptResult, Failure> {
        (self.convert)(value)
    }
}

/// The conversion of `R`; a function, so that a type which fits nowhere is underlined as a whole.
#[must_use]
pub const fn prompt_out<R: IntoPromptResult>() -> PromptOut<R> {
    PromptOut { convert: R::into_prompt_result }
}

/// A [`PromptOut`] without its type.
pub trait AnyPromptOut: Sync {}

impl<R> AnyPromptOut for PromptOut<R> {}
