//! A task as replicas share it: what clients see of it, which process runs it, and what another process needs to run it
//! again. A process that changes it replaces the version that it has read, so that no change is lost.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::running_task::timestamp;
use crate::core::{
    connection::StoredPrincipal,
    context::{InputResponse, PendingRequest, RawJson},
    jsonrpc::{Object, ProtocolError},
};

/// The message of a task that is `failed` because its replica has stopped.
pub(crate) const STOPPED: &str = "the server that ran it has stopped";

/// One task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredTask {
    /// A digest of the caller that it belongs to; absent where callers are not told apart.
    pub(crate) owner: Option<Arc<str>>,
    /// The owner whose share of the store it uses.
    pub(crate) share: Arc<str>,
    /// Times are milliseconds since 1970.
    pub(crate) created: u64,
    pub(crate) updated: u64,
    pub(crate) expires: u64,
    /// In milliseconds, as the replica has it that created the task.
    pub(crate) ttl: u64,
    pub(crate) poll_interval: u64,
    /// `statusMessage` on the wire.
    pub(crate) message: Option<String>,
    /// Client requests without a response.
    pub(crate) requests: Vec<StoredRequest>,
    /// Responses that the function may not have yet; all of them if it may run again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) responses: BTreeMap<String, InputResponse>,
    pub(crate) end: Option<StoredEnd>,
    /// The process that runs it.
    pub(crate) runner: Arc<str>,
    /// Whether that process has given it up.
    #[serde(default)]
    pub(crate) is_released: bool,
    /// The processes whose subscribers are notified of changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) watchers: Vec<Arc<str>>,
    /// The call, if another process may run it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restart: Option<Box<StoredCall>>,
}

/// A request to the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRequest {
    pub(crate) key: Box<str>,
    /// Identifies what is requested.
    pub(crate) digest: String,
    /// The wire's request.
    pub(crate) request: String,
}

/// How a task has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredEnd {
    /// `result` on the wire.
    Result(RawJson),
    /// `error` on the wire.
    Error(RawJson),
    Cancelled,
}

/// The call that has become a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredCall {
    pub(crate) tool: String,
    pub(crate) arguments: String,
    /// The request's `_meta`.
    pub(crate) meta: Option<String>,
    pub(crate) caller: Option<StoredPrincipal>,
    /// Whether the server identifies callers, so that a request without one has no scopes.
    pub(crate) has_rules: bool,
    pub(crate) address: Option<std::net::IpAddr>,
    /// The results of `ctx.once`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) saved: BTreeMap<String, RawJson>,
    /// The keys of all client requests so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) keys: Vec<Box<str>>,
    /// The call before it became a task, if its client has retried it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retried: Option<RetriedCall>,
    /// Whether a run has consumed the responses.
    #[serde(default)]
    pub(crate) consumed: bool,
    /// How often a process has stopped while it ran it.
    #[serde(default)]
    pub(crate) losses: u32,
}

/// The state that all retries of a call have in common, one of which may use the responses.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RetriedCall {
    pub(crate) id: String,
    /// When the call first asked its client, in milliseconds since 1970.
    pub(crate) started: u64,
    /// Until when it can be retried, in seconds since 1970.
    pub(crate) expires: u64,
}

/// Milliseconds since 1970.
pub(crate) fn millis_of(time: SystemTime) -> u64 {
    millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn now() -> u64 {
    millis_of(SystemTime::now())
}

impl StoredRequest {
    pub(crate) fn new(request: &PendingRequest) -> Self {
        let mut json = Vec::with_capacity(64 + request.params.len());
        let mut object = Object::new(&mut json);
        object.str("method", request.method).key("params").extend_from_slice(&request.params);
        object.end();
        let request_json = String::from_utf8(json).unwrap_or_default();
        Self { key: request.key.clone(), digest: request.digest(), request: request_json }
    }
}

/// Raw JSON that was written by this crate.
pub(crate) fn raw_json(json: String) -> RawJson {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl StoredEnd {
    pub(crate) fn error(error: &ProtocolError) -> Self {
        let mut json = Vec::with_capacity(128);
        let mut object = Object::new(&mut json);
        error.write(&mut object);
        object.end();
        Self::Error(raw_json(String::from_utf8(json).unwrap_or_default()))
    }
}

impl StoredTask {
    pub(crate) fn is_running(&self) -> bool {
        self.end.is_none()
    }

    /// Whether it waits for responses of its client.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_running() && !self.requests.is_empty()
    }

    /// How long it is kept from now on.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_millis(self.expires.saturating_sub(now()))
    }

    /// Ends it with an error.
    pub(crate) fn fail(&mut self, error: &ProtocolError) {
        self.message = Some(error.message.clone());
        self.finish(StoredEnd::error(error));
    }

    /// Ends it.
    pub(crate) fn finish(&mut self, end: StoredEnd) {
        self.end = Some(end);
        self.requests.clear();
        self.responses.clear();
        self.restart = None;
        self.changed();
    }

    /// Sets the times of a change.
    pub(crate) fn changed(&mut self) {
        self.updated = now();
        self.expires = self.expires.max(self.updated.saturating_add(self.ttl));
    }

    fn status(&self) -> &'static str {
        match &self.end {
            None if self.requests.is_empty() => "working",
            None => "input_required",
            Some(StoredEnd::Cancelled) => "cancelled",
            Some(StoredEnd::Error(_)) => "failed",
            Some(StoredEnd::Result(_)) => "completed",
        }
    }

    /// Writes it as `tasks/get` shows it.
    pub(crate) fn write(&self, id: &str, task: &mut Object<'_>) {
        let at = |millis| timestamp(UNIX_EPOCH + Duration::from_millis(millis));
        task.str("taskId", id)
            .str("status", self.status())
            .opt_str("statusMessage", self.message.as_deref())
            .str("createdAt", &at(self.created))
            .str("lastUpdatedAt", &at(self.updated))
            .value("ttlMs", &self.expires.saturating_sub(self.created))
            .value("pollIntervalMs", &self.poll_interval);
        match &self.end {
            None if self.requests.is_empty() => {}
            None => {
                task.object("inputRequests", |requests| {
                    for request in &self.requests {
                        requests.escaped_key(&request.key).extend_from_slice(request.request.as_bytes());
                    }
                });
            }
            Some(StoredEnd::Result(json)) => {
                task.raw("result", json.get());
            }
            Some(StoredEnd::Error(json)) => {
                task.raw("error", json.get());
            }
            Some(StoredEnd::Cancelled) => {}
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // its keys are texts, so that it can be written
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// `None` if it is of another version of this crate.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}
