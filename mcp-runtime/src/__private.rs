//! Everything that generated code names, and nothing else. Not part of the public interface: it changes with the
//! macros, which are pinned to this exact version.

pub use core::{
    clone::Clone, column, concat, convert::Into, default::Default, file, line, module_path, ops::Bound,
    option::Option, result::Result,
};

pub use std::borrow::Cow;

pub use inventory;
pub use schemars;
pub use serde;

pub use crate::{
    content::{Theme, icon},
    context::ClientFeature,
    def::{
        Linked, Location, OutputType, Prompt, PromptDef, Resource, ResourceDef, Service, TaskMode, Tool,
        ToolDef,
    },
    extract::{
        AnyArg, ArgDef, Call, HeaderArg, Inject, Maker, Outcome, Pattern, Probe, ProbeDyn, Rejected, Rules,
        Slots, blocking, blocking_task, complete, done, flatten, json, list, maker, pending, subscribe, text,
    },
    reply::{
        AnyPromptOut, AnyResourceOut, AnyToolOut, Failure, PromptOut, PromptResult, ResourceOut,
        ResourceResult, ToolOut, ToolResult, prompt_out, resource_out, tool_out,
    },
};

/// Goes on as a task from here, if the call may.
pub async fn start_task(context: &crate::Context) {
    context.start_task().await;
}

/// Runs an async `main`.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(future),
        // nothing runs without a runtime, and `main` has no error type that is known here
        Err(e) => panic!("the async runtime cannot be started: {e}"),
    }
}
