//! From what a client sent to the parameters of a user's function: arguments, their rules, what is injected, and
//! the report of everything that does not fit. Generated code names these types through `__private`.

mod call;
mod complete;
mod inject;
mod listed;
mod named;
mod report;
mod rules;
mod subscribe;
mod text;

pub use call::{
    AnyArg, ArgDef, Call, HeaderArg, Outcome, Rejected, Slots, blocking, blocking_task, done, flatten, json,
    pending, text,
};
pub(crate) use call::{BoxFuture, CallParts, Flow, Input, Variable};
pub(crate) use complete::{CompleteFn, ListFn, prefixed};
pub use complete::{Completion, complete, list};
pub use inject::{FromContext, Inject, Maker, Probe, ProbeDyn, maker};
pub use listed::ListedResource;
pub(crate) use report::{ToolInput, repaired as argument_report, whole as whole_numbers};
pub use rules::{Pattern, Rules};
pub(crate) use subscribe::SubscribeFn;
pub use subscribe::{Subscription, subscribe};
