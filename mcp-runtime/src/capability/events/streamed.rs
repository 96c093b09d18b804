//! Events of a source with its own positions: the return type of a function that opens such a source for a subscription.
//! Positions are the source's; clients see them sealed in cursors.

use std::{
    fmt,
    marker::PhantomData,
    pin::Pin,
    str::FromStr,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::SystemTime,
};

use futures_core::Stream;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;

use super::output::{Delivered, EventOutput};
use crate::core::{
    context::Context,
    error::{Failure, IntoFailure, ToolError},
    item_output::ItemOutput,
};

/// Bytes of a position, at most: it is in every cursor.
pub(super) const MAX_POSITION: usize = 1024;

/// Where a subscription is in a source: what the source itself calls it, such as a number or a time.
///
/// The function of an event gets the position up to which the subscriber has the events, and its
/// [stream](EventStream) says of each event which position is after it. Clients get positions inside of sealed cursors,
/// and cannot read or make them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position(pub(super) Arc<str>);

impl Position {
    /// A position with this text, of up to 1024 bytes.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The position as what it was made from, such as a number.
    ///
    /// # Errors
    /// It is something else: the function used other positions before.
    pub fn parse<T: FromStr>(&self) -> Result<T, ToolError> {
        self.0
            .parse()
            .map_err(|_| ToolError::private(format!("`{}` is not a position of this source", self.0)))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Position {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Position {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

macro_rules! from_numbers {
    ($($number:ty)*) => {$(
        impl From<$number> for Position {
            fn from(number: $number) -> Self {
                Self(number.to_string().into())
            }
        }
    )*};
}
from_numbers!(u32 u64 i64 usize);

/// One event of an [`EventStream`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct StreamedEvent<T> {
    data: T,
    position: Option<Position>,
    id: Option<String>,
    time: Option<SystemTime>,
}

impl<T> StreamedEvent<T> {
    /// An event that says this.
    pub fn new(data: T) -> Self {
        Self { data, position: None, id: None, time: None }
    }

    /// Sets the position after it, from which the source goes on without it.
    pub fn position(mut self, position: impl Into<Position>) -> Self {
        self.position = Some(position.into());
        self
    }

    /// Sets `eventId` on the wire, up to 256 visible characters of ASCII. Without it, the id is made of the position and of
    /// the payload, so that it is the same if the event is read again.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets when it happened: now, if this is not called.
    pub fn time(mut self, time: SystemTime) -> Self {
        self.time = Some(time);
        self
    }
}

/// Items of a stream that can become an [`EventStream`].
#[diagnostic::on_unimplemented(
    message = "a stream of `{Self}` cannot be a stream of events of `{T}`",
    label = "not an event",
    note = "let the stream have `(position, value)`, or `StreamedEvent<T>`, or a `Result` of these: `stream.map(|mail| (mail.uid, mail))`"
)]
pub trait IntoStreamed<T> {
    #[doc(hidden)]
    fn into_streamed(self) -> Result<StreamedEvent<T>, ToolError>;
}

impl<T> IntoStreamed<T> for StreamedEvent<T> {
    fn into_streamed(self) -> Result<Self, ToolError> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T, P: Into<Position>> IntoStreamed<T> for (P, T) {
    fn into_streamed(self) -> Result<StreamedEvent<T>, ToolError> {
        Ok(StreamedEvent::new(self.1).position(self.0))
    }
}

#[diagnostic::do_not_recommend]
impl<T, I: IntoStreamed<T>, E: IntoFailure> IntoStreamed<T> for Result<I, E> {
    fn into_streamed(self) -> Result<StreamedEvent<T>, ToolError> {
        self.map_err(E::into_failure)?.into_streamed()
    }
}

/// An event of a stream, without its type.
pub(super) struct RawEvent {
    pub(super) json: String,
    pub(super) position: Option<Position>,
    pub(super) id: Option<String>,
    pub(super) time: Option<SystemTime>,
}

/// The stream of events that a source yields.
pub(super) type RawStream = Pin<Box<dyn Stream<Item = Result<RawEvent, ToolError>> + Send>>;

/// The return type of a function that opens a source of events: made of a stream of events and of the positions after them.
///
/// The framework opens it where a subscription is, and takes from it what it can deliver. A stream that ends is opened
/// again after the poll interval, where it was; one that fails, or panics, after a pause that grows.
///
/// ```
/// use std::sync::Mutex;
///
/// use mcp_runtime::{event::{EventStream, Position}, prelude::*};
///
/// #[mcp_type]
/// #[derive(Clone)]
/// struct Mail {
///     subject: String,
/// }
///
/// struct Mailbox(Mutex<Vec<Mail>>);
///
/// /// Mails as they arrive.
/// #[mcp_event(name = "mail.received")]
/// fn mails(#[mcp(position)] since: Option<Position>, mailbox: &Mailbox) -> Result<EventStream<Mail>, ToolError> {
///     let all = mailbox.0.lock().unwrap();
///     let read = since.map(|position| position.parse()).transpose()?.unwrap_or(all.len());
///     // each with the number of mails up to it
///     let new: Vec<_> = (read + 1..).zip(all[read..].iter().cloned()).collect();
///     Ok(EventStream::iter(new).begins_at(read))
/// }
/// ```
#[must_use = "a function of an event returns it"]
pub struct EventStream<T> {
    stream: RawStream,
    begins_at: Option<Position>,
    truncated: bool,
    data: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("begins_at", &self.begins_at).finish_non_exhaustive()
    }
}

impl<T: Serialize + 'static> EventStream<T> {
    /// The events of a stream: [`StreamedEvent`]s, pairs of the position after an event and what it says, or `Result`s of
    /// these.
    pub fn new<S>(stream: S) -> Self
    where
        S: Stream + Send + 'static,
        S::Item: IntoStreamed<T>,
    {
        let events = RawEvents { stream: Box::pin(stream), data: PhantomData };
        Self { stream: Box::pin(events), begins_at: None, truncated: false, data: PhantomData }
    }

    /// The events that there are now, such as the rows of a query. They are asked for again after the
    /// [poll interval](super::EventLimits::poll_interval), with the position of the last one.
    pub fn iter<I>(events: I) -> Self
    where
        I: IntoIterator<Item: IntoStreamed<T>, IntoIter: Send + 'static>,
    {
        Self::new(EventIter(Box::new(events.into_iter())))
    }

    /// Says where the stream begins, for a subscriber that begins now: the position of the source at this moment.
    ///
    /// Without it, a subscription that was interrupted before its first event cannot know what it has missed, which is
    /// a gap.
    pub fn begins_at(mut self, position: impl Into<Position>) -> Self {
        self.begins_at = Some(position.into());
        self
    }

    /// Says that the source does not have all events after the position any more: the subscriber gets a gap.
    pub fn truncated(mut self) -> Self {
        self.truncated = true;
        self
    }
}

/// A stream of what an iterator has.
struct EventIter<I>(Box<I>);

impl<I: Iterator> Stream for EventIter<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}

/// The events of a user's stream, encoded.
struct RawEvents<S, T> {
    stream: Pin<Box<S>>,
    data: PhantomData<fn() -> T>,
}

impl<S, T: Serialize> Stream for RawEvents<S, T>
where
    S: Stream,
    S::Item: IntoStreamed<T>,
{
    type Item = Result<RawEvent, ToolError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        self.stream.as_mut().poll_next(cx).map(|item| {
            item.map(|item| {
                let StreamedEvent { data, position, id, time } = item.into_streamed()?;
                let json = serde_json::to_string(&data).map_err(ToolError::private)?;
                Ok(RawEvent { json, position, id, time })
            })
        })
    }
}

/// An opened source.
pub(super) struct OpenedSource {
    pub(super) stream: RawStream,
    pub(super) begins_at: Option<Position>,
    pub(super) truncated: bool,
}

/// The return types of a function that opens a source.
#[diagnostic::on_unimplemented(
    message = "an event without `#[mcp(payload)]` opens a stream, and `{Self}` is not one",
    label = "not an `EventStream<T>`",
    note = "mark what has happened with `#[mcp(payload)]`, or return `EventStream<T>`, or a `Result` of it"
)]
pub trait IntoEventStream {
    /// The payload of its events.
    #[doc(hidden)]
    type Data: Serialize + JsonSchema;

    #[doc(hidden)]
    fn into_output(self) -> Result<ItemOutput, ToolError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> IntoEventStream for EventStream<T> {
    type Data = T;

    fn into_output(self) -> Result<ItemOutput, ToolError> {
        let Self { stream, begins_at, truncated, .. } = self;
        Ok(ItemOutput::Other(Box::new(OpenedSource { stream, begins_at, truncated })))
    }
}

#[diagnostic::do_not_recommend]
impl<S: IntoEventStream, E: IntoFailure> IntoEventStream for Result<S, E> {
    type Data = S::Data;

    fn into_output(self) -> Result<ItemOutput, ToolError> {
        self.map_err(E::into_failure)?.into_output()
    }
}

/// Stands for the payload of an event that is not emitted: it has its own stream.
#[derive(Debug)]
pub enum Streamed {}

impl<T> Delivered<Streamed> for EventStream<T> {
    type Data = T;
}

/// The conversion of `R`. A function, so that rustc underlines the whole type if it does not implement the trait.
#[must_use]
pub const fn event_source<R: IntoEventStream>() -> EventOutput<R> {
    EventOutput { convert: R::into_output, schema: Some(SchemaGenerator::subschema_for::<R::Data>) }
}

/// Types of `#[mcp(position)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the position of an event's source",
    label = "not `Option<Position>`",
    note = "write `Option<Position>`, with `mcp_runtime::event::Position`: a subscription that begins now has none"
)]
pub trait PositionParam: Sized {
    #[doc(hidden)]
    fn of(position: Option<Position>) -> Self;
}

impl PositionParam for Option<Position> {
    fn of(position: Option<Position>) -> Self {
        position
    }
}

/// How the parameter `#[mcp(position)]` is found.
#[derive(Debug)]
pub struct EventPosition<P>(fn(Option<Position>) -> P);

/// The parameter of this type. A function, so that rustc underlines the type if it cannot be one.
#[must_use]
pub const fn event_position<P: PositionParam>() -> EventPosition<P> {
    EventPosition(P::of)
}

impl<P> EventPosition<P> {
    /// Where the subscription is.
    ///
    /// # Errors
    /// The call opens nothing: only its arguments are checked.
    pub fn find(&self, context: &Context) -> Result<P, Failure> {
        opened_at(context).map(self.0)
    }
}

/// Where a source is opened.
pub(super) struct OpenedAt(pub(super) Option<Position>);

/// Where the source is to be opened.
///
/// # Errors
/// The call opens nothing: only its arguments are checked.
pub fn opened_at(context: &Context) -> Result<Option<Position>, Failure> {
    let at = context.inner().request.extensions.get::<OpenedAt>();
    at.map(|at| at.0.clone()).ok_or_else(super::payload::NoPayload::failure)
}
