//! A task whose function is running: what it shows, what it asks, who may stop it. `Tasks` hands it out, its driver in
//! dispatch ends it, its function reports to it through the context.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fmt,
    sync::{Arc, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use humantime::format_rfc3339_millis;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};

use crate::{
    context::{PendingRequest, TaskHandle},
    events::{Change, Filter, Hub, TaskChange, TaskView},
    jsonrpc::{Object, ProtocolError},
    store::TaskRecord,
    sync::Mutex,
};

/// A task whose function is running, or has just ended.
#[derive(Debug)]
pub(crate) struct RunningTask {
    pub(super) id: Arc<str>,
    pub(super) owner: Option<Arc<str>>,
    created: SystemTime,
    ttl: Duration,
    poll_interval: Duration,
    state: Mutex<TaskState>,
    /// There is something to keep.
    changed: Notify,
    /// Somebody has ended it who is not its function.
    stopped: Notify,
    hub: Hub,
    this: Weak<Self>,
    /// Held by those who follow it as well.
    followed: Arc<()>,
}

#[derive(Debug)]
struct TaskState {
    updated: SystemTime,
    expires: Instant,
    /// What is kept says so.
    kept_until: Instant,
    message: Option<String>,
    progress: f64,
    /// In the order in which they were sent.
    requests: Vec<OpenRequest>,
    /// Every key that a client request ever had.
    issued: BTreeSet<Box<str>>,
    ended: Option<TaskEnd>,
}

/// A client request without a response.
#[derive(Debug)]
struct OpenRequest {
    request: PendingRequest,
    response: oneshot::Sender<Box<str>>,
}

/// What a task's function ended with.
pub(crate) trait FinalReply: Send + Sync {
    /// The error that the call would have had.
    fn error(&self) -> Option<&ProtocolError>;

    /// Appends the result that the call would have had; nothing if it would have had an error.
    fn write_result(&self, out: &mut Vec<u8>);
}

/// How a task ended.
#[derive(Clone)]
pub(crate) enum TaskEnd {
    Replied(Arc<dyn FinalReply>),
    Failed(ProtocolError),
    Cancelled,
    /// No client asked for it for too long.
    Expired,
}

impl TaskEnd {
    /// The error that the task shows.
    fn error(&self) -> Option<Cow<'_, ProtocolError>> {
        match self {
            Self::Replied(outcome) => outcome.error().map(Cow::Borrowed),
            Self::Failed(error) => Some(Cow::Borrowed(error)),
            Self::Expired => {
                Some(Cow::Owned(ProtocolError::internal("the task expired: no client asked for it")))
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

/// What is to be done about a task that has changed.
#[derive(Debug)]
pub(crate) enum StoreUpdate {
    /// It goes on.
    Running(TaskRecord),
    /// It has ended like this.
    TaskEnd(TaskRecord),
    /// It is to be forgotten.
    Nothing,
}

fn text(json: Vec<u8>) -> Box<str> {
    // it was written as text, so nothing is lost
    String::from_utf8(json).unwrap_or_default().into()
}

impl TaskState {
    fn status(&self) -> &'static str {
        match &self.ended {
            None if self.requests.is_empty() => "working",
            None => "input_required",
            Some(TaskEnd::Cancelled) => "cancelled",
            Some(ended) if ended.error().is_some() => "failed",
            Some(_) => "completed",
        }
    }

    /// The message that the task shows: why it failed, or how far it has come.
    fn message(&self) -> Option<String> {
        match &self.ended {
            None => self.message.clone(),
            Some(ended) => ended.error().map(|error| error.message.clone()),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl RunningTask {
    pub(super) fn new(
        id: Arc<str>,
        owner: Option<Arc<str>>,
        ttl: Duration,
        poll_interval: Duration,
        hub: Hub,
    ) -> Arc<Self> {
        let (now, expires) = (SystemTime::now(), Instant::now() + ttl);
        let state = TaskState {
            updated: now,
            expires,
            kept_until: expires,
            message: None,
            progress: f64::NEG_INFINITY,
            requests: Vec::new(),
            issued: BTreeSet::new(),
            ended: None,
        };
        let (changed, stopped) = (Notify::new(), Notify::new());
        Arc::new_cyclic(|this| Self {
            id,
            owner,
            created: now,
            ttl,
            poll_interval,
            state: Mutex::new(state),
            changed,
            stopped,
            hub,
            this: this.clone(),
            followed: Arc::default(),
        })
    }

    pub(super) fn has_expired(&self) -> bool {
        matches!(self.state.lock().ended, Some(TaskEnd::Expired))
    }

    /// Something about it is new.
    fn touch(&self, state: &mut TaskState) {
        state.updated = SystemTime::now();
        state.expires = Instant::now() + self.ttl;
        self.changed.notify_one();
        // it is looked at later, by whoever tells of it
        if let Some(this) = self.this.upgrade().filter(|_| self.is_followed()) {
            self.hub.publish(Change::Task(TaskChange(this)));
        }
    }

    fn is_followed(&self) -> bool {
        Arc::strong_count(&self.followed) > 1
    }

    /// Tells those of a filter of everything that changes from now on; `false` if nothing will, or there is no room.
    pub(crate) fn follow(&self, filter: &Filter) -> bool {
        // in this order, so that no change is lost between the two
        let follows = filter.follow_task(self.id.clone(), self.followed.clone());
        if follows && self.state.lock().ended.is_some() {
            filter.leave_task(&self.id);
            return false;
        }
        follows
    }

    /// A client has asked for it, so it is kept for longer, unless it has ended.
    pub(crate) fn extend(&self) {
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return;
        }
        state.expires = Instant::now() + self.ttl;
        // not worth telling the store each time
        if state.expires.duration_since(state.kept_until) > self.ttl / 4 {
            self.changed.notify_one();
        }
    }

    /// Writes what every task shows.
    fn write_head(&self, state: &TaskState, task: &mut Object<'_>) {
        let left = state.expires.saturating_duration_since(Instant::now());
        let age = SystemTime::now().duration_since(self.created).unwrap_or_default();
        task.str("taskId", &self.id)
            .str("status", state.status())
            .opt_str("statusMessage", state.message().as_deref())
            .str("createdAt", &timestamp(self.created))
            .str("lastUpdatedAt", &timestamp(state.updated))
            .value("ttlMs", &millis(age.saturating_add(left)))
            .value("pollIntervalMs", &millis(self.poll_interval));
    }

    /// Writes what the reply to the call shows: no client request and no result.
    pub(crate) fn write_seed(&self, task: &mut Object<'_>) {
        self.write_head(&self.state.lock(), task);
    }

    fn write_state(&self, state: &TaskState, task: &mut Object<'_>) {
        self.write_head(state, task);
        match &state.ended {
            None if state.requests.is_empty() => {}
            None => {
                task.object("inputRequests", |requests| {
                    state.requests.iter().for_each(|open| open.request.write_to(requests));
                });
            }
            Some(ended) => {
                if let Some(error) = ended.error() {
                    task.object("error", |e| error.write(e));
                } else if let TaskEnd::Replied(outcome) = ended {
                    outcome.write_result(task.key("result"));
                }
            }
        }
    }

    /// Writes all that the task shows.
    pub(crate) fn write_whole(&self, task: &mut Object<'_>) {
        self.write_state(&self.state.lock(), task);
    }

    /// What the store has to keep of it.
    pub(crate) fn keep(&self) -> StoreUpdate {
        let mut state = self.state.lock();
        if matches!(state.ended, Some(TaskEnd::Expired)) {
            return StoreUpdate::Nothing;
        }
        state.kept_until = state.expires;
        let mut json = Vec::with_capacity(256);
        let mut task = Object::new(&mut json);
        self.write_state(&state, &mut task);
        task.end();
        let left = state.expires.saturating_duration_since(Instant::now());
        let running = state.ended.is_none();
        let record = TaskRecord::new(
            self.id.clone(),
            self.owner.clone(),
            text(json),
            running,
            SystemTime::now() + left,
        );
        if running { StoreUpdate::Running(record) } else { StoreUpdate::TaskEnd(record) }
    }

    /// Waits for something to keep.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Ends it, unless it has ended before.
    pub(crate) fn end(&self, how: TaskEnd) {
        let mut state = self.state.lock();
        if state.ended.is_none() {
            state.ended = Some(how);
            state.requests.clear();
            self.touch(&mut state);
        }
    }

    /// Ends it like this instead, since its true end cannot be kept.
    pub(crate) fn end_instead(&self, how: TaskEnd) {
        self.state.lock().ended = Some(how);
    }

    /// Ends it, unless it has ended before; its function is dropped.
    pub(crate) fn stop(&self, how: TaskEnd) {
        self.end(how);
        self.stopped.notify_one();
    }

    /// Waits until somebody stops it, or nobody has asked for it for too long.
    pub(crate) async fn given_up(&self) {
        let expired = async {
            loop {
                let expires = self.state.lock().expires;
                if expires <= Instant::now() {
                    if !self.is_followed() {
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

    /// After its function was polled: drops the requests whose responses are no longer awaited.
    pub(crate) fn polled(&self) {
        let mut state = self.state.lock();
        let before = state.requests.len();
        state.requests.retain(|open| !open.response.is_closed());
        if state.requests.len() != before {
            self.touch(&mut state);
        }
    }

    /// Delivers responses to the function; those without a request are ignored.
    pub(crate) fn answer(&self, responses: impl IntoIterator<Item = (String, Box<str>)>) {
        let mut state = self.state.lock();
        for (key, response) in responses {
            let Some(at) = state.requests.iter().position(|open| *open.request.key == *key) else {
                continue;
            };
            let open = state.requests.remove(at);
            // the function may have dropped its receiver in this moment
            let _dropped = open.response.send(response);
            self.touch(&mut state);
        }
    }
}

impl TaskView for RunningTask {
    fn id(&self) -> &str {
        &self.id
    }

    fn write(&self, task: &mut Object<'_>) {
        self.write_whole(task);
    }
}

impl TaskHandle for RunningTask {
    fn request_input(&self, request: &PendingRequest) -> oneshot::Receiver<Box<str>> {
        let (response, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return receiver;
        }
        let key = unused(&state.issued, &request.key);
        state.issued.insert(key.clone());
        let request = PendingRequest { key, ..request.clone() };
        state.requests.push(OpenRequest { request, response });
        self.touch(&mut state);
        receiver
    }

    fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let mut state = self.state.lock();
        if state.ended.is_some() || progress <= state.progress {
            return;
        }
        state.progress = progress;
        state.message = Some(message.unwrap_or_else(|| match total {
            Some(total) => format!("{progress} of {total}"),
            None => progress.to_string(),
        }));
        self.touch(&mut state);
    }
}

/// A key is never used again while a task lives, not even for the same request.
fn unused(issued: &BTreeSet<Box<str>>, key: &str) -> Box<str> {
    if !issued.contains(key) {
        return key.into();
    }
    let numbered = (2..).map(|n: u32| format!("{key}-{n}"));
    numbered.into_iter().find(|key| !issued.contains(key.as_str())).unwrap_or_default().into()
}

/// RFC 3339 in UTC with milliseconds; a clock before 1970 is shown as its beginning.
fn timestamp(at: SystemTime) -> String {
    format_rfc3339_millis(at.max(UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_milliseconds_and_a_clock_before_1970_does_not_panic() {
        let at = UNIX_EPOCH + Duration::from_millis(951_868_799_034);
        assert_eq!(timestamp(at), "2000-02-29T23:59:59.034Z");
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_key_is_used_once() {
        let mut issued = BTreeSet::new();
        let mut next = |key: &str| {
            let key = unused(&issued, key);
            issued.insert(key.clone());
            key
        };
        assert_eq!(&*next("name"), "name");
        assert_eq!(&*next("name-2"), "name-2");
        assert_eq!(&*next("name"), "name-3");
        assert_eq!(&*next("name-2"), "name-2-2");
    }
}
