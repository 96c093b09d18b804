//! The store in an SQLite file. Each operation is one transaction.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use mcp_runtime::store::{
    Append, Appended, Condition, LogEntry, LogPage, Shared, Stored, Subscription, Table, Take, Taken, Value,
    Write, Written,
};
use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

/// How often to look for messages of other processes.
const POLL: Duration = Duration::from_millis(20);
/// How long messages are kept, in milliseconds.
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
             CREATE TABLE IF NOT EXISTS log (
                 id INTEGER PRIMARY KEY AUTOINCREMENT, tab TEXT, log TEXT, position INTEGER, bytes BLOB, owner TEXT,
                 expires INTEGER);
             CREATE UNIQUE INDEX IF NOT EXISTS log_position ON log (tab, log, position);
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

/// The number of values, and their total bytes.
fn used(database: &Connection, table: &str, owner: Option<&str>, except: &str) -> Result<(i64, i64)> {
    database.query_row(
        "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM kept
         WHERE tab = ?1 AND key <> ?2 AND (?3 IS NULL OR owner = ?3)",
        params![table, except, owner],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// The oldest and the newest position of a log, how many bytes its entries have, and its owner.
fn find_log(database: &Connection, table: &str, log: &str) -> Result<Option<(i64, i64, i64, String)>> {
    let found = "SELECT min(position), max(position), sum(length(bytes)), min(owner) FROM log
                 WHERE tab = ?1 AND log = ?2 AND expires > ?3 HAVING count(*) > 0";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    database.query_row(found, params![table, log, now()], read).optional()
}

/// Removes entries until all limits hold: those of an owner above its limit, or of the largest owner if the total is too
/// much. It removes the owner's log that has gone longest without an entry, except this one; if it is the only log, its
/// oldest entries.
fn evict(database: &Connection, table: &Table, log: &str, owner: &str) -> Result<()> {
    let name = table.name();
    let used = |owner: Option<&str>| {
        database.query_row(
            "SELECT count(DISTINCT log), coalesce(sum(length(bytes)), 0) FROM log
             WHERE tab = ?1 AND (?2 IS NULL OR owner = ?2)",
            params![name, owner],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )
    };
    let most = |of: &str| {
        let most = format!("SELECT owner FROM log WHERE tab = ?1 GROUP BY owner ORDER BY {of} DESC LIMIT 1");
        database.query_row(&most, [name], |row| row.get::<_, String>(0))
    };
    loop {
        let (own_logs, own_bytes) = used(Some(owner))?;
        let (logs, bytes) = used(None)?;
        let (of, by_count) = if own_logs > limit(table.max_values_of(owner)) {
            (owner.to_owned(), true)
        } else if own_bytes > limit(table.max_bytes_of(owner)) {
            (owner.to_owned(), false)
        } else if bytes > limit(table.max_bytes()) {
            (most("sum(length(bytes))")?, false)
        } else if logs > limit(table.max_values()) {
            (most("count(DISTINCT log)")?, true)
        } else {
            return Ok(());
        };
        let own = "SELECT log FROM log WHERE tab = ?1 AND owner = ?2 GROUP BY log ORDER BY max(id) LIMIT 2";
        let own: Vec<String> =
            database.prepare(own)?.query_map(params![name, of], |row| row.get(0))?.collect::<Result<_>>()?;
        if let ([only], false) = (&*own, by_count)
            && drop_first(database, name, only)?
        {
            continue;
        }
        let Some(other) = own.iter().find(|other| *other != log) else { return Ok(()) };
        database.execute("DELETE FROM log WHERE tab = ?1 AND log = ?2", params![name, other])?;
    }
}

/// Removes the oldest entry of a log, unless it is the only one.
fn drop_first(database: &Connection, table: &str, log: &str) -> Result<bool> {
    let first = "DELETE FROM log WHERE id = (SELECT min(id) FROM log WHERE tab = ?1 AND log = ?2 HAVING count(*) > 1)";
    Ok(database.execute(first, params![table, log])? > 0)
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

    fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
        let (table, log, bytes) = (table.clone(), log.to_owned(), append.bytes.to_vec());
        let Append { position, max_entries, max_bytes, .. } = append;
        let owner = append.owner.to_owned();
        let time = i64::try_from(append.expires_in.as_millis()).unwrap_or(i64::MAX);
        self.run(move |database| {
            let (name, now) = (table.name(), now());
            database.execute("DELETE FROM log WHERE expires <= ?1", [now])?;
            let position = i64::try_from(position).unwrap_or(i64::MAX);
            let found = find_log(database, name, &log)?;
            if let Some((_, last, ..)) = found
                && last.checked_add(1) != Some(position)
            {
                return Ok(Appended::Conflict(last.unsigned_abs() + 1));
            }
            let owner = found.map_or(owner, |(.., owner)| owner);
            let most = max_bytes.min(table.max_bytes()).min(table.max_bytes_of(&owner));
            if bytes.len() > most || table.max_values().min(table.max_values_of(&owner)) == 0 {
                return Ok(Appended::TooLarge);
            }
            let add =
                "INSERT INTO log (tab, log, position, bytes, owner, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let expires = now.saturating_add(time);
            database.execute(add, params![name, log, position, bytes, owner, expires])?;
            let renew = "UPDATE log SET expires = ?3 WHERE tab = ?1 AND log = ?2";
            database.execute(renew, params![name, log, expires])?;
            while let Some((first, last, bytes, _)) = find_log(database, name, &log)?
                && (last - first >= limit(max_entries) || bytes > limit(max_bytes))
                && drop_first(database, name, &log)?
            {}
            evict(database, &table, &log, &owner)?;
            Ok(Appended::Stored)
        })
    }

    fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        most: usize,
    ) -> Stored<'a, Option<LogPage>> {
        let (table, log) = (table.name().to_owned(), log.to_owned());
        self.run(move |database| {
            let Some((first, last, ..)) = find_log(database, &table, &log)? else { return Ok(None) };
            let later = "SELECT position, bytes FROM log WHERE tab = ?1 AND log = ?2 AND position > ?3
                         ORDER BY position LIMIT ?4";
            let mut later = database.prepare(later)?;
            let after = i64::try_from(position).unwrap_or(i64::MAX);
            let read = |row: &rusqlite::Row<'_>| {
                let bytes: Vec<u8> = row.get(1)?;
                Ok(LogEntry { position: row.get::<_, i64>(0)?.unsigned_abs(), bytes: bytes.into() })
            };
            let entries =
                later.query_map(params![table, log, after, limit(most)], read)?.collect::<Result<_>>()?;
            Ok(Some(LogPage { entries, first: first.unsigned_abs(), last: last.unsigned_abs() }))
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
