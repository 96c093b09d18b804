//! Results that are too large to be sent at once: kept in memory for a while, and read like a resource by the caller that
//! got them. Their URI is sealed, so that nothing can be found by guessing.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    admission::{Full, OwnedEntry, OwnedTable, Owner, Quota},
    content::ResourceContents,
    crypto::{KeyRing, Seal, random_bytes},
    sync::Mutex,
};

/// Purpose of the key that seals the URIs.
const PURPOSE: &str = "mcp-runtime kept result 1";
/// What every URI begins with.
const PREFIX: &str = "result://kept/";
/// Results that are kept at once, whatever their size.
const MAX_RESULTS: usize = 10_000;

/// The results that a server keeps.
pub(crate) struct KeptResults {
    table: Mutex<OwnedTable<[u8; 16], Vec<ResourceContents>, Instant>>,
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
    /// `percent`: how much of it one owner may use.
    pub(crate) fn new(keys: &KeyRing, ttl: Duration, bytes: usize, percent: u8) -> Self {
        let table = OwnedTable::new(Quota::new(MAX_RESULTS, percent), Quota::new(bytes, percent));
        Self { table: Mutex::new(table), seal: Seal::new(keys, PURPOSE), ttl }
    }

    /// How long a result is kept.
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Keeps a result of so many bytes, and returns its URI; `None` if it does not fit.
    pub(crate) fn keep(
        &self,
        server: &str,
        reader: &ResultReader,
        contents: Vec<ResourceContents>,
        bytes: usize,
    ) -> Option<String> {
        let id: [u8; 16] = random_bytes().ok()?;
        let sealed = self.seal.seal(&id, &reader.bound(server)).ok()?;
        let now = Instant::now();
        let entry =
            OwnedEntry { owner: reader.owner.clone(), bytes, expires: now + self.ttl, value: contents };
        let mut table = self.table.lock();
        table.expire(now);
        match table.put(id, entry) {
            Ok(()) => Some(format!("{PREFIX}{sealed}")),
            Err(full) => {
                drop(table);
                let limit = match full {
                    Full::Share => "the share of its caller is full",
                    Full::Table => "the store is full",
                };
                tracing::debug!(bytes, limit, "a result is cut instead of kept");
                None
            }
        }
    }

    /// The result with this URI; `None` if it is not one, has expired, or belongs to another caller.
    pub(crate) fn find(
        &self,
        server: &str,
        reader: &ResultReader,
        uri: &str,
    ) -> Option<Vec<ResourceContents>> {
        let sealed = uri.strip_prefix(PREFIX)?;
        let opened = self.seal.open(sealed.as_bytes(), &reader.bound(server))?;
        let id = <[u8; 16]>::try_from(opened.plain).ok()?;
        let mut table = self.table.lock();
        table.expire(Instant::now());
        table.get(&id).cloned()
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
    use super::*;
    use crate::crypto::{Key, test_key};

    fn store(bytes: usize) -> KeptResults {
        let keys = KeyRing::new(vec![Key::new(test_key(3))]);
        KeptResults::new(&keys, Duration::from_secs(60), bytes, 50)
    }

    fn reader(name: &str) -> ResultReader {
        ResultReader { owner: Owner::principal(name.into()), caller: Some(name.into()) }
    }

    fn text(text: &str) -> Vec<ResourceContents> {
        vec![ResourceContents::text(text)]
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_found_by_its_caller_until_it_expires() {
        let store = store(100);
        let uri = store.keep("shop", &reader("ada"), text("large"), 10).unwrap();
        assert_eq!(store.find("shop", &reader("ada"), &uri), Some(text("large")));
        assert_eq!(store.find("shop", &reader("bob"), &uri), None);
        assert_eq!(store.find("bank", &reader("ada"), &uri), None);
        let anonymous = ResultReader { owner: Owner::anonymous(), caller: None };
        assert_eq!(store.find("shop", &anonymous, &uri), None);
        let mut forged = uri.clone();
        forged.pop();
        assert_eq!(store.find("shop", &reader("ada"), &forged), None);
        assert_eq!(store.find("shop", &reader("ada"), "file:///etc/passwd"), None);
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(store.find("shop", &reader("ada"), &uri), None);
        assert_eq!(store.table.lock().size(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_fills_its_share_only() {
        let store = store(100);
        let keep = |name: &str| store.keep("shop", &reader(name), text("x"), 30).is_some();
        assert_eq!(
            [keep("ada"), keep("ada"), keep("bob"), keep("eve"), keep("joe")],
            [true, false, true, true, false]
        );
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(keep("joe"));
    }
}
