//! A store that replicas share, and whose operations are counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use prometheus::{
    HistogramOpts, HistogramVec, IntGauge,
    core::{Collector, Desc},
    proto::MetricFamily,
};

use super::{Metrics, add};
use crate::core::store::{
    Append, Appended, LogPage, Shared, Stored, Subscription, Table, Take, Taken, Value, Write, Written,
};

/// Upper bounds of the buckets of durations, in seconds: a store is near.
const BUCKETS: [f64; 11] = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.2, 0.5, 2.0];

/// The same store, whose operations are counted.
struct ObservedStore {
    backend: Arc<dyn Shared>,
    operations: HistogramVec,
    connected: IntGauge,
    /// Whether the last operation was answered, for a store that does not report its connection.
    answered: AtomicBool,
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
        let Self { store, name, outcome, began } = *self;
        store.answered.store(!matches!(outcome, "error" | "timeout"), Ordering::Relaxed);
        store.operations.with_label_values(&[name, outcome]).observe(began.elapsed().as_secs_f64());
    }
}

impl ObservedStore {
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

impl Metrics {
    /// The same store, whose operations are counted.
    ///
    /// # Errors
    /// A metric has the name of another.
    pub(super) fn observe_store(&self, backend: Arc<dyn Shared>) -> prometheus::Result<Arc<dyn Shared>> {
        let operations = HistogramOpts::new(
            "mcp_server_store_operation_duration_seconds",
            "How long operations of the shared store took.",
        );
        let operations = HistogramVec::new(operations.buckets(BUCKETS.to_vec()), &["operation", "outcome"])?;
        let operations = add(&self.registry, operations)?;
        let connected =
            IntGauge::new("mcp_server_store_connected", "Whether the shared store can be reached.")?;
        let store = ObservedStore { backend, operations, connected, answered: AtomicBool::new(false) };
        let store = Arc::new(store);
        self.registry.register(Box::new(IsConnected(store.clone())))?;
        Ok(store)
    }
}

/// Whether the store can be reached, as far as is known without asking when the metrics are written.
struct IsConnected(Arc<ObservedStore>);

impl Collector for IsConnected {
    fn desc(&self) -> Vec<&Desc> {
        self.0.connected.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let ObservedStore { backend, connected, answered, .. } = &*self.0;
        let answered = || answered.load(Ordering::Relaxed);
        connected.set(backend.is_connected().unwrap_or_else(answered).into());
        connected.collect()
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
