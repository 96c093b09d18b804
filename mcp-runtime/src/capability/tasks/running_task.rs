//! A task whose function runs in this process: its status, its client requests, cancellation and expiry. A task ends
//! once, and its subscribers are notified of every change. Of a task that replicas share, clients see only what the store
//! has taken.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use humantime::format_rfc3339_millis;
use tokio::{
    sync::{Notify, oneshot, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    TaskRecord,
    replica::{STOPPED, StoredEnd, StoredRequest, StoredTask, millis, millis_of, raw_json},
};
use crate::core::{
    admission::Owner,
    arguments::BoxFuture,
    changes::{Change, Filter, Hub, Subject, SubjectChange},
    context::{InputResponse, PendingRequest, RawJson, TaskHandle},
    jsonrpc::{Object, ProtocolError},
    reason::Reason,
    sync::Mutex,
};

/// How often clients should poll: `pollIntervalMs` on the wire.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A task whose function is running, or has just ended.
#[derive(Debug)]
pub(crate) struct RunningTask {
    pub(super) id: Arc<str>,
    pub(super) owners: TaskOwners,
    created: SystemTime,
    ttl: Duration,
    state: Mutex<TaskState>,
    /// Notified when the store must be updated.
    changed: Notify,
    /// Notified when the task was ended from outside of its function.
    stopped: Notify,
    hub: Hub,
    weak_self: Weak<Self>,
    /// Every subscribed filter holds a clone.
    subscribed: Arc<()>,
    /// Set if replicas share it.
    shared: Option<SharedTask>,
}

/// The state of a task whose record replicas share.
#[derive(Debug)]
struct SharedTask {
    /// Whether another process may have changed the record.
    must_reload: AtomicBool,
    /// Notified when the record was read.
    reloaded: Notify,
    /// How many of its changes the store has.
    confirmed: watch::Sender<u64>,
}

/// How long a function waits until the store has what it must not do twice.
const SAVE: Duration = Duration::from_secs(2);

/// The owner of a task.
#[derive(Debug)]
pub(super) struct TaskOwners {
    /// The digest of the principal, who alone may request the task; `None` where callers are not identified.
    pub(super) owner: Option<Arc<str>>,
    /// The owner whose share of the store it uses.
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
    /// Set if replicas share it.
    shared: Option<Box<SharedState>>,
}

/// The additional state of a task that replicas share.
#[derive(Debug, Default)]
struct SharedState {
    /// How many changes there were.
    changes: u64,
    /// Whether another process may run the function again.
    may_restart: bool,
    /// The results of `ctx.once`, if it may.
    saved: BTreeMap<String, RawJson>,
    /// Whether a run of the function has consumed the responses.
    consumed: bool,
    /// The responses so far, if it may.
    responses: BTreeMap<String, InputResponse>,
    /// The requests of an earlier run that this one has not sent yet.
    inherited: Vec<StoredRequest>,
    /// The keys of all requests of earlier runs.
    earlier_keys: HashSet<Box<str>>,
}

/// A client request without a response.
#[derive(Debug)]
struct OpenRequest {
    request: PendingRequest,
    response: oneshot::Sender<Box<str>>,
    /// As the record has it, if replicas share the task.
    stored: Option<StoredRequest>,
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
    /// The server stops; of a shared task, another process may run it again.
    Stopped,
    /// Another process runs it, or has ended it.
    Lost,
}

impl TaskEnd {
    /// `error` on the wire.
    fn error(&self) -> Option<Cow<'_, ProtocolError>> {
        match self {
            Self::Replied(reply) => reply.error().map(Cow::Borrowed),
            Self::Failed(error) => Some(Cow::Borrowed(error)),
            Self::Expired => {
                Some(Cow::Owned(ProtocolError::internal("the task expired: no client requested it in time")))
            }
            Self::Cancelled | Self::Stopped | Self::Lost => None,
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
            Self::Stopped => "Stopped",
            Self::Lost => "Lost",
        })
    }
}

/// How a task ended, for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskSummary {
    /// `completed`, `tool_error`, `failed`, `cancelled`, `expired` or `lost`.
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
            None | Some(TaskEnd::Cancelled | TaskEnd::Stopped) => "cancelled",
            Some(TaskEnd::Lost) => "lost",
            Some(TaskEnd::Expired) => "expired",
            Some(TaskEnd::Replied(reply)) if reply.is_tool_error() => "tool_error",
            Some(end) if end.error().is_some() => "failed",
            Some(_) => "completed",
        };
        let code = end.filter(|_| outcome == "failed").and_then(|end| Some(end.error()?.code));
        let reason = match end {
            None | Some(TaskEnd::Cancelled | TaskEnd::Stopped) => Some(Reason::Cancelled),
            Some(TaskEnd::Expired) => Some(Reason::Expired),
            Some(TaskEnd::Replied(reply)) => reply.reason(),
            Some(TaskEnd::Failed(_) | TaskEnd::Lost) => None,
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
            Some(TaskEnd::Cancelled | TaskEnd::Stopped | TaskEnd::Lost) => "cancelled",
            Some(end) if end.error().is_some() => "failed",
            Some(_) => "completed",
        }
    }

    /// `statusMessage` on the wire: the error's message, or the last progress message.
    fn status_message(&self) -> Option<String> {
        match &self.end {
            None => self.message.clone(),
            Some(end) => end.error().map(|error| error.message.clone()),
        }
    }
}

impl RunningTask {
    pub(super) fn new(
        id: Arc<str>,
        owners: TaskOwners,
        ttl: Duration,
        hub: Hub,
        is_shared: bool,
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
            shared: is_shared.then(Box::default),
        };
        let shared = is_shared.then(|| SharedTask {
            must_reload: AtomicBool::new(false),
            reloaded: Notify::new(),
            confirmed: watch::Sender::new(0),
        });
        let (changed, stopped) = (Notify::new(), Notify::new());
        Arc::new_cyclic(|weak_self| Self {
            id,
            owners,
            created: now,
            ttl,
            state: Mutex::new(state),
            changed,
            stopped,
            hub,
            weak_self: weak_self.clone(),
            subscribed: Arc::default(),
            shared,
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
        if let Some(shared) = &mut state.shared {
            // subscribers are told once the store has it
            shared.changes += 1;
            return;
        }
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
            .value("pollIntervalMs", &millis(POLL_INTERVAL));
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
        let record = TaskRecord {
            id: self.id.clone(),
            owner: self.owners.owner.clone(),
            json: json_text(json),
            expires: SystemTime::now() + left,
            sharer: self.owners.sharer.clone(),
        };
        if state.end.is_none() { StoreUpdate::Running(record) } else { StoreUpdate::Ended(record) }
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

    /// Whether its time to live has passed.
    pub(super) fn is_due(&self) -> bool {
        self.state.lock().expires <= Instant::now()
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
                    match &self.shared {
                        // a client may have requested it at another replica
                        Some(shared) => {
                            let reloaded = shared.reloaded.notified();
                            self.reload();
                            let _in_time = timeout(self.ttl, reloaded).await;
                            if self.state.lock().expires <= Instant::now() {
                                return;
                            }
                        }
                        None if self.is_waiting() || !self.has_subscribers() => return,
                        None => self.extend(),
                    }
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
        let TaskState { used_keys, shared, .. } = &mut *state;
        let (key, earlier) = match shared {
            None => (unused_key(used_keys, &request.key), None),
            Some(shared) => shared.find_key(used_keys, request),
        };
        used_keys.insert(key.clone());
        if let Some(earlier) = earlier {
            // the function runs again, and its client has responded before
            let _unused = response.send(earlier);
            return receiver;
        }
        let request = PendingRequest { key, ..request.clone() };
        let stored = shared.as_ref().map(|_| StoredRequest::new(&request));
        state.requests.push(OpenRequest { request, response, stored });
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

    fn saved(&self, key: &str) -> Option<RawJson> {
        self.state.lock().shared.as_ref()?.saved.get(key).cloned()
    }

    fn may_run_again(&self) -> bool {
        self.state.lock().shared.as_ref().is_some_and(|shared| shared.may_restart)
    }

    fn save(&self, key: &str, value: RawJson) -> BoxFuture<()> {
        let mut state = self.state.lock();
        let (Some(shared), Some(own)) = (&self.shared, state.shared.as_mut()) else {
            return Box::pin(std::future::ready(()));
        };
        own.saved.insert(key.to_owned(), value);
        let change = own.changes + 1;
        self.record_change(&mut state);
        let mut confirmed = shared.confirmed.subscribe();
        Box::pin(async move {
            // later it is saved with the next change
            let _in_time = timeout(SAVE, confirmed.wait_for(|confirmed| *confirmed >= change)).await;
        })
    }

    fn consume(&self) -> BoxFuture<bool> {
        let mut state = self.state.lock();
        let has_ended = state.end.is_some();
        let (Some(shared), Some(own)) = (&self.shared, state.shared.as_mut()) else {
            return Box::pin(std::future::ready(!has_ended));
        };
        if has_ended || std::mem::replace(&mut own.consumed, true) {
            return Box::pin(std::future::ready(false));
        }
        let change = own.changes + 1;
        self.record_change(&mut state);
        let (mut confirmed, task) = (shared.confirmed.subscribe(), self.weak_self.clone());
        Box::pin(async move {
            let saved = timeout(SAVE, confirmed.wait_for(|confirmed| *confirmed >= change)).await;
            let is_saved = saved.is_ok_and(|saved| saved.is_ok());
            if !is_saved && let Some(task) = task.upgrade() {
                // nothing was used: the function may try again
                task.forget_consumption();
            }
            is_saved
        })
    }
}

impl SharedState {
    /// The key of a request, and the response to it if an earlier run of the function has got that. A key stands for one
    /// request in the lifetime of a task.
    fn find_key(
        &mut self,
        used: &HashSet<Box<str>>,
        request: &PendingRequest,
    ) -> (Box<str>, Option<Box<str>>) {
        if self.earlier_keys.is_empty() && self.responses.is_empty() {
            return (unused_key(used, &request.key), None);
        }
        let digest = request.digest();
        let mut refused = used.clone();
        loop {
            let key = unused_key(&refused, &request.key);
            if let Some(response) = self.responses.get(&*key).filter(|response| response.digest == digest) {
                return (key, Some(response.value.get().into()));
            }
            if let Some(at) =
                self.inherited.iter().position(|known| known.key == key && known.digest == digest)
            {
                self.inherited.remove(at);
                return (key, None);
            }
            if !self.earlier_keys.contains(&key) && !self.responses.contains_key(&*key) {
                return (key, None);
            }
            refused.insert(key);
        }
    }
}

/// The next step of a replica after it has compared a task with its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// It puts the record of a running task; the number of changes that it has.
    Running(u64),
    /// It puts the record of a task that has ended or was given up.
    Ended,
    /// It removes the record.
    Expired,
    /// Another process has the task.
    Lost,
}

/// Methods of a task that replicas share.
impl RunningTask {
    /// Whether another process may have changed the record, which has to be read.
    pub(super) fn take_reload(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.must_reload.swap(false, Ordering::Relaxed))
    }

    /// Has the record be read.
    pub(super) fn reload(&self) {
        if let Some(shared) = &self.shared {
            shared.must_reload.store(true, Ordering::Relaxed);
            self.changed.notify_one();
        }
    }

    /// The record has to be read before it is written.
    pub(super) fn mark_for_reload(&self) {
        if let Some(shared) = &self.shared {
            shared.must_reload.store(true, Ordering::Relaxed);
        }
    }

    /// Replaces a result that the store did not take; `false` if there is none.
    pub(super) fn replace_result(&self, error: ProtocolError) -> bool {
        let mut state = self.state.lock();
        let has_result = matches!(state.end, Some(TaskEnd::Replied(_)));
        if has_result {
            state.end = Some(TaskEnd::Failed(error));
        }
        has_result
    }

    /// The record was read.
    pub(super) fn set_reloaded(&self) {
        if let Some(shared) = &self.shared {
            shared.reloaded.notify_waiters();
        }
    }

    /// Confirms that the store has this many changes.
    pub(super) fn confirm(&self, changes: u64) {
        if let Some(shared) = &self.shared {
            shared.confirmed.send_replace(changes);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Lets another process run the function again, with what an earlier round trip of its call has brought.
    pub(super) fn allow_restart(
        &self,
        saved: BTreeMap<String, RawJson>,
        responses: BTreeMap<String, InputResponse>,
        consumed: bool,
    ) {
        if let Some(shared) = &mut self.state.lock().shared {
            shared.may_restart = true;
            shared.saved = saved;
            shared.responses = responses;
            shared.consumed = consumed;
        }
    }

    /// The store has not taken in time that the responses are consumed.
    fn forget_consumption(&self) {
        let mut state = self.state.lock();
        if state.end.is_none()
            && let Some(own) = state.shared.as_mut()
        {
            own.consumed = false;
            self.record_change(&mut state);
        }
    }

    /// Takes over the record of a task that another process has begun.
    pub(super) fn inherit(&self, record: &StoredTask) {
        let mut state = self.state.lock();
        state.message.clone_from(&record.message);
        let Some(shared) = &mut state.shared else { return };
        shared.may_restart = true;
        shared.inherited.clone_from(&record.requests);
        shared.responses.clone_from(&record.responses);
        if let Some(call) = &record.restart {
            shared.saved.clone_from(&call.saved);
            shared.consumed = call.consumed;
            shared.earlier_keys = call.keys.iter().cloned().collect();
        }
    }

    /// The record of a new task.
    pub(super) fn new_record(&self, runner: Arc<str>) -> StoredTask {
        let created = millis_of(self.created);
        StoredTask {
            owner: self.owners.owner.clone(),
            share: self.owners.sharer.as_str().clone(),
            created,
            updated: created,
            expires: created.saturating_add(millis(self.ttl)),
            ttl: millis(self.ttl),
            poll_interval: millis(POLL_INTERVAL),
            message: None,
            requests: Vec::new(),
            responses: BTreeMap::new(),
            end: None,
            runner,
            is_released: false,
            watchers: Vec::new(),
            restart: None,
        }
    }

    /// Takes from the record what other processes have changed.
    pub(super) fn take_changes(&self, record: &StoredTask) {
        let mut state = self.state.lock();
        let left = Duration::from_millis(record.expires.saturating_sub(millis_of(SystemTime::now())));
        state.expires = state.expires.max(Instant::now() + left);
        for (key, response) in &record.responses {
            let open = state.requests.iter().position(|open| *open.request.key == **key);
            if let Some(at) = open {
                let open = state.requests.remove(at);
                // the function may have dropped its receiver concurrently
                let _dropped = open.response.send(response.value.get().into());
            }
            if let Some(shared) = &mut state.shared {
                shared.inherited.retain(|known| *known.key != **key);
                if shared.may_restart {
                    shared.responses.insert(key.clone(), response.clone());
                }
            }
        }
    }

    /// Writes the task into its record.
    pub(super) fn fill(&self, record: &mut StoredTask) -> Filled {
        let state = self.state.lock();
        let Some(shared) = &state.shared else { return Filled::Lost };
        let left = state.expires.saturating_duration_since(Instant::now());
        record.updated = record.updated.max(millis_of(state.updated));
        record.expires = record.expires.max(millis_of(SystemTime::now() + left));
        record.message.clone_from(&state.message);
        let open = state.requests.iter().filter_map(|open| open.stored.clone());
        record.requests = shared.inherited.iter().cloned().chain(open).collect();
        record.responses = if shared.may_restart { shared.responses.clone() } else { BTreeMap::new() };
        if let Some(call) = &mut record.restart {
            call.saved.clone_from(&shared.saved);
            call.consumed = shared.consumed;
            call.keys = shared.earlier_keys.iter().chain(&state.used_keys).cloned().collect();
        }
        let Some(end) = &state.end else { return Filled::Running(shared.changes) };
        match end {
            TaskEnd::Lost => return Filled::Lost,
            TaskEnd::Stopped if record.restart.is_some() => record.is_released = true,
            TaskEnd::Stopped => record.fail(&ProtocolError::internal(STOPPED)),
            TaskEnd::Cancelled => {
                record.message = None;
                record.finish(StoredEnd::Cancelled);
            }
            TaskEnd::Replied(_) | TaskEnd::Failed(_) | TaskEnd::Expired => match (end.error(), end) {
                (Some(error), _) => record.fail(&error),
                (None, TaskEnd::Replied(reply)) => {
                    let mut json = Vec::with_capacity(256);
                    reply.write_result(&mut json);
                    record.message = None;
                    record.finish(StoredEnd::Result(raw_json(json_text(json).into())));
                }
                (None, _) => {}
            },
        }
        if matches!(end, TaskEnd::Expired) { Filled::Expired } else { Filled::Ended }
    }

    /// The function is dropped: another process has the task, or has ended it.
    pub(super) fn lose(&self, end: TaskEnd) {
        {
            let mut state = self.state.lock();
            state.end = Some(end);
            state.requests.clear();
        }
        self.stopped.notify_one();
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
pub(super) fn timestamp(at: SystemTime) -> String {
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
