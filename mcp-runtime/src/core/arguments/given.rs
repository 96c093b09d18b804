//! Arguments that a function gets from its server: fixed ones, whatever the client sends, and defaults of an instance.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, value::RawValue, value::to_raw_value};

use super::{ToolInput, call::TextArgument};
use crate::schema::{duplicate_keys, has_duplicate_keys};

/// A change of an argument of one item.
#[derive(Debug, Clone)]
pub(crate) enum ArgumentChange {
    Describe(String),
    Default(Value),
    Fix(Value),
    Hide,
}

/// The arguments that a function gets in place of those that clients send.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenArguments {
    /// The arguments that clients do not see, with their value if they have one.
    pub(crate) hidden: Vec<(String, Option<Value>)>,
    /// The values that are added where they are absent.
    pub(crate) defaults: Vec<(String, Value)>,
}

impl GivenArguments {
    pub(crate) fn is_empty(&self) -> bool {
        self.hidden.is_empty() && self.defaults.is_empty()
    }

    /// The arguments of a tool as its function gets them.
    ///
    /// # Errors
    /// They cannot be read, or a strict tool is sent one that is hidden.
    pub(crate) fn apply(&self, input: &ToolInput, text: &str, strict: bool) -> Result<String, String> {
        let unreadable = |error: &dyn std::fmt::Display| {
            format!("invalid arguments for {} `{}`: {error}", input.noun, input.name)
        };
        // in one order, whatever the client's was: equal calls are equal texts
        let mut members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if has_duplicate_keys(text)
            && let Some(duplicate) = duplicate_keys(text).first()
        {
            return Err(unreadable(duplicate));
        }
        let raw = |value: &Value| to_raw_value(value).map_err(|error| unreadable(&error));
        for (name, value) in &self.hidden {
            if members.remove(name).is_some() && strict {
                return Err(unreadable(&format!("unknown argument `{name}`")));
            }
            if let Some(value) = value {
                members.insert(name.clone(), raw(value)?);
            }
        }
        for (name, value) in &self.defaults {
            if members.get(name).is_none_or(|sent| sent.get() == "null") {
                members.insert(name.clone(), raw(value)?);
            }
        }
        serde_json::to_string(&members).map_err(|error| unreadable(&error))
    }

    /// The arguments of a prompt, or the variables of a URI, as its function gets them.
    pub(crate) fn apply_to_texts(&self, values: &mut Vec<(Cow<'_, str>, TextArgument<'_>)>) {
        let given =
            |name: &str, value: &Value| (name.to_owned().into(), TextArgument::One(text_of(value).into()));
        for (name, value) in &self.hidden {
            values.retain(|(sent, _)| sent != name);
            values.extend(value.as_ref().map(|value| given(name, value)));
        }
        for (name, value) in &self.defaults {
            if values.iter().all(|(sent, _)| sent != name) {
                values.push(given(name, value));
            }
        }
    }
}

/// A value as the text of a prompt's argument, or of a variable of a URI.
pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
