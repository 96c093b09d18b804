//! Changes that a program reports at one replica, for the subscribers of all others: over a topic of the store that
//! replicas share. After a possible loss, everything that subscribers wait for is reported as changed. Only a program that
//! shares a store contains it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    runtime::Handle,
    sync::mpsc::{Receiver, Sender, channel},
    time::sleep,
};

use super::{Server, WeakServer};
use crate::core::{
    changes::Change,
    connection::Principal,
    crypto::random_id,
    protocol::ItemList,
    spawn::spawn_on,
    store::{Received, SealedStore, StoreError, Stored},
    sync::Mutex,
};

const TOPIC: &str = "changes";
/// Changes that were not sent yet; with more, replicas are told that everything has changed.
const MAX_UNSENT: usize = 1024;
/// After a failure.
const RETRY: Duration = Duration::from_millis(500);
/// How long a subscription outlives its server.
const CHECK: Duration = Duration::from_secs(5);

/// Sends the changes of one server, and receives those of its replicas.
pub(crate) trait ChangeRelay: fmt::Debug + Send + Sync {
    /// Connects to the store.
    ///
    /// # Errors
    /// It refuses this server, or the server has no keys, or other keys than the replicas.
    fn connect(&self) -> Stored<'_, ()>;

    /// Begins to do so, unless that was done. Without a runtime, a later call does it.
    fn start(&self, server: &Server);

    /// The runtime that it was started on, if it was.
    fn runtime(&self) -> Option<&Handle>;

    /// Sends a change to other replicas, later.
    fn send(&self, change: RelayedChange);
}

/// Opens the relay of a store. An option holds it, so that only a program that sets the option contains the code.
pub(crate) type OpenRelay = fn(&SealedStore) -> Result<Box<dyn ChangeRelay>, getrandom::Error>;

struct StoreRelay {
    state: Arc<RelayState>,
    unsent: Sender<RelayedChange>,
    /// Until it is started.
    queue: Mutex<Option<Receiver<RelayedChange>>>,
    runtime: OnceLock<Handle>,
}

struct RelayState {
    store: SealedStore,
    /// This process, which does not tell its subscribers twice.
    id: String,
    /// Whether changes could not be sent.
    has_lost: AtomicBool,
    /// The issuers and subjects whose streams end: a change of everything does not stand for them.
    ended: Mutex<VecDeque<(String, String)>>,
}

/// A change as other replicas are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RelayedChange {
    Updated {
        uri: String,
        /// The caller whose call reported it, as a digest.
        by: Option<String>,
    },
    /// The streams of a principal end.
    StreamsEnded {
        issuer: String,
        subject: String,
    },
    Everything,
    #[serde(untagged)]
    List(ItemList),
}

#[derive(Serialize, Deserialize)]
struct RelayedMessage {
    from: String,
    change: RelayedChange,
}

impl fmt::Debug for StoreRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreRelay").finish_non_exhaustive()
    }
}

/// # Errors
/// The operating system provides no randomness.
pub(crate) fn open_relay(store: &SealedStore) -> Result<Box<dyn ChangeRelay>, getrandom::Error> {
    let (unsent, queue) = channel(MAX_UNSENT);
    let state = RelayState {
        store: store.clone(),
        id: random_id()?,
        has_lost: AtomicBool::new(false),
        ended: Mutex::default(),
    };
    let queue = Mutex::new(Some(queue));
    Ok(Box::new(StoreRelay { state: Arc::new(state), unsent, queue, runtime: OnceLock::new() }))
}

impl ChangeRelay for StoreRelay {
    fn connect(&self) -> Stored<'_, ()> {
        Box::pin(self.state.store.open())
    }

    fn start(&self, server: &Server) {
        if let Ok(runtime) = Handle::try_current()
            && let Some(queue) = self.queue.lock().take()
        {
            let _sends = spawn_on(&runtime, send_changes(self.state.clone(), queue));
            let _receives = spawn_on(&runtime, receive_changes(self.state.clone(), server.downgrade()));
            // once, like the queue is taken
            let _unset = self.runtime.set(runtime);
        }
    }

    fn runtime(&self) -> Option<&Handle> {
        self.runtime.get()
    }

    fn send(&self, change: RelayedChange) {
        if let RelayedChange::StreamsEnded { issuer, subject } = &change {
            self.state.end_streams(issuer, subject);
        }
        if self.unsent.try_send(change).is_err() {
            self.state.has_lost.store(true, Ordering::Relaxed);
        }
    }
}

impl RelayState {
    fn end_streams(&self, issuer: &str, subject: &str) {
        let mut ended = self.ended.lock();
        if ended.iter().any(|(of, name)| of == issuer && name == subject) {
            return;
        }
        if ended.len() == MAX_UNSENT {
            tracing::error!(
                "the streams of a principal do not end at other replicas: {MAX_UNSENT} principals wait for the shared store"
            );
            return;
        }
        ended.push_back((issuer.to_owned(), subject.to_owned()));
    }

    /// Sends whose streams end, then a change.
    async fn send(&self, change: &RelayedChange) -> Result<(), StoreError> {
        loop {
            let next = self.ended.lock().front().cloned();
            let Some((issuer, subject)) = next else { break };
            self.publish(RelayedChange::StreamsEnded { issuer, subject }).await?;
            self.ended.lock().pop_front();
        }
        match change {
            RelayedChange::StreamsEnded { .. } => Ok(()),
            change => self.publish(change.clone()).await,
        }
    }

    async fn publish(&self, change: RelayedChange) -> Result<(), StoreError> {
        let message = serde_json::to_vec(&RelayedMessage { from: self.id.clone(), change })?;
        self.store.publish(TOPIC, &message).await
    }
}

async fn send_changes(relay: Arc<RelayState>, mut queue: Receiver<RelayedChange>) {
    // the queue ends with the server
    while let Some(mut change) = queue.recv().await {
        loop {
            if relay.has_lost.swap(false, Ordering::Relaxed) {
                change = RelayedChange::Everything;
            }
            let Err(error) = relay.send(&change).await else { break };
            tracing::debug!(%error, "a change cannot be sent to other replicas yet");
            relay.has_lost.store(true, Ordering::Relaxed);
            if queue.is_closed() {
                return;
            }
            // changes that have waited are sent with the rest
            while queue.try_recv().is_ok() {}
            sleep(RETRY).await;
        }
    }
}

async fn receive_changes(relay: Arc<RelayState>, server: WeakServer) {
    let mut has_missed = false;
    while server.upgrade().is_some() {
        let mut subscription = match relay.store.subscribe(TOPIC).await {
            Ok(subscription) => subscription,
            Err(error) => {
                tracing::debug!(%error, "the changes of other replicas cannot be received yet");
                has_missed = true;
                sleep(RETRY).await;
                continue;
            }
        };
        if has_missed && let Some(server) = server.upgrade() {
            server.publish_relayed(RelayedChange::Everything);
        }
        loop {
            let received = tokio::select! {
                received = subscription.next() => received,
                // whether the server is there still
                () = sleep(CHECK) => match server.upgrade() {
                    Some(_) => continue,
                    None => return,
                },
            };
            let (Some(received), Some(server)) = (received, server.upgrade()) else { break };
            match received {
                Received::Missed => server.publish_relayed(RelayedChange::Everything),
                Received::Message(message) => match serde_json::from_slice::<RelayedMessage>(&message) {
                    Ok(message) if message.from == relay.id => {}
                    Ok(message) => server.publish_relayed(message.change),
                    // of a newer version of this crate: something has changed
                    Err(_) => server.publish_relayed(RelayedChange::Everything),
                },
            }
        }
        has_missed = true;
    }
}

impl Server {
    /// Tells the subscribers of this process.
    fn publish_relayed(&self, change: RelayedChange) {
        let change = match change {
            RelayedChange::List(list) => Change::List(list),
            RelayedChange::Updated { uri, by } => return self.publish_update(&uri, None, by.as_deref()),
            RelayedChange::StreamsEnded { issuer, subject } => {
                return self.end_streams_of(&Principal::new(issuer, subject));
            }
            RelayedChange::Everything => return self.publish_everything(None),
        };
        self.hub().publish(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        crypto::test_key,
        jsonrpc::ProtocolError,
        store::{
            Append, Appended, LogPage, Memory, Shared, Subscription, Table, Take, Taken, Value, Write,
            Written,
        },
        tool::{TaskMode, ToolCall, ToolDef},
    };

    /// A store that remembers which topics were subscribed to.
    #[derive(Clone, Default)]
    struct Recording(Memory, Arc<Mutex<Vec<String>>>);

    impl Shared for Recording {
        fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
            self.0.get(table, key)
        }

        fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
            self.0.put(table, key, write)
        }

        fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
            self.0.remove(table, key)
        }

        fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
            self.0.take(table, key, take)
        }

        fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
            self.0.append(table, log, append)
        }

        fn read_after<'a>(
            &'a self,
            table: &'a Table,
            log: &'a str,
            position: u64,
            limit: usize,
        ) -> Stored<'a, Option<LogPage>> {
            self.0.read_after(table, log, position, limit)
        }

        fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
            self.0.publish(topic, message)
        }

        fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
            self.1.lock().push(topic.to_owned());
            self.0.subscribe(topic)
        }
    }

    #[tokio::test]
    async fn a_capability_that_is_opened_while_the_server_serves_begins_its_part_of_the_store() {
        let store = Recording::default();
        let builder = Server::builder("late", "1").shared(store.clone());
        let server = builder.stores(|stores| stores.keys([test_key(1)])).build().unwrap();
        let handle = server.handle();
        server.open().await.unwrap();
        let of_tasks = || store.1.lock().iter().any(|topic| topic.contains("task-changes"));
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(
            !of_tasks() && !store.1.lock().is_empty(),
            "it has no tasks yet, and listens to its replicas"
        );
        // in a thread without a runtime
        let added = std::thread::spawn(move || {
            let tool = ToolDef::builder("late").task(TaskMode::Capable);
            handle.add(tool.handler(|_: ToolCall| async { Ok::<_, ProtocolError>("done") }))
        });
        added.join().unwrap().unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(of_tasks(), "{:?}", store.1.lock());
    }
}
