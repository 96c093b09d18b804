//! Results of tools that are too large to be sent at once are kept for a while, in the program's store or in memory, and
//! read like a resource by the caller that got them. Their URI is sealed, so that nothing can be found by guessing.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::Value;

use crate::core::{
    admission::{Full, OwnedEntry, OwnedTable, Owner, Quota},
    content::ResourceContents,
    crypto::{KeyRing, Seal, random_id},
    jsonrpc::ProtocolError,
    log_limit::{LogLimit, LogLine},
    store::{KeepResults, ResultReader, ResultRecord, ResultStore, StoreFuture, Stored},
    sync::Mutex,
};

/// Purpose of the key that seals the URIs.
const PURPOSE: &str = "mcp-runtime kept result 1";
/// What every URI begins with.
const PREFIX: &str = "result://kept/";
/// Results that the default store keeps at once, whatever their size.
const MAX_RESULTS: usize = 10_000;

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
    put_log: LogLimit,
    get_log: LogLimit,
}

/// Results are kept for so long, in the program's store, or else in memory: so many bytes, of which one owner may use
/// `percent`.
pub(crate) fn keep_results(
    keys: &KeyRing,
    ttl: Duration,
    store: Option<Arc<dyn ResultStore>>,
    bytes: usize,
    percent: u8,
) -> Arc<dyn KeepResults> {
    let store = store.unwrap_or_else(|| Arc::new(MemoryResults::new(bytes, percent)));
    let (put_log, get_log) = (LogLimit::new(), LogLimit::new());
    Arc::new(KeptResults { store, seal: Seal::new(keys, PURPOSE), ttl, put_log, get_log })
}

impl KeepResults for KeptResults {
    fn ttl(&self) -> Duration {
        self.ttl
    }

    fn keep<'a>(
        &'a self,
        server: &'a str,
        reader: &'a ResultReader,
        contents: &'a [ResourceContents],
    ) -> StoreFuture<'a, Option<String>> {
        Box::pin(async move {
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
                    if let Some(LogLine { suppressed }) = self.put_log.line() {
                        tracing::warn!(suppressed, %error, "a result is cut instead of kept");
                    }
                    None
                }
            }
        })
    }

    fn is_uri(&self, uri: &str) -> bool {
        uri.starts_with(PREFIX)
    }

    fn id_of(&self, server: &str, reader: &ResultReader, uri: &str) -> Option<String> {
        let sealed = uri.strip_prefix(PREFIX)?;
        let opened = self.seal.open(sealed.as_bytes(), &reader.bound(server))?;
        String::from_utf8(opened.plain).ok()
    }

    fn find<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Result<Option<Vec<ResourceContents>>, ProtocolError>> {
        Box::pin(async move {
            let failed = || ProtocolError::internal("the result cannot be read at the moment");
            let record = self.store.get(id).await.map_err(|error| {
                if let Some(LogLine { suppressed }) = self.get_log.line() {
                    tracing::error!(suppressed, %error, "the store of results cannot be read");
                }
                failed()
            })?;
            let Some(record) = record.filter(|record| record.expires > SystemTime::now()) else {
                return Ok(None);
            };
            let items: Option<Vec<Value>> = serde_json::from_str(&record.json).ok();
            let contents = items
                .and_then(|items| items.iter().map(ResourceContents::from_json).collect::<Option<Vec<_>>>());
            contents.map(Some).ok_or_else(|| {
                if let Some(LogLine { suppressed }) = self.get_log.line() {
                    tracing::error!(suppressed, "the store of results has something else than a result");
                }
                failed()
            })
        })
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
    use crate::core::crypto::{Key, test_key};

    fn results(store: Option<Arc<dyn ResultStore>>, ttl: Duration) -> Arc<dyn KeepResults> {
        let keys = KeyRing::new(vec![Key::new(test_key(3))]);
        keep_results(&keys, ttl, store, 1000, 50)
    }

    fn reader(name: &str) -> ResultReader {
        ResultReader { owner: Owner::principal(name.into()), caller: Some(name.into()) }
    }

    async fn read(
        kept: &Arc<dyn KeepResults>,
        reader: &ResultReader,
        uri: &str,
    ) -> Option<Vec<ResourceContents>> {
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
