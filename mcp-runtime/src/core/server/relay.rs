//! Changes that a program reports at one replica, for the subscribers of all others. After a possible loss, everything that
//! subscribers wait for is reported as changed.

use std::sync::Arc;

use super::{Error, RegisteredItem, Result, Server, ServerBuilder, WeakServer, handle::RelayedChange};
use crate::core::{
    build_error::BuildError,
    changes::Change,
    config::Options,
    connection::Principal,
    crypto::KeyRing,
    observer::Observers,
    spawn::spawn,
    store::{CallerRate, Listener, Received, SealedStore, Shared},
};

const CHANGES: &str = "changes";
/// The principals whose streams end have a topic of their own: no number of changes displaces them.
const STREAMS: &str = "streams";

impl ServerBuilder {
    /// Sets the store that all replicas of the server share, such as `store::Redis`: what one of them keeps
    /// or records, each of them knows. Without it, a server keeps that in its memory.
    ///
    /// The store holds what is sealed with the server's [keys](crate::config::Stores::keys), which must be set and the same
    /// everywhere; a server without them does not start. It connects when serving begins.
    /// [Many replicas](crate::guide::cluster) has what is shared, and what happens while the store cannot be reached.
    pub fn shared(mut self, store: impl Shared + 'static) -> Self {
        self.options.stores.shared = Some(Arc::new(store));
        self
    }
}

impl Server {
    /// Checks what the store needs, without connecting to it.
    ///
    /// # Errors
    /// The store is shared, and the server has no keys.
    #[cfg(feature = "http")]
    pub(crate) fn check_store(&self) -> Result<()> {
        self.store().check().map_err(Error::serve)
    }

    /// Connects to the store that replicas share, if there is one.
    ///
    /// # Errors
    /// It refuses this server, or the server has no keys, or other keys than the replicas.
    pub(super) async fn open_store(&self) -> Result<()> {
        if self.store().is_shared() {
            self.store().open().await.map_err(|error| Error::serve(error.to_string()))?;
            self.join_replicas();
        }
        Ok(())
    }

    /// Begins to exchange changes with other replicas, if they share a store, and has capabilities begin their part of it;
    /// it may be called again. The first call needs a runtime, which is that of later ones.
    pub(crate) fn join_replicas(&self) {
        if !self.store().is_shared() {
            return;
        }
        if self.store().begin_messages() {
            for topic in [CHANGES, STREAMS] {
                let _receives = spawn(receive_changes(self.store().listen(topic), topic, self.downgrade()));
            }
        }
        self.serve_opened();
    }

    /// Has capabilities begin their part of the store, if that of the server has begun: also those that were opened since
    /// then, from whichever thread.
    pub(super) fn serve_opened(&self) {
        if let Some(runtime) = self.store().runtime() {
            let _entered = runtime.enter();
            let registry = self.registry();
            registry.capabilities.iter().for_each(|capability| capability.clone().serve(self));
        }
    }

    /// Sends a change to other replicas, later.
    pub(super) fn relay(&self, change: &RelayedChange) {
        self.join_replicas();
        let is_end = matches!(change, RelayedChange::StreamsEnded { .. });
        if !self.store().send(if is_end { STREAMS } else { CHANGES }, change) && is_end {
            tracing::error!(
                "the streams of a principal do not end at other replicas: too many principals wait for the shared store"
            );
        }
    }

    /// Tells every subscriber of this process that whatever it waits for has changed, which may be so.
    fn publish_everything(&self) {
        let registry = self.registry();
        self.hub().publish_everything(|uri, access| {
            access.is_full()
                || registry.capabilities.iter().any(|capability| capability.may_read(uri, access))
        });
    }

    /// Tells the subscribers of this process.
    fn publish_relayed(&self, change: RelayedChange) {
        match change {
            RelayedChange::List(list) => self.hub().publish(Change::List(list)),
            RelayedChange::Updated { uri, by } => self.publish_update(&uri, None, by.as_deref()),
            RelayedChange::StreamsEnded { issuer, subject } => {
                self.end_streams_of(&Principal::new(issuer, subject));
            }
        }
    }
}

impl SealedStore {
    /// The store of a server.
    pub(super) fn of_server(
        options: &Options,
        keys: &KeyRing,
        server: &str,
        observers: &Observers,
        errors: &mut Vec<BuildError>,
    ) -> Self {
        let Some(shared) = options.stores.shared.clone() else { return Self::in_memory() };
        if let Err(error) = shared.check() {
            errors.push(BuildError::new(error.to_string()));
        }
        let shared = observers.iter().fold(shared, |shared, observer| observer.watch_store(shared));
        Self::shared(shared, keys, server)
    }

    /// Lets all replicas count the rates of a server and its mounts together, if they share a store.
    pub(super) fn share_rates(&self, rate: Option<&CallerRate>, items: &[RegisteredItem]) {
        if let Some(rate) = rate {
            self.share_rate(rate, "server", "requests");
        }
        let mut mounts = 0;
        for of_mount in items.iter().flat_map(|item| &item.mount_rates) {
            // by the order of the mounts, which is that of every replica
            if self.share_rate(of_mount, "mount", &mounts.to_string()) {
                mounts += 1;
            }
        }
    }
}

async fn receive_changes(mut listener: Listener, topic: &str, server: WeakServer) {
    while let Some(received) = listener.next().await {
        let Some(server) = server.upgrade() else { return };
        let change = match &received {
            Received::Message(message) => serde_json::from_slice(message).ok(),
            Received::Missed => None,
        };
        match change {
            Some(change) => server.publish_relayed(change),
            // lost, or of a newer version of this crate: something has changed
            None if topic == CHANGES => server.publish_everything(),
            None => {}
        }
    }
}

#[cfg(all(test, feature = "tasks"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::{
        crypto::test_key,
        jsonrpc::ProtocolError,
        store::{
            Append, Appended, LogPage, Memory, Shared, Stored, Subscription, Table, Take, Taken, Value,
            Write, Written,
        },
        sync::Mutex,
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
        let of_tasks = || store.1.lock().iter().any(|topic| topic.ends_with("/tasks"));
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
