//! A task whose function runs in this process: the record as the function has it, the requests to its client, and how it is
//! stopped. What clients see is the record that the store has taken; [`Tasks::keep`](super::Tasks) brings the two together.
//!
//! | a task ends by | called by | its function | what the store gets |
//! |---|---|---|---|
//! | `end` | its function's reply | has returned | the result, or its error |
//! | `cancel` | the end of its call without a reply | was dropped | `cancelled` |
//! | `fail` | a client request for which the store has no room | is dropped | the error |
//! | `release` | the process, which stops | is dropped | that another may run it again, or an error |
//! | `lose` | the record in the store, which its client has cancelled or another process has | is dropped | nothing |
//! | `wait_for_stop` | its time to live | is dropped | that it has expired |

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until, timeout},
};

use super::{
    record::{STOPPED, StoredCall, StoredEnd, StoredTask, now},
    saves::Saves,
};
use crate::core::{
    arguments::BoxFuture,
    context::{InputResponse, PendingRequest, RawJson, TaskHandle},
    jsonrpc::ProtocolError,
    observer::EndOutcome,
    reason::Reason,
    sync::Mutex,
    unix_time::unix_millis,
};

/// A task whose function is running, or has just ended.
pub(crate) struct RunningTask {
    pub(super) id: Arc<str>,
    ttl: Duration,
    state: Mutex<TaskState>,
    /// Notified when the record must be written or read.
    changed: Notify,
    /// Notified when the record was read.
    reloaded: Notify,
    /// Notified when the task was ended from outside of its function.
    stopped: Notify,
}

// one struct, since all of it changes behind one lock: what is written must be of one moment
struct TaskState {
    /// As the function has it.
    record: StoredTask,
    expires: Instant,
    progress: f64,
    /// By key, who waits for the response to a request of this run.
    open: Vec<(Box<str>, oneshot::Sender<Box<str>>)>,
    /// The keys of the requests of this run.
    used_keys: HashSet<Box<str>>,
    /// Which of its changes the store has.
    saves: Saves,
    must_reload: bool,
    /// How the function has ended here, for logs.
    end: Option<TaskSummary>,
    /// Whether nothing more is written: another process has the task, or has ended it.
    is_lost: bool,
}

/// How a task ended, for logs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskSummary {
    pub(crate) outcome: EndOutcome,
    /// The error's code, if it failed.
    pub(crate) code: Option<i64>,
    /// Why it has failed, as far as that is known.
    pub(crate) reason: Option<Reason>,
}

impl TaskSummary {
    pub(super) const CANCELLED: Self = Self::new(EndOutcome::Cancelled, Some(Reason::Cancelled));
    const EXPIRED: Self = Self::new(EndOutcome::Expired, Some(Reason::Expired));
    pub(super) const LOST: Self = Self::new(EndOutcome::Lost, None);

    pub(super) const fn new(outcome: EndOutcome, reason: Option<Reason>) -> Self {
        Self { outcome, code: None, reason }
    }

    pub(super) const fn failed(code: i64, reason: Option<Reason>) -> Self {
        Self { outcome: EndOutcome::Failed, code: Some(code), reason }
    }
}

impl RunningTask {
    pub(super) fn new(id: Arc<str>, record: StoredTask, ttl: Duration) -> Arc<Self> {
        let expires = Instant::now() + ttl;
        Arc::new(Self {
            id,
            ttl,
            state: Mutex::new(TaskState {
                record,
                expires,
                progress: f64::NEG_INFINITY,
                open: Vec::new(),
                used_keys: HashSet::new(),
                saves: Saves::new(expires),
                must_reload: false,
                end: None,
                is_lost: false,
            }),
            changed: Notify::new(),
            reloaded: Notify::new(),
            stopped: Notify::new(),
        })
    }

    /// Its id as logs have it: any client that has the id of a task without an owner may see the task, so that only its
    /// beginning is told.
    pub(super) fn id_for_logs(&self) -> &str {
        id_for_logs(&self.id, &self.state.lock().record)
    }

    /// How it has ended.
    pub(super) fn summary(&self) -> TaskSummary {
        // otherwise its future was dropped
        self.state.lock().end.unwrap_or(TaskSummary::CANCELLED)
    }

    /// Lets another process run the function of a new task again, with the responses that its call has got before.
    pub(super) fn allow_restart(&self, call: Box<StoredCall>, responses: BTreeMap<String, InputResponse>) {
        let record = &mut self.state.lock().record;
        (record.restart, record.responses) = (Some(call), responses);
    }

    /// Goes on with the record of a task that another process has begun.
    pub(super) fn inherit(&self, taken: &StoredTask) {
        let mut state = self.state.lock();
        state.record = taken.clone();
        if state.end.is_some() {
            // this process stops already
            state.record.released = Some(now());
        }
    }

    /// The record as the function has it.
    pub(super) fn record(&self) -> StoredTask {
        self.state.lock().record.clone()
    }

    /// Records a change, which is written later.
    fn change(&self, state: &mut TaskState) {
        state.record.touch();
        state.expires = Instant::now() + self.ttl;
        state.saves.add_change();
        self.changed.notify_one();
    }

    /// Starts the time to live again, since a client has requested the task; no effect once it has ended.
    pub(super) fn extend(&self) {
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        state.expires = Instant::now() + self.ttl;
        if state.saves.expiry_lags(state.expires, self.ttl) {
            self.changed.notify_one();
        }
    }

    /// Has the record be read.
    pub(super) fn reload(&self) {
        self.state.lock().must_reload = true;
        self.changed.notify_one();
    }

    pub(super) fn take_reload(&self) -> bool {
        std::mem::take(&mut self.state.lock().must_reload)
    }

    /// Waits until the record must be written or read.
    pub(super) async fn wait_for_change(&self) {
        self.changed.notified().await;
    }

    /// Whether the store has everything of a task that has ended, or nothing of it is written any more.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.state.lock();
        state.is_lost || (state.end.is_some() && state.saves.is_complete())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Whether its time to live has passed.
    pub(super) fn is_due(&self) -> bool {
        self.state.lock().expires <= Instant::now()
    }

    /// Whether it waits for responses of its client.
    pub(super) fn is_waiting(&self) -> bool {
        self.state.lock().record.is_waiting()
    }

    /// Ends the task, unless it has ended already.
    pub(super) fn end(&self, summary: TaskSummary, end: impl FnOnce(&mut StoredTask)) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.end = Some(summary);
            state.open.clear();
            end(&mut state.record);
            self.change(&mut state);
        }
    }

    /// Ends the task from outside of its function, which is dropped.
    fn stop(&self, summary: TaskSummary, end: impl FnOnce(&mut StoredTask)) {
        self.end(summary, end);
        self.stopped.notify_one();
    }

    pub(super) fn cancel(&self) {
        self.end(TaskSummary::CANCELLED, |record| record.finish(StoredEnd::Cancelled, None));
    }

    pub(super) fn fail(&self, error: &ProtocolError) {
        self.stop(TaskSummary::failed(error.code, None), |record| record.fail(error));
    }

    /// The process stops: another one may run the task again, or it has failed.
    pub(super) fn release(&self) {
        self.stop(TaskSummary::CANCELLED, |record| match record.restart {
            Some(_) => record.released = Some(now()),
            None => record.fail(&ProtocolError::internal(STOPPED)),
        });
    }

    /// Another process has the task, or has ended it: the function is dropped, and nothing is written.
    pub(super) fn lose(&self, summary: TaskSummary) {
        {
            let mut state = self.state.lock();
            state.end.get_or_insert(summary);
            state.open.clear();
            state.is_lost = true;
        }
        self.stopped.notify_one();
    }

    /// The store has no room for what was merged last; `false` if nothing can be done about it.
    pub(super) fn give_way(&self) -> bool {
        let mut state = self.state.lock();
        if matches!(state.record.end, Some(StoredEnd::Result(_))) {
            let error = ProtocolError::internal("the result could not be saved");
            state.end = Some(TaskSummary::failed(error.code, None));
            state.record.fail(&error);
            self.change(&mut state);
            return true;
        }
        let has_ended = state.end.is_some();
        if !has_ended && state.saves.has_unsaved_request() {
            drop(state);
            // its client would never learn of it, and the function would wait for it
            let error = "the client requests of the task could not be saved: the store is full";
            self.fail(&ProtocolError::internal(error));
            return true;
        }
        if !has_ended {
            state.saves.give_up();
        }
        !has_ended
    }

    /// The store has what was merged last.
    pub(super) fn confirm(&self) {
        self.state.lock().saves.confirm();
    }

    /// Takes from the record in the store what others have changed, and writes what has changed here; `false` if that is
    /// nothing.
    pub(super) fn merge(&self, stored: &mut StoredTask, process: &str) -> bool {
        if let Some(summary) = lost_by(stored, process) {
            // or the reply to the write of its own end was lost
            self.lose(summary);
            return false;
        }
        let mut state = self.state.lock();
        state.take_changes(stored, self.ttl);
        state.write_to(stored, self.ttl)
    }

    /// Waits until the task is stopped, or expires.
    pub(super) async fn wait_for_stop(&self) {
        let expired = async {
            loop {
                let expires = self.state.lock().expires;
                if expires <= Instant::now() {
                    // a client may have requested it at another replica, or listen to it
                    let reloaded = self.reloaded.notified();
                    self.reload();
                    let _in_time = timeout(self.ttl, reloaded).await;
                    if self.is_due() {
                        return;
                    }
                }
                sleep_until(expires).await;
            }
        };
        tokio::select! {
            () = self.stopped.notified() => {}
            () = expired => {
                let error = ProtocolError::internal("the task expired: no client requested it in time");
                self.end(TaskSummary::EXPIRED, |record| record.fail(&error));
            }
        }
    }

    /// The record was read.
    pub(super) fn set_reloaded(&self) {
        self.reloaded.notify_waiters();
    }

    /// Drops the client requests whose responses the function no longer awaits.
    pub(super) fn drop_closed_requests(&self) {
        let mut state = self.state.lock();
        let TaskState { record, open, .. } = &mut *state;
        let before = open.len();
        open.retain(|(key, waits)| {
            if waits.is_closed() {
                record.requests.retain(|request| request.key != *key);
            }
            !waits.is_closed()
        });
        if open.len() != before {
            self.change(&mut state);
        }
    }
}

impl TaskState {
    /// Takes what others have changed: the responses of the client, whether it watches, and when the task expires.
    fn take_changes(&mut self, stored: &StoredTask, ttl: Duration) {
        let Self { record, open, .. } = self;
        let mut has_responses = false;
        for (key, response) in &stored.responses {
            if let Some(at) = open.iter().position(|(open, _)| **open == **key) {
                let (_, waits) = open.swap_remove(at);
                // the function may have dropped its receiver concurrently
                let _dropped = waits.send(response.value.get().into());
                has_responses = true;
            }
            record.requests.retain(|request| *request.key != **key);
            if record.restart.is_some() {
                record.responses.insert(key.clone(), response.clone());
            }
        }
        record.is_watched |= stored.is_watched;
        if has_responses || stored.expires > record.expires {
            let left = if has_responses { ttl } else { stored.left() };
            self.expires = self.expires.max(Instant::now() + left);
        }
    }

    /// Writes the record, if it has changed or its expiry lags; whether it has.
    fn write_to(&mut self, stored: &mut StoredTask, ttl: Duration) -> bool {
        let (record, has_changed) = (&mut self.record, self.saves.is_due());
        record.updated = record.updated.max(stored.updated + u64::from(has_changed));
        if !has_changed && !self.saves.expiry_lags(self.expires, ttl) {
            // others have extended it
            record.expires = stored.expires;
            return false;
        }
        self.saves.merge(self.expires);
        let left = self.expires.saturating_duration_since(Instant::now());
        record.expires = match self.end {
            // it is gone
            Some(TaskSummary::EXPIRED) => now(),
            _ => unix_millis(SystemTime::now() + left).max(stored.expires),
        };
        *stored = record.clone();
        true
    }

    /// The key of a request, and the response to it if an earlier run of the function has got that. A key stands for one
    /// request in the lifetime of a task.
    fn find_key(&self, request: &PendingRequest) -> (Box<str>, Option<Box<str>>) {
        let Some(call) = &self.record.restart else {
            return (unused_key(&self.used_keys, &request.key), None);
        };
        let digest = request.digest();
        let mut refused = self.used_keys.clone();
        loop {
            let key = unused_key(&refused, &request.key);
            let response = self.record.responses.get(&*key);
            if let Some(response) = response.filter(|response| response.digest == digest) {
                return (key, Some(response.value.get().into()));
            }
            // a request of an earlier run that its client has not answered yet
            let is_same = self.record.requests.iter().any(|open| open.key == key && open.digest == digest);
            if is_same || !(call.keys.contains(&key) || response.is_some()) {
                return (key, None);
            }
            refused.insert(key);
        }
    }
}

impl TaskHandle for RunningTask {
    fn request_input(&self, request: &PendingRequest) -> oneshot::Receiver<Box<str>> {
        let (response, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if state.end.is_some() {
            return receiver;
        }
        let (key, earlier) = state.find_key(request);
        state.used_keys.insert(key.clone());
        if let Some(call) = state.record.restart.as_mut().filter(|call| !call.keys.contains(&key)) {
            call.keys.push(key.clone());
        }
        if let Some(earlier) = earlier {
            // the function runs again, and its client has responded before
            let _unused = response.send(earlier);
            return receiver;
        }
        if !state.record.requests.iter().any(|open| open.key == key) {
            state.record.ask(&PendingRequest { key: key.clone(), ..request.clone() });
            state.saves.add_request();
        }
        state.open.push((key, response));
        self.change(&mut state);
        receiver
    }

    fn report_progress(&self, progress: f64, total: Option<f64>, message: Option<String>) {
        let mut state = self.state.lock();
        if state.end.is_some() || progress <= state.progress {
            return;
        }
        state.progress = progress;
        state.record.message = Some(message.unwrap_or_else(|| match total {
            Some(total) => format!("{progress} of {total}"),
            None => progress.to_string(),
        }));
        self.change(&mut state);
    }

    fn saved(&self, key: &str) -> Option<RawJson> {
        self.state.lock().record.restart.as_ref()?.saved.get(key).cloned()
    }

    fn may_run_again(&self) -> bool {
        self.state.lock().record.restart.is_some()
    }

    fn save(&self, key: &str, value: RawJson) -> BoxFuture<()> {
        let mut state = self.state.lock();
        let Some(call) = &mut state.record.restart else { return Box::pin(std::future::ready(())) };
        call.saved.insert(key.to_owned(), value);
        self.change(&mut state);
        let saved = state.saves.wait();
        Box::pin(async move {
            // later it is saved with the next change
            let _in_time = saved.await;
        })
    }

    fn consume(self: Arc<Self>) -> BoxFuture<bool> {
        let mut state = self.state.lock();
        let consumed = state.record.restart.as_mut().map(|call| std::mem::replace(&mut call.consumed, true));
        if state.end.is_some() || consumed != Some(false) {
            return Box::pin(std::future::ready(false));
        }
        self.change(&mut state);
        let saved = state.saves.wait();
        drop(state);
        Box::pin(async move {
            let is_saved = saved.await;
            if !is_saved {
                // nothing was used: the function may try again
                let mut state = self.state.lock();
                if let Some(call) = &mut state.record.restart {
                    call.consumed = false;
                    self.change(&mut state);
                }
            }
            is_saved
        })
    }
}

/// How this process has lost a task to another one, or to the client that has cancelled it; `None` if it has it.
fn lost_by(stored: &StoredTask, process: &str) -> Option<TaskSummary> {
    let is_own = *stored.runner == *process;
    match &stored.end {
        None if is_own && stored.released.is_none() => None,
        Some(StoredEnd::Cancelled) if is_own => Some(TaskSummary::CANCELLED),
        _ => Some(TaskSummary::LOST),
    }
}

/// The id of a task as logs have it.
pub(super) fn id_for_logs<'a>(id: &'a str, record: &StoredTask) -> &'a str {
    match record.owner {
        Some(_) => id,
        None => id.get(..8).unwrap_or_default(),
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn progress_may_begin_anywhere_and_only_grows() {
        let owner = crate::core::admission::Owner::local();
        let options = super::super::TaskOptions::new();
        let record = StoredTask::new(None, &owner, &options, &"process".into());
        let task = RunningTask::new("id".into(), record, Duration::from_secs(60));
        for (progress, shown) in [(-1.0, "-1 of 4"), (0.0, "0 of 4"), (-0.5, "0 of 4"), (2.0, "2 of 4")] {
            task.report_progress(progress, Some(4.0), None);
            assert_eq!(task.record().message.as_deref(), Some(shown));
        }
    }
}
