//! The state of one call's client requests: their delivery, their keys and the responses. It does not depend on what they
//! request.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::client_feature::ClientFeature;
use crate::core::{
    arguments::BoxFuture,
    sync::{Mutex, MutexGuard},
};

pub(crate) type RawJson = Box<RawValue>;

/// A request from the server to the client.
#[derive(Clone, PartialEq)]
pub(crate) struct PendingRequest {
    /// Unique within a call.
    pub(crate) key: Box<str>,
    /// The feature that the client must have declared.
    pub(crate) requires: ClientFeature,
    pub(crate) method: &'static str,
    /// A JSON object, encoded for the call's revision.
    pub(crate) params: Vec<u8>,
}

/// The task that a call has become.
pub(crate) trait TaskHandle: Send + Sync {
    /// Lists a request in the task until the client responds with raw JSON or the receiver is dropped.
    fn request_input(&self, request: &PendingRequest) -> oneshot::Receiver<Box<str>>;

    /// Sets the task's status message; a value that does not increase is dropped.
    fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<String>);

    /// The result that an earlier run of the function has saved under a key.
    fn saved(&self, key: &str) -> Option<RawJson>;

    /// Whether there may be a later run of the function.
    fn may_run_again(&self) -> bool;

    /// Saves a result for a later run of the function.
    fn save(&self, key: &str, value: RawJson) -> BoxFuture<()>;

    /// Saves that the function uses the responses of its client. `false` if it has before, in this run or an earlier one, or if
    /// that cannot be saved.
    fn consume(self: Arc<Self>) -> BoxFuture<bool>;
}

/// How the requests of a call reach its client.
pub(crate) enum Delivery {
    /// In an `input_required` result; the responses come when the client retries the call.
    InputRequired,
    /// As JSON-RPC requests on the client's connection.
    Connection,
    /// As `inputRequests` of the task that the call has become.
    Task(Arc<dyn TaskHandle>),
    /// Not at all, for this reason.
    Unavailable(&'static str),
}

/// The content of `requestState`, before it is sealed.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct RequestState {
    /// How often the call has ended with `input_required`.
    #[serde(rename = "r")]
    pub(crate) round_trips: u8,
    /// Random, and the same in all retries of one call.
    #[serde(rename = "c")]
    pub(crate) call_id: String,
    /// When the call first ended with `input_required`, in milliseconds since 1970.
    #[serde(rename = "s", default)]
    pub(crate) started: u64,
    /// Seconds since 1970.
    #[serde(rename = "i")]
    pub(crate) issued: u64,
    #[serde(rename = "e")]
    pub(crate) expires: u64,
    #[serde(rename = "a", default, skip_serializing_if = "HashMap::is_empty")]
    pub(crate) responses: HashMap<String, InputResponse>,
    /// Results of `once`.
    #[serde(rename = "o", default, skip_serializing_if = "HashMap::is_empty")]
    pub(crate) saved: HashMap<String, RawJson>,
    /// The requests that the call last ended with.
    #[serde(rename = "q", default, skip_serializing_if = "HashMap::is_empty")]
    pub(crate) requests: HashMap<String, InputRequest>,
}

/// A response that an earlier retry brought.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct InputResponse {
    /// Digest of the request.
    #[serde(rename = "d")]
    pub(crate) digest: String,
    #[serde(rename = "v")]
    pub(crate) value: RawJson,
}

/// A request that the client was sent in an `input_required` result.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputRequest {
    #[serde(rename = "d")]
    pub(crate) digest: String,
    /// How many responses to it were malformed.
    #[serde(rename = "t")]
    pub(crate) attempts: u8,
}

/// The state and responses that a client sends when it retries a call.
#[derive(Default)]
pub(crate) struct Retry {
    /// Absent if the client sent no `requestState`.
    pub(crate) state: Option<RequestState>,
    /// `inputResponses` on the wire.
    pub(crate) responses: HashMap<String, RawJson>,
}

/// The client requests of one call.
pub(crate) struct ClientRequests {
    state: Mutex<ClientRequestState>,
    /// Requests whose responses the function awaits while its call stays open.
    awaited: AtomicUsize,
}

pub(crate) struct ClientRequestState {
    pub(crate) delivery: Delivery,
    /// Absent if the call is not a retry. It stays when the call becomes a task.
    pub(crate) retry: Option<Arc<Retry>>,
    /// Keys of requests and saved results.
    pub(crate) keys: HashSet<String>,
    /// Responses that were decoded in this round trip.
    pub(crate) responses: HashMap<String, InputResponse>,
    /// Results of `once` in this round trip.
    pub(crate) saved: HashMap<String, RawJson>,
    /// Requests for the next `input_required` result.
    pub(crate) pending: Vec<(PendingRequest, InputRequest)>,
    /// Required features that the client does not declare.
    pub(crate) missing: Vec<ClientFeature>,
    /// Whether the function has consumed the responses.
    pub(crate) consumed: bool,
}

impl ClientRequests {
    pub(crate) fn new(delivery: Delivery, retry: Option<Arc<Retry>>) -> Self {
        let state = ClientRequestState {
            delivery,
            retry,
            keys: HashSet::new(),
            responses: HashMap::new(),
            saved: HashMap::new(),
            pending: Vec::new(),
            missing: Vec::new(),
            consumed: false,
        };
        Self { state: Mutex::new(state), awaited: AtomicUsize::new(0) }
    }

    /// Forgets the keys that were used since they were these: the function runs again.
    pub(crate) fn reset_keys(&self, keys: &HashSet<String>) {
        self.lock().keys.clone_from(keys);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ClientRequestState> {
        self.state.lock()
    }

    /// The task that the call has become.
    pub(crate) fn task(&self) -> Option<Arc<dyn TaskHandle>> {
        match &self.lock().delivery {
            Delivery::Task(task) => Some(Arc::clone(task)),
            _ => None,
        }
    }

    /// Counts the call as waiting for its client until the guard is dropped.
    pub(crate) fn begin_wait(&self) -> ResponseWait<'_> {
        self.awaited.fetch_add(1, Ordering::Relaxed);
        ResponseWait(&self.awaited)
    }

    /// Whether the function awaits a response while its call stays open.
    pub(crate) fn is_waiting(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) > 0
    }
}

/// See [`ClientRequests::begin_wait`].
pub(crate) struct ResponseWait<'a>(&'a AtomicUsize);

impl Drop for ResponseWait<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
