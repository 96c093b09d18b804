//! Events of streams over HTTP: where they end, the messages in them, and the same events with other data or ids.

use hyper::body::Bytes;
use serde_json::Value;

/// Takes the first event that is whole. Before `searched` no event ends.
pub(super) fn next_event(kept: &mut Vec<u8>, searched: &mut usize) -> Option<Vec<u8>> {
    let Some(end) = end_of_event(kept, *searched) else {
        // an end may be cut in two
        *searched = kept.len().saturating_sub(3);
        return None;
    };
    *searched = 0;
    let rest = kept.split_off(end);
    Some(std::mem::replace(kept, rest))
}

/// Where the next event begins; the end of the first one is not before `from`.
fn end_of_event(bytes: &[u8], from: usize) -> Option<usize> {
    let ends: [&[u8]; 2] = [b"\n\n", b"\r\n\r\n"];
    let found = ends.iter().filter_map(|end| {
        let at = bytes[from..].windows(end.len()).position(|part| part == *end)? + from;
        Some(at + end.len())
    });
    found.min()
}

fn lines_of(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    event.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn field<'e>(line: &'e [u8], name: &[u8]) -> Option<&'e [u8]> {
    let value = line.strip_prefix(name)?.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

/// The data of an event.
pub(super) fn data_of(event: &[u8]) -> Vec<u8> {
    lines_of(event).filter_map(|line| field(line, b"data")).collect::<Vec<_>>().join(&b'\n')
}

/// The same event: with `data`, if the client gets other data, and with an id that begins with `mark`.
pub(super) fn rewrite(event: &[u8], data: Option<&[u8]>, mark: Option<u64>) -> Vec<u8> {
    let mut written = Vec::with_capacity(event.len() + 24);
    let mut new = data;
    for line in lines_of(event).filter(|line| !line.is_empty()) {
        match (field(line, b"data"), field(line, b"id"), mark) {
            (Some(_), ..) if data.is_some() => {
                let Some(data) = new.take() else { continue };
                written.extend_from_slice(b"data: ");
                written.extend_from_slice(data);
            }
            (_, Some(id), Some(mark)) => {
                written.extend_from_slice(format!("id: {mark}.").as_bytes());
                written.extend_from_slice(id);
            }
            _ => written.extend_from_slice(line),
        }
        written.push(b'\n');
    }
    written.push(b'\n');
    written
}

/// The mark of an event id, and the id itself.
pub(super) fn marked(id: &str) -> Option<(u64, &str)> {
    let (mark, id) = id.split_once('.')?;
    Some((mark.parse().ok()?, id))
}

/// An event with a message of this program.
pub(super) fn of_message(message: &Value) -> Bytes {
    format!("data: {message}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_keeps_its_other_lines_when_its_data_and_id_are_replaced() {
        let event = b"event: message\r\nid: a.b\r\ndata: {\r\ndata: }\r\n\r\n";
        assert_eq!(data_of(event), b"{\n}");
        let written = rewrite(event, Some(b"[]"), Some(7));
        assert_eq!(written, b"event: message\nid: 7.a.b\ndata: []\n\n");
        assert_eq!(marked("7.a.b"), Some((7, "a.b")));
        assert_eq!(rewrite(b": alive\n\n", None, Some(7)), b": alive\n\n");
        let (mut kept, mut searched) = (b"data: 1\n\ndata: 2\r\n\r\nda".to_vec(), 0);
        assert_eq!(next_event(&mut kept, &mut searched).as_deref(), Some(&b"data: 1\n\n"[..]));
        assert_eq!(next_event(&mut kept, &mut searched).as_deref(), Some(&b"data: 2\r\n\r\n"[..]));
        assert_eq!((next_event(&mut kept, &mut searched), kept.as_slice()), (None, &b"da"[..]));
    }
}
