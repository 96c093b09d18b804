//! The state of a subscription: its cursor, and which occurrences it has seen, in constant memory.

use std::hash::{BuildHasher as _, RandomState};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;

use super::{EventHandler, EventOccurrence};
use crate::{
    client::{
        Error,
        receive::handlers::{Listener, call_and_contain, call_listener},
    },
    core::{recent_map::RecentMap, sync::Mutex},
};

/// The last occurrences are recognized if they come again: half as many at least.
const MAX_SEEN: usize = 2_000;
/// The longest cursor that is kept, in bytes.
const MAX_CURSOR: usize = 64 << 10;

/// Receives the events of one subscription.
pub(super) struct EventReader {
    pub(super) name: String,
    handler: EventHandler,
    on_gap: Option<Listener<()>>,
    state: Mutex<ReaderState>,
    /// Is notified of everything that comes.
    pub(super) activity: Notify,
}

struct ReaderState {
    cursor: Option<String>,
    hasher: RandomState,
    /// The ids of the last occurrences: hashes, since a server decides how long ids are.
    seen: RecentMap<u64, ()>,
    /// Whether the server has confirmed the stream.
    is_active: bool,
    /// Whether events may have been missed, which the program hears once others can come again: it reads again then.
    has_missed: bool,
    terminated: Option<Error>,
}

impl ReaderState {
    /// Whether an occurrence with this id came before; from now on it has.
    fn has_seen(&mut self, id: &str) -> bool {
        let hash = self.hasher.hash_one(id);
        let has_seen = self.seen.get(&hash).is_some();
        if !has_seen {
            drop(self.seen.trim());
            self.seen.insert(hash, ());
        }
        has_seen
    }
}

impl EventReader {
    pub(super) fn new(
        name: String,
        handler: EventHandler,
        on_gap: Option<Listener<()>>,
        cursor: Option<String>,
    ) -> Self {
        let state = ReaderState {
            cursor,
            hasher: RandomState::new(),
            seen: RecentMap::new(MAX_SEEN),
            is_active: false,
            has_missed: false,
            terminated: None,
        };
        let state = Mutex::new(state);
        Self { name, handler, on_gap, state, activity: Notify::new() }
    }

    pub(super) fn cursor(&self) -> Option<String> {
        self.state.lock().cursor.clone()
    }

    /// Keeps a position that the server gave: everything before it was delivered.
    pub(super) fn advance(&self, cursor: Option<&Value>) {
        match cursor {
            Some(Value::String(cursor)) if cursor.len() > MAX_CURSOR => {
                tracing::warn!(event = %self.name, "a cursor of the server is ignored: it is too long");
            }
            Some(Value::String(cursor)) => self.state.lock().cursor = Some(cursor.clone()),
            // the server cannot send events again; an absent cursor is the same as `null`
            None | Some(Value::Null) => self.state.lock().cursor = None,
            Some(_) => {}
        }
    }

    /// Tells the program that events may be missing.
    pub(super) fn gap(&self) {
        tracing::debug!(event = %self.name, "events may have been missed");
        if let Some(on_gap) = &self.on_gap {
            call_listener(on_gap, ());
        }
    }

    /// Events may be missed until the server delivers again.
    pub(super) fn miss(&self) {
        self.state.lock().has_missed = true;
    }

    /// The server delivers.
    pub(super) fn confirm(&self) {
        let mut state = self.state.lock();
        state.is_active = true;
        let has_missed = std::mem::take(&mut state.has_missed);
        drop(state);
        if has_missed {
            self.gap();
        }
    }

    /// Begins to wait for the confirmation of a stream.
    pub(super) fn begin_stream(&self) {
        let mut state = self.state.lock();
        state.is_active = false;
    }

    pub(super) fn is_active(&self) -> bool {
        self.state.lock().is_active
    }

    /// Why the server has ended the subscription, if it has.
    pub(super) fn terminated(&self) -> Option<Error> {
        self.state.lock().terminated.clone()
    }

    /// Takes a notification of the stream: `kind` is what follows `notifications/events/`.
    pub(super) fn notified(&self, kind: &str, params: &Value) {
        if self.terminated().is_some() {
            return;
        }
        match kind {
            "active" => {
                self.advance(params.get("cursor"));
                if params.get("truncated") == Some(&Value::Bool(true)) {
                    self.miss();
                }
            }
            "event" => {
                self.deliver(params);
                self.advance(params.get("cursor"));
            }
            "heartbeat" => self.advance(params.get("cursor")),
            "error" => {
                let error = params.get("error").map(Value::to_string).unwrap_or_default();
                let error: String = error.chars().take(500).collect();
                tracing::debug!(event = %self.name, ?error, "an event could not be delivered by the server");
            }
            "terminated" => {
                let error = Error::of_event(params.get("error"));
                self.state.lock().terminated = Some(error);
            }
            _ => return,
        }
        self.confirm();
        self.activity.notify_one();
    }

    /// Passes an occurrence on to the program, unless it has had it.
    pub(super) fn deliver(&self, occurrence: &Value) {
        let occurrence = EventOccurrence::deserialize(occurrence).ok();
        let of_this = occurrence.filter(|event| event.data.is_object() && event.name == self.name);
        let Some(occurrence) = of_this else {
            tracing::warn!(event = %self.name, "an event of the server is left out: it is malformed");
            return self.gap();
        };
        if self.state.lock().has_seen(&occurrence.id) {
            return;
        }
        if call_and_contain(&*self.handler, occurrence) == Some(false) {
            self.gap();
        }
    }
}

impl Error {
    /// Why a server has ended a subscription.
    fn of_event(error: Option<&Value>) -> Self {
        Self::Protocol {
            code: error.and_then(|error| error.get("code")?.as_i64()).unwrap_or_default(),
            message: error
                .and_then(|error| error.get("message")?.as_str())
                .unwrap_or("the server has ended the subscription")
                .to_owned(),
            data: error.and_then(|error| error.get("data")).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn reader() -> (Arc<EventReader>, Arc<Mutex<Vec<String>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, gaps) = (seen.clone(), seen.clone());
        let handler: EventHandler = Arc::new(move |event: EventOccurrence| {
            assert_ne!(event.id, "panics", "as the test wants it");
            kept.lock().push(event.id);
            true
        });
        let on_gap: Listener<()> = Arc::new(move |()| gaps.lock().push("gap".to_owned()));
        (Arc::new(EventReader::new("a".into(), handler, Some(on_gap), None)), seen)
    }

    fn occurrence(id: &str, cursor: &Value) -> Value {
        json!({ "eventId": id, "name": "a", "timestamp": "2026-11-23T00:00:00Z", "data": {}, "cursor": cursor })
    }

    #[test]
    fn an_occurrence_is_delivered_once_and_its_cursor_is_kept() {
        let (reader, seen) = reader();
        for (id, cursor) in [("1", "c1"), ("2", "c2"), ("1", "c3")] {
            reader.notified("event", &occurrence(id, &cursor.into()));
        }
        assert_eq!(*seen.lock(), ["1", "2"]);
        assert_eq!(reader.cursor().as_deref(), Some("c3"));
        reader.notified("heartbeat", &json!({ "cursor": "c4" }));
        assert_eq!(reader.cursor().as_deref(), Some("c4"));
        reader.notified("event", &occurrence("3", &Value::Null));
        assert_eq!(reader.cursor(), None, "the server cannot send events again");
    }

    #[test]
    fn a_cursor_that_is_absent_is_the_same_as_null() {
        let mut absent = occurrence("1", &Value::Null);
        absent.as_object_mut().expect("an object").remove("cursor");
        for (kind, params) in [("active", json!({})), ("event", absent), ("heartbeat", json!({}))] {
            let (reader, _) = reader();
            reader.advance(Some(&"c1".into()));
            reader.notified(kind, &params);
            assert_eq!(reader.cursor(), None, "{kind}");
        }
        let (reader, _) = reader();
        reader.advance(Some(&"c1".into()));
        reader.advance(Some(&json!(1)));
        assert_eq!(reader.cursor().as_deref(), Some("c1"), "what is not a cursor is ignored");
    }

    #[test]
    fn what_is_kept_of_ids_and_cursors_is_bounded() {
        let (reader, seen) = reader();
        for n in 0..3 * MAX_SEEN {
            reader.notified("event", &occurrence(&n.to_string(), &"x".repeat(MAX_CURSOR + n % 2).into()));
        }
        assert_eq!(seen.lock().len(), 3 * MAX_SEEN);
        let state = reader.state.lock();
        assert!((MAX_SEEN / 2..=MAX_SEEN).contains(&state.seen.iter().count()));
        assert_eq!(state.cursor.as_ref().map(String::len), Some(MAX_CURSOR));
    }

    #[test]
    fn what_is_malformed_or_of_another_event_is_a_gap() {
        let (reader, seen) = reader();
        for wrong in [
            json!({}),
            json!({ "eventId": 1, "name": "a", "timestamp": "", "data": {} }),
            json!({ "eventId": "1", "name": "b", "timestamp": "", "data": {} }),
            json!({ "eventId": "1", "name": "a", "timestamp": "", "data": [] }),
        ] {
            reader.notified("event", &wrong);
        }
        assert_eq!(*seen.lock(), ["gap"; 4]);
    }

    #[test]
    fn a_function_that_panics_does_not_end_the_subscription_and_termination_does() {
        let (reader, seen) = reader();
        reader.notified("event", &occurrence("panics", &"c1".into()));
        reader.notified("event", &occurrence("2", &"c2".into()));
        reader.notified("terminated", &json!({ "error": { "code": -32012, "message": "no access" } }));
        reader.notified("event", &occurrence("3", &"c3".into()));
        assert_eq!(*seen.lock(), ["2"]);
        assert!(matches!(reader.terminated(), Some(Error::Protocol { code: -32012, .. })));
    }
}
