//! The descriptor that `#[mcp_prompt]` expands to.

use crate::{
    arguments::{Call, Outcome},
    error::Failure,
    item::{Handler, ItemDescriptor, Location, descriptor_setters},
    prompt::{AnyPromptOut, PromptResult},
};

/// One annotated prompt.
#[derive(Clone, Copy)]
pub struct PromptDef {
    pub(crate) item: ItemDescriptor,
    pub(crate) handler: Handler<PromptResult>,
}

fn missing_handler(_: &mut Call<'_>) -> Outcome<PromptResult> {
    Err(Failure::Body("the prompt has no handler".into()))
}

impl PromptDef {
    /// A prompt with this name, at this location.
    #[must_use]
    pub const fn new(name: &'static str, at: Location) -> Self {
        Self { item: ItemDescriptor::new(name, at), handler: missing_handler }
    }

    /// Checks its return type; the handler converts it.
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
descriptor_setters!(PromptDef);
