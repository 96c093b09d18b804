//! `prompts/get`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    MayAsk, Refusal, Request, Status,
    reply::{Frame, framed, nothing, refused},
    round::Subject,
    run::{Begun, Drive, drive, enter_text},
    tool::unknown,
};
use crate::{
    content::{PromptResult, prompt_result},
    extract::Variable,
    jsonrpc::{ProtocolError, error_reply, text_of},
    registry::PromptEntry,
    reply::Failure,
    server::Server,
};

impl Server {
    pub(super) fn get_prompt(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let name = request.params.name.ok_or_else(|| ProtocolError::invalid_params("`name` is missing"))?;
        let name = text_of(name).ok_or_else(|| ProtocolError::invalid_params("`name` is not a string"))?;
        let written = request.params.arguments.map_or("{}", |raw| raw.get());
        let arguments = texts(Some(written))?;
        let registry = self.registry();
        let found = registry.prompt(&name).filter(|p| request.viewer().sees(p.def.common.scopes));
        let Some(entry) = found.cloned() else {
            let near = registry.nearest_prompt(&name, request.viewer());
            return Err(ProtocolError::invalid_params(unknown("prompt", &name, near)).into());
        };
        let common = &entry.def.common;
        let subject = Subject::new("prompts/get", &name, written);
        request.check_features(common.requires)?;
        let round = self.resume(&request, &subject)?;
        let make = || request.context(self, &entry.state, MayAsk::Yes(round.clone()));
        let (this, watched) = (entry.this.as_ref(), request.is_watched(self));
        let (outcome, context) = enter_text(entry.def.handler, common.args, &arguments, this, watched, &make);
        let revision = request.revision;
        let going =
            Drive { server: self, frame: request.frame(), context, make: Some(&make), limit: None, subject };
        let entry = entry.clone();
        Ok(drive(outcome, going, out, move |server, result, id, out| {
            server.finish_prompt(&entry, Frame { id, revision }, result, out)
        }))
    }

    fn finish_prompt(
        &self,
        entry: &PromptEntry,
        frame: Frame<'_>,
        result: Result<PromptResult, Failure>,
        out: &mut Vec<u8>,
    ) -> Status {
        let error = match result {
            Ok(result) => {
                let description = entry.def.common.description;
                framed(out, frame, self, result.meta.as_deref(), |object| {
                    prompt_result(object, &result, frame.revision, description);
                });
                return Status::Ok;
            }
            Err(failure) => refused(
                self,
                "prompt",
                &entry.name,
                failure,
                |report| {
                    ProtocolError::invalid_params(format!(
                        "invalid arguments for prompt `{}`: {report}",
                        entry.name
                    ))
                },
                nothing,
            ),
        };
        error_reply(out, Some(frame.id), &error);
        Status::Ok
    }
}

/// A prompt's arguments: strings, though other JSON is taken as its text; `null` counts as absent.
pub(super) fn texts(arguments: Option<&str>) -> Result<Vec<(String, Variable)>, ProtocolError> {
    let Some(json) = arguments.filter(|json| *json != "null") else { return Ok(Vec::new()) };
    let values: BTreeMap<String, Value> = serde_json::from_str(json)
        .map_err(|_| ProtocolError::invalid_params("`arguments` is not an object"))?;
    let text = |(name, value): (String, Value)| match value {
        Value::Null => None,
        Value::String(text) => Some((name, Variable::One(text))),
        other => Some((name, Variable::One(other.to_string()))),
    };
    Ok(values.into_iter().filter_map(text).collect())
}
