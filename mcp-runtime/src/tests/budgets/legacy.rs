//! The bounds of `transport/http/legacy`.

use super::{BudgetDefault::*, Folder, Shared::*, budget};

const EVENTS: &str = "transport/http/legacy/event_log.rs";

#[rustfmt::skip]
pub(super) const LEGACY: Folder = Folder {
    budgets: &[
        budget("messages of one HTTP+SSE stream that wait to be read", FixedCount("MAX_QUEUED"), "", Stream, "wait, then `503`", "transport/http/legacy/http_sse.rs"),
        budget("sessions with subscriptions, streams or a log level", Count(|o| o.http.max_sessions), "http.max_sessions", All, "the longest idle is forgotten", "transport/http/legacy/session_table.rs"),
        budget("sessions that are known to have started or ended", Count(|o| o.http.max_session_records), "", All, "`DELETE` is `405`", "transport/http/legacy/session_records.rs"),
        budget("open session ids", FixedCount("MAX_CACHED"), "", All, "are opened again", "transport/http/legacy/session_id.rs"),
        budget("events for clients that resume", FixedBytes("MAX_BYTES"), "", All, "the oldest go", EVENTS),
        budget("events of one stream", FixedCount("MAX_EVENTS"), "", Stream, "the oldest go", EVENTS),
    ],
    others: &[
        // a limit of one value
        (EVENTS, &["MAX_EVENT"]),
        ("transport/http/legacy/session_id.rs", &["MAX_INFO"]),
    ],
};
