//! What is known of earlier rounds of one call: the answers and saved results that came back with the request.
//! Dispatch makes it from `requestState` and `inputResponses`; sealing is dispatch's as well.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Times that an answer of no use is asked for again.
pub(crate) const MAX_TRIES: u8 = 3;
/// Rounds of one call.
pub(crate) const MAX_ROUNDS: u8 = 16;

pub(crate) type Raw = Box<RawValue>;

/// What travels in `requestState`, before it is sealed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RequestState {
    /// Rounds so far.
    #[serde(rename = "r")]
    pub(crate) round: u8,
    /// What the rounds of one call have in common, and no other call has.
    #[serde(rename = "c")]
    pub(crate) chain: String,
    /// Seconds since 1970.
    #[serde(rename = "i")]
    pub(crate) issued: u64,
    #[serde(rename = "e")]
    pub(crate) expires: u64,
    #[serde(rename = "a", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) answers: BTreeMap<String, Answer>,
    /// Results of `once`.
    #[serde(rename = "o", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) saved: BTreeMap<String, Raw>,
    /// Questions that the last round ended with.
    #[serde(rename = "q", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) asked: BTreeMap<String, Asked>,
}

/// An answer of an earlier round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Answer {
    #[serde(rename = "d")]
    pub(crate) digest: String,
    #[serde(rename = "v")]
    pub(crate) value: Raw,
}

/// A question that was put to the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asked {
    #[serde(rename = "d")]
    pub(crate) digest: String,
    /// How many answers to it were of no use.
    #[serde(rename = "t")]
    pub(crate) tries: u8,
}

/// What came back with a request.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// Absent if the client sent no state.
    pub(crate) memory: Option<RequestState>,
    /// The wire's `inputResponses`.
    pub(crate) responses: BTreeMap<String, Raw>,
}

/// What a round knows of one question.
#[derive(Debug)]
pub(crate) enum Known {
    /// The answer, and how many of no use came before it.
    Answer(Raw, u8),
    /// None yet, but so many of no use.
    Nothing(u8),
}

impl Round {
    /// What is known of the question with that key and digest.
    pub(crate) fn look_up(&self, key: &str, digest: &str) -> Known {
        let Some(memory) = &self.memory else {
            // the first round's answers count without state; what the question was is anybody's guess
            return match self.responses.get(key) {
                Some(value) => Known::Answer(value.clone(), 0),
                None => Known::Nothing(0),
            };
        };
        if let Some(answer) = memory.answers.get(key).filter(|answer| answer.digest == digest) {
            return Known::Answer(answer.value.clone(), 0);
        }
        // a question that has changed is a new one, and an answer that was not asked for is none
        let Some(asked) = memory.asked.get(key).filter(|asked| asked.digest == digest) else {
            return Known::Nothing(0);
        };
        match self.responses.get(key) {
            Some(value) => Known::Answer(value.clone(), asked.tries),
            None => Known::Nothing(asked.tries),
        }
    }

    /// What the next round must know besides what this one finds out.
    pub(crate) fn carried(&self) -> RequestState {
        let Some(memory) = &self.memory else { return RequestState::default() };
        let mut carried = memory.clone();
        for (key, asked) in std::mem::take(&mut carried.asked) {
            if let Some(value) = self.responses.get(&key) {
                let answer = Answer { digest: asked.digest, value: value.clone() };
                carried.answers.insert(key, answer);
            }
        }
        carried
    }
}
