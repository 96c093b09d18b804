//! From what a client sent to the parameters of a user's function: arguments and their rules, injected values, and
//! the report of everything that is invalid.

use std::{future::Future, pin::Pin};

mod arg;
pub(crate) mod attribute_fn;
mod call;
mod claims;
mod completion;
mod duration;
mod explain;
mod given;
mod inject;
#[cfg(feature = "config")]
mod object;
mod report;
mod rule_fn;
mod rules;
mod text;
mod text_limit;
mod tool_input;

pub use arg::{
    AnyArg, AnyTextValue, ArgDescriptor, DeclaredResult, HeaderArg, TextValue, argument, flatten, injected,
    nullable, object, provided, shared,
};
pub(crate) use arg::{declaration_errors, has_flatten, is_always_object, schema_of};
pub use call::{Call, HandlerResult, blocking, invalid_argument, pending, ready};
pub(crate) use call::{
    CallParts, Input, MaybeFuture, TextArgument, call_handler, parse_text_argument, poll_now,
};
pub use claims::Claims;
pub(crate) use completion::{ArgumentCompletion, CompletionSource, DynComplete, choices_with_prefix};
pub use completion::{Completion, complete, complete_blocking};
pub use duration::{AnyAsText, AsText, DurationText};
pub(crate) use duration::{PATTERN as DURATION_PATTERN, duration_text, read_duration};
pub(crate) use explain::decode_member;
#[cfg(feature = "config")]
pub(crate) use explain::{Problem, ProblemKind, is_within};
pub(crate) use given::{ArgumentChange, GivenArguments, text_of as text_of_value};
pub(crate) use inject::StateValue;
pub use inject::{FromContext, FromContextFn, Inject, Opens, Probe, ProbeDyn, from_context_fn};
#[cfg(feature = "config")]
pub(crate) use object::{decode_object, object_errors};
pub(crate) use rule_fn::BoundRule;
pub use rule_fn::{ArgumentRule, ItemRules, RuleDescriptor, RuleParam, RuleValues, rule_result, rule_value};
pub(crate) use rules::{Length, OneOf, Patterned, Ranged, Within};
pub use rules::{NoBound, Pattern, Rules};
pub(crate) use text_limit::TextLimit;
pub(crate) use tool_input::{MAX_VALUES, ToolInput, has_too_many_values};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
