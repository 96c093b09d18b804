//! Subscriptions to events that are annotated functions: what they say has the type that the function delivers.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{EventOccurrence, PendingSubscription};
use crate::{
    capability::events::{Delivered, Event, EventOf},
    client::requests::typed_item::{TypedItem, TypedSignature, check},
    core::item::Signature,
};

impl<T> TypedItem<T> {
    /// Subscribes to an event (preview), as [`Client::on_event`](crate::client::Client::on_event) does: `f` gets what the event
    /// says, of the type that its function delivers. The function must not block. Events of another type are skipped, with a line in the log, and are a
    /// [gap](PendingSubscription::on_gap).
    ///
    /// ```no_run
    /// use mcp_runtime::{client::Client, prelude::*};
    ///
    /// #[mcp_type]
    /// struct Incident {
    ///     title: String,
    ///     severity: u8,
    /// }
    ///
    /// /// A new incident was opened.
    /// #[mcp_event(name = "incident.created")]
    /// fn incident_created(#[mcp(payload)] incident: &Incident, severity: u8) -> bool {
    ///     incident.severity <= severity
    /// }
    ///
    /// # async fn example(client: Client) -> Result<(), mcp_runtime::client::Error> {
    /// let created = client.typed::<incident_created>();
    /// let subscription = created.on((2,), |incident: Incident| println!("{}", incident.title)).await?;
    /// # drop(subscription);
    /// # Ok(())
    /// # }
    /// # fn main() {}
    /// ```
    ///
    /// Another type than the event's does not compile:
    ///
    /// ```compile_fail,E0631
    /// # use mcp_runtime::{client::Client, prelude::*};
    /// # #[mcp_type]
    /// # struct Incident {
    /// #     title: String,
    /// # }
    /// # /// A new incident was opened.
    /// # #[mcp_event]
    /// # fn incident_created(#[mcp(payload)] _incident: &Incident) {}
    /// async fn subscribe(client: Client) {
    ///     let _ = client.typed::<incident_created>().on((), |incident: String| drop(incident)).await;
    /// }
    /// # fn main() {}
    /// ```
    pub fn on<S, P>(
        &self,
        arguments: S::Arguments,
        f: impl Fn(<S::Output as Delivered<P>>::Data) + Send + Sync + 'static,
    ) -> PendingSubscription
    where
        T: Event + EventOf<P> + Signature<S>,
        S: TypedSignature,
        S::Output: Delivered<P>,
        <S::Output as Delivered<P>>::Data: DeserializeOwned,
    {
        let item = &T::DESCRIPTOR.function.item;
        let name = self.name_or(item.name);
        let arguments = S::write(arguments, item.args).and_then(|arguments| check(&name, item, arguments));
        let listener = move |event: EventOccurrence| match serde_json::from_value(event.data) {
            Ok(data) => {
                f(data);
                true
            }
            Err(error) => {
                tracing::warn!(event = event.name, id = event.id, %error, "an event is not of its type");
                false
            }
        };
        self.client.subscribe_to(name, arguments.map(|(members, _)| members.into()), Arc::new(listener))
    }
}
