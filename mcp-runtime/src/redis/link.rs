//! The connection to Redis: one that is there, or a task that opens the next one. A broken connection is found by failing
//! operations, and by a ping every few seconds. One line is logged when the connection is lost, and one when it is back.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value, aio::MultiplexedConnection};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    Failure,
    target::{OpenError, Target},
};
use crate::core::{crypto::random_bytes, spawn::spawn, store::Publisher, sync::Mutex};

/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(1);
/// How long the first operation waits for a connection.
const FIRST_CONNECTION: Duration = Duration::from_millis(1500);
/// How often a connection that seems to be there is tried.
const PING: Duration = Duration::from_secs(5);
const PONG: Duration = Duration::from_millis(1500);
/// After a loss, up to this long passes before the first attempt to connect.
const FIRST_RETRY: Duration = Duration::from_millis(100);
/// Between two attempts: at least half of a time that doubles from the shorter to the longer, at most all of it.
const RETRY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// Operations that wait for their answers at once.
const MAX_OPERATIONS: usize = 4096;

/// The connection of one store; clones share it.
#[derive(Clone)]
pub(super) struct Link(Arc<LinkInner>);

struct LinkInner {
    target: Arc<Target>,
    state: watch::Sender<LinkState>,
    /// The newest connection that was found to be broken, by its generation.
    broken: watch::Sender<u64>,
    /// By channel.
    publishers: Mutex<HashMap<Box<str>, Vec<Publisher>>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

/// A connection, and which one it is.
#[derive(Clone)]
pub(super) struct LiveConnection {
    pub(super) connection: MultiplexedConnection,
    pub(super) generation: u64,
}

#[derive(Clone)]
enum LinkState {
    /// The first attempt to connect, at the beginning or after a loss.
    Connecting,
    Connected(LiveConnection),
    /// Why the connection is missing.
    Lost(OpenError),
}

impl Drop for LinkInner {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.lock().take() {
            keeper.abort();
        }
    }
}

impl Link {
    pub(super) fn new(target: Arc<Target>) -> Self {
        let (state, _) = watch::channel(LinkState::Connecting);
        Self(Arc::new(LinkInner {
            target,
            state,
            broken: watch::channel(0).0,
            publishers: Mutex::default(),
            keeper: Mutex::default(),
        }))
    }

    /// Whether there is a connection now.
    pub(super) fn is_connected(&self) -> bool {
        matches!(&*self.0.state.borrow(), LinkState::Connected(_))
    }

    /// Starts to connect, unless that was done, and waits for the outcome of the first attempt.
    ///
    /// # Errors
    /// Redis refuses the user or the password, or is too old; its certificate is not valid. That it cannot be reached is
    /// logged.
    pub(super) async fn open(&self) -> Result<(), Failure> {
        self.keep();
        let mut state = self.0.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, LinkState::Connecting));
        if let Ok(Ok(state)) = timeout(FIRST_CONNECTION, settled).await
            && let LinkState::Lost(error) = &*state
            && error.is_final
        {
            return Err(format!("{} at {}", error.message, self.0.target.address()).into());
        }
        Ok(())
    }

    /// The connection.
    ///
    /// # Errors
    /// The server is not connected now.
    pub(super) async fn connection(&self) -> Result<LiveConnection, Failure> {
        {
            let state = self.0.state.borrow();
            match &*state {
                LinkState::Connected(connection) => return Ok(connection.clone()),
                LinkState::Lost(error) if self.is_kept() => return Err(error.message.clone().into()),
                LinkState::Lost(_) | LinkState::Connecting => {}
            }
        }
        self.keep();
        let mut state = self.0.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, LinkState::Connecting));
        match timeout(FIRST_CONNECTION, settled).await {
            Ok(Ok(state)) => match &*state {
                LinkState::Connected(connection) => Ok(connection.clone()),
                LinkState::Lost(error) => Err(error.message.clone().into()),
                LinkState::Connecting => Err("Redis cannot be reached".into()),
            },
            _ => Err("Redis cannot be reached".into()),
        }
    }

    /// A connection is of no use any more.
    pub(super) fn report_broken(&self, generation: u64) {
        self.0.report_broken(generation);
    }

    /// Passes on what is published in a channel.
    ///
    /// # Errors
    /// There is a connection, and the subscription fails all the same.
    pub(super) async fn subscribe(&self, channel: String, publisher: Publisher) -> Result<(), Failure> {
        self.0.publishers.lock().entry(channel.as_str().into()).or_default().push(publisher);
        // without a connection, the next one begins with it
        if let Ok(mut used) = self.connection().await {
            match timeout(PONG, used.connection.subscribe(&channel)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) if !error.is_io_error() && !error.is_unrecoverable_error() => {
                    return Err(error.into());
                }
                _ => self.report_broken(used.generation),
            }
        }
        Ok(())
    }

    fn is_kept(&self) -> bool {
        self.0.keeper.lock().as_ref().is_some_and(|keeper| !keeper.is_finished())
    }

    /// Starts the task that keeps the connection, unless it runs.
    fn keep(&self) {
        let mut keeper = self.0.keeper.lock();
        // the runtime of an earlier one may have ended
        if keeper.as_ref().is_none_or(JoinHandle::is_finished) {
            self.0.state.send_replace(LinkState::Connecting);
            *keeper = Some(spawn(keep_connected(Arc::downgrade(&self.0))));
        }
    }
}

/// Why a connection is not kept any longer.
const UNUSED: &str = "the store is not used any more";

/// Opens connections, one after the other, as long as the link exists.
async fn keep_connected(link: Weak<LinkInner>) {
    let (mut generation, mut attempts, mut is_lost) = (0, 0, false);
    loop {
        let Some(inner) = link.upgrade() else { return };
        generation += 1;
        let opened = timeout(CONNECT, open(&inner, generation)).await;
        match opened.unwrap_or_else(|_| Err(OpenError::passing("Redis does not answer".into()))) {
            Ok(connection) => {
                attempts = 0;
                let live = LiveConnection { connection: connection.clone(), generation };
                inner.state.send_replace(LinkState::Connected(live));
                if is_lost {
                    tracing::info!(redis = inner.target.address(), "the shared store is reached again");
                    // after the connection can be used: those who are told use it at once
                    inner.tell_missed();
                }
                drop(inner);
                let reason = until_broken(&link, connection, generation).await;
                let Some(inner) = link.upgrade() else { return };
                tracing::warn!(redis = inner.target.address(), reason, "the shared store is lost");
                is_lost = true;
                // operations wait for the first attempt
                inner.state.send_replace(LinkState::Connecting);
                drop(inner);
                sleep(by_chance(FIRST_RETRY)).await;
            }
            Err(error) => {
                if !is_lost {
                    let error = &error.message;
                    tracing::warn!(
                        redis = inner.target.address(),
                        error,
                        "the shared store cannot be reached"
                    );
                }
                is_lost = true;
                inner.state.send_replace(LinkState::Lost(error));
                drop(inner);
                let [shortest, longest] = RETRY;
                let most = shortest.saturating_mul(1 << attempts.min(10)).min(longest);
                sleep(most / 2 + by_chance(most / 2)).await;
                attempts += 1;
            }
        }
    }
}

/// A time up to this one, so that replicas do not come back at the same moment.
fn by_chance(most: Duration) -> Duration {
    let chance = random_bytes::<4>().map_or(0, u32::from_le_bytes);
    most.mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

/// Waits until a connection breaks, and returns how that was found.
async fn until_broken(
    link: &Weak<LinkInner>,
    mut connection: MultiplexedConnection,
    generation: u64,
) -> &'static str {
    let Some(mut broken) = link.upgrade().map(|inner| inner.broken.subscribe()) else { return UNUSED };
    loop {
        tokio::select! {
            ended = broken.wait_for(|broken| *broken >= generation) => match ended {
                Ok(_) => return "the connection has ended, or an operation failed",
                Err(_) => return UNUSED,
            },
            () = sleep(PING) => {}
        }
        let Some(inner) = link.upgrade() else { return UNUSED };
        inner.unsubscribe_unused(&mut connection).await;
        drop(inner);
        match timeout(PONG, redis::cmd("PING").query_async::<()>(&mut connection)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return "a ping failed",
            Err(_) => return "a ping was not answered",
        }
    }
}

/// Opens one connection, and subscribes it to every channel.
async fn open(inner: &Arc<LinkInner>, generation: u64) -> Result<MultiplexedConnection, OpenError> {
    let weak = Arc::downgrade(inner);
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_concurrency_limit(MAX_OPERATIONS)
        .set_push_sender(move |push: PushInfo| {
            weak.upgrade().map(|inner| inner.pass_on(push, generation)).ok_or(redis::aio::SendError)
        });
    let mut connection = inner.target.connect(config).await?;
    let channels: Vec<Box<str>> = inner.publishers.lock().keys().cloned().collect();
    for channel in channels {
        connection.subscribe(&*channel).await?;
    }
    Ok(connection)
}

impl LinkInner {
    fn report_broken(&self, generation: u64) {
        self.broken.send_if_modified(|broken| {
            let is_news = *broken < generation;
            *broken = generation.max(*broken);
            is_news
        });
    }

    /// Passes a message on to the subscribers of its channel.
    fn pass_on(&self, push: PushInfo, generation: u64) {
        match push.kind {
            PushKind::Disconnection => self.report_broken(generation),
            PushKind::Message => {
                let mut data = push.data.into_iter();
                let (Some(Value::BulkString(channel)), Some(Value::BulkString(message))) =
                    (data.next(), data.next())
                else {
                    return;
                };
                let message: Arc<[u8]> = message.into();
                let publishers = self.publishers.lock();
                let channel = std::str::from_utf8(&channel).unwrap_or_default();
                for publisher in publishers.get(channel).into_iter().flatten() {
                    // those without a subscriber are removed later
                    let _has_subscriber = publisher.send(message.clone());
                }
            }
            _ => {}
        }
    }

    /// Tells all subscribers that they may have missed messages.
    fn tell_missed(&self) {
        self.publishers.lock().values().flatten().for_each(Publisher::missed);
    }

    /// Ends the subscriptions to channels without subscribers.
    async fn unsubscribe_unused(&self, connection: &mut MultiplexedConnection) {
        let mut unused = Vec::new();
        self.publishers.lock().retain(|channel, publishers| {
            publishers.retain(|publisher| !publisher.is_closed());
            if publishers.is_empty() {
                unused.push(channel.clone());
            }
            !publishers.is_empty()
        });
        for channel in unused {
            // if the connection has broken, it has no subscriptions any more
            let _sent = timeout(PONG, connection.unsubscribe(&*channel)).await;
            // a subscriber may have come meanwhile
            if self.publishers.lock().contains_key(&channel) {
                let _sent = timeout(PONG, connection.subscribe(&*channel)).await;
            }
        }
    }
}
