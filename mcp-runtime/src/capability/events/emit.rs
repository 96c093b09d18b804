//! Emitting: from code that has a server's handle, or from a function of the server.

use std::{fmt, marker::PhantomData, sync::Arc};

use super::{
    Event, EventDescriptor, EventOf, Events, Payload,
    ring::{EventRings, Occurrence, Recipients},
    shared_log::Appending,
};
use crate::core::{
    arguments::BoxFuture,
    connection::Principal,
    context::Context,
    crypto::random_id,
    jsonrpc::legible_json,
    protocol::ItemList,
    server::{Error, Result, Server, ServerHandle, WeakServer},
};

/// Bytes of the id of an event, at most.
const MAX_ID: usize = 256;

/// Whether a text can be `eventId` on the wire.
pub(super) fn is_event_id(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic())
}

/// The payload of the event `E`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the payload of the event `{E}`",
    label = "another type than that of `#[mcp(payload)]`",
    note = "emit a reference to a value of the type that the function with `#[mcp_event]` takes as its payload"
)]
pub trait PayloadOf<E> {
    #[doc(hidden)]
    const EVENT: &'static EventDescriptor;

    #[doc(hidden)]
    fn to_json(&self) -> serde_json::Result<String>;
}

#[diagnostic::do_not_recommend]
impl<E: Event + EventOf<P>, P: Payload> PayloadOf<E> for P {
    const EVENT: &'static EventDescriptor = E::DESCRIPTOR;

    fn to_json(&self) -> serde_json::Result<String> {
        legible_json(self)
    }
}

/// An event that is emitted when this is awaited, which returns its id; see [`ServerHandle::emit`].
#[must_use = "nothing is emitted before `.await`"]
pub struct Emit<E> {
    server: Option<Server>,
    data: Result<String>,
    id: Option<String>,
    recipients: Option<Recipients>,
    descriptor: &'static EventDescriptor,
    event: PhantomData<fn() -> E>,
}

impl<E> fmt::Debug for Emit<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emit").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<E> Emit<E> {
    fn new<P: PayloadOf<E>>(server: Option<Server>, payload: &P) -> Self {
        let name = P::EVENT.function.item.name;
        let data = payload.to_json().map_err(|error| {
            Error::from(format!("the payload of `{name}` has no JSON form")).caused_by(error)
        });
        Self { server, data, id: None, recipients: None, descriptor: P::EVENT, event: PhantomData }
    }

    /// Sets `eventId` on the wire: that of the source that the event is from, by which clients recognize an event that
    /// they get twice. Without it, the event gets a new id. Up to 256 visible characters of ASCII.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Delivers the event only to subscribers for whose principal `concerns` returns `true`, such as those of a tenant; of
    /// these the function of the event decides.
    ///
    /// It is asked for each subscriber, so it must be fast; if it panics, that subscriber does not get the event. Anonymous
    /// subscribers do not get it. A server that does not identify its callers, such as one on stdio, has one client, which
    /// does.
    ///
    /// Where replicas [share a store](crate::ServerBuilder::shared), it is an error: what a function of this process decides
    /// is not known to the others. There the function of the event decides, by its payload.
    pub fn to(mut self, concerns: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Self {
        self.recipients = Some(Arc::new(concerns));
        self
    }

    /// The id, and what is left to do.
    fn run(self) -> Result<(String, Option<Appending>)> {
        let Self { server, data, id, recipients, descriptor, .. } = self;
        let name = descriptor.function.item.name;
        let data = data?;
        let id = match id {
            None => format!(
                "evt_{}",
                random_id().map_err(
                    |error| Error::from("the operating system provides no randomness").caused_by(error)
                )?
            ),
            Some(id) if is_event_id(&id) => id,
            Some(_) => {
                return Err(Error::from(format!(
                    "the id of the event `{name}` is not 1 to {MAX_ID} visible characters of ASCII"
                )));
            }
        };
        // without a server, nothing can subscribe
        let Some(server) = server else { return Ok((id, None)) };
        let event = Occurrence::new(id.clone(), data, recipients);
        let appending = emit(server, descriptor.key(), name, event)?;
        Ok((id, appending))
    }
}

/// The part of emitting that is compiled once.
fn emit(server: Server, key: usize, name: &'static str, occurrence: Occurrence) -> Result<Option<Appending>> {
    let registry = server.registry();
    let is_offered = registry
        .capabilities
        .get::<Events>()
        .is_some_and(|events| events.catalog.iter().any(|event| event.key == key));
    let ring = registry.capabilities.get::<EventRings>().and_then(|rings| rings.find(key));
    let Some(ring) = ring.filter(|_| is_offered) else {
        return Err(Error::from(format!(
            "the server does not offer the event `{name}`\nadd `.discover()`, or `.add(event::of::<..>())`, to its builder"
        )));
    };
    let (bytes, most) = (occurrence.data.len(), server.event_limits().max_payload);
    if bytes > most {
        return Err(Error::from(format!(
            "the payload of the event `{name}` has {bytes} bytes, and at most {most} are emitted\n\
             send less, and let clients ask for the rest, or raise `.limits(|limits| limits.events(|events| events.max_payload(..)))`"
        )));
    }
    if !occurrence.data.starts_with('{') {
        return Err(Error::from(format!("the payload of the event `{name}` is not a JSON object")));
    }
    drop(registry);
    Appending::of(server, ring, name, occurrence)
}

impl<E> IntoFuture for Emit<E> {
    type Output = Result<String>;
    type IntoFuture = BoxFuture<Result<String>>;

    fn into_future(self) -> Self::IntoFuture {
        let emitted = self.run();
        Box::pin(async move {
            let (id, appending) = emitted?;
            if let Some(appending) = appending {
                appending.run().await?;
            }
            Ok(id)
        })
    }
}

impl ServerHandle {
    /// Emits an event, which clients get that subscribe to it (preview: see [`event`](crate::event)).
    ///
    /// It returns `eventId` on the wire once the event is kept for the subscribers, and does not wait for them: those of all
    /// replicas, where these [share a store](crate::ServerBuilder::shared). Once the server is dropped, it does nothing.
    ///
    /// ```
    /// use mcp_runtime::{ServerHandle, prelude::*};
    ///
    /// #[mcp_type]
    /// struct Incident {
    ///     title: String,
    ///     severity: u8,
    /// }
    ///
    /// /// A new incident was opened.
    /// #[mcp_event(name = "incident.created")]
    /// fn incident_created(#[mcp(payload)] incident: &Incident, #[mcp(default = 3)] severity: u8) -> bool {
    ///     incident.severity <= severity
    /// }
    ///
    /// async fn open(handle: &ServerHandle, title: &str) -> mcp_runtime::Result<()> {
    ///     let incident = Incident { title: title.to_owned(), severity: 1 };
    ///     handle.emit::<incident_created>(&incident).id("INC-1").await?;
    ///     Ok(())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> mcp_runtime::Result<()> {
    /// # open(&ServerHandle::for_test(), "it burns").await
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it is awaited: the server does not offer the event; the payload is too large, or has no JSON form; or the shared
    /// store has not taken the event. A store that fails may have taken it all the same: emit it again with the same
    /// [`id`](Emit::id), by which clients recognize an event that they get twice.
    pub fn emit<E>(&self, payload: &impl PayloadOf<E>) -> Emit<E> {
        Emit::new(self.server(), payload)
    }

    /// Notifies clients that the list of events has changed for a reason that the server does not see: on the wire,
    /// `notifications/events/list_changed` (preview).
    pub fn events_changed(&self) {
        self.publish(ItemList::Events);
    }
}

impl Context {
    /// Emits an event from a function: see [`ServerHandle::emit`](crate::ServerHandle::emit).
    ///
    /// # Errors
    /// As that.
    pub fn emit<E>(&self, payload: &impl PayloadOf<E>) -> Emit<E> {
        Emit::new(self.find::<WeakServer>().and_then(WeakServer::upgrade), payload)
    }
}
