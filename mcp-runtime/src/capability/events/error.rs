//! The errors of events, and their codes, each with its typed `data`.

use serde_json::json;

use super::Delivery;
use crate::core::{
    connection::AccessError,
    dispatch::{Reply, Status},
    jsonrpc::ProtocolError,
    reason::Reason,
    server::Server,
};

/// The named item does not exist.
const NOT_FOUND: i64 = -32023;
/// The caller may not have it, or may not have it any more.
const FORBIDDEN: i64 = -32024;
/// The server has no room for more.
const RESOURCE_EXHAUSTED: i64 = -32025;
/// The server does not have what is asked for.
const UNSUPPORTED: i64 = -32026;
/// The endpoint of a webhook cannot be used.
const CALLBACK_ENDPOINT: i64 = -32027;

/// No event has that name, for this caller at least; `nearest` is the one with the most similar name.
pub(super) fn unknown_event(name: &str, nearest: Option<&str>) -> ProtocolError {
    let meant = nearest.map_or(String::new(), |nearest| format!("; did you mean `{nearest}`?"));
    let text = format!("unknown event `{name}`{meant}");
    ProtocolError::new(NOT_FOUND, text).with_data(json!({ "kind": "event" }))
}

/// The caller may not subscribe, or not any more.
pub(super) fn forbidden(reason: &str) -> ProtocolError {
    ProtocolError::new(FORBIDDEN, format!("forbidden: {reason}")).with_data(json!({ "reason": reason }))
}

/// The event is not delivered in that way.
pub(super) fn unsupported_delivery(name: &str, mode: Delivery, offered: &[Delivery]) -> ProtocolError {
    let offered: Vec<_> = offered.iter().map(|mode| format!("`{}`", mode.as_str())).collect();
    let mode = mode.as_str();
    let text = format!("the event `{name}` is not delivered by `{mode}`\nuse {}", offered.join(" or "));
    ProtocolError::new(UNSUPPORTED, text).with_data(json!({ "feature": "deliveryMode", "value": mode }))
}

/// The server, or the caller, has too many of `limit`.
pub(super) fn resource_exhausted(limit: &str, text: impl Into<String>) -> ProtocolError {
    ProtocolError::new(RESOURCE_EXHAUSTED, text).with_data(json!({ "limit": limit }))
}

/// The same for what is open, as a reply with its status over HTTP.
pub(super) fn exhausted(limit: &str) -> Reply {
    let text = format!("too many {limit} are open\ntry again");
    Reply { outcome: Err(resource_exhausted(limit, text.clone())), ..Reply::unavailable(text) }
}

/// The caller has no such subscription.
pub(super) fn unknown_subscription() -> ProtocolError {
    ProtocolError::new(NOT_FOUND, "the subscription does not exist")
        .with_data(json!({ "kind": "subscription" }))
}

/// The endpoint of a webhook was not verified.
pub(super) fn callback_endpoint(reason: &str) -> ProtocolError {
    ProtocolError::new(CALLBACK_ENDPOINT, format!("the endpoint was not verified: {reason}"))
        .with_data(json!({ "reason": reason }))
}

/// The reply to a caller that may not have an event.
pub(super) fn refused(server: &Server, name: &str, nearest: Option<&str>, why: &AccessError<'_>) -> Reply {
    match why {
        AccessError::Unknown => Reply::from(unknown_event(name, nearest)).because(Reason::Unknown),
        AccessError::MissingScopes(scopes) => {
            let reply = server.insufficient_scope(scopes);
            let text = reply.outcome.as_ref().err().map(|error| error.message.clone()).unwrap_or_default();
            let error = ProtocolError::new(FORBIDDEN, text)
                .with_data(json!({ "reason": "insufficient_scope", "scopes": scopes }));
            Reply { outcome: Err(error), ..reply }
        }
    }
}

/// The reply to a request without a caller, for an event that needs one.
pub(super) fn needs_caller() -> Reply {
    let error = forbidden("the event is for authenticated callers");
    Reply { status: Status::Forbidden, ..error.into() }.because(Reason::Forbidden)
}
