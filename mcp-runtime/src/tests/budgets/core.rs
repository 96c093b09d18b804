//! The bounds of `core`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};

const OUTBOUND: &str = "core/connection/outbound.rs";
const FILTER: &str = "core/changes/hub.rs";

#[rustfmt::skip]
pub(super) const CORE: Folder = Folder {
    budgets: &[
        budget("values in the arguments of a call, or of a prompt", FixedCount("MAX_VALUES"), "", Request, "a failure", "core/arguments/tool_input.rs"),
        budget("steps to decode forms inside of forms, beside one for each byte", FixedCount("MAX_ALTERNATIVES"), "", Request, "a failure", "core/arguments/tool_input.rs"),
        budget("values in the form data of one elicitation", FixedCount("MAX_VALUES"), "", Request, "is requested again, three times", "core/client_request/elicitation/answer.rs"),
        budget("calls of one caller at once", Unlimited, "limits.max_concurrency_per_caller", Client, "a failure", "core/admission/call_limits.rs"),
        budget("callers that a rate remembers", FixedCount("MAX_CALLERS"), "", All, "the least used are forgotten", "core/admission/rate.rs"),
        budget("messages that are not charged to them", FixedBytes("SEND_THRESHOLD"), "", Stream, "they are charged; a sender that can wait does", OUTBOUND),
        budget("notifications that one stream has not sent", FixedBytes("NOTIFICATION_LIMIT"), "", Stream, "are dropped", OUTBOUND),
        budget("requests to a client that one stream has not sent", FixedBytes("REQUEST_LIMIT"), "", Stream, "the function gets an error", OUTBOUND),
        budget("subscribers", Count(|o| o.limits.subscriptions.subscribers), "limits.max_subscribers", All, "`-32603`, over HTTP with `503`", FILTER),
        budget("resources of one subscriber, and tasks", Count(|o| o.limits.subscriptions.uris), "limits.max_subscriptions", Subscriber, "are left out of the acknowledgement; legacy: `-32603`", FILTER),
        budget("URIs of all subscriptions", Bytes(|o| o.limits.subscriptions.bytes), "", All, "`-32603`, over HTTP with `503`; of legacy sessions without a stream the oldest subscriptions go first", FILTER),
        budget("one URI", FixedBytes("MAX_URI"), "", Subscriber, "`-32602`", "core/connection/subscribe_error.rs"),
        budget("changes that wait for a subscriber", Count(|o| o.limits.subscriptions.pending), "", Subscriber, "the stream ends; legacy: are dropped", FILTER),
        budget("messages to other replicas that were not sent yet, of each kind", FixedCount("MAX_UNSENT"), "", All, "are lost, which the others are told", "core/store/shared/messages.rs"),
        budget("messages of other replicas that wait to be read", FixedCount("MAX_MESSAGES"), "", All, "are lost, which is noticed", "core/store/shared/mod.rs"),
        budget("threads that run `blocking` functions", FixedCount("MAX_THREADS"), "", All, "wait", "core/blocking.rs"),
        budget("names that are looked up at once", FixedCount("MAX_LOOK_UPS"), "", All, "wait", "core/resolver.rs"),
        budget("one result", Unlimited, "limits.max_result", Request, "is cut or refused", "core/tool/result_limit.rs"),
        budget("calls that have used their responses", Count(|o| o.limits.max_consumed_calls), "limits.max_consumed_calls", All, "an error", "core/store/single_use.rs"),
    ],
    others: &[("core/config/server_card/card.rs", &["MAX_TEXT"])],
};
