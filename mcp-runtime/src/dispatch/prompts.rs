//! `prompts/get`.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    MayAsk, Request,
    call::ItemCall,
    request_state::BoundTo,
    response::{Reply, Response, ResultBody},
    tools::unknown,
};
use crate::{
    arguments::{CallParts, Input, TextArgument},
    context::{Context, Round},
    error::Failure,
    extensions::Extensions,
    invoke::{self, ClientError, ErrorContext, InputRequired, Invocation, Running},
    jsonrpc::{ProtocolError, text_of},
    prompt::{PromptEntry, PromptResult},
    protocol::Revision,
    server::{Registry, Server},
};

/// A call of a prompt.
struct Call<'a> {
    entry: Arc<PromptEntry>,
    values: Vec<(String, TextArgument)>,
    /// Raw JSON of the same.
    arguments: Cow<'a, str>,
    round: Option<Arc<Round>>,
}

impl Server {
    pub(super) fn get_prompt(&self, request: Request<'_>, registry: &Registry) -> Result<Response, Reply> {
        let name = request.params.name.ok_or_else(|| ProtocolError::invalid_params("`name` is missing"))?;
        let name = text_of(name).ok_or_else(|| ProtocolError::invalid_params("`name` is not a string"))?;
        let arguments = request.params.arguments.map_or("{}", |raw| raw.get());
        let values = texts(Some(arguments))?;
        let Some(entry) = registry.prompts.find(&name, request.context) else {
            let near = registry.prompts.nearest(&name, request.access());
            return Err(ProtocolError::invalid_params(unknown("prompt", &name, near)).into());
        };
        if !entry.item.requires.is_empty() {
            request.check_features(&entry.item.requires)?;
        }
        let round = request.round(self, || BoundTo::new("prompts/get", &name, arguments))?;
        let call = Call { entry: entry.clone(), values, arguments: Cow::Borrowed(arguments), round };
        Ok(self.perform(request, call))
    }
}

impl ItemCall for Call<'_> {
    type Output = PromptResult;
    type Interruption = InputRequired;
    type Owned = Call<'static>;

    fn into_owned(self) -> Call<'static> {
        let Self { entry, values, arguments, round } = self;
        Call { entry, values, arguments: Cow::Owned(arguments.into_owned()), round }
    }

    fn name(&self) -> &str {
        &self.entry.item.name
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

    fn start(&self, watched: bool, context: &dyn Fn() -> Context) -> Invocation<PromptResult, InputRequired> {
        let parts = CallParts {
            input: Input::Text(&self.values),
            args: self.entry.function.args,
            strict: false,
            tool: None,
            validator: None,
            this: self.entry.function.this.as_ref(),
            context,
        };
        invoke::start(self.entry.function.handler, parts, None, watched)
    }

    fn reply(&self, server: &Server, revision: Revision, result: Result<PromptResult, Failure>) -> Reply {
        let name = &self.entry.item.name;
        let failure = match result {
            Ok(result) => {
                let entry = self.entry.clone();
                return ResultBody::Prompt { result, entry }.into();
            }
            Err(failure) => failure,
        };
        let of = ErrorContext { kind: "prompt", name, detailed: server.options().detailed_errors };
        match failure.into_client_error(of, revision) {
            ClientError::Arguments(report) => {
                ProtocolError::invalid_params(format!("invalid arguments for prompt `{name}`: {report}"))
            }
            ClientError::NotFound => ProtocolError::internal("nothing was found"),
            ClientError::Message(text, _) => ProtocolError::internal(text),
            ClientError::Protocol(error) => error,
        }
        .into()
    }

    fn interrupted(
        self,
        server: &Server,
        _: Revision,
        input: InputRequired,
        running: Running<PromptResult>,
    ) -> Response {
        let bound = BoundTo::new("prompts/get", &self.entry.item.name, &self.arguments);
        server.input_required(&bound, running.context(), input).into()
    }
}

/// A prompt's arguments: strings, though other JSON is taken as its text; `null` counts as absent.
fn texts(arguments: Option<&str>) -> Result<Vec<(String, TextArgument)>, ProtocolError> {
    let Some(json) = arguments.filter(|json| *json != "null") else { return Ok(Vec::new()) };
    let values: BTreeMap<String, Value> = serde_json::from_str(json)
        .map_err(|_| ProtocolError::invalid_params("`arguments` is not an object"))?;
    let text = |(name, value): (String, Value)| match value {
        Value::Null => None,
        Value::String(text) => Some((name, TextArgument::One(text))),
        other => Some((name, TextArgument::One(other.to_string()))),
    };
    Ok(values.into_iter().filter_map(text).collect())
}
