//! A store that replicas share, and whose operations are counted.

use std::{sync::Arc, time::Instant};

use super::Metrics;
use crate::core::store::{
    Append, Appended, LogPage, Shared, Stored, Subscription, Table, Take, Taken, Value, Write, Written,
};

/// The same store, whose operations are counted.
pub(crate) fn observe_store(backend: Arc<dyn Shared>, metrics: Arc<Metrics>) -> Arc<dyn Shared> {
    Arc::new(ObservedStore { backend, metrics })
}

struct ObservedStore {
    backend: Arc<dyn Shared>,
    metrics: Arc<Metrics>,
}

/// One operation; one that is given up before its end has timed out.
struct Operation<'a> {
    metrics: &'a Metrics,
    name: &'static str,
    outcome: &'static str,
    began: Instant,
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        self.metrics.end_store_operation([self.name, self.outcome], self.began.elapsed());
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
            let mut counted =
                Operation { metrics: &self.metrics, name, outcome: "timeout", began: Instant::now() };
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
