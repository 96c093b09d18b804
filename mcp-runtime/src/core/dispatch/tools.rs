//! `tools/call`.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::value::RawValue;

use super::{
    Request,
    item_call::ItemCall,
    request::ClientRequestPolicy,
    response::{Reply, Response, ResultBody},
};
use crate::core::{
    arguments::{CallParts, Input, MAX_VALUES, MaybeFuture},
    client_error::ClientError,
    client_request::CallBinding,
    context::{Context, Continuation, Retry},
    error::Failure,
    extensions::Extensions,
    invoke::{self, Ended, Invocation},
    item::ItemSpec,
    item_function::ItemFunction,
    item_output::{ItemOutput, wrong_kind},
    protocol::Revision,
    reason::Reason,
    server::{Entry as _, Registry, Server},
    tool::{ToolCall, ToolEntry, ToolResult},
};

/// One `tools/call`.
#[derive(Clone)]
pub(super) struct CallTool<'a> {
    pub(super) entry: Arc<ToolEntry>,
    /// Raw JSON of an object.
    pub(super) arguments: Cow<'a, str>,
    pub(super) retry: Option<Arc<Retry>>,
    /// How the call may continue outside of its request.
    pub(super) continuation: Option<Arc<dyn Continuation>>,
}

impl Server {
    pub(super) fn call_tool(
        &self,
        request: Request<'_>,
        registry: &Arc<Registry>,
    ) -> Result<Response, Reply> {
        let name = request.name()?;
        let arguments = request.arguments()?;
        let entry = registry.tools.find_for(self, &request, &name)?;
        if !entry.header_params.is_empty()
            && request.revision.is_modern()
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
                    let reply = Reply::from(ResultBody::Tool { result, wrap: false });
                    Ok(reply.because(refusal.reason).into())
                }
                _ => Err(refusal),
            };
        }
        let arguments = match &entry.before {
            None => Cow::Borrowed(arguments),
            Some(before) => match before.given.apply(&entry.input, arguments, entry.spec.strict) {
                Ok(arguments) if before.forward.is_some() => {
                    return self.forward_call(request, registry, entry, &arguments);
                }
                Ok(given) => Cow::Owned(given),
                Err(text) => {
                    let result = ToolResult::error(text);
                    return Ok(Reply::from(ResultBody::Tool { result, wrap: false }).into());
                }
            },
        };
        let mut continuation = None;
        if let Some(possible) = &entry.continuation
            && possible.admit(&request.params.meta, request.revision)?
        {
            continuation = Some(possible.clone());
        }
        let retry = request.retry(self, || CallBinding::new("tools/call", &name, &arguments))?;
        let entry = entry.clone();
        let call = CallTool { entry, arguments, retry, continuation };
        Ok(self.call_item(request, call))
    }
}

impl ItemCall for CallTool<'_> {
    fn into_owned(self) -> Arc<dyn ItemCall> {
        let Self { entry, arguments, retry, continuation } = self;
        let arguments = Cow::Owned(arguments.into_owned());
        Arc::new(CallTool { entry, arguments, retry, continuation })
    }

    fn item(&self) -> Option<&ItemSpec> {
        Some(&self.entry.spec.item)
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.state
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new("tools/call", self.entry.name(), &self.arguments)
    }

    fn client_request_policy(&self) -> ClientRequestPolicy {
        ClientRequestPolicy::Allowed(self.retry.clone())
    }

    fn prepare_context(&self, context: &Context) {
        if let Some(continuation) = &self.continuation {
            continuation.clone().prepare(context);
        }
    }

    fn is_admitted(&self) -> bool {
        self.continuation.as_ref().is_some_and(|continuation| continuation.is_resumed())
    }

    fn starts_outside(&self) -> bool {
        self.continuation.as_ref().is_some_and(|continuation| continuation.starts_at_once())
    }

    fn time_limit(&self) -> Option<Duration> {
        self.entry.spec.item.timeout
    }

    fn start(&self, is_current: bool, context: &dyn Fn() -> Context) -> Invocation {
        let timeout = self.entry.spec.item.timeout;
        let input = &self.entry.input;
        let needs_check = self.arguments.len() > MAX_VALUES || input.attempts.is_some();
        if needs_check && let Err(failure) = input.check_size(&self.arguments) {
            return Ended::Returned(Err(failure)).into();
        }
        match &self.entry.function {
            ItemFunction::Annotated(function) => {
                let parts = CallParts {
                    input: Input::Json(&self.arguments),
                    args: function.args,
                    rules: &function.rules,
                    strict: self.entry.spec.strict,
                    tool: Some(&self.entry.input),
                    validator: self.entry.input_validator.as_ref(),
                    this: function.this.as_ref(),
                    context,
                };
                invoke::start(&self.entry.spec.item.name, function, &parts, timeout, is_current)
            }
            ItemFunction::Runtime(handler) => {
                let (context, entry) = (context(), &self.entry);
                let call = || {
                    let arguments = input.read_untyped(&self.arguments, entry.spec.strict)?;
                    let raw = input.is_unchecked.then(|| raw_json(&self.arguments)).flatten();
                    let call = ToolCall { arguments, context: context.clone(), tool: entry.clone(), raw };
                    let body = handler(call);
                    if !self.starts_outside() {
                        return Ok(MaybeFuture::Pending(body));
                    }
                    let context = context.clone();
                    Ok(MaybeFuture::Pending(Box::pin(async move {
                        context.leave_request().await;
                        body.await
                    })))
                };
                invoke::start_with(call, &context, timeout)
            }
        }
    }

    fn with_arguments(&self, json: &str) -> Result<Option<Arc<dyn ItemCall>>, Failure> {
        let arguments = Cow::Owned(json.to_owned());
        Ok(Some(Arc::new(CallTool { arguments, ..self.clone() })))
    }

    fn respond(&self, server: &Server, revision: Revision, result: Result<ItemOutput, Failure>) -> Response {
        let name = &self.entry.spec.item.name;
        let result = result.and_then(|output| match output {
            ItemOutput::Tool(result) => Ok(result),
            _ => Err(wrong_kind()),
        });
        let mut reason = None;
        let result = match result.and_then(|result| self.check_output(result)) {
            Ok(result) => result,
            Err(failure) => {
                reason = failure.reason();
                let subject = server.error_context("tool", name);
                match failure.into_client_error(subject, revision) {
                    ClientError::Arguments(report) => ToolResult::error(report),
                    ClientError::NotFound => ToolResult::error(format!("tool '{name}' found nothing")),
                    ClientError::Message(text, content) => {
                        let mut result = ToolResult::error(text);
                        result.content.extend(content);
                        result
                    }
                    ClientError::Protocol(error) => return Reply::from(error).because(reason).into(),
                }
            }
        };
        let result = match self.entry.spec.item.max_result {
            None => result,
            Some(limit) => {
                let (result, is_refused) = result.within(limit, name);
                reason = if is_refused { Some(Reason::ResultSize) } else { reason };
                result
            }
        };
        self.entry.reply(result).because(reason).into()
    }
}

impl CallTool<'_> {
    /// Checks a structured result against the output schema; a mismatch is a private error, in release builds as well. Of a
    /// result that another program makes, clients are told the places, without values.
    fn check_output(&self, result: ToolResult) -> Result<ToolResult, Failure> {
        let output = self.entry.output.as_ref().filter(|_| !result.is_error);
        let Some(validator) = output.and_then(|output| output.validator.as_ref()) else { return Ok(result) };
        let mut places = String::new();
        let mismatch = match result.structured.as_deref() {
            None => "it has no structured content, but an output schema".to_owned(),
            Some(json) => match validator.validate_str(json) {
                Ok(()) => return Ok(result),
                Err(errors) => {
                    let places_of = errors.iter().take(3).map(|error| match error.path.as_str() {
                        "" => format!(": expected {}", error.expected),
                        path => format!(": `{path}`: expected {}", error.expected),
                    });
                    places = places_of.collect::<String>().replace('\n', " ");
                    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
                }
            },
        };
        let text = format!("the result does not fit the output schema: {mismatch}");
        Err(match self.entry.spec.remedy {
            None => Failure::because(Reason::OutputSchema, text),
            Some(remedy) => Failure::because(Reason::OutputSchema, format!("{text}\n{remedy}"))
                .shown_as(format!("the call was done, but its result is not as described{places}")),
        })
    }
}

/// The arguments as they were written, which have been parsed.
fn raw_json(arguments: &str) -> Option<Arc<RawValue>> {
    RawValue::from_string(arguments.to_owned()).ok().map(Arc::from)
}

impl ToolEntry {
    /// The reply with a result.
    pub(crate) fn reply(&self, result: ToolResult) -> Reply {
        ResultBody::Tool { result, wrap: self.output.as_ref().is_some_and(|output| output.wrap) }.into()
    }
}
