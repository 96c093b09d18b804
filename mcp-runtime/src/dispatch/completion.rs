//! `completion/complete`.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use serde::Deserialize;

use super::{
    MayAsk, Request,
    call::ItemCall,
    response::{Reply, Response, ResultBody},
    tools::unknown,
};
use crate::{
    arguments::choices_with_prefix,
    arguments::{AnyArg, CompleteFn, Completion, MaybeFuture},
    context::Context,
    error::Failure,
    extensions::Extensions,
    invoke::{self, ClientError, ErrorContext, Invocation, Running},
    jsonrpc::ProtocolError,
    protocol::Revision,
    server::{Registry, Server},
};

/// The most that one reply may hold.
const MOST: usize = 100;

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
struct Chosen {
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

fn member<T: for<'a> Deserialize<'a>>(
    raw: Option<&serde_json::value::RawValue>,
    name: &str,
) -> Result<T, ProtocolError> {
    let raw = raw.ok_or_else(|| ProtocolError::invalid_params(format!("`{name}` is missing")))?;
    // serde would take an array for the members in order
    if !raw.get().starts_with('{') {
        return Err(ProtocolError::invalid_params(format!("`{name}` is not an object")));
    }
    serde_json::from_str(raw.get()).map_err(|e| ProtocolError::invalid_params(format!("`{name}`: {e}")))
}

/// A function that completes an argument.
struct Complete {
    function: CompleteFn,
    completion: Completion,
    /// Of the prompt, or the URI of the template.
    name: String,
    state: Arc<Extensions>,
}

impl Server {
    pub(super) fn complete(&self, request: Request<'_>, registry: &Registry) -> Result<Response, Reply> {
        let reference: Reference = member(request.params.reference, "ref")?;
        let argument: Argument = member(request.params.argument, "argument")?;
        let chosen: Chosen = match request.params.context {
            None => Chosen::default(),
            some => member(some, "context")?,
        };
        let (name, args, choices, state) = match &reference {
            Reference::Prompt { name } => {
                let Some(entry) = registry.prompts.find(name, request.context) else {
                    let near = registry.prompts.nearest(name, request.access());
                    return Err(ProtocolError::invalid_params(unknown("prompt", name, near)).into());
                };
                let at = position(entry.function.args, &argument.name);
                (name, entry.function.args, at.map(|at| entry.choices(at)), &entry.state)
            }
            Reference::Resource { uri } => {
                let found = registry.template(uri).filter(|r| request.access().allows(&r.item.scopes));
                let Some(entry) = found else {
                    return Err(ProtocolError::invalid_params(unknown("resource template", uri, None)).into());
                };
                let at = position(entry.function.args, &argument.name);
                (uri, entry.function.args, at.map(|at| entry.choices(at)), &entry.state)
            }
        };
        let Some(at) = position(args, &argument.name) else {
            let text = format!("`{name}` has no argument `{}`", argument.name);
            return Err(ProtocolError::invalid_params(text).into());
        };
        let Some(function) = args.get(at).and_then(|arg| arg.completer()) else {
            let choices = choices.into_iter().flatten().map(String::as_str);
            return Ok(completed(choices_with_prefix(choices, &argument.value)).into());
        };
        let Argument { name: argument, value } = argument;
        let completion = Completion { argument, value, arguments: chosen.arguments };
        let call = Complete { function, completion, name: name.clone(), state: state.clone() };
        Ok(self.perform(request, call))
    }
}

/// The reply with as many values as one may hold.
fn completed(mut values: Vec<String>) -> Reply {
    let total = values.len();
    values.truncate(MOST);
    ResultBody::Completion { values, total }.into()
}

impl ItemCall for Complete {
    type Output = Vec<String>;
    type Interruption = Infallible;
    type Owned = Self;

    fn into_owned(self) -> Self {
        self
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn arguments(&self) -> &str {
        "{}"
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.state
    }

    fn may_ask(&self) -> MayAsk {
        MayAsk::No
    }

    fn start(&self, _: bool, context: &dyn Fn() -> Context) -> Invocation<Vec<String>, Infallible> {
        let context = context();
        let complete = || {
            let values = (self.function)(Some((self.completion.clone(), context.clone()))).outcome;
            Ok(values.map_or_else(|| MaybeFuture::Ready(Vec::new()), MaybeFuture::Pending))
        };
        invoke::start_with(complete, &context, None)
    }

    fn reply(&self, server: &Server, revision: Revision, result: Result<Vec<String>, Failure>) -> Reply {
        let failure = match result {
            Ok(values) => return completed(values),
            Err(failure) => failure,
        };
        let detailed = server.options().detailed_errors;
        let of = ErrorContext { kind: "completion of", name: &self.name, detailed };
        match failure.into_client_error(of, revision) {
            ClientError::Arguments(report) => ProtocolError::invalid_params(report),
            ClientError::NotFound => ProtocolError::internal("nothing was found"),
            ClientError::Message(text, _) => ProtocolError::internal(text),
            ClientError::Protocol(error) => error,
        }
        .into()
    }

    fn interrupted(self, _: &Server, _: Revision, why: Infallible, _: Running<Vec<String>>) -> Response {
        match why {}
    }
}

fn position(args: &[&'static dyn AnyArg], name: &str) -> Option<usize> {
    args.iter().position(|arg| arg.name() == name)
}
