//! `tools/call`.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::{
    MayAsk, Request,
    call::ItemCall,
    request_state::BoundTo,
    response::{Reply, Response, ResultBody},
    tasks::{knows_tasks, lacks_tasks},
};
use crate::{
    arguments::{CallParts, Input, MaybeFuture, Outcome, normalize_integers, repair_untyped},
    content::Content,
    context::{Context, Round},
    error::{Failure, ToolError},
    extensions::Extensions,
    invoke::{self, ClientError, ErrorContext, Invocation, Running, ToolInterruption},
    jsonrpc::{ProtocolError, text_of},
    protocol::Revision,
    server::{Registry, Server},
    tool::{DynHandler, TaskMode, ToolCall, ToolEntry, ToolHandler, ToolResult},
};

/// A call of a tool.
struct Call<'a> {
    entry: Arc<ToolEntry>,
    /// Raw JSON of an object.
    arguments: Cow<'a, str>,
    round: Option<Arc<Round>>,
    /// How the call may go on as a task.
    task: Option<TaskMode>,
}

impl Server {
    pub(super) fn call_tool(&self, request: Request<'_>, registry: &Registry) -> Result<Response, Reply> {
        let name = request.params.name.ok_or_else(|| invalid("`name` is missing"))?;
        let name = text_of(name).ok_or_else(|| invalid("`name` is not a string"))?;
        let arguments = match request.params.arguments.map(|raw| raw.get()) {
            None | Some("null") => "{}",
            Some(object) if object.starts_with('{') => object,
            Some(_) => return Err(invalid("`arguments` is not an object").into()),
        };
        let Some(entry) = registry.tools.find(&name, request.context) else {
            let near = registry.tools.nearest(&name, request.access());
            return Err(invalid(&unknown("tool", &name, near)).into());
        };
        if !entry.header_params.is_empty()
            && let Some(connection) = &request.context.connection
        {
            let compared = connection.compare_headers(&entry.header_params, request.params.arguments);
            compared.map_err(Reply::bad_request)?;
        }
        if !entry.spec.item.requires.is_empty()
            && let Err(refusal) = request.check_features(&entry.spec.item.requires)
        {
            return match refusal.outcome {
                // models of handshake revisions see results, not errors
                Err(error) if !request.revision.is_modern() => {
                    let result = ToolResult::error(error.message);
                    Ok(Reply::from(ResultBody::Tool { result, wrap: false }).into())
                }
                _ => Err(refusal),
            };
        }
        let task = may_be_task(entry, &request)?;
        let round = request.round(self, || BoundTo::new("tools/call", &name, arguments))?;
        let call = Call { entry: entry.clone(), arguments: Cow::Borrowed(arguments), round, task };
        Ok(self.perform(request, call))
    }
}

impl ItemCall for Call<'_> {
    type Output = ToolResult;
    type Interruption = ToolInterruption;
    type Owned = Call<'static>;

    fn into_owned(self) -> Call<'static> {
        let Self { entry, arguments, round, task } = self;
        Call { entry, arguments: Cow::Owned(arguments.into_owned()), round, task }
    }

    fn name(&self) -> &str {
        self.entry.name()
    }

    fn arguments(&self) -> &str {
        &self.arguments
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.state
    }

    fn may_ask(&self) -> MayAsk {
        MayAsk::Yes(self.round.clone())
    }

    fn prepare(&self, context: &Context) {
        if self.task.is_some() {
            // a task that starts by itself waits for its permit there, with its client already answered
            let permit = if self.starts_as_task() { self.entry.permits.clone() } else { None };
            context.may_start_task(permit);
        }
    }

    fn concurrency(&self) -> Option<&Arc<Semaphore>> {
        self.entry.permits.as_ref().filter(|_| !self.starts_as_task())
    }

    fn limit(&self) -> Option<Duration> {
        self.entry.spec.timeout
    }

    fn start(
        &self,
        watched: bool,
        context: &dyn Fn() -> Context,
    ) -> Invocation<ToolResult, ToolInterruption> {
        let timeout = self.entry.spec.timeout;
        match &self.entry.handler {
            ToolHandler::Annotated(function) => {
                let parts = CallParts {
                    input: Input::Json(&self.arguments),
                    args: function.args,
                    strict: self.entry.spec.strict,
                    tool: Some(&self.entry.input),
                    validator: self.entry.input_validator.as_ref(),
                    this: function.this.as_ref(),
                    context,
                };
                invoke::start(function.handler, parts, timeout, watched)
            }
            ToolHandler::Runtime(handler) => {
                let context = context();
                let enter = || self.enter_runtime(handler, &context);
                invoke::start_with(enter, &context, timeout)
            }
        }
    }

    fn reply(&self, server: &Server, revision: Revision, result: Result<ToolResult, Failure>) -> Reply {
        let name = self.entry.name();
        let result = match result.and_then(|result| self.check_output(result)) {
            Ok(result) => result,
            Err(failure) => {
                let of = ErrorContext { kind: "tool", name, detailed: server.options().detailed_errors };
                match failure.into_client_error(of, revision) {
                    ClientError::Arguments(report) => ToolResult::error(report),
                    ClientError::NotFound => ToolResult::error(format!("tool '{name}' found nothing")),
                    ClientError::Message(text, content) => failed(text, content),
                    ClientError::Protocol(error) => return error.into(),
                }
            }
        };
        ResultBody::Tool { result, wrap: self.entry.output.as_ref().is_some_and(|output| output.wrap) }.into()
    }

    fn interrupted(
        self,
        server: &Server,
        revision: Revision,
        interruption: ToolInterruption,
        running: Running<ToolResult>,
    ) -> Response {
        match interruption {
            ToolInterruption::Input(input) => {
                let bound = BoundTo::new("tools/call", self.entry.name(), &self.arguments);
                server.input_required(&bound, running.context(), input).into()
            }
            ToolInterruption::Task => {
                Response::Pending(server.become_task(self.into_owned(), revision, running))
            }
        }
    }
}

impl Call<'_> {
    /// Whether the call becomes a task before its function begins.
    fn starts_as_task(&self) -> bool {
        matches!(self.task, Some(TaskMode::Capable | TaskMode::Required))
    }

    /// A tool made at run time gets its arguments as a value that fits its schema.
    fn enter_runtime(&self, handler: &DynHandler, context: &Context) -> Outcome<ToolResult> {
        let (entry, text) = (&self.entry, &*self.arguments);
        let mut arguments: Value = serde_json::from_str(text)
            .map_err(|e| Failure::Arguments(format!("invalid arguments for tool `{}`: {e}", entry.name())))?;
        let fits =
            entry.input_validator.as_ref().is_none_or(|validator| validator.validate(&arguments).is_empty());
        if fits {
            normalize_integers(&entry.input, &mut arguments);
        } else {
            arguments = repair_untyped(&entry.input, text, entry.spec.strict)?;
        }
        let call = ToolCall { arguments, context: context.clone() };
        let body = handler(call);
        Ok(MaybeFuture::Pending(match entry.spec.task {
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
    fn check_output(&self, result: ToolResult) -> Result<ToolResult, Failure> {
        let Some(output) = self.entry.output.as_ref().filter(|_| !result.is_error) else { return Ok(result) };
        let wrong = match result.structured.as_deref() {
            None => "it has no structured content, but an output schema".to_owned(),
            Some(json) => match output.validator.validate_str(json) {
                Ok(()) => return Ok(result),
                Err(violations) => violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            },
        };
        Err(Failure::Body(ToolError::private(format!("the result does not fit the output schema: {wrong}"))))
    }
}

fn failed(text: String, more: Vec<Content>) -> ToolResult {
    let mut result = ToolResult::error(text);
    result.content.extend(more);
    result
}

/// How a call may go on as a task, if it may.
///
/// # Errors
/// Every call of the tool is a task, and the client does not know tasks.
fn may_be_task(entry: &ToolEntry, request: &Request<'_>) -> Result<Option<TaskMode>, Reply> {
    match entry.spec.task.filter(|_| request.revision.is_modern()) {
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
