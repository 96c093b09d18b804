//! `prompts/get`.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc, time::Duration};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use super::{PromptCall, PromptEntry, PromptResult, Prompts, write_prompt_result};
use crate::{
    core::{
        arguments::{TextArgument, has_too_many_values},
        client_request::CallBinding,
        context::{Context, Retry},
        dispatch::{
            ClientRequestPolicy, ItemCall, Reply, Request, Response, WriteResult, into_protocol_error,
            start_with_strings,
        },
        error::Failure,
        extensions::Extensions,
        invoke::{ClientError, Invocation},
        item::ItemSpec,
        item_output::{ItemOutput, wrong_kind},
        jsonrpc::{Object, ProtocolError},
        protocol::Revision,
        reason::Reason,
        server::Server,
    },
    schema::{duplicate_keys, has_duplicate_keys},
};

/// One `prompts/get`.
struct GetPrompt<'a> {
    entry: Arc<PromptEntry>,
    values: Vec<(String, TextArgument)>,
    /// Raw JSON that `values` were read from.
    arguments: Cow<'a, str>,
    retry: Option<Arc<Retry>>,
}

impl Prompts {
    /// Answers `prompts/get`.
    pub(super) fn get(&self, server: &Server, request: Request<'_>) -> Result<Response, Reply> {
        let name = request.name()?;
        let arguments = request.params.arguments.map_or("{}", |raw| raw.get());
        if has_too_many_values(arguments) {
            return Err(ProtocolError::invalid_params("too many values in `arguments`").into());
        }
        let mut values = parse_arguments(arguments)?;
        let entry = self.catalog.find_for(server, &request, &name)?;
        if !entry.given.is_empty() {
            entry.given.apply_to_texts(&mut values);
        }
        if !entry.item.requires.is_empty() {
            request.check_features(&entry.item.requires)?;
        }
        let retry = request.retry(server, || CallBinding::new("prompts/get", &name, arguments))?;
        let (entry, arguments) = (entry.clone(), Cow::Borrowed(arguments));
        Ok(server.call_item(request, GetPrompt { entry, values, arguments, retry }))
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
        let Self { entry, values, arguments, retry } = self;
        Arc::new(GetPrompt { entry, values, arguments: Cow::Owned(arguments.into_owned()), retry })
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
        let PromptEntry { item, function, .. } = &*self.entry;
        start_with_strings(item, function, &self.values, is_current, context, |context| {
            Ok(PromptCall { arguments: self.declared_arguments()?, context })
        })
    }

    fn with_arguments(&self, json: &str) -> Result<Option<Arc<dyn ItemCall>>, Failure> {
        let values = parse_arguments(json).map_err(Failure::Protocol)?;
        let (entry, retry) = (self.entry.clone(), self.retry.clone());
        Ok(Some(Arc::new(GetPrompt { entry, values, arguments: Cow::Owned(json.to_owned()), retry })))
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
    fn declared_arguments(&self) -> Result<BTreeMap<String, String>, Failure> {
        let mut declared = BTreeMap::new();
        let mut missing = Vec::new();
        for argument in &self.entry.arguments {
            match self.values.iter().find(|(name, _)| name == argument.name()) {
                Some((name, TextArgument::One(text))) => {
                    declared.insert(name.clone(), text.clone());
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

/// A prompt's arguments: strings, though other JSON values are accepted as their text; null is absent.
fn parse_arguments(json: &str) -> Result<Vec<(String, TextArgument)>, ProtocolError> {
    let PromptArguments(values) = serde_json::from_str(json)
        .map_err(|_| ProtocolError::invalid_params("`arguments` is not an object"))?;
    if has_duplicate_keys(json) {
        let errors: Vec<String> = duplicate_keys(json).iter().map(ToString::to_string).collect();
        return Err(ProtocolError::invalid_params(format!("invalid arguments: {}", errors.join("; "))));
    }
    Ok(values)
}

/// The members of an object, in their order and without those that are `null`. A map in between would cost a fortieth of a
/// request.
struct PromptArguments(Vec<(String, TextArgument)>);

impl<'de> Deserialize<'de> for PromptArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = PromptArguments;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PromptArguments, A::Error> {
                let mut values = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    let text = match value {
                        Value::Null => continue,
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    values.push((name, TextArgument::One(text)));
                }
                Ok(PromptArguments(values))
            }
        }

        deserializer.deserialize_map(Members)
    }
}
