//! Descriptors of prompts.

use crate::item::{Common, Handler, Location, common_setters};
use crate::{
    arguments::{Call, Outcome},
    error::Failure,
    prompt::{AnyPromptOut, PromptResult},
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
