//! Event streams: every field of an event, including events without a message, and the messages alone.

use std::{collections::VecDeque, net::SocketAddr};

use serde_json::Value;

use super::{HttpConnection, HttpRequest, HttpResponse, within};

/// One event, or a comment between events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// What a client sends as `Last-Event-ID` to resume after it.
    pub id: Option<String>,
    /// Its type, if present.
    pub event: Option<String>,
    /// The reconnection time in milliseconds.
    pub retry: Option<u64>,
    /// Its data, lines joined by line feeds.
    pub data: Option<String>,
    /// Lines that begin with a colon.
    pub comments: Vec<String>,
}

impl Event {
    /// Its message; `None` if the event only has an id.
    #[track_caller]
    pub fn message(&self) -> Option<Value> {
        let data = self.data.as_deref().filter(|data| !data.is_empty())?;
        assert_eq!(self.event.as_deref(), Some("message"), "{self:?}");
        Some(serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")))
    }

    fn parse(text: &str) -> Self {
        let mut event = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match name {
                "" => event.comments.push(value),
                "id" => event.id = Some(value),
                "event" => event.event = Some(value),
                "retry" => event.retry = Some(value.parse().expect("milliseconds")),
                "data" => {
                    event.data = Some(match event.data.take() {
                        Some(data) => format!("{data}\n{value}"),
                        None => value,
                    });
                }
                other => panic!("no event has a field `{other}`: {text:?}"),
            }
        }
        event
    }
}

/// The events of a complete stream.
#[track_caller]
pub fn events(text: &str) -> Vec<Event> {
    let rest = text.rsplit_once("\n\n").map_or(text, |(_, rest)| rest);
    assert!(rest.is_empty(), "half an event: {rest:?}");
    text.split_terminator("\n\n").map(Event::parse).collect()
}

/// The messages of a complete stream.
#[track_caller]
pub fn messages(text: &str) -> Vec<Value> {
    events(text).iter().filter_map(Event::message).collect()
}

/// The body of a response that is an event stream.
pub struct EventStream {
    /// The connection; can be reused once the stream has ended.
    pub connection: HttpConnection,
    /// An incomplete event.
    text: String,
    waiting: VecDeque<Event>,
    /// Whether the whole body has been read.
    ended: bool,
}

impl EventStream {
    /// The stream after a response head that has been read.
    pub fn of(connection: HttpConnection) -> Self {
        Self { connection, text: String::new(), waiting: VecDeque::new(), ended: false }
    }

    /// The events of a body that has been read.
    pub(super) fn whole(connection: HttpConnection, text: &str) -> Self {
        Self { waiting: events(text).into(), ended: true, ..Self::of(connection) }
    }

    /// Sends a request whose response must be a stream.
    ///
    /// # Errors
    ///
    /// The whole response, if the request is refused.
    pub async fn open(request: &HttpRequest, to: SocketAddr) -> Result<Self, HttpResponse> {
        let mut connection = HttpConnection::open(to).await;
        connection.send(request).await;
        let mut response = connection.head().await;
        if response.status == 200 {
            assert_eq!(response.header("content-type"), Some("text/event-stream"));
            assert_eq!(response.header("x-accel-buffering"), Some("no"));
            if response.header("content-length").is_none() {
                return Ok(Self::of(connection));
            }
            // the stored events of a stream that has ended
            connection.read_body(&mut response).await;
            let text = String::from_utf8(response.body).expect("UTF-8");
            return Ok(Self::whole(connection, &text));
        }
        if response.status == 503 {
            assert_eq!(response.header("retry-after"), Some("1"));
        }
        connection.read_body(&mut response).await;
        Err(response)
    }

    /// The next event; `None` at the end of the stream.
    pub async fn next_event(&mut self) -> Option<Event> {
        within(async {
            loop {
                if let Some(event) = self.waiting.pop_front() {
                    return Some(event);
                }
                if self.ended {
                    return None;
                }
                let Some(chunk) = self.connection.chunk().await else {
                    assert!(self.text.is_empty(), "half an event: {:?}", self.text);
                    self.ended = true;
                    continue;
                };
                self.text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
                let mut line_ends = self.text.rmatch_indices('\n');
                if let Some((end, _)) = line_ends.find(|(at, _)| self.text[..*at].ends_with('\n')) {
                    let rest = self.text.split_off(end + 1);
                    self.waiting.extend(events(&std::mem::replace(&mut self.text, rest)));
                }
            }
        })
        .await
    }

    /// The next message; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.next_event().await?.message() {
                return Some(message);
            }
        }
    }

    /// The next message.
    pub async fn message(&mut self) -> Value {
        self.next().await.expect("the stream has ended")
    }
}
