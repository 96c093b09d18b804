//! What the server itself uses: a store in memory, or one that replicas share. A shared one sees names as digests, and
//! values that are sealed with the server's keys for their name and version: they cannot be read, changed or moved. An
//! operation fails within two seconds.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout};

use super::{
    Append, Appended, Condition, LogPage, Memory, Stored,
    shared::{Received, Shared, Subscription, Table, Take, Taken, Value, Write, Written},
};
use crate::core::{
    admission::{Owner, Rate},
    crypto::{GENERATE, KeyRing, Seal},
    sync::Mutex,
};

pub(crate) type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// Purpose of the key that seals values and messages.
const PURPOSE: &str = "mcp-runtime shared store 1";
/// The format of what is sealed; others are of other versions of this crate.
const FORMAT: u8 = 1;
/// How long an operation may take.
const OPERATION: Duration = Duration::from_millis(1900);
/// For how long the probe is kept, and after which time it is renewed.
const PROBE: [Duration; 2] = [Duration::from_secs(30 * 24 * 60 * 60), Duration::from_secs(60 * 60)];

/// The store of one server; clones are the same.
#[derive(Clone)]
pub(crate) struct SealedStore {
    /// Made when something is first kept there, so that a program that keeps nothing does not contain it.
    memory: Arc<OnceLock<Memory>>,
    /// Absent in memory.
    sealing: Option<Arc<Sealing>>,
}

struct Sealing {
    backend: Arc<dyn Shared>,
    seal: Seal,
    keys: KeyRing,
    /// What the names of tables and topics begin with.
    server: Box<str>,
    /// When a value in the store was last found to be sealed with these keys, and which these were.
    probed: Mutex<Option<(Instant, u64)>>,
    has_warned: AtomicBool,
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedStore").field("is_shared", &self.is_shared()).finish_non_exhaustive()
    }
}

impl SealedStore {
    pub(crate) fn in_memory() -> Self {
        Self { memory: Arc::default(), sealing: None }
    }

    /// Of the replicas of a server.
    pub(crate) fn shared(backend: Arc<dyn Shared>, keys: &KeyRing, server: &str) -> Self {
        let sealing = Sealing {
            backend,
            seal: Seal::new(keys, PURPOSE),
            keys: keys.clone(),
            server: plain_name(server).into(),
            probed: Mutex::default(),
            has_warned: AtomicBool::new(false),
        };
        Self { memory: Arc::default(), sealing: Some(Arc::new(sealing)) }
    }

    fn memory(&self) -> &Memory {
        self.memory.get_or_init(Memory::default)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.sealing.is_some()
    }

    /// Checks what does not depend on whether the store can be reached.
    ///
    /// # Errors
    /// The store is shared, and the server's key is random.
    pub(crate) fn check_keys(&self) -> Result<(), String> {
        match &self.sealing {
            Some(sealing) if sealing.keys.is_random() => Err(format!(
                "the server shares a store with its replicas, and has no keys to seal what it keeps there\n\
                 set them with `.stores(|stores| stores.keys_from_env())` and `MCP_SERVER_KEYS`; {GENERATE}"
            )),
            _ => Ok(()),
        }
    }

    /// Connects, when the server begins to serve.
    ///
    /// # Errors
    /// The store refuses the server, or what replicas have in it is sealed with other keys. That it cannot be reached is
    /// not an error.
    pub(crate) async fn open(&self) -> Result<(), StoreError> {
        let Some(sealing) = &self.sealing else { return Ok(()) };
        self.check_keys()?;
        sealing.backend.open().await?;
        match self.probe(sealing).await {
            Err(ProbeError::OtherKeys) => Err(ProbeError::OtherKeys.into()),
            Err(ProbeError::Unreachable(error)) => {
                tracing::warn!(%error, "the server starts without its shared store, which cannot be reached");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Checks that what replicas have in the store is sealed with the keys of this one, unless that was done.
    async fn probe(&self, sealing: &Sealing) -> Result<(), ProbeError> {
        let [kept, renewed] = PROBE;
        let generation = sealing.seal.generation();
        let is_known = |(at, known): (Instant, u64)| known == generation && at.elapsed() < renewed;
        if sealing.probed.lock().is_some_and(is_known) {
            return Ok(());
        }
        let (table, key) = sealing.names(&Table::new("keys", 1, 1024, 100), "probe");
        let unreachable = ProbeError::Unreachable;
        let found = limited(sealing.backend.get(&table, &key)).await.map_err(unreachable)?;
        // any version: it is the same each time
        if found.is_some_and(|found| sealing.open(&table, &key, 1, &found.bytes).is_none()) {
            return Err(ProbeError::OtherKeys);
        }
        // sealed with the first of the keys, since the one that had sealed it may go
        let sealed = sealing.seal(&table, &key, 1, b"").map_err(unreachable)?;
        let write = Write { bytes: &sealed, owner: "local", expires_in: kept, condition: Condition::Always };
        limited(sealing.backend.put(&table, &key, write)).await.map_err(unreachable)?;
        *sealing.probed.lock() = Some((Instant::now(), generation));
        Ok(())
    }

    /// Checks that the store may be used.
    async fn ready(&self, sealing: &Sealing) -> Result<(), StoreError> {
        self.check_keys()?;
        self.probe(sealing).await.map_err(|error| {
            if matches!(error, ProbeError::OtherKeys) && !sealing.has_warned.swap(true, Ordering::Relaxed) {
                tracing::error!("{error}");
            }
            error.into()
        })
    }

    /// Asks the store for something, to see that it answers.
    ///
    /// # Errors
    /// It does not, or what replicas have in it is sealed with other keys.
    #[cfg(feature = "http")]
    pub(crate) async fn reach(&self) -> Result<(), StoreError> {
        let Some(sealing) = &self.sealing else { return Ok(()) };
        self.ready(sealing).await?;
        let (table, key) = sealing.names(&Table::new("keys", 1, 1024, 100), "probe");
        limited(sealing.backend.get(&table, &key)).await.map(drop)
    }

    /// The value of a key, and its version.
    ///
    /// # Errors
    /// The store cannot be read, or has something there that the server has not sealed for it.
    pub(crate) async fn get(&self, table: &Table, key: &str) -> Result<Option<Value>, StoreError> {
        let Some(sealing) = &self.sealing else { return self.memory().get(table, key).await };
        self.ready(sealing).await?;
        let (table, key) = sealing.names(table, key);
        let Some(found) = limited(sealing.backend.get(&table, &key)).await? else { return Ok(None) };
        let opened = sealing.open(&table, &key, found.version, &found.bytes);
        let opened = opened.ok_or("a value of the shared store was not sealed by this server")?;
        match opened.split_first() {
            Some((&FORMAT, bytes)) => Ok(Some(Value { bytes: bytes.to_vec(), version: found.version })),
            _ => {
                tracing::warn!(table = table.name(), "a value of another version of this crate is ignored");
                Ok(None)
            }
        }
    }

    /// Puts a value, if its condition and the limits of the table allow that.
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the value was put.
    pub(crate) async fn put(
        &self,
        table: &Table,
        key: &str,
        write: Write<'_>,
    ) -> Result<Written, StoreError> {
        let Some(sealing) = &self.sealing else { return self.memory().put(table, key, write).await };
        self.ready(sealing).await?;
        let (table, key) = sealing.names(table, key);
        let sealed = sealing.seal(&table, &key, write.condition.next_version(), write.bytes)?;
        let owner = owner_digest(write.owner);
        let write = Write { bytes: &sealed, owner: &owner, ..write };
        limited(sealing.backend.put(&table, &key, write)).await
    }

    /// Removes a value, if there is one.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn remove(&self, table: &Table, key: &str) -> Result<(), StoreError> {
        let Some(sealing) = &self.sealing else { return self.memory().remove(table, key).await };
        self.ready(sealing).await?;
        let (table, key) = sealing.names(table, key);
        limited(sealing.backend.remove(&table, &key)).await
    }
}

impl SealedStore {
    /// Takes once from an owner's rate, of which a table has one. What is left of it is not secret and not sealed.
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether it was taken.
    pub(crate) async fn take(&self, table: &Table, owner: &str, rate: Rate) -> Result<Taken, StoreError> {
        let take = Take { owner, rate, times: 1 };
        let Some(sealing) = &self.sealing else { return self.memory().take(table, "", take).await };
        self.ready(sealing).await?;
        let table = table.renamed(&format!("{}/{}", sealing.server, table.name()));
        let owner = owner_digest(owner);
        limited(sealing.backend.take(&table, "", Take { owner: &owner, ..take })).await
    }

    /// Appends an entry to a log, if that has the place for it, see [`Shared::append`]. A shared store cannot move it to
    /// another place, or to another log.
    ///
    /// # Errors
    /// The store cannot be reached; it is not known whether the entry was appended.
    pub(crate) async fn append(
        &self,
        table: &Table,
        log: &str,
        append: Append<'_>,
    ) -> Result<Appended, StoreError> {
        let Some(sealing) = &self.sealing else { return self.memory().append(table, log, append).await };
        self.ready(sealing).await?;
        let (table, log) = sealing.log_names(table, log);
        let sealed = sealing.seal(&table, &log, append.position, append.bytes)?;
        let owner = owner_digest(append.owner);
        let append = Append { bytes: &sealed, owner: &owner, ..append };
        limited(sealing.backend.append(&table, &log, append)).await
    }

    /// Reads entries of a log, see [`Shared::read_after`].
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
        let Some(sealing) = &self.sealing else {
            return self.memory().read_after(table, log, position, limit).await;
        };
        self.ready(sealing).await?;
        let (table, log) = sealing.log_names(table, log);
        let Some(mut page) = limited(sealing.backend.read_after(&table, &log, position, limit)).await? else {
            return Ok(None);
        };
        let from = page.first.max(position.saturating_add(1));
        for (expected, entry) in (from..).zip(&mut page.entries) {
            let opened = sealing.open(&table, &log, entry.position, &entry.bytes);
            let opened = opened.filter(|_| entry.position == expected);
            let opened =
                opened.ok_or("an entry of the shared store was not sealed by this server for its place")?;
            let Some((&FORMAT, bytes)) = opened.split_first() else {
                return Err("an entry of the shared store is of another version of this crate".into());
            };
            entry.bytes = bytes.into();
        }
        Ok(Some(page))
    }

    /// Sends a message to all replicas.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn publish(&self, topic: &str, message: &[u8]) -> Result<(), StoreError> {
        let Some(sealing) = &self.sealing else { return self.memory().publish(topic, message).await };
        self.ready(sealing).await?;
        let topic = sealing.topic(topic);
        let sealed = sealing.seal(&topic, "", 0, message)?;
        limited(sealing.backend.publish(topic.name(), &sealed)).await
    }

    /// Receives the messages of all replicas.
    ///
    /// # Errors
    /// The store cannot be reached.
    pub(crate) async fn subscribe(&self, topic: &str) -> Result<SealedSubscription, StoreError> {
        let (sealing, topic) = match &self.sealing {
            None => (None, Table::new(topic, 0, 0, 0)),
            Some(sealing) => (Some(sealing.clone()), sealing.topic(topic)),
        };
        let subscription = match &sealing {
            None => self.memory().subscribe(topic.name()),
            Some(sealing) => sealing.backend.subscribe(topic.name()),
        };
        let subscription = limited(subscription).await?;
        Ok(SealedSubscription { subscription, sealing, topic })
    }
}

/// The messages of a topic.
pub(crate) struct SealedSubscription {
    subscription: Subscription,
    sealing: Option<Arc<Sealing>>,
    topic: Table,
}

impl SealedSubscription {
    /// The next message, or that some were lost; `None` at the end of them.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        loop {
            let (received, sealing) = match (self.subscription.next().await?, &self.sealing) {
                (Received::Message(message), Some(sealing)) => (message, sealing),
                (received, _) => return Some(received),
            };
            let opened = sealing.open(&self.topic, "", 0, &received);
            match opened.as_deref().and_then(<[u8]>::split_first) {
                Some((&FORMAT, message)) => return Some(Received::Message(message.into())),
                // another version of this crate: what it says cannot be read
                Some(_) => return Some(Received::Missed),
                None => tracing::debug!("a message that was not sealed by this server is ignored"),
            }
        }
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
    fn topic(&self, topic: &str) -> Table {
        Table::new(&format!("{}/{topic}", self.server), 0, 0, 0)
    }

    fn seal(&self, table: &Table, key: &str, version: u64, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut plain = Vec::with_capacity(1 + bytes.len());
        plain.push(FORMAT);
        plain.extend_from_slice(bytes);
        let sealed = self.seal.seal_bytes(&plain, &bound(table.name(), key, version));
        sealed.map_err(|_| "a value cannot be sealed".into())
    }

    fn open(&self, table: &Table, key: &str, version: u64, sealed: &[u8]) -> Option<Vec<u8>> {
        self.seal.open_bytes(sealed.to_vec(), &bound(table.name(), key, version)).map(|opened| opened.plain)
    }
}

/// What a value is bound to.
fn bound(table: &str, key: &str, version: u64) -> Vec<u8> {
    let mut bound = version.to_le_bytes().to_vec();
    for part in [table, key] {
        bound.extend((part.len() as u64).to_le_bytes());
        bound.extend(part.as_bytes());
    }
    bound
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

/// An owner as a shared store gets to know it: neither an address nor a principal.
fn owner_digest(owner: &str) -> String {
    // what is alone has all of a table, by its name
    if owner == Owner::local().as_str().as_ref() { owner.into() } else { digest(&["owner", owner], 12) }
}

/// A name of letters and digits; of a name that has others, what tells it apart is appended.
pub(super) fn plain_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    if plain == name { plain } else { format!("{plain}-{}", digest(&[name], 6)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::crypto::{Key, test_key};

    fn append(position: u64, bytes: &[u8]) -> Append<'_> {
        let expires_in = Duration::from_secs(60);
        Append { position, bytes, owner: "ada", max_entries: 10, max_bytes: 1000, expires_in }
    }

    async fn texts(store: &SealedStore, table: &Table, log: &str) -> Option<Vec<String>> {
        let page = store.read_after(table, log, 0, 10).await.ok()??;
        Some(page.entries.iter().map(|entry| String::from_utf8_lossy(&entry.bytes).into_owned()).collect())
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
        let (names, a) = store.sealing.as_ref().unwrap().log_names(&table, "a");
        let (_, b) = store.sealing.as_ref().unwrap().log_names(&table, "b");
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
