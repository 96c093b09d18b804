//! `completion/complete`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Deserialize;

use super::{
    Request,
    item_call::{ItemCall, into_protocol_error},
    response::{Reply, Response, ResultBody},
};
use crate::{
    arguments::{Completion, CompletionSource, DynComplete, MaybeFuture, choices_with_prefix},
    client_request::CallBinding,
    connection::AccessError,
    context::Context,
    error::Failure,
    extensions::Extensions,
    invoke::{self, ErrorContext, Invocation, StartOptions},
    item_output::{ItemOutput, wrong_kind},
    jsonrpc::ProtocolError,
    protocol::Revision,
    server::{Registry, Server},
};

/// Values in one reply, at most.
const MAX_VALUES: usize = 100;

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Reference {
    #[serde(rename = "ref/prompt")]
    Prompt { name: String },
    #[serde(rename = "ref/resource")]
    Resource { uri: String },
}

#[derive(Deserialize)]
struct Argument {
    name: String,
    value: String,
}

#[derive(Deserialize, Default)]
struct CompletionContext {
    /// The arguments that the user has chosen already.
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

/// Reads a parameter that is an object.
fn parse_object<T: for<'a> Deserialize<'a>>(
    raw: Option<&serde_json::value::RawValue>,
    name: &str,
) -> Result<T, ProtocolError> {
    let raw = raw.ok_or_else(|| ProtocolError::invalid_params(format!("`{name}` is missing")))?;
    // serde would accept an array of the members' values as well
    if !raw.get().starts_with('{') {
        return Err(ProtocolError::invalid_params(format!("`{name}` is not an object")));
    }
    serde_json::from_str(raw.get()).map_err(|e| ProtocolError::invalid_params(format!("`{name}`: {e}")))
}

/// One `completion/complete` of an argument whose values a function computes.
struct CompleteArgument {
    function: Arc<DynComplete>,
    completion: Completion,
    /// The prompt's name, or the template's URI.
    name: String,
    state: Arc<Extensions>,
    timeout: Option<Duration>,
}

impl Server {
    pub(super) fn complete(&self, request: Request<'_>, registry: &Registry) -> Result<Response, Reply> {
        let reference: Reference = parse_object(request.params.reference, "ref")?;
        let argument: Argument = parse_object(request.params.argument, "argument")?;
        let context: CompletionContext = match request.params.context {
            None => CompletionContext::default(),
            some => parse_object(some, "context")?,
        };
        // official servers answer without values where there is nothing to complete
        let no_values = || Ok(completion_reply(Vec::new()).into());
        let (name, source, state) = match &reference {
            Reference::Prompt { name } => {
                let entry = self.find_prompt(&request, registry, name)?;
                (name, entry.completion(&argument.name), &entry.state)
            }
            Reference::Resource { uri } => {
                let template = registry.template(uri).filter(|entry| request.access().sees(entry.view()));
                let Some(entry) = template else {
                    if self.is_resource(&request, registry, uri) {
                        return no_values();
                    }
                    return Err(Reply::unknown_item("resource template", uri, None));
                };
                if let Err(AccessError::MissingScopes(scopes)) = request.access().check(entry.view()) {
                    return Err(self.insufficient_scope(scopes));
                }
                (uri, entry.completion(&argument.name), &entry.state)
            }
        };
        let function = match source {
            None => return no_values(),
            Some(CompletionSource::Choices(choices)) => {
                let choices = choices.iter().map(String::as_str);
                return Ok(completion_reply(choices_with_prefix(choices, &argument.value)).into());
            }
            Some(CompletionSource::Function(function)) => function.clone(),
        };
        let Argument { name: argument, value } = argument;
        let completion = Completion { argument, value, arguments: context.arguments };
        let timeout = self.options().limits.timeout;
        let call =
            CompleteArgument { function, completion, name: name.clone(), state: state.clone(), timeout };
        Ok(self.call_item(request, call))
    }
}

/// The reply with as many of the values as one may hold.
fn completion_reply(mut values: Vec<String>) -> Reply {
    let total = values.len();
    values.truncate(MAX_VALUES);
    ResultBody::Completion { values, total }.into()
}

impl ItemCall for CompleteArgument {
    fn into_owned(self) -> Arc<dyn ItemCall> {
        Arc::new(self)
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.state
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new("completion/complete", &self.name, "{}")
    }

    fn start(&self, _: StartOptions, context: &dyn Fn() -> Context) -> Invocation {
        let context = context();
        let complete = || {
            let values = (self.function)(self.completion.clone(), context.clone());
            Ok(MaybeFuture::Pending(Box::pin(async move { values.await.map(ItemOutput::Values) })))
        };
        invoke::start_with(complete, &context, self.timeout)
    }

    fn respond(&self, server: &Server, revision: Revision, result: Result<ItemOutput, Failure>) -> Response {
        let failure = match result {
            Ok(ItemOutput::Values(values)) => return completion_reply(values).into(),
            Ok(_) => wrong_kind(),
            Err(failure) => failure,
        };
        let detailed = server.options().detailed_errors;
        let subject = ErrorContext { kind: "completion of", name: &self.name, detailed };
        let reason = failure.reason();
        Reply::from(into_protocol_error(failure.into_client_error(subject, revision))).because(reason).into()
    }
}
