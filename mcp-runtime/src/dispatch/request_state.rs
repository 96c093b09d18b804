//! Multi round-trip requests of 2026-07-28: a call that needs input ends with its requests to the client and a sealed
//! `requestState`, and starts again when both come back.
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
    Request,
    response::{Reply, ResultBody},
};
use crate::{
    connection::Caller,
    context::{ClientFeature, Context, MAX_ROUNDS, Raw, RequestState, Round},
    invoke::InputRequired,
    jsonrpc::{ProtocolError, decode_string, write_string},
    protocol::MISSING_CLIENT_CAPABILITY,
    server::Server,
};

/// Bytes of state that a client may be asked to carry.
const MAX_STATE: usize = 64 << 10;
/// Seconds that it may take for its next round.
const LIFETIME: u64 = 15 * 60;
/// Seconds by which replicas' clocks may differ.
const SKEW: u64 = 60;
/// Levels of arguments whose spelling does not matter.
const MAX_DEPTH: usize = 64;

/// What a call is about: its state is of no use for any other.
#[derive(Debug, Clone)]
pub(super) struct BoundTo<'a> {
    method: &'static str,
    /// Of the tool or prompt; the URI of a resource.
    name: &'a str,
    /// Raw JSON.
    arguments: &'a str,
}

impl<'a> BoundTo<'a> {
    pub(super) fn new(method: &'static str, name: &'a str, arguments: &'a str) -> Self {
        Self { method, name, arguments }
    }

    /// What the state is sealed with: together with the caller, no other call has the same.
    fn bytes(&self, server: &Server, caller: Option<&Caller>) -> Vec<u8> {
        let mut bound = Vec::with_capacity(256);
        let mut part = |bytes: &[u8]| {
            bound.extend((bytes.len() as u64).to_le_bytes());
            bound.extend(bytes);
        };
        part(server.name().as_bytes());
        part(self.method.as_bytes());
        part(self.name.as_bytes());
        let mut canonical = Vec::with_capacity(self.arguments.len());
        canonicalise(self.arguments, MAX_DEPTH, &mut canonical);
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
                write_string(out, &key);
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
            Ok(text) => write_string(out, &text),
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
    /// What came back with a request; absent for a call that begins.
    pub(super) fn open_state<'b>(
        &self,
        request: &Request<'_>,
        bound: impl FnOnce() -> BoundTo<'b>,
    ) -> Result<Arc<Round>, ProtocolError> {
        let params = &request.params;
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
                let text = decode_string(raw)
                    .ok_or_else(|| ProtocolError::invalid_params("`requestState` is not a string"))?;
                let caller = request.context.caller.as_deref();
                Some(self.open(&text, &bound(), caller, now()).ok_or_else(|| {
                    ProtocolError::invalid_params(
                        "`requestState` does not belong to this call, or has expired\nstart the call anew",
                    )
                })?)
            }
        };
        Ok(Arc::new(Round { memory, responses }))
    }

    fn open(
        &self,
        text: &str,
        bound: &BoundTo<'_>,
        caller: Option<&Caller>,
        now: u64,
    ) -> Option<RequestState> {
        // no state is longer, before it became base64
        if text.len() > 2 * MAX_STATE {
            return None;
        }
        let opened = self.states().open(text.as_bytes(), &bound.bytes(self, caller))?;
        let memory: RequestState = serde_json::from_slice(&opened.plain).ok()?;
        let alive = memory.expires.saturating_add(SKEW) > now && memory.issued <= now.saturating_add(SKEW);
        alive.then_some(memory)
    }

    /// The reply to a call that waits for input: the requests, or what its client lacks.
    pub(super) fn input_required(
        &self,
        bound: &BoundTo<'_>,
        context: &Context,
        input: InputRequired,
    ) -> Reply {
        // nothing more is sent for the call from here on
        context.inner().cancel.end();
        let (requests, state) = match input {
            InputRequired::Missing(features) => return Reply::bad_request(lacking(&features)),
            InputRequired::Requests(requests, state) => (requests, state),
        };
        match self.seal(state, bound, context.caller(), now()) {
            Ok(state) => ResultBody::InputRequired { requests, state }.into(),
            Err(error) => {
                let BoundTo { method, name, .. } = bound;
                tracing::error!(method, name, %error, "call failed");
                error.into()
            }
        }
    }

    /// Seals what the next round must know.
    fn seal(
        &self,
        mut memory: RequestState,
        bound: &BoundTo<'_>,
        caller: Option<&Caller>,
        now: u64,
    ) -> Result<String, ProtocolError> {
        let name = bound.name;
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
        if plain.len() > MAX_STATE {
            let text = format!(
                "`{name}` remembers {} bytes between rounds, more than the {MAX_STATE} that fit\nthe largest is `{}`",
                plain.len(),
                largest(&memory)
            );
            return Err(ProtocolError::internal(text));
        }
        self.states().seal(&plain, &bound.bytes(self, caller)).map_err(unsealed)
    }
}

/// The key of the largest thing in it.
fn largest(memory: &RequestState) -> &str {
    let answers = memory.answers.iter().map(|(key, answer)| (key, answer.value.get().len()));
    let saved = memory.saved.iter().map(|(key, value)| (key, value.get().len()));
    answers.chain(saved).max_by_key(|(_, bytes)| *bytes).map_or("", |(key, _)| key)
}

impl Request<'_> {
    /// Refuses a call of something that needs more than the client can do.
    pub(super) fn check_features(&self, required: &[ClientFeature]) -> Result<(), Reply> {
        let capabilities = self.client().capabilities();
        let missing: Vec<_> =
            required.iter().copied().filter(|feature| !feature.is_in(&capabilities)).collect();
        if missing.is_empty() {
            Ok(())
        } else if self.revision.is_modern() {
            Err(Reply::bad_request(lacking(&missing)))
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
    fn state_opens_only_for_its_own_call_and_time() {
        let server = Server::builder("t", "1").keys([[1; 32]]).build().unwrap();
        let (alice, bob) = (Caller::new("i", "alice"), Caller::new("i", "bob"));
        let subject = BoundTo::new("tools/call", "pay", r#"{"to":"bob"}"#);
        let state = server.seal(RequestState::default(), &subject, Some(&alice), 1000).unwrap();
        let opens = |server: &Server, subject: &BoundTo<'_>, caller, now| {
            server.open(&state, subject, caller, now).is_some()
        };
        assert!(opens(&server, &subject, Some(&alice), 1000));
        assert!(opens(&server, &BoundTo::new("tools/call", "pay", r#"{ "to": "bob" }"#), Some(&alice), 1000));
        assert!(opens(&server, &subject, Some(&alice), 1000 + LIFETIME + SKEW - 1));
        assert!(!opens(&server, &subject, Some(&alice), 1000 + LIFETIME + SKEW), "expired");
        assert!(!opens(&server, &subject, Some(&alice), 900), "of the future");
        assert!(!opens(&server, &subject, Some(&bob), 1000), "another caller");
        assert!(!opens(&server, &subject, None, 1000), "no caller");
        let others = [
            BoundTo::new("tools/call", "pay", r#"{"to":"eve"}"#),
            BoundTo::new("tools/call", "tip", r#"{"to":"bob"}"#),
            BoundTo::new("prompts/get", "pay", r#"{"to":"bob"}"#),
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
