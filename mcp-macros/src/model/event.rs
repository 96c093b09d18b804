//! The options of an event. Its function takes what has happened, and decides what a subscription gets of it.

use proc_macro2::Span;

use crate::diagnostics::Errors;
use crate::model::item::{CommonOptions, ItemOptions};
use crate::model::kind::Kind;
use crate::model::params::{Param, Source};
use crate::options::entry::Entry;
use crate::options::known;
use crate::syntax::function::Function;
use crate::syntax::types::type_to_string;

#[derive(Default)]
pub(crate) struct EventOptions {
    /// Ways of delivery from [`known::DELIVERY`]; empty for all.
    pub(crate) deliver: Vec<&'static str>,
}

impl ItemOptions for EventOptions {
    const KIND: Kind = Kind::Event;

    fn read_option(&mut self, entry: &Entry, errors: &Errors) -> bool {
        match entry.name.as_str() {
            "deliver" => self.deliver = entry.words(known::DELIVERY, errors),
            _ => return false,
        }
        true
    }

    fn check(&self, _: &CommonOptions, function: &Function, params: &[Param], errors: &Errors) {
        let payloads: Vec<Span> = params
            .iter()
            .filter_map(|param| match param.source {
                Source::Payload(span) => Some(span),
                _ => None,
            })
            .collect();
        for span in payloads.iter().skip(1) {
            errors.at_span(*span, "an event has one payload\nput the values into one struct");
        }
        // a parameter that is reported is not in `params`
        let all_are_valid =
            params.len() == function.sig.inputs.len() - usize::from(function.sig.receiver().is_some());
        if payloads.is_empty() && all_are_valid {
            let state = params.iter().find(|param| matches!(param.source, Source::Reference { .. }));
            let ty = state.map_or_else(|| "Incident".to_owned(), |param| type_to_string(&param.ty));
            errors.at(
                &function.sig.ident,
                format_args!(
                    "an event needs a payload: what has happened\nmark the parameter: `#[mcp(payload)] event: &{ty}`"
                ),
            );
        }
    }
}
