//! `completion/complete`, of servers with a prompt or a template that has an argument which completes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Deserialize;

use crate::core::{
    arguments::{Completion, CompletionSource, DynComplete, MaybeFuture, choices_with_prefix},
    callback::Callback,
    client_request::CallBinding,
    connection::ItemKind,
    context::Context,
    dispatch::{ItemCall, Reply, Request, Response, WriteResult, into_protocol_error},
    error::Failure,
    extensions::Extensions,
    invoke::{self, Invocation},
    item_output::{ItemOutput, wrong_kind},
    jsonrpc::{Object, ProtocolError, null_is_absent, write_array, write_string},
    protocol::Revision,
    server::{Capability, Declared, Registry, Server},
};

/// Values in one reply, at most.
const MAX_VALUES: usize = 100;

/// Completes arguments; open on a server where some argument has values to offer.
#[derive(Default)]
pub(super) struct Completions;

impl Capability for Completions {
    fn methods(&self) -> &'static [&'static str] {
        &["completion/complete"]
    }

    fn declare(&self, declared: &mut Declared) {
        if declared.revision >= Revision::V2025_03_26 {
            declared.member("completions", "{}");
        }
    }

    fn answer(
        self: Arc<Self>,
        server: &Server,
        registry: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        self.complete(server, registry, request)
    }
}

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
    #[serde(default, deserialize_with = "null_is_absent")]
    arguments: BTreeMap<String, Option<String>>,
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
    function: Callback<DynComplete>,
    completion: Completion,
    /// The prompt's name, or the template's URI.
    name: String,
    state: Arc<Extensions>,
    timeout: Option<Duration>,
}

impl Completions {
    fn complete(
        &self,
        server: &Server,
        registry: &Registry,
        request: Request<'_>,
    ) -> Result<Response, Reply> {
        let reference: Reference = parse_object(request.params.get("ref"), "ref")?;
        let argument: Argument = parse_object(request.params.get("argument"), "argument")?;
        let context: CompletionContext = match request.params.get("context") {
            None => CompletionContext::default(),
            some => parse_object(some, "context")?,
        };
        // official servers answer without values where there is nothing to complete
        let no_values = || Ok(completion_reply(Vec::new()).into());
        let (kind, name) = match &reference {
            Reference::Prompt { name } => (ItemKind::Prompt, name),
            Reference::Resource { uri } => (ItemKind::Resource, uri),
        };
        let mut capabilities = registry.capabilities.iter();
        let found = capabilities
            .find_map(|capability| capability.completion(server, &request, kind, name, &argument.name));
        let found = found.unwrap_or_else(|| Err(unknown_reference(kind, name)))?;
        let Some((source, state)) = found else { return no_values() };
        let function = match source {
            CompletionSource::Choices(choices) => {
                let choices = choices.iter().map(String::as_str);
                return Ok(completion_reply(choices_with_prefix(choices, &argument.value)).into());
            }
            CompletionSource::Function(function) => function.clone(),
        };
        let Argument { name: argument, value } = argument;
        let chosen = context.arguments.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let completion = Completion { argument, value, arguments: chosen.collect() };
        let timeout = server.options().limits.timeout;
        let call =
            CompleteArgument { function, completion, name: name.clone(), state: state.clone(), timeout };
        Ok(server.call_item(request, call))
    }
}

/// The reply with as many of the values as one may hold.
fn completion_reply(mut values: Vec<String>) -> Reply {
    let total = values.len();
    values.truncate(MAX_VALUES);
    CompletionResult { values, total }.into_reply()
}

/// The error of a reference to what is not there.
fn unknown_reference(kind: ItemKind, name: &str) -> Reply {
    let what = if kind == ItemKind::Prompt { "prompt" } else { "resource template" };
    Reply::unknown_item(what, name, None)
}

struct CompletionResult {
    /// The first of `total` values, as many as one reply may hold.
    values: Vec<String>,
    total: usize,
}

impl WriteResult for CompletionResult {
    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        let Self { values, total } = self;
        object.object("completion", |c| {
            write_array(c.key("values"), values, |out, value| write_string(out, value));
            c.value("total", total).value("hasMore", &(*total > values.len()));
        });
    }
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

    fn start(&self, _: bool, context: &dyn Fn() -> Context) -> Invocation {
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
        let subject = server.error_context("completion of", &self.name);
        let reason = failure.reason();
        Reply::from(into_protocol_error(failure.into_client_error(subject, revision))).because(reason).into()
    }
}
