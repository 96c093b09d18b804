//! Bounds what it takes to decode JSON in the arguments of prompts and the variables of URIs.

use std::{borrow::Cow, sync::OnceLock};

use serde_json::{Map, Value, json};

use super::{
    arg::AnyArg,
    call::TextArgument,
    tool_input::{MAX_ALTERNATIVES, TOO_MANY_ATTEMPTS},
};
use crate::{
    core::error::Failure,
    schema::{Attempts, Validator, generator, hoist_defs},
};

/// The maximum cost of decoding the arguments of one function.
#[derive(Debug, Default)]
pub(crate) struct TextLimit {
    /// The alternatives of its parameters, if they contain each other; found when the first JSON arrives.
    attempts: OnceLock<Option<Attempts>>,
}

impl TextLimit {
    /// Checks that it does not take too much to decode these arguments of the parameters.
    ///
    /// # Errors
    /// The report.
    pub(crate) fn check(
        &self,
        parameters: &[&'static dyn AnyArg],
        values: &[(Cow<'_, str>, TextArgument<'_>)],
    ) -> Result<(), Failure> {
        for (name, value) in values {
            let exceeds = |text: &str| {
                text.trim_start().starts_with(['[', '{'])
                    && self
                        .attempts
                        .get_or_init(|| attempts_of(parameters))
                        .as_ref()
                        .is_some_and(|found| found.exceed_in(name, text, MAX_ALTERNATIVES))
            };
            let any_exceeds = match value {
                TextArgument::One(text) => exceeds(text),
                TextArgument::Listed(text, _) => exceeds(text),
                TextArgument::Many(texts) | TextArgument::Repeated(texts) => {
                    texts.iter().any(|text| exceeds(text))
                }
            };
            if any_exceeds {
                return Err(Failure::Arguments(format!("`{name}`: {TOO_MANY_ATTEMPTS}")));
            }
        }
        Ok(())
    }
}

fn attempts_of(parameters: &[&'static dyn AnyArg]) -> Option<Attempts> {
    let mut generator = generator();
    let schema =
        |arg: &&'static dyn AnyArg| (arg.name().to_owned(), arg.property_schema(&mut generator).to_value());
    let properties: Map<String, Value> = parameters.iter().map(schema).collect();
    let mut root = json!({ "type": "object", "properties": properties });
    hoist_defs(&mut root, generator.take_definitions(true));
    // a schema that cannot be compiled is one of a type that parses itself
    Validator::compile_generated(&root).ok()?.attempts()
}
