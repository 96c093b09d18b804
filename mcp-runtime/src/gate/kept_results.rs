//! Results of tools that are too large to be sent at once are kept for a while, in the program's store or in memory, and
//! read like a resource by the caller that got them. Their URI is sealed, so that nothing can be found by guessing.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    capability::resources::open_resources,
    core::{
        config::{LONGEST, Limits},
        content::ResourceContents,
        crypto::{KeyRing, Seal, random_id},
        jsonrpc::ProtocolError,
        log_limit::{LogLimit, LogLine},
        store::{Condition, KeepResults, ResultReader, SealedStore, StoreFuture, Table, Write, Written},
    },
};

/// Purpose of the key that seals the URIs.
const PURPOSE: &str = "mcp-runtime kept result 1";
/// The prefix of every URI.
const PREFIX: &str = "result://kept/";
/// Results that are kept at once, whatever their size.
const MAX_RESULTS: usize = 10_000;

/// The results that a server keeps.
pub(crate) struct KeptResults {
    store: SealedStore,
    table: Table,
    seal: Seal,
    ttl: Duration,
    put_log: LogLimit,
    get_log: LogLimit,
}

/// Keeps each result for `ttl`, and at most `bytes` in total, of which one owner may use `percent`.
pub(crate) fn keep_results(
    keys: &KeyRing,
    ttl: Duration,
    store: &SealedStore,
    bytes: usize,
    percent: u8,
) -> Arc<dyn KeepResults> {
    let table = Table::new("results", MAX_RESULTS, bytes, percent);
    let (put_log, get_log) = (LogLimit::new(), LogLimit::new());
    Arc::new(KeptResults {
        store: store.clone(),
        table,
        seal: Seal::new(keys, PURPOSE),
        ttl,
        put_log,
        get_log,
    })
}

impl Limits {
    /// Keeps results of tools that are larger than `max_result` for so long, a year at most, instead of cutting them: the
    /// client gets a link that its caller, and no other, can read with `resources/read`.
    ///
    /// They are kept in the memory of this process, or in a [store](crate::ServerBuilder::shared) that replicas share. A
    /// result without room within [`max_kept_bytes`](Self::max_kept_bytes), or in that store, is cut.
    pub fn keep_results(mut self, time: Duration) -> Self {
        self.keep_results = Some((time.min(LONGEST), keep_results));
        self.open = Some(open_resources);
        self
    }
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
            let write = Write {
                bytes: json.as_bytes(),
                owner: reader.owner.as_str(),
                expires_in: self.ttl,
                condition: Condition::Absent,
            };
            match self.store.put(&self.table, &id, write).await {
                Ok(Written::Stored) => Some(format!("{PREFIX}{sealed}")),
                Ok(Written::Full | Written::Conflict) => {
                    if let Some(LogLine { suppressed }) = self.put_log.line() {
                        let reason = "the store, or the share of its caller, is full";
                        tracing::warn!(suppressed, reason, "a result is cut instead of kept");
                    }
                    None
                }
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
            let found = self.store.get(&self.table, id).await.map_err(|error| {
                if let Some(LogLine { suppressed }) = self.get_log.line() {
                    tracing::error!(suppressed, %error, "the store of results cannot be read");
                }
                failed()
            })?;
            let Some(found) = found else { return Ok(None) };
            let items: Option<Vec<Value>> = serde_json::from_slice(&found.bytes).ok();
            let contents = items
                .and_then(|items| items.iter().map(ResourceContents::from_json).collect::<Option<Vec<_>>>());
            contents.map(Some).ok_or_else(|| {
                if let Some(LogLine { suppressed }) = self.get_log.line() {
                    tracing::error!(suppressed, "the result store holds a value that is not a result");
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
    use serde_json::Map;

    use super::*;
    use crate::core::{
        admission::Owner,
        crypto::{Key, test_key},
    };

    fn results(ttl: Duration) -> Arc<dyn KeepResults> {
        let keys = KeyRing::new(vec![Key::new(test_key(3))]);
        keep_results(&keys, ttl, &SealedStore::in_memory(), 1000, 50)
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
        let kept = results(Duration::from_secs(60));
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

    #[tokio::test(start_paused = true)]
    async fn one_caller_fills_its_share_only_until_something_expires() {
        let kept = results(Duration::from_secs(60));
        let keep = async |name: &str| {
            let contents = [ResourceContents::text("x".repeat(180))];
            kept.keep("shop", &reader(name), &contents).await
        };
        let first = keep("ada").await.unwrap();
        assert!(keep("ada").await.is_some() && keep("ada").await.is_none());
        assert!(keep("bob").await.is_some() && keep("eve").await.is_some() && keep("joe").await.is_some());
        assert!(keep("zoe").await.is_none(), "it is full for all");
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(read(&kept, &reader("ada"), &first).await.is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(read(&kept, &reader("ada"), &first).await, None);
        assert!(keep("zoe").await.is_some());
    }
}
