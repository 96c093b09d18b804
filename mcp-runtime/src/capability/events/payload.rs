//! The payload of an event: a value that is emitted as JSON, decoded once for all subscriptions, and taken by the event's
//! function by reference.

use std::{any::Any, error::Error, fmt, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};

use crate::core::{context::Context, error::Failure};

/// Types that can be the payload of an event.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the payload of an event",
    label = "not a payload",
    note = "put `#[mcp_type]` on it, or derive `serde::Serialize`, `serde::Deserialize` and `schemars::JsonSchema` (1.x)"
)]
pub trait Payload: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static> Payload for T {}

/// Says of the marker of an event that its payload is a `P`.
pub trait EventOf<P> {}

/// A decoded payload.
pub(crate) type AnyValue = Arc<dyn Any + Send + Sync>;

/// The payload of an event, as generated code declares it.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct EventPayload<T> {
    /// What of it does not depend on its type.
    pub functions: PayloadFns,
    /// Without it, the type would not be named.
    cast: fn(&AnyValue) -> Option<&T>,
}

/// The functions of a payload.
#[derive(Debug, Clone, Copy)]
pub struct PayloadFns {
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    pub(super) decode: fn(&str) -> serde_json::Result<AnyValue>,
}

/// The payload of type `T`. A function, so that rustc underlines the whole type if it cannot be one.
#[must_use]
pub const fn event_payload<T: Payload>() -> EventPayload<T> {
    EventPayload {
        functions: PayloadFns {
            schema: SchemaGenerator::subschema_for::<T>,
            decode: |json| Ok(Arc::new(serde_json::from_str::<T>(json)?)),
        },
        cast: |value| value.downcast_ref::<T>(),
    }
}

/// The payload that the function of an event is called with.
pub(super) struct CurrentPayload(pub(super) AnyValue);

impl<T: 'static> EventPayload<T> {
    /// The payload of this call.
    ///
    /// # Errors
    /// The call has none: only its arguments are checked.
    pub fn find<'c>(&self, context: &'c Context) -> Result<&'c T, Failure> {
        let current = context.inner().request.extensions.get::<CurrentPayload>();
        current.and_then(|current| (self.cast)(&current.0)).ok_or_else(NoPayload::failure)
    }
}

/// A function was called without a payload, so that its arguments are checked.
#[derive(Debug)]
pub(super) struct NoPayload;

impl fmt::Display for NoPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the function was called without an event")
    }
}

impl Error for NoPayload {}

impl NoPayload {
    /// The failure of such a call.
    pub(super) fn failure() -> Failure {
        Failure::Private(Box::new(Self))
    }

    /// Whether a function has failed only since it has no payload.
    pub(super) fn is(failure: &Failure) -> bool {
        matches!(failure, Failure::Private(cause) if cause.is::<Self>())
    }
}
