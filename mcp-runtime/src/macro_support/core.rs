//! What generated code names of `core`.

pub use crate::core::{
    arguments::{
        AnyArg, AnyAsText, AnyTextValue, ArgDescriptor, ArgumentRule, AsText, Call, DeclaredResult,
        DurationText, FromContextFn, HandlerResult, HeaderArg, Inject, ItemRules, NoBound, Opens, Pattern,
        Probe, ProbeDyn, RuleDescriptor, RuleParam, RuleValues, Rules, TextValue, argument, blocking,
        complete, complete_blocking, flatten, from_context_fn, injected, invalid_argument, nullable, object,
        pending, provided, ready, rule_result, rule_value, shared,
    },
    blocking::run_blocking as on_thread,
    client_request::ClientFeature,
    content::{Theme, icon::icon},
    error::{ErrorVisibility, Failure, NotAnError, PublicError, RegisteredError},
    item::{ItemDescriptor, Location, Signature, Typed, item, item_at},
    item_output::{Output, output},
    server::{AnnotatedItem, ServiceBlock},
    tool::{
        Tool,
        output::ToolResult,
        spec::{OutputType, TaskMode, ToolDescriptor, ToolTask},
    },
};
