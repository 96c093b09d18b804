//! The bounds of `capability/events`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};
use crate::capability::events::EventLimits;

const RING: &str = "capability/events/ring.rs";
const SUBSCRIPTION: &str = "capability/events/subscription.rs";
const SHARED_LOG: &str = "capability/events/shared_log.rs";
const WEBHOOK: &str = "capability/events/webhook/mod.rs";
const DELIVERY: &str = "capability/events/webhook/delivery.rs";
const ENDPOINT: &str = "capability/events/webhook/endpoint.rs";

#[rustfmt::skip]
pub(super) const EVENTS: Folder = Folder {
    budgets: &[
        budget("events of one type that are kept", Count(|_| EventLimits::new().max_kept), "limits.events.max_kept", All, "the oldest go; clients are told of a gap", RING),
        budget("bytes of them", Bytes(|_| EventLimits::new().max_kept_bytes), "", All, "the oldest go; clients are told of a gap", RING),
        budget("payload of one event", Bytes(|_| EventLimits::new().max_payload), "limits.events.max_payload", All, "it is not emitted; the program gets an error", "capability/events/emit.rs"),
        budget("events of one `events/poll`", FixedCount("MAX_POLLED"), "", Request, "come with the next", "capability/events/poll.rs"),
        budget("bytes of them", FixedBytes("MAX_BATCH_BYTES"), "", Request, "come with the next", SUBSCRIPTION),
        budget("subscriptions by webhook, and endpoints that were verified", FixedCount("MAX_SUBSCRIPTIONS"), "limits.events.max_webhooks", All, "an error: too many; endpoints are verified again", WEBHOOK),
        budget("one subscription by webhook", FixedBytes("MAX_RECORD"), "", Subscriber, "an error: too many", "capability/events/webhook/subscribe.rs"),
        budget("principals without access whose subscriptions by webhook end once the shared store can be used", FixedCount("MAX_SUBSCRIPTIONS"), "limits.events.max_webhooks", All, "the oldest are forgotten, which is logged: their subscriptions go on until they expire", WEBHOOK),
        budget("bytes of messages to endpoints", FixedBytes("MAX_BYTES"), "limits.events.max_webhook_bytes", All, "wait", WEBHOOK),
        budget("messages that are sent to endpoints at once", FixedCount("MAX_ATTEMPTS"), "", All, "wait", ENDPOINT),
        budget("hosts of endpoints to which a connection is kept between messages", FixedCount("MAX_IDLE"), "", All, "connections are closed after a message", ENDPOINT),
        budget("events of a subscription by webhook that are on their way", FixedCount("MAX_OUTSTANDING"), "", Subscriber, "wait", DELIVERY),
        budget("of those, sent at once", FixedCount("MAX_AT_ONCE"), "", Subscriber, "wait", DELIVERY),
        budget("one message to an endpoint", FixedBytes("MAX_BODY"), "", Subscriber, "is not sent; clients are told of a gap", DELIVERY),
        budget("events that one request looks at in one go", FixedCount("MAX_LOOKED_AT"), "", Request, "come with the next", SUBSCRIPTION),
        budget("events that one stream reads at once", FixedCount("MAX_BATCH"), "", Stream, "wait; the oldest go, and clients are told of a gap", "capability/events/stream.rs"),
        budget("types of events in a shared store", FixedCount("MAX_LOGS"), "", All, "those that are not emitted go", SHARED_LOG),
        budget("bytes of all events there", FixedBytes("MAX_LOG_BYTES"), "", All, "the oldest go", SHARED_LOG),
    ],
    others: &[
        ("capability/events/emit.rs", &["MAX_ID"]),
        ("capability/events/shared_log.rs", &["MAX_ATTEMPTS"]),
        ("capability/events/webhook/delivery.rs", &["MAX_ENDS", "MAX_FAREWELLS"]),
        ("capability/events/webhook/endpoint.rs", &["MAX_ANSWER"]),
        ("capability/events/webhook/mod.rs", &["MAX_HOSTS"]),
        ("capability/events/webhook/record.rs", &["MAX_LIST"]),
        ("capability/events/webhook/subscribe.rs", &["MAX_URL"]),
    ],
};
