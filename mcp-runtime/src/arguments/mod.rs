//! From what a client sent to the parameters of a user's function: arguments and their rules, injected values, and
//! the report of everything that is invalid.

use std::{future::Future, pin::Pin};

mod arg;
pub(crate) mod attribute_fn;
mod call;
mod completion;
mod inject;
mod outcome;
mod raw;
mod report;
mod rules;
mod text;

pub use arg::{AnyArg, ArgDef, HeaderArg, flatten, json, text};
pub(crate) use arg::{choices, has_flatten};
pub use call::Call;
pub(crate) use call::CallParts;
pub(crate) use completion::{CompleteFn, choices_with_prefix};
pub use completion::{Completion, complete};
pub use inject::{FromContext, Inject, Maker, Probe, ProbeDyn, maker};
pub(crate) use outcome::MaybeFuture;
pub use outcome::{Outcome, blocking, blocking_task, done, pending};
pub(crate) use raw::{Input, TextArgument};
pub use raw::{Rejected, Slots};
pub(crate) use report::{ToolInput, normalize_integers, repair_untyped};
pub use rules::{Pattern, Rules};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
