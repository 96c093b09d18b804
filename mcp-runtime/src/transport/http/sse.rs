//! The text of an [event stream](https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream):
//! an event is `write_id` and `write_retry` where it has them, and then one of the other functions, which end it.

use std::time::Duration;

use crate::jsonrpc::replace_line_breaks;

/// Appends a comment, which clients ignore.
pub(super) fn write_comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}

/// Appends the field with which a client comes back.
pub(super) fn write_id(out: &mut Vec<u8>, stream: &str, number: u64) {
    out.extend_from_slice(format!("id: {stream}.{number}\n").as_bytes());
}

/// Appends the field that tells a client when to come back.
pub(super) fn write_retry(out: &mut Vec<u8>, after: Duration) {
    out.extend_from_slice(format!("retry: {}\n", after.as_millis()).as_bytes());
}

/// Ends an event that has fields and not even data.
pub(super) fn write_end(out: &mut Vec<u8>) {
    out.push(b'\n');
}

/// Appends data without content, for an event whose fields are all that matters.
pub(super) fn write_empty(out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: \n\n");
}

/// Appends a message. Some clients take only events that name their type.
pub(super) fn write_message(out: &mut Vec<u8>, message: &[u8]) {
    out.reserve(message.len() + 24);
    out.extend_from_slice(b"event: message\ndata: ");
    let start = out.len();
    out.extend_from_slice(message);
    replace_line_breaks(out.get_mut(start..).unwrap_or_default());
    out.extend_from_slice(b"\n\n");
}

/// Appends where a client of HTTP+SSE sends its messages.
pub(super) fn write_endpoint(out: &mut Vec<u8>, uri: &str) {
    out.extend_from_slice(format!("event: endpoint\ndata: {uri}\n\n").as_bytes());
}
