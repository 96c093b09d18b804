//! The return types of an event's function: whether a subscription gets the event, and in which form.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::core::{
    error::ToolError,
    item_output::{IntoOutput, ItemOutput},
    jsonrpc::legible_json,
};

/// The form of an event that one subscription gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventResult {
    /// Nothing.
    Nothing,
    /// The emitted payload.
    AsEmitted,
    /// This JSON.
    Json(String),
}

impl From<EventResult> for ItemOutput {
    fn from(result: EventResult) -> Self {
        Self::Other(Box::new(result))
    }
}

impl IntoOutput<EventResult> for () {
    fn into_output(self) -> Result<EventResult, ToolError> {
        Ok(EventResult::AsEmitted)
    }
}

impl IntoOutput<EventResult> for bool {
    fn into_output(self) -> Result<EventResult, ToolError> {
        Ok(if self { EventResult::AsEmitted } else { EventResult::Nothing })
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> IntoOutput<EventResult> for Option<T> {
    fn into_output(self) -> Result<EventResult, ToolError> {
        let Some(value) = self else { return Ok(EventResult::Nothing) };
        legible_json(&value).map(EventResult::Json).map_err(ToolError::private)
    }

    fn schema(generator: &mut SchemaGenerator, _: bool) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
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
