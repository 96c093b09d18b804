//! A store that replicas share, and that can be out of order or silent.

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use mcp_runtime::store::{
    Append, Appended, LogPage, Memory, Shared, Stored, Subscription, Table, Take, Taken, Value, Write,
    Written,
};
use tokio::sync::oneshot;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A store in memory that fails while it is told to, and counts what it is asked; clones are the same store.
#[derive(Clone, Default)]
pub struct BreakableStore {
    memory: Memory,
    broken: Arc<AtomicBool>,
    silent: Arc<AtomicBool>,
    operations: Arc<AtomicUsize>,
    largest: Arc<OnceLock<usize>>,
    held: Arc<Mutex<Option<HeldAnswer>>>,
}

/// A write that is carried out, and not answered yet.
struct HeldAnswer {
    /// The end of the name of its table.
    table: String,
    carried_out: oneshot::Sender<()>,
    released: oneshot::Receiver<()>,
}

impl BreakableStore {
    /// The same store as another replica reaches it, which breaks by itself.
    #[must_use]
    pub fn of_another_replica(&self) -> Self {
        Self { memory: self.memory.clone(), ..Self::default() }
    }

    /// Holds back the answer to the next write to a table whose name ends so: when it was carried out, and what lets it be
    /// answered.
    ///
    /// # Panics
    ///
    /// If another thread has panicked.
    pub fn hold_answer(&self, table: &str) -> (oneshot::Receiver<()>, oneshot::Sender<()>) {
        let ((carried_out, is_carried_out), (release, released)) = (oneshot::channel(), oneshot::channel());
        let held = HeldAnswer { table: table.to_owned(), carried_out, released };
        *self.held.lock().expect("no panic") = Some(held);
        (is_carried_out, release)
    }

    async fn put_unless_held(&self, table: &Table, key: &str, write: Write<'_>) -> Result<Written, Failure> {
        if self.largest.get().is_some_and(|largest| write.bytes.len() > *largest) {
            return Ok(Written::Full);
        }
        let written = self.memory.put(table, key, write).await;
        let is_held = |held: &mut HeldAnswer| table.name().ends_with(&held.table);
        let held = self.held.lock().expect("no panic").take_if(is_held);
        if let Some(held) = held {
            // a test that has ended waits for nothing
            let _waits = held.carried_out.send(());
            let _released = held.released.await;
        }
        written
    }

    /// From now on a value of more bytes does not fit.
    ///
    /// # Panics
    ///
    /// If it was called before.
    pub fn set_largest(&self, bytes: usize) {
        self.largest.set(bytes).expect("one limit");
    }

    /// From now on every operation fails, or none does.
    pub fn set_broken(&self, broken: bool) {
        self.broken.store(broken, Ordering::Relaxed);
    }

    /// From now on no operation is answered, or each is.
    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }

    /// How many operations there were.
    pub fn operations(&self) -> usize {
        self.operations.load(Ordering::Relaxed)
    }

    fn unless_broken<'a, T: Send + 'a>(&self, operation: Stored<'a, T>) -> Stored<'a, T> {
        self.operations.fetch_add(1, Ordering::Relaxed);
        if self.silent.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        match self.broken.load(Ordering::Relaxed) {
            true => Box::pin(std::future::ready(Err("out of order".into()))),
            // as over a network
            false => Box::pin(async move {
                tokio::task::yield_now().await;
                operation.await
            }),
        }
    }
}

impl Shared for BreakableStore {
    fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
        self.unless_broken(Box::pin(self.memory.get(table, key)))
    }

    fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
        self.unless_broken(Box::pin(self.put_unless_held(table, key, write)))
    }

    fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
        self.unless_broken(Box::pin(async move { self.memory.remove(table, key).await }))
    }

    fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
        self.unless_broken(Box::pin(async move { self.memory.take(table, key, take).await }))
    }

    fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
        self.unless_broken(Box::pin(async move { self.memory.append(table, log, append).await }))
    }

    fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        limit: usize,
    ) -> Stored<'a, Option<LogPage>> {
        self.unless_broken(Box::pin(async move { self.memory.read_after(table, log, position, limit).await }))
    }

    fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
        self.unless_broken(Box::pin(async move { self.memory.publish(topic, message).await }))
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
        self.unless_broken(Box::pin(async move { self.memory.subscribe(topic).await }))
    }
}

/// Any store, for tests that run with several; clones are the same store.
#[derive(Clone)]
pub struct AnyStore(Arc<dyn Shared>);

impl AnyStore {
    /// This store.
    pub fn new(store: impl Shared + 'static) -> Self {
        Self(Arc::new(store))
    }
}

impl Shared for AnyStore {
    fn check(&self) -> Result<(), Failure> {
        self.0.check()
    }

    fn is_connected(&self) -> Option<bool> {
        self.0.is_connected()
    }

    fn open(&self) -> Stored<'_, ()> {
        self.0.open()
    }

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
        self.0.subscribe(topic)
    }
}
