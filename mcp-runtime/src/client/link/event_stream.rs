//! Parses `text/event-stream` from chunks of any size, with a limit on one event.
//!
//! See the [HTML standard](https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation).

use std::{collections::VecDeque, time::Duration};

use http::HeaderValue;

use super::http_reply::HttpReply;
use crate::client::{Error, operation::Operation};

/// The longest id that is repeated in `Last-Event-ID`.
const MAX_ID: usize = 4096;

/// One event with data.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::client) struct StreamEvent {
    /// `message` if empty.
    pub(in crate::client) kind: String,
    /// Text, unless the server's UTF-8 is broken: nothing is replaced in it, so that the message can be refused.
    pub(in crate::client) data: Vec<u8>,
}

/// A parser of one stream.
pub(in crate::client) struct EventStreamParser {
    /// The incomplete line at the end of the last chunk.
    rest: Vec<u8>,
    event: StreamEvent,
    has_data: bool,
    /// The id of the last event, for `Last-Event-ID`; `None` if it has none, or one that headers cannot have.
    pub(in crate::client) last_id: Option<HeaderValue>,
    /// The id that the next event has, if that has no other.
    next_id: Option<HeaderValue>,
    /// How long to wait before reconnecting, if the server has said so.
    pub(in crate::client) retry: Option<Duration>,
    is_first: bool,
    after_carriage_return: bool,
    limit: usize,
    /// Events of the last chunk that were not taken yet.
    waiting: VecDeque<StreamEvent>,
}

/// An event exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
struct EventTooLarge;

impl EventStreamParser {
    pub(in crate::client) fn new(limit: usize) -> Self {
        Self {
            rest: Vec::new(),
            event: StreamEvent::default(),
            has_data: false,
            last_id: None,
            next_id: None,
            retry: None,
            is_first: true,
            after_carriage_return: false,
            limit,
            waiting: VecDeque::new(),
        }
    }

    /// Begins the stream that goes on where this one ended; an event that is not complete is discarded.
    pub(in crate::client) fn resume(&mut self) {
        let last_id = self.last_id.take();
        let resumed = Self { next_id: last_id.clone(), last_id, retry: self.retry, ..Self::new(self.limit) };
        *self = resumed;
    }

    /// The next event of a response, whose bytes count for the operation; `None` at its end. A connection that breaks is
    /// like one that ends.
    ///
    /// # Errors
    /// An event or the operation exceeds its limit.
    pub(super) async fn next(
        &mut self,
        response: &mut HttpReply,
        operation: Option<&Operation>,
    ) -> Result<Option<StreamEvent>, Error> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(Some(event));
            }
            let Ok(Some(chunk)) = response.chunk().await else { return Ok(None) };
            operation.map_or(Ok(()), |operation| operation.charge(chunk.len()))?;
            let mut events = Vec::new();
            let fed = self.feed(&chunk, &mut events);
            fed.map_err(|EventTooLarge| Error::too_large(self.limit, Some("max_message")))?;
            self.waiting.extend(events);
        }
    }

    /// Takes the next bytes; the events that they complete are appended.
    ///
    /// # Errors
    /// An event exceeds the limit.
    fn feed(&mut self, mut chunk: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), EventTooLarge> {
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_carriage_return)
                && let Some(after) = chunk.strip_prefix(b"\n")
            {
                chunk = after;
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) else {
                self.rest.extend_from_slice(chunk);
                return self.check_limit();
            };
            let (line, after) = chunk.split_at(end);
            self.after_carriage_return = after.first() == Some(&b'\r');
            chunk = after.get(1..).unwrap_or_default();
            self.rest.extend_from_slice(line);
            self.check_limit()?;
            let line = std::mem::take(&mut self.rest);
            self.line(line, events);
        }
        Ok(())
    }

    fn check_limit(&self) -> Result<(), EventTooLarge> {
        let size = self.rest.len() + self.event.data.len() + self.event.kind.len();
        if size > self.limit { Err(EventTooLarge) } else { Ok(()) }
    }

    fn line(&mut self, mut line: Vec<u8>, events: &mut Vec<StreamEvent>) {
        const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
        if std::mem::take(&mut self.is_first) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            // not before: an event that is not complete is sent again
            self.last_id.clone_from(&self.next_id);
            if std::mem::take(&mut self.has_data) {
                events.push(event);
            }
            return;
        }
        let colon = memchr::memchr(b':', &line);
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if field == b"data" {
            if !std::mem::replace(&mut self.has_data, true) {
                // most events have one line, which may be large
                line.drain(..line.len() - value.len());
                self.event.data = line;
                return;
            }
            self.event.data.push(b'\n');
            return self.event.data.extend_from_slice(value);
        }
        let value = &*String::from_utf8_lossy(value);
        match &*String::from_utf8_lossy(field) {
            "event" => value.clone_into(&mut self.event.kind),
            // one that headers cannot have is not kept: the stream cannot be resumed there
            "id" if !value.contains('\0') => {
                let fits = !value.is_empty() && value.len() <= MAX_ID;
                self.next_id = HeaderValue::from_bytes(value.as_bytes()).ok().filter(|_| fits);
            }
            "retry" => {
                if let Some(millis) = value.parse().ok().filter(|_| value.bytes().all(|b| b.is_ascii_digit()))
                {
                    self.retry = Some(Duration::from_millis(millis));
                }
            }
            // a comment, or a field without a meaning
            _ => {}
        }
    }
}

/// Events are those of the standard's algorithm, however the stream is cut.
#[cfg(any(test, feature = "_fuzzing"))]
fn fuzz(data: &[u8]) {
    /// The algorithm, over the whole stream.
    fn events_of(stream: &[u8]) -> Vec<StreamEvent> {
        let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
        let (mut lines, mut line, mut at) = (Vec::new(), Vec::new(), 0);
        while let Some(byte) = stream.get(at) {
            at += 1;
            match byte {
                b'\r' | b'\n' => {
                    at += usize::from(*byte == b'\r' && stream.get(at) == Some(&b'\n'));
                    lines.push(std::mem::take(&mut line));
                }
                byte => line.push(*byte),
            }
        }
        let (mut events, mut event, mut data) = (Vec::new(), StreamEvent::default(), Vec::<Vec<u8>>::new());
        for line in lines {
            if line.is_empty() {
                let mut event = std::mem::take(&mut event);
                if !data.is_empty() {
                    event.data = std::mem::take(&mut data).join(&b'\n');
                    events.push(event);
                }
                continue;
            }
            let mut parts = line.splitn(2, |byte| *byte == b':');
            let (field, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match field {
                b"data" => data.push(value.to_vec()),
                b"event" => event.kind = String::from_utf8_lossy(value).into_owned(),
                _ => {}
            }
        }
        events
    }

    let Some((&size, stream)) = data.split_first() else { return };
    let mut parser = EventStreamParser::new(usize::MAX);
    let mut events = Vec::new();
    for chunk in stream.chunks(usize::from(size) + 1) {
        assert_eq!(parser.feed(chunk, &mut events), Ok(()));
    }
    assert_eq!(events, events_of(stream));
    let mut parser = EventStreamParser::new(64);
    for chunk in stream.chunks(usize::from(size) + 1) {
        let mut events = Vec::new();
        let is_within = parser.feed(chunk, &mut events).is_ok();
        assert!(
            events.iter().all(|event| event.data.len() + event.kind.len() <= 64),
            "an event exceeds the limit"
        );
        if !is_within {
            break;
        }
    }
}

#[cfg(any(test, feature = "_fuzzing"))]
inventory::submit!(crate::fuzzing::Target { name: "event_streams", run: fuzz });

#[cfg(test)]
mod tests {
    use super::*;

    fn pair_of(event: StreamEvent) -> (String, String) {
        (event.kind, String::from_utf8(event.data).unwrap())
    }

    fn id_of(parser: &EventStreamParser) -> Option<&str> {
        parser.last_id.as_ref().map(|id| std::str::from_utf8(id.as_bytes()).unwrap())
    }

    fn events(parser: &mut EventStreamParser, chunks: &[&str]) -> Vec<(String, String)> {
        let mut events = Vec::new();
        for chunk in chunks {
            parser.feed(chunk.as_bytes(), &mut events).unwrap();
        }
        events.into_iter().map(pair_of).collect()
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let stream = "\u{feff}: hi\r\nid: 7\rretry: 500\ndata:\n\nevent: message\r\ndata: {\"a\":\r\ndata:  1}\r\n\r\nid: 8\ndata: x\n\n";
        let whole = events(&mut EventStreamParser::new(1000), &[stream]);
        let pair = |kind: &str, data: &str| (kind.to_owned(), data.to_owned());
        assert_eq!(whole, [pair("", ""), pair("message", "{\"a\":\n 1}"), pair("", "x")]);
        for size in 1..stream.len() {
            let mut parser = EventStreamParser::new(1000);
            let mut cut = Vec::new();
            for chunk in stream.as_bytes().chunks(size) {
                parser.feed(chunk, &mut cut).unwrap();
            }
            let cut: Vec<_> = cut.into_iter().map(pair_of).collect();
            assert_eq!(cut, whole, "in chunks of {size}");
            assert_eq!(id_of(&parser), Some("8"));
            assert_eq!(parser.retry, Some(Duration::from_millis(500)));
        }
    }

    #[test]
    fn an_event_that_exceeds_the_limit_is_refused_before_it_is_kept() {
        let mut parser = EventStreamParser::new(10);
        assert_eq!(parser.feed(b"data: 0123456789012345", &mut Vec::new()), Err(EventTooLarge));
        let mut parser = EventStreamParser::new(10);
        let mut several = Vec::new();
        assert_eq!(parser.feed(b"data:1234\ndata:1234\ndata:1234\n", &mut several), Err(EventTooLarge));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_kept_so_that_the_message_can_be_refused() {
        let mut events = Vec::new();
        let mut parser = EventStreamParser::new(100);
        parser.feed(b": \xff\nevent: \xfe\ndata: a\xffb\ndata: c\n\n", &mut events).unwrap();
        assert_eq!((&*events[0].kind, &*events[0].data), ("\u{fffd}", &b"a\xffb\nc"[..]));
    }

    #[test]
    fn an_id_counts_from_the_end_of_its_event() {
        let long = format!("id: {}\n\n", "x".repeat(MAX_ID + 1));
        for (stream, id) in [
            ("id: 1\n", None),
            ("id: 1\ndata: x\n", None),
            ("id: 1\n\n", Some("1")),
            ("id: 1\n\nid: 2\ndata: x", Some("1")),
            ("id: 1\n\ndata: x\n\n", Some("1")),
            ("id: ä\n\n", Some("ä")),
            ("id: 1\n\nid: 2\0\n\n", Some("1")),
            ("id: 1\n\nid:\n", Some("1")),
            ("id: 1\n\nid:\n\n", None),
            ("id: 1\n\nid\n\n", None),
            ("id: 1\n\nid: a\u{1}b\n\n", None),
            (&*long, None),
        ] {
            let mut parser = EventStreamParser::new(10_000);
            events(&mut parser, &[stream]);
            assert_eq!(id_of(&parser), id, "{stream:?}");
            // the stream that goes on has it, and nothing of an incomplete event
            parser.resume();
            assert_eq!(events(&mut parser, &["\n"]), []);
            assert_eq!(id_of(&parser), id, "{stream:?}");
        }
    }

    #[test]
    fn what_is_not_complete_is_not_an_event() {
        assert_eq!(events(&mut EventStreamParser::new(100), &["data: x\n", "id: 1"]), []);
        assert_eq!(events(&mut EventStreamParser::new(100), &["id: 1\n\n", "retry: x\n\n"]), []);
    }
}
