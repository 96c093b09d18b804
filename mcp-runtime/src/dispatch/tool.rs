//! `tools/call`.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    MayAsk, Refusal, Request, Status,
    reply::{Frame, framed, shown},
    round::Subject,
    run::{Begun, Contained, Drive, Going, Running, drive, enter, future_of},
    task::{knows_tasks, lacks_tasks},
};
use crate::{
    content::{Content, ToolResult, tool_result},
    context::Context,
    def::{RuntimeTool, TaskMode, ToolCall},
    extract::{CallParts, Flow, Input, Outcome, argument_report, whole_numbers},
    jsonrpc::{ProtocolError, error_reply, text_of},
    registry::{ToolBody, ToolEntry},
    reply::{Failure, ToolError},
    server::Server,
};

impl Server {
    pub(super) fn call_tool(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let name = request.params.name.ok_or_else(|| invalid("`name` is missing"))?;
        let name = text_of(name).ok_or_else(|| invalid("`name` is not a string"))?;
        let arguments = match request.params.arguments.map(|raw| raw.get()) {
            None | Some("null") => "{}",
            Some(object) if object.starts_with('{') => object,
            Some(_) => return Err(invalid("`arguments` is not an object").into()),
        };
        let registry = self.registry();
        let found = registry.tool(&name).filter(|tool| request.viewer().sees(&tool.scopes()));
        let Some(entry) = found.cloned() else {
            let near = registry.nearest_tool(&name, request.viewer());
            return Err(invalid(&unknown("tool", &name, near)).into());
        };
        let subject = Subject::new("tools/call", &name, arguments);
        if let Err(refusal) = request.check_features(entry.requires()) {
            if request.revision.is_modern() {
                return Err(refusal);
            }
            // models of the handshake era see results, not errors
            let result = ToolResult::error(refusal.error.message);
            framed(out, request.frame(), self, None, |object| {
                tool_result(object, &result, request.revision, false);
            });
            return Ok(Begun::Done(Status::Ok));
        }
        let task = may_be_task(&entry, &request)?;
        // a task that starts by itself waits for its turn there, with its client already answered
        let (here, there) = match task {
            Some(TaskMode::Capable | TaskMode::Required) => (None, entry.limit.clone()),
            Some(TaskMode::Manual) | None => (entry.limit.clone(), None),
        };
        let round = self.resume(&request, &subject)?;
        let context = || {
            let context = request.context(self, &entry.state, MayAsk::Yes(round.clone()));
            if task.is_some() {
                context.may_start_task(there.clone());
            }
            context
        };
        let Some(limit) = here else {
            return Ok(self.enter_tool(&entry, request, subject, &context, None, out));
        };
        match limit.clone().try_acquire_owned() {
            Ok(permit) => Ok(self.enter_tool(&entry, request, subject, &context, Some(permit), out)),
            Err(_) => Ok(self.queue_tool(&entry, request, subject, context(), limit)),
        }
    }

    fn enter_tool(
        &self,
        entry: &Arc<ToolEntry>,
        request: Request<'_>,
        subject: Subject<'_>,
        context: &dyn Fn() -> Context,
        permit: Option<OwnedSemaphorePermit>,
        out: &mut Vec<u8>,
    ) -> Begun {
        let frame = request.frame();
        let make = Some(context);
        let (outcome, context) = run(entry, &subject.arguments, request.is_watched(self), context);
        let entry = entry.clone();
        let going = Drive { server: self, frame, context, make, limit: time_limit(&entry), subject };
        let revision = frame.revision;
        drive(outcome, going, out, move |server, result, id, out| {
            drop(permit);
            server.finish_tool(&entry, Frame { id, revision }, result, out)
        })
    }

    /// Waits for its turn; a waiter that is dropped frees its place.
    fn queue_tool(
        &self,
        entry: &Arc<ToolEntry>,
        request: Request<'_>,
        subject: Subject<'_>,
        context: Context,
        limit: Arc<Semaphore>,
    ) -> Begun {
        let watched = request.is_watched(self);
        let cancel = context.inner().cancel.clone();
        let (server, id, revision) = (self.clone(), request.id.into(), request.revision);
        let (entry, subject) = (entry.clone(), subject.into_owned());
        let turn = async move {
            let permit = limit.acquire_owned().await;
            let (outcome, _) = run(&entry, &subject.arguments, watched, &|| context.clone());
            let (future, limit) = (future_of(outcome), time_limit(&entry));
            let finish = move |server: &Self, result, id: &str, out: &mut Vec<u8>| {
                drop(permit);
                server.finish_tool(&entry, Frame { id, revision }, result, out)
            };
            let future = Contained::new(future, Some(context.clone()));
            let context = Some(context);
            Going { server, id, revision, context, subject, limit, future, finish }.end().await
        };
        Begun::Running(Running::new(request.id, turn, cancel))
    }

    fn finish_tool(
        &self,
        entry: &ToolEntry,
        frame: Frame<'_>,
        result: Result<ToolResult, Failure>,
        out: &mut Vec<u8>,
    ) -> Status {
        let name = &entry.input.name;
        let result = result.and_then(|result| conforming(entry, result));
        let failed = |text: String, more: Vec<Content>| {
            let mut result = ToolResult::error(text);
            result.content.extend(more);
            result
        };
        let result = match result {
            Ok(result) => result,
            Err(Failure::Arguments(report)) => failed(report, Vec::new()),
            // a round has ended before this, and a task begun
            Err(Failure::NotFound | Failure::Unanswered | Failure::Task) => {
                failed(format!("tool '{name}' found nothing"), Vec::new())
            }
            Err(Failure::Protocol(error)) => {
                error_reply(out, Some(frame.id), &error);
                return Status::Ok;
            }
            Err(Failure::Body(error)) => match shown(self, "tool", name, error) {
                Ok((text, more)) => failed(text, more),
                Err(error) => {
                    error_reply(out, Some(frame.id), &error);
                    return Status::Ok;
                }
            },
        };
        let wrap = entry.output.as_ref().is_some_and(|output| output.wrap);
        let meta = result.meta.as_deref();
        framed(out, frame, self, meta, |object| tool_result(object, &result, frame.revision, wrap));
        Status::Ok
    }
}

/// How a call may go on as a task, if it may.
///
/// # Errors
/// The tool is nothing but a task, and the client knows none.
fn may_be_task(entry: &ToolEntry, request: &Request<'_>) -> Result<Option<TaskMode>, Refusal> {
    match entry.task().filter(|_| request.revision.is_modern()) {
        Some(mode) if knows_tasks(&request.params.meta) => Ok(Some(mode)),
        Some(TaskMode::Required) => Err(lacks_tasks()),
        _ => Ok(None),
    }
}

fn invalid(text: &str) -> ProtocolError {
    ProtocolError::invalid_params(text)
}

pub(super) fn unknown(kind: &str, name: &str, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("unknown {kind} `{name}`; did you mean `{near}`?"),
        None => format!("unknown {kind} `{name}`"),
    }
}

fn time_limit(entry: &ToolEntry) -> Option<(std::time::Duration, String)> {
    entry.timeout.map(|limit| (limit, format!("tool '{}'", entry.input.name)))
}

/// Enters the tool's function.
fn run(
    entry: &ToolEntry,
    arguments: &str,
    watched: bool,
    context: &dyn Fn() -> Context,
) -> (Outcome<ToolResult>, Option<Context>) {
    match &entry.body {
        ToolBody::Annotated { def, this } => {
            let parts = CallParts {
                input: Input::Json(arguments),
                args: def.common.args,
                strict: def.strict,
                tool: Some(&entry.input),
                validator: entry.nested.as_ref(),
                this: this.as_ref(),
                context,
            };
            enter(def.handler, parts, watched)
        }
        ToolBody::Runtime(tool) => {
            let context = context();
            (run_time(entry, tool, arguments, &context), Some(context))
        }
    }
}

/// A tool made at run time gets its arguments as a value that fits its schema.
fn run_time(entry: &ToolEntry, tool: &RuntimeTool, text: &str, context: &Context) -> Outcome<ToolResult> {
    let mut arguments: Value = serde_json::from_str(text)
        .map_err(|e| Failure::Arguments(format!("invalid arguments for tool `{}`: {e}", entry.input.name)))?;
    let fits = entry.nested.as_ref().is_none_or(|validator| validator.validate(&arguments).is_empty());
    if fits {
        whole_numbers(&entry.input, &mut arguments);
    } else {
        arguments = argument_report(&entry.input, text, entry.strict())?;
    }
    let call = ToolCall { arguments, context: context.clone() };
    let body = (tool.handler)(call);
    Ok(Flow::Pending(match tool.spec.task {
        None | Some(TaskMode::Manual) => body,
        Some(TaskMode::Capable | TaskMode::Required) => {
            let context = context.clone();
            Box::pin(async move {
                context.start_task().await;
                body.await
            })
        }
    }))
}

/// A structured result that does not fit the published schema is a private error, in every build.
fn conforming(entry: &ToolEntry, result: ToolResult) -> Result<ToolResult, Failure> {
    let Some(output) = entry.output.as_ref().filter(|_| !result.is_error) else { return Ok(result) };
    let wrong = match result.structured.as_deref() {
        None => "it has no structured content, but an output schema".to_owned(),
        Some(json) => match output.validator.validate_str(json) {
            Ok(()) => return Ok(result),
            Err(violations) => violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        },
    };
    Err(Failure::Body(ToolError::private(format!("the result does not fit the output schema: {wrong}"))))
}
