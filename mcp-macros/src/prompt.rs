//! `#[mcp_prompt]`, which has no options but those that every kind of item takes.
//!
//! Called through `kind`.

use proc_macro2::TokenStream;

use crate::attr::Entry;
use crate::errors::Errors;
use crate::item::Function;
use crate::kind::{Kind, Place};
use crate::params::Param;

/// A prompt, which adds nothing to the common options.
#[derive(Default)]
pub(crate) struct Prompt;

impl Kind for Prompt {
    const PLACE: Place = Place::Prompt;

    fn option(&mut self, _: &Entry, _: &Errors) -> bool {
        false
    }

    fn check(&mut self, _: &Function, _: &[Param], _: &Errors) {}

    fn calls(&self) -> TokenStream {
        TokenStream::new()
    }
}
