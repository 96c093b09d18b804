//! `events/poll`: the events after a cursor, at once, or as soon as there is one if the client lets the request wait.

use std::{future::poll_fn, sync::Arc, time::Duration};

use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};

use super::{
    Delivery, EventLimits, Events,
    call::{EventCall, EventRequest},
    entry::EventSubscriber,
    subscription::{EventSubscription, SeenEvents},
};
use crate::core::{
    admission::Owner,
    changes::{ListChanges, Subscriber},
    client_error::ClientError,
    dispatch::{Reply, Request, Response, WriteResult, into_protocol_error},
    error::Failure,
    jsonrpc::{Object, ProtocolError, write_array},
    protocol::{ItemList, Revision},
    server::{Entry as _, Server},
    unix_time::millis,
};

/// The most events that one poll returns; clients may ask for fewer.
const MAX_POLLED: usize = 100;

/// How long a poll may wait for an event, whatever its client asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How often clients should poll: `nextPollMs` on the wire.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// How soon a client should poll again that has let its request wait.
const AFTER_A_WAIT: Duration = Duration::from_secs(1);

/// The params that only `events/poll` has.
#[derive(Clone)]
struct PollEvents {
    most: usize,
    /// How long it may wait for an event.
    wait: Option<Duration>,
}

/// The result of `events/poll`.
struct PollResult {
    name: Box<str>,
    events: SeenEvents,
    cursor: String,
    next_poll: Duration,
}

impl Events {
    /// Answers `events/poll`.
    pub(super) fn poll(&self, server: &Server, request: Request<'_>) -> Result<Response, Reply> {
        let (entry, arguments) = self.wanted(server, &request, Delivery::Poll)?;
        let params = request.params;
        let max_events = integer(params.get("maxEvents"), "maxEvents")?.unwrap_or(u64::MAX);
        let wait = integer(params.get("timeoutMs"), "timeoutMs")?.map(Duration::from_millis);
        let poll = PollEvents {
            most: usize::try_from(max_events).unwrap_or(usize::MAX).clamp(1, MAX_POLLED),
            wait: wait.map(|wait| wait.min(LONGEST_WAIT)),
        };
        EventCall::start(server, request, entry, arguments, poll)
    }
}

/// A parameter that is a whole number, of zero or more.
///
/// # Errors
/// It is something else.
pub(super) fn integer(raw: Option<&RawValue>, key: &str) -> Result<Option<u64>, ProtocolError> {
    match raw.map(RawValue::get).filter(|json| *json != "null") {
        None => Ok(None),
        Some(json) => json
            .parse()
            .map(Some)
            .map_err(|_| ProtocolError::invalid_params(format!("`{key}` is not an integer of 0 or more"))),
    }
}

impl Server {
    pub(super) fn event_limits(&self) -> EventLimits {
        self.options().limits.of_capabilities.get::<EventLimits>().cloned().unwrap_or_else(EventLimits::new)
    }
}

impl EventRequest for PollEvents {
    const METHOD: &'static str = "events/poll";
    type Result = PollResult;

    async fn answer(call: EventCall<Self>, given: Arc<str>) -> Result<PollResult, ProtocolError> {
        let EventCall { server, entry, subscriber, owner, arguments, cursor, max_age, own } = &call;
        let Self { most, wait } = *own;
        let (mut subscription, mut truncated) =
            EventSubscription::open(server, entry, subscriber.clone(), arguments, given, cursor.as_deref());
        let mut events = SeenEvents::default();
        // without a cursor, the subscription begins now
        if cursor.is_some() && !truncated {
            let deadline = wait.map(|wait| Instant::now() + wait);
            let mut max_age = *max_age;
            let mut waiting = None;
            loop {
                events = subscription.read(server, max_age.take(), most).await?;
                truncated |= events.truncated;
                let Some(deadline) = deadline else { break };
                let has_news = !events.events.is_empty() || truncated || events.has_more;
                if has_news || Instant::now() >= deadline {
                    break;
                }
                if waiting.is_none() {
                    waiting = Waiting::begin(server, subscriber, owner);
                }
                let Some(waiting) = &mut waiting else { break };
                if !matches!(waiting.wait(&subscription, deadline).await, Waited::News) {
                    break;
                }
            }
        }
        events.truncated = truncated;
        let cursor = subscription.cursor(server, &subscription.position)?;
        let next_poll = if wait.is_some() { AFTER_A_WAIT } else { POLL_INTERVAL };
        Ok(PollResult { name: entry.name().into(), events, cursor, next_poll })
    }
}

/// Waits for events; counts as a subscriber, and ends when the server stops.
pub(super) struct Waiting(Subscriber);

/// Why waiting has ended.
pub(super) enum Waited {
    /// There may be an event, or the list of events has changed.
    News,
    TimeUp,
    /// The server stops.
    Stopped,
}

impl Waiting {
    /// `None` if too many wait.
    pub(super) fn begin(server: &Server, subscriber: &EventSubscriber, owner: &Owner) -> Option<Self> {
        let hub = server.hub();
        let EventSubscriber { caller, access_rules } = subscriber.clone();
        let filter = hub.filter(ListChanges::from_iter([ItemList::Events]), owner);
        hub.subscribe(filter, caller, access_rules, owner).map(Self)
    }

    /// Waits until there may be an event, until the deadline at most.
    pub(super) async fn wait(&mut self, subscription: &EventSubscription, deadline: Instant) -> Waited {
        tokio::select! {
            biased;
            // the subscribed event may have been removed
            change = poll_fn(|cx| self.0.poll_next(cx)) => change.map_or(Waited::Stopped, |_| Waited::News),
            () = subscription.wait() => Waited::News,
            () = sleep_until(deadline) => Waited::TimeUp,
        }
    }
}

impl WriteResult for PollResult {
    fn write_members(&self, object: &mut Object<'_>, _: Revision) {
        let Self { name, events, cursor, next_poll } = self;
        write_array(object.key("events"), &events.events, |out, event| {
            let mut occurrence = Object::new(out);
            event.write(&mut occurrence, name, None);
            occurrence.end();
        });
        object
            .str("cursor", cursor)
            .value("truncated", &events.truncated)
            .value("hasMore", &events.has_more)
            .value("nextPollMs", &millis(*next_poll));
    }
}

/// The reply to a request whose arguments cannot be a subscription's.
pub(super) fn refusal(server: &Server, name: &str, failure: Failure, revision: Revision) -> Reply {
    let subject = server.error_context("event", name);
    let reason = failure.reason();
    Reply::from(match failure.into_client_error(subject, revision) {
        ClientError::Arguments(report) => ProtocolError::invalid_params(report),
        error => into_protocol_error(error),
    })
    .because(reason)
}
