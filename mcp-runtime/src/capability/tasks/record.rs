//! The record of a task: what clients see of it, which process runs it, and what another process needs to run it again.
//! To change a task is to change its record, in memory or in the store that replicas share.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use humantime::format_rfc3339_millis;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::core::{
    connection::StoredPrincipal,
    context::{InputResponse, PendingRequest, RawJson},
    jsonrpc::{Object, ProtocolError},
    store::Record,
    unix_time::{millis, unix_millis},
};

/// The message of a task that is `failed` because its process has stopped.
pub(super) const STOPPED: &str = "the server that ran it has stopped";
/// How often clients should poll: `pollIntervalMs` on the wire.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many processes may stop while they run one task: what ends them may be the task.
const MAX_LOSSES: u32 = 3;

/// One task.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredTask {
    /// A digest of the caller that it belongs to; absent where callers are not told apart.
    pub(super) owner: Option<Arc<str>>,
    /// The owner whose share of the store it uses.
    pub(super) share: Arc<str>,
    /// Times are milliseconds since 1970.
    pub(super) created: u64,
    pub(super) updated: u64,
    pub(super) expires: u64,
    /// The time to live and the lease, in milliseconds, as the process has them that created the task.
    pub(super) ttl: u64,
    pub(super) lease: u64,
    /// `statusMessage` on the wire.
    pub(super) message: Option<String>,
    /// Client requests without a response.
    pub(super) requests: Vec<StoredRequest>,
    /// Responses that the function may not have yet; all of them if it may run again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) responses: BTreeMap<String, InputResponse>,
    pub(super) end: Option<StoredEnd>,
    /// The process that runs it.
    pub(super) runner: Arc<str>,
    /// Since when no process runs it, if another one may run it again.
    #[serde(default)]
    pub(super) released: Option<u64>,
    /// Whether clients may listen to it, at any replica.
    #[serde(default)]
    pub(super) is_watched: bool,
    /// The call, if another process may run it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) restart: Option<Box<StoredCall>>,
}

/// A request to the client.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredRequest {
    pub(super) key: Box<str>,
    /// Identifies what is requested.
    pub(super) digest: String,
    /// The wire's request.
    pub(super) request: String,
}

/// How a task has ended.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredEnd {
    /// `result` on the wire.
    Result(RawJson),
    /// `error` on the wire.
    Error(RawJson),
    Cancelled,
}

/// The call that has become a task.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredCall {
    pub(super) tool: String,
    pub(super) arguments: String,
    /// The request's `_meta`.
    pub(super) meta: Option<String>,
    pub(super) caller: Option<StoredPrincipal>,
    /// Whether the server identifies callers, so that a request without one has no scopes.
    pub(super) has_rules: bool,
    pub(super) address: Option<std::net::IpAddr>,
    /// The results of `ctx.once`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) saved: BTreeMap<String, RawJson>,
    /// The keys of all client requests so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) keys: Vec<Box<str>>,
    /// The call before it became a task, if its client has retried it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retried: Option<RetriedCall>,
    /// Whether a run has consumed the responses.
    #[serde(default)]
    pub(super) consumed: bool,
    /// How often a process has stopped while it ran it.
    #[serde(default)]
    pub(super) losses: u32,
}

/// The state that all retries of a call have in common, one of which may use the responses.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct RetriedCall {
    pub(super) id: String,
    /// When the call first asked its client, in milliseconds since 1970.
    pub(super) started: u64,
    /// Until when it can be retried, in seconds since 1970.
    pub(super) expires: u64,
}

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    unix_millis(SystemTime::now())
}

/// Raw JSON that was written by this crate.
pub(super) fn raw_json(json: String) -> RawJson {
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl StoredEnd {
    pub(super) fn error(error: &ProtocolError) -> Self {
        let mut json = Vec::with_capacity(128);
        let mut object = Object::new(&mut json);
        error.write(&mut object);
        object.end();
        Self::Error(raw_json(String::from_utf8(json).unwrap_or_default()))
    }
}

impl StoredTask {
    pub(super) fn is_running(&self) -> bool {
        self.end.is_none()
    }

    /// Whether it waits for responses of its client.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_running() && !self.requests.is_empty()
    }

    /// How long it is kept from now on.
    pub(super) fn left(&self) -> Duration {
        Duration::from_millis(self.expires.saturating_sub(now()))
    }

    /// Ends it with an error.
    pub(super) fn fail(&mut self, error: &ProtocolError) {
        self.finish(StoredEnd::error(error), Some(error.message.clone()));
    }

    /// Ends it, with a last message.
    pub(super) fn finish(&mut self, end: StoredEnd, message: Option<String>) {
        self.end = Some(end);
        self.message = message;
        self.requests.clear();
        self.responses.clear();
        self.restart = None;
        self.changed();
    }

    /// Its process has stopped: another one may run it again, or it has failed.
    pub(super) fn lose(&mut self) {
        match &mut self.restart {
            Some(call) if call.losses < MAX_LOSSES => {
                call.losses += 1;
                self.released = Some(now());
            }
            Some(call) => {
                let why = format!("{STOPPED}, as {} before it", call.losses);
                self.fail(&ProtocolError::internal(why));
            }
            None => self.fail(&ProtocolError::internal(STOPPED)),
        }
    }

    /// Starts its time to live again, after a poll. It is made a quarter longer, so that not every poll is a change.
    pub(super) fn extend(&mut self) -> bool {
        let is_due = self.is_running() && self.left() < Duration::from_millis(self.ttl);
        if is_due {
            self.expires = now().saturating_add(self.ttl + self.ttl / 4);
        }
        is_due
    }

    /// Adds a request to the client.
    pub(super) fn ask(&mut self, request: &PendingRequest) {
        let mut json = Vec::with_capacity(64 + request.params.len());
        let mut object = Object::new(&mut json);
        object.str("method", request.method).key("params").extend_from_slice(&request.params);
        object.end();
        self.requests.push(StoredRequest {
            key: request.key.clone(),
            digest: request.digest(),
            request: String::from_utf8(json).unwrap_or_default(),
        });
    }

    /// Takes the response to a request; `false` if none has that key.
    pub(super) fn respond(&mut self, key: &str, response: &str) -> bool {
        let Some(at) = self.requests.iter().position(|open| *open.key == *key) else { return false };
        let request = self.requests.remove(at);
        let value = raw_json(response.to_owned());
        self.responses.insert(key.to_owned(), InputResponse { digest: request.digest, value });
        self.changed();
        true
    }

    /// Sets the time of a change, which differs from that of every other change.
    pub(super) fn touch(&mut self) {
        self.updated = now().max(self.updated + 1);
    }

    /// Sets the times of a change.
    pub(super) fn changed(&mut self) {
        self.touch();
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
    pub(super) fn write(&self, id: &str, task: &mut Object<'_>) {
        let at = |millis| format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(millis)).to_string();
        task.str("taskId", id)
            .str("status", self.status())
            .opt_str("statusMessage", self.message.as_deref())
            .str("createdAt", &at(self.created))
            .str("lastUpdatedAt", &at(self.updated))
            .value("ttlMs", &self.expires.saturating_sub(self.created))
            .value("pollIntervalMs", &millis(POLL_INTERVAL));
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
}

impl Record for StoredTask {
    fn owner(&self) -> &str {
        &self.share
    }

    /// A running task is removed by its process, or by the one that finds that this has stopped.
    fn expires_in(&self) -> Duration {
        let lease = if self.is_running() { Duration::from_millis(self.lease) } else { Duration::ZERO };
        self.left().saturating_add(lease * 4).max(Duration::from_millis(1))
    }
}
