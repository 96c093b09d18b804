//! Results that are too large to be sent at once: kept for a while, and read like a resource by the caller that got them.
//! Their URI is sealed, so that nothing can be found by guessing.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{StoreFuture, Stored};
use crate::core::{admission::Owner, content::ResourceContents, crypto::KeyRing, jsonrpc::ProtocolError};

/// One result as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct ResultRecord {
    pub(crate) id: Arc<str>,
    pub(crate) json: Arc<str>,
    pub(crate) expires: SystemTime,
    pub(crate) share: Option<Arc<str>>,
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

/// Who may read a result.
#[derive(Debug, Clone)]
pub(crate) struct ResultReader {
    /// Whose share of the store it uses.
    pub(crate) owner: Owner,
    /// A digest of the principal; `None` without one.
    pub(crate) caller: Option<Arc<str>>,
}

impl ResultReader {
    /// The caller of a request.
    pub(crate) fn new(owner: Owner, caller: Option<Arc<str>>) -> Self {
        Self { owner, caller }
    }

    /// What the URI of its results is bound to.
    pub(crate) fn bound(&self, server: &str) -> Vec<u8> {
        let mut bound = (server.len() as u64).to_le_bytes().to_vec();
        bound.extend(server.as_bytes());
        bound.extend(self.caller.as_deref().map_or("anonymous", |caller| caller).as_bytes());
        bound
    }
}

/// The results that a server keeps, if its options say so.
pub(crate) trait KeepResults: fmt::Debug + Send + Sync {
    /// How long a result is kept.
    fn ttl(&self) -> Duration;

    /// Keeps a result, and returns its URI; `None` if the store does not take it.
    fn keep<'a>(
        &'a self,
        server: &'a str,
        reader: &'a ResultReader,
        contents: &'a [ResourceContents],
    ) -> StoreFuture<'a, Option<String>>;

    /// Whether a URI could be that of a kept result.
    fn is_uri(&self, uri: &str) -> bool;

    /// The id in a URI of this caller; `None` if it is of another caller, or none.
    fn id_of(&self, server: &str, reader: &ResultReader, uri: &str) -> Option<String>;

    /// The result with this id; `None` if there is none, or it has expired.
    ///
    /// # Errors
    /// The store cannot be read, or has something else under the id.
    fn find<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Result<Option<Vec<ResourceContents>>, ProtocolError>>;
}

/// What results are kept for a time with, in the program's store, or else in memory: so many bytes, of which one owner may
/// use that percentage. The option has it, so that only a program that sets it contains the code.
pub(crate) type OpenResults =
    fn(&KeyRing, Duration, Option<Arc<dyn ResultStore>>, usize, u8) -> Arc<dyn KeepResults>;
