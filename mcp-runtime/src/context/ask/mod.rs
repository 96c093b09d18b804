//! Questions from a running function to its client, in either era. `ask` puts them; dispatch ends a call that waits
//! for answers; tasks and tests answer them in their own ways.
//!
//! Three ways lead to an answer. In the stateless era it comes with a later request, so the question stays pending and
//! the call ends ([`Way::Rounds`]). In the handshake era a request of ours goes to the client ([`Way::Requests`]).
//! Inside a task the question is shown with the task ([`Way::Inputs`]).

mod asking;
mod error;
mod feature;
mod round;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, oneshot};

pub(crate) use asking::Asking;
pub use error::AskError;
pub use feature::ClientFeature;
use round::Known;
pub(crate) use round::{Answer, Asked, MAX_ROUNDS, MAX_TRIES, Raw, RequestState, Round};

use super::Context;
use crate::jsonrpc::Object;

/// A question to the client.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// Unique within a call.
    pub(crate) key: Box<str>,
    pub(crate) needs: ClientFeature,
    pub(crate) method: &'static str,
    /// A JSON object, in the words of the call's revision.
    pub(crate) params: Vec<u8>,
}

impl Question {
    /// Tells whether a question has changed.
    fn digest(&self) -> String {
        let hash =
            Sha256::new().chain_update(self.method).chain_update([0]).chain_update(&self.params).finalize();
        URL_SAFE_NO_PAD.encode(&hash[..16])
    }
}

/// Writes a question as a member of `inputRequests`; `params` is JSON.
pub(crate) fn input_request(requests: &mut Object<'_>, key: &str, method: &str, params: &[u8]) {
    let mut request = Object::new(requests.escaped_key(key));
    request.str("method", method).key("params").extend_from_slice(params);
    request.end();
}

/// A task, as its function sees it.
pub(crate) trait Inputs: Send + Sync {
    /// Shows a question until it is answered with raw JSON, or nobody waits for that any more.
    fn ask(&self, question: &Question) -> oneshot::Receiver<Box<str>>;

    /// Shows how far the function has come; a value that does not increase is dropped.
    fn report(&self, progress: f64, total: Option<f64>, message: Option<String>);
}

/// How a call gets answers.
pub(crate) enum Way {
    /// With the next request of the stateless era; this is what came with the present one.
    Rounds(Option<Arc<Round>>),
    /// From requests of ours.
    Requests,
    /// From the task that the call has become.
    Inputs(Arc<dyn Inputs>),
    /// Not at all: why.
    Never(&'static str),
}

/// The questions of one call.
pub(crate) struct Asks {
    state: Mutex<State>,
    /// Questions whose answers are waited for in place.
    waiting: AtomicUsize,
    /// Set if the call may go on as a task: what it waits for then, before it does.
    pub(super) turn: OnceLock<Option<Arc<Semaphore>>>,
    /// Whether the function wants that now.
    pub(super) starts: AtomicBool,
}

struct State {
    way: Way,
    /// What came with the request that has become a task.
    past: Option<Arc<Round>>,
    /// Keys of questions and saved results; each once.
    used: BTreeSet<Box<str>>,
    /// Found to fit in this run.
    answers: BTreeMap<String, Answer>,
    saved: BTreeMap<String, Raw>,
    unanswered: Vec<(Question, Asked)>,
    missing: Vec<ClientFeature>,
}

/// Why a call of the stateless era ends before its function does.
pub(crate) enum Unanswered {
    /// The client cannot be asked for these.
    Missing(Vec<ClientFeature>),
    /// The questions, and what the next round must know.
    Asked(Vec<Question>, RequestState),
}

impl Asks {
    pub(crate) fn new(way: Way) -> Self {
        Self {
            state: Mutex::new(State {
                way,
                past: None,
                used: BTreeSet::new(),
                answers: BTreeMap::new(),
                saved: BTreeMap::new(),
                unanswered: Vec::new(),
                missing: Vec::new(),
            }),
            waiting: AtomicUsize::new(0),
            turn: OnceLock::new(),
            starts: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on questions are shown by a task.
    pub(crate) fn become_task(&self, inputs: Arc<dyn Inputs>) {
        let mut state = self.state();
        if let Way::Rounds(round) = std::mem::replace(&mut state.way, Way::Inputs(inputs)) {
            state.past = round;
        }
    }

    /// The task that the call has become.
    pub(crate) fn task(&self) -> Option<Arc<dyn Inputs>> {
        match &self.state().way {
            Way::Inputs(inputs) => Some(Arc::clone(inputs)),
            _ => None,
        }
    }

    /// Whether a function that is pending waits for answers which only another request can bring.
    pub(crate) fn ends_round(&self) -> bool {
        let state = self.state();
        !state.unanswered.is_empty() || !state.missing.is_empty()
    }

    /// What the client of a task would have to declare, so that the task can go on.
    pub(crate) fn missing(&self) -> Option<Vec<ClientFeature>> {
        let mut state = self.state();
        (!state.missing.is_empty()).then(|| std::mem::take(&mut state.missing))
    }

    /// Whether a function waits for its client in place.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// What a round ends with.
    pub(crate) fn unanswered(&self) -> Unanswered {
        let mut state = self.state();
        if !state.missing.is_empty() {
            let mut missing = std::mem::take(&mut state.missing);
            missing.sort_unstable();
            return Unanswered::Missing(missing);
        }
        let mut memory = match &state.way {
            Way::Rounds(Some(round)) => round.carried(),
            _ => RequestState::default(),
        };
        memory.round = memory.round.saturating_add(1);
        memory.answers.append(&mut state.answers);
        memory.saved.append(&mut state.saved);
        let mut questions = Vec::new();
        for (question, asked) in state.unanswered.drain(..) {
            // an earlier answer to it was of no use, or belonged to another question
            memory.answers.remove(&*question.key);
            memory.asked.insert(question.key.to_string(), asked);
            questions.push(question);
        }
        Unanswered::Asked(questions, memory)
    }

    /// What came back with the request, also after it has become a task.
    fn round(state: &State) -> Option<&Arc<Round>> {
        match &state.way {
            Way::Rounds(round) => round.as_ref(),
            _ => state.past.as_ref(),
        }
    }

    fn claim(state: &mut State, key: &str) -> Result<(), AskError> {
        if state.used.insert(key.into()) { Ok(()) } else { Err(AskError::KeyUsedTwice { key: key.into() }) }
    }
}

/// What the rounds of one call have in common.
#[derive(Debug)]
pub(crate) enum Chain {
    /// There are no rounds, or this is the first.
    First,
    /// Its name, and until when it can be sent (seconds since 1970).
    Known(String, u64),
    /// There were answers, but no state with them.
    Lost,
}

/// What becomes of a question that is put for the first time in a run.
enum Put {
    /// This came back with the request.
    Answered(Raw, u8),
    /// The call will end.
    Pending,
    Request,
    Shown(Arc<dyn Inputs>),
}

impl Context {
    fn put(&self, question: &Question) -> Result<Put, AskError> {
        let asks = &self.inner().asks;
        let mut state = asks.state();
        Asks::claim(&mut state, &question.key)?;
        if let Way::Never(why) = state.way {
            return Err(AskError::Unavailable { why });
        }
        if !self.supports(question.needs) {
            // clients of 2026-07-28 get an error of its own for that, which a function cannot swallow
            if matches!(state.way, Way::Rounds(_) | Way::Inputs(_)) {
                if !state.missing.contains(&question.needs) {
                    state.missing.push(question.needs);
                }
                return Ok(Put::Pending);
            }
            return Err(AskError::Unsupported { feature: question.needs });
        }
        let known = match &state.way {
            Way::Rounds(Some(round)) => round.look_up(&question.key, &question.digest()),
            Way::Rounds(None) => Known::Nothing(0),
            Way::Requests => return Ok(Put::Request),
            Way::Inputs(inputs) => return Ok(Put::Shown(Arc::clone(inputs))),
            Way::Never(why) => return Err(AskError::Unavailable { why }),
        };
        match known {
            Known::Answer(value, tries) => Ok(Put::Answered(value, tries)),
            Known::Nothing(tries) => {
                let asked = Asked { digest: question.digest(), tries };
                state.unanswered.push((question.clone(), asked));
                Ok(Put::Pending)
            }
        }
    }

    /// The answer that came back fits: later rounds must know it.
    fn keep(&self, question: &Question, value: Raw) {
        let answer = Answer { digest: question.digest(), value };
        self.inner().asks.state().answers.insert(question.key.to_string(), answer);
    }

    /// The answer that came back is of no use: it is asked for once more.
    fn put_again(&self, question: &Question, tries: u8) {
        let asked = Asked { digest: question.digest(), tries };
        self.inner().asks.state().unanswered.push((question.clone(), asked));
    }

    /// Puts a question; `read` makes the answer of the client's raw result, or says what is wrong with it.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        question: Result<Question, AskError>,
        read: impl Fn(&str) -> Result<T, String> + Send + 'static,
    ) -> Asking<T> {
        Asking::new(self.clone(), question, Box::new(read))
    }

    /// Puts a question that a function needs answered, but does not wait for: one that it has failed with. In the
    /// handshake era nothing is put. `read` says what stands in the way of asking once more, or what is wrong with
    /// the answer.
    pub(crate) fn require_answer(
        &self,
        question: Question,
        read: impl FnOnce(&str) -> Result<Option<AskError>, String>,
    ) -> Result<(), AskError> {
        let tries = match self.put(&question)? {
            Put::Pending | Put::Request => return Ok(()),
            Put::Shown(_) => return Err(AskError::Unavailable { why: "the call has gone on as a task" }),
            Put::Answered(raw, tries) => match read(raw.get()) {
                Ok(Some(refusal)) => return Err(refusal),
                Ok(None) => 0,
                Err(reason) if tries >= MAX_TRIES => {
                    return Err(AskError::Malformed { key: question.key, reason });
                }
                Err(_) => tries + 1,
            },
        };
        self.put_again(&question, tries);
        Ok(())
    }

    /// Whether the client of this request said that it can do this.
    #[must_use]
    pub fn supports(&self, feature: ClientFeature) -> bool {
        feature.is_in(&self.client_capabilities())
    }

    /// The result that an earlier round saved under a key, which nothing else in this call may use.
    pub(crate) fn saved(&self, key: &str) -> Result<Option<Raw>, AskError> {
        let mut state = self.inner().asks.state();
        Asks::claim(&mut state, key)?;
        let memory = Asks::round(&state).and_then(|round| round.memory.as_ref());
        Ok(memory.and_then(|memory| memory.saved.get(key)).cloned())
    }

    /// Whether results are worth saving: there may be a later round.
    pub(crate) fn has_rounds(&self) -> bool {
        matches!(self.inner().asks.state().way, Way::Rounds(_))
    }

    /// Saves a result for later rounds.
    pub(crate) fn save(&self, key: &str, value: Raw) {
        self.inner().asks.state().saved.insert(key.to_owned(), value);
    }

    /// What this call's rounds have in common.
    pub(crate) fn chain(&self) -> Chain {
        let Some(round) = Asks::round(&self.inner().asks.state()).cloned() else { return Chain::First };
        match &round.memory {
            Some(memory) => Chain::Known(memory.chain.clone(), memory.expires),
            None if round.responses.is_empty() => Chain::First,
            None => Chain::Lost,
        }
    }
}

impl fmt::Debug for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asks")
    }
}
