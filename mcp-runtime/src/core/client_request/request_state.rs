//! `requestState`: the state that a call ending with `input_required` needs when the client retries it. It is sealed, so
//! that it opens only for the same call of the same caller, and expires.
//!
//! See [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::{
    core::{
        connection::Principal,
        context::{InputResponse, RawJson, RequestState, Retry},
        crypto::{Seal, random_id},
        jsonrpc::ProtocolError,
        unix_time::{unix_millis, unix_seconds},
    },
    schema::canonical,
};

/// How often one call may end with `input_required`.
const MAX_ROUND_TRIPS: u8 = 16;
/// Bytes of state that a client may have to carry.
const MAX_STATE: usize = 64 << 10;
/// Seconds that the client may take to retry the call.
const LIFETIME: u64 = 15 * 60;
/// Seconds by which replicas' clocks may differ.
const SKEW: u64 = 60;

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
        part(&Sha256::digest(canonical(call.arguments)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{crypto::test_key, server::Server};

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
