//! One request in rounds: a server that requires input gets the request again, with the answers of all rounds and its
//! `requestState` byte for byte, a limited number of times.
//!
//! See [multi round-trip requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr).

use std::{borrow::Cow, sync::LazyLock};

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::request_params::RequestParams;
#[cfg(feature = "client")]
use crate::core::jsonrpc::replace_lone_surrogates;

/// Rounds of one request.
const MAX_ROUNDS: u32 = 16;

/// The members that all results have in common.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultHead<'a> {
    #[serde(borrow)]
    result_type: Option<Cow<'a, str>>,
    input_requests: Option<Map<String, Value>>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

/// A request, and what has been answered so far.
#[derive(Default)]
pub(crate) struct InputRounds {
    params: RequestParams,
    answers: Map<String, Value>,
    /// How often it was sent again, so that its result depends on answers.
    pub(crate) round: u32,
}

/// The outcome of a round.
pub(crate) enum RoundOutcome {
    /// The result of the request.
    Complete,
    /// A task in place of the result.
    Task,
    /// Input is required.
    Input(InputRequired),
}

/// Requests that must be answered, by key. Without any, the request is repeated as it is.
pub(crate) struct InputRequired {
    pub(crate) requests: Map<String, Value>,
    /// `requestState`, as it was sent.
    pub(crate) state: Option<String>,
}

impl RoundOutcome {
    /// Reads the result of a round, which is returned as it is to be read further: with the replacement character for halves
    /// of surrogate pairs, but in `requestState`, which is sent back as it came.
    #[cfg(feature = "client")]
    pub(crate) fn take(result: String) -> (Result<Self, String>, String) {
        if is_plainly_complete(&result) {
            return (Ok(Self::Complete), result);
        }
        let Cow::Owned(legible) = replace_lone_surrogates(&result) else {
            return (Self::read(&result), result);
        };
        let mut outcome = Self::read(&legible);
        if let Ok(Self::Input(required)) = &mut outcome {
            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct WithState<'a> {
                #[serde(borrow)]
                request_state: Option<&'a RawValue>,
            }
            let sent =
                serde_json::from_str::<WithState<'_>>(&result).ok().and_then(|sent| sent.request_state);
            required.state = sent.map(|state| state.get().to_owned());
        }
        (outcome, legible)
    }

    /// Reads the result of a round.
    ///
    /// # Errors
    /// It is of a type that this client does not know.
    pub(crate) fn read(result: &str) -> Result<Self, String> {
        if is_plainly_complete(result) {
            return Ok(Self::Complete);
        }
        let head: ResultHead<'_> = serde_json::from_str(result).map_err(|error| error.to_string())?;
        match head.result_type.as_deref() {
            Some("input_required") => {}
            Some("task") => return Ok(Self::Task),
            Some("complete") | None => return Ok(Self::Complete),
            Some(other) => return Err(format!("`{other}` is not a `resultType` that this client knows")),
        }
        let requests = head.input_requests.unwrap_or_default();
        if requests.is_empty() && head.request_state.is_none() {
            return Err("it is `input_required`, and names no input".to_owned());
        }
        let state = head.request_state.map(|state| state.get().to_owned());
        Ok(Self::Input(InputRequired { requests, state }))
    }
}

impl InputRounds {
    pub(crate) fn new(params: RequestParams) -> Self {
        Self { params, answers: Map::new(), round: 0 }
    }

    /// The params of the next request.
    pub(crate) fn params(&self) -> &RequestParams {
        &self.params
    }

    /// Begins the next round: the input that must be given for it.
    ///
    /// # Errors
    /// There are too many rounds.
    pub(crate) fn next(&mut self, required: InputRequired) -> Result<Map<String, Value>, String> {
        self.round += 1;
        if self.round == MAX_ROUNDS {
            return Err(format!("the server requires input in more than {MAX_ROUNDS} rounds"));
        }
        match required.state {
            Some(state) => self.params.set_raw("requestState", state),
            None => self.params.remove_raw("requestState"),
        }
        Ok(required.requests)
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

/// Whether an object says once that it is complete, or nothing that could be a `resultType`: that is all there is, so that
/// most results are parsed only by their reader.
fn is_plainly_complete(result: &str) -> bool {
    const KEY: &str = "resultType\"";
    // letters can be written as escapes
    static FINDERS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [KEY, "\\u"].map(Finder::new));
    let [key, escape] = &*FINDERS;
    let mut keys = key.find_iter(result.as_bytes());
    let is_complete = match (keys.next(), keys.next()) {
        (None, _) => true,
        (Some(at), None) => result[at + KEY.len()..].starts_with(":\"complete\""),
        _ => false,
    };
    is_complete && escape.find(result.as_bytes()).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_are_not_complete_are_found_however_they_are_written() {
        let take = RoundOutcome::read;
        let is_task = |json: &str| matches!(take(json), Ok(RoundOutcome::Task));
        assert!(is_task(r#"{"resultType":"task"}"#) && is_task(r#"{"resultType":"\u0074ask"}"#));
        assert!(!is_task(r#"{"resultType":"complete","content":[{"text":"\u0074 \"task\""}]}"#));
        for json in [
            r#"{"resultType":"input_required","requestState":"x"}"#,
            r#"{"resultType":"\u0069nput_required","requestState":"x"}"#,
            "{ \"content\": [],\n\"result\\u0054ype\" : \"input_required\", \"requestState\": 1 }",
        ] {
            assert!(matches!(take(json), Ok(RoundOutcome::Input(_))), "{json}");
        }
        let (outcome, _) = RoundOutcome::take(
            r#"{"resultType":"input_required","inputRequests":{"\ud83d":{}},"requestState":"\ud83d"}"#
                .to_owned(),
        );
        let Ok(RoundOutcome::Input(required)) = outcome else { panic!("it requires input") };
        assert!(required.requests.contains_key("\u{fffd}"));
        assert_eq!(required.state.as_deref(), Some(r#""\ud83d""#), "it is sent back as it came");
        let (outcome, json) = RoundOutcome::take(r#"{"content":[{"text":"\ud83d"}]}"#.to_owned());
        assert!(matches!(outcome, Ok(RoundOutcome::Complete)));
        assert_eq!(json, r#"{"content":[{"text":"\ufffd"}]}"#);
        for json in [
            r#"{"resultType":"dance"}"#,
            r#"{"resultType":5}"#,
            r#"{"a":{"resultType":"complete"},"resultType":"x"}"#,
        ] {
            assert!(take(json).is_err(), "{json}");
        }
        let is_complete = |json: &str| matches!(take(json), Ok(RoundOutcome::Complete));
        assert!(is_complete("{}") && is_complete(r#"{"resultType":"complete"}"#));
        assert!(
            is_complete(r#"{"resultType":null}"#) && is_complete("5"),
            "its reader says what is wrong with it"
        );
        assert!(is_complete(r#"{"x":{"resultType":"task"}}"#), "that of another object");
    }
}
