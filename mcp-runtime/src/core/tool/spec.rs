//! Descriptions of tools: the descriptor that an attribute expands to, and the form that builders share with it.

use std::{fmt, time::Duration};

use super::{ForwardFn, schema::HandWrittenSchema};
use crate::{
    core::{
        build_error::BuildError,
        item::{ItemDescriptor, ItemSpec},
        item_function::{Handler, missing_handler},
        item_output::{Output, OutputSchemaFn},
        tool::{Structured, ToolResult},
    },
    schema::link_patterns,
};
use schemars::{Schema, SchemaGenerator};

/// Hints on a tool's behaviour: `annotations` on the wire; `None` leaves a hint out.
///
/// See [tool annotations](https://modelcontextprotocol.io/specification/2026-07-28/schema#toolannotations).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hints {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
}

/// How the calls of a tool become tasks, for clients that declare `io.modelcontextprotocol/tasks`.
///
/// For all other clients such a tool runs within its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskMode {
    /// Every call becomes a task before its function begins.
    Capable,
    /// As `Capable`, and clients of 2026-07-28 that do not declare the extension are refused.
    Required,
    /// The function decides, with [`Context::start_task`](crate::Context::start_task).
    Manual,
}

/// How calls of a tool become tasks.
#[derive(Debug, Clone, Copy)]
pub struct ToolTask {
    /// When they do.
    pub mode: TaskMode,
    /// Whether another replica runs the function again if the one that runs it has stopped.
    pub restarts: bool,
}

/// One annotated tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolDescriptor {
    /// The part that all kinds of items have.
    pub item: ItemDescriptor,
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
    /// Milliseconds that a call may take.
    pub timeout_ms: Option<u64>,
    /// How many calls may run at once.
    pub max_concurrency: Option<usize>,
    /// Sent in `_meta`.
    pub tags: &'static [&'static str],
    /// Whether unknown arguments and strings for other types are refused.
    pub strict: bool,
    /// The URI of the page that shows its results.
    pub ui: Option<&'static str>,
    /// The callers that may use it: `model`, `app` or both; empty for the default.
    pub visibility: &'static [&'static str],
    /// How calls become tasks.
    pub task: Option<ToolTask>,
    /// Writes the schema of the return type.
    pub output: Option<OutputSchemaFn>,
    /// The type of `structuredContent`.
    pub output_type: Option<OutputType>,
    /// Decodes the arguments and calls the function.
    pub handler: Handler,
}

impl ToolDescriptor {
    /// Every field that an attribute may leave out; on its own, the descriptor of an item with errors.
    pub const EMPTY: Self = Self {
        item: ItemDescriptor::EMPTY,
        read_only: None,
        destructive: None,
        idempotent: None,
        open_world: None,
        timeout_ms: None,
        max_concurrency: None,
        tags: &[],
        strict: false,
        ui: None,
        visibility: &[],
        task: None,
        output: None,
        output_type: None,
        handler: missing_handler,
    };

    /// The options that an attribute may leave out, for a function with this result.
    #[must_use]
    pub const fn returning<R>(output: &Output<R, ToolResult>) -> Self {
        Self { output: Some(output.schema), ..Self::EMPTY }
    }
}

/// A tool without its function, whether an attribute or a builder describes it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolSpec {
    pub(crate) item: ItemSpec,
    /// The noun for it in messages, if the function is not that of a tool.
    pub(crate) noun: Option<&'static str>,
    /// `inputSchema` on the wire; an annotated tool's comes from its parameters.
    pub(super) input_schema: Option<HandWrittenSchema>,
    /// The arguments of a trusted schema in which `null` is not the absence of an optional member; `None` for all of them.
    pub(super) kept_nulls: Option<Vec<String>>,
    /// `outputSchema` on the wire; an annotated tool's comes from its return type.
    pub(super) output_schema: Option<HandWrittenSchema>,
    /// What to do about results that do not fit, if another program makes them.
    pub(crate) remedy: Option<&'static str>,
    pub(crate) hints: Hints,
    pub(crate) max_concurrency: Option<usize>,
    /// Passes its calls on.
    pub(super) forward: Option<ForwardFn>,
    pub(crate) strict: bool,
    /// The URI of the page that shows its results, without the prefix of a mount.
    pub(crate) ui: Option<String>,
    /// The callers that may use it: `model`, `app` or both; empty for the default.
    pub(crate) visibility: &'static [&'static str],
    pub(crate) tags: &'static [&'static str],
    #[cfg(feature = "tasks")]
    pub(crate) task: Option<TaskMode>,
    /// Whether another replica runs the function of a task again.
    #[cfg(feature = "tasks")]
    pub(crate) restarts_task: bool,
}

impl ToolSpec {
    pub(crate) fn new(name: String, def: &ToolDescriptor) -> Self {
        Self {
            item: ItemSpec {
                timeout: def.timeout_ms.map(Duration::from_millis),
                ..ItemSpec::new(name, &def.item)
            },
            noun: None,
            input_schema: None,
            kept_nulls: None,
            output_schema: None,
            remedy: None,
            hints: Hints {
                read_only: def.read_only,
                destructive: def.destructive,
                idempotent: def.idempotent,
                open_world: def.open_world,
            },
            max_concurrency: def.max_concurrency,
            forward: None,
            strict: def.strict,
            ui: def.ui.map(str::to_owned),
            visibility: def.visibility,
            tags: def.tags,
            #[cfg(feature = "tasks")]
            task: def.task.map(|task| task.mode),
            #[cfg(feature = "tasks")]
            restarts_task: def.task.is_some_and(|task| task.restarts),
        }
    }

    /// An error in this tool, at its location.
    pub(crate) fn build_error(&self, text: impl fmt::Display) -> BuildError {
        self.item.build_error(format_args!("{} `{}`: {text}", self.noun(), self.item.name))
    }

    /// The noun for it in messages.
    pub(crate) fn noun(&self) -> &'static str {
        self.noun.unwrap_or("tool")
    }
}

/// Return types that do not determine the type of their structured content.
#[diagnostic::on_unimplemented(
    message = "`output` does not apply to a tool that returns `{Self}`",
    label = "not a `ToolResult`",
    note = "return `ToolResult`, or remove `output`: `Json<T>` publishes the schema of `T` automatically"
)]
pub trait Untyped {}
impl Untyped for ToolResult {}
#[diagnostic::do_not_recommend]
impl<T: Untyped, E> Untyped for Result<T, E> {}

/// A type named by `output = Type`.
#[derive(Debug, Clone, Copy)]
pub struct OutputType {
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

impl OutputType {
    /// The schema of `T`, for a function that returns `R`.
    #[must_use]
    pub const fn of<T: Structured, R: Untyped>() -> Self {
        Self {
            schema: |generator| {
                link_patterns();
                generator.subschema_for::<T>()
            },
        }
    }
}
