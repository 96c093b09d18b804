//! Results that are too large to be sent at once: kept for a while, and read like a resource by the caller that got them.
//! Their URI is sealed, so that nothing can be found by guessing.

use std::{fmt, sync::Arc, time::Duration};

use super::{SealedStore, StoreFuture};
use crate::core::{admission::Owner, content::ResourceContents, crypto::KeyRing, jsonrpc::ProtocolError};

/// The reader of a result.
#[derive(Debug, Clone)]
pub(crate) struct ResultReader {
    /// The owner whose share of the store it uses.
    pub(crate) owner: Owner,
    /// A digest of the principal; `None` without one.
    pub(crate) caller: Option<Arc<str>>,
}

impl ResultReader {
    /// The caller of a request.
    pub(crate) fn new(owner: Owner, caller: Option<Arc<str>>) -> Self {
        Self { owner, caller }
    }

    /// The data that the URI of its results is bound to.
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

/// Keeps results for a time: at most this many bytes, of which one owner may use that percentage. The option holds it, so
/// that only a program that sets the option contains the code.
pub(crate) type OpenResults = fn(&KeyRing, Duration, &SealedStore, usize, u8) -> Arc<dyn KeepResults>;
