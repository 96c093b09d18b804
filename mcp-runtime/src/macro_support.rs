//! Everything that generated code names, and nothing else. Not part of the public API: it changes with the macros, which
//! are pinned to this exact version.

pub use core::{
    clone::Clone, column, concat, convert::Into, default::Default, file, line, module_path, ops::Bound,
    option::Option, result::Result,
};

pub use std::borrow::Cow;

pub use inventory;
pub use schemars;
pub use serde;

pub use crate::{
    arguments::{
        AnyArg, ArgDef, Call, HeaderArg, Inject, Maker, Outcome, Pattern, Probe, ProbeDyn, Rejected, Rules,
        Slots, blocking, blocking_task, complete, done, flatten, json, maker, pending, text,
    },
    content::{Theme, icon},
    context::ClientFeature,
    error::Failure,
    item::Location,
    prompt::{AnyPromptOut, Prompt, PromptDef, PromptOut, PromptResult, prompt_out},
    resource::{
        AnyResourceOut, Resource, ResourceDef, ResourceOut, ResourceResult, list, resource_out, subscribe,
    },
    server::{Linked, Service},
    tool::{AnyToolOut, OutputType, TaskMode, Tool, ToolDef, ToolOut, ToolResult, tool_out},
};

/// Turns the call into a task, if it may become one.
pub async fn start_task(context: &crate::Context) {
    context.start_task().await;
}

/// Runs an async `main`.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(future),
        // `main` may have any error type, and nothing runs without a runtime
        Err(e) => panic!("the async runtime cannot be started: {e}"),
    }
}
