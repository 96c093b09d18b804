//! From what a client sent to the parameters of a user's function: arguments, their rules, what is injected, and
//! the report of everything that does not fit. Generated code names these types through `__private`.

mod call;
mod completion;
mod inject;
pub(crate) mod named;
mod report;
mod rules;
mod text;

pub use call::{
    AnyArg, ArgDef, Call, HeaderArg, Outcome, Rejected, Slots, blocking, blocking_task, done, flatten, json,
    pending, text,
};
pub(crate) use call::{BoxFuture, CallParts, Flow, Input, Variable};
pub(crate) use completion::{CompleteFn, choices, choices_with_prefix};
pub use completion::{Completion, complete};
pub use inject::{FromContext, Inject, Maker, Probe, ProbeDyn, maker};
pub(crate) use report::{ToolInput, repaired as argument_report, whole as whole_numbers};
pub use rules::{Pattern, Rules};
