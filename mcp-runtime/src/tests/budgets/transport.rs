//! The bounds of `transport`, without `http/legacy`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};

const HTTP: &str = "transport/http/endpoint.rs";
const WRITER: &str = "transport/writer.rs";

#[rustfmt::skip]
pub(super) const TRANSPORT: Folder = Folder {
    budgets: &[
        budget("connections over HTTP", Count(|o| o.http.max_connections), "http.max_connections", All, "wait to be accepted; of an address at its share, are closed", "transport/http/accept.rs"),
        budget("requests that run over HTTP", Count(|o| o.http.max_requests), "http.max_requests", All, "`503` with `Retry-After`", HTTP),
        budget("messages that are read while those are used up", FixedCount("MAX_MESSAGES"), "", All, "`503`", HTTP),
        budget("requests to routes of additions that run", FixedCount("MAX_ROUTE_REQUESTS"), "", All, "`503` with `Retry-After`", HTTP),
        budget("the body of one of them, unless the route says otherwise", FixedBytes("MAX_ROUTE_BODY"), "", Request, "`413`", "transport/http/added_routes.rs"),
        budget("the response to one of them", FixedBytes("MAX_ROUTE_RESPONSE"), "", Request, "`500`", "transport/http/added_routes.rs"),
        budget("calls that run on without their client", FixedCount("MAX_DETACHED"), "", All, "are cancelled", HTTP),
        budget("one body", Bytes(|o| o.http.max_body), "http.max_body", Request, "`413`", "transport/http/request_body.rs"),
        budget("pieces of one body with fewer than 64 bytes, beside one for each 64 bytes", FixedCount("MAX_SMALL_PIECES"), "", Request, "`400`", "transport/http/request_body.rs"),
        budget("bodies that are not complete, and requests of HTTP+SSE that wait", FixedBytes("MAX_UNFINISHED"), "", All, "`503`", HTTP),
        budget("one line", FixedBytes("MAX_LINE"), "", Connection, "an error", "core/config/mod.rs"),
        budget("calls that run on stdio or a byte stream", Count(|o| o.limits.max_in_flight), "limits.max_in_flight", Connection, "wait", "transport/scheduler.rs"),
        budget("requests that wait there", Count(|o| o.limits.max_queued), "limits.max_queued", Connection, "an error: busy", "transport/scheduler.rs"),
        budget("bytes of them", FixedBytes("MAX_QUEUED_BYTES"), "", Connection, "an error: busy", "transport/scheduler.rs"),
        budget("bytes that HTTP clients have not read: replies of more than 64 KiB, streams, replays, and what waits for an HTTP+SSE stream", FixedBytes("MAX_UNREAD"), "", All, "replies and replays are `503` with `Retry-After`, or on an open stream `-32603`; notifications are dropped; an HTTP+SSE stream ends", HTTP),
        budget("a complete reply that is not charged to them", FixedBytes("MAX_UNCHARGED"), "", Connection, "it is charged", "transport/http/response_body.rs"),
        budget("the same of HTTP+SSE, not charged", FixedBytes("MAX_UNCHARGED"), "", Stream, "it is charged", WRITER),
        budget("output that stdio or a byte stream has not written", FixedBytes("MAX_BACKLOG"), "", Connection, "no more is read; calls that run may add their replies", WRITER),
        budget("notifications among it", FixedBytes("NOTIFICATION_BACKLOG"), "", Connection, "are dropped", WRITER),
        budget("what one HTTP connection reads and writes ahead", FixedBytes("READ_AHEAD"), "", Connection, "waits in the socket", "transport/http/accept.rs"),
        budget("event streams of `subscriptions/listen` and GET, until they are read", Count(|o| o.http.max_streams), "http.max_streams", All, "`503` with `Retry-After`", HTTP),
        budget("GET streams that wait for their client to come back", FixedCount("MAX_WAITING"), "", All, "end", HTTP),
    ],
    others: &[
        ("transport/http/request_body.rs", &["MAX_DISCARDED", "MAX_REFUSED"]),
        ("transport/http/metrics.rs", &["MAX_CONNECTIONS"]),
        ("transport/lines.rs", &["MAX_KEPT"]),
    ],
};
