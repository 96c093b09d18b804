//! Every budget of a server, in one list: the resource that it limits, its default in the code, the option that sets it,
//! the clients that share it, and the response beyond it. A test compares the list with that of the page about limits;
//! another test finds bounds that the list leaves out. The numbers are in `docs/limits.md`.

use crate::{
    capability::{events::EventLimits, tasks::TaskOptions},
    core::config::Options,
};

/// A bound on what clients make a server keep, run or wait for.
struct Budget {
    /// The resource that it limits.
    what: &'static str,
    default: BudgetDefault,
    /// The option that sets it; none if it is fixed.
    option: Option<&'static str>,
    shared: Shared,
    /// The response that a client gets beyond it.
    beyond: &'static str,
    /// The file that counts it, below `src`.
    file: &'static str,
}

/// The default of a budget.
enum BudgetDefault {
    /// A number that an option sets.
    Count(fn(&Options) -> usize),
    /// Bytes that an option sets.
    Bytes(fn(&Options) -> usize),
    /// The value of a constant in the budget's file.
    FixedCount(&'static str),
    /// The same, in bytes.
    FixedBytes(&'static str),
    Unlimited,
}

/// The clients that share a budget.
enum Shared {
    /// All clients; one of them uses a share of it, half by default (`limits.max_share_percent`), and as long as it has some,
    /// an eighth is kept for those that have none: `Quota` in `core/admission/usage.rs`. A client is a principal, or the
    /// address of an anonymous one (of IPv6 its network): `Owner` in `core/admission/owner.rs`. Over stdio there is one
    /// client, and its share is everything. What `auth` and webhooks count has a share that is fixed: half, of cached tokens
    /// a twentieth.
    All,
    /// Each client has its own.
    Client,
    /// Each connection.
    Connection,
    /// Each event stream.
    Stream,
    /// Each subscriber.
    Subscriber,
    /// Each request.
    Request,
}

use self::{BudgetDefault::*, Shared::*};

const fn budget(
    what: &'static str,
    default: BudgetDefault,
    option: &'static str,
    shared: Shared,
    beyond: &'static str,
    file: &'static str,
) -> Budget {
    let option = if option.is_empty() { None } else { Some(option) };
    Budget { what, default, option, shared, beyond, file }
}

const GUESSES: &str = "auth/callers/guesses.rs";
const HTTP: &str = "transport/http/endpoint.rs";
const OUTBOUND: &str = "core/connection/outbound.rs";
const WRITER: &str = "transport/writer.rs";
const FILTER: &str = "core/changes/hub.rs";
const EVENTS: &str = "transport/http/legacy/event_log.rs";
const RING: &str = "capability/events/ring.rs";
const SUBSCRIPTION: &str = "capability/events/subscription.rs";
const SHARED_LOG: &str = "capability/events/shared_log.rs";
const SOURCE: &str = "capability/events/source.rs";
const WEBHOOK: &str = "capability/events/webhook/mod.rs";
const DELIVERY: &str = "capability/events/webhook/delivery.rs";
const PEERS: &str = "core/server/peers.rs";
const ENDPOINT: &str = "capability/events/webhook/endpoint.rs";

#[rustfmt::skip]
const BUDGETS: &[Budget] = &[
    // incoming messages
    budget("connections over HTTP", Count(|o| o.http.max_connections), "http.max_connections", All, "wait to be accepted; of an address at its share, are closed", "transport/http/serve.rs"),
    budget("requests that run over HTTP", Count(|o| o.http.max_requests), "http.max_requests", All, "`503` with `Retry-After`", HTTP),
    budget("messages that are read while those are used up", FixedCount("MAX_MESSAGES"), "", All, "`503`", HTTP),
    budget("calls that run on without their client", Count(|o| o.http.max_detached), "", All, "are cancelled", HTTP),
    budget("one body", Bytes(|o| o.http.max_body), "http.max_body", Request, "`413`", "transport/http/request_body.rs"),
    budget("pieces of one body with fewer than 64 bytes, beside one for each 64 bytes", Count(|o| o.http.max_small_pieces), "http.max_small_pieces", Request, "`400`", "transport/http/request_body.rs"),
    budget("bodies that are not complete, and requests of HTTP+SSE that wait", Bytes(|o| o.http.max_unfinished_bytes), "http.max_unfinished_bytes", All, "`503`", HTTP),
    budget("messages of one HTTP+SSE stream that wait to be read", FixedCount("MAX_QUEUED"), "", Stream, "wait, then `503`; at once if another replica has got them", "transport/http/legacy/http_sse.rs"),
    budget("one line", Bytes(|o| o.stdio.max_line), "stdio.max_line", Connection, "an error", "transport/lines.rs"),
    budget("calls that run on stdio or a byte stream", Count(|o| o.limits.max_in_flight), "limits.max_in_flight", Connection, "wait", "transport/scheduler.rs"),
    budget("requests that wait there", Count(|o| o.limits.max_queued), "limits.max_queued", Connection, "an error: busy", "transport/scheduler.rs"),
    budget("bytes of them", Bytes(|o| o.limits.max_queued_bytes), "limits.max_queued_bytes", Connection, "an error: busy", "transport/scheduler.rs"),
    budget("values in the arguments of a call, or of a prompt", Count(|o| o.limits.max_argument_values), "limits.max_argument_values", Request, "a failure", "core/arguments/call.rs"),
    budget("steps to decode forms inside of forms, beside one for each byte", Count(|o| o.limits.max_alternatives), "limits.max_alternatives", Request, "a failure", "core/arguments/call.rs"),
    budget("values in the form data of one elicitation", FixedCount("MAX_VALUES"), "", Request, "is requested again, three times", "core/client_request/elicitation/answer.rs"),
    budget("calls of one caller at once", Unlimited, "limits.max_concurrency_per_caller", Client, "a failure", "core/admission/call_limits.rs"),
    budget("callers that a rate remembers", Count(|o| o.limits.max_rate_callers), "limits.max_rate_callers", All, "the least used are forgotten", "core/admission/rate.rs"),
    budget("new tokens of an address that are verified at once", FixedCount("MAX_VERIFYING"), "", Client, "wait", GUESSES),
    budget("new tokens that wait for that", FixedCount("MAX_WAITING"), "", All, "`429` with `Retry-After`", GUESSES),
    budget("tokens that are known at their addresses, and as many that were told to come again", FixedCount("MAX_MARKS"), "", All, "the oldest are forgotten", GUESSES),
    budget("refusals of tokens that are kept", FixedCount("MAX_REFUSED"), "", All, "are forgotten", GUESSES),
    budget("tokens that are known to be valid, for one principal a twentieth of them", FixedCount("CACHED_TOKENS"), "OAuth::max_cached_tokens", All, "are verified with each request", "auth/callers/oauth.rs"),
    // output that waits to be read
    budget("bytes that HTTP clients have not read: replies of more than 64 KiB, streams, replays, and what waits for an HTTP+SSE stream", Bytes(|o| o.http.max_unread_bytes), "http.max_unread_bytes", All, "replies and replays are `503` with `Retry-After`, or on an open stream `-32603`; notifications are dropped; an HTTP+SSE stream ends", HTTP),
    budget("a complete reply that is not charged to them", FixedBytes("MAX_UNCHARGED"), "", Connection, "it is charged", "transport/http/response_body.rs"),
    budget("messages that are not charged to them", FixedBytes("SEND_THRESHOLD"), "", Stream, "they are charged; a sender that can wait does", OUTBOUND),
    budget("notifications that one stream has not sent", FixedBytes("NOTIFICATION_LIMIT"), "", Stream, "are dropped", OUTBOUND),
    budget("requests to a client that one stream has not sent", FixedBytes("REQUEST_LIMIT"), "", Stream, "the function gets an error", OUTBOUND),
    budget("the same of HTTP+SSE, not charged", FixedBytes("MAX_UNCHARGED"), "", Stream, "it is charged", WRITER),
    budget("output that stdio or a byte stream has not written", FixedBytes("MAX_BACKLOG"), "", Connection, "no more is read; calls that run may add their replies", WRITER),
    budget("notifications among it", FixedBytes("NOTIFICATION_BACKLOG"), "", Connection, "are dropped", WRITER),
    budget("what one HTTP connection reads and writes ahead", FixedBytes("READ_AHEAD"), "", Connection, "waits in the socket", "transport/http/serve.rs"),
    // streams and subscriptions
    budget("event streams of `subscriptions/listen` and GET, until they are read", Count(|o| o.http.max_streams), "http.max_streams", All, "`503` with `Retry-After`", HTTP),
    budget("GET streams that wait for their client to come back", Count(|o| o.http.max_waiting), "", All, "end", HTTP),
    budget("subscribers", Count(|o| o.limits.subscriptions.subscribers), "limits.max_subscribers", All, "`-32603`, over HTTP with `503`", FILTER),
    budget("resources of one subscriber, and tasks", Count(|o| o.limits.subscriptions.uris), "limits.max_subscriptions", Subscriber, "are left out of the acknowledgement; legacy: `-32603`", FILTER),
    budget("URIs of all subscriptions", Bytes(|o| o.limits.subscriptions.bytes), "limits.max_subscription_bytes", All, "`-32603`, over HTTP with `503`; of legacy sessions without a stream the oldest subscriptions go first", FILTER),
    budget("one URI", FixedBytes("MAX_URI"), "", Subscriber, "`-32602`", "core/connection/subscribe_error.rs"),
    budget("changes that wait for a subscriber", Count(|o| o.limits.subscriptions.pending), "limits.max_pending_changes", Subscriber, "the stream ends; legacy: are dropped", FILTER),
    // stored state
    budget("sessions with subscriptions, streams or a log level", Count(|o| o.http.max_sessions), "http.max_sessions", All, "the longest idle is forgotten", "transport/http/legacy/session_table.rs"),
    budget("sessions that are known to have started or ended", Count(|o| o.http.max_session_records), "http.max_session_records", All, "`DELETE` is `405`", "transport/http/legacy/session_records.rs"),
    budget("open session ids", FixedCount("MAX_CACHED"), "", All, "are opened again", "transport/http/legacy/session_id.rs"),
    budget("events for clients that resume", Bytes(|o| o.http.event_bounds.bytes), "http.max_event_bytes", All, "the oldest go", EVENTS),
    budget("streams with such events", Count(|o| o.http.event_bounds.streams), "http.max_event_streams", All, "the oldest go", EVENTS),
    budget("events of one stream", Count(|o| o.http.event_bounds.events), "http.max_events_per_stream", Stream, "the oldest go", EVENTS),
    budget("events of one type that are kept", Count(|_| EventLimits::default().max_kept), "limits.events.max_kept", All, "the oldest go; clients are told of a gap", RING),
    budget("bytes of them", Bytes(|_| EventLimits::default().max_kept_bytes), "limits.events.max_kept_bytes", All, "the oldest go; clients are told of a gap", RING),
    budget("payload of one event", Bytes(|_| EventLimits::default().max_payload), "limits.events.max_payload", All, "it is not emitted; the program gets an error", "capability/events/emit.rs"),
    budget("events of one `events/poll`", Count(|_| EventLimits::default().max_polled), "limits.events.max_polled", Request, "come with the next", "capability/events/poll.rs"),
    budget("bytes of them", FixedBytes("MAX_BATCH_BYTES"), "", Request, "come with the next", SUBSCRIPTION),
    budget("subscriptions that are polled, for functions that `subscribed` names", Count(|_| EventLimits::default().max_poll_leases), "limits.events.max_poll_leases", All, "an error: too many", "capability/events/upstream.rs"),
    budget("subscriptions by webhook, and endpoints that were verified", FixedCount("MAX_SUBSCRIPTIONS"), "limits.events.max_webhooks", All, "an error: too many; endpoints are verified again", WEBHOOK),
    budget("one of them in a store that replicas share", FixedBytes("MAX_RECORD"), "", Subscriber, "an error: too many", "capability/events/webhook/durable.rs"),
    budget("principals without access whose subscriptions by webhook end once the shared store can be used", FixedCount("MAX_SUBSCRIPTIONS"), "limits.events.max_webhooks", All, "the oldest are forgotten, which is logged: their subscriptions go on until they expire", WEBHOOK),
    budget("bytes of messages to endpoints", FixedBytes("MAX_BYTES"), "limits.events.max_webhook_bytes", All, "wait", WEBHOOK),
    budget("messages that are sent to endpoints at once", FixedCount("MAX_ATTEMPTS"), "", All, "wait", ENDPOINT),
    budget("hosts of endpoints to which a connection is kept between messages", FixedCount("MAX_IDLE"), "", All, "connections are closed after a message", ENDPOINT),
    budget("events of a subscription by webhook that are on their way", FixedCount("MAX_OUTSTANDING"), "", Subscriber, "wait", DELIVERY),
    budget("of those, sent at once", FixedCount("MAX_AT_ONCE"), "", Subscriber, "wait", DELIVERY),
    budget("one message to an endpoint", FixedBytes("MAX_BODY"), "", Subscriber, "is not sent; clients are told of a gap", DELIVERY),
    budget("events that one request looks at in one go", FixedCount("MAX_LOOKED_AT"), "", Request, "come with the next", SUBSCRIPTION),
    budget("events that one stream reads at once", FixedCount("MAX_BATCH"), "", Stream, "wait; the oldest go, and clients are told of a gap", "capability/events/stream.rs"),
    budget("events that are taken from a source in one go", FixedCount("MAX_TAKEN"), "", Subscriber, "wait", SOURCE),
    budget("bytes of events that are read ahead from a source", FixedBytes("MAX_READ_AHEAD"), "", Subscriber, "wait", SOURCE),
    budget("types of events in a shared store", FixedCount("MAX_LOGS"), "", All, "those that are not emitted go", SHARED_LOG),
    budget("bytes of all events there", FixedBytes("MAX_LOG_BYTES"), "", All, "the oldest go", SHARED_LOG),
    budget("tasks that run", Count(|_| TaskOptions::default().max_running), "tasks.max_running", All, "an error", "capability/tasks/mod.rs"),
    budget("tasks that are kept", Count(|_| TaskOptions::default().max_kept), "tasks.max_kept", All, "an error", "capability/tasks/table.rs"),
    budget("bytes of them", Bytes(|_| TaskOptions::default().max_kept_bytes), "tasks.max_kept_bytes", All, "an error; of a result, its task is `failed`", "capability/tasks/table.rs"),
    budget("processes that run tasks of a shared store", FixedCount("MAX_PROCESSES"), "", All, "an error", "capability/tasks/replica/lease.rs"),
    budget("replicas with subscribers of one task", FixedCount("MAX_WATCHERS"), "", All, "it is left out of the acknowledgement", "capability/tasks/replica/watch.rs"),
    budget("changes of tasks that other replicas were not told yet", FixedCount("MAX_UNSENT"), "", All, "are found in the store, later", "capability/tasks/replica/mod.rs"),
    budget("one result", Unlimited, "limits.max_result", Request, "is cut or kept", "gate/result_limit.rs"),
    budget("bytes of kept results", Bytes(|o| o.limits.max_kept_bytes), "limits.max_kept_bytes", All, "results are cut", "gate/kept_results.rs"),
    budget("kept results", FixedCount("MAX_RESULTS"), "", All, "results are cut", "gate/kept_results.rs"),
    budget("series of one metric", FixedCount("MAX_SERIES"), "", All, "other requests are counted in one series", "gate/telemetry/prometheus.rs"),
    budget("changes that were not sent to other replicas yet", FixedCount("MAX_UNSENT"), "", All, "are told as a change of everything", "core/server/relay.rs"),
    budget("messages of other replicas that wait to be read", FixedCount("MAX_MESSAGES"), "", All, "are lost, which is noticed", "core/store/shared.rs"),
    budget("operations that wait for an answer of Redis", FixedCount("MAX_OPERATIONS"), "", All, "fail within two seconds", "redis/link.rs"),
    budget("messages of more than 64 KiB to other replicas", FixedCount("MAX_STORED"), "", All, "`503`", PEERS),
    budget("bytes of them", FixedBytes("MAX_STORED_BYTES"), "", All, "`503`", PEERS),
    budget("bytes of responses to client requests that wait for a shared store, each with 16 KiB more", FixedBytes("MAX_KEPT_BYTES"), "", All, "`503`", "transport/http/legacy/kept_responses.rs"),
    budget("proofs that were used", FixedCount("MAX_PROOFS"), "", All, "`401`", "auth/callers/builder.rs"),
    budget("calls that have used their responses", Count(|o| o.limits.max_consumed_calls), "limits.max_consumed_calls", All, "an error", "core/store/single_use.rs"),
];

/// Constants that look like a budget and are none, or that limit one value: by file.
const OTHERS: &[(&str, &[&str])] = &[
    ("capability/events/emit.rs", &["MAX_ID"]),
    ("capability/events/streamed.rs", &["MAX_POSITION"]),
    ("capability/tasks/replica/mod.rs", &["MAX_IDS", "MAX_UNLISTED"]),
    ("core/server/peers.rs", &["MAX_SENT"]),
    ("capability/events/shared_log.rs", &["MAX_ATTEMPTS"]),
    ("transport/http/server_card/card.rs", &["MAX_TEXT"]),
    ("capability/events/webhook/delivery.rs", &["MAX_ENDS", "MAX_FAREWELLS"]),
    ("capability/events/webhook/endpoint.rs", &["MAX_ANSWER"]),
    ("capability/events/webhook/mod.rs", &["MAX_HOSTS"]),
    ("capability/events/webhook/subscribe.rs", &["MAX_URL", "MAX_CONFLICTS"]),
    ("capability/events/webhook/durable.rs", &["MAX_CONFLICTS"]),
    ("transport/http/request_body.rs", &["MAX_DISCARDED", "MAX_REFUSED"]),
    ("transport/http/replay.rs", &["MAX_COPIED"]),
    ("transport/http/serve.rs", &["MAX_DISCARDED"]),
    ("transport/http/metrics.rs", &["MAX_CONNECTIONS"]),
    ("transport/http/legacy/session_id.rs", &["MAX_INFO"]),
    ("transport/lines.rs", &["MAX_KEPT"]),
    // of one line of the audit log, which is not kept
    (
        "gate/audit.rs",
        &["MAX_LINE", "MAX_REST", "MAX_TEXT", "MAX_FIELD", "MAX_FIELDS", "MAX_NAME", "MAX_NAMES"],
    ),
];

/// Files that count for others.
const COUNTERS: &[&str] = &[
    "core/admission/",
    "core/store/memory.rs",
    "core/store/memory_logs.rs",
    "auth/",
    "client/",
    "core/changes/filter.rs",
    "core/connection/outbound.rs",
];

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn count(n: usize) -> String {
        let digits = n.to_string();
        let mut out = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                out.push(',');
            }
            out.push(digit);
        }
        out
    }

    fn bytes(n: usize) -> String {
        match n {
            n if n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
            n if n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
            n => format!("{n} bytes"),
        }
    }

    fn src() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
    }

    fn source(file: &str) -> String {
        fs::read_to_string(src().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// The value of a constant, whose expression is a number or a shift.
    fn constant(file: &str, name: &str) -> usize {
        let source = source(file);
        let start = format!("const {name}: usize = ");
        let value = source.split(&start).nth(1).unwrap_or_else(|| panic!("{file} has no constant {name}"));
        let value = value.split(';').next().unwrap().replace('_', "");
        let parts: Vec<usize> = value.split("<<").map(|n| n.trim().parse().expect("a number")).collect();
        parts[0] << parts.get(1).unwrap_or(&0)
    }

    fn row(budget: &Budget, options: &Options) -> String {
        let Budget { what, default, option, shared, beyond, file } = budget;
        let default = match default {
            Count(of) => count(of(options)),
            Bytes(of) => bytes(of(options)),
            FixedCount(name) => count(constant(file, name)),
            FixedBytes(name) => bytes(constant(file, name)),
            Unlimited => "–".into(),
        };
        let option = option.map_or_else(|| "fixed".into(), |option| format!("`{option}`"));
        let shared = match shared {
            All => "all clients",
            Client => "each client",
            Connection => "each connection",
            Stream => "each stream",
            Subscriber => "each subscriber",
            Request => "each request",
        };
        format!("| {what} | {default} | {option} | {shared} | {beyond} |\n")
    }

    #[test]
    fn the_page_about_limits_lists_every_budget_with_its_default() {
        let options = Options::default();
        let table: String = BUDGETS.iter().map(|budget| row(budget, &options)).collect();
        let page = source("../docs/limits.md");
        assert!(page.contains(&table), "docs/limits.md has another list than the code, which is:\n{table}");
    }

    #[test]
    fn every_option_that_sets_a_number_is_one_of_a_budget() {
        for (group, file, name) in [
            ("http", "core/config/http.rs", ""),
            ("limits", "core/config/mod.rs", "impl Limits"),
            ("stdio", "core/config/mod.rs", "impl StdioOptions"),
            ("tasks", "capability/tasks/options.rs", "impl TaskOptions"),
            ("limits.events", "capability/events/options.rs", "impl EventLimits"),
        ] {
            let source = source(file);
            let part = source.split(name).nth(1).filter(|_| !name.is_empty()).unwrap_or(&source);
            let part = part.split("\n}\n").next().filter(|_| !name.is_empty()).unwrap_or(&source);
            let knobs = part.split("pub fn max_").skip(1).filter_map(|rest| rest.split('(').next());
            for knob in knobs.filter(|knob| !["share_percent", "stream_age"].contains(knob)) {
                let option = format!("{group}.max_{knob}");
                let listed = BUDGETS.iter().any(|budget| budget.option == Some(&option));
                assert!(listed, "`{option}` of {file} is missing in the list of budgets");
            }
        }
    }

    fn visit(folder: &Path, files: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path.strip_prefix(src()).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }

    #[test]
    fn every_bound_on_what_clients_leave_behind_is_in_the_list() {
        let mut files = Vec::new();
        visit(src(), &mut files);
        for file in files.iter().filter(|file| !file.contains("tests")) {
            let source = source(file);
            let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            let in_list = BUDGETS.iter().any(|budget| budget.file == file);
            let counts =
                ["Shares::new(", "OwnedTable::new(", "Usage::new("].iter().any(|new| code.contains(new));
            let elsewhere = COUNTERS.iter().any(|counter| file.starts_with(counter)) || file == "budgets.rs";
            assert!(!counts || in_list || elsewhere, "{file} limits what clients share: add it to the list");
            let waits = [
                "gate/",
                "transport/",
                "core/connection/",
                "core/changes/",
                "core/store/",
                "capability/tasks/",
                "capability/events/",
                "redis/",
            ];
            if !waits.iter().any(|folder| file.starts_with(folder)) {
                continue;
            }
            for line in code.lines().filter(|line| line.contains("const ") && line.contains(": usize = ")) {
                let name = line.split("const ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
                let is_bound =
                    name.starts_with("MAX_") || name.ends_with("_LIMIT") || name.ends_with("BACKLOG");
                let listed = BUDGETS.iter().any(|budget| {
                    budget.file == file
                        && matches!(budget.default, FixedCount(n) | FixedBytes(n) if n == name)
                });
                let other = OTHERS.iter().any(|(of, names)| of == file && names.contains(&name));
                assert!(!is_bound || listed || other, "`{name}` of {file} is missing in the list of budgets");
            }
        }
    }
}
