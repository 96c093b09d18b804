//! Subscriptions to changes. A legacy server gets a request for each resource; a server of 2026-07-28 one
//! `subscriptions/listen` for everything, which is reopened when what is wanted changes, without a gap, and after the
//! stream has broken.
//!
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use std::{
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
    time::{sleep, timeout},
};

use super::handlers::{ChangeEvent, Listener};
use crate::client::{
    Error,
    connect::shared_client::{CallOptions, SharedClient, params},
};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
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
    requested: Value,
    answer: Option<Result<Value, Error>>,
}

/// The stream that has what is wanted.
struct OpenStream {
    filter: Value,
    /// The task that reads it, whose end cancels it; empty if the server has ended it.
    reading: JoinSet<Result<(), Error>>,
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
            let (members, options) = (params(json!({ "uri": uri })), CallOptions::default());
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
        let declared = connection.server.capabilities.get("resources").and_then(|r| r.get("subscribe"));
        if declared != Some(&Value::Bool(true)) {
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
        let includes = |filter: &Value| {
            let uris = filter.get("resourceSubscriptions").and_then(Value::as_array);
            uris.is_some_and(|uris| uris.iter().any(|known| known == uri))
        };
        let answered = acknowledged
            .wait_for(|acknowledged| includes(&acknowledged.requested) && acknowledged.answer.is_some());
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
        let shared = self.clone();
        tokio::spawn(async move {
            let mut current = None;
            tokio::select! {
                () = shared.drive(&mut current) => {}
                () = shared.token.cancelled() => {}
            }
            // the program has closed its client
            if current.is_some_and(|stream| !stream.reading.is_empty()) {
                shared.inbox.handlers.notify_change(ChangeEvent::Ended);
            }
        });
    }

    /// The filter of everything that is wanted; `None` if nothing is.
    fn wanted(&self) -> Option<Value> {
        let connection = self.connection().ok()?;
        let mut filter = json!({});
        if self.inbox.handlers.change.is_some() {
            for (capability, key) in [
                ("tools", "toolsListChanged"),
                ("prompts", "promptsListChanged"),
                ("resources", "resourcesListChanged"),
            ] {
                let declared =
                    connection.server.capabilities.get(capability).and_then(|c| c.get("listChanged"));
                if declared == Some(&Value::Bool(true)) {
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

    /// Keeps one stream open for what is wanted, until the program closes the client.
    async fn drive(self: &Arc<Self>, current: &mut Option<OpenStream>) {
        let mut pause = FIRST_PAUSE;
        let mut was_lost = false;
        loop {
            let wanted = self.wanted();
            let is_current = current.as_ref().map(|stream| &stream.filter) == wanted.as_ref();
            if !is_current {
                let mut next = None;
                if let Some(filter) = wanted {
                    let stream = self.open_stream(filter.clone());
                    // the old one goes on until the new one is acknowledged
                    let mut acknowledged = self.subscriptions.acknowledged.subscribe();
                    let answered = acknowledged.wait_for(|a| a.requested == filter && a.answer.is_some());
                    let is_open = matches!(timeout(ACKNOWLEDGE_TIMEOUT, answered).await,
                        Ok(Ok(answer)) if matches!(answer.answer, Some(Ok(_))));
                    if !is_open {
                        // nothing was lost: the subscriptions still hold
                        drop(stream);
                        tokio::select! {
                            () = self.subscriptions.changed.notified() => {}
                            () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                        }
                        continue;
                    }
                    pause = FIRST_PAUSE;
                    if std::mem::take(&mut was_lost) {
                        self.inbox.handlers.notify_change(ChangeEvent::Restored);
                    }
                    next = Some(stream);
                }
                *current = next;
            }
            let ended = async { current.as_mut()?.reading.join_next().await };
            let error = tokio::select! {
                () = self.subscriptions.changed.notified() => continue,
                Some(ended) = ended => match ended {
                    Ok(Ok(())) => {
                        // it stays, so that nothing is opened before something else is wanted
                        self.inbox.handlers.notify_change(ChangeEvent::Ended);
                        continue;
                    }
                    Ok(Err(error)) => error,
                    Err(panicked) => Error::not_connected(panicked),
                },
            };
            if self.connection().is_err() {
                return self.inbox.handlers.notify_change(ChangeEvent::Ended);
            }
            tracing::debug!(error = error.in_one_line(), "the stream of changes broke");
            if !std::mem::replace(&mut was_lost, true) {
                self.inbox.handlers.notify_change(ChangeEvent::Lost);
            }
            // changes in between are not known
            self.lists.invalidate_all();
            self.reads.clear();
            *current = None;
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn open_stream(self: &Arc<Self>, filter: Value) -> OpenStream {
        self.subscriptions
            .acknowledged
            .send_replace(Acknowledged { requested: filter.clone(), answer: None });
        let (shared, requested) = (self.clone(), filter.clone());
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let (acknowledging, of_stream) = (shared.clone(), requested.clone());
            let listener = Arc::new(move |_: &str, params: &Value| {
                let accepted = params.get("notifications").cloned().unwrap_or_default();
                acknowledging.subscriptions.answer(&of_stream, Ok(accepted));
            });
            let members = json!({ "notifications": requested });
            let ended = shared.stream("subscriptions/listen", members, listener).await;
            // a server that refuses has answered as well
            shared.subscriptions.answer(&requested, ended.clone().map(|()| json!({})));
            ended
        });
        OpenStream { filter, reading }
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
