//! Messages that the server initiates: the program's functions answer requests, and notifications reach the callers that
//! wait for them. Every transport delivers here.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    pin::pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, Semaphore},
    task::AbortHandle,
};

use super::handlers::{ChangeEvent, Handlers, Listener, LogMessage, ProgressUpdate, call_listener};
use crate::{
    client::{
        Error,
        connect::{client_limits::ClientLimits, shared_client::SharedClient},
        operation::PauseClock,
    },
    core::{
        admission::{Owner, Rate, RateLimiter},
        jsonrpc::{
            JsonRpcMessage, Object, ProtocolError, RequestId, replace_lone_surrogates, write_error_response,
        },
        protocol::{self, META_PROGRESS_TOKEN, META_RELATED_TASK, META_SUBSCRIPTION_ID, Revision},
        sync::Mutex,
        visible_text::in_one_line,
    },
};

/// Ids of completed URL elicitations that are remembered.
const MAX_COMPLETED: usize = 256;
/// The longest id of a request or an elicitation that the server may choose, in bytes.
const MAX_ID: usize = 1024;
/// The largest notification that is read.
const MAX_NOTIFICATION: usize = 1 << 20;
/// The largest one with an event, which no request asks for again.
const MAX_EVENT: usize = 16 << 20;
/// The result of a stream that a notification has ended.
pub(in crate::client) const ENDED: &str = "{}";
/// The prefix of the methods of event notifications.
const EVENTS: &str = "notifications/events/";
/// The prefix of the methods about subscriptions to changes.
const SUBSCRIPTIONS: &str = "notifications/subscriptions/";

/// The number of pending requests whose refusals are sent; requests beyond it get no response.
const MAX_REFUSALS: usize = 64;

/// Sends the responses to requests of the server.
pub(in crate::client) trait Responder: Send + Sync {
    /// Whether the messages of all requests come over one channel.
    const IS_SHARED: bool = false;

    /// Sends one message, JSON without a line end; ends when it is sent.
    fn deliver(self: Arc<Self>, message: Vec<u8>) -> impl Future<Output = ()> + Send;

    /// Sends one message in the background.
    fn respond(self: Arc<Self>, message: Vec<u8>);
}

/// Ends a request whose answer panicked.
struct UnansweredRequest<R: Responder + 'static> {
    inbox: Arc<Inbox>,
    responder: Arc<R>,
    id: String,
}

impl<R: Responder + 'static> Drop for UnansweredRequest<R> {
    fn drop(&mut self) {
        // one that the server cancelled gets no response
        if std::thread::panicking() {
            self.inbox.waiting.lock().take_running(&RequestId::from_json(&self.id));
            let error = ProtocolError::internal("the client's function panicked");
            self.responder.clone().respond(error_text(&self.id, &error));
        }
    }
}

/// Which cached lists a notification makes stale.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum Stale<'a> {
    Tools,
    Resources,
    Prompts,
    Events,
    Resource(&'a str),
}

/// Receives the notifications of a stream: the last part of the method, and the params.
pub(in crate::client) type StreamListener = Arc<dyn Fn(&str, &Value) + Send + Sync>;

/// Messages of the server that are not responses.
pub(in crate::client) struct Inbox {
    pub(in crate::client) handlers: Handlers,
    waiting: Mutex<Waiting>,
    next_watch: AtomicU64,
    /// Measures how long functions of the program have been answering requests of the server.
    pub(in crate::client) answering: PauseClock,
    /// Is notified of each elicitation that is complete.
    elicitation_completed: Notify,
    /// The client that owns the caches and replaces sessions.
    client: Weak<SharedClient>,
    /// Whether the server may not send requests, and names the subscription of each change.
    is_modern: AtomicBool,
    refusals: Arc<Semaphore>,
    /// Requests of a legacy server that are answered at once, and their bytes.
    max_requests: usize,
    max_request_bytes: usize,
    /// How often the program's model and its user are asked.
    sampling: Option<RateLimiter>,
    elicitation: Option<RateLimiter>,
}

#[derive(Default)]
struct Waiting {
    /// Requests in progress, by their progress token.
    progress: HashMap<u64, ProgressEntry>,
    /// Subscriptions to resources.
    watches: HashMap<u64, (String, Listener<ChangeEvent>)>,
    /// Streams, by the id of their request.
    streams: HashMap<u64, StreamListener>,
    /// Tasks, by id.
    tasks: HashMap<String, Arc<Notify>>,
    completed_elicitations: VecDeque<String>,
    /// Requests of the server that are being answered.
    running: HashMap<RequestId, RunningAnswer>,
    /// The bytes of these requests.
    running_bytes: usize,
}

/// A request of the server that is being answered.
struct RunningAnswer {
    task: AbortHandle,
    bytes: usize,
}

impl Waiting {
    fn take_running(&mut self, id: &RequestId) -> Option<AbortHandle> {
        let RunningAnswer { task, bytes } = self.running.remove(id)?;
        self.running_bytes -= bytes;
        Some(task)
    }
}

struct ProgressEntry {
    listener: Option<Listener<ProgressUpdate>>,
    activity: Arc<Notify>,
    /// The update before.
    last: Option<LastProgress>,
}

/// The kept part of an update. Its message is dropped because it may be large.
struct LastProgress {
    progress: f64,
    total: Option<f64>,
    message: u64,
}

fn digest(message: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(message)
}

/// Receives progress until it is dropped.
pub(in crate::client) struct ProgressRegistration {
    inbox: Arc<Inbox>,
    pub(in crate::client) token: u64,
    /// Is notified of each update.
    pub(in crate::client) activity: Arc<Notify>,
}

impl Drop for ProgressRegistration {
    fn drop(&mut self) {
        self.inbox.waiting.lock().progress.remove(&self.token);
    }
}

impl ProgressRegistration {
    /// Passes on what a task says of itself: `2 of 3`, or words, which go with the numbers before.
    pub(in crate::client) fn report(&self, message: &str) {
        self.inbox.report_progress(self.token, |last| {
            if last.is_some_and(|last| last.message == digest(message)) {
                return None;
            }
            let (progress, total) = match (numbers_of(message), last) {
                (Some(numbers), _) => numbers,
                // a task that sends only words is one step further
                (None, Some(last)) if last.total.is_none() => (last.progress + 1.0, None),
                (None, Some(last)) => (last.progress, last.total),
                (None, None) => (1.0, None),
            };
            Some(ProgressUpdate { progress, total, message: Some(message.to_owned()) })
        });
    }
}

/// The numbers of a message that has nothing else: `2`, or `2 of 3`.
fn numbers_of(message: &str) -> Option<(f64, Option<f64>)> {
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    match message.split_once(" of ") {
        Some((progress, total)) => Some((number(progress)?, Some(number(total)?))),
        None => Some((number(message)?, None)),
    }
}

/// Removes its entry when it is dropped.
pub(in crate::client) struct Registered<F: FnMut(&Inbox)>(Arc<Inbox>, F);

impl<F: FnMut(&Inbox)> Drop for Registered<F> {
    fn drop(&mut self) {
        (self.1)(&self.0);
    }
}

impl Inbox {
    pub(in crate::client) fn new(
        handlers: Handlers,
        limits: &ClientLimits,
        client: Weak<SharedClient>,
    ) -> Self {
        let limiter = |rate: &Result<Rate, String>| Some(RateLimiter::new(*rate.as_ref().ok()?, 1));
        let asks_user = handlers.elicit.is_some() || handlers.elicit_url.is_some();
        Self {
            sampling: handlers.sample.as_ref().and_then(|_| limiter(&limits.sampling_rate)),
            elicitation: if asks_user { limiter(&limits.elicitation_rate) } else { None },
            max_requests: limits.server_requests,
            max_request_bytes: limits.server_request_bytes,
            handlers,
            waiting: Mutex::default(),
            next_watch: AtomicU64::default(),
            answering: PauseClock::default(),
            elicitation_completed: Notify::new(),
            client,
            is_modern: AtomicBool::new(false),
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
        }
    }

    /// A link has found that the server may not know the session any more, without a request that begins another.
    pub(in crate::client) fn session_lost(&self) {
        if let Some(client) = self.client.upgrade() {
            client.renew_session();
        }
    }

    /// Takes messages by the rules of this revision from now on.
    pub(in crate::client) fn set_revision(&self, revision: Revision) {
        self.is_modern.store(revision.is_modern(), Ordering::Relaxed);
    }

    /// The request for a stream that this message ends: its server cancels the subscription.
    pub(in crate::client) fn stream_ended_by(&self, message: &JsonRpcMessage<'_>, text: &str) -> Option<u64> {
        if message.method() != Some("notifications/cancelled")
            || message.id().is_some()
            || text.len() > MAX_NOTIFICATION
        {
            return None;
        }
        let id = subscription_id(raw_params(text).get("requestId")?)?;
        self.waiting.lock().streams.contains_key(&id).then_some(id)
    }

    /// Receives the progress of the requests with this token.
    pub(in crate::client) fn expect_progress(
        self: &Arc<Self>,
        token: u64,
        listener: Option<Listener<ProgressUpdate>>,
    ) -> ProgressRegistration {
        let activity = Arc::new(Notify::new());
        let entry = ProgressEntry { listener, activity: activity.clone(), last: None };
        self.waiting.lock().progress.insert(token, entry);
        ProgressRegistration { inbox: self.clone(), token, activity }
    }

    /// Calls `listener` for each change of that resource.
    pub(in crate::client) fn watch(self: &Arc<Self>, uri: &str, listener: Listener<ChangeEvent>) -> u64 {
        let id = self.next_watch.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().watches.insert(id, (uri.to_owned(), listener));
        id
    }

    /// Ends a watch; the URI, if no other watch has it.
    pub(in crate::client) fn unwatch(&self, id: u64) -> Option<String> {
        let mut waiting = self.waiting.lock();
        let (uri, listener) = waiting.watches.remove(&id)?;
        let is_last = !waiting.watches.values().any(|(other, _)| *other == uri);
        // it may own a subscription, whose end takes the lock
        drop((waiting, listener));
        is_last.then_some(uri)
    }

    /// The URIs that are watched, each once.
    pub(in crate::client) fn watched(&self) -> Vec<String> {
        let mut uris: Vec<_> = self.waiting.lock().watches.values().map(|(uri, _)| uri.clone()).collect();
        uris.sort();
        uris.dedup();
        uris
    }

    /// Calls `listener` for each notification of the stream that is the response to this request.
    pub(in crate::client) fn open_stream(
        self: &Arc<Self>,
        id: u64,
        listener: StreamListener,
    ) -> impl Drop + use<> {
        self.waiting.lock().streams.insert(id, listener);
        Registered(self.clone(), move |inbox: &Self| {
            inbox.waiting.lock().streams.remove(&id);
        })
    }

    /// Is notified when the server reports a change of the task.
    pub(in crate::client) fn expect_task(
        self: &Arc<Self>,
        id: &str,
        changed: Arc<Notify>,
    ) -> impl Drop + use<> {
        self.waiting.lock().tasks.insert(id.to_owned(), changed);
        let id = id.to_owned();
        Registered(self.clone(), move |inbox| {
            inbox.waiting.lock().tasks.remove(&id);
        })
    }

    /// Waits until the server reports that a URL elicitation is complete.
    pub(in crate::client) async fn elicitation_completed(&self, id: &str) {
        loop {
            let mut completed = pin!(self.elicitation_completed.notified());
            completed.as_mut().enable();
            if self.waiting.lock().completed_elicitations.iter().any(|done| done == id) {
                return;
            }
            completed.await;
        }
    }

    /// Stops answering requests of the server.
    pub(in crate::client) fn abort_requests(&self) {
        let running = {
            let mut waiting = self.waiting.lock();
            waiting.running_bytes = 0;
            std::mem::take(&mut waiting.running)
        };
        running.values().for_each(|running| running.task.abort());
    }

    /// Counts a request that the program is to answer.
    ///
    /// # Errors
    /// The server asks too often.
    pub(in crate::client) fn admit(&self, method: &str) -> Result<(), Error> {
        let (limiter, what, option) = match method {
            "sampling/createMessage" => (&self.sampling, "samples of a model", "sampling_rate"),
            "elicitation/create" => (&self.elicitation, "input of the user", "elicitation_rate"),
            _ => return Ok(()),
        };
        let Some(limiter) = limiter else { return Ok(()) };
        limiter.take(&Owner::principal("".into())).map_err(|_| {
            let what = format!("the server asks for {what} more often than {}", limiter.rate());
            Error::TooMany { what, option }
        })
    }

    /// Takes a request or a notification of the server; its responses are not for the inbox.
    pub(in crate::client) fn receive<R: Responder + 'static>(
        self: &Arc<Self>,
        text: &str,
        responder: &Arc<R>,
    ) {
        let Ok(message) = crate::core::jsonrpc::parse(text.as_bytes()) else { return };
        let Some(method) = message.method() else { return };
        match message.id() {
            Some(id) if id.len() > MAX_ID => {
                tracing::debug!("a request of the server is ignored: its id is too long");
            }
            // its requests come in results
            Some(_) if self.is_modern.load(Ordering::Relaxed) => {
                tracing::debug!(method = %in_one_line(method), "a request of the server is ignored: its revision has none");
            }
            Some(id) => self.answer(text, id, method, responder),
            None if text.len() > MAX_EVENT
                || (text.len() > MAX_NOTIFICATION && !method.starts_with(EVENTS)) =>
            {
                tracing::debug!("a notification of the server is ignored: it has {} bytes", text.len());
            }
            None => {
                let params = raw_params(text);
                if R::IS_SHARED && self.is_of_no_subscription(method, &params) {
                    return tracing::debug!("a change is ignored: it names no subscription of this client");
                }
                self.notified(method, &params);
            }
        }
    }

    fn answer<R: Responder + 'static>(
        self: &Arc<Self>,
        text: &str,
        id: &str,
        method: &str,
        responder: &Arc<R>,
    ) {
        // not one of those that are bounded: it shows that the client lives
        if method == "ping" {
            return self.send_bounded(responder, result_text(id, &json!({})));
        }
        let key = RequestId::from_json(id);
        let refuse = |error: &ProtocolError| self.send_bounded(responder, error_text(id, error));
        let mut waiting = self.waiting.lock();
        let bytes = waiting.running_bytes.saturating_add(text.len());
        if waiting.running.len() >= self.max_requests || bytes > self.max_request_bytes {
            let error = ProtocolError::internal("the client answers too many requests already");
            return refuse(&error);
        }
        if waiting.running.contains_key(&key) {
            let error = ProtocolError::invalid_request("another request with this id is being answered");
            return refuse(&error);
        }
        if let Err(error) = self.admit(method) {
            tracing::debug!(error = error.in_one_line(), "a request of the server is refused");
            let error = ProtocolError::internal("the client is asked too often");
            return refuse(&error);
        }
        let (params, method) = (raw_params(text), method.to_owned());
        let (inbox, responder, done, id) = (self.clone(), responder.clone(), key.clone(), id.to_owned());
        let task = tokio::spawn(async move {
            let unanswered = UnansweredRequest { inbox, responder, id };
            let UnansweredRequest { inbox, responder, id } = &unanswered;
            let answering = inbox.answering.pause();
            let answer = inbox.handlers.answer(&method, &params).await;
            drop(answering);
            let text = match answer {
                Some(Ok(result)) => result_text(id, &of_task(result, &params)),
                Some(Err(error)) => error_text(id, &error),
                None => {
                    let text = format!("the client does not support `{method}`");
                    error_text(id, &ProtocolError::new(protocol::METHOD_NOT_FOUND, text))
                }
            };
            // a request is in progress until its response is written, so that responses are bounded as well
            responder.clone().deliver(text).await;
            inbox.waiting.lock().take_running(&done);
        });
        waiting.running_bytes = bytes;
        waiting.running.insert(key, RunningAnswer { task: task.abort_handle(), bytes: text.len() });
    }

    /// Sends a refusal, or another response that costs nothing, as long as the server reads those.
    fn send_bounded<R: Responder + 'static>(&self, responder: &Arc<R>, text: Vec<u8>) {
        let Ok(permit) = self.refusals.clone().try_acquire_owned() else { return };
        let responder = responder.clone();
        tokio::spawn(async move {
            responder.deliver(text).await;
            drop(permit);
        });
    }

    /// Whether a change on a channel that all subscriptions share is of none of them.
    fn is_of_no_subscription(&self, method: &str, params: &Value) -> bool {
        let is_change = matches!(
            method,
            "notifications/tools/list_changed"
                | "notifications/resources/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/updated"
        );
        if !is_change || !self.is_modern.load(Ordering::Relaxed) {
            return false;
        }
        let id = params.get("_meta").and_then(|meta| meta.get(META_SUBSCRIPTION_ID));
        id.and_then(subscription_id).is_none_or(|id| !self.waiting.lock().streams.contains_key(&id))
    }

    fn notified(&self, method: &str, params: &Value) {
        match method {
            "notifications/progress" => self.progressed(params),
            "notifications/message" => self.logged(params),
            "notifications/tools/list_changed" => self.changed(Stale::Tools, ChangeEvent::Tools),
            "notifications/resources/list_changed" => self.changed(Stale::Resources, ChangeEvent::Resources),
            "notifications/prompts/list_changed" => self.changed(Stale::Prompts, ChangeEvent::Prompts),
            "notifications/events/list_changed" => self.changed(Stale::Events, ChangeEvent::Events),
            "notifications/resources/updated" => {
                if let Some(uri) = params.get("uri").and_then(Value::as_str) {
                    self.changed(Stale::Resource(uri), ChangeEvent::Resource { uri: uri.to_owned() });
                    self.notify_watches(uri);
                }
            }
            "notifications/elicitation/complete" => {
                if let Some(id) = params.get("elicitationId").and_then(Value::as_str) {
                    self.completed(id);
                }
            }
            "notifications/tasks" | "notifications/tasks/status" => {
                let Some(id) = params.get("taskId").and_then(Value::as_str) else { return };
                if let Some(changed) = self.waiting.lock().tasks.get(id) {
                    changed.notify_one();
                }
            }
            "notifications/cancelled" => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                if let Some(running) = self.waiting.lock().take_running(&RequestId::from_json(&id)) {
                    running.abort();
                }
            }
            _ => {
                let kind = method.strip_prefix(EVENTS).or_else(|| method.strip_prefix(SUBSCRIPTIONS));
                let id = params.get("_meta").and_then(|meta| meta.get(META_SUBSCRIPTION_ID));
                if let (Some(kind), Some(id)) = (kind, id.and_then(subscription_id)) {
                    // without the lock: it calls functions of the program
                    let listener = self.waiting.lock().streams.get(&id).cloned();
                    listener.into_iter().for_each(|listener| listener(kind, params));
                }
            }
        }
    }

    /// An elicitation that is complete, perhaps before the call that it belongs to waits for it.
    fn completed(&self, id: &str) {
        if self.handlers.elicit_url.is_none() || id.len() > MAX_ID {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.completed_elicitations.len() >= MAX_COMPLETED {
            waiting.completed_elicitations.pop_front();
        }
        waiting.completed_elicitations.push_back(id.to_owned());
        drop(waiting);
        self.elicitation_completed.notify_waiters();
    }

    /// A change that the client learned of: caches first, so that a listener reads what is new.
    fn changed(&self, stale: Stale<'_>, event: ChangeEvent) {
        if let Some(client) = self.client.upgrade() {
            client.lists.invalidate(stale);
            client.reads.invalidate(stale);
        }
        self.handlers.notify_change(event);
    }

    fn notify_watches(&self, uri: &str) {
        // an update may be of a resource below the one that is subscribed to
        let concerns = |watched: &str| {
            uri == watched
                || uri.strip_prefix(watched.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
        };
        self.call_watches(concerns, &ChangeEvent::Resource { uri: uri.to_owned() });
    }

    fn call_watches(&self, concerns: impl Fn(&str) -> bool, event: &ChangeEvent) {
        let of_these = |(uri, listener): &(String, Listener<_>)| concerns(uri).then(|| listener.clone());
        // without the lock: they are functions of the program
        let listeners: Vec<_> = self.waiting.lock().watches.values().filter_map(of_these).collect();
        listeners.iter().for_each(|listener| call_listener(listener, event.clone()));
    }

    /// Tells all functions that receive changes what becomes of those.
    pub(in crate::client) fn notify_all(&self, event: &ChangeEvent) {
        self.handlers.notify_change(event.clone());
        self.call_watches(|_| true, event);
    }

    /// Changes are received again, after a time in which they may have been missed.
    pub(in crate::client) fn restored(&self) {
        if let Some(client) = self.client.upgrade() {
            client.forget_what_is_kept();
        }
        self.notify_all(&ChangeEvent::Restored);
    }

    /// The server does not take the subscriptions to these resources again.
    pub(in crate::client) fn end_watches(&self, refused: &HashSet<&str>) {
        self.call_watches(|uri| refused.contains(uri), &ChangeEvent::Ended);
        let is_refused = |_: &u64, (uri, _): &mut (String, _)| refused.contains(&**uri);
        let ended: Vec<_> = self.waiting.lock().watches.extract_if(is_refused).collect();
        drop(ended);
    }

    fn progressed(&self, params: &Value) {
        let Some(token) = params.get(META_PROGRESS_TOKEN).and_then(Value::as_u64) else { return };
        self.report_progress(token, |_| ProgressUpdate::deserialize(params).ok());
    }

    /// Calls the function that receives the progress with this token; the update may depend on the one before.
    fn report_progress(
        &self,
        token: u64,
        update: impl FnOnce(Option<&LastProgress>) -> Option<ProgressUpdate>,
    ) {
        let (listener, update) = {
            let mut waiting = self.waiting.lock();
            let Some(entry) = waiting.progress.get_mut(&token) else { return };
            entry.activity.notify_one();
            let Some(update) = update(entry.last.as_ref()) else { return };
            let message = digest(update.message.as_deref().unwrap_or_default());
            entry.last = Some(LastProgress { progress: update.progress, total: update.total, message });
            (entry.listener.clone(), update)
        };
        if let Some(listener) = listener.or_else(|| self.handlers.progress.clone()) {
            call_listener(&listener, update);
        }
    }

    fn logged(&self, params: &Value) {
        let Some(listener) = &self.handlers.log else { return };
        let level = params.get("level").and_then(Value::as_str).and_then(|level| level.parse().ok());
        let Some(level) = level else { return };
        let log = LogMessage {
            level,
            logger: params.get("logger").and_then(Value::as_str).map(str::to_owned),
            data: params.get("data").cloned().unwrap_or(Value::Null),
        };
        call_listener(listener, log);
    }
}

/// A result that names the task of its request, if that belongs to one.
fn of_task(mut result: Value, params: &Value) -> Value {
    let task = params.get("_meta").and_then(|meta| meta.get(META_RELATED_TASK));
    if let (Some(task), Some(members)) = (task, result.as_object_mut()) {
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(META_RELATED_TASK.to_owned(), task.clone());
        }
    }
    result
}

/// The id of a listen request, which some servers repeat as a string.
fn subscription_id(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

fn raw_params(text: &str) -> Value {
    #[derive(Deserialize)]
    struct WithParams {
        #[serde(default)]
        params: Value,
    }
    let text = replace_lone_surrogates(text);
    serde_json::from_str::<WithParams>(&text).map_or(Value::Null, |message| message.params)
}

/// The text of a response; `id` is raw JSON.
fn result_text(id: &str, result: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let mut message = Object::new(&mut out);
    message.raw("jsonrpc", "\"2.0\"").raw("id", id).value("result", result);
    message.end();
    out
}

fn error_text(id: &str, error: &ProtocolError) -> Vec<u8> {
    let mut out = Vec::new();
    write_error_response(&mut out, Some(id), error);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::client_request::Answer;

    /// Counts what is sent.
    #[derive(Default)]
    struct Sent(Mutex<Vec<Vec<u8>>>);

    impl Responder for Sent {
        async fn deliver(self: Arc<Self>, message: Vec<u8>) {
            self.0.lock().push(message);
        }

        fn respond(self: Arc<Self>, message: Vec<u8>) {
            self.0.lock().push(message);
        }
    }

    fn inbox() -> Arc<Inbox> {
        let handler = super::super::handlers::async_handler(|_| std::future::pending::<Answer<Value>>());
        let handlers = Handlers { elicit_url: Some(handler), ..Handlers::default() };
        Arc::new(Inbox::new(handlers, &ClientLimits::new(), Weak::new()))
    }

    fn complete(inbox: &Arc<Inbox>, id: &str) {
        let params = json!({ "elicitationId": id });
        let text =
            json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params });
        inbox.receive(&text.to_string(), &Arc::new(Sent::default()));
    }

    #[test]
    fn ids_of_completed_elicitations_are_bounded_in_number_and_bytes() {
        let inbox = inbox();
        for number in 0..2000 {
            complete(&inbox, &format!("{number}{}", "x".repeat(1000)));
            if number % 100 == 0 {
                complete(&inbox, &format!("{number}{}", "x".repeat(100_000)));
            }
        }
        let waiting = inbox.waiting.lock();
        let bytes: usize = waiting.completed_elicitations.iter().map(String::len).sum();
        assert_eq!(waiting.completed_elicitations.len(), MAX_COMPLETED);
        assert!(bytes <= MAX_COMPLETED * MAX_ID, "{bytes} bytes");
    }

    #[test]
    fn what_a_task_says_of_itself_goes_with_the_numbers_before() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (inbox, kept) = (inbox(), seen.clone());
        let listener: Listener<ProgressUpdate> = Arc::new(move |update: ProgressUpdate| {
            kept.lock().push((update.progress, update.total, update.message.unwrap_or_default()));
        });
        let registered = inbox.expect_progress(7, Some(listener));
        for message in ["begun", "begun", "further", "2 of 3", "packing", "2.5 of 3", "nan"] {
            registered.report(message);
        }
        let params = json!({ "progressToken": 7, "progress": 3, "total": 3 });
        let text = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        inbox.receive(&text.to_string(), &Arc::new(Sent::default()));
        drop(registered);
        inbox.receive(&text.to_string(), &Arc::new(Sent::default()));
        let of = |progress: f64, total: Option<f64>, message: &str| (progress, total, message.to_owned());
        let expected = [
            of(1.0, None, "begun"),
            of(2.0, None, "further"),
            of(2.0, Some(3.0), "2 of 3"),
            of(2.0, Some(3.0), "packing"),
            of(2.5, Some(3.0), "2.5 of 3"),
            of(2.5, Some(3.0), "nan"),
            of(3.0, Some(3.0), ""),
        ];
        assert_eq!(*seen.lock(), expected);
    }

    #[tokio::test]
    async fn calls_that_wait_for_one_elicitation_go_on_together_and_so_does_one_that_comes_later() {
        let inbox = inbox();
        let wait = || {
            let inbox = inbox.clone();
            tokio::spawn(async move { inbox.elicitation_completed("1").await })
        };
        let (one, other, third) = (wait(), wait(), wait());
        tokio::task::yield_now().await;
        complete(&inbox, "2");
        tokio::task::yield_now().await;
        assert!(!one.is_finished() && !other.is_finished() && !third.is_finished());
        complete(&inbox, "1");
        for waits in [one, other, third] {
            waits.await.expect("it goes on");
        }
        inbox.elicitation_completed("1").await;
    }

    #[tokio::test]
    async fn requests_with_ids_that_are_too_long_and_large_notifications_are_not_kept() {
        let (inbox, sent) = (inbox(), Arc::new(Sent::default()));
        let params = json!({ "mode": "url", "url": "https://example.com", "message": "x" });
        let ask = |id: &str| {
            let text =
                json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params });
            inbox.receive(&text.to_string(), &sent);
        };
        for number in 0..100 {
            ask(&format!("{number}{}", "x".repeat(10_000)));
        }
        assert!(inbox.waiting.lock().running.is_empty());
        // sixty are answered, which is the rate; a few of the others are refused
        for number in 0..100 {
            ask(&number.to_string());
        }
        assert_eq!(inbox.waiting.lock().running.len(), 60);
        assert!(inbox.waiting.lock().running_bytes < 100_000);
        inbox.abort_requests();
        assert_eq!(inbox.waiting.lock().running_bytes, 0);
    }
}
