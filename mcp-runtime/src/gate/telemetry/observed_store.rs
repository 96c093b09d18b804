//! A store that replicas share, and whose operations are counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use super::Telemetry;
use crate::core::store::{
    Append, Appended, LogPage, Shared, Stored, Subscription, Table, Take, Taken, Value, Write, Written,
};

/// The store, and who counts.
pub(super) struct ObservedStore {
    backend: Arc<dyn Shared>,
    telemetry: Arc<Telemetry>,
    reached: Arc<Reached>,
}

/// Whether a store can be reached.
pub(super) struct Reached {
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "only Prometheus has the gauge"))]
    backend: Arc<dyn Shared>,
    /// Whether the last operation was answered, for a store that does not report its connection.
    answered: AtomicBool,
}

impl Reached {
    /// As far as is known without asking.
    #[cfg(feature = "metrics")]
    pub(super) fn now(&self) -> bool {
        self.backend.is_connected().unwrap_or_else(|| self.answered.load(Ordering::Relaxed))
    }
}

/// One operation; one that is given up before its end has timed out.
struct Operation<'a> {
    store: &'a ObservedStore,
    name: &'static str,
    outcome: &'static str,
    began: Instant,
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        let answered = !matches!(self.outcome, "error" | "timeout");
        self.store.reached.answered.store(answered, Ordering::Relaxed);
        self.store.telemetry.end_store_operation([self.name, self.outcome], self.began.elapsed());
    }
}

impl ObservedStore {
    pub(super) fn new(backend: Arc<dyn Shared>, telemetry: Arc<Telemetry>) -> (Self, Arc<Reached>) {
        let reached = Arc::new(Reached { backend: backend.clone(), answered: AtomicBool::new(false) });
        (Self { backend, telemetry, reached: reached.clone() }, reached)
    }

    fn count<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        operation: Stored<'a, T>,
        outcome: fn(&T) -> &'static str,
    ) -> Stored<'a, T> {
        Box::pin(async move {
            let mut counted = Operation { store: self, name, outcome: "timeout", began: Instant::now() };
            let result = operation.await;
            counted.outcome = result.as_ref().map_or("error", outcome);
            result
        })
    }
}

fn ok<T>(_: &T) -> &'static str {
    "ok"
}

fn written(written: &Written) -> &'static str {
    match written {
        Written::Stored => "ok",
        Written::Conflict => "conflict",
        Written::Full => "full",
    }
}

fn taken(taken: &Taken) -> &'static str {
    match taken {
        Taken::Granted => "ok",
        Taken::Wait(_) => "wait",
        Taken::Full => "full",
    }
}

fn appended(appended: &Appended) -> &'static str {
    match appended {
        Appended::Stored => "ok",
        Appended::Conflict(_) => "conflict",
        Appended::TooLarge => "full",
    }
}

impl Shared for ObservedStore {
    fn check(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.backend.check()
    }

    fn is_connected(&self) -> Option<bool> {
        self.backend.is_connected()
    }

    fn open(&self) -> Stored<'_, ()> {
        self.backend.open()
    }

    fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
        self.count("get", self.backend.get(table, key), ok)
    }

    fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
        self.count("put", self.backend.put(table, key, write), written)
    }

    fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
        self.count("remove", self.backend.remove(table, key), ok)
    }

    fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
        self.count("take", self.backend.take(table, key, take), taken)
    }

    fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
        self.count("append", self.backend.append(table, log, append), appended)
    }

    fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        limit: usize,
    ) -> Stored<'a, Option<LogPage>> {
        self.count("read_after", self.backend.read_after(table, log, position, limit), ok)
    }

    fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
        self.count("publish", self.backend.publish(topic, message), ok)
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
        self.count("subscribe", self.backend.subscribe(topic), ok)
    }
}
