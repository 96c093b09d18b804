//! What describes a tool: the descriptor that an attribute expands to, and the form that builders share with it.

use std::{fmt, time::Duration};

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use crate::{
    arguments::{Call, Outcome},
    error::Failure,
    item::{BuildError, Handler, ItemDescriptor, ItemSpec, Location, descriptor_setters},
    tool::{AnyToolOut, Structured, ToolResult},
};

/// Hints on a tool's behaviour: the wire's `annotations`; `None` leaves a hint out.
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

/// One annotated tool.
#[derive(Clone, Copy)]
pub struct ToolDef {
    pub(crate) item: ItemDescriptor,
    pub(crate) hints: Hints,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_concurrency: Option<usize>,
    pub(crate) tags: &'static [&'static str],
    pub(crate) strict: bool,
    /// The URI of the page that shows its results.
    pub(crate) ui: Option<&'static str>,
    /// Who may call it: `model`, `app` or both; empty for the default.
    pub(crate) visibility: &'static [&'static str],
    pub(crate) task: Option<TaskMode>,
    pub(crate) out: Option<&'static dyn AnyToolOut>,
    pub(crate) output_type: Option<OutputType>,
    pub(crate) handler: Handler<ToolResult>,
}

fn missing_handler(_: &mut Call<'_>) -> Outcome<ToolResult> {
    Err(Failure::Body("the tool has no handler".into()))
}

impl ToolDef {
    /// A tool with this name, at this location.
    #[must_use]
    pub const fn new(name: &'static str, at: Location) -> Self {
        Self {
            item: ItemDescriptor::new(name, at),
            hints: Hints { read_only: None, destructive: None, idempotent: None, open_world: None },
            timeout: None,
            max_concurrency: None,
            tags: &[],
            strict: false,
            ui: None,
            visibility: &[],
            task: None,
            out: None,
            output_type: None,
            handler: missing_handler,
        }
    }

    /// Sets `readOnlyHint`.
    #[must_use]
    pub const fn read_only(mut self, hint: bool) -> Self {
        self.hints.read_only = Some(hint);
        self
    }

    /// Sets `destructiveHint`.
    #[must_use]
    pub const fn destructive(mut self, hint: bool) -> Self {
        self.hints.destructive = Some(hint);
        self
    }

    /// Sets `idempotentHint`.
    #[must_use]
    pub const fn idempotent(mut self, hint: bool) -> Self {
        self.hints.idempotent = Some(hint);
        self
    }

    /// Sets `openWorldHint`.
    #[must_use]
    pub const fn open_world(mut self, hint: bool) -> Self {
        self.hints.open_world = Some(hint);
        self
    }

    /// Sets how long a call may take, in milliseconds.
    #[must_use]
    pub const fn timeout_ms(mut self, ms: u64) -> Self {
        self.timeout = Some(Duration::from_millis(ms));
        self
    }

    /// Sets how many calls may run at once.
    #[must_use]
    pub const fn max_concurrency(mut self, calls: usize) -> Self {
        self.max_concurrency = Some(calls);
        self
    }

    /// Sets the tags.
    #[must_use]
    pub const fn tags(mut self, tags: &'static [&'static str]) -> Self {
        self.tags = tags;
        self
    }

    /// Refuses unknown arguments, and strings for other types instead of coercing them.
    #[must_use]
    pub const fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Sets the URI of the page that shows its results.
    #[must_use]
    pub const fn ui(mut self, uri: &'static str) -> Self {
        self.ui = Some(uri);
        self
    }

    /// Sets who may call it: `model`, `app` or both.
    #[must_use]
    pub const fn visibility(mut self, callers: &'static [&'static str]) -> Self {
        self.visibility = callers;
        self
    }

    /// Sets how its calls become tasks.
    #[must_use]
    pub const fn task(mut self, mode: TaskMode) -> Self {
        self.task = Some(mode);
        self
    }

    /// Sets how its return type becomes a result.
    #[must_use]
    pub const fn output(mut self, out: &'static dyn AnyToolOut) -> Self {
        self.out = Some(out);
        self
    }

    /// Sets the type of its `structuredContent`.
    #[must_use]
    pub const fn output_type(mut self, output: OutputType) -> Self {
        self.output_type = Some(output);
        self
    }

    /// Sets the function.
    #[must_use]
    pub const fn handler(mut self, handler: Handler<ToolResult>) -> Self {
        self.handler = handler;
        self
    }
}
descriptor_setters!(ToolDef);

/// A tool without its function, whether an attribute or a builder describes it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolSpec {
    pub(crate) item: ItemSpec,
    /// The wire's `inputSchema`; an annotated tool's comes from its parameters.
    pub(crate) input_schema: Option<Value>,
    /// The wire's `outputSchema`; an annotated tool's comes from its return type.
    pub(crate) output_schema: Option<Value>,
    pub(crate) hints: Hints,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_concurrency: Option<usize>,
    pub(crate) strict: bool,
    /// The URI of the page that shows its results, without the prefix of a mount.
    pub(crate) ui: Option<String>,
    /// Who may call it: `model`, `app` or both; empty for the default.
    pub(crate) visibility: &'static [&'static str],
    pub(crate) tags: &'static [&'static str],
    pub(crate) task: Option<TaskMode>,
}

impl ToolSpec {
    pub(crate) fn new(name: String, def: &ToolDef) -> Self {
        Self {
            item: ItemSpec::new(name, &def.item),
            input_schema: None,
            output_schema: None,
            hints: def.hints,
            timeout: def.timeout,
            max_concurrency: def.max_concurrency,
            strict: def.strict,
            ui: def.ui.map(str::to_owned),
            visibility: def.visibility,
            tags: def.tags,
            task: def.task,
        }
    }

    /// An error in this tool, at its location.
    pub(crate) fn build_error(&self, text: impl fmt::Display) -> BuildError {
        self.item.build_error(format_args!("tool `{}`: {text}", self.item.name))
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
        Self { schema: |generator| generator.subschema_for::<T>() }
    }
}
