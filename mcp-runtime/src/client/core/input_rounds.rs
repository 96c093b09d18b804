//! One request in rounds: a server that requires input gets the request again, with the answers of all rounds and its
//! `requestState` byte for byte, a limited number of times.
//!
//! See [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::request_params::RequestParams;

/// Rounds of one request.
const MAX_ROUNDS: u32 = 16;

/// What all results have in common.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultHead<'a> {
    #[serde(borrow)]
    pub(crate) result_type: Option<Cow<'a, str>>,
    input_requests: Option<Map<String, Value>>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

/// A request, and what has been answered so far.
#[derive(Debug)]
pub(crate) struct InputRounds {
    params: RequestParams,
    answers: Map<String, Value>,
    round: u32,
}

/// What the result of a round is.
#[derive(Debug)]
pub(crate) enum RoundOutcome {
    /// The result of the request.
    None,
    /// These requests must be answered, by key. Without any, the request is repeated as it is.
    Requests(Map<String, Value>),
}

impl InputRounds {
    pub(crate) fn new(params: RequestParams) -> Self {
        Self { params, answers: Map::new(), round: 0 }
    }

    /// The params of the next request.
    pub(crate) fn params(&self) -> &RequestParams {
        &self.params
    }

    /// Whether the request was sent more than once, so that its result depends on answers.
    #[cfg(feature = "client")]
    pub(crate) fn has_repeated(&self) -> bool {
        self.round > 0
    }

    /// Reads the result of a round.
    ///
    /// # Errors
    /// It is not a result, or there are too many rounds.
    pub(crate) fn take(&mut self, result: &str) -> Result<RoundOutcome, String> {
        let head: ResultHead<'_> = serde_json::from_str(result).map_err(|error| error.to_string())?;
        if head.result_type.as_deref() != Some("input_required") {
            return Ok(RoundOutcome::None);
        }
        let requests = head.input_requests.unwrap_or_default();
        if requests.is_empty() && head.request_state.is_none() {
            return Err("the server requires input, but names none".to_owned());
        }
        self.round += 1;
        if self.round == MAX_ROUNDS {
            return Err(format!("the server requires input in more than {MAX_ROUNDS} rounds"));
        }
        match head.request_state {
            Some(state) => self.params.set_raw("requestState", state.get().to_owned()),
            None => self.params.remove_raw("requestState"),
        }
        Ok(RoundOutcome::Requests(requests))
    }

    /// Adds answers to the next request. Those of earlier rounds are kept: a server without state needs them as well.
    pub(crate) fn answer(&mut self, answers: Map<String, Value>) {
        self.answers.extend(answers);
        if !self.answers.is_empty() {
            let answers = Value::Object(self.answers.clone());
            self.params.members.insert("inputResponses".to_owned(), answers);
        }
    }
}
