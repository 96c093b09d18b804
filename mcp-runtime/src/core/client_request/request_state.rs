//! `requestState`: the state that a call ending with `input_required` needs when the client retries it. It is sealed, so
//! that it opens only for the same call of the same caller, and expires.
//!
//! See [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::{borrow::Cow, ops::Range, time::SystemTime};

use sha2::{Digest as _, Sha256};

use crate::{
    core::{
        connection::Principal,
        context::{InputResponse, RawJson, RequestState, Retry},
        crypto::{Seal, random_id},
        jsonrpc::{ProtocolError, write_string},
        sort::sort_by,
        unix_time::{unix_millis, unix_seconds},
    },
    schema::{Token, Tokens},
};

/// How often one call may end with `input_required`.
const MAX_ROUND_TRIPS: u8 = 16;
/// Bytes of state that a client may have to carry.
const MAX_STATE: usize = 64 << 10;
/// Seconds that the client may take to retry the call.
const LIFETIME: u64 = 15 * 60;
/// Seconds by which replicas' clocks may differ.
const SKEW: u64 = 60;
/// Levels of nested arguments that are canonicalised; deeper values count as they are written.
const MAX_DEPTH: usize = 32;

/// The response that a retry brought for one client request.
#[derive(Default)]
pub(super) struct ReturnedResponse {
    pub(super) value: Option<RawJson>,
    /// How many responses before it were malformed.
    pub(super) attempts: u8,
}

impl Retry {
    /// The response to the request with that key and digest.
    pub(super) fn find_response(&self, key: &str, digest: &str) -> ReturnedResponse {
        let returned = || self.responses.get(key).cloned();
        let Some(state) = &self.state else {
            // a client may have lost the state of its first round trip; which request it answers cannot be checked
            return ReturnedResponse { value: returned(), attempts: 0 };
        };
        if let Some(response) = state.responses.get(key).filter(|response| response.digest == digest) {
            return ReturnedResponse { value: Some(response.value.clone()), attempts: 0 };
        }
        // a request that has changed is a new one, and a response to a request that was not sent is ignored
        match state.requests.get(key).filter(|request| request.digest == digest) {
            Some(request) => ReturnedResponse { value: returned(), attempts: request.attempts },
            None => ReturnedResponse::default(),
        }
    }

    /// Whether the responses, if there are any, came with the state of their call.
    pub(crate) fn is_identified(&self) -> bool {
        self.state.is_some() || self.responses.is_empty()
    }

    /// The state of the next round trip, without what this run adds.
    pub(crate) fn carry_over(&self) -> RequestState {
        let Some(state) = &self.state else { return RequestState::default() };
        let mut next = state.clone();
        for (key, request) in std::mem::take(&mut next.requests) {
            if let Some(value) = self.responses.get(&key) {
                next.responses.insert(key, InputResponse { digest: request.digest, value: value.clone() });
            }
        }
        next
    }
}

/// The call that a state belongs to: it opens for no other.
#[derive(Debug, Clone)]
pub(crate) struct CallBinding<'a> {
    pub(crate) method: &'static str,
    /// The name of the tool or prompt; the URI of a resource.
    pub(crate) name: &'a str,
    /// Raw JSON.
    pub(crate) arguments: &'a str,
}

impl<'a> CallBinding<'a> {
    pub(crate) fn new(method: &'static str, name: &'a str, arguments: &'a str) -> Self {
        Self { method, name, arguments }
    }
}

/// Seals and opens states for one caller of a server.
pub(crate) struct StateSealer<'a> {
    pub(crate) seal: &'a Seal,
    /// The server's name.
    pub(crate) server: &'a str,
    pub(crate) caller: Option<&'a Principal>,
    /// Seconds since 1970.
    pub(crate) now: u64,
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    unix_seconds(SystemTime::now())
}

impl StateSealer<'_> {
    /// The associated data of the encryption: equal only for equal calls of the same caller.
    pub(crate) fn associated_data(&self, call: &CallBinding<'_>) -> Vec<u8> {
        let mut data = Vec::with_capacity(256);
        let mut part = |bytes: &[u8]| {
            data.extend((bytes.len() as u64).to_le_bytes());
            data.extend(bytes);
        };
        part(self.server.as_bytes());
        part(call.method.as_bytes());
        part(call.name.as_bytes());
        let mut canonical = Vec::with_capacity(call.arguments.len());
        canonicalise(call.arguments, &mut canonical);
        part(&Sha256::digest(&canonical));
        if let Some(caller) = self.caller {
            part(caller.issuer.as_bytes());
            part(caller.subject.as_bytes());
        }
        data
    }

    /// Writes `requestState` on the wire.
    ///
    /// # Errors
    /// The state is too large, or the call has had too many round trips.
    pub(crate) fn seal(
        &self,
        mut state: RequestState,
        call: &CallBinding<'_>,
    ) -> Result<String, ProtocolError> {
        let name = call.name;
        if state.round_trips > MAX_ROUND_TRIPS {
            let text = format!("`{name}` took more than {MAX_ROUND_TRIPS} round trips to its client");
            return Err(ProtocolError::internal(text));
        }
        if state.call_id.is_empty() {
            state.call_id = random_id()
                .map_err(|_| ProtocolError::internal("the operating system provides no randomness"))?;
            state.started = unix_millis(SystemTime::now());
        }
        (state.issued, state.expires) = (self.now, self.now + LIFETIME);
        let plain = serde_json::to_vec(&state).map_err(|error| {
            ProtocolError::internal(format!("the state of the call cannot be written: {error}"))
        })?;
        if plain.len() > MAX_STATE {
            let text = format!(
                "the state of `{name}` has {} bytes, more than the {MAX_STATE} that a client may carry\nthe largest is `{}`",
                plain.len(),
                find_largest(&state)
            );
            return Err(ProtocolError::internal(text));
        }
        self.seal
            .seal(&plain, &self.associated_data(call))
            .map_err(|_| ProtocolError::internal("the state of the call cannot be sealed"))
    }

    /// Reads `requestState` on the wire; `None` if it was not sealed for this call, or has expired.
    pub(crate) fn open(&self, text: &str, call: &CallBinding<'_>) -> Option<RequestState> {
        // base64 adds a third, so a longer text cannot be a state
        if text.len() > 2 * MAX_STATE {
            return None;
        }
        let opened = self.seal.open(text.as_bytes(), &self.associated_data(call))?;
        let state: RequestState = serde_json::from_slice(&opened.plain).ok()?;
        let expires = state.expires.saturating_add(SKEW);
        (expires > self.now && state.issued <= self.now.saturating_add(SKEW)).then_some(state)
    }
}

/// The key of the largest value.
fn find_largest(state: &RequestState) -> &str {
    let responses = state.responses.iter().map(|(key, response)| (key, response.value.get().len()));
    let saved = state.saved.iter().map(|(key, value)| (key, value.get().len()));
    responses.chain(saved).max_by_key(|(_, bytes)| *bytes).map_or("", |(key, _)| key)
}

/// An array or an object that is being written: where it begins in the output, and for an object its members by key, as
/// ranges of the output.
type OpenValue = (usize, Option<Vec<(String, Range<usize>)>>);

/// Writes equal JSON values as equal bytes: keys sorted, no whitespace, numbers by value. Takes one pass over the text,
/// since a client may send any text with any state.
fn canonicalise(json: &str, out: &mut Vec<u8>) {
    let mut open: Vec<OpenValue> = Vec::new();
    let end_value = |open: &mut Vec<OpenValue>, out: &mut Vec<u8>| match open.last_mut() {
        Some((_, Some(members))) => {
            if let Some((_, range)) = members.last_mut() {
                range.end = out.len();
            }
        }
        Some((_, None)) => out.push(b','),
        None => {}
    };
    let mut tokens = Tokens::new(json);
    while let Some(token) = tokens.next() {
        match token {
            Token::Open { at, .. } if open.len() == MAX_DEPTH => {
                let end = skip_value(&mut tokens);
                out.extend_from_slice(json.as_bytes().get(at..end).unwrap_or_default());
                end_value(&mut open, out);
            }
            Token::Open { is_object: true, .. } => open.push((out.len(), Some(Vec::new()))),
            Token::Open { is_object: false, .. } => {
                open.push((out.len(), None));
                out.push(b'[');
            }
            Token::Key { range, .. } => {
                let raw = json.get(range).unwrap_or_default();
                let key = serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned());
                if let Some((_, Some(members))) = open.last_mut() {
                    members.push((key, out.len()..out.len()));
                }
            }
            Token::Close { .. } => {
                match open.pop() {
                    Some((start, Some(mut members))) => {
                        // of equal keys the last counts
                        sort_by(&mut members, |(one, _), (other, _)| one.cmp(other));
                        let values = out.split_off(start);
                        out.push(b'{');
                        for (key, range) in members {
                            write_string(out, &key);
                            out.push(b':');
                            let value = values.get(range.start - start..range.end - start);
                            out.extend_from_slice(value.unwrap_or_default());
                            out.push(b',');
                        }
                        out.push(b'}');
                    }
                    _ => out.push(b']'),
                }
                end_value(&mut open, out);
            }
            Token::Scalar(range) => {
                let raw = json.get(range).unwrap_or_default();
                match raw.as_bytes().first() {
                    Some(b'"') => match serde_json::from_str::<String>(raw) {
                        Ok(text) => write_string(out, &text),
                        Err(_) => out.extend_from_slice(raw.as_bytes()),
                    },
                    Some(b'-' | b'0'..=b'9') => out.extend_from_slice(number(raw).as_bytes()),
                    _ => out.extend_from_slice(raw.as_bytes()),
                }
                end_value(&mut open, out);
            }
            Token::Comma => {}
        }
    }
}

/// Where the array or object ends whose opening token was the last one.
fn skip_value(tokens: &mut Tokens<'_>) -> usize {
    let mut depth = 1;
    for token in tokens {
        match token {
            Token::Open { .. } => depth += 1,
            Token::Close { end, .. } => {
                depth -= 1;
                if depth == 0 {
                    return end;
                }
            }
            _ => {}
        }
    }
    0
}

/// A number as its significant digits and the power of ten of the last one, which are the same for `1`, `1.0` and `1e0`.
fn number(json: &str) -> Cow<'_, str> {
    let (sign, magnitude) = json.strip_prefix('-').map_or(("", json), |magnitude| ("-", magnitude));
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    // of the last digit that is written; that of the last significant one is higher by the zeros after it
    let last = exponent.parse::<i64>().ok().and_then(|e| e.checked_sub_unsigned(fraction.len() as u64));
    let last = last.and_then(|last| last.checked_add_unsigned((digits.len() - significant.len()) as u64));
    match (significant.trim_start_matches('0'), last) {
        ("", _) => Cow::Borrowed("0"),
        (significant, Some(last)) => Cow::Owned(format!("{sign}{significant}e{last}")),
        // no two programs agree on the value of such a number
        (_, None) => Cow::Borrowed(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{crypto::test_key, server::Server};

    fn canonical(json: &str) -> String {
        let mut out = Vec::new();
        canonicalise(json, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn equal_json_values_have_equal_bytes() {
        let same = [
            (r#"{"a":1,"b":[true,null]}"#, " { \"b\" : [ true , null ], \"a\" : 1.0 } "),
            (r#"{"a":"é"}"#, r#"{"\u0061":"\u00e9"}"#),
            ("[0]", "[-0]"),
            ("[100]", "[1e2]"),
            ("{}", " {} "),
            (r#"{"b":[{"d":{},"c":[]}],"a":0}"#, r#"{"a":0,"b":[{"c":[],"d":{}}]}"#),
            ("[-0.0e5, 0.10, -12.50e1, 1e-3]", "[0,1e-1,-125,0.001]"),
            ("[1E+21, 0.0001234e+6]", "[1000000000000000000000,123.4]"),
        ];
        for (one, other) in same {
            assert_eq!(canonical(one), canonical(other));
        }
        let different = [
            ("[1]", "[2]"),
            ("[1]", "[-1]"),
            ("[10]", "[0.1]"),
            ("[1.5]", "[15]"),
            ("[1]", r#"["1"]"#),
            (r#"{"a":1}"#, r#"{"b":1}"#),
            ("[1,2]", "[2,1]"),
        ];
        for (one, other) in different {
            assert_ne!(canonical(one), canonical(other));
        }
        let (one, other) = ("[100000000000000000000000001]", "[100000000000000000000000002]");
        assert_ne!(canonical(one), canonical(other));
        // neither grows with its exponent
        for huge in ["[1e999999999]", "[1e-99999999999999999999]"] {
            assert!(canonical(huge).len() <= huge.len() + 1);
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(canonical(&deep).matches('[').count(), 100_000);
        let objects = format!("{}1{}", "{\"b\":0,\"a\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(canonical(&objects).matches('{').count(), 100_000);
    }

    #[test]
    fn a_state_opens_only_for_its_own_call_until_it_expires() {
        let server = Server::builder("t", "1").stores(|stores| stores.keys([test_key(1)])).build().unwrap();
        let (alice, bob) = (Principal::new("i", "alice"), Principal::new("i", "bob"));
        let call = CallBinding::new("tools/call", "pay", r#"{"to":"bob"}"#);
        let sealed =
            StateSealer { seal: server.states(), server: server.name(), caller: Some(&alice), now: 1000 }
                .seal(RequestState::default(), &call)
                .unwrap();
        let opens = |server: &Server, call: &CallBinding<'_>, caller, now| {
            let sealer = StateSealer { seal: server.states(), server: server.name(), caller, now };
            sealer.open(&sealed, call).is_some()
        };
        let respelled = CallBinding::new("tools/call", "pay", r#"{ "to": "bob" }"#);
        assert!(opens(&server, &call, Some(&alice), 1000));
        assert!(opens(&server, &respelled, Some(&alice), 1000));
        assert!(opens(&server, &call, Some(&alice), 1000 + LIFETIME + SKEW - 1));
        assert!(!opens(&server, &call, Some(&alice), 1000 + LIFETIME + SKEW), "expired");
        assert!(!opens(&server, &call, Some(&alice), 900), "of the future");
        assert!(!opens(&server, &call, Some(&bob), 1000), "another caller");
        assert!(!opens(&server, &call, None, 1000), "no caller");
        let others = [
            CallBinding::new("tools/call", "pay", r#"{"to":"eve"}"#),
            CallBinding::new("tools/call", "tip", r#"{"to":"bob"}"#),
            CallBinding::new("prompts/get", "pay", r#"{"to":"bob"}"#),
        ];
        for other in others {
            assert!(!opens(&server, &other, Some(&alice), 1000), "{other:?}");
        }
        for (name, key) in [("other", 1), ("t", 2)] {
            let other =
                Server::builder(name, "1").stores(|stores| stores.keys([test_key(key)])).build().unwrap();
            assert!(!opens(&other, &call, Some(&alice), 1000), "another server");
        }
    }
}
