//! `subscriptions/listen`: what is honoured of a client's filter, and the messages of the stream that it opens.
//! Dropping a [`Subscription`] ends it.
//!
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).

use std::{
    collections::BTreeSet,
    fmt,
    task::{Context, Poll},
};

use serde::Deserialize;

use super::{
    Request,
    response::Reply,
    tasks::{knows_tasks, lacks_tasks},
};
use crate::{
    connection::owner,
    events::{Follower, Lists},
    jsonrpc::{Object, ProtocolError, notification, write_array, write_string},
    protocol::{META_SERVER_INFO, META_SUBSCRIPTION_ID},
    server::Server,
};

/// What a client asks for.
#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    tools_list_changed: Option<bool>,
    prompts_list_changed: Option<bool>,
    resources_list_changed: Option<bool>,
    resource_subscriptions: Option<Vec<String>>,
    task_ids: Option<Vec<String>>,
}

/// A stream of `subscriptions/listen`.
pub(crate) struct Subscription {
    server: Server,
    /// Raw JSON of the request's id, which is the subscription's.
    id: Box<str>,
    follower: Follower,
    /// Goes before everything else.
    acknowledgement: Option<Vec<u8>>,
}

impl Server {
    pub(super) fn listen(&self, request: Request<'_>) -> Result<Subscription, Reply> {
        let registry = self.registry();
        let Wanted {
            tools_list_changed,
            prompts_list_changed,
            resources_list_changed,
            resource_subscriptions,
            task_ids,
        } = wanted(&request)?;
        let offers = self.offers_of(&registry, request.revision);
        let can_tasks = offers.tasks;
        if can_tasks && task_ids.is_some() && !knows_tasks(&request.params.meta) {
            return Err(lacks_tasks());
        }
        let can = offers.changes;
        let lists = Lists {
            tools: can.tools && tools_list_changed == Some(true),
            prompts: can.prompts && prompts_list_changed == Some(true),
            resources: can.resources && resources_list_changed == Some(true),
        };
        let filter = self.hub().filter(lists);
        let mut uris = BTreeSet::new();
        let mut honoured = resource_subscriptions.unwrap_or_default();
        // so that a long list is not a long check either
        honoured.truncate(self.hub().max_uris());
        honoured.retain(|uri| {
            let known = can.resources
                && uris.insert(uri.clone())
                && self.may_subscribe(&request, &registry, uri).is_ok()
                && filter.subscribe(uri);
            if !known {
                tracing::debug!(uri, "a subscription was not honoured");
            }
            known
        });
        let context = request.context;
        let follower = self.hub().follow(filter.clone(), context.caller.clone(), context.authenticated);
        let Some(follower) = follower else {
            tracing::warn!("a subscription was refused: there are too many\nraise `max_subscribers`");
            return Err(Reply::unavailable("too many subscriptions are open\ntry again"));
        };
        let mut task_ids = task_ids.filter(|_| can_tasks).unwrap_or_default();
        task_ids.truncate(self.hub().max_uris());
        let mine = owner(context.caller.as_deref());
        // a task that has ended does not change any more
        task_ids.retain(|id| self.tasks().here(id, mine.as_deref()).is_some_and(|task| task.follow(&filter)));
        let acknowledgement = notification("notifications/subscriptions/acknowledged", |params| {
            subscription(params, request.id);
            params.object("notifications", |n| {
                for (key, honoured) in [
                    ("toolsListChanged", lists.tools),
                    ("promptsListChanged", lists.prompts),
                    ("resourcesListChanged", lists.resources),
                ] {
                    if honoured {
                        n.raw(key, "true");
                    }
                }
                if !honoured.is_empty() {
                    write_array(n.key("resourceSubscriptions"), &honoured, |out, uri| write_string(out, uri));
                }
                if !task_ids.is_empty() {
                    write_array(n.key("taskIds"), &task_ids, |out, id| write_string(out, id));
                }
            });
        });
        Ok(Subscription {
            server: self.clone(),
            id: request.id.into(),
            follower,
            acknowledgement: Some(acknowledgement),
        })
    }
}

fn wanted(request: &Request<'_>) -> Result<Wanted, ProtocolError> {
    let raw = request
        .params
        .notifications
        .filter(|raw| raw.get().starts_with('{'))
        .ok_or_else(|| ProtocolError::invalid_params("`notifications` is not an object"))?;
    serde_json::from_str(raw.get())
        .map_err(|error| ProtocolError::invalid_params(format!("`notifications`: {error}")))
}

/// The `_meta` that every message of a stream carries.
fn subscription(params: &mut Object<'_>, id: &str) {
    params.object("_meta", |meta| {
        meta.raw(META_SUBSCRIPTION_ID, id);
    });
}

impl Subscription {
    /// The next message to the client, one line without its end; `None` when the server ends the subscription.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        if let Some(acknowledgement) = self.acknowledgement.take() {
            return Poll::Ready(Some(acknowledgement));
        }
        match self.follower.poll(cx) {
            Poll::Ready(change) => Poll::Ready(Some(change.notification(|p| subscription(p, &self.id)))),
            Poll::Pending if self.follower.is_over() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The result of the request, with which the server ends the subscription.
    pub(crate) fn result(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
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

    /// What follows the result where all subscriptions share one channel.
    pub(crate) fn cancelled(&self) -> Vec<u8> {
        notification("notifications/cancelled", |params| {
            subscription(params, &self.id);
            params.raw("requestId", &self.id).str("reason", "the server ends this subscription");
        })
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("id", &self.id).finish_non_exhaustive()
    }
}
