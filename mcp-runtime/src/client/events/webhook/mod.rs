//! Subscriptions by webhook (preview): made, renewed before the server forgets them, continued at their cursor when it has,
//! and ended when they are dropped.

mod receiver;

use std::{
    fmt,
    future::IntoFuture,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::sleep,
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::receiver::WebhookReceiver;
use self::receiver::{AcceptEvent, Route};
use super::{EventOccurrence, driver};
use crate::{
    client::{
        Client, Error,
        connect::shared_client::{CallOptions, SharedClient, params},
        operation::{Operation, OperationKind},
        receive::handlers::Listener,
        requests::result_types::parse,
    },
    core::{arguments::BoxFuture, spawn::spawn},
};

/// The first pause after a renewal that has failed; the next is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The shortest time between renewals, whatever the server grants.
const SHORTEST_RENEWAL: Duration = Duration::from_secs(20);
/// The longest one: the answers have what has become of deliveries.
const LONGEST_RENEWAL: Duration = Duration::from_secs(24 * 60 * 60);
/// New secrets that were asked for, and were not sent yet.
const MAX_ROTATIONS: usize = 4;

/// A subscription by webhook that begins when this is awaited; see [`Client::subscribe_webhook`].
#[must_use = "nothing is subscribed to before `.await`"]
pub struct PendingWebhook {
    shared: Arc<SharedClient>,
    receiver: WebhookReceiver,
    name: String,
    arguments: Value,
    accept: AcceptEvent,
    on_gap: Option<Listener<()>>,
    cursor: Option<String>,
    max_age: Option<Duration>,
    lifetime: AskedLifetime,
}

/// `ttlMs` on the wire.
#[derive(Debug, Clone, Copy)]
enum AskedLifetime {
    OfServer,
    Of(Duration),
    Unlimited,
}

impl fmt::Debug for PendingWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingWebhook").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A subscription by webhook, which is renewed for as long as this lives. Dropping it ends the subscription, at the server
/// too.
#[must_use = "dropping it ends the subscription"]
pub struct WebhookSubscription {
    id: String,
    route: Arc<Route>,
    rotations: mpsc::Sender<oneshot::Sender<Result<(), Error>>>,
    ended: watch::Receiver<Option<Error>>,
    is_kept: CancellationToken,
    _end: DropGuard,
}

impl fmt::Debug for WebhookSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSubscription")
            .field("id", &self.id)
            .field("name", &self.route.event)
            .finish_non_exhaustive()
    }
}

impl WebhookSubscription {
    /// `id` on the wire: the header `X-MCP-Subscription-Id` of its messages. It is not secret.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The cursor below which everything was accepted, for [`PendingWebhook::cursor`] in another run of the program; `None`
    /// if the server cannot send events again.
    #[must_use]
    pub fn cursor(&self) -> Option<String> {
        self.route.cursor()
    }

    /// Gives the server a new secret to sign with. Messages that are signed with the one before are accepted until the server
    /// has confirmed the new one, and for ten more minutes.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses: it goes on with the secret that it has, and gets the new one when the
    /// subscription is renewed.
    pub async fn rotate_secret(&self) -> Result<(), Error> {
        let ended = || Error::not_connected("the subscription has ended");
        let (done, is_done) = oneshot::channel();
        self.rotations.send(done).await.map_err(|_| ended())?;
        is_done.await.map_err(|_| ended())?
    }

    /// Waits until the subscription has ended, and returns why: the server has ended it, such as since the client may not
    /// have these events any more, or the client was closed. A server that cannot be reached does not end it.
    pub async fn ended(&self) -> Error {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => error,
            _ => Error::not_connected("the client was closed"),
        }
    }

    /// Stops to receive and to renew, but leaves the subscription at the server until it expires, so that another run of the
    /// program can continue it without a gap: the server sends again what is not accepted meanwhile, for some minutes.
    /// Returns the [cursor](Self::cursor).
    pub fn leave(self) -> Option<String> {
        self.is_kept.cancel();
        self.route.cursor()
    }
}

impl PendingWebhook {
    /// Continues at a cursor of the same event with the same arguments; by default it begins now.
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

    /// Asks for a subscription that lasts this long without a renewal; by default the server decides, and it may grant less.
    /// The shorter, the sooner the server forgets a subscription whose program is gone.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = AskedLifetime::Of(lifetime);
        self
    }

    /// Asks for a subscription that does not expire. It is renewed once a day all the same. If the program ends without
    /// dropping it, it stays at the server until the program subscribes to the same again and drops that.
    pub fn without_expiry(mut self) -> Self {
        self.lifetime = AskedLifetime::Unlimited;
        self
    }

    /// Calls `f` whenever events may have been missed. The function must not block.
    pub fn on_gap(mut self, f: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_gap = Some(Arc::new(move |()| f()));
        self
    }

    async fn subscribe(self, options: &CallOptions) -> Result<WebhookSubscription, Error> {
        let Self { shared, receiver, name, arguments, accept, on_gap, cursor, max_age, lifetime } = self;
        let arguments = match arguments {
            Value::Null => Value::Object(Map::new()),
            arguments @ Value::Object(_) => arguments,
            _ => {
                return Err(Error::invalid(format!("the arguments of the event `{name}` are not an object")));
            }
        };
        let identity = json!([shared.address(), name, arguments]).to_string();
        let route = receiver.open(identity.as_bytes(), name, accept, on_gap, cursor)?;
        let is_kept = CancellationToken::new();
        let guard = RouteGuard { route: route.clone(), is_kept: is_kept.clone() };
        let renewer = Renewer { shared, route: route.clone(), arguments, max_age, lifetime };
        let granted = renewer.renew(options).await?;
        let token = renewer.shared.token.child_token();
        let (ends, ended) = watch::channel(None);
        let (rotations, asked) = mpsc::channel(MAX_ROTATIONS);
        let id = granted.id.clone();
        let end = token.clone().drop_guard();
        spawn(async move {
            let error = renewer.run(granted, asked, &token).await;
            if error.is_none() && !guard.is_kept.is_cancelled() {
                renewer.unsubscribe();
            }
            ends.send_replace(Some(error.unwrap_or_else(|| Error::not_connected("the client was closed"))));
        });
        Ok(WebhookSubscription { id, route, rotations, ended, is_kept, _end: end })
    }
}

/// Ends what is received for a subscription.
struct RouteGuard {
    route: Arc<Route>,
    /// Whether the subscription is left at the server.
    is_kept: CancellationToken,
}

impl Drop for RouteGuard {
    fn drop(&mut self) {
        self.route.close(self.is_kept.is_cancelled());
    }
}

/// The result of `events/subscribe`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Granted {
    id: String,
    refresh_before: Option<String>,
    #[serde(default)]
    cursor: Value,
    #[serde(default)]
    truncated: bool,
    delivery_status: Option<DeliveryStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryStatus {
    last_error: Option<String>,
}

/// Keeps one subscription.
struct Renewer {
    shared: Arc<SharedClient>,
    route: Arc<Route>,
    arguments: Value,
    max_age: Option<Duration>,
    lifetime: AskedLifetime,
}

impl Renewer {
    /// Subscribes, for the first time or again, with the position that was reached.
    async fn renew(&self, options: &CallOptions) -> Result<Granted, Error> {
        let Route { event, url, .. } = &*self.route;
        let cursor = self.route.cursor();
        let delivery = json!({ "mode": "webhook", "url": url, "secret": self.route.secret() });
        let mut members =
            json!({ "name": event, "arguments": self.arguments, "delivery": delivery, "cursor": cursor });
        let milliseconds = |time: Duration| Value::from(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        match self.lifetime {
            AskedLifetime::OfServer => {}
            AskedLifetime::Of(lifetime) => members["ttlMs"] = milliseconds(lifetime),
            AskedLifetime::Unlimited => members["ttlMs"] = Value::Null,
        }
        // it bounds what is sent again, which begins at a cursor
        if let Some(age) = self.max_age.filter(|_| cursor.is_some()) {
            members["maxAgeMs"] = milliseconds(age);
        }
        // boxed: the future of the subscription would have room for it otherwise
        let members = params(members);
        let sent = Box::pin(self.shared.request("events/subscribe", &members, options)).await?;
        let granted: Granted = parse(&sent, "events/subscribe")?;
        self.route.confirm();
        self.route.advance(Some(&granted.cursor));
        if granted.truncated {
            self.route.gap();
        }
        if let Some(error) = granted.delivery_status.as_ref().and_then(|status| status.last_error.as_deref())
        {
            let error: String = error.chars().take(100).collect();
            tracing::warn!(%event, ?error, "the server could not deliver events");
        }
        Ok(granted)
    }

    /// When to renew: well before the server forgets it.
    fn pause(&self, granted: &Granted) -> Duration {
        let until =
            granted.refresh_before.as_deref().and_then(|time| humantime::parse_rfc3339_weak(time).ok());
        let left = until.map(|until| until.duration_since(SystemTime::now()).unwrap_or_default());
        let asked = match self.lifetime {
            AskedLifetime::Of(lifetime) => Some(lifetime),
            _ => None,
        };
        // a clock that differs from the server's does not make it longer than what was asked for
        let shortest = [left, asked].into_iter().flatten().min().unwrap_or(LONGEST_RENEWAL);
        (shortest / 3 * 2).clamp(SHORTEST_RENEWAL, LONGEST_RENEWAL)
    }

    /// Renews until the program or the server ends the subscription; the error is the server's reason.
    async fn run(
        &self,
        granted: Granted,
        mut rotations: mpsc::Receiver<oneshot::Sender<Result<(), Error>>>,
        token: &CancellationToken,
    ) -> Option<Error> {
        let mut pause = self.pause(&granted);
        let mut after_failure = FIRST_PAUSE;
        loop {
            let rotation = tokio::select! {
                () = token.cancelled() => return None,
                error = self.route.terminated() => return Some(error),
                Some(rotation) = rotations.recv() => Some(rotation),
                () = sleep(pause) => None,
            };
            let rotated = if rotation.is_some() { self.route.rotate() } else { Ok(()) };
            let renewed = match rotated {
                Ok(()) => tokio::select! {
                    () = token.cancelled() => return None,
                    renewed = self.renew_within() => renewed,
                },
                Err(error) => Err(error),
            };
            if let Some(rotation) = rotation {
                // fails if the program does not wait any more
                let _given_up = rotation.send(renewed.as_ref().map(drop).map_err(Error::clone));
            }
            match renewed {
                Ok(granted) => (pause, after_failure) = (self.pause(&granted), FIRST_PAUSE),
                Err(error) if driver::is_final(&error) => return Some(error),
                Err(error) => {
                    let error = error.in_one_line();
                    tracing::debug!(event = %self.route.event, error, "the subscription was not renewed");
                    pause = after_failure;
                    after_failure = (after_failure * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn renew_within(&self) -> Result<Granted, Error> {
        let operation = Operation::new(OperationKind::Call, None, &self.shared.options);
        operation.run(self.renew(&CallOptions::of(operation.clone()))).await
    }

    /// Tells the server in the background that nothing more is wanted.
    fn unsubscribe(&self) {
        let delivery = json!({ "mode": "webhook", "url": self.route.url });
        let members = json!({ "name": self.route.event, "arguments": self.arguments, "delivery": delivery });
        let shared = self.shared.clone();
        self.shared.cleanup.spawn(async move {
            let sent = shared.request("events/unsubscribe", &params(members), &CallOptions::default()).await;
            if let Err(error) = sent {
                tracing::debug!(error = error.in_one_line(), "a subscription expires by itself");
            }
        });
    }
}

impl IntoFuture for PendingWebhook {
    type Output = Result<WebhookSubscription, Error>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let operation = Operation::new(OperationKind::Call, None, &self.shared.options);
        let options = CallOptions::of(operation.clone());
        Box::pin(async move { operation.run(self.subscribe(&options)).await })
    }
}

impl Client {
    /// Subscribes to an event that the server sends to a [`WebhookReceiver`] of this program (preview), and keeps the
    /// subscription for as long as the [`WebhookSubscription`] lives. The arguments are an object, or null for none.
    ///
    /// `f` is called once for each event, in no certain order. When it returns `Ok`, the server is told that the event was
    /// accepted: store the event first, and do what takes long afterwards. With an error, or after 30 seconds, the server is
    /// asked to send it again.
    ///
    /// [`EventOccurrence::payload`] reads what an event says as a type of the program.
    ///
    /// # Errors
    /// When it is awaited: the server has no such event, does not deliver it by webhook, refuses the client or the
    /// arguments, or cannot reach the receiver.
    pub fn subscribe_webhook<F, Fut, E>(
        &self,
        receiver: &WebhookReceiver,
        name: impl Into<String>,
        arguments: Value,
        f: F,
    ) -> PendingWebhook
    where
        F: Fn(EventOccurrence) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let accept = move |event| {
            let accepted = f(event);
            let accepted: BoxFuture<_> =
                Box::pin(async move { accepted.await.map_err(|error| error.to_string()) });
            accepted
        };
        PendingWebhook {
            shared: self.shared().clone(),
            receiver: receiver.clone(),
            name: name.into(),
            arguments,
            accept: Arc::new(accept),
            on_gap: None,
            cursor: None,
            max_age: None,
            lifetime: AskedLifetime::OfServer,
        }
    }
}
