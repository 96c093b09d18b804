//! Rounds of the stateless era: a call that needs answers ends with its questions and a sealed memory of itself, and
//! starts again when both come back.
//!
//! See [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{json, value::RawValue};
use sha2::{Digest as _, Sha256};

use super::{
    Refusal, Request, Status,
    reply::{Frame, framed_as},
};
use crate::{
    context::{
        Caller, ClientFeature, Context, MAX_ROUNDS, Memory, Question, Raw, Round, Unanswered, input_request,
    },
    jsonrpc::{ProtocolError, error_reply, string, text_of},
    protocol::MISSING_CLIENT_CAPABILITY,
    server::Server,
};

/// Bytes of memory that a client may be asked to carry.
const MAX_MEMORY: usize = 64 << 10;
/// Seconds that it may take for its next round.
const LIFETIME: u64 = 15 * 60;
/// Seconds by which replicas' clocks may differ.
const SKEW: u64 = 60;
/// Levels of arguments whose spelling does not matter.
const MAX_DEPTH: usize = 64;

/// What a call is about: its memory is of no use for any other.
#[derive(Debug, Clone)]
pub(super) struct Subject<'a> {
    pub(super) method: &'static str,
    /// Of the tool or prompt; the URI of a resource.
    pub(super) name: Cow<'a, str>,
    /// Raw JSON.
    pub(super) arguments: Cow<'a, str>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(method: &'static str, name: &'a str, arguments: &'a str) -> Self {
        Self { method, name: Cow::Borrowed(name), arguments: Cow::Borrowed(arguments) }
    }

    /// A method that cannot have rounds.
    pub(super) const NONE: Subject<'static> =
        Subject { method: "", name: Cow::Borrowed(""), arguments: Cow::Borrowed("") };

    pub(super) fn into_owned(self) -> Subject<'static> {
        Subject {
            method: self.method,
            name: Cow::Owned(self.name.into_owned()),
            arguments: Cow::Owned(self.arguments.into_owned()),
        }
    }

    /// What the memory is sealed with: together with the caller, no other call has the same.
    fn bound(&self, server: &Server, caller: Option<&Caller>) -> Vec<u8> {
        let mut bound = Vec::with_capacity(256);
        let mut part = |bytes: &[u8]| {
            bound.extend((bytes.len() as u64).to_le_bytes());
            bound.extend(bytes);
        };
        part(server.name().as_bytes());
        part(self.method.as_bytes());
        part(self.name.as_bytes());
        let mut canonical = Vec::with_capacity(self.arguments.len());
        canonicalise(&self.arguments, MAX_DEPTH, &mut canonical);
        part(&Sha256::digest(&canonical));
        if let Some(caller) = caller {
            part(caller.issuer.as_bytes());
            part(caller.subject.as_bytes());
        }
        bound
    }
}

/// One spelling for all JSON texts that mean the same: keys sorted, no space, numbers by value.
fn canonicalise(json: &str, depth: usize, out: &mut Vec<u8>) {
    let json = json.trim();
    match (depth.checked_sub(1), json.as_bytes().first()) {
        (Some(depth), Some(b'{')) => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap_or_default();
            out.push(b'{');
            for (key, value) in members {
                string(out, &key);
                out.push(b':');
                canonicalise(value.get(), depth, out);
                out.push(b',');
            }
            out.push(b'}');
        }
        (Some(depth), Some(b'[')) => {
            let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            out.push(b'[');
            for item in items {
                canonicalise(item.get(), depth, out);
                out.push(b',');
            }
            out.push(b']');
        }
        (Some(_), Some(b'"')) => match serde_json::from_str::<String>(json) {
            Ok(text) => string(out, &text),
            Err(_) => out.extend_from_slice(json.as_bytes()),
        },
        (Some(_), Some(b'-' | b'0'..=b'9')) => out.extend_from_slice(number(json).as_bytes()),
        _ => out.extend_from_slice(json.as_bytes()),
    }
}

/// `1`, `1.0` and `1e0` are one number; what is too large to be told apart stays as it is written.
fn number(json: &str) -> Cow<'_, str> {
    if json.parse::<i128>().is_ok() && json != "-0" {
        return Cow::Borrowed(json);
    }
    match json.parse::<f64>() {
        Ok(float) if float.abs() < 9e15 => Cow::Owned(format!("{}", float + 0.0)),
        _ => Cow::Borrowed(json),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Server {
    /// What came back with a request; `None` for a call that begins.
    pub(super) fn resume(
        &self,
        request: &Request<'_>,
        subject: &Subject<'_>,
    ) -> Result<Option<Arc<Round>>, ProtocolError> {
        let params = &request.params;
        if !request.revision.is_modern()
            || (params.input_responses.is_none() && params.request_state.is_none())
        {
            return Ok(None);
        }
        let responses: BTreeMap<String, Raw> = match params.input_responses {
            None => BTreeMap::new(),
            Some(raw) => Some(raw.get())
                .filter(|json| json.starts_with('{'))
                .and_then(|json| serde_json::from_str(json).ok())
                .ok_or_else(|| ProtocolError::invalid_params("`inputResponses` is not an object"))?,
        };
        let memory = match params.request_state {
            None => None,
            Some(raw) => {
                let text = text_of(raw)
                    .ok_or_else(|| ProtocolError::invalid_params("`requestState` is not a string"))?;
                let caller = request.peer.caller.as_deref();
                Some(self.recall(&text, subject, caller, now()).ok_or_else(|| {
                    ProtocolError::invalid_params(
                        "`requestState` does not belong to this call, or has expired\nstart the call anew",
                    )
                })?)
            }
        };
        Ok(Some(Arc::new(Round { memory, responses })))
    }

    fn recall(&self, text: &str, subject: &Subject<'_>, caller: Option<&Caller>, now: u64) -> Option<Memory> {
        // nothing of ours is longer, before it became base64
        if text.len() > 2 * MAX_MEMORY {
            return None;
        }
        let opened = self.states().open(text.as_bytes(), &subject.bound(self, caller))?;
        let memory: Memory = serde_json::from_slice(&opened.plain).ok()?;
        let alive = memory.expires.saturating_add(SKEW) > now && memory.issued <= now.saturating_add(SKEW);
        alive.then_some(memory)
    }

    /// Ends a call that waits for answers: asks for them, or says what its client lacks.
    pub(super) fn end_round(
        &self,
        context: &Context,
        subject: &Subject<'_>,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Status {
        let refused = match context.inner().asks.unanswered() {
            Unanswered::Missing(features) => {
                error_reply(out, Some(frame.id), &lacking(&features));
                return Status::BadRequest;
            }
            Unanswered::Asked(questions, memory) => {
                match self.remember(memory, subject, context.caller(), now()) {
                    Ok(state) => {
                        ask(out, frame, self, &questions, &state);
                        return Status::Ok;
                    }
                    Err(error) => error,
                }
            }
        };
        tracing::error!(method = subject.method, name = &*subject.name, error = %refused, "call failed");
        error_reply(out, Some(frame.id), &refused);
        Status::Ok
    }

    /// Seals what the next round must know.
    fn remember(
        &self,
        mut memory: Memory,
        subject: &Subject<'_>,
        caller: Option<&Caller>,
        now: u64,
    ) -> Result<String, ProtocolError> {
        let name = &subject.name;
        if memory.round > MAX_ROUNDS {
            let text = format!("`{name}` asked its client in more than {MAX_ROUNDS} rounds");
            return Err(ProtocolError::internal(text));
        }
        let unsealed = |_| ProtocolError::internal("the state of the call cannot be sealed");
        if memory.chain.is_empty() {
            let mut random = [0; 16];
            getrandom::fill(&mut random).map_err(|_| ProtocolError::internal("there is no randomness"))?;
            memory.chain = format!("{:032x}", u128::from_ne_bytes(random));
        }
        (memory.issued, memory.expires) = (now, now + LIFETIME);
        let plain = serde_json::to_vec(&memory).map_err(|error| {
            ProtocolError::internal(format!("the state of the call cannot be written: {error}"))
        })?;
        if plain.len() > MAX_MEMORY {
            let text = format!(
                "`{name}` remembers {} bytes between rounds, more than the {MAX_MEMORY} that fit\nthe largest is `{}`",
                plain.len(),
                largest(&memory)
            );
            return Err(ProtocolError::internal(text));
        }
        self.states().seal(&plain, &subject.bound(self, caller)).map_err(unsealed)
    }
}

/// The key of the largest thing that is remembered.
fn largest(memory: &Memory) -> &str {
    let answers = memory.answers.iter().map(|(key, answer)| (key, answer.value.get().len()));
    let saved = memory.saved.iter().map(|(key, value)| (key, value.get().len()));
    answers.chain(saved).max_by_key(|(_, bytes)| *bytes).map_or("", |(key, _)| key)
}

impl Request<'_> {
    /// Refuses a call of something that needs more than the client can do.
    pub(super) fn check_features(&self, required: &[ClientFeature]) -> Result<(), Refusal> {
        if required.is_empty() {
            return Ok(());
        }
        let capabilities = self.client().capabilities();
        let missing: Vec<_> =
            required.iter().copied().filter(|feature| !feature.is_in(&capabilities)).collect();
        if missing.is_empty() {
            Ok(())
        } else if self.revision.is_modern() {
            Err(Refusal::bad_request(lacking(&missing)))
        } else {
            Err(ProtocolError::internal(undeclared(&missing)).into())
        }
    }
}

fn undeclared(features: &[ClientFeature]) -> String {
    let names: Vec<_> = features.iter().map(|feature| format!("`{feature}`")).collect();
    format!("the client does not declare {}, which this request needs", names.join(", "))
}

/// `-32021`: what the client would have to declare.
pub(super) fn lacking(features: &[ClientFeature]) -> ProtocolError {
    let text = undeclared(features);
    ProtocolError::new(MISSING_CLIENT_CAPABILITY, text)
        .with_data(json!({ "requiredCapabilities": ClientFeature::required(features) }))
}

fn ask(out: &mut Vec<u8>, frame: Frame<'_>, server: &Server, questions: &[Question], state: &str) {
    framed_as(r#""input_required""#, out, frame, server, None, |object| {
        object.object("inputRequests", |requests| {
            for Question { key, method, params, .. } in questions {
                input_request(requests, key, method, params);
            }
        });
        object.str("requestState", state);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(json: &str) -> String {
        let mut out = Vec::new();
        canonicalise(json, MAX_DEPTH, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn texts_that_mean_the_same_are_the_same() {
        let same = [
            (r#"{"a":1,"b":[true,null]}"#, " { \"b\" : [ true , null ], \"a\" : 1.0 } "),
            (r#"{"a":"é"}"#, r#"{"\u0061":"\u00e9"}"#),
            ("[0]", "[-0]"),
            ("[100]", "[1e2]"),
            ("{}", " {} "),
        ];
        for (one, other) in same {
            assert_eq!(canonical(one), canonical(other));
        }
        let different =
            [("[1]", "[2]"), ("[1]", r#"["1"]"#), (r#"{"a":1}"#, r#"{"b":1}"#), ("[1,2]", "[2,1]")];
        for (one, other) in different {
            assert_ne!(canonical(one), canonical(other));
        }
        let (one, other) = ("[100000000000000000000000001]", "[100000000000000000000000002]");
        assert_ne!(canonical(one), canonical(other));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(!canonical(&deep).is_empty());
    }

    #[test]
    fn memory_opens_only_for_its_own_call_and_time() {
        let server = Server::builder("t", "1").keys([[1; 32]]).build().unwrap();
        let (alice, bob) = (Caller::new("i", "alice"), Caller::new("i", "bob"));
        let subject = Subject::new("tools/call", "pay", r#"{"to":"bob"}"#);
        let state = server.remember(Memory::default(), &subject, Some(&alice), 1000).unwrap();
        let opens = |server: &Server, subject: &Subject<'_>, caller, now| {
            server.recall(&state, subject, caller, now).is_some()
        };
        assert!(opens(&server, &subject, Some(&alice), 1000));
        assert!(opens(&server, &Subject::new("tools/call", "pay", r#"{ "to": "bob" }"#), Some(&alice), 1000));
        assert!(opens(&server, &subject, Some(&alice), 1000 + LIFETIME + SKEW - 1));
        assert!(!opens(&server, &subject, Some(&alice), 1000 + LIFETIME + SKEW), "expired");
        assert!(!opens(&server, &subject, Some(&alice), 900), "of the future");
        assert!(!opens(&server, &subject, Some(&bob), 1000), "another caller");
        assert!(!opens(&server, &subject, None, 1000), "nobody");
        let others = [
            Subject::new("tools/call", "pay", r#"{"to":"eve"}"#),
            Subject::new("tools/call", "tip", r#"{"to":"bob"}"#),
            Subject::new("prompts/get", "pay", r#"{"to":"bob"}"#),
        ];
        for other in others {
            assert!(!opens(&server, &other, Some(&alice), 1000), "{other:?}");
        }
        for (name, key) in [("other", 1), ("t", 2)] {
            let other = Server::builder(name, "1").keys([[key; 32]]).build().unwrap();
            assert!(!opens(&other, &subject, Some(&alice), 1000), "another server");
        }
    }
}
