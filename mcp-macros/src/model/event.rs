//! The options of an event. Its function takes what has happened, and decides what a subscription gets of it.

use proc_macro2::Span;
use syn::{GenericArgument, Path, PathArguments, ReturnType, Type};

use crate::diagnostics::Errors;
use crate::model::item::{CommonOptions, ItemOptions};
use crate::model::kind::Kind;
use crate::model::params::{Param, Source};
use crate::options::entry::Entry;
use crate::options::known;
use crate::syntax::function::Function;
use crate::syntax::types::{peel, type_to_string};

#[derive(Default)]
pub(crate) struct EventOptions {
    /// Ways of delivery from [`known::DELIVERY`]; empty for all.
    pub(crate) deliver: Vec<&'static str>,
    /// Called before the first subscription with the same arguments.
    subscribed: Option<Path>,
    /// Called after the last one.
    unsubscribed: Option<Path>,
}

impl ItemOptions for EventOptions {
    const KIND: Kind = Kind::Event;

    fn read_option(&mut self, entry: &Entry, errors: &Errors) -> bool {
        match entry.name.as_str() {
            "deliver" => self.deliver = entry.words(known::DELIVERY, errors),
            "subscribed" => self.subscribed = entry.path(errors),
            "unsubscribed" => self.unsubscribed = entry.path(errors),
            _ => return false,
        }
        true
    }

    fn hooks(&self) -> Vec<(&'static str, &Path)> {
        let hooks = [("subscribed", &self.subscribed), ("unsubscribed", &self.unsubscribed)];
        hooks.into_iter().filter_map(|(option, path)| Some((option, path.as_ref()?))).collect()
    }

    fn check(&self, _: &CommonOptions, function: &Function, params: &[Param], errors: &Errors) {
        let payloads: Vec<Span> = params
            .iter()
            .filter_map(|param| match param.source {
                Source::Payload(span) => Some(span),
                _ => None,
            })
            .collect();
        let positions: Vec<Span> = params
            .iter()
            .filter_map(|param| match param.source {
                Source::Position(span) => Some(span),
                _ => None,
            })
            .collect();
        for span in payloads.iter().skip(1) {
            errors.at_span(*span, "an event has one payload\nput the values into one struct");
        }
        for span in positions.iter().skip(1) {
            errors.at_span(*span, "an event has one position\nremove one of them");
        }
        // a parameter that is reported is not in `params`
        let all_are_valid =
            params.len() == function.sig.inputs.len() - usize::from(function.sig.receiver().is_some());
        match (payloads.first(), positions.first()) {
            (Some(_), Some(position)) => errors.at_span(
                *position,
                "an event with a payload is emitted, and has no position\n\
                 remove `position`, or the payload: a function without one returns an `EventStream<T>`",
            ),
            (None, Some(_)) if all_are_valid && is_decision(&function.sig.output) => errors.at(
                &function.sig.ident,
                "an event with a position opens a stream\nreturn `EventStream<T>`, or a `Result` of it",
            ),
            (None, None) if all_are_valid && is_decision(&function.sig.output) => {
                let state = params.iter().find(|param| matches!(param.source, Source::Reference { .. }));
                let ty = state.map_or_else(|| "Incident".to_owned(), |param| type_to_string(&param.ty));
                errors.at(
                    &function.sig.ident,
                    format_args!(
                        "an event needs a payload: what has happened\nmark the parameter: `#[mcp(payload)] event: &{ty}`"
                    ),
                );
            }
            _ => {}
        }
    }
}

/// Whether a return type decides about an event that was emitted, so that it cannot be a stream. The names decide about the
/// wording only: the type has to implement the trait of streams anyway.
fn is_decision(output: &ReturnType) -> bool {
    fn decides(ty: &Type) -> bool {
        match peel(ty) {
            Type::Tuple(unit) => unit.elems.is_empty(),
            Type::Path(path) => path.path.segments.last().is_some_and(|last| {
                let ok = match &last.arguments {
                    PathArguments::AngleBracketed(arguments) => arguments.args.first(),
                    _ => None,
                };
                match (last.ident.to_string().as_str(), ok) {
                    ("bool", None) | ("Option", Some(_)) => true,
                    ("Result", Some(GenericArgument::Type(ok))) => decides(ok),
                    _ => false,
                }
            }),
            _ => false,
        }
    }
    match output {
        ReturnType::Default => true,
        ReturnType::Type(_, ty) => decides(ty),
    }
}
