//! The store on Redis or Valkey, 6.2 or later, by the crate `redis`: one connection for everything, which is opened again
//! when it breaks. While there is none, every operation fails at once.

mod link;
mod target;
#[cfg_attr(not(feature = "redis-tls"), path = "no_tls.rs")]
mod tls;

use std::{
    fmt,
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};

use redis::{Cmd, FromRedisValue, RedisError, Script, ScriptInvocation};
use tokio::time::{error::Elapsed, timeout};

use self::{link::Link, target::Target};
use crate::core::store::{
    Append, Appended, Condition, LogEntry, LogPage, MAX_MESSAGES, MAX_POSITION, Shared, Stored, Subscription,
    Table, Take, Taken, Value, Write, Written,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long an operation may take.
const OPERATION: Duration = Duration::from_millis(1500);

static PUT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("put.lua")));
static REMOVE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("remove.lua")));
static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("take.lua")));
static APPEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("append.lua")));
static READ_AFTER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("read_after.lua")));

/// The store in a Redis or Valkey server, 6.2 or later, which the replicas of a server share.
///
/// It connects when the server begins to serve, and again whenever the connection breaks. Everything it keeps expires,
/// and what it keeps is sealed with the server's [keys](crate::config::Stores::keys).
///
/// ```no_run
/// use mcp_runtime::{prelude::*, store::Redis};
///
/// # fn main() -> mcp_runtime::Result<()> {
/// mcp_runtime::server!().discover().shared(Redis::at("redis://10.0.0.5")).run()
/// # }
/// ```
#[derive(Clone)]
pub struct Redis {
    target: Result<Arc<Target>, String>,
    /// Made when it is used for the first time.
    link: Arc<OnceLock<Link>>,
    prefix: String,
}

impl fmt::Debug for Redis {
    /// Without the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Redis {
    /// The server at a URL: `redis://user:password@host:6379/database`, or `unix:///path/to/socket`.
    ///
    /// With TLS it is `rediss://`, which needs the feature `redis-tls`. With sentinels it is
    /// `redis+sentinel://user:password@host:26379,host:26379/service/database`, where the user is that of Redis; that of the
    /// sentinels, if they have one, is in the parameters `sentinel_user` and `sentinel_password`. Clusters are not supported.
    ///
    /// Nothing is connected to yet. A URL that is something else is an error of
    /// [`build`](crate::ServerBuilder::build).
    #[must_use]
    pub fn at(url: impl AsRef<str>) -> Self {
        let target = Target::parse(url.as_ref()).map(Arc::new);
        Self { target, link: Arc::default(), prefix: "mcp".into() }
    }

    /// Sets what the names of all keys and channels begin with: `mcp` by default, followed by a colon.
    ///
    /// Servers of different names do not meet under one prefix. The user of Redis needs access to the keys and channels
    /// of that prefix only.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    fn link(&self) -> Result<&Link, Failure> {
        let target = self.target.as_ref().map_err(|error| Failure::from(error.as_str()))?;
        Ok(self.link.get_or_init(|| Link::new(target.clone())))
    }

    /// The keys of a table, which are in one slot of a cluster.
    fn keys(&self, table: &Table, key: &str) -> [String; 4] {
        let table = format!("{}:{{{}}}", self.prefix, table.name());
        [
            format!("{table}:value:{key}"),
            format!("{table}:expiry"),
            format!("{table}:entry"),
            format!("{table}:usage"),
        ]
    }

    /// The prefix of the keys of a table's logs: they are in one slot of a cluster.
    fn log_prefix(&self, table: &Table) -> String {
        format!("{}:{{{}}}:log", self.prefix, table.name())
    }

    fn channel(&self, topic: &str) -> String {
        format!("{}:topic:{topic}", self.prefix)
    }

    async fn command<T: FromRedisValue>(&self, command: Cmd) -> Result<T, Failure> {
        let link = self.link()?;
        let mut used = link.connection().await?;
        let answer = timeout(OPERATION, command.query_async(&mut used.connection)).await;
        check(link, used.generation, answer)
    }

    async fn script<T: FromRedisValue>(&self, invocation: ScriptInvocation<'_>) -> Result<T, Failure> {
        let link = self.link()?;
        let mut used = link.connection().await?;
        let answer = timeout(OPERATION, invocation.invoke_async(&mut used.connection)).await;
        check(link, used.generation, answer)
    }
}

/// Reports a connection that is of no use any more.
fn check<T>(
    link: &Link,
    generation: u64,
    answer: Result<Result<T, RedisError>, Elapsed>,
) -> Result<T, Failure> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            if matches!(error.code(), Some("MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN")) {
                return Err("Redis is a cluster, which is not supported".into());
            }
            if error.is_io_error() || error.is_unrecoverable_error() || is_of_replica(&error) {
                link.report_broken(generation);
            }
            Err(error.into())
        }
        Err(_) => {
            link.report_broken(generation);
            Err("Redis did not answer in time".into())
        }
    }
}

/// Whether the server has become a replica of another, as after a failover.
fn is_of_replica(error: &RedisError) -> bool {
    // before version 7, the error of a script contains that of its command as text
    let is_in_script = || error.detail().is_some_and(|detail| detail.contains("-READONLY "));
    matches!(error.code(), Some("READONLY" | "MASTERDOWN")) || is_in_script()
}

impl Shared for Redis {
    fn check(&self) -> Result<(), Failure> {
        self.target.as_ref().map(drop).map_err(|error| error.as_str().into())
    }

    fn is_connected(&self) -> Option<bool> {
        self.link.get().map(Link::is_connected)
    }

    fn open(&self) -> Stored<'_, ()> {
        Box::pin(async move { self.link()?.open().await })
    }

    fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
        Box::pin(async move {
            let [value, ..] = self.keys(table, key);
            let mut command = redis::cmd("HMGET");
            command.arg(value).arg("v").arg("n");
            let (bytes, version): (Option<Vec<u8>>, Option<u64>) = self.command(command).await?;
            Ok(bytes.zip(version).map(|(bytes, version)| Value { bytes, version }))
        })
    }

    fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
        Box::pin(async move {
            let Write { bytes, owner, expires_in, condition } = write;
            let condition = match condition {
                Condition::Always => -1,
                Condition::Absent => 0,
                Condition::Version(version) => i64::try_from(version)?,
            };
            let mut invocation = PUT.prepare_invoke();
            for name in self.keys(table, key) {
                invocation.key(name);
            }
            invocation.arg(key).arg(owner).arg(bytes).arg(ttl_of(expires_in)).arg(condition);
            invocation.arg(table.max_values()).arg(table.max_bytes());
            invocation.arg(table.max_values_of(owner)).arg(table.max_bytes_of(owner));
            match self.script::<u8>(invocation).await? {
                0 => Ok(Written::Stored),
                1 => Ok(Written::Conflict),
                _ => Ok(Written::Full),
            }
        })
    }

    fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
        Box::pin(async move {
            let mut invocation = REMOVE.prepare_invoke();
            for name in self.keys(table, key) {
                invocation.key(name);
            }
            invocation.arg(key);
            self.script(invocation).await
        })
    }

    fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
        Box::pin(async move {
            let Take { owner, rate, times } = take;
            let interval = u64::try_from(rate.interval().as_micros())?.max(1);
            let mut invocation = TAKE.prepare_invoke();
            let table_key = format!("{}:{{{}}}", self.prefix, table.name());
            invocation.key(format!("{table_key}:restored")).key(format!("{table_key}:owners"));
            invocation.arg(owner).arg(key);
            invocation.arg(interval * u64::from(rate.times())).arg(interval.saturating_mul(times.into()));
            invocation.arg(table.max_values()).arg(table.max_values_of(owner));
            match self.script::<i64>(invocation).await? {
                0 => Ok(Taken::Granted),
                wait => {
                    Ok(u64::try_from(wait)
                        .map_or(Taken::Full, |wait| Taken::Wait(Duration::from_micros(wait))))
                }
            }
        })
    }

    fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
        Box::pin(async move {
            let Append { position, bytes, owner, max_entries, max_bytes, expires_in } = append;
            if !(1..=MAX_POSITION).contains(&position) {
                return Err("the position is out of range".into());
            }
            let prefix = self.log_prefix(table);
            let mut invocation = APPEND.prepare_invoke();
            invocation.key(format!("{prefix}:{log}"));
            for part in ["expiry", "entry", "order", "bytes", "count", "usage"] {
                invocation.key(format!("{prefix}s:{part}"));
            }
            invocation.arg(log).arg(owner).arg(bytes).arg(ttl_of(expires_in)).arg(position);
            invocation.arg(max_entries).arg(max_bytes);
            invocation.arg(table.max_values()).arg(table.max_bytes());
            invocation.arg(table.max_values_of(owner)).arg(table.max_bytes_of(owner));
            invocation.arg(prefix);
            match self.script::<i64>(invocation).await? {
                0 => Ok(Appended::Stored),
                -1 => Ok(Appended::TooLarge),
                next => Ok(Appended::Conflict(u64::try_from(next)?)),
            }
        })
    }

    fn read_after<'a>(
        &'a self,
        table: &'a Table,
        log: &'a str,
        position: u64,
        limit: usize,
    ) -> Stored<'a, Option<LogPage>> {
        Box::pin(async move {
            let prefix = self.log_prefix(table);
            let mut invocation = READ_AFTER.prepare_invoke();
            invocation.key(format!("{prefix}:{log}")).key(format!("{prefix}s:entry"));
            invocation.arg(log).arg(position.min(MAX_POSITION)).arg(limit);
            let page: Option<(u64, u64, u64, Vec<Vec<u8>>)> = self.script(invocation).await?;
            let Some((first, last, from, entries)) = page else { return Ok(None) };
            let entries = (from..).zip(entries);
            let entries =
                entries.map(|(position, bytes)| LogEntry { position, bytes: bytes.into() }).collect();
            Ok(Some(LogPage { entries, first, last }))
        })
    }

    fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
        Box::pin(async move {
            let mut command = redis::cmd("PUBLISH");
            command.arg(self.channel(topic)).arg(message);
            self.command(command).await
        })
    }

    fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
        Box::pin(async move {
            let link = self.link()?;
            let (publisher, subscription) = Subscription::new(MAX_MESSAGES);
            link.subscribe(self.channel(topic), publisher).await?;
            Ok(subscription)
        })
    }
}

/// Milliseconds of a year and a day: longer than anything is kept.
const LONGEST_TTL: u64 = 366 * 24 * 60 * 60 * 1000;

/// Milliseconds after which something expires.
fn ttl_of(expires_in: Duration) -> u64 {
    u64::try_from(expires_in.as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST_TTL)
}
