//! Events to which clients subscribe (preview): how an attribute describes one, what it may return, its entry in
//! `events/list`, the last events of each, and how subscriptions read them.
//!
//! **Preview**: the specification of events ([SEP-3415](https://modelcontextprotocol.io/seps/3415-events-extension)) is new,
//! and what clients do with it still changes, so this module may change in any release. See
//! [the guide](crate::guide::events).

mod call;
mod capability;
mod emit;
mod entry;
mod error;
mod options;
mod output;
mod payload;
mod poll;
mod ring;
#[cfg_attr(not(feature = "shared"), path = "alone.rs")]
mod shared_log;
mod spec;
mod stream;
mod subscription;
#[cfg(feature = "events-webhook")]
mod webhook;

use capability::Events;
pub use emit::Emit;
pub(crate) use emit::PayloadOf;
pub use options::EventLimits;
#[doc(hidden)]
pub use output::{Delivered, EventResult};
use payload::Payload;
#[doc(hidden)]
pub use payload::{EventOf, EventPayload, PayloadFns, event_payload};
#[doc(hidden)]
pub use spec::{Delivery, EventDescriptor};

use crate::core::server::{Addition, AnnotatedItem, IntoAddition};

/// The marker of an annotated event; name it in `emit::<name>(..)` and `event::of::<name>()`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "not annotated with `#[mcp_event]`",
    note = "put `#[mcp_event]` on the function, and import it by name"
)]
pub trait Event: 'static {
    #[doc(hidden)]
    const DESCRIPTOR: &'static EventDescriptor;
}

/// An annotated event, for [`ServerBuilder::add`](crate::ServerBuilder::add); `.discover()` finds it by itself.
///
/// ```
/// use mcp_runtime::{event, prelude::*};
///
/// #[mcp_type]
/// struct Deploy {
///     version: String,
/// }
///
/// /// A version was deployed.
/// #[mcp_event]
/// fn deployed(#[mcp(payload)] _deploy: &Deploy) {}
///
/// # fn main() -> mcp_runtime::Result<()> {
/// let server = mcp_runtime::server!().add(event::of::<deployed>()).build()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn of<E: Event>() -> impl IntoAddition {
    AnnotatedEvent(AnnotatedItem::event(E::DESCRIPTOR))
}

struct AnnotatedEvent(AnnotatedItem);

impl IntoAddition for AnnotatedEvent {
    fn into_addition(self) -> Addition {
        Addition::of(move |builder| builder.push_named(self.0))
    }
}
