//! `prompts/get`.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use super::{PromptCall, PromptEntry, PromptResult, Prompts, write_prompt_result};
use crate::{
    core::{
        arguments::{TextArgument, has_too_many_values},
        client_error::ClientError,
        client_request::CallBinding,
        context::{Context, Retry},
        dispatch::{
            ClientRequestPolicy, ItemCall, Reply, Request, Response, WriteResult, into_protocol_error,
            start_with_strings,
        },
        error::Failure,
        extensions::Extensions,
        invoke::{Ended, Invocation},
        item::ItemSpec,
        item_output::{ItemOutput, wrong_kind},
        jsonrpc::{Members, Object, ProtocolError},
        protocol::Revision,
        reason::Reason,
        server::Server,
    },
    schema::{duplicate_keys, without_position},
};

/// One `prompts/get`.
struct GetPrompt<'a> {
    entry: Arc<PromptEntry>,
    /// Raw JSON.
    arguments: Cow<'a, str>,
    retry: Option<Arc<Retry>>,
}

impl Prompts {
    /// Answers `prompts/get`.
    pub(super) fn get(&self, server: &Server, request: Request<'_>) -> Result<Response, Reply> {
        let name = request.name()?;
        let arguments = request.arguments()?;
        if has_too_many_values(arguments) {
            return Err(ProtocolError::invalid_params("too many values in `arguments`").into());
        }
        let entry = self.catalog.find_for(server, &request, &name)?;
        if !entry.item.requires.is_empty() {
            request.check_features(&entry.item.requires)?;
        }
        let retry = request.retry(server, || CallBinding::new("prompts/get", &name, arguments))?;
        let (entry, arguments) = (entry.clone(), Cow::Borrowed(arguments));
        Ok(server.call_item(request, GetPrompt { entry, arguments, retry }))
    }
}

/// The result of `prompts/get`.
struct GetResult {
    result: PromptResult,
    entry: Arc<PromptEntry>,
}

impl WriteResult for GetResult {
    fn write_members(&self, object: &mut Object<'_>, revision: Revision) {
        write_prompt_result(object, &self.result, revision, self.entry.item.description.as_deref());
    }

    fn meta(&self) -> Option<&Map<String, Value>> {
        self.result.meta.as_deref()
    }
}

impl ItemCall for GetPrompt<'_> {
    fn into_owned(self) -> Arc<dyn ItemCall> {
        let Self { entry, arguments, retry } = self;
        Arc::new(GetPrompt { entry, arguments: Cow::Owned(arguments.into_owned()), retry })
    }

    fn item(&self) -> Option<&ItemSpec> {
        Some(&self.entry.item)
    }

    fn state(&self) -> &Arc<Extensions> {
        &self.entry.state
    }

    fn binding(&self) -> CallBinding<'_> {
        CallBinding::new("prompts/get", &self.entry.item.name, &self.arguments)
    }

    fn client_request_policy(&self) -> ClientRequestPolicy {
        ClientRequestPolicy::Allowed(self.retry.clone())
    }

    fn time_limit(&self) -> Option<Duration> {
        self.entry.item.timeout
    }

    fn start(&self, is_current: bool, context: &dyn Fn() -> Context) -> Invocation {
        let PromptEntry { item, function, given, .. } = &*self.entry;
        let mut values = match parse_arguments(&self.arguments) {
            Ok(values) => values,
            Err(error) => return Ended::Returned(Err(Failure::Protocol(error))).into(),
        };
        given.apply_to_texts(&mut values);
        start_with_strings(item, function, &values, is_current, context, |context| {
            Ok(PromptCall { arguments: self.declared_arguments(&values)?, context })
        })
    }

    fn with_arguments(&self, json: &str) -> Result<Option<Arc<dyn ItemCall>>, Failure> {
        let (entry, retry) = (self.entry.clone(), self.retry.clone());
        Ok(Some(Arc::new(GetPrompt { entry, arguments: Cow::Owned(json.to_owned()), retry })))
    }

    fn respond(&self, server: &Server, revision: Revision, result: Result<ItemOutput, Failure>) -> Response {
        let name = &self.entry.item.name;
        let failure = match result {
            Ok(ItemOutput::Prompt(result)) => {
                let size = || result.messages.iter().map(|message| message.content.size()).sum::<usize>();
                let reply = match self.entry.item.max_result.map(|limit| (limit, size())) {
                    // the rest of a prompt may ask for something else than the whole
                    Some((limit, size)) if size > limit => {
                        let text =
                            format!("the prompt `{name}` has {size} bytes, and at most {limit} are sent");
                        let error = ProtocolError::internal(text).with_data(json!({ "size": size }));
                        Reply::from(error).because(Reason::ResultSize)
                    }
                    _ => GetResult { result, entry: self.entry.clone() }.into_reply(),
                };
                return reply.into();
            }
            Ok(_) => wrong_kind(),
            Err(failure) => failure,
        };
        let subject = server.error_context("prompt", name);
        let reason = failure.reason();
        Reply::from(match failure.into_client_error(subject, revision) {
            ClientError::Arguments(report) => {
                ProtocolError::invalid_params(format!("invalid arguments for prompt `{name}`: {report}"))
            }
            error => into_protocol_error(error),
        })
        .because(reason)
        .into()
    }
}

impl GetPrompt<'_> {
    /// The arguments that a prompt made at run time declares.
    ///
    /// # Errors
    /// One that is required is missing; the report names all of them.
    fn declared_arguments(&self, values: &TextArguments<'_>) -> Result<BTreeMap<String, String>, Failure> {
        let mut declared = BTreeMap::new();
        let mut missing = Vec::new();
        for argument in &self.entry.arguments {
            match values.iter().find(|(name, _)| name == argument.name()) {
                Some((_, TextArgument::One(text))) => {
                    declared.insert(argument.name().to_owned(), text.clone().into_owned());
                }
                _ if argument.required => {
                    missing.push(format!("`{}`: is missing", argument.name()));
                }
                _ => {}
            }
        }
        if missing.is_empty() { Ok(declared) } else { Err(Failure::Arguments(missing.join("; "))) }
    }
}

type TextArguments<'a> = Vec<(Cow<'a, str>, TextArgument<'a>)>;

/// A prompt's arguments: strings, though other JSON values are accepted as their text; null is absent.
fn parse_arguments(json: &str) -> Result<TextArguments<'_>, ProtocolError> {
    match serde_json::from_str::<Members<'_, Option<TextArgument<'_>>>>(json) {
        Ok(members) if members.duplicate_key().is_none() => {
            Ok(members.0.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
        }
        read => {
            let mut errors: Vec<String> = duplicate_keys(json).iter().map(ToString::to_string).collect();
            if errors.is_empty() {
                errors.extend(read.err().map(|error| without_position(&error)));
            }
            Err(ProtocolError::invalid_params(format!("invalid arguments: {}", errors.join("; "))))
        }
    }
}
