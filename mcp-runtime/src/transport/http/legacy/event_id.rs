//! The ids of events on a session's streams, which clients send back as `Last-Event-ID`. An id says which process has sent
//! the event and on which of its streams; it is valid only within the session of the stream.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Characters that identify the process.
const PROCESS_LENGTH: usize = 8;

/// The kind of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// The response to one POST.
    Call,
    /// The response to a GET: messages that do not belong to a request.
    Standalone,
}

impl StreamKind {
    const fn prefix(self) -> char {
        match self {
            Self::Call => 'c',
            Self::Standalone => 's',
        }
    }
}

/// The id of an event: `<kind><process><stream>.<number>` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) kind: StreamKind,
    pub(super) process: [u8; 6],
    /// The number of the stream in its process.
    pub(super) stream: u64,
    /// The number of the event on its stream; 0 is before the first one.
    pub(super) number: u64,
}

impl EventId {
    /// Parses an id; `None` if it does not have the form of this server's ids.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let kinds = [StreamKind::Call, StreamKind::Standalone];
        let kind = kinds.into_iter().find(|kind| id.starts_with(kind.prefix()))?;
        let (process, rest) = id.get(1..)?.split_at_checked(PROCESS_LENGTH)?;
        let process = URL_SAFE_NO_PAD.decode(process).ok()?.try_into().ok()?;
        let (stream, number) = rest.split_once('.')?;
        Some(Self { kind, process, stream: stream.parse().ok()?, number: number.parse().ok()? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = URL_SAFE_NO_PAD.encode(self.process);
        write!(f, "{}{process}{}.{}", self.kind.prefix(), self.stream, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_parsed_as_it_was_written() {
        let id = EventId { kind: StreamKind::Call, process: [0xfb; 6], stream: 7, number: 42 };
        let text = id.to_string();
        assert_eq!((&*text, EventId::parse(&text)), ("c-_v7-_v77.42", Some(id)));
        let standalone = EventId { kind: StreamKind::Standalone, ..id };
        assert_eq!(EventId::parse(&standalone.to_string()), Some(standalone));
        let huge = format!("c-_v7-_v77.{}", "9".repeat(23));
        for bad in
            ["", ".", "1", "c-_v7-_v77", "c-_v7-_v77.", "c-_v7-_v7.42", "c-_v7-_v77.-1", "c-_v7.42", &huge]
        {
            assert_eq!(EventId::parse(bad), None, "{bad}");
        }
        assert_eq!(EventId::parse(&text.replacen('c', "x", 1)), None);
        assert_eq!(EventId::parse(&text.replacen('-', "é", 1)), None);
        assert_eq!(EventId::parse(&format!("{text}x")), None);
    }
}
