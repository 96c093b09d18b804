//! One call of a user's function, as generated code sees it: the context, the service instance and the typed arguments.

use std::{any::Any, sync::Arc};

use super::{
    arg::{AnyArg, has_flatten},
    raw::{Input, InvalidArgument, RawArgument, RawArguments, fill_slots, object_keys},
    report::{self, ToolInput},
};
use crate::{
    context::Context,
    error::{Failure, ToolError},
    schema::Validator,
};

/// What a [`Call`] is made of.
#[allow(missing_debug_implementations)] // borrows trait objects
pub(crate) struct CallParts<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) args: &'a [&'static dyn AnyArg],
    pub(crate) strict: bool,
    /// Input schema and name of a tool, for repairs and reports.
    pub(crate) tool: Option<&'a ToolInput>,
    /// Checks the keywords that decoding does not enforce.
    pub(crate) validator: Option<&'a Validator>,
    pub(crate) this: Option<&'a Arc<dyn Any + Send + Sync>>,
    pub(crate) context: &'a dyn Fn() -> Context,
}

/// One call, as generated code sees it.
#[allow(missing_debug_implementations)] // borrows trait objects
pub struct Call<'a> {
    parts: CallParts<'a>,
    context: Option<Context>,
}

/// Up to this many arguments need no allocation.
const INLINE: usize = 12;

impl<'a> Call<'a> {
    pub(crate) fn new(parts: CallParts<'a>) -> Self {
        Self { parts, context: None }
    }

    /// The request's context, made on first use.
    pub fn context(&mut self) -> Context {
        self.context.get_or_insert_with(self.parts.context).clone()
    }

    /// The context, if the function has used it.
    pub(crate) fn existing_context(&self) -> Option<Context> {
        self.context.clone()
    }

    /// The instance that a method is called on.
    ///
    /// # Errors
    /// The item was registered without its instance.
    pub fn this<T: Any + Send + Sync>(&self) -> Result<Arc<T>, Failure> {
        let this = self.parts.this.cloned().and_then(|this| this.downcast::<T>().ok());
        this.ok_or_else(|| Failure::Body(ToolError::private("the service instance is missing")))
    }

    /// The typed arguments: `read` takes each from its slot, and runs again after a repair.
    ///
    /// # Errors
    /// One report of every argument that is invalid.
    pub fn decode<R>(
        &self,
        read: impl Fn(&RawArguments<'_>) -> Result<R, InvalidArgument>,
    ) -> Result<R, Failure> {
        let mut result = None;
        self.read_slots(&mut |slots| {
            let decoded = read(slots);
            let accepted = decoded.is_ok();
            result = decoded.ok();
            accepted
        })?;
        result.ok_or_else(invalid_arguments)
    }

    /// The part of [`decode`](Self::decode) that is not generic, so that it is compiled once.
    fn read_slots(&self, read: &mut dyn FnMut(&RawArguments<'_>) -> bool) -> Result<(), Failure> {
        let parts = &self.parts;
        let mut inline: [Option<RawArgument<'_>>; INLINE] = [None; INLINE];
        let mut spilled = Vec::new();
        let values: &mut [Option<RawArgument<'_>>] = if parts.args.len() <= INLINE {
            &mut inline[..parts.args.len()]
        } else {
            spilled.resize(parts.args.len(), None);
            &mut spilled
        };
        match parts.input {
            Input::Json(text) => {
                let unknown = match self.fill(text, values) {
                    Ok(unknown) => unknown && !has_flatten(parts.args),
                    // a key that is not valid text
                    Err(_) => return self.repair_and_read(text, read),
                };
                let accepted = !(unknown && parts.strict)
                    && read(&RawArguments { values, object: text, strict: parts.strict })
                    && self.validates(text);
                if accepted { Ok(()) } else { self.repair_and_read(text, read) }
            }
            Input::Text(arguments) => {
                for (arg, value) in parts.args.iter().zip(values.iter_mut()) {
                    *value = arguments
                        .iter()
                        .find(|(name, _)| name == arg.name())
                        .map(|(_, value)| RawArgument::from_text_argument(value));
                }
                let slots = RawArguments { values, object: "{}", strict: parts.strict };
                if read(&slots) {
                    Ok(())
                } else {
                    Err(Failure::Arguments(report::text_report(parts.args, &slots)))
                }
            }
        }
    }

    fn fill<'t>(
        &self,
        text: &'t str,
        values: &mut [Option<RawArgument<'t>>],
    ) -> Result<bool, serde_json::Error> {
        let args = if has_flatten(self.parts.args) { &[] } else { self.parts.args };
        fill_slots(text, |key| args.iter().position(|arg| arg.name() == key), values)
    }

    fn validates(&self, text: &str) -> bool {
        self.parts.validator.is_none_or(|validator| validator.validate_str(text).is_ok())
    }

    /// Repairs harmless mistakes and reads again, or reports everything that is invalid.
    #[cold]
    fn repair_and_read(
        &self,
        text: &str,
        read: &mut dyn FnMut(&RawArguments<'_>) -> bool,
    ) -> Result<(), Failure> {
        let parts = &self.parts;
        let Some(tool) = parts.tool else {
            return Err(invalid_arguments());
        };
        let (repaired, violations, unreadable) = match report::repair(tool, text, parts.strict) {
            Ok((repaired, violations)) => (repaired, violations, None),
            Err(error) => (text.to_owned(), Vec::new(), Some(error)),
        };
        let mut values = vec![None; parts.args.len()];
        let filled = self.fill(&repaired, &mut values).is_ok();
        let slots = RawArguments { values: &values, object: &repaired, strict: parts.strict };
        let unknown: Vec<_> = if has_flatten(parts.args) {
            Vec::new()
        } else {
            let known = |key: &str| parts.args.iter().any(|arg| arg.name() == key);
            object_keys(text).into_iter().filter(|key| !known(key)).collect()
        };
        let has_refused_names = parts.strict && !unknown.is_empty();
        if filled && unreadable.is_none() && violations.is_empty() && !has_refused_names && read(&slots) {
            return Ok(());
        }
        let decode_errors =
            if filled { report::decode_errors(parts.args, &slots, &violations) } else { Vec::new() };
        let mut errors: Vec<String> =
            violations.iter().map(ToString::to_string).chain(decode_errors).collect();
        if let Some(error) = unreadable.filter(|_| errors.is_empty()) {
            errors.push(report::unreadable_message(&error));
        }
        Err(Failure::Arguments(report::tool_report(tool, parts.args, &errors, &unknown)))
    }
}

/// The failure of a call for which no report can be written.
fn invalid_arguments() -> Failure {
    Failure::Arguments("invalid arguments".into())
}
