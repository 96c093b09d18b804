//! The ids of events on a session's streams, which clients send back as `Last-Event-ID`: `<stream>.<number>`. The name
//! of a stream says which process has sent it and is random, so that it cannot be guessed; an id is valid only within its
//! session.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::core::{crypto::random_bytes, protocol::Revision};

/// Characters of a stream's name: its kind, the process, and random ones.
const NAME_LENGTH: usize = 1 + PROCESS_LENGTH + 22;
/// Characters that identify the process.
const PROCESS_LENGTH: usize = 8;

/// The kind of a stream, which its name begins with.
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

    /// The name of a new stream of a process; `None` if the operating system provides no randomness.
    pub(super) fn new_name(self, process: [u8; 6]) -> Option<Box<str>> {
        let random = random_bytes::<16>().ok()?;
        let [process, random] = [URL_SAFE_NO_PAD.encode(process), URL_SAFE_NO_PAD.encode(random)];
        Some(format!("{}{process}{random}", self.prefix()).into())
    }
}

/// The id of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventId<'a> {
    pub(super) stream: &'a str,
    pub(super) number: u64,
    pub(super) kind: StreamKind,
}

impl<'a> EventId<'a> {
    /// Parses an id; `None` if it does not have the form of this server's ids.
    pub(super) fn parse(id: &'a str) -> Option<Self> {
        let (stream, number) = id.split_once('.')?;
        let kind = [StreamKind::Call, StreamKind::Standalone]
            .into_iter()
            .find(|kind| stream.starts_with(kind.prefix()))?;
        let is_name = stream.len() == NAME_LENGTH
            && stream.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        (is_name && is_number).then_some(Self { stream, number: number.parse().ok()?, kind })
    }

    /// Whether the stream is one of that process.
    pub(super) fn is_of(&self, process: [u8; 6]) -> bool {
        self.stream.get(1..=PROCESS_LENGTH) == Some(&URL_SAFE_NO_PAD.encode(process))
    }

    /// The event that a resumed stream begins with: a client whose connection breaks before the next event resumes after
    /// the same one.
    pub(super) fn priming_event(&self, revision: Revision) -> Vec<u8> {
        empty_event(self.stream, self.number, None, revision)
    }
}

/// An event without a message, with the id to resume from and the delay before the client reconnects. Empty for clients of
/// earlier revisions, which read no empty events.
pub(super) fn empty_event(stream: &str, number: u64, retry: Option<Duration>, revision: Revision) -> Vec<u8> {
    if revision < Revision::V2025_11_25 {
        return Vec::new();
    }
    let retry = retry.map_or_else(String::new, |retry| format!("retry: {}\n", retry.as_millis()));
    format!("id: {stream}.{number}\n{retry}data: \n\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_parsed_as_it_was_written() {
        let name = format!("c{}", URL_SAFE_NO_PAD.encode([0xfb; 22]));
        let id = format!("{name}.42");
        let parsed = EventId { stream: &name, number: 42, kind: StreamKind::Call };
        assert!(parsed.is_of([0xfb; 6]) && !parsed.is_of([0; 6]));
        assert_eq!(EventId::parse(&id), Some(parsed));
        let name = StreamKind::Standalone.new_name([1; 6]).unwrap();
        assert!(EventId::parse(&format!("{name}.1")).unwrap().is_of([1; 6]));
        let huge = format!("{name}.99999999999999999999999");
        for bad in ["", ".", "1", &name, &format!("{name}."), &format!("{name}.-1"), &format!("x{id}"), &huge]
        {
            assert_eq!(EventId::parse(bad), None, "{bad}");
        }
        assert_eq!(EventId::parse(&id.replacen('c', "x", 1)), None);
        assert_eq!(EventId::parse(&id.replacen('-', "é", 1)), None);
    }
}
