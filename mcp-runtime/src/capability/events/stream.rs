//! `events/stream`: what has happened is pushed to the client as it happens, with a cursor after each event. The stream
//! opens only for valid arguments; it ends with a reason when its caller loses access, and without one when the server
//! stops. A client that does not read holds back its own stream only: what it misses meanwhile is a gap.

use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, sleep};

use super::{
    Delivery, Events,
    entry::{EventEntry, EventSubscriber},
    error::{exhausted, forbidden},
    poll::{Waited, Waiting, integer, refusal},
    ring::ReadPosition,
    subscription::EventSubscription,
};
use crate::core::{
    arguments::BoxFuture,
    blocking::CallPermit,
    connection::Principal,
    dispatch::{Reply, Request, write_subscription_meta},
    error::Failure,
    gates::Stage,
    jsonrpc::{Object, ProtocolError, notification},
    log_limit::LogLine,
    maybe_ready::MaybeReady,
    protocol::Revision,
    server::{Entry as _, Server},
    sync::Mutex,
};

/// How long a stream is silent at most, so that its client knows that it is alive, and where it is.
const HEARTBEAT: Duration = Duration::from_secs(25);
/// Events that are read at once: while a client takes these, the next ones wait in the ring.
const MAX_BATCH: usize = 32;

/// The messages of one stream: made one at a time, when its transport has room for the next.
pub(super) struct PushedEvents {
    messages: NextMessage,
    run: BoxFuture<Result<(), Reply>>,
    ended: bool,
}

/// The gates of an event, at one of which a stream waits.
type Entering = BoxFuture<Result<Vec<CallPermit>, Failure>>;

/// The message that has been made, and not been taken.
type NextMessage = Arc<Mutex<Option<Vec<u8>>>>;

/// Creates the messages.
struct Pusher {
    server: Server,
    entry: Arc<EventEntry>,
    subscriber: EventSubscriber,
    waiting: Waiting,
    /// Raw JSON of the request's id, which is the subscription's.
    id: Box<str>,
    /// As the client has sent them.
    arguments: Box<str>,
    cursor: Option<Box<str>>,
    max_age: Option<Duration>,
    messages: NextMessage,
    /// When the last message was made.
    sent: Instant,
}

/// How a stream ends.
enum StreamEnd {
    /// The subscription cannot go on.
    Terminated(ProtocolError),
    /// The server stops; the client may open another stream.
    Stopped,
}

impl Events {
    /// Answers `events/stream`.
    pub(super) fn stream(&self, server: &Server, request: Request<'_>) -> Result<PushedEvents, Reply> {
        let (entry, arguments) = self.wanted(server, &request, Delivery::Push)?;
        let cursor: Option<Box<str>> = request.cursor()?.map(Into::into);
        let max_age = integer(request.params.get("maxAgeMs"), "maxAgeMs")?.map(Duration::from_millis);
        // a subscription that begins now has nothing that is old
        let max_age = max_age.filter(|_| cursor.is_some());
        let owner = request.context.owner();
        let entering = match &entry.item().gates {
            None => None,
            Some(gates) => match gates.enter(Stage::Whole, &owner) {
                MaybeReady::Ready(Ok(_)) => None,
                MaybeReady::Ready(Err(failure)) => {
                    return Err(refusal(server, entry.name(), failure, request.revision));
                }
                MaybeReady::Pending(entering) => Some(entering),
            },
        };
        let subscriber = EventSubscriber::of(request.context);
        let Some(waiting) = Waiting::begin(server, &subscriber, &owner) else {
            if let Some(LogLine { suppressed }) = server.log_limits().subscribers.line() {
                tracing::warn!(
                    suppressed,
                    "a stream of events was refused: too many subscriptions are open\nraise `max_subscribers`"
                );
            }
            return Err(exhausted("subscriptions"));
        };
        let messages = NextMessage::default();
        let pusher = Pusher {
            server: server.clone(),
            entry: entry.clone(),
            subscriber,
            waiting,
            id: request.id.into(),
            arguments: arguments.into(),
            cursor,
            max_age,
            messages: messages.clone(),
            sent: Instant::now(),
        };
        let run = Box::pin(pusher.run(entering));
        let mut stream = PushedEvents { messages, run, ended: false };
        // checks the arguments, so that no stream opens for invalid ones; only what an async rule says comes later
        let mut cx = Context::from_waker(Waker::noop());
        match stream.poll_next(&mut cx) {
            Poll::Ready(Err(refusal)) => Err(refusal),
            Poll::Ready(Ok(None)) => Err(exhausted("subscriptions")),
            _ => Ok(stream),
        }
    }
}

impl PushedEvents {
    /// The next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// The reply that refuses the request, of a stream without messages.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>, Reply>> {
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        let polled = self.run.as_mut().poll(cx);
        if let Some(message) = self.messages.lock().take() {
            return Poll::Ready(Ok(Some(message)));
        }
        self.ended = polled.is_ready();
        polled.map_ok(|()| None)
    }
}

impl Pusher {
    /// Makes messages until the stream ends.
    ///
    /// # Errors
    /// The reply that refuses the request.
    async fn run(mut self, entering: Option<Entering>) -> Result<(), Reply> {
        if let Some(entering) = entering
            && let Err(failure) = entering.await
        {
            return Err(refusal(&self.server, self.entry.name(), failure, Revision::LATEST));
        }
        let (server, caller) = (self.server.clone(), self.subscriber.caller.clone());
        let end = {
            let mut lost_access = pin!(lost_access(&server, caller));
            let mut pushed = pin!(self.push_events());
            tokio::select! {
                biased;
                error = &mut lost_access => StreamEnd::Terminated(error),
                end = &mut pushed => end?,
            }
        };
        if let StreamEnd::Terminated(error) = end {
            self.put("terminated", |params| {
                params.object("error", |object| error.write(object));
            })
            .await;
        }
        Ok(())
    }

    async fn push_events(&mut self) -> Result<StreamEnd, Reply> {
        let refused =
            |pusher: &Self, failure| refusal(&pusher.server, pusher.entry.name(), failure, Revision::LATEST);
        let given: Arc<str> =
            self.entry.given(&self.arguments).map_err(|failure| refused(self, failure))?.into();
        let checked = self.entry.check_arguments(&self.server, &self.subscriber, &given).await;
        checked.map_err(|failure| refused(self, failure))?;
        let Self { server, entry, subscriber, arguments, cursor, .. } = &*self;
        let (server, name) = (server.clone(), Box::<str>::from(entry.name()));
        entry.ring.follow(&server).await;
        let (subscription, missed) =
            EventSubscription::open(&server, entry, subscriber.clone(), arguments, given, cursor.as_deref());
        // the arguments are valid: the stream is open before anything is read for it
        poll_once_more().await;
        Ok(match self.push_all(&server, &name, subscription, missed).await {
            Ok(end) => end,
            Err(error) => StreamEnd::Terminated(error),
        })
    }

    /// Pushes what a subscription reads.
    ///
    /// # Errors
    /// Why the subscription cannot go on.
    async fn push_all(
        &mut self,
        server: &Server,
        name: &str,
        mut subscription: EventSubscription,
        mut missed: bool,
    ) -> Result<StreamEnd, ProtocolError> {
        let mut is_active = false;
        loop {
            let before = subscription.position;
            let seen = subscription.read(server, self.max_age.take(), MAX_BATCH).await?;
            missed |= seen.truncated;
            if !is_active || missed {
                let cursor = subscription.cursor(server, seen.resumed.as_ref().unwrap_or(&before))?;
                self.put("active", |params| {
                    params.str("cursor", &cursor).value("truncated", &missed);
                })
                .await;
                (is_active, missed) = (true, false);
            }
            for error in &seen.failures {
                self.put("error", |params| {
                    params.object("error", |object| error.write(object));
                })
                .await;
            }
            for event in &seen.events {
                let cursor = subscription.cursor(server, &event.position)?;
                self.put("event", |params| event.write(params, name, Some(&cursor))).await;
            }
            if self.sent.elapsed() >= HEARTBEAT {
                self.put_heartbeat(&subscription, server, &subscription.position).await?;
            }
            if seen.has_more {
                tokio::task::yield_now().await;
                continue;
            }
            let deadline = self.sent + HEARTBEAT;
            if let Waited::Stopped = self.waiting.wait(&subscription, deadline).await {
                return Ok(StreamEnd::Stopped);
            }
        }
    }

    async fn put_heartbeat(
        &mut self,
        subscription: &EventSubscription,
        server: &Server,
        position: &ReadPosition,
    ) -> Result<(), ProtocolError> {
        let cursor = subscription.cursor(server, position)?;
        self.put("heartbeat", |params| {
            params.str("cursor", &cursor);
        })
        .await;
        Ok(())
    }

    /// Makes a notification, and waits until it was taken.
    async fn put(&mut self, kind: &str, write: impl FnOnce(&mut Object<'_>)) {
        let message = notification(&format!("notifications/events/{kind}"), |params| {
            write(params);
            write_subscription_meta(params, &self.id);
        });
        *self.messages.lock() = Some(message);
        // the next poll comes after it was taken
        poll_once_more().await;
        self.sent = Instant::now();
    }
}

/// Goes on with the next poll, before which the transport takes what is there.
async fn poll_once_more() {
    let mut is_next = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_next, true) {
            return Poll::Ready(());
        }
        // a transport that waits for what a rule or the store says does not poll by itself
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Completes when a caller must not get more, with the reason.
async fn lost_access(server: &Server, caller: Option<Arc<Principal>>) -> ProtocolError {
    let Some(caller) = caller else { return pending().await };
    let ticket = server.hub().register_stream(caller.clone());
    let expired = async {
        match caller.expires {
            Some(expires) => sleep(expires.duration_since(SystemTime::now()).unwrap_or_default()).await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = ticket.end.cancelled() => forbidden("the access of the subscriber has ended"),
        () = expired => forbidden("the authentication of the subscriber has expired"),
    }
}
