//! Contents that are too large for a model, or not text: they are stored, and the model gets a reference. A reference is
//! good for one scope, says what the content is, and says nothing about where it came from.

use std::{collections::HashMap, fmt, io, path::PathBuf, sync::Arc};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    artifact_stores::{DirectoryArtifacts, MemoryArtifacts},
    toolset::CounterCells,
};
use crate::{
    client::Error,
    core::{
        content::is_media_type,
        crypto::{hex, random_id},
        store::StoreFuture,
        sync::Mutex,
    },
};

/// Characters of an id: 128 bits of the content's digest.
const ID_LENGTH: usize = 32;
/// Artifacts of a session; empty ones cost memory too.
const MAX_ARTIFACTS: usize = 100_000;
const MAX_FILENAME: usize = 100;

/// A reference to an artifact, as a model gets it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ArtifactRef {
    /// The id, made from the content: equal contents of one scope have one id.
    pub id: String,
    /// The MIME type.
    pub mime_type: String,
    /// The size in bytes.
    pub size_bytes: u64,
    /// A name for a file, if the server's names have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The SHA-256 digest of the content, in hexadecimal.
    pub sha256: String,
    /// The scope of callers that may read it.
    pub scope: String,
}

/// An artifact with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artifact {
    /// The reference. It is another one than was asked for if the content was gone, and the resource that it came from has
    /// changed since.
    pub reference: ArtifactRef,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Where artifacts are kept. Ids are unique within a scope, and are made of letters and digits.
///
/// A store may drop any artifact: the contents of a resource are read again.
pub trait ArtifactStore: Send + Sync + 'static {
    /// Stores a content, in place of an older one with this id.
    fn put<'a>(&'a self, scope: &'a str, id: &'a str, bytes: Vec<u8>) -> StoreFuture<'a, io::Result<()>>;

    /// The content with this id; `None` if there is none.
    fn get<'a>(&'a self, scope: &'a str, id: &'a str) -> StoreFuture<'a, io::Result<Option<Vec<u8>>>>;

    /// Deletes the content with this id, if there is one.
    fn delete<'a>(&'a self, scope: &'a str, id: &'a str) -> StoreFuture<'a, io::Result<()>>;
}

/// The artifacts of one session: a store, the scope that they belong to, and their limits. Clones share all of it.
#[derive(Clone)]
pub struct Artifacts {
    store: Arc<dyn ArtifactStore>,
    scope: Arc<str>,
    pub(super) inline_chars: usize,
    pub(super) max_image: usize,
    max_each: usize,
    max_total: usize,
    session: Arc<Mutex<ArtifactSession>>,
}

#[derive(Default)]
struct ArtifactSession {
    artifacts: HashMap<String, SessionArtifact>,
    bytes: usize,
}

struct SessionArtifact {
    size: usize,
    source: Option<ArtifactSource>,
}

/// What is known of a content beside its bytes and type.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) filename: Option<String>,
    /// Where it can be read again.
    pub(super) source: Option<ArtifactSource>,
}

/// The resource that an artifact came from.
#[derive(Clone)]
pub(super) struct ArtifactSource {
    pub(super) namespace: String,
    pub(super) uri: String,
    /// Which item of its contents.
    pub(super) item: usize,
}

impl fmt::Debug for Artifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Artifacts").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl Artifacts {
    /// Artifacts in this store, of a session of their own.
    pub fn new(store: impl ArtifactStore) -> Self {
        // without random bytes, a scope that the program did not choose would not be safe
        let scope = random_id().expect("the operating system has random bytes");
        Self {
            store: Arc::new(store),
            scope: scope.into(),
            inline_chars: 10_000,
            max_image: 3_750_000,
            max_each: 50 << 20,
            max_total: 500 << 20,
            session: Arc::default(),
        }
    }

    /// Artifacts in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self::new(MemoryArtifacts::with_limit(500 << 20))
    }

    /// Artifacts in files of a directory.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self::new(DirectoryArtifacts::new(path))
    }

    /// Sets whom the artifacts belong to, such as a user or a conversation; random by default. Only references with this
    /// scope can be read.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<Arc<str>>) -> Self {
        self.scope = scope.into();
        self.session = Arc::default();
        self
    }

    /// Sets how many characters a text may have that a model gets in line; 10,000 by default. All that is in line of one
    /// result may have four times as many.
    #[must_use]
    pub fn inline_limit(mut self, characters: usize) -> Self {
        self.inline_chars = characters;
        self
    }

    /// Sets the size of the largest image in bytes that a model sees, besides the reference to it, where its API takes
    /// images in results; 3,750,000 by default, which is the most that Anthropic's API takes. All images of one result may
    /// have four times as many. Zero shows none.
    #[must_use]
    pub fn image_limit(mut self, bytes: usize) -> Self {
        self.max_image = bytes;
        self
    }

    /// Sets the size of the largest artifact in bytes; 50 MiB by default. The client's
    /// [`max_message`](crate::client::ClientBuilder::max_message) limits it too: in messages, bytes are a third larger.
    #[must_use]
    pub fn max_artifact(mut self, bytes: usize) -> Self {
        self.max_each = bytes;
        self
    }

    /// Sets the size of all artifacts of the session in bytes; 500 MiB by default.
    #[must_use]
    pub fn max_total(mut self, bytes: usize) -> Self {
        self.max_total = bytes;
        self
    }

    /// Stores a content, and counts one that is new.
    ///
    /// # Errors
    /// Why it is not stored.
    pub(super) async fn keep(
        &self,
        counters: &CounterCells,
        bytes: Vec<u8>,
        mime_type: String,
        Origin { filename, source }: Origin,
    ) -> Result<ArtifactRef, String> {
        let size = bytes.len();
        if size > self.max_each {
            return Err(format!("it exceeds the limit of {} bytes", self.max_each));
        }
        let sha256 = hex_digest(&bytes);
        let id = sha256[..ID_LENGTH].to_owned();
        let is_new = self.reserve(&id, size, source)?;
        // one that is not new may be lost
        if let Err(error) = self.store.put(&self.scope, &id, bytes).await {
            tracing::warn!(kind = ?error.kind(), "an artifact could not be stored");
            if is_new {
                self.release(&id);
            }
            return Err("it could not be stored".to_owned());
        }
        let size_bytes = size as u64;
        if is_new {
            counters.artifacts(1);
            counters.artifact_bytes(size_bytes);
        }
        let scope = self.scope.to_string();
        let mime_type = if is_media_type(&mime_type) { mime_type } else { UNKNOWN_TYPE.to_owned() };
        Ok(ArtifactRef { id, mime_type, size_bytes, filename, sha256, scope })
    }

    /// Takes room in the session; whether the artifact is new in it.
    fn reserve(&self, id: &str, size: usize, source: Option<ArtifactSource>) -> Result<bool, String> {
        let mut session = self.session.lock();
        if let Some(known) = session.artifacts.get_mut(id) {
            known.source = source.or(known.source.take());
            return Ok(false);
        }
        if session.bytes + size > self.max_total || session.artifacts.len() >= MAX_ARTIFACTS {
            return Err(format!("the artifacts of this session would exceed {} bytes", self.max_total));
        }
        session.bytes += size;
        session.artifacts.insert(id.to_owned(), SessionArtifact { size, source });
        Ok(true)
    }

    fn release(&self, id: &str) {
        let mut session = self.session.lock();
        if let Some(known) = session.artifacts.remove(id) {
            session.bytes -= known.size;
        }
    }

    /// The content of an artifact; `None` if the store has lost it.
    ///
    /// # Errors
    /// The reference belongs to another scope.
    pub(super) async fn load(&self, reference: &ArtifactRef) -> Result<Option<Vec<u8>>, Error> {
        let id = self.own_id(reference)?;
        let stored = self.store.get(&self.scope, id).await.map_err(|error| store_failed(&error))?;
        let Some(bytes) = stored else { return Ok(None) };
        if hex_digest(&bytes).starts_with(id) {
            return Ok(Some(bytes));
        }
        // changed bytes are as good as lost, and must make room for the copy that is fetched again
        self.store.delete(&self.scope, id).await.map_err(|error| store_failed(&error))?;
        Ok(None)
    }

    /// The id of a reference, which may come from a model.
    fn own_id<'a>(&self, reference: &'a ArtifactRef) -> Result<&'a str, Error> {
        if *reference.scope != *self.scope {
            return Err(Error::Denied { what: "an artifact of another scope".to_owned() });
        }
        let id = &reference.id;
        let is_id = id.len() == ID_LENGTH && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_id {
            return Err(Error::invalid("the reference has no id of an artifact"));
        }
        Ok(id)
    }

    /// Where an artifact of this session came from.
    pub(super) fn source(&self, id: &str) -> Option<ArtifactSource> {
        self.session.lock().artifacts.get(id)?.source.clone()
    }

    /// Deletes an artifact, and gives its room back to the session.
    ///
    /// # Errors
    /// The reference belongs to another scope, or the store failed.
    pub async fn delete(&self, reference: &ArtifactRef) -> Result<(), Error> {
        let id = self.own_id(reference)?;
        self.store.delete(&self.scope, id).await.map_err(|error| store_failed(&error))?;
        self.release(id);
        Ok(())
    }

    /// Deletes all artifacts of the session.
    ///
    /// # Errors
    /// The store failed.
    pub async fn clear(&self) -> Result<(), Error> {
        let ids: Vec<String> = self.session.lock().artifacts.keys().cloned().collect();
        for id in ids {
            self.store.delete(&self.scope, &id).await.map_err(|error| store_failed(&error))?;
            self.release(&id);
        }
        Ok(())
    }
}

/// The kind of error only: others may name files.
fn store_failed(error: &io::Error) -> Error {
    Error::invalid(format!("the store of artifacts failed: {}", error.kind()))
}

pub(super) fn hex_digest(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes))
}

/// A name for a file, of the last segment of a URI's path.
pub(super) fn filename_of(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let last = path.rsplit(['/', ':', '\\']).next().unwrap_or_default();
    let decoded = percent_decode_str(last).decode_utf8_lossy();
    let is_plain = |c: &char| c.is_alphanumeric() || "._- ()+".contains(*c);
    let name: String = decoded.chars().filter(is_plain).take(MAX_FILENAME).collect();
    let name = name.trim_matches([' ', '.']).to_owned();
    (!name.is_empty()).then_some(name)
}

/// The media type of what has none that is valid.
const UNKNOWN_TYPE: &str = "application/octet-stream";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filename_is_the_last_segment_without_what_leads_elsewhere() {
        let cases = [
            ("file:///data/tea%20list.txt", Some("tea list.txt")),
            ("https://example.com/a/b.png?token=secret#x", Some("b.png")),
            ("note:today", Some("today")),
            ("file:///a/..%2f..%2fetc%2fpasswd", Some("etcpasswd")),
            ("x://..", None),
            ("dir:///a/b/", Some("b")),
        ];
        for (uri, expected) in cases {
            assert_eq!(filename_of(uri).as_deref(), expected, "{uri}");
        }
    }
}
