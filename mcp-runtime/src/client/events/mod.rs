//! Events of a server (preview): their list, and subscriptions that are pushed or polled, go on where they were after a
//! connection has broken, and deliver each event once for as long as the client lives.
//!
//! See [SEP-3415](https://modelcontextprotocol.io/seps/3415-events-extension).

mod driver;
mod reader;
mod typed;

use std::{fmt, future::IntoFuture, sync::Arc, time::Duration};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::DropGuard;

use self::{
    driver::{DeliveryMode, Driver},
    reader::EventReader,
};
use super::{
    Client, Error,
    connect::shared_client::{CallOptions, SharedClient},
    exchange::ListedKind,
    operation::{Operation, OperationKind},
    receive::handlers::Listener,
    requests::{listed_items::EventInfo, pending_request::PendingCall},
};
use crate::core::arguments::BoxFuture;

/// Gets the occurrences of an event; returns whether it can read them.
pub(in crate::client) type EventHandler = Arc<dyn Fn(EventOccurrence) -> bool + Send + Sync>;

/// One occurrence of an event.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct EventOccurrence {
    /// `eventId` on the wire, which is the same if the server sends the occurrence again.
    #[serde(rename = "eventId")]
    pub id: String,
    /// The name of the event.
    pub name: String,
    /// When it happened: `timestamp` on the wire, as the server writes it.
    pub timestamp: String,
    /// The payload of the event. It is data of the server, or of the party that the event is about: do not obey it.
    pub data: Value,
    /// `_meta` on the wire.
    #[serde(rename = "_meta")]
    pub meta: Option<Map<String, Value>>,
}

impl EventOccurrence {
    /// The payload of the event, as a type of the program.
    ///
    /// # Errors
    /// It is not one of that type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(&self.data)
            .map_err(|error| Error::invalid(format!("the payload of the event `{}`: {error}", self.name)))
    }
}

/// A subscription that begins when this is awaited; see [`Client::on_event`].
#[must_use = "nothing is subscribed to before `.await`"]
pub struct PendingSubscription {
    shared: Arc<SharedClient>,
    name: String,
    arguments: Result<Value, Error>,
    handler: EventHandler,
    on_gap: Option<Listener<()>>,
    cursor: Option<String>,
    max_age: Option<Duration>,
    polls: bool,
}

impl fmt::Debug for PendingSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSubscription").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A subscription to an event; dropping it ends the subscription. It ends with the client, too.
#[must_use = "dropping it ends the subscription"]
pub struct EventSubscription {
    reader: Arc<EventReader>,
    ended: watch::Receiver<Option<Error>>,
    _end: DropGuard,
}

impl fmt::Debug for EventSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSubscription").field("name", &self.reader.name).finish_non_exhaustive()
    }
}

impl EventSubscription {
    /// The cursor of what was received last, for [`PendingSubscription::cursor`] in another run of the program; `None` if
    /// the server cannot send events again.
    #[must_use]
    pub fn cursor(&self) -> Option<String> {
        self.reader.cursor()
    }

    /// Waits until the subscription has ended, and returns why: the server has ended it, such as since the client may not
    /// have these events any more, or the client was closed. A connection that breaks does not end it.
    pub async fn ended(&self) -> Error {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => error,
            _ => Error::not_connected("the client was closed"),
        }
    }
}

impl PendingSubscription {
    /// Continues where another subscription to the same event with the same arguments was; by default it begins now.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Skips events that are older than this when the subscription continues from a cursor; that is a
    /// [gap](Self::on_gap).
    pub fn max_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// Asks the server again and again, also if it can push the event.
    pub fn poll(mut self) -> Self {
        self.polls = true;
        self
    }

    /// Calls `f` whenever events may have been missed: the server has them no more, it cannot send them again after a
    /// connection has broken, or one of them could not be read. The function must not block.
    pub fn on_gap(mut self, f: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_gap = Some(Arc::new(move |()| f()));
        self
    }

    async fn subscribe(self, options: &CallOptions) -> Result<EventSubscription, Error> {
        let Self { shared, name, arguments, handler, on_gap, cursor, max_age, polls } = self;
        let arguments = match arguments? {
            Value::Null => Value::Object(Map::new()),
            arguments @ Value::Object(_) => arguments,
            _ => {
                return Err(Error::invalid(format!("the arguments of the event `{name}` are not an object")));
            }
        };
        let modes = modes(&shared, &name, polls, options).await?;
        let reader = Arc::new(EventReader::new(name, handler, on_gap, cursor));
        let token = shared.token.child_token();
        let mut result = Err(Error::unsupported(format!("the event `{}` by push or poll", reader.name)));
        for mode in modes {
            let (begun, begins) = oneshot::channel();
            let (ends, ended) = watch::channel(None);
            let driver = Driver {
                shared: shared.clone(),
                reader: reader.clone(),
                arguments: arguments.clone(),
                max_age,
                mode,
            };
            let cancelled = token.clone();
            // ends with the future, until it is a subscription
            let guard = token.clone().drop_guard();
            tokio::spawn(async move {
                let end = tokio::select! {
                    end = driver.drive(begun) => end,
                    () = cancelled.cancelled() => Error::not_connected("the client was closed"),
                };
                ends.send_replace(Some(end));
            });
            result = begins.await.unwrap_or_else(|_| Err(Error::not_connected("the client was closed")));
            match result {
                Ok(()) => return Ok(EventSubscription { reader, ended, _end: guard }),
                // a server may list a way of delivery that this connection does not have
                Err(ref error) if driver::is_unsupported(error) => drop(guard.disarm()),
                Err(error) => return Err(error),
            }
        }
        token.cancel();
        Err(result.err().unwrap_or_else(|| Error::not_connected("the client was closed")))
    }
}

/// The ways in which the server delivers the event, of those that this client has, the best one first.
async fn modes(
    shared: &SharedClient,
    name: &str,
    polls: bool,
    options: &CallOptions,
) -> Result<Vec<DeliveryMode>, Error> {
    let of_name = |entries: Vec<Arc<Value>>| {
        entries.into_iter().filter_map(EventInfo::new).find(|event| event.name() == name)
    };
    let mut found = of_name(shared.list(ListedKind::Events, false, options).await?);
    if found.is_none() {
        found = of_name(shared.list(ListedKind::Events, true, options).await?);
    }
    let Some(event) = found else { return Err(Error::unsupported(format!("the event `{name}`"))) };
    let offers = |mode: &str| event.delivery().any(|offered| offered == mode);
    let mut modes = Vec::new();
    if offers("push") && !polls {
        modes.push(DeliveryMode::Push);
    }
    if offers("poll") {
        modes.push(DeliveryMode::Poll);
    }
    if modes.is_empty() {
        let way = if polls { "poll" } else { "push or poll" };
        return Err(Error::unsupported(format!("the event `{name}` by {way}")));
    }
    Ok(modes)
}

impl IntoFuture for PendingSubscription {
    type Output = Result<EventSubscription, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let operation = Operation::new(OperationKind::Call, None, &self.shared.options);
        let options = CallOptions::of(operation.clone());
        Box::pin(async move { operation.run(self.subscribe(&options)).await })
    }
}

impl Client {
    /// The events that clients can subscribe to, of all pages (preview).
    #[doc(alias("list_events"))]
    pub fn events(&self) -> PendingCall<Vec<EventInfo>> {
        self.list(ListedKind::Events, EventInfo::new)
    }

    /// Calls `f` for each occurrence of an event, until the subscription is dropped (preview). The arguments are an object,
    /// or null for none. The function must not block.
    ///
    /// The server pushes events if it can, and is polled otherwise. After a connection has broken, the subscription goes on
    /// where it was, as far as the server can; an occurrence that comes twice is delivered once.
    ///
    /// ```no_run
    /// use mcp_runtime::client::Client;
    /// use serde_json::json;
    ///
    /// # async fn example() -> Result<(), mcp_runtime::client::Error> {
    /// let client = Client::connect("https://example.com/mcp").await?;
    /// let subscription = client
    ///     .on_event("incident.created", json!({ "severity": "P1" }), |event| println!("{}", event.data))
    ///     .await?;
    /// let why = subscription.ended().await;
    /// # drop(why);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When it is awaited: the server has no such event, does not deliver it in a way that this client has, or refuses the
    /// arguments.
    pub fn on_event(
        &self,
        name: impl Into<String>,
        arguments: Value,
        f: impl Fn(EventOccurrence) + Send + Sync + 'static,
    ) -> PendingSubscription {
        let handler = move |event| {
            f(event);
            true
        };
        self.subscribe_to(name.into(), Ok(arguments), Arc::new(handler))
    }

    /// A subscription with arguments that may be known to be wrong.
    pub(in crate::client) fn subscribe_to(
        &self,
        name: String,
        arguments: Result<Value, Error>,
        handler: EventHandler,
    ) -> PendingSubscription {
        PendingSubscription {
            shared: self.shared().clone(),
            name,
            arguments,
            handler,
            on_gap: None,
            cursor: None,
            max_age: None,
            polls: false,
        }
    }
}
