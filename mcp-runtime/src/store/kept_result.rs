//! Results that are too large to be sent at once: kept for a while, and read like a resource by the caller that got them.
//! Their URI is sealed, so that nothing can be found by guessing.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::Value;

use super::Stored;
use crate::{
    admission::{Full, OwnedEntry, OwnedTable, Owner, Quota},
    content::ResourceContents,
    crypto::{KeyRing, Seal, random_id},
    jsonrpc::ProtocolError,
    sync::Mutex,
};

/// Purpose of the key that seals the URIs.
const PURPOSE: &str = "mcp-runtime kept result 1";
/// What every URI begins with.
const PREFIX: &str = "result://kept/";
/// Results that the default store keeps at once, whatever their size.
const MAX_RESULTS: usize = 10_000;

/// One result as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct ResultRecord {
    id: Arc<str>,
    json: Arc<str>,
    expires: SystemTime,
    share: Option<Arc<str>>,
}

impl ResultRecord {
    /// A record of these parts, as a store reads it back; see the methods for what they are.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>, json: impl Into<Arc<str>>, expires: SystemTime) -> Self {
        Self { id: id.into(), json: json.into(), expires, share: None }
    }

    /// What it is found by: random. Clients have it in a URI that is sealed for their principal.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The result as the `contents` of `resources/read`: a JSON array.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// From then on it is not given to clients any more, and may be forgotten.
    #[must_use]
    pub fn expires(&self) -> SystemTime {
        self.expires
    }

    /// Whose share of the store it uses, for stores that limit each client: a digest of the principal, or an address.
    #[must_use]
    pub fn share(&self) -> Option<&str> {
        self.share.as_deref()
    }
}

impl fmt::Debug for ResultRecord {
    /// Without the result.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultRecord").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Keeps results of tools that are [too large](crate::config::Limits::keep_results) to be sent, until they expire.
///
/// The server's own store is in its memory. With one that replicas share, and with the same
/// [keys](crate::config::Stores::keys), each of them can read what another one links to.
pub trait ResultStore: Send + Sync {
    /// Keeps a result. Once this has ended well, `get` must find it from everywhere; if it fails, the client gets as much of
    /// the result as may be sent. The client waits for it.
    fn put(&self, result: ResultRecord) -> Stored<'_, ()>;

    /// The result of that id; `None` when there is none, or it has expired.
    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<ResultRecord>>;
}

/// The store in memory.
struct MemoryResults(Mutex<OwnedTable<Arc<str>, ResultRecord, SystemTime>>);

impl MemoryResults {
    /// Of so many bytes, of which one owner may use that percentage.
    fn new(bytes: usize, percent: u8) -> Self {
        Self(Mutex::new(OwnedTable::new(Quota::new(MAX_RESULTS, percent), Quota::new(bytes, percent))))
    }

    fn put_at(&self, result: ResultRecord, now: SystemTime) -> Result<(), &'static str> {
        let owner = result.share.clone().map_or_else(Owner::local, Owner::from_text);
        let (id, bytes, expires) = (result.id.clone(), result.json.len(), result.expires);
        let mut results = self.0.lock();
        results.expire(now);
        results.put(id, OwnedEntry { owner, bytes, expires, value: result }).map_err(|full| match full {
            Full::Share => "the share of its caller is full",
            Full::Table => "the store is full",
        })
    }

    fn get_at(&self, id: &str, now: SystemTime) -> Option<ResultRecord> {
        let mut results = self.0.lock();
        results.expire(now);
        results.get(id).cloned()
    }
}

impl ResultStore for MemoryResults {
    fn put(&self, result: ResultRecord) -> Stored<'_, ()> {
        let put = self.put_at(result, SystemTime::now());
        Box::pin(std::future::ready(put.map_err(Into::into)))
    }

    fn get<'a>(&'a self, id: &'a str) -> Stored<'a, Option<ResultRecord>> {
        Box::pin(std::future::ready(Ok(self.get_at(id, SystemTime::now()))))
    }
}

/// The results that a server keeps.
pub(crate) struct KeptResults {
    store: Arc<dyn ResultStore>,
    seal: Seal,
    ttl: Duration,
}

/// Who may read a result.
#[derive(Debug, Clone)]
pub(crate) struct ResultReader {
    /// Whose share of the store it uses.
    owner: Owner,
    /// A digest of the principal; `None` without one.
    caller: Option<Arc<str>>,
}

impl ResultReader {
    /// The caller of a request.
    pub(crate) fn new(owner: Owner, caller: Option<Arc<str>>) -> Self {
        Self { owner, caller }
    }

    /// What the URI of its results is bound to.
    fn bound(&self, server: &str) -> Vec<u8> {
        let mut bound = (server.len() as u64).to_le_bytes().to_vec();
        bound.extend(server.as_bytes());
        bound.extend(self.caller.as_deref().map_or("anonymous", |caller| caller).as_bytes());
        bound
    }
}

impl KeptResults {
    /// In the program's store, or else in memory: so many bytes, of which one owner may use `percent`.
    pub(crate) fn new(
        keys: &KeyRing,
        ttl: Duration,
        store: Option<Arc<dyn ResultStore>>,
        bytes: usize,
        percent: u8,
    ) -> Self {
        let store = store.unwrap_or_else(|| Arc::new(MemoryResults::new(bytes, percent)));
        Self { store, seal: Seal::new(keys, PURPOSE), ttl }
    }

    /// How long a result is kept.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Keeps a result, and returns its URI; `None` if the store does not take it.
    pub(crate) async fn keep(
        &self,
        server: &str,
        reader: &ResultReader,
        contents: &[ResourceContents],
    ) -> Option<String> {
        let id = random_id().ok()?;
        let sealed = self.seal.seal(id.as_bytes(), &reader.bound(server)).ok()?;
        let json = Value::from_iter(contents.iter().map(ResourceContents::to_json)).to_string();
        let record = ResultRecord {
            share: Some(reader.owner.as_str().clone()),
            ..ResultRecord::new(id, json, SystemTime::now() + self.ttl)
        };
        match self.store.put(record).await {
            Ok(()) => Some(format!("{PREFIX}{sealed}")),
            Err(error) => {
                tracing::warn!(%error, "a result is cut instead of kept");
                None
            }
        }
    }

    /// The id in a URI of this caller; `None` if it is of another caller, or none.
    pub(crate) fn id_of(&self, server: &str, reader: &ResultReader, uri: &str) -> Option<String> {
        let sealed = uri.strip_prefix(PREFIX)?;
        let opened = self.seal.open(sealed.as_bytes(), &reader.bound(server))?;
        String::from_utf8(opened.plain).ok()
    }

    /// The result with this id; `None` if there is none, or it has expired.
    ///
    /// # Errors
    /// The store cannot be read, or has something else under the id.
    pub(crate) async fn find(&self, id: &str) -> Result<Option<Vec<ResourceContents>>, ProtocolError> {
        let failed = || ProtocolError::internal("the result cannot be read at the moment");
        let record = self.store.get(id).await.map_err(|error| {
            tracing::error!(%error, "the store of results cannot be read");
            failed()
        })?;
        let Some(record) = record.filter(|record| record.expires > SystemTime::now()) else {
            return Ok(None);
        };
        let items: Option<Vec<Value>> = serde_json::from_str(&record.json).ok();
        let contents =
            items.and_then(|items| items.iter().map(ResourceContents::from_json).collect::<Option<Vec<_>>>());
        contents.map(Some).ok_or_else(|| {
            tracing::error!("the store of results has something else than a result");
            failed()
        })
    }

    /// Whether a URI could be that of a kept result.
    pub(crate) fn is_uri(uri: &str) -> bool {
        uri.starts_with(PREFIX)
    }
}

impl fmt::Debug for KeptResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptResults").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use serde_json::Map;

    use super::*;
    use crate::crypto::{Key, test_key};

    fn results(store: Option<Arc<dyn ResultStore>>, ttl: Duration) -> KeptResults {
        let keys = KeyRing::new(vec![Key::new(test_key(3))]);
        KeptResults::new(&keys, ttl, store, 1000, 50)
    }

    fn reader(name: &str) -> ResultReader {
        ResultReader { owner: Owner::principal(name.into()), caller: Some(name.into()) }
    }

    async fn read(kept: &KeptResults, reader: &ResultReader, uri: &str) -> Option<Vec<ResourceContents>> {
        kept.find(&kept.id_of("shop", reader, uri)?).await.unwrap()
    }

    #[tokio::test]
    async fn a_result_is_found_by_its_caller_alone() {
        let kept = results(None, Duration::from_secs(60));
        let meta = Map::from_iter([("k".to_owned(), Value::from(1))]);
        let contents = vec![
            ResourceContents::text("large").mime("text/plain"),
            ResourceContents { meta: Some(Box::new(meta)), ..ResourceContents::blob_from_base64("AAEC") },
            ResourceContents::text("{}").uri("a://b"),
        ];
        let uri = kept.keep("shop", &reader("ada"), &contents).await.unwrap();
        assert_eq!(read(&kept, &reader("ada"), &uri).await, Some(contents));
        assert_eq!(kept.id_of("shop", &reader("bob"), &uri), None);
        assert_eq!(kept.id_of("bank", &reader("ada"), &uri), None);
        let anonymous = ResultReader { owner: Owner::anonymous(), caller: None };
        assert_eq!(kept.id_of("shop", &anonymous, &uri), None);
        let mut forged = uri.clone();
        forged.pop();
        assert_eq!(kept.id_of("shop", &reader("ada"), &forged), None);
        assert_eq!(kept.id_of("shop", &reader("ada"), "file:///etc/passwd"), None);
    }

    #[tokio::test]
    async fn a_store_that_forgets_nothing_gives_nothing_that_has_expired() {
        /// Ignores when records expire.
        #[derive(Default)]
        struct Forever(Mutex<Option<ResultRecord>>);

        impl ResultStore for Forever {
            fn put(&self, result: ResultRecord) -> Stored<'_, ()> {
                *self.0.lock() = Some(result);
                Box::pin(std::future::ready(Ok(())))
            }

            fn get<'a>(&'a self, _: &'a str) -> Stored<'a, Option<ResultRecord>> {
                Box::pin(std::future::ready(Ok(self.0.lock().clone())))
            }
        }

        let store = Arc::new(Forever::default());
        let kept = results(Some(store.clone()), Duration::ZERO);
        let uri = kept.keep("shop", &reader("ada"), &[ResourceContents::text("x")]).await.unwrap();
        assert!(store.0.lock().is_some());
        assert_eq!(read(&kept, &reader("ada"), &uri).await, None);
    }

    #[test]
    fn one_caller_fills_its_share_only_until_something_expires() {
        let store = MemoryResults::new(100, 50);
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let put = |id: &str, name: &str, now: u64| {
            let record = ResultRecord::new(id, "x".repeat(30), at(now + 60));
            store.put_at(ResultRecord { share: Some(name.into()), ..record }, at(now)).is_ok()
        };
        assert_eq!(
            [
                put("1", "ada", 0),
                put("2", "ada", 0),
                put("3", "bob", 0),
                put("4", "eve", 0),
                put("5", "joe", 0)
            ],
            [true, false, true, true, false]
        );
        assert!(store.get_at("1", at(59)).is_some() && store.get_at("1", at(60)).is_none());
        assert!(put("5", "joe", 60));
        assert_eq!(store.0.lock().size(), (1, 30));
    }
}
