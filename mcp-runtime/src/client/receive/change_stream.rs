//! Subscriptions to changes. A legacy server gets a request for each resource; a server of 2026-07-28 one
//! `subscriptions/listen` for everything, which is reopened when what is wanted changes, without a gap, and after its end.
//!
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::timeout,
};

use super::{
    handlers::{ChangeEvent, Listener},
    reopening::{Reopening, is_refused},
};
use crate::client::{
    Error,
    connect::shared_client::{CallOptions, Connection, SharedClient, params},
};

/// How long a server may take to acknowledge a subscription.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The subscriptions of a client of 2026-07-28.
#[derive(Default)]
pub(in crate::client) struct SubscriptionState {
    is_driven: AtomicBool,
    /// Notifies the driver that the wanted filter has changed.
    changed: Notify,
    acknowledged: watch::Sender<Acknowledged>,
}

/// The part of the filter sent last that the server has agreed to.
#[derive(Default, Clone)]
struct Acknowledged {
    /// Counts the streams that were asked for.
    attempt: u64,
    requested: Value,
    answer: Option<Result<Value, Error>>,
}

/// A stream that has what is wanted.
struct OpenStream {
    filter: Value,
    /// The task that reads it, whose end cancels it.
    reading: JoinSet<Result<(), Error>>,
}

/// What the program knows of the stream of changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It has not been open.
    Unopened,
    Open,
    /// The server has ended it, which the program need not know if it is soon open again.
    Interrupted,
    /// It broke.
    Lost,
    /// The server refuses to open it again.
    Refused,
}

/// Keeps one stream open for everything that is wanted.
struct ChangeStream {
    shared: Arc<SharedClient>,
    current: Option<OpenStream>,
    standing: Standing,
    reopening: Reopening,
}

/// A subscription to a resource; dropping it ends the subscription.
#[must_use = "dropping it ends the subscription"]
pub struct ResourceSubscription {
    shared: Arc<SharedClient>,
    watch: u64,
}

impl fmt::Debug for ResourceSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceSubscription").finish_non_exhaustive()
    }
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        let Some(uri) = self.shared.inbox.unwatch(self.watch) else { return };
        let Ok(connection) = self.shared.connection() else { return };
        if connection.revision.is_modern() {
            return self.shared.subscriptions.changed.notify_one();
        }
        let shared = self.shared.clone();
        self.shared.cleanup.clone().spawn(async move {
            let (members, options) = (params(json!({ "uri": uri })), CallOptions::in_background());
            // the subscription ends with the connection in any case
            let _ended = shared.request("resources/unsubscribe", members, &options).await;
        });
    }
}

impl SharedClient {
    /// Subscribes to a resource.
    pub(in crate::client) async fn subscribe(
        self: &Arc<Self>,
        uri: &str,
        listener: Listener<ChangeEvent>,
        options: &CallOptions,
    ) -> Result<ResourceSubscription, Error> {
        let connection = self.connection()?;
        if !connection.server.declares("resources.subscribe") {
            return Err(Error::unsupported("`resources.subscribe`"));
        }
        // first, so that no update is missed; dropped on failure
        let subscription =
            ResourceSubscription { shared: self.clone(), watch: self.inbox.watch(uri, listener) };
        if connection.revision.is_modern() {
            self.wait_for_acknowledgement(uri).await?;
        } else {
            let members = params(json!({ "uri": uri }));
            let subscribed = self.request("resources/subscribe", members, options).await;
            subscribed.map_err(|error| error.of_resource(uri))?;
        }
        Ok(subscription)
    }

    async fn wait_for_acknowledgement(self: &Arc<Self>, uri: &str) -> Result<(), Error> {
        let mut acknowledged = self.subscriptions.acknowledged.subscribe();
        self.drive_subscriptions();
        self.subscriptions.changed.notify_one();
        let includes = |filter: &Value| uris(filter).contains(uri);
        // the failure of an attempt that began before says nothing of the next one
        let before = acknowledged.borrow().attempt;
        let answered = acknowledged.wait_for(|acknowledged| {
            includes(&acknowledged.requested)
                && match acknowledged.answer {
                    Some(Err(_)) => acknowledged.attempt > before,
                    Some(Ok(_)) => true,
                    None => false,
                }
        });
        let answer = timeout(ACKNOWLEDGE_TIMEOUT, answered).await;
        let answer = match answer {
            Ok(Ok(acknowledged)) => acknowledged.answer.clone(),
            Ok(Err(_)) => Some(Err(Error::not_connected("the client was closed"))),
            Err(_) => Some(Err(Error::Timeout { after: ACKNOWLEDGE_TIMEOUT, option: None })),
        };
        match answer {
            Some(Ok(filter)) if includes(&filter) => Ok(()),
            Some(Err(error)) => Err(error),
            _ => Err(Error::unsupported(format!("a subscription to `{uri}`"))),
        }
    }

    /// Subscribes to changes of lists, if the program receives any.
    pub(in crate::client) fn subscribe_to_lists(self: &Arc<Self>) {
        if self.inbox.handlers.change.is_some()
            && self.connection().is_ok_and(|connection| connection.revision.is_modern())
        {
            self.drive_subscriptions();
            self.subscriptions.changed.notify_one();
        }
    }

    fn drive_subscriptions(self: &Arc<Self>) {
        if self.subscriptions.is_driven.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut stream = ChangeStream {
            shared: self.clone(),
            current: None,
            standing: Standing::Unopened,
            reopening: Reopening::new(),
        };
        tokio::spawn(async move {
            let shared = stream.shared.clone();
            tokio::select! {
                () = stream.drive() => {}
                () = shared.token.cancelled() => {}
            }
            // the program has closed its client
            if !matches!(stream.standing, Standing::Unopened | Standing::Refused) {
                shared.inbox.notify_all(&ChangeEvent::Ended);
            }
        });
    }

    /// The filter of everything that is wanted; `None` if nothing is.
    fn wanted(&self, connection: &Connection) -> Option<Value> {
        let mut filter = json!({});
        if self.inbox.handlers.change.is_some() {
            for (capability, key) in [
                ("tools.listChanged", "toolsListChanged"),
                ("prompts.listChanged", "promptsListChanged"),
                ("resources.listChanged", "resourcesListChanged"),
            ] {
                if connection.server.declares(capability) {
                    filter[key] = true.into();
                }
            }
        }
        let uris = self.inbox.watched();
        if !uris.is_empty() {
            filter["resourceSubscriptions"] = uris.into();
        }
        (filter != json!({})).then_some(filter)
    }

    fn open_stream(self: &Arc<Self>, filter: Value) -> OpenStream {
        self.subscriptions.acknowledged.send_modify(|acknowledged| {
            let attempt = acknowledged.attempt + 1;
            *acknowledged = Acknowledged { attempt, requested: filter.clone(), answer: None };
        });
        let (shared, requested) = (self.clone(), filter.clone());
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let (acknowledging, of_stream) = (shared.clone(), requested.clone());
            let listener = Arc::new(move |_: &str, params: &Value| {
                let accepted = params.get("notifications").cloned().unwrap_or_default();
                acknowledging.subscriptions.answer(&of_stream, Ok(accepted));
            });
            let members = json!({ "notifications": requested });
            let ended = shared.stream("subscriptions/listen", members, listener, true).await;
            let refused = ended.clone().err();
            let refused =
                refused.unwrap_or_else(|| Error::not_connected("the server ended the stream at once"));
            shared.subscriptions.answer(&requested, Err(refused));
            ended
        });
        OpenStream { filter, reading }
    }
}

/// The resources of a filter.
fn uris(filter: &Value) -> HashSet<&str> {
    let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
    uris.into_iter().flatten().filter_map(Value::as_str).collect()
}

impl ChangeStream {
    /// Opens the stream, and again after its end, until the program closes the client.
    async fn drive(&mut self) {
        loop {
            let Ok(connection) = self.shared.connection() else { return };
            let wanted = self.shared.wanted(&connection);
            let mut is_due = false;
            if self.current.as_ref().map(|stream| &stream.filter) != wanted.as_ref() {
                match wanted {
                    Some(filter) => is_due = self.open(filter).await,
                    None => (self.current, self.standing) = (None, Standing::Unopened),
                }
            }
            let changed = &self.shared.subscriptions.changed;
            if let Some(stream) = &mut self.current {
                let end = tokio::select! {
                    () = changed.notified() => continue,
                    () = self.reopening.pause(), if is_due => continue,
                    Some(end) = stream.reading.join_next() => end,
                };
                if self.shared.connection().is_err() {
                    return;
                }
                self.end(end.unwrap_or_else(|panicked| Err(Error::not_connected(panicked))));
                is_due = true;
            }
            tokio::select! {
                () = self.shared.subscriptions.changed.notified() => {}
                () = self.reopening.pause(), if is_due => {}
            }
        }
    }

    /// Opens a stream with this filter; the one before goes on until the server has acknowledged it. Returns whether
    /// another attempt is due after a pause.
    async fn open(&mut self, filter: Value) -> bool {
        let stream = self.shared.open_stream(filter.clone());
        let mut acknowledged = self.shared.subscriptions.acknowledged.subscribe();
        let answered = acknowledged.wait_for(|a| a.requested == filter && a.answer.is_some());
        let answer = match timeout(ACKNOWLEDGE_TIMEOUT, answered).await {
            Ok(Ok(acknowledged)) => acknowledged.answer.clone(),
            _ => None,
        };
        let error = match answer {
            Some(Ok(accepted)) => {
                self.current = Some(stream);
                self.reopening.begin();
                let before = std::mem::replace(&mut self.standing, Standing::Open);
                if !matches!(before, Standing::Unopened | Standing::Open) {
                    let accepted = uris(&accepted);
                    let refused: HashSet<_> = uris(&filter).difference(&accepted).copied().collect();
                    if !refused.is_empty() {
                        self.shared.inbox.end_watches(&refused);
                        self.shared.subscriptions.changed.notify_one();
                    }
                    self.shared.inbox.restored();
                }
                return false;
            }
            Some(Err(error)) => error,
            None => Error::Timeout { after: ACKNOWLEDGE_TIMEOUT, option: None },
        };
        match self.standing {
            // nothing was lost
            Standing::Unopened | Standing::Open => true,
            Standing::Refused => false,
            Standing::Interrupted | Standing::Lost if is_refused(&self.shared, &error) => {
                tracing::debug!(error = error.in_one_line(), "the stream of changes is not opened again");
                self.standing = Standing::Refused;
                self.shared.inbox.notify_all(&ChangeEvent::Ended);
                false
            }
            Standing::Interrupted | Standing::Lost => {
                self.lose(&error);
                true
            }
        }
    }

    /// The stream has ended: in an orderly way, or by an error.
    fn end(&mut self, end: Result<(), Error>) {
        self.current = None;
        self.reopening.end(&end);
        self.shared.forget_what_is_kept();
        match end {
            Ok(()) => self.standing = Standing::Interrupted,
            Err(error) => self.lose(&error),
        }
    }

    fn lose(&mut self, error: &Error) {
        tracing::debug!(error = error.in_one_line(), "the stream of changes broke");
        if std::mem::replace(&mut self.standing, Standing::Lost) != Standing::Lost {
            self.shared.inbox.notify_all(&ChangeEvent::Lost);
        }
    }
}

impl SubscriptionState {
    /// Stores the first answer to a filter.
    fn answer(&self, filter: &Value, answer: Result<Value, Error>) {
        self.acknowledged.send_if_modified(|acknowledged| {
            let is_first = acknowledged.requested == *filter && acknowledged.answer.is_none();
            if is_first {
                acknowledged.answer = Some(answer);
            }
            is_first
        });
    }
}
