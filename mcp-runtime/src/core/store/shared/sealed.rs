//! A store that replicas share, as their server uses it: it sees names as digests, and values that are sealed with the
//! server's keys for their name and version, so that they cannot be read, changed or moved. An operation fails within two
//! seconds.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout};

use super::{
    Append, Appended, Condition, Found, LogPage, Received, SealedStore, Shared, StoreError, Stored,
    Subscription, Table, Take, Taken, Value, Write, Written, rate::RateAsking,
};
use crate::core::{
    admission::Owner,
    crypto::{GENERATE, KeyRing, Seal, random_bytes},
    log_limit::{LogLimit, LogLine},
    store::server_store::StoreInner,
    sync::Mutex,
    unix_time::unix_millis,
};

/// Purpose of the key that seals values and messages.
const PURPOSE: &str = "mcp-runtime shared store 1";
/// How long an operation may take.
const OPERATION: Duration = Duration::from_millis(1900);
/// For how long the probe is kept, and after which time it is renewed: the store may lose it.
const PROBE: [Duration; 2] = [Duration::from_secs(30 * 24 * 60 * 60), Duration::from_secs(60)];
/// A topic to which nothing is published: its subscriber learns that the store was away.
const PROBE_TOPIC: &str = "keys";
/// By how much the clocks of replicas may differ without a warning.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(30);

/// How often a probe is written that other replicas write at the same time.
const PROBE_TRIES: u8 = 4;

/// The format of what is stored; others are of other versions of this crate.
const FORMAT: u8 = 1;

/// A store that replicas share, with the keys of their server.
pub(in crate::core::store) struct Sealing {
    backend: Arc<dyn Shared>,
    seal: Seal,
    keys: KeyRing,
    /// The prefix of the names of tables and topics.
    server: Box<str>,
    probed: Mutex<Option<Probed>>,
    /// To the topic of the probe.
    interruptions: Mutex<Option<Subscription>>,
    has_warned: AtomicBool,
    other_clocks: LogLimit,
    other_versions: LogLimit,
    /// Since when operations are answered.
    reached: Mutex<Option<Instant>>,
    /// Whether it is asked about rates.
    pub(super) rates: RateAsking,
    #[cfg(test)]
    is_other_version: AtomicBool,
}

/// A probe that was made.
#[derive(Clone, Copy)]
struct Probed {
    /// When it was, unless the store was away since then.
    at: Option<Instant>,
    /// Which keys the server had.
    generation: u64,
    since: u64,
}

/// What the probe says of the replicas that have its keys, in milliseconds since 1970.
#[derive(Clone, Copy)]
struct ProbeTimes {
    /// When the first of them began. This is known to replicas with other keys, too: when the store has lost its data, the
    /// ones that were there first are right.
    since: u64,
    /// When one of them wrote this last.
    written: u64,
}

impl ProbeTimes {
    const SINCE: usize = size_of::<u64>();

    fn to_bytes(self) -> [u8; 2 * Self::SINCE] {
        let mut bytes = [0; 2 * Self::SINCE];
        let (since, written) = bytes.split_at_mut(Self::SINCE);
        since.copy_from_slice(&self.since.to_le_bytes());
        written.copy_from_slice(&self.written.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (since, written) = bytes.split_at_checked(Self::SINCE)?;
        let time = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        Some(Self { since: time(since)?, written: time(written)? })
    }
}

impl SealedStore {
    /// The store that the replicas of a server share.
    pub(crate) fn shared(backend: Arc<dyn Shared>, keys: &KeyRing, server: &str) -> Self {
        let shared = Some(Sealing::new(backend, keys, server));
        Self(Arc::new(StoreInner { shared, ..StoreInner::default() }))
    }

    /// The store that replicas share.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn sealing(&self) -> Result<&Sealing, StoreError> {
        self.0.shared.as_ref().ok_or_else(|| "the server has no replicas".into())
    }

    /// Checks what does not depend on whether the store can be reached.
    ///
    /// # Errors
    /// The store is shared, and the server's key is random.
    #[cfg(feature = "http")]
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        Ok(self.0.shared.as_ref().map_or(Ok(()), Sealing::check_keys)?)
    }

    /// Connects, when the server begins to serve.
    ///
    /// # Errors
    /// The store refuses the server, or what replicas have in it is sealed with other keys. That it cannot be reached is
    /// not an error.
    pub(crate) async fn open(&self) -> Result<(), StoreError> {
        self.sealing()?.open().await
    }

    /// For how long operations were answered: zero if the last one was not, or the store was away since then.
    #[cfg(feature = "tasks")]
    pub(crate) fn reached_for(&self) -> Duration {
        let reached = self.0.shared.as_ref().and_then(|shared| *shared.reached.lock());
        reached.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Logs that something in a table cannot be read, at most once in a while.
    pub(crate) fn log_other_version(&self, table: &Table) {
        if let Some(shared) = &self.0.shared {
            shared.log_other_version(table);
        }
    }

    /// Appends an entry to a log, if that has the place for it, see [`Shared::append`].
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the entry was appended.
    pub(crate) async fn append(
        &self,
        table: &Table,
        log: &str,
        append: Append<'_>,
    ) -> Result<Appended, StoreError> {
        self.sealing()?.append(table, log, append).await
    }

    /// Reads entries of a log, see [`Shared::read_after`]. Those of another version are empty.
    ///
    /// # Errors
    /// The store cannot be read, or has entries that this server has not sealed for their place.
    pub(crate) async fn read_after(
        &self,
        table: &Table,
        log: &str,
        position: u64,
        limit: usize,
    ) -> Result<Option<LogPage>, StoreError> {
        self.sealing()?.read_after(table, log, position, limit).await
    }

    /// From now on, it is that of a server of another version of this crate.
    #[cfg(test)]
    pub(crate) fn become_other_version(&self) {
        self.sealing().unwrap().is_other_version.store(true, Ordering::Relaxed);
    }

    /// Whether something of another version was met a moment ago.
    #[cfg(test)]
    pub(crate) fn has_logged_other_version(&self) -> bool {
        self.sealing().unwrap().other_versions.line().is_none()
    }
}

impl Sealing {
    fn new(backend: Arc<dyn Shared>, keys: &KeyRing, server: &str) -> Self {
        Self {
            backend,
            seal: Seal::new(keys, PURPOSE),
            keys: keys.clone(),
            server: plain_name(server).into(),
            probed: Mutex::default(),
            interruptions: Mutex::default(),
            has_warned: AtomicBool::new(false),
            other_clocks: LogLimit::new(),
            other_versions: LogLimit::new(),
            reached: Mutex::default(),
            rates: RateAsking::default(),
            #[cfg(test)]
            is_other_version: AtomicBool::new(false),
        }
    }

    /// Checks that what replicas have in the store is sealed with the keys of this one, unless that was done. A store that
    /// was away may have lost it, and be filled by replicas with other keys: if these began later, they are wrong.
    async fn probe(&self) -> Result<(), ProbeError> {
        let generation = self.seal.generation();
        let known = {
            let mut probed = self.probed.lock();
            let was_interrupted = self.was_interrupted();
            let known = probed.as_mut().filter(|known| known.generation == generation);
            if let Some(known) = known {
                if !was_interrupted && known.at.is_some_and(|at| at.elapsed() < PROBE[1]) {
                    return Ok(());
                }
                // one of the operations that run now is enough
                known.at = known.at.map(|_| Instant::now());
                Some(known.since)
            } else {
                None
            }
        };
        let renewed = self.renew_probe(known).await;
        let at = renewed.is_ok().then(Instant::now);
        let since = renewed.as_ref().ok().copied().or(known);
        *self.probed.lock() = since.map(|since| Probed { at, generation, since });
        renewed.map(drop)
    }

    /// Reads the probe, and writes it again. `since` is when replicas with these keys began, where that is known; the same
    /// is returned.
    async fn renew_probe(&self, mut since: Option<u64>) -> Result<u64, ProbeError> {
        let unreachable = ProbeError::Unreachable;
        if self.interruptions.lock().is_none() {
            let topic = self.topic(PROBE_TOPIC);
            let subscribed = limited(self.backend.subscribe(&topic)).await.map_err(unreachable)?;
            *self.interruptions.lock() = Some(subscribed);
        }
        let (table, key) = self.names(&Table::new("keys", 1, 1024, 100), "probe");
        let now = unix_millis(SystemTime::now());
        let mut tries = PROBE_TRIES;
        loop {
            let found = limited(self.backend.get(&table, &key)).await.map_err(unreachable)?;
            let opened = found.as_ref().map(|found| self.open_probe(&table, &key, &found.bytes));
            match &opened {
                None => {}
                Some(Ok(times)) => {
                    self.check_clock(times.written, now);
                    since = Some(since.map_or(times.since, |since| since.min(times.since)));
                }
                Some(Err(theirs)) if since.is_some_and(|since| since < *theirs) => {}
                Some(Err(_)) => return Err(ProbeError::OtherKeys),
            }
            let times = ProbeTimes { since: since.unwrap_or(now), written: now };
            if tries == 0 && matches!(opened, Some(Ok(_))) {
                // many renew it at once, and these keys open it
                return Ok(times.since);
            }
            tries = tries.saturating_sub(1);
            let condition = found.map_or(Condition::Absent, |found| Condition::Version(found.version));
            let bytes = self.seal_probe(&table, &key, times).map_err(unreachable)?;
            let write = Write { bytes: &bytes, owner: "local", expires_in: PROBE[0], condition };
            // a conflict is another replica, which may have other keys
            if limited(self.backend.put(&table, &key, write)).await.map_err(unreachable)? != Written::Conflict
            {
                return Ok(times.since);
            }
        }
    }

    /// Whether the store was away since this was asked last.
    fn was_interrupted(&self) -> bool {
        self.interruptions.lock().as_mut().is_some_and(Subscription::has_missed)
    }

    /// The value of the probe. It is sealed for the same version each time, with the first of the keys, since the one that
    /// had sealed it may go.
    fn seal_probe(&self, table: &Table, key: &str, times: ProbeTimes) -> Result<Vec<u8>, StoreError> {
        let sealed = self.seal(table.name(), key, 1, &times.to_bytes())?;
        Ok([&times.since.to_le_bytes()[..], &sealed].concat())
    }

    /// Opens the value of the probe.
    ///
    /// # Errors
    /// Replicas with other keys have sealed it; since when they are there.
    fn open_probe(&self, table: &Table, key: &str, bytes: &[u8]) -> Result<ProbeTimes, u64> {
        let (since, sealed) = bytes.split_at_checked(ProbeTimes::SINCE).unwrap_or_default();
        let opened = self.open_bytes(table.name(), key, 1, sealed.to_vec());
        let opened = opened.and_then(|opened| ProbeTimes::from_bytes(opened.get(1..)?));
        opened.ok_or_else(|| since.try_into().map_or(0, u64::from_le_bytes))
    }

    /// Warns if another replica has written at a time that has not come yet.
    fn check_clock(&self, written: u64, now: u64) {
        let ahead = Duration::from_millis(written.saturating_sub(now));
        if ahead > CLOCK_DIFFERENCE
            && let Some(LogLine { suppressed }) = self.other_clocks.line()
        {
            tracing::warn!(
                suppressed,
                "the clock of this replica is {} s behind that of another one: what the others keep may expire here \
                 too late, and what this one keeps may be gone there\n\
                 synchronize the clocks of all replicas",
                ahead.as_secs()
            );
        }
    }

    /// Checks that the store may be used.
    async fn ready(&self) -> Result<(), StoreError> {
        self.check_keys()?;
        self.probe().await.map_err(|error| {
            if matches!(error, ProbeError::OtherKeys) && !self.has_warned.swap(true, Ordering::Relaxed) {
                tracing::error!("{error}");
            }
            error.into()
        })
    }
}

impl Sealing {
    /// Checks what does not depend on whether the store can be reached.
    ///
    /// # Errors
    /// The server's key is random.
    fn check_keys(&self) -> Result<(), String> {
        match self.keys.is_random() {
            false => Ok(()),
            true => Err(format!(
                "the server shares a store with its replicas, and has no keys to seal what it keeps there\n\
                 set them with `.stores(|stores| stores.keys_from_env())` and `MCP_SERVER_KEYS`; {GENERATE}"
            )),
        }
    }
}

impl Sealing {
    /// Connects, when the server begins to serve. That the store cannot be reached is not an error.
    async fn open(&self) -> Result<(), StoreError> {
        self.check_keys()?;
        self.backend.open().await?;
        match self.probe().await {
            Err(ProbeError::OtherKeys) => Err(ProbeError::OtherKeys.into()),
            Err(ProbeError::Unreachable(error)) => {
                tracing::warn!(%error, "the server starts without its shared store, which cannot be reached");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Fails as well if the store has something there that the server has not sealed for it.
    pub(in crate::core::store) async fn find(&self, table: &Table, key: &str) -> Result<Found, StoreError> {
        let Some(Value { bytes, version }) = self.note(self.get(table, key).await)? else {
            return Ok(Found::Nothing);
        };
        Ok(match self.unformatted(&bytes) {
            Some(bytes) => Found::Value(Value { bytes: bytes.to_vec(), version }),
            None => {
                self.log_other_version(table);
                Found::OtherVersion
            }
        })
    }

    async fn get(&self, table: &Table, key: &str) -> Result<Option<Value>, StoreError> {
        self.ready().await?;
        let (table, key) = self.names(table, key);
        let Some(found) = limited(self.backend.get(&table, &key)).await? else { return Ok(None) };
        let bytes = self.open_bytes(table.name(), &key, found.version, found.bytes);
        let bytes = bytes.ok_or("a value of the shared store was not sealed by this server")?;
        Ok(Some(Value { bytes, version: found.version }))
    }

    pub(in crate::core::store) async fn put(
        &self,
        table: &Table,
        key: &str,
        write: Write<'_>,
    ) -> Result<Written, StoreError> {
        let put = async {
            self.ready().await?;
            let (table, key) = self.names(table, key);
            let sealed = self.seal(table.name(), &key, write.condition.next_version(), write.bytes)?;
            let owner = owner_digest(write.owner);
            let write = Write { bytes: &sealed, owner: &owner, ..write };
            limited(self.backend.put(&table, &key, write)).await
        };
        self.note(put.await)
    }

    pub(in crate::core::store) async fn remove(&self, table: &Table, key: &str) -> Result<(), StoreError> {
        self.ready().await?;
        let (table, key) = self.names(table, key);
        limited(self.backend.remove(&table, &key)).await
    }

    /// Takes from the rest of a rate, see [`Shared::take`]. The rest is not secret, and not sealed.
    pub(super) async fn take(&self, table: &Table, take: Take<'_>) -> Result<Taken, StoreError> {
        self.ready().await?;
        let table = table.renamed(&format!("{}/{}", self.server, table.name()));
        let owner = owner_digest(take.owner);
        // an owner has one rate in a table
        limited(self.backend.take(&table, "", Take { owner: &owner, ..take })).await
    }

    /// The store cannot move the entry to another place, or to another log.
    async fn append(&self, table: &Table, log: &str, append: Append<'_>) -> Result<Appended, StoreError> {
        self.ready().await?;
        let (table, log) = self.log_names(table, log);
        let sealed = self.seal(table.name(), &log, append.position, append.bytes)?;
        let owner = owner_digest(append.owner);
        let append = Append { bytes: &sealed, owner: &owner, ..append };
        limited(self.backend.append(&table, &log, append)).await
    }

    /// Fails as well if the log has entries that this server has not sealed for their place.
    async fn read_after(
        &self,
        table: &Table,
        log: &str,
        position: u64,
        limit: usize,
    ) -> Result<Option<LogPage>, StoreError> {
        self.ready().await?;
        let (names, log) = self.log_names(table, log);
        let page = limited(self.backend.read_after(&names, &log, position, limit)).await?;
        let Some(mut page) = page else { return Ok(None) };
        let from = page.first.max(position.saturating_add(1));
        for (expected, entry) in (from..).zip(&mut page.entries) {
            let opened = self.open_bytes(names.name(), &log, entry.position, entry.bytes.to_vec());
            let opened = opened
                .filter(|_| entry.position == expected)
                .ok_or("an entry of the shared store was not sealed by this server for its place")?;
            entry.bytes = match self.unformatted(&opened) {
                Some(bytes) => bytes.into(),
                None => {
                    self.log_other_version(table);
                    Arc::default()
                }
            };
        }
        Ok(Some(page))
    }

    /// Sends a message to all replicas.
    pub(super) async fn publish(&self, topic: &str, message: &[u8]) -> Result<(), StoreError> {
        self.ready().await?;
        let topic = self.topic(topic);
        let sealed = self.seal(&topic, "", 0, message)?;
        limited(self.backend.publish(&topic, &sealed)).await
    }

    /// Receives the messages of all replicas, which [`open_message`](Self::open_message) opens.
    pub(super) async fn subscribe(&self, topic: &str) -> Result<Subscription, StoreError> {
        limited(self.backend.subscribe(&self.topic(topic))).await
    }

    /// Opens a message of a topic. What one of another version of this crate says cannot be read; one that was not sealed by
    /// this server is ignored.
    pub(super) fn open_message(&self, topic: &str, sealed: &[u8]) -> Option<Received> {
        let Some(message) = self.open_bytes(&self.topic(topic), "", 0, sealed.to_vec()) else {
            tracing::debug!("a message that was not sealed by this server is ignored");
            return None;
        };
        let message = self.unformatted(&message);
        Some(message.map_or(Received::Missed, |message| Received::Message(message.into())))
    }

    /// Records whether an operation was answered.
    fn note<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let mut reached = self.reached.lock();
        match &answer {
            Ok(_) => _ = reached.get_or_insert_with(Instant::now),
            Err(_) => *reached = None,
        }
        answer
    }

    /// Records that the store was away.
    pub(super) fn note_loss(&self) {
        *self.reached.lock() = None;
    }

    fn log_other_version(&self, table: &Table) {
        if let Some(LogLine { suppressed }) = self.other_versions.line() {
            let table = table.name();
            tracing::warn!(
                table,
                suppressed,
                "ignoring a value that another version of this crate wrote to the shared store"
            );
        }
    }

    fn format(&self) -> u8 {
        #[cfg(test)]
        if self.is_other_version.load(Ordering::Relaxed) {
            return FORMAT + 1;
        }
        FORMAT
    }

    /// What was stored; `None` if that was done by another version of this crate.
    fn unformatted<'a>(&self, stored: &'a [u8]) -> Option<&'a [u8]> {
        stored.split_first().filter(|(format, _)| **format == self.format()).map(|(_, bytes)| bytes)
    }
}

/// Why a probe has failed.
#[derive(Debug)]
enum ProbeError {
    OtherKeys,
    Unreachable(StoreError),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherKeys => f.write_str(
                "the replicas that share the store have other keys\n\
                 give every replica of a server the same keys, or another server another name or prefix",
            ),
            Self::Unreachable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProbeError {}

/// Runs an operation for as long as it may take.
async fn limited<T>(operation: Stored<'_, T>) -> Result<T, StoreError> {
    match timeout(OPERATION, operation).await {
        Ok(outcome) => outcome,
        Err(_) => Err("the shared store does not answer".into()),
    }
}

impl Sealing {
    /// The names of a table and of a key as the store gets to know them. Keys may be secrets, such as ids of tasks.
    fn names(&self, table: &Table, key: &str) -> (Table, String) {
        let table = table.renamed(&format!("{}/{}", self.server, table.name()));
        let key = digest(&[table.name(), key], 24);
        (table, key)
    }

    /// The names of a table of logs and of a log as the store gets to know them. Entries are not values: their table has
    /// another name than one of values would.
    fn log_names(&self, table: &Table, log: &str) -> (Table, String) {
        let (mut table, log) = self.names(table, log);
        table = table.renamed(&format!("log/{}", table.name()));
        (table, log)
    }

    /// A topic as the store gets to know it.
    fn topic(&self, topic: &str) -> String {
        format!("{}/{topic}", self.server)
    }

    /// Seals bytes, and what tells their format, for their place.
    fn seal(&self, place: &str, key: &str, version: u64, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        let formatted = [&[self.format()][..], bytes].concat();
        let sealed = self.seal.seal_raw(random_bytes()?, &formatted, &bound(place, key, version));
        sealed.map_err(|_| "a value cannot be sealed".into())
    }

    fn open_bytes(&self, place: &str, key: &str, version: u64, sealed: Vec<u8>) -> Option<Vec<u8>> {
        self.seal.open_bytes(sealed, &bound(place, key, version)).map(|opened| opened.plain)
    }
}

/// A name of letters and digits; of a name that has others, what tells it apart is appended.
pub(super) fn plain_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    if plain == name { plain } else { format!("{plain}-{}", digest(&[name], 6)) }
}

fn digest(parts: &[&str], bytes: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let hash = hash.finalize();
    URL_SAFE_NO_PAD.encode(hash.get(..bytes).unwrap_or(&hash))
}

/// The data that a value is bound to.
fn bound(table: &str, key: &str, version: u64) -> Vec<u8> {
    let mut bound = version.to_le_bytes().to_vec();
    for part in [table, key] {
        bound.extend((part.len() as u64).to_le_bytes());
        bound.extend(part.as_bytes());
    }
    bound
}

/// An owner as a shared store gets to know it: neither an address nor a principal.
fn owner_digest(owner: &str) -> String {
    // the only owner has all of a table, by its name
    if owner == Owner::local().as_str().as_ref() { owner.into() } else { digest(&["owner", owner], 12) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::{join, sync::Barrier};

    use super::*;
    use crate::core::{
        crypto::{Key, test_key},
        store::{Found, Memory, SealedStore},
    };

    /// A store in memory whose first readers have each read before one of them writes.
    struct Simultaneous {
        memory: Memory,
        readers: Barrier,
        reads: AtomicUsize,
    }

    impl Simultaneous {
        const READERS: usize = 2;

        fn new() -> Self {
            let readers = Barrier::new(Self::READERS);
            Self { memory: Memory::default(), readers, reads: AtomicUsize::new(0) }
        }
    }

    impl Shared for Simultaneous {
        fn get<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, Option<Value>> {
            Box::pin(async move {
                let found = self.memory.get(table, key).await;
                if self.reads.fetch_add(1, Ordering::Relaxed) < Self::READERS {
                    self.readers.wait().await;
                }
                found
            })
        }

        fn put<'a>(&'a self, table: &'a Table, key: &'a str, write: Write<'a>) -> Stored<'a, Written> {
            Box::pin(async move { self.memory.put(table, key, write).await })
        }

        fn remove<'a>(&'a self, table: &'a Table, key: &'a str) -> Stored<'a, ()> {
            self.memory.remove(table, key)
        }

        fn take<'a>(&'a self, table: &'a Table, key: &'a str, take: Take<'a>) -> Stored<'a, Taken> {
            self.memory.take(table, key, take)
        }

        fn append<'a>(&'a self, table: &'a Table, log: &'a str, append: Append<'a>) -> Stored<'a, Appended> {
            self.memory.append(table, log, append)
        }

        fn read_after<'a>(
            &'a self,
            table: &'a Table,
            log: &'a str,
            position: u64,
            limit: usize,
        ) -> Stored<'a, Option<LogPage>> {
            self.memory.read_after(table, log, position, limit)
        }

        fn publish<'a>(&'a self, topic: &'a str, message: &'a [u8]) -> Stored<'a, ()> {
            self.memory.publish(topic, message)
        }

        fn subscribe<'a>(&'a self, topic: &'a str) -> Stored<'a, Subscription> {
            self.memory.subscribe(topic)
        }
    }

    #[tokio::test]
    async fn of_two_replicas_with_different_keys_that_start_at_once_on_an_empty_store_one_starts() {
        for (keys, expected) in [([1, 2], 1), ([1, 1], 2)] {
            let backend: Arc<dyn Shared> = Arc::new(Simultaneous::new());
            let [one, two] = keys.map(|key| {
                SealedStore::shared(backend.clone(), &KeyRing::new(vec![Key::new(test_key(key))]), "test")
            });
            let (first, second) = join!(one.open(), two.open());
            let started = [first.is_ok(), second.is_ok()].into_iter().filter(|is_ok| *is_ok).count();
            assert_eq!(started, expected, "{first:?} {second:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_store_has_lost_its_data_the_replicas_that_were_there_are_right() {
        for is_restarted in [true, false] {
            let memory = Memory::default();
            let replica = |key| {
                let keys = KeyRing::new(vec![Key::new(test_key(key))]);
                SealedStore::shared(Arc::new(memory.clone()), &keys, "test")
            };
            let uses = async |store: &SealedStore| store.find(&Table::new("values", 10, 10, 50), "a").await;
            let (right, wrong) = (replica(1), replica(2));
            right.open().await.unwrap();
            assert!(wrong.open().await.is_err());
            // the clock of the process cannot be paused
            std::thread::sleep(Duration::from_millis(5));
            memory.forget(is_restarted);
            wrong.open().await.expect("no one else is there yet");
            if !is_restarted {
                tokio::time::advance(PROBE[1]).await;
            }
            uses(&right).await.expect("its keys were right");
            replica(1).open().await.expect("as one that starts again");
            assert!(replica(2).open().await.is_err());
            tokio::time::advance(PROBE[1]).await;
            assert!(uses(&wrong).await.is_err());
            uses(&right).await.unwrap();
            // those with the right keys come first
            memory.forget(is_restarted);
            tokio::time::advance(PROBE[1]).await;
            uses(&right).await.unwrap();
            assert!(replica(2).open().await.is_err() && uses(&wrong).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_replica_whose_clock_is_behind_says_so() {
        let keys = KeyRing::new(vec![Key::new(test_key(1))]);
        for (seconds, warns) in [(0, false), (10, false), (24 * 60 * 60, true)] {
            let memory = Memory::default();
            let this = Sealing::new(Arc::new(memory.clone()), &keys, "test");
            let (table, key) = this.names(&Table::new("keys", 1, 1024, 100), "probe");
            let times = ProbeTimes {
                since: unix_millis(SystemTime::now()),
                written: unix_millis(SystemTime::now()) + seconds * 1000,
            };
            let bytes = this.seal_probe(&table, &key, times).unwrap();
            let expires_in = Duration::from_secs(60);
            let write = Write { bytes: &bytes, owner: "local", expires_in, condition: Condition::Absent };
            memory.put(&table, &key, write).await.unwrap();
            this.open().await.unwrap();
            assert_eq!(this.other_clocks.line().is_none(), warns, "{seconds}");
        }
    }

    fn append(position: u64, bytes: &[u8]) -> Append<'_> {
        let expires_in = Duration::from_secs(60);
        Append { position, bytes, owner: "ada", max_entries: 10, max_bytes: 1000, expires_in }
    }

    async fn texts(store: &SealedStore, table: &Table, log: &str) -> Option<Vec<String>> {
        let page = store.read_after(table, log, 0, 10).await.ok()??;
        Some(page.entries.iter().map(|entry| String::from_utf8_lossy(&entry.bytes).into_owned()).collect())
    }

    #[tokio::test]
    async fn values_and_entries_of_another_version_are_there_and_are_not_read_and_the_log_says_so() {
        let (memory, keys) = (Memory::default(), KeyRing::new(vec![Key::new(test_key(1))]));
        let other = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        other.become_other_version();
        let this = SealedStore::shared(Arc::new(memory.clone()), &keys, "test");
        let table = Table::new("values", 10, 10_000, 50);
        let write = Write {
            bytes: b"text",
            owner: "ada",
            expires_in: Duration::from_secs(60),
            condition: Condition::Absent,
        };
        for (writer, reader) in [(&other, &this), (&this, &other)] {
            assert_eq!(writer.put(&table, "a", write).await.unwrap(), Written::Stored);
            assert!(matches!(writer.find(&table, "a").await.unwrap(), Found::Value(_)));
            assert!(!reader.has_logged_other_version());
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(20)).await;
            tokio::time::resume();
            assert!(matches!(reader.find(&table, "a").await.unwrap(), Found::OtherVersion));
            assert!(reader.has_logged_other_version());
            // nothing that is there is taken for absent
            assert_eq!(reader.put(&table, "a", write).await.unwrap(), Written::Conflict);
            writer.remove(&table, "a").await.unwrap();
            assert!(matches!(reader.find(&table, "a").await.unwrap(), Found::Nothing));
        }
        other.append(&table, "log", append(1, b"one")).await.unwrap();
        this.append(&table, "log", append(2, b"two")).await.unwrap();
        assert_eq!(texts(&this, &table, "log").await.unwrap(), ["", "two"]);
        assert_eq!(texts(&other, &table, "log").await.unwrap(), ["one", ""]);
    }

    #[tokio::test]
    async fn a_writer_of_the_store_can_neither_read_nor_move_nor_swap_the_entries_of_logs() {
        let memory = Arc::new(Memory::default());
        let keys = KeyRing::new(vec![Key::new(test_key(1))]);
        let store = SealedStore::shared(memory.clone(), &keys, "test");
        let table = Table::new("logs", 10, 10_000, 50);
        for (log, position, text) in [("a", 1, "secret one"), ("a", 2, "secret two"), ("b", 1, "other")] {
            let appended = store.append(&table, log, append(position, text.as_bytes())).await.unwrap();
            assert_eq!(appended, Appended::Stored);
        }
        assert_eq!(texts(&store, &table, "a").await.unwrap(), ["secret one", "secret two"]);
        let sealing = Sealing::new(memory.clone(), &keys, "test");
        let ((names, a), (_, b)) = (sealing.log_names(&table, "a"), sealing.log_names(&table, "b"));
        let of = async |log: &str| memory.read_after(&names, log, 0, 10).await.unwrap().unwrap().entries;
        let (of_a, of_b) = (of(&a).await, of(&b).await);
        for entry in of_a.iter().chain(&of_b) {
            assert!(!String::from_utf8_lossy(&entry.bytes).contains("secret"));
        }
        // as another server would see logs that were written anew
        let forge = async |entries: &[&Arc<[u8]>]| {
            let forged = Arc::new(Memory::default());
            for (position, bytes) in (1..).zip(entries) {
                forged.append(&names, &a, append(position, bytes)).await.unwrap();
            }
            let other = SealedStore::shared(forged, &keys, "test");
            texts(&other, &table, "a").await
        };
        let (one, two, other) = (&of_a[0].bytes, &of_a[1].bytes, &of_b[0].bytes);
        assert!(forge(&[one, two]).await.is_some());
        for moved in [[two, one], [one, one], [other, two], [one, other]] {
            assert_eq!(forge(&moved).await, None);
        }
        let mut changed = one.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(forge(&[&changed.into()]).await, None);
    }
}
