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

pub use arg::{AnyArg, ArgDescriptor, HeaderArg, flatten, json, text};
pub(crate) use arg::{choices, has_flatten};
pub use call::Call;
pub(crate) use call::CallParts;
pub(crate) use completion::{CompleteFn, choices_with_prefix};
pub use completion::{Completion, complete};
pub use inject::{FromContext, FromContextFn, Inject, Probe, ProbeDyn, from_context_fn};
pub(crate) use outcome::MaybeFuture;
pub use outcome::{HandlerResult, blocking, blocking_task, pending, ready};
pub(crate) use raw::{Input, TextArgument};
pub use raw::{InvalidArgument, RawArguments};
pub(crate) use report::{ToolInput, normalize_integers, repair_untyped};
pub use rules::{Pattern, Rules};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
