//! The record of ended sessions that replicas share, and that outlives the process.

use std::time::SystemTime;

use super::Stored;

/// Remembers the sessions of legacy HTTP clients that have ended with `DELETE`.
///
/// Session ids are valid at every replica that has their key, and after a restart. Without this store, only the process
/// that has received the `DELETE` knows that a session has ended. With it, every request with a session asks the store: it
/// should be fast, and may cache that a session has ended, but not for long that it has not.
pub trait RevocationStore: Send + Sync {
    /// Records that a session has ended, at least until it expires. Once this has ended well, `is_revoked` must find it
    /// from everywhere. If it fails, the session has not ended.
    fn revoke<'a>(&'a self, session: &'a str, expires: SystemTime) -> Stored<'a, ()>;

    /// Whether a session has ended. If it fails, requests of the session are refused.
    fn is_revoked<'a>(&'a self, session: &'a str) -> Stored<'a, bool>;
}
