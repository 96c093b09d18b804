//! `tools/call`.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::{
    Request,
    item_call::ItemCall,
    layered_item::LayeredItemCall,
    request::ClientRequestPolicy,
    response::{Reply, Response, ResultBody},
    tasks::{declares_tasks, tasks_not_declared},
};
use crate::{
    arguments::{CallParts, HandlerResult, Input, MaybeFuture, normalize_integers, repair_untyped},
    client_request::CallBinding,
    connection::AccessError,
    context::{Context, Retry},
    error::{Failure, ToolError},
    extensions::Extensions,
    invoke::{
        self, ClientError, ErrorContext, Interruption, Invocation, Running, StartOptions, ToolInterruption,
    },
    item::{DynHandler, ItemLayer},
    jsonrpc::ProtocolError,
    layer::{CallOutput, ItemKind},
    protocol::Revision,
    schema::has_duplicates_beside,
    server::{Registry, Server},
    tool::{TaskMode, ToolCall, ToolEntry, ToolHandler, ToolResult},
};

/// One `tools/call`.
struct CallTool<'a> {
    entry: Arc<ToolEntry>,
    /// Raw JSON of an object.
    arguments: Cow<'a, str>,
    retry: Option<Arc<Retry>>,
    /// How the call may continue as a task.
    task: Option<TaskMode>,
}

impl Server {
    pub(super) fn call_tool(&self, request: Request<'_>, registry: &Registry) -> Result<Response, Reply> {
        let name = request.name()?;
        let arguments = match request.params.arguments.map(|raw| raw.get()) {
            None | Some("null") => "{}",
            Some(object) if object.starts_with('{') => object,
            Some(_) => return Err(ProtocolError::invalid_params("`arguments` is not an object").into()),
        };
        let entry = match registry.tools.find(&name, request.access()) {
            Ok(entry) => entry,
            Err(AccessError::MissingScopes(scopes)) => return Err(self.insufficient_scope(scopes)),
            Err(AccessError::Unknown) => {
                let nearest = registry.tools.nearest(&name, request.access());
                return Err(Reply::unknown_item("tool", &name, nearest));
            }
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
                // models of legacy clients see results, not errors
                Err(error) if !request.revision.is_modern() => {
                    let result = ToolResult::error(error.message);
                    Ok(Reply::from(ResultBody::Tool { result, wrap: false }).into())
                }
                _ => Err(refusal),
            };
        }
        let task = task_mode(entry, &request)?;
        let retry = request.retry(self, || CallBinding::new("tools/call", &name, arguments))?;
        let (entry, arguments) = (entry.clone(), Cow::Borrowed(arguments));
        Ok(self.call_through_layers(request, CallTool { entry, arguments, retry, task }))
    }
}

impl ItemCall for CallTool<'_> {
    type Output = ToolResult;
    type Interruption = ToolInterruption;
    type Owned = CallTool<'static>;

    fn into_owned(self) -> CallTool<'static> {
        let Self { entry, arguments, retry, task } = self;
        CallTool { entry, arguments: Cow::Owned(arguments.into_owned()), retry, task }
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.state
    }

    fn client_request_policy(&self) -> ClientRequestPolicy {
        ClientRequestPolicy::Allowed(self.retry.clone())
    }

    fn prepare_context(&self, context: &Context) {
        if self.task.is_some() {
            // a call that starts as a task waits for its permit there, after its client has been answered
            let permit = if self.starts_as_task() { self.entry.permits.clone() } else { None };
            context.allow_task_start(permit);
        }
    }

    fn semaphore(&self) -> Option<&Arc<Semaphore>> {
        self.entry.permits.as_ref().filter(|_| !self.starts_as_task())
    }

    fn time_limit(&self) -> Option<Duration> {
        self.entry.spec.timeout
    }

    fn start<I: Interruption>(
        &self,
        options: StartOptions,
        context: &dyn Fn() -> Context,
    ) -> Invocation<ToolResult, I> {
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
                invoke::start(self.entry.name(), function, parts, timeout, options)
            }
            ToolHandler::Runtime(handler) => {
                let context = context();
                invoke::start_with(|| self.call_runtime_handler(handler, &context), &context, timeout)
            }
        }
    }

    fn reply(&self, server: &Server, revision: Revision, result: Result<ToolResult, Failure>) -> Reply {
        let name = self.entry.name();
        let result = match result.and_then(|result| self.check_output(result)) {
            Ok(result) => result,
            Err(failure) => {
                let subject = ErrorContext { kind: "tool", name, detailed: server.options().detailed_errors };
                match failure.into_client_error(subject, revision) {
                    ClientError::Arguments(report) => ToolResult::error(report),
                    ClientError::NotFound => ToolResult::error(format!("tool '{name}' found nothing")),
                    ClientError::Message(text, content) => {
                        let mut result = ToolResult::error(text);
                        result.content.extend(content);
                        result
                    }
                    ClientError::Protocol(error) => return error.into(),
                }
            }
        };
        ResultBody::Tool { result, wrap: self.entry.output.as_ref().is_some_and(|output| output.wrap) }.into()
    }

    fn interrupt(
        self,
        server: &Server,
        revision: Revision,
        interruption: ToolInterruption,
        running: Running<ToolResult>,
    ) -> Response {
        match interruption {
            ToolInterruption::Input(input) => {
                server.input_required(&self.binding(), running.context(), input).into()
            }
            ToolInterruption::Task => {
                Response::Pending(server.continue_as_task(self.into_owned(), revision, running))
            }
        }
    }
}

impl LayeredItemCall for CallTool<'_> {
    const KIND: ItemKind = ItemKind::Tool;

    fn layers(&self) -> &Arc<[ItemLayer]> {
        &self.entry.spec.item.layers
    }

    fn item_name(&self) -> &str {
        self.entry.name()
    }

    fn arguments(&self) -> &str {
        &self.arguments
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new("tools/call", self.entry.name(), &self.arguments)
    }

    fn with_arguments(&self, json: &str) -> Result<CallTool<'static>, Failure> {
        let arguments = Cow::Owned(json.to_owned());
        Ok(CallTool { entry: self.entry.clone(), arguments, retry: self.retry.clone(), task: self.task })
    }

    fn output(output: CallOutput) -> Option<ToolResult> {
        match output {
            CallOutput::Tool(result) => Some(result),
            _ => None,
        }
    }
}

impl CallTool<'_> {
    /// Whether the call becomes a task before its function starts.
    fn starts_as_task(&self) -> bool {
        matches!(self.task, Some(TaskMode::Capable | TaskMode::Required))
    }

    /// Calls the handler of a run-time tool with arguments that match the tool's schema.
    fn call_runtime_handler(
        &self,
        handler: &DynHandler<ToolCall, ToolResult>,
        context: &Context,
    ) -> HandlerResult<ToolResult> {
        let (entry, text) = (&self.entry, &*self.arguments);
        let mut arguments: Value = serde_json::from_str(text)
            .map_err(|e| Failure::Arguments(format!("invalid arguments for tool `{}`: {e}", entry.name())))?;
        let valid = !has_duplicates_beside(text, arguments.as_object().map_or(0, Map::len))
            && entry
                .input_validator
                .as_ref()
                .is_none_or(|validator| validator.validate(&arguments).is_empty());
        if valid {
            normalize_integers(&entry.input, &mut arguments);
        } else {
            arguments = repair_untyped(&entry.input, text, entry.spec.strict)?;
        }
        entry.input.add_defaults(&mut arguments)?;
        let body = handler(ToolCall { arguments, context: context.clone() });
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

    /// Checks a structured result against the output schema; a mismatch is a private error, in release builds as well.
    fn check_output(&self, result: ToolResult) -> Result<ToolResult, Failure> {
        let Some(output) = self.entry.output.as_ref().filter(|_| !result.is_error) else { return Ok(result) };
        let mismatch = match result.structured.as_deref() {
            None => "it has no structured content, but an output schema".to_owned(),
            Some(json) => match output.validator.validate_str(json) {
                Ok(()) => return Ok(result),
                Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            },
        };
        let text = format!("the result does not fit the output schema: {mismatch}");
        Err(Failure::Body(ToolError::private(text)))
    }
}

/// How a call may continue as a task, if at all.
///
/// # Errors
/// The tool always runs as a task, and the client does not declare the extension.
fn task_mode(entry: &ToolEntry, request: &Request<'_>) -> Result<Option<TaskMode>, Reply> {
    match entry.spec.task.filter(|_| request.revision.is_modern()) {
        Some(mode) if declares_tasks(&request.params.meta) => Ok(Some(mode)),
        Some(TaskMode::Required) => Err(tasks_not_declared()),
        _ => Ok(None),
    }
}
