//! One subscription: the subscriber, the event and its arguments, and the position that it has read. Every way of delivery
//! reads events here: those that the event's function lets through, as long as the subscriber has access to it.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "events-webhook")]
use hyper::body::Bytes;
use tokio::time::Instant;

use super::{
    EventResult, Events,
    entry::{EventEntry, EventSubscriber},
    error::{forbidden, unknown_event},
    ring::{EventRing, Occurrence, ReadPosition},
};
use crate::{
    core::{
        client_error::ClientError,
        connection::{AccessError, principal_digest},
        error::Failure,
        jsonrpc::{Object, ProtocolError},
        protocol::Revision,
        server::{Entry as _, Server},
    },
    schema::canonical,
};

/// Events that are looked at in one go, at most.
const MAX_LOOKED_AT: usize = 256;
/// The longest time of that.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// Bytes of payloads in one go.
pub(super) const MAX_BATCH_BYTES: usize = 1 << 20;

/// A subscription, while something reads it.
pub(crate) struct EventSubscription {
    pub(super) subscriber: EventSubscriber,
    name: Box<str>,
    /// As the function gets them: JSON of an object.
    pub(super) given: Arc<str>,
    /// The data that its cursors are bound to.
    binding: Box<[u8]>,
    /// Where it reads on.
    pub(super) position: ReadPosition,
    ring: Arc<EventRing>,
}

/// An event, as a subscription gets it.
pub(crate) struct SeenEvent {
    occurrence: Arc<Occurrence>,
    /// JSON, if it is not what was emitted.
    seen: Option<String>,
    /// The position after it.
    pub(super) position: ReadPosition,
}

/// The JSON of what was emitted.
struct EmittedData(Arc<Occurrence>);

impl AsRef<[u8]> for EmittedData {
    fn as_ref(&self) -> &[u8] {
        self.0.data.as_bytes()
    }
}

/// The events that were read for a subscription.
#[derive(Default)]
pub(crate) struct SeenEvents {
    pub(crate) events: Vec<SeenEvent>,
    /// Whether it has missed events.
    pub(crate) truncated: bool,
    /// Where it goes on after those.
    pub(super) resumed: Option<ReadPosition>,
    /// Whether there may be more.
    pub(crate) has_more: bool,
    /// The errors for the client, of events for which the function has failed.
    pub(crate) failures: Vec<ProtocolError>,
}

impl EventSubscription {
    /// A subscription from now on, or from a cursor of the same subscription; and whether it has a gap there.
    pub(super) fn open(
        server: &Server,
        entry: &EventEntry,
        subscriber: EventSubscriber,
        arguments: &str,
        given: Arc<str>,
        cursor: Option<&str>,
    ) -> (Self, bool) {
        let binding = binding(server, entry.name(), arguments, &subscriber);
        let opened = cursor.map(|cursor| {
            let opened = server.cursors().open(cursor.as_bytes(), &binding);
            opened.and_then(|opened| ReadPosition::from_bytes(&opened.plain))
        });
        let name: Box<str> = entry.name().into();
        let (position, truncated) = match opened {
            None => (entry.ring.end(), false),
            Some(Some(position)) => (position, false),
            // of keys that are gone, or of another subscription: where it was is not known
            Some(None) => (entry.ring.end(), true),
        };
        let ring = entry.ring.clone();
        (Self { subscriber, name, given, binding: binding.into(), position, ring }, truncated)
    }

    /// The cursor of a position.
    ///
    /// # Errors
    /// It cannot be sealed.
    pub(super) fn cursor(&self, server: &Server, position: &ReadPosition) -> Result<String, ProtocolError> {
        let sealed = server.cursors().seal(&position.to_bytes(), &self.binding);
        sealed.map_err(|_| ProtocolError::internal("a cursor cannot be sealed"))
    }

    /// The event that it is of, as the server has it now.
    ///
    /// # Errors
    /// The subscriber has lost access to it, or it does not exist any more.
    pub(super) fn entry(&self, server: &Server) -> Result<Arc<EventEntry>, ProtocolError> {
        find(server, &self.name, &self.subscriber)
    }

    /// Reads on: at most `most` events that it gets, from the first on that is not older than `max_age`.
    ///
    /// # Errors
    /// The subscription has ended; the error says why.
    pub(crate) async fn read(
        &mut self,
        server: &Server,
        max_age: Option<Duration>,
        most: usize,
    ) -> Result<SeenEvents, ProtocolError> {
        let entry = self.entry(server)?;
        let read = entry.ring.read(&self.position, max_age, MAX_LOOKED_AT);
        let mut seen =
            SeenEvents { truncated: read.truncated, has_more: read.has_more, ..Default::default() };
        let (started, mut bytes) = (Instant::now(), 0);
        let mut left = read.events.len();
        if read.truncated {
            seen.resumed = Some(entry.ring.at(read.events.first().map_or(read.end, |(n, _)| *n)));
        }
        if read.events.is_empty() {
            self.position = entry.ring.at(read.end);
        }
        for (n, occurrence) in read.events {
            let is_full = seen.events.len() >= most || bytes > MAX_BATCH_BYTES;
            if is_full || started.elapsed() > LONGEST_LOOK {
                seen.has_more = true;
                break;
            }
            left -= 1;
            let position = entry.ring.at(n + 1);
            let looked = entry.look(server, &self.subscriber, &self.given, &occurrence).await;
            self.position = position;
            let data = match looked {
                Ok(EventResult::Nothing) => continue,
                Ok(EventResult::AsEmitted) => None,
                Ok(EventResult::Json(json)) => Some(json),
                Err(failure) => {
                    seen.failures.push(reported(server, &self.name, failure));
                    seen.truncated = true;
                    continue;
                }
            };
            bytes += data.as_deref().unwrap_or(&occurrence.data).len();
            seen.events.push(SeenEvent { occurrence, seen: data, position });
        }
        seen.has_more |= left > 0;
        Ok(seen)
    }

    /// Waits until there may be something to read.
    pub(super) async fn wait(&self) {
        self.ring.wait(&self.position).await;
    }
}

/// The event with a name, as the server has it now.
///
/// # Errors
/// The subscriber has lost access to it, or it does not exist any more.
fn find(server: &Server, name: &str, subscriber: &EventSubscriber) -> Result<Arc<EventEntry>, ProtocolError> {
    if subscriber.caller.as_ref().is_some_and(|caller| caller.has_expired()) {
        return Err(forbidden("the authentication of the subscriber has expired"));
    }
    let registry = server.registry();
    let Some(events) = registry.capabilities.get::<Events>() else {
        return Err(unknown_event(name, None));
    };
    match events.catalog.find(name, subscriber.access()) {
        Ok(entry) => Ok(entry.clone()),
        Err(AccessError::Unknown) if events.catalog.iter().any(|event| event.name() == name) => {
            Err(forbidden("the subscriber has no access any more"))
        }
        Err(AccessError::Unknown) => Err(unknown_event(name, None)),
        Err(AccessError::MissingScopes(_)) => Err(forbidden("the subscriber lacks scopes")),
    }
}

/// The error for the client, of an event for which the function has failed; the log has the cause.
pub(super) fn reported(server: &Server, name: &str, failure: Failure) -> ProtocolError {
    let subject = server.error_context("event", name);
    match failure.into_client_error(subject, Revision::LATEST) {
        ClientError::Arguments(text) | ClientError::Message(text, _) => ProtocolError::internal(text),
        ClientError::NotFound => ProtocolError::internal("not found"),
        ClientError::Protocol(error) => error,
    }
}

impl EventSubscription {
    /// Moves on to the first event that is not older than `max_age`; whether events were skipped, or have gone.
    ///
    /// # Errors
    /// The subscriber has no access.
    pub(super) fn skip_older(
        &mut self,
        server: &Server,
        max_age: Option<Duration>,
    ) -> Result<bool, ProtocolError> {
        let entry = self.entry(server)?;
        let read = entry.ring.read(&self.position, max_age, 0);
        self.position = entry.ring.at(read.end);
        Ok(read.truncated)
    }
}

impl SeenEvent {
    /// `eventId` on the wire.
    pub(super) fn id(&self) -> &str {
        &self.occurrence.id
    }

    /// The parts of `EventOccurrence` on the wire, of which the data is in the memory of the event if it is what was
    /// emitted, however many subscriptions get it.
    #[cfg(feature = "events-webhook")]
    pub(super) fn parts(&self, name: &str, cursor: &str) -> Vec<Bytes> {
        let Occurrence { id, timestamp, .. } = &*self.occurrence;
        let mut head = Vec::with_capacity(512);
        let mut object = Object::new(&mut head);
        object.str("eventId", id).str("name", name).str("timestamp", timestamp).str("cursor", cursor);
        object.raw("data", "");
        let data = match &self.seen {
            Some(seen) => seen.clone().into(),
            None => Bytes::from_owner(EmittedData(self.occurrence.clone())),
        };
        vec![head.into(), data, Bytes::from_static(b"}")]
    }

    /// Writes the members of `EventOccurrence` on the wire.
    pub(crate) fn write(&self, object: &mut Object<'_>, name: &str, cursor: Option<&str>) {
        let Occurrence { id, timestamp, data, .. } = &*self.occurrence;
        object.str("eventId", id).str("name", name).str("timestamp", timestamp);
        object.raw("data", self.seen.as_deref().unwrap_or(data)).opt_str("cursor", cursor);
    }
}

/// The identity of a subscription besides its way of delivery: the server, the event, the arguments and the subscriber.
fn binding(server: &Server, name: &str, arguments: &str, subscriber: &EventSubscriber) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    // lengths keep adjacent parts apart
    let mut push_part = |part: &[u8]| {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    };
    push_part(b"events/cursor");
    push_part(server.name().as_bytes());
    push_part(name.as_bytes());
    push_part(canonical(arguments).as_bytes());
    match principal_digest(subscriber.caller.as_deref()) {
        Some(caller) => push_part(caller.as_bytes()),
        None if subscriber.access_rules.is_none() => push_part(b"*"),
        None => {}
    }
    bytes
}

#[cfg(all(test, feature = "events-webhook"))]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn messages_of_what_was_emitted_share_its_data() {
        let occurrence = Arc::new(Occurrence::new("1".into(), r#"{"n":1}"#.into(), None));
        let position = ReadPosition::from_bytes(&[0; 24]).unwrap();
        let parts = |seen: Option<&str>, cursor| {
            let seen = seen.map(str::to_owned);
            SeenEvent { occurrence: occurrence.clone(), seen, position }.parts("note", cursor)
        };
        let [one, other, own] = [parts(None, "a"), parts(None, "b"), parts(Some(r#"{"n":2}"#), "c")];
        assert_eq!(one[1].as_ptr(), other[1].as_ptr());
        for (parts, n, cursor) in [(one, 1, "a"), (other, 1, "b"), (own, 2, "c")] {
            let message: Value = serde_json::from_slice(&parts.concat()).unwrap();
            assert_eq!((&message["data"]["n"], &message["cursor"]), (&n.into(), &cursor.into()));
            assert_eq!((&message["eventId"], &message["name"]), (&"1".into(), &"note".into()));
        }
    }
}
