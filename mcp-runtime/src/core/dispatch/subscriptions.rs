//! `subscriptions/listen`: which of the requested notifications the server sends, and the messages of the stream that it
//! opens, or of one that a capability opens. Dropping a [`NotificationStream`] ends the subscription.
//!
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use std::task::{Context, Poll};

use serde::Deserialize;

use super::{
    Request,
    response::{Reply, encode},
};
use crate::core::{
    arguments::BoxFuture,
    changes::{Change, ListChanges, Subscriber},
    connection::{check_uri, principal_digest},
    jsonrpc::{Object, ProtocolError, notification, write_array, write_string},
    log_limit::LogLine,
    protocol::{ItemList, META_SERVER_INFO, META_SUBSCRIPTION_ID, Revision},
    server::Server,
};

/// The notifications that a client requests.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestedNotifications {
    tools_list_changed: Option<bool>,
    prompts_list_changed: Option<bool>,
    resources_list_changed: Option<bool>,
    events_list_changed: Option<bool>,
    resource_subscriptions: Option<Vec<String>>,
    task_ids: Option<Vec<String>>,
}

impl RequestedNotifications {
    fn lists(&self) -> impl Iterator<Item = ItemList> {
        let lists = [
            (ItemList::Tools, self.tools_list_changed),
            (ItemList::Prompts, self.prompts_list_changed),
            (ItemList::Resources, self.resources_list_changed),
            (ItemList::Events, self.events_list_changed),
        ];
        lists.into_iter().filter(|(_, requested)| *requested == Some(true)).map(|(list, _)| list)
    }
}

/// The stream that a request opens: `subscriptions/listen`, or one of a capability.
pub(crate) struct NotificationStream {
    server: Server,
    /// Raw JSON of the request's id, which is the subscription's.
    id: Box<str>,
    source: Source,
}

/// Where the messages of a stream come from.
enum Source {
    Changes {
        subscriber: Subscriber,
        acknowledgement: Acknowledgement,
    },
    Capability(CapabilityStream),
    /// The request is refused.
    Refused(Reply),
}

/// The first message of a stream.
enum Acknowledgement {
    Ready(Vec<u8>),
    /// The subscribed item must be looked up first.
    Pending(BoxFuture<Result<Vec<u8>, Reply>>),
    Sent,
}

/// Polls a stream that a capability opens for its next message, without a line end; `None` when the server ends the stream,
/// and an error if it refuses the request after all.
pub(crate) type CapabilityStream =
    Box<dyn FnMut(&mut Context<'_>) -> Poll<Result<Option<Vec<u8>>, Reply>> + Send>;

impl Server {
    pub(super) fn listen(&self, request: Request<'_>) -> Result<NotificationStream, Reply> {
        self.join_replicas();
        let registry = self.registry();
        let requested = parse_notifications(&request)?;
        if requested.task_ids.is_some() {
            registry.capabilities.iter().try_for_each(|capability| capability.check_subscriber(&request))?;
        }
        // the lists of legacy revisions may be empty now and have items later
        let may_change = |list: &ItemList| {
            self.has_handle()
                && (list.is_legacy() || registry.capabilities.of_method(list.method()).is_some())
        };
        let lists: ListChanges = requested.lists().filter(may_change).collect();
        let context = request.context;
        let owner = context.owner();
        let filter = self.hub().filter(lists, &owner);
        let mut requested_uris = requested.resource_subscriptions.unwrap_or_default();
        // bounds the number of checks
        requested_uris.truncate(self.hub().max_uris());
        for uri in &requested_uris {
            check_uri(uri).map_err(ProtocolError::from)?;
        }
        let mut accepted_uris = Vec::new();
        if self.publishes() {
            for capability in registry.capabilities.iter() {
                let accepted = capability.subscribe_to_resources(self, &request, &requested_uris, &filter)?;
                accepted_uris.extend(accepted);
            }
        }
        let caller = context.caller.clone();
        let rules = context.access_rules.clone();
        let subscriber = self.hub().subscribe(filter.clone(), caller, rules, &owner);
        let Some(subscriber) = subscriber else {
            if let Some(LogLine { suppressed }) = self.log_limits().subscribers.line() {
                tracing::warn!(
                    suppressed,
                    "a subscription was refused: too many are open\nraise `max_subscribers`"
                );
            }
            return Err(Reply::unavailable("too many subscriptions are open\ntry again"));
        };
        let mut task_ids = requested.task_ids.unwrap_or_default();
        task_ids.truncate(self.hub().max_uris());
        let write = {
            let id: Box<str> = request.id.into();
            let accepted_uris: Vec<String> = accepted_uris.into_iter().map(str::to_owned).collect();
            move |task_ids: &[String]| acknowledgement(&id, lists, &accepted_uris, task_ids)
        };
        let acknowledgement = if task_ids.is_empty() {
            Acknowledgement::Ready(write(&[]))
        } else {
            let caller = principal_digest(context.caller.as_deref());
            Acknowledgement::Pending(Box::pin(async move {
                let mut subscribed = Vec::new();
                for capability in registry.capabilities.iter() {
                    let (ids, caller, filter) = (task_ids.clone(), caller.clone(), filter.clone());
                    subscribed.extend(capability.clone().subscribe_by_id(ids, caller, filter).await?);
                }
                Ok(write(&subscribed))
            }))
        };
        Ok(NotificationStream {
            server: self.clone(),
            id: request.id.into(),
            source: Source::Changes { subscriber, acknowledgement },
        })
    }

    /// The stream that a capability opens for a request.
    pub(super) fn open_stream(&self, request: Request<'_>) -> Result<NotificationStream, Reply> {
        let registry = self.registry();
        let capability = registry.capabilities.of_method(request.method);
        let capability = capability.ok_or_else(|| Reply::unknown_method(request.method))?;
        let source = Source::Capability(capability.open_stream(self, request)?);
        Ok(NotificationStream { server: self.clone(), id: request.id.into(), source })
    }
}

/// The first message of a stream: its subscriptions.
fn acknowledgement(id: &str, lists: ListChanges, uris: &[String], task_ids: &[String]) -> Vec<u8> {
    notification("notifications/subscriptions/acknowledged", |params| {
        write_subscription_meta(params, id);
        params.object("notifications", |n| {
            for list in lists.iter() {
                n.raw(list.member(), "true");
            }
            for (key, texts) in [("resourceSubscriptions", uris), ("taskIds", task_ids)] {
                if !texts.is_empty() {
                    write_array(n.key(key), texts, |out, text| write_string(out, text));
                }
            }
        });
    })
}

fn parse_notifications(request: &Request<'_>) -> Result<RequestedNotifications, ProtocolError> {
    let raw = request
        .params
        .get("notifications")
        .filter(|raw| raw.get().starts_with('{'))
        .ok_or_else(|| ProtocolError::invalid_params("`notifications` is not an object"))?;
    serde_json::from_str(raw.get())
        .map_err(|error| ProtocolError::invalid_params(format!("`notifications`: {error}")))
}

/// Writes the `_meta` that every message of the stream carries.
pub(crate) fn write_subscription_meta(params: &mut Object<'_>, id: &str) {
    params.object("_meta", |meta| {
        meta.raw(META_SUBSCRIPTION_ID, id);
    });
}

impl NotificationStream {
    /// Ready once it is known what the stream is subscribed to, or that the request is refused.
    pub(crate) fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Source::Changes { acknowledgement, .. } = &mut self.source
            && let Acknowledgement::Pending(pending) = acknowledgement
        {
            match std::task::ready!(pending.as_mut().poll(cx)) {
                Ok(message) => *acknowledgement = Acknowledgement::Ready(message),
                Err(reply) => self.source = Source::Refused(reply),
            }
        }
        Poll::Ready(())
    }

    /// Why the request is refused, of a stream that is settled.
    pub(crate) fn refusal(&self) -> Option<&Reply> {
        match &self.source {
            Source::Refused(reply) => Some(reply),
            _ => None,
        }
    }

    /// The next message to the client, without a line end; `None` when the server ends the subscription.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        std::task::ready!(self.poll_settled(cx));
        let (subscriber, acknowledgement) = match &mut self.source {
            Source::Changes { subscriber, acknowledgement } => (subscriber, acknowledgement),
            Source::Capability(next) => {
                let polled = std::task::ready!(next(cx));
                return Poll::Ready(polled.unwrap_or_else(|reply| {
                    self.source = Source::Refused(reply);
                    None
                }));
            }
            Source::Refused(_) => return Poll::Ready(None),
        };
        match acknowledgement {
            Acknowledgement::Sent => {}
            Acknowledgement::Pending(_) => return Poll::Pending,
            Acknowledgement::Ready(message) => {
                let message = std::mem::take(message);
                *acknowledgement = Acknowledgement::Sent;
                return Poll::Ready(Some(message));
            }
        }
        let notify = |change: Change| change.notification(|p| write_subscription_meta(p, &self.id));
        subscriber.poll_next(cx).map(|change| change.map(notify))
    }

    /// Whether it ends by itself when its caller loses access, and says so before.
    pub(crate) fn watches_caller(&self) -> bool {
        matches!(self.source, Source::Capability(_))
    }

    /// The response to the request, with which the server ends the subscription.
    pub(crate) fn result(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        if let Some(refusal) = self.refusal() {
            encode(&mut out, refusal, &self.id, Revision::LATEST, self.server.identity());
            return out;
        }
        let mut reply = Object::new(&mut out);
        reply.raw("jsonrpc", "\"2.0\"").raw("id", &self.id).object("result", |result| {
            result.str("resultType", "complete").object("_meta", |meta| {
                meta.raw(META_SUBSCRIPTION_ID, &self.id);
                meta.raw(META_SERVER_INFO, &self.server.identity().brief);
            });
        });
        reply.end();
        out
    }

    /// The notification after the result, for transports where all subscriptions share one channel; only
    /// `subscriptions/listen` has one.
    pub(crate) fn cancelled_notification(&self) -> Option<Vec<u8>> {
        matches!(self.source, Source::Changes { .. }).then(|| {
            notification("notifications/cancelled", |params| {
                write_subscription_meta(params, &self.id);
                params.raw("requestId", &self.id).str("reason", "the server ends this subscription");
            })
        })
    }
}
