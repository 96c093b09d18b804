//! A prompt has no options but those that all kinds of item have.

use crate::diagnostics::Errors;
use crate::model::item::{CommonOptions, ItemOptions};
use crate::model::kind::Kind;
use crate::model::params::Param;
use crate::options::entry::Entry;
use crate::syntax::function::Function;

#[derive(Default)]
pub(crate) struct PromptOptions;

impl ItemOptions for PromptOptions {
    const KIND: Kind = Kind::Prompt;

    fn read_option(&mut self, _: &Entry, _: &Errors) -> bool {
        false
    }

    fn check(&self, _: &CommonOptions, _: &Function, _: &[Param], _: &Errors) {}
}
