//! The return types of an event's function: whether a subscription gets the event, and in which form.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::core::{
    arguments::{HandlerResult, poll_now},
    error::{Failure, IntoFailure, ToolError},
    item_output::ItemOutput,
};

/// The form of an event that one subscription gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Nothing,
    /// The emitted payload.
    AsEmitted,
    /// This JSON.
    Json(String),
}

impl From<Seen> for ItemOutput {
    fn from(seen: Seen) -> Self {
        Self::Other(Box::new(seen))
    }
}

/// Types that the function of an event may return.
#[diagnostic::on_unimplemented(
    message = "the function of an event cannot return `{Self}`",
    label = "does not say whether the event is delivered",
    note = "return `bool`, or an `Option` of what this subscriber may see, or a `Result` of these; without a result, every subscriber gets it"
)]
pub trait IntoSeen {
    /// Writes the schema of what is delivered, if that is not the payload.
    const SCHEMA: Option<fn(&mut SchemaGenerator) -> Schema> = None;

    /// Converts the value into the form that the subscription gets.
    ///
    /// # Errors
    /// The function failed.
    fn into_seen(self) -> Result<Seen, ToolError>;
}

impl IntoSeen for () {
    fn into_seen(self) -> Result<Seen, ToolError> {
        Ok(Seen::AsEmitted)
    }
}

impl IntoSeen for bool {
    fn into_seen(self) -> Result<Seen, ToolError> {
        Ok(if self { Seen::AsEmitted } else { Seen::Nothing })
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> IntoSeen for Option<T> {
    const SCHEMA: Option<fn(&mut SchemaGenerator) -> Schema> = Some(SchemaGenerator::subschema_for::<T>);

    fn into_seen(self) -> Result<Seen, ToolError> {
        let Some(value) = self else { return Ok(Seen::Nothing) };
        serde_json::to_string(&value).map(Seen::Json).map_err(ToolError::private)
    }
}

#[diagnostic::do_not_recommend]
impl<T: IntoSeen, E: IntoFailure> IntoSeen for Result<T, E> {
    const SCHEMA: Option<fn(&mut SchemaGenerator) -> Schema> = T::SCHEMA;

    fn into_seen(self) -> Result<Seen, ToolError> {
        self.map_err(E::into_failure)?.into_seen()
    }
}

/// The return types of the function of an event with the payload `P`, which decide what a client gets.
pub trait Delivered<P> {
    /// The type of what the event says.
    type Data;
}

impl<P> Delivered<P> for () {
    type Data = P;
}

impl<P> Delivered<P> for bool {
    type Data = P;
}

impl<P, T> Delivered<P> for Option<T> {
    type Data = T;
}

impl<P, R: Delivered<P>, E> Delivered<P> for Result<R, E> {
    type Data = R::Data;
}

/// How a return type `R` becomes what a subscription gets.
#[allow(missing_debug_implementations)] // a table of function pointers
pub struct EventOutput<R: 'static> {
    convert: fn(R) -> Result<ItemOutput, ToolError>,
    schema: Option<fn(&mut SchemaGenerator) -> Schema>,
}

impl<R: 'static> EventOutput<R> {
    /// Converts what the function returned.
    ///
    /// # Errors
    /// The function failed, or its value has no JSON form.
    pub fn reply(&self, value: R) -> Result<ItemOutput, Failure> {
        Ok((self.convert)(value)?)
    }

    /// The outcome of an async function.
    ///
    /// # Errors
    /// Never fails; the type is that of handlers.
    pub fn pending(&self, future: Box<dyn Future<Output = R> + Send>) -> HandlerResult<ItemOutput> {
        poll_now(future, self.convert)
    }
}

/// The conversion of `R`. A function, so that rustc underlines the whole type if it does not implement the trait.
#[must_use]
pub const fn event_output<R: IntoSeen>() -> EventOutput<R> {
    EventOutput { convert: |value| Ok(value.into_seen()?.into()), schema: R::SCHEMA }
}

/// An [`EventOutput`] without its type.
pub trait AnyEventOutput: Sync {
    /// The schema of what is delivered, if that is not the payload.
    #[doc(hidden)]
    fn schema(&self, generator: &mut SchemaGenerator) -> Option<Schema>;
}

impl<R> AnyEventOutput for EventOutput<R> {
    fn schema(&self, generator: &mut SchemaGenerator) -> Option<Schema> {
        self.schema.map(|schema| schema(generator))
    }
}

impl fmt::Debug for dyn AnyEventOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventOutput")
    }
}
