//! The store in an SQLite file. Each operation is one transaction.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use mcp_runtime::store::{
    Condition, Shared, Stored, Subscription, Table, Take, Taken, Value, Write, Written,
};
use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

/// How often messages of other processes are looked for.
const POLL: Duration = Duration::from_millis(20);
/// For how long messages are kept, in milliseconds.
const MESSAGES: i64 = 60_000;

pub(crate) struct Sqlite(Arc<Mutex<Connection>>);

impl Sqlite {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(1))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE IF NOT EXISTS kept (
                 tab TEXT, key TEXT, bytes BLOB, version INTEGER, owner TEXT, expires INTEGER, PRIMARY KEY (tab, key));
             CREATE INDEX IF NOT EXISTS kept_expires ON kept (expires);
             CREATE TABLE IF NOT EXISTS rate (
                 tab TEXT, owner TEXT, key TEXT, restored INTEGER, PRIMARY KEY (tab, owner, key));
             CREATE INDEX IF NOT EXISTS rate_restored ON rate (restored);
             CREATE TABLE IF NOT EXISTS message (
                 id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT, bytes BLOB, at INTEGER);",
        )?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Runs a transaction on a thread where it may wait.
    fn run<'a, T: Send + 'static>(
        &self,
        transaction: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Stored<'a, T> {
        let connection = self.0.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || {
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let value = transaction(&begun)?;
                begun.commit().map(|()| value)
            });
            Ok(done.await??)
        })
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Nanoseconds since 1970.
fn nanoseconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

/// A limit as SQLite counts.
fn limit(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How many values there are, and how many bytes they have.
fn used(database: &Connection, table: &str, owner: Option<&str>, except: &str) -> Result<(i64, i64)> {
    database.query_row(
        "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM kept
         WHERE tab = ?1 AND key <> ?2 AND (?3 IS NULL OR owner = ?3)",
        params![table, except, owner],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

impl Shared for Sqlite {
    fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
        let (table, key) = (table.name().to_owned(), key.to_owned());
        self.run(move |database| {
            let found = "SELECT bytes, version FROM kept WHERE tab = ?1 AND key = ?2 AND expires > ?3";
            let read = |row: &rusqlite::Row<'_>| {
                Ok(Value { bytes: row.get(0)?, version: row.get::<_, i64>(1)?.unsigned_abs() })
            };
            database.query_row(found, params![table, key, now()], read).optional()
        })
    }

    fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
        let (table, key, bytes) = (table.clone(), key.to_owned(), write.bytes.to_vec());
        let (owner, condition) = (write.owner.to_owned(), write.condition);
        let time = i64::try_from(write.expires_in.as_millis()).unwrap_or(i64::MAX);
        self.run(move |database| {
            let (name, now) = (table.name(), now());
            database.execute("DELETE FROM kept WHERE expires <= ?1", [now])?;
            let version = "SELECT version FROM kept WHERE tab = ?1 AND key = ?2";
            let version: Option<i64> =
                database.query_row(version, params![name, key], |row| row.get(0)).optional()?;
            let holds = match condition {
                Condition::Always => true,
                Condition::Absent => version.is_none(),
                Condition::Version(expected) => version.map(i64::unsigned_abs) == Some(expected),
            };
            if !holds {
                return Ok(Written::Conflict);
            }
            let size = limit(bytes.len());
            let fits = |(values, total): (i64, i64), max_values, max_bytes| {
                values < limit(max_values) && total.saturating_add(size) <= limit(max_bytes)
            };
            let own = used(database, name, Some(&owner), &key)?;
            if !fits(used(database, name, None, &key)?, table.max_values(), table.max_bytes())
                || !fits(own, table.max_values_of(&owner), table.max_bytes_of(&owner))
            {
                return Ok(Written::Full);
            }
            let version = i64::try_from(condition.next_version()).unwrap_or(i64::MAX);
            database.execute(
                "INSERT OR REPLACE INTO kept (tab, key, bytes, version, owner, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![name, key, bytes, version, owner, now.saturating_add(time)],
            )?;
            Ok(Written::Stored)
        })
    }

    fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
        let (table, key) = (table.name().to_owned(), key.to_owned());
        self.run(move |database| {
            database.execute("DELETE FROM kept WHERE tab = ?1 AND key = ?2", params![table, key]).map(|_| ())
        })
    }

    fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
        let (table, key, owner) = (table.clone(), key.to_owned(), take.owner.to_owned());
        let (rate, times) = (take.rate, take.times);
        self.run(move |database| {
            let (name, now) = (table.name(), nanoseconds());
            database.execute("DELETE FROM rate WHERE restored <= ?1", [now])?;
            let before = "SELECT restored FROM rate WHERE tab = ?1 AND owner = ?2 AND key = ?3";
            let before: Option<i64> =
                database.query_row(before, params![name, owner, key], |row| row.get(0)).optional()?;
            let left = before.map_or(0, |restored| restored.saturating_sub(now).unsigned_abs());
            let left = match rate.take(times, Duration::from_nanos(left)) {
                Ok(left) => i64::try_from(left.as_nanos()).unwrap_or(i64::MAX),
                Err(wait) => return Ok(Taken::Wait(wait)),
            };
            if before.is_none() {
                let own = "SELECT count(*) FROM rate WHERE tab = ?1 AND owner = ?2";
                let own: i64 = database.query_row(own, params![name, owner], |row| row.get(0))?;
                if own >= limit(table.max_values_of(&owner)) {
                    return Ok(Taken::Full);
                }
                database.execute(
                    "DELETE FROM rate WHERE rowid IN (SELECT rowid FROM rate WHERE tab = ?1 ORDER BY restored LIMIT
                     max(0, (SELECT count(*) FROM rate WHERE tab = ?1) + 1 - ?2))",
                    params![name, limit(table.max_values())],
                )?;
            }
            database.execute(
                "INSERT OR REPLACE INTO rate (tab, owner, key, restored) VALUES (?1, ?2, ?3, ?4)",
                params![name, owner, key, now.saturating_add(left)],
            )?;
            Ok(Taken::Granted)
        })
    }

    fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
        let (topic, message) = (topic.to_owned(), message.to_vec());
        self.run(move |database| {
            database.execute("DELETE FROM message WHERE at < ?1", [now() - MESSAGES])?;
            let add = "INSERT INTO message (topic, bytes, at) VALUES (?1, ?2, ?3)";
            database.execute(add, params![topic, message, now()]).map(|_| ())
        })
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
        Box::pin(async move {
            let last = "SELECT coalesce(max(id), 0) FROM message";
            let mut last: i64 =
                self.run(move |database| database.query_row(last, [], |row| row.get(0))).await?;
            let (publisher, subscription) = Subscription::new(1024);
            let (store, topic) = (Self(self.0.clone()), topic.to_owned());
            tokio::spawn(async move {
                let mut missed = false;
                while !publisher.is_closed() {
                    tokio::time::sleep(POLL).await;
                    let topic = topic.clone();
                    let found = store.run(move |database| {
                        let newer = "SELECT id, bytes FROM message WHERE topic = ?1 AND id > ?2 ORDER BY id LIMIT 100";
                        let mut newer = database.prepare(newer)?;
                        let rows = newer.query_map(params![topic, last], |row| Ok((row.get(0)?, row.get(1)?)))?;
                        rows.collect::<Result<Vec<(i64, Vec<u8>)>>>()
                    });
                    let Ok(found) = found.await else {
                        missed = true;
                        continue;
                    };
                    if std::mem::take(&mut missed) {
                        publisher.missed();
                    }
                    for (id, bytes) in found {
                        last = id;
                        if !publisher.send(bytes.into()) {
                            return;
                        }
                    }
                }
            });
            Ok(subscription)
        })
    }
}
