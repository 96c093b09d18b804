//! A task whose function runs in this process: its status, its client requests, cancellation and expiry. A task ends
//! once, and its subscribers are notified of every change.

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt,
    sync::{Arc, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use humantime::format_rfc3339_millis;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};

use super::TaskRecord;
use crate::core::{
    admission::Owner,
    changes::{Change, Filter, Hub, Subject, SubjectChange},
    context::{PendingRequest, TaskHandle},
    jsonrpc::{Object, ProtocolError},
    reason::Reason,
    sync::Mutex,
};

/// A task whose function is running, or has just ended.
#[derive(Debug)]
pub(crate) struct RunningTask {
    pub(super) id: Arc<str>,
    pub(super) owners: TaskOwners,
    created: SystemTime,
    ttl: Duration,
    poll_interval: Duration,
    state: Mutex<TaskState>,
    /// Notified when the store must be updated.
    changed: Notify,
    /// Notified when the task was ended from outside of its function.
    stopped: Notify,
    hub: Hub,
    weak_self: Weak<Self>,
    /// Every subscribed filter holds a clone.
    subscribed: Arc<()>,
}

/// Whose task it is.
#[derive(Debug)]
pub(super) struct TaskOwners {
    /// The digest of the principal, who alone may request the task; `None` where callers are not identified.
    pub(super) owner: Option<Arc<str>>,
    /// Whose share of the store it uses.
    pub(super) sharer: Owner,
}

#[derive(Debug)]
struct TaskState {
    updated: SystemTime,
    expires: Instant,
    /// The expiry in the store.
    stored_expiry: Instant,
    message: Option<String>,
    progress: f64,
    /// In the order in which they were sent.
    requests: Vec<OpenRequest>,
    /// The keys of all client requests so far.
    used_keys: HashSet<Box<str>>,
    end: Option<TaskEnd>,
}

/// A client request without a response.
#[derive(Debug)]
struct OpenRequest {
    request: PendingRequest,
    response: oneshot::Sender<Box<str>>,
}

/// The reply that the call would have got without the task.
pub(crate) trait FinalReply: Send + Sync {
    /// The error, if it is one.
    fn error(&self) -> Option<&ProtocolError>;

    /// Whether it is a result that says that the tool has failed.
    fn is_tool_error(&self) -> bool;

    /// Why it is a failure, for operators.
    fn reason(&self) -> Option<Reason> {
        None
    }

    /// Appends the result; nothing if the reply is an error.
    fn write_result(&self, out: &mut Vec<u8>);
}

/// How a task ended.
#[derive(Clone)]
pub(crate) enum TaskEnd {
    Replied(Arc<dyn FinalReply>),
    Failed(ProtocolError),
    Cancelled,
    /// No client requested it within its time to live.
    Expired,
}

impl TaskEnd {
    /// The wire's `error`.
    fn error(&self) -> Option<Cow<'_, ProtocolError>> {
        match self {
            Self::Replied(reply) => reply.error().map(Cow::Borrowed),
            Self::Failed(error) => Some(Cow::Borrowed(error)),
            Self::Expired => {
                Some(Cow::Owned(ProtocolError::internal("the task expired: no client requested it in time")))
            }
            Self::Cancelled => None,
        }
    }
}

impl fmt::Debug for TaskEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replied(_) => "Replied",
            Self::Failed(_) => "Failed",
            Self::Cancelled => "Cancelled",
            Self::Expired => "Expired",
        })
    }
}

/// How a task ended, for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskSummary {
    /// `completed`, `tool_error`, `failed`, `cancelled` or `expired`.
    pub(crate) outcome: &'static str,
    /// The error's code, if it failed.
    pub(crate) code: Option<i64>,
    /// Why it has failed, as far as that is known.
    pub(crate) reason: Option<Reason>,
}

impl TaskSummary {
    fn of(end: Option<&TaskEnd>) -> Self {
        let outcome = match end {
            // its future was dropped
            None | Some(TaskEnd::Cancelled) => "cancelled",
            Some(TaskEnd::Expired) => "expired",
            Some(TaskEnd::Replied(reply)) if reply.is_tool_error() => "tool_error",
            Some(end) if end.error().is_some() => "failed",
            Some(_) => "completed",
        };
        let code = end.filter(|_| outcome == "failed").and_then(|end| Some(end.error()?.code));
        let reason = match end {
            None | Some(TaskEnd::Cancelled) => Some(Reason::Cancelled),
            Some(TaskEnd::Expired) => Some(Reason::Expired),
            Some(TaskEnd::Replied(reply)) => reply.reason(),
            Some(TaskEnd::Failed(_)) => None,
        };
        Self { outcome, code, reason }
    }
}

/// How the store must be updated after a change.
#[derive(Debug)]
pub(crate) enum StoreUpdate {
    /// Put the record of a task that still runs.
    Running(TaskRecord),
    /// Put the record of a task that has ended.
    Ended(TaskRecord),
    /// Remove the record: the task has expired.
    Expired,
}

fn json_text(json: Vec<u8>) -> Box<str> {
    // the JSON writer produces UTF-8 only
    String::from_utf8(json).unwrap_or_default().into()
}

impl TaskState {
    fn status(&self) -> &'static str {
        match &self.end {
            None if self.requests.is_empty() => "working",
            None => "input_required",
            Some(TaskEnd::Cancelled) => "cancelled",
            Some(end) if end.error().is_some() => "failed",
            Some(_) => "completed",
        }
    }

    /// The wire's `statusMessage`: the error's message, or the last progress message.
    fn status_message(&self) -> Option<String> {
        match &self.end {
            None => self.message.clone(),
            Some(end) => end.error().map(|error| error.message.clone()),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl RunningTask {
    pub(super) fn new(
        id: Arc<str>,
        owners: TaskOwners,
        ttl: Duration,
        poll_interval: Duration,
        hub: Hub,
    ) -> Arc<Self> {
        let (now, expires) = (SystemTime::now(), Instant::now() + ttl);
        let state = TaskState {
            updated: now,
            expires,
            stored_expiry: expires,
            message: None,
            progress: f64::NEG_INFINITY,
            requests: Vec::new(),
            used_keys: HashSet::new(),
            end: None,
        };
        let (changed, stopped) = (Notify::new(), Notify::new());
        Arc::new_cyclic(|weak_self| Self {
            id,
            owners,
            created: now,
            ttl,
            poll_interval,
            state: Mutex::new(state),
            changed,
            stopped,
            hub,
            weak_self: weak_self.clone(),
            subscribed: Arc::default(),
        })
    }

    /// Its id as logs have it: any client that has the id of a task without an owner may see the task, so that only its
    /// beginning is told.
    pub(crate) fn id_for_logs(&self) -> &str {
        match self.owners.owner {
            Some(_) => &self.id,
            None => self.id.get(..8).unwrap_or_default(),
        }
    }

    /// How it has ended.
    pub(crate) fn summary(&self) -> TaskSummary {
        TaskSummary::of(self.state.lock().end.as_ref())
    }

    pub(super) fn has_expired(&self) -> bool {
        matches!(self.state.lock().end, Some(TaskEnd::Expired))
    }

    /// Updates the timestamps, and schedules an update of the store and a notification.
    fn record_change(&self, state: &mut TaskState) {
        state.updated = SystemTime::now();
        state.expires = Instant::now() + self.ttl;
        self.changed.notify_one();
        // the notification is written later, when a subscriber takes the change
        if let Some(task) = self.weak_self.upgrade().filter(|_| self.has_subscribers()) {
            self.hub.publish(Change::Subject(SubjectChange(task)));
        }
    }

    /// Whether it waits for responses of its client.
    fn is_waiting(&self) -> bool {
        !self.state.lock().requests.is_empty()
    }

    fn has_subscribers(&self) -> bool {
        Arc::strong_count(&self.subscribed) > 1
    }

    /// Adds the task to a filter; `false` if the filter is full, or the task has ended and no longer changes.
    pub(crate) fn subscribe(&self, filter: &Filter) -> bool {
        // in this order, so that no change is lost between the two
        let added = filter.add_subject(self.id.clone(), self.subscribed.clone());
        if added && self.state.lock().end.is_some() {
            filter.remove_subject(&self.id);
            return false;
        }
        added
    }

    /// Starts the time to live again, since a client has requested the task; no effect once it has ended.
    pub(crate) fn extend(&self) {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        state.expires = Instant::now() + self.ttl;
        // the store is updated only when its copy lags by a quarter of the time to live
        if state.expires.duration_since(state.stored_expiry) > self.ttl / 4 {
            self.changed.notify_one();
        }
    }

    /// Writes the members that a task has in every status.
    fn write_common(&self, state: &TaskState, task: &mut Object<'_>) {
        let left = state.expires.saturating_duration_since(Instant::now());
        let age = SystemTime::now().duration_since(self.created).unwrap_or_default();
        task.str("taskId", &self.id)
            .str("status", state.status())
            .opt_str("statusMessage", state.status_message().as_deref())
            .str("createdAt", &timestamp(self.created))
            .str("lastUpdatedAt", &timestamp(state.updated))
            .value("ttlMs", &millis(age.saturating_add(left)))
            .value("pollIntervalMs", &millis(self.poll_interval));
    }

    /// Writes the task without its client requests and its result.
    pub(crate) fn write_summary(&self, task: &mut Object<'_>) {
        self.write_common(&self.state.lock(), task);
    }

    fn write_state(&self, state: &TaskState, task: &mut Object<'_>) {
        self.write_common(state, task);
        match &state.end {
            None if state.requests.is_empty() => {}
            None => {
                task.object("inputRequests", |requests| {
                    state.requests.iter().for_each(|open| open.request.write_to(requests));
                });
            }
            Some(end) => {
                if let Some(error) = end.error() {
                    task.object("error", |e| error.write(e));
                } else if let TaskEnd::Replied(reply) = end {
                    reply.write_result(task.key("result"));
                }
            }
        }
    }

    /// Writes the task with its client requests, or its result or error.
    pub(crate) fn write_full(&self, task: &mut Object<'_>) {
        self.write_state(&self.state.lock(), task);
    }

    /// The update that brings the store up to date.
    pub(crate) fn store_update(&self) -> StoreUpdate {
        let mut state = self.state.lock();
        if matches!(state.end, Some(TaskEnd::Expired)) {
            return StoreUpdate::Expired;
        }
        state.stored_expiry = state.expires;
        let mut json = Vec::with_capacity(256);
        let mut task = Object::new(&mut json);
        self.write_state(&state, &mut task);
        task.end();
        let left = state.expires.saturating_duration_since(Instant::now());
        let running = state.end.is_none();
        let record = TaskRecord::new(
            self.id.clone(),
            self.owners.owner.clone(),
            json_text(json),
            running,
            SystemTime::now() + left,
        )
        .with_share(self.owners.sharer.as_str().clone());
        if running { StoreUpdate::Running(record) } else { StoreUpdate::Ended(record) }
    }

    /// Waits until the store must be updated.
    pub(crate) async fn wait_for_change(&self) {
        self.changed.notified().await;
    }

    /// Ends the task; no effect if it has ended already.
    pub(crate) fn end(&self, end: TaskEnd) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.end = Some(end);
            state.requests.clear();
            self.record_change(&mut state);
        }
    }

    /// Replaces the end of a task whose result the store did not take.
    pub(crate) fn replace_end(&self, end: TaskEnd) {
        self.state.lock().end = Some(end);
    }

    /// Ends the task from outside of its function, which is dropped.
    pub(crate) fn stop(&self, end: TaskEnd) {
        self.end(end);
        self.stopped.notify_one();
    }

    /// Waits until the task is stopped, or expires: while its function works, a subscriber keeps it from that.
    pub(crate) async fn wait_for_stop(&self) {
        let expired = async {
            loop {
                let expires = self.state.lock().expires;
                if expires <= Instant::now() {
                    // a task that waits for its client waits in vain if that only listens
                    if self.is_waiting() || !self.has_subscribers() {
                        return;
                    }
                    self.extend();
                }
                sleep_until(expires).await;
            }
        };
        tokio::select! {
            () = self.stopped.notified() => {}
            () = expired => self.end(TaskEnd::Expired),
        }
    }

    /// Drops the client requests whose responses the function no longer awaits.
    pub(crate) fn drop_closed_requests(&self) {
        let mut state = self.state.lock();
        let before = state.requests.len();
        state.requests.retain(|open| !open.response.is_closed());
        if state.requests.len() != before {
            self.record_change(&mut state);
        }
    }

    /// Delivers responses to the function; those without a request are ignored.
    pub(crate) fn deliver_responses(&self, responses: impl IntoIterator<Item = (String, Box<str>)>) {
        let mut state = self.state.lock();
        for (key, response) in responses {
            let Some(at) = state.requests.iter().position(|open| *open.request.key == *key) else {
                continue;
            };
            let open = state.requests.remove(at);
            // the function may have dropped its receiver concurrently
            let _dropped = open.response.send(response);
            self.record_change(&mut state);
        }
    }
}

impl Subject for RunningTask {
    fn id(&self) -> &str {
        &self.id
    }

    fn method(&self) -> &'static str {
        "notifications/tasks"
    }

    fn write(&self, task: &mut Object<'_>) {
        self.write_full(task);
    }
}

impl TaskHandle for RunningTask {
    fn request_input(&self, request: &PendingRequest) -> oneshot::Receiver<Box<str>> {
        let (response, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if state.end.is_some() {
            return receiver;
        }
        let key = unused_key(&state.used_keys, &request.key);
        state.used_keys.insert(key.clone());
        let request = PendingRequest { key, ..request.clone() };
        state.requests.push(OpenRequest { request, response });
        self.record_change(&mut state);
        receiver
    }

    fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let mut state = self.state.lock();
        if state.end.is_some() || progress <= state.progress {
            return;
        }
        state.progress = progress;
        state.message = Some(message.unwrap_or_else(|| match total {
            Some(total) => format!("{progress} of {total}"),
            None => progress.to_string(),
        }));
        self.record_change(&mut state);
    }
}

/// The key itself, or with a number. A key is unique in the lifetime of a task, even among equal requests.
fn unused_key(used: &HashSet<Box<str>>, key: &str) -> Box<str> {
    if !used.contains(key) {
        return key.into();
    }
    let numbered = (2..).map(|n: u32| format!("{key}-{n}"));
    numbered.into_iter().find(|key| !used.contains(key.as_str())).unwrap_or_default().into()
}

/// RFC 3339 in UTC with milliseconds; times before 1970 become 1970.
fn timestamp(at: SystemTime) -> String {
    format_rfc3339_millis(at.max(UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_milliseconds_and_a_time_before_1970_does_not_panic() {
        let at = UNIX_EPOCH + Duration::from_millis(951_868_799_034);
        assert_eq!(timestamp(at), "2000-02-29T23:59:59.034Z");
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_key_is_unique_in_a_task() {
        let mut used = HashSet::new();
        let mut next = |key: &str| {
            let key = unused_key(&used, key);
            used.insert(key.clone());
            key
        };
        assert_eq!(&*next("name"), "name");
        assert_eq!(&*next("name-2"), "name-2");
        assert_eq!(&*next("name"), "name-3");
        assert_eq!(&*next("name-2"), "name-2-2");
    }
}
