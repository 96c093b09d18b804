//! Decodes an object like the arguments of a call: each member by its descriptor, with its rules, and with every mistake at
//! once. Settings are such objects.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::{
    arg::AnyArg,
    call::{Call, CallParts, HandlerResult, Input, MaybeFuture, RawArgument, RawArguments},
    explain::{Problem, decode_errors},
    tool_input::ToolInput,
};
use crate::{core::context::Context, schema::ValidationError};

/// Converts an object with a handler; `None` if the handler refuses a member. A `flatten` argument takes the members that
/// no other descriptor names.
pub(crate) fn decode_object<R: 'static>(
    handler: fn(&Call<'_>) -> HandlerResult<R>,
    args: &[&'static dyn AnyArg],
    members: &Map<String, Value>,
) -> Option<R> {
    let texts = ObjectTexts::new(args, members);
    let parts = CallParts {
        input: Input::Json(&texts.rest),
        args,
        rules: &[],
        strict: false,
        tool: None,
        validator: None,
        this: None,
        context: &Context::for_test,
    };
    let context = OnceCell::new();
    let values = texts.values();
    let call = Call { parts: &parts, context: &context, arguments: texts.arguments(&values) };
    match handler(&call) {
        Ok(MaybeFuture::Ready(value)) => Some(value),
        _ => None,
    }
}

/// The errors of the members of a refused object, in addition to the `violations` of its schema: one for each mistake.
pub(crate) fn object_errors(
    args: &[&'static dyn AnyArg],
    schema: &Value,
    members: &Map<String, Value>,
    violations: &[ValidationError],
) -> Vec<Problem> {
    let texts = ObjectTexts::new(args, members);
    let values = texts.values();
    let input = ToolInput::of_object(schema);
    let whole = Value::Object(members.clone()).to_string();
    decode_errors(&input, args, &texts.arguments(&values), &whole, violations)
}

/// The members of an object as JSON text.
struct ObjectTexts {
    /// One for each descriptor.
    members: Vec<Option<String>>,
    /// An object with the members that no descriptor names.
    rest: String,
}

impl ObjectTexts {
    fn new(args: &[&'static dyn AnyArg], members: &Map<String, Value>) -> Self {
        let named = |name: &str| args.iter().any(|arg| !arg.is_flatten() && arg.name() == name);
        let text = |arg: &&'static dyn AnyArg| {
            members.get(arg.name()).filter(|_| !arg.is_flatten()).map(ToString::to_string)
        };
        let mut rest = members.clone();
        rest.retain(|name, _| !named(name));
        Self { members: args.iter().map(text).collect(), rest: Value::Object(rest).to_string() }
    }

    fn values(&self) -> Vec<Option<RawArgument<'_>>> {
        self.members.iter().map(|text| text.as_deref().map(RawArgument::Json)).collect()
    }

    fn arguments<'a>(&'a self, values: &'a [Option<RawArgument<'a>>]) -> RawArguments<'a> {
        RawArguments { values, object: &self.rest, strict: false }
    }
}
