//! `completion/complete`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    MayAsk, Refusal, Request, Status,
    reply::{Frame, framed, nothing, refused},
    run::{Begun, Drive, drive},
    tool::unknown,
};
use crate::{
    extract::{AnyArg, Completion, Flow, Outcome, prefixed},
    jsonrpc::{ProtocolError, array, error_reply, string},
    reply::Failure,
    server::Server,
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

impl Server {
    pub(super) fn complete(&self, request: Request<'_>, out: &mut Vec<u8>) -> Result<Begun, Refusal> {
        let reference: Reference = member(request.params.reference, "ref")?;
        let argument: Argument = member(request.params.argument, "argument")?;
        let chosen: Chosen = match request.params.context {
            None => Chosen::default(),
            some => member(some, "context")?,
        };
        let registry = self.registry();
        let (what, args, choices, state) = match &reference {
            Reference::Prompt { name } => {
                let found = registry.prompt(name).filter(|p| request.viewer().sees(p.def.common.scopes));
                let Some(entry) = found else {
                    let near = registry.nearest_prompt(name, request.viewer());
                    return Err(ProtocolError::invalid_params(unknown("prompt", name, near)).into());
                };
                let at = position(entry.def.common.args, &argument.name);
                (name, entry.def.common.args, at.map(|at| entry.choices(at)), &entry.state)
            }
            Reference::Resource { uri } => {
                let found = registry.template(uri).filter(|r| request.viewer().sees(r.def.common.scopes));
                let Some(entry) = found else {
                    return Err(ProtocolError::invalid_params(unknown("resource template", uri, None)).into());
                };
                let at = position(entry.def.common.args, &argument.name);
                (uri, entry.def.common.args, at.map(|at| entry.choices(at)), &entry.state)
            }
        };
        let Some(at) = position(args, &argument.name) else {
            let text = format!("`{what}` has no argument `{}`", argument.name);
            return Err(ProtocolError::invalid_params(text).into());
        };
        let completer = args.get(at).and_then(|arg| arg.completer());
        let outcome: Outcome<Vec<String>> = match completer {
            None => {
                Ok(Flow::Ready(prefixed(choices.into_iter().flatten().map(String::as_str), &argument.value)))
            }
            Some(completer) => {
                let completion = Completion {
                    argument: argument.name,
                    value: argument.value,
                    arguments: chosen.arguments,
                };
                let context = request.context(self, state, MayAsk::No);
                let values = completer(Some((completion, context))).outcome;
                Ok(values.map_or_else(|| Flow::Ready(Vec::new()), Flow::Pending))
            }
        };
        let (revision, what) = (request.revision, what.clone());
        let going = Drive::without_rounds(self, request.frame());
        Ok(drive(outcome, going, out, move |server, result, id, out| {
            server.finish_completion(&what, Frame { id, revision }, result, out)
        }))
    }

    fn finish_completion(
        &self,
        what: &str,
        frame: Frame<'_>,
        result: Result<Vec<String>, Failure>,
        out: &mut Vec<u8>,
    ) -> Status {
        let error = match result {
            Ok(values) => {
                framed(out, frame, self, None, |object| {
                    object.object("completion", |c| {
                        let shown = &values[..values.len().min(MOST)];
                        array(c.key("values"), shown, |out, value| string(out, value));
                        c.value("total", &values.len()).value("hasMore", &(values.len() > MOST));
                    });
                });
                return Status::Ok;
            }
            Err(failure) => {
                refused(self, "completion of", what, failure, ProtocolError::invalid_params, nothing)
            }
        };
        error_reply(out, Some(frame.id), &error);
        Status::Ok
    }
}

fn position(args: &[&'static dyn AnyArg], name: &str) -> Option<usize> {
    args.iter().position(|arg| arg.name() == name)
}
