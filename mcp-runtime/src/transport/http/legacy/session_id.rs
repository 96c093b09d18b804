//! Session ids: encrypted, so that the server stores nothing for a session. An id contains the revision, the client's
//! capabilities and name and the times of issue and expiry, and is bound to the server's name and the caller. Opened
//! ids are cached.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use serde_json::Value;

use super::capabilities::PackedCapabilities;
use crate::{
    core::{
        connection::{ClientData, Principal},
        crypto::{KeyRing, Nonce, Seal},
        protocol::Revision,
        recent_map::RecentMap,
        sync::Mutex,
    },
    schema::beginning,
};

/// Identifies a session within the server: a random part of its id.
pub(crate) type SessionUid = [u8; 16];

/// The version of the plain text's format.
const FORMAT: u8 = 3;
/// Bytes of the format, the revision, whether there is a record, the capabilities and both times.
const FIXED: usize = 1 + 1 + 1 + 2 + 8 + 8;
/// Bytes of `clientInfo` in an id.
const MAX_INFO: usize = 128;
const PURPOSE: &str = "mcp-runtime session id 1";

/// The content of a session id.
pub(crate) struct Session {
    pub(crate) uid: SessionUid,
    pub(crate) revision: Revision,
    pub(crate) client: ClientData,
    /// Seconds since 1970.
    pub(crate) expires: u64,
    /// Whether the id is valid only while this process has a record of the session.
    pub(crate) recorded: bool,
    /// Whether the record says that the session is used.
    pub(crate) used: AtomicBool,
}

/// Issues and opens session ids.
pub(crate) struct SessionIds {
    seal: Seal,
    lifetime: u64,
    /// The server's name.
    server: Box<str>,
    /// The data that ids without a caller are bound to.
    anonymous: Vec<u8>,
    opened: Mutex<SessionCache>,
}

/// Characters of an id that are random and identify it.
const RANDOM: usize = 24;
/// The offset of these characters.
const RANDOM_OFFSET: usize = 8;
/// Ids in the cache.
const MAX_CACHED: usize = 1024;

/// Opened ids, by a random part of each.
struct SessionCache {
    sessions: RecentMap<[u8; RANDOM], CachedSession>,
    /// That of the keys which opened them.
    generation: u64,
}

impl SessionCache {
    fn new(generation: u64) -> Self {
        Self { sessions: RecentMap::new(MAX_CACHED), generation }
    }
}

/// An id in the cache.
struct CachedSession {
    id: Box<[u8]>,
    caller: Option<(String, String)>,
    issued: u64,
    session: Arc<Session>,
}

impl CachedSession {
    fn matches(&self, id: &[u8], caller: Option<&Principal>) -> bool {
        let same_caller = match (&self.caller, caller) {
            (None, None) => true,
            (Some((issuer, subject)), Some(caller)) => *issuer == caller.issuer && *subject == caller.subject,
            _ => false,
        };
        same_caller && *self.id == *id
    }
}

impl SessionIds {
    /// How long ago a session was started; `now` is in seconds since 1970.
    pub(crate) fn age(&self, session: &Session, now: u64) -> Duration {
        Duration::from_secs(now.saturating_sub(session.expires.saturating_sub(self.lifetime)))
    }

    /// `lifetime` is in seconds. Servers that share keys are distinguished by their names.
    pub(crate) fn new(ring: &KeyRing, lifetime: u64, server: &str) -> Self {
        let anonymous = Self::bound_data(server, None);
        let opened = Mutex::new(SessionCache::new(0));
        Self { seal: Seal::new(ring, PURPOSE), lifetime, server: server.into(), anonymous, opened }
    }

    /// The id of a new session; `None` if it cannot be sealed. `recorded`: it is valid only while there is a record.
    pub(crate) fn issue(
        &self,
        nonce: Nonce,
        recorded: bool,
        revision: Revision,
        client: &ClientData,
        caller: Option<&Principal>,
        now: u64,
    ) -> Option<String> {
        let capabilities = client.capabilities.as_deref().map(PackedCapabilities::parse).unwrap_or_default();
        let mut plain = Vec::with_capacity(FIXED + MAX_INFO);
        plain.extend([FORMAT, u8::try_from(revision.index()).ok()?, u8::from(recorded)]);
        plain.extend(capabilities.bits());
        plain.extend(now.to_le_bytes());
        plain.extend(now.saturating_add(self.lifetime).to_le_bytes());
        if let Some(info) = client.info.as_deref().and_then(truncate_client_info) {
            plain.extend(info.into_bytes());
        }
        self.seal.seal_with(nonce, &plain, &self.bound_to(caller)).ok()
    }

    /// The session with this id; `None` if it has expired, or belongs to another server or caller.
    pub(crate) fn open(&self, id: &[u8], caller: Option<&Principal>, now: u64) -> Option<Arc<Session>> {
        let key: [u8; RANDOM] = id.get(RANDOM_OFFSET..RANDOM_OFFSET + RANDOM)?.try_into().ok()?;
        let generation = self.seal.generation();
        let mut opened = self.opened.lock();
        if opened.generation != generation {
            // a key that was removed opens nothing any more
            *opened = SessionCache::new(generation);
        }
        if let Some(cached) = opened.sessions.get(&key).filter(|cached| cached.matches(id, caller)) {
            let valid = is_valid_at(cached.issued, cached.session.expires, now);
            return valid.then(|| cached.session.clone());
        }
        drop(opened);
        let (session, issued) = self.unseal(id, caller)?;
        if !is_valid_at(issued, session.expires, now) {
            return None;
        }
        let session = Arc::new(session);
        let caller = caller.map(|caller| (caller.issuer.clone(), caller.subject.clone()));
        opened = self.opened.lock();
        if opened.generation != generation {
            // it was opened with keys that have been replaced meanwhile
            return Some(session);
        }
        drop(opened.sessions.trim());
        opened
            .sessions
            .insert(key, CachedSession { id: id.into(), caller, issued, session: session.clone() });
        Some(session)
    }

    /// The session with this id, and when it was issued.
    fn unseal(&self, id: &[u8], caller: Option<&Principal>) -> Option<(Session, u64)> {
        let opened = self.seal.open(id, &self.bound_to(caller))?;
        let (fixed, info) = opened.plain.split_at_checked(FIXED)?;
        let (&[format, revision, recorded, low, high], times) = fixed.split_first_chunk::<5>()?;
        let (issued, expires) = times.split_first_chunk::<8>()?;
        let (issued, expires) = (u64::from_le_bytes(*issued), u64::from_le_bytes(expires.try_into().ok()?));
        let revision = *Revision::ALL.get(usize::from(revision))?;
        if format != FORMAT {
            return None;
        }
        let info = std::str::from_utf8(info).ok()?;
        let client = ClientData {
            info: (!info.is_empty()).then(|| Arc::from(info)),
            capabilities: Some(PackedCapabilities::from_bits([low, high]).json()),
        };
        let (uid, used) = (uid_of(&opened.nonce), AtomicBool::new(false));
        Some((Session { uid, revision, client, expires, recorded: recorded != 0, used }, issued))
    }

    /// The data that authenticates the id of a caller's session.
    fn bound_to(&self, caller: Option<&Principal>) -> Cow<'_, [u8]> {
        match caller {
            Some(_) => Cow::Owned(Self::bound_data(&self.server, caller)),
            None => Cow::Borrowed(&self.anonymous),
        }
    }

    /// The server and the caller in an unambiguous encoding.
    pub(super) fn bound_data(server: &str, caller: Option<&Principal>) -> Vec<u8> {
        let mut bytes = (server.len() as u64).to_le_bytes().to_vec();
        bytes.extend(server.as_bytes());
        bytes.push(u8::from(caller.is_some()));
        if let Some(caller) = caller {
            bytes.extend((caller.issuer.len() as u64).to_le_bytes());
            bytes.extend(caller.issuer.as_bytes());
            bytes.extend(caller.subject.as_bytes());
        }
        bytes
    }
}

/// The identity of the session whose id has that nonce.
pub(crate) fn uid_of(nonce: &Nonce) -> SessionUid {
    let mut uid = SessionUid::default();
    uid.copy_from_slice(&nonce[..size_of::<SessionUid>()]);
    uid
}

fn is_valid_at(issued: u64, expires: u64, now: u64) -> bool {
    // clocks of replicas differ: one that is behind must accept what another has just issued
    expires > now && issued <= now.saturating_add(60)
}

/// Shortens `clientInfo` to an object of at most [`MAX_INFO`] bytes: its name and version, truncated; `None` if that is too
/// long as well.
fn truncate_client_info(info: &str) -> Option<String> {
    if info.len() <= MAX_INFO {
        return Some(info.to_owned());
    }
    let info: Value = serde_json::from_str(info).ok()?;
    let text =
        |key: &str, most: usize| beginning(info.get(key).and_then(Value::as_str).unwrap_or_default(), most);
    let short = serde_json::json!({ "name": text("name", 64), "version": text("version", 32) }).to_string();
    // escapes make the JSON of some names longer than their text
    (short.len() <= MAX_INFO).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::crypto::random_bytes;

    fn ring() -> KeyRing {
        KeyRing::new(vec![crate::core::crypto::Key::new([1; 32])])
    }

    fn session_ids() -> SessionIds {
        SessionIds::new(&ring(), 100, "test")
    }

    fn client(info: &str) -> ClientData {
        ClientData { info: Some(info.into()), capabilities: Some(r#"{"sampling":{}}"#.into()) }
    }

    #[test]
    fn an_id_can_be_opened_until_it_expires() {
        let ids = session_ids();
        let id = ids
            .issue(
                random_bytes().unwrap(),
                false,
                Revision::V2025_06_18,
                &client(r#"{"name":"c","version":"1"}"#),
                None,
                1000,
            )
            .unwrap();
        let session = ids.open(id.as_bytes(), None, 1099).unwrap();
        assert_eq!((session.revision, session.expires), (Revision::V2025_06_18, 1100));
        assert_eq!(session.client.info.as_deref(), Some(r#"{"name":"c","version":"1"}"#));
        assert_eq!(session.client.capabilities.as_deref(), Some(r#"{"sampling":{}}"#));
        assert!(ids.open(id.as_bytes(), None, 1100).is_none());
        assert!(ids.open(id.as_bytes(), None, 900).is_none(), "issued in the future");
        assert!(ids.open(b"", None, 1000).is_none());
    }

    #[test]
    fn a_session_in_use_stays_in_the_cache_however_many_others_are_opened() {
        let ids = session_ids();
        let issue = || {
            let client = ClientData::default();
            ids.issue(random_bytes().unwrap(), false, Revision::LATEST_LEGACY, &client, None, 0).unwrap()
        };
        let open = |id: &str| ids.open(id.as_bytes(), None, 1).unwrap();
        let (used, unused) = (issue(), issue());
        let (first, dropped) = (open(&used), open(&unused));
        for n in 0..2 * MAX_CACHED {
            open(&issue());
            if n % 100 == 0 {
                assert!(Arc::ptr_eq(&first, &open(&used)), "after {n} others");
            }
            // the most are there just before half of them are dropped
            if n % 10 == 0 {
                let cached = ids.opened.lock();
                assert!(cached.sessions.iter().count() <= MAX_CACHED);
            }
        }
        assert!(!Arc::ptr_eq(&dropped, &open(&unused)));
    }

    #[test]
    fn an_id_can_be_opened_only_by_its_caller() {
        let ids = session_ids();
        let (alice, bob) = (Principal::new("a", "bc"), Principal::new("ab", "c"));
        let id = ids
            .issue(
                random_bytes().unwrap(),
                false,
                Revision::LATEST_LEGACY,
                &ClientData::default(),
                Some(&alice),
                0,
            )
            .unwrap();
        assert!(ids.open(id.as_bytes(), Some(&alice), 1).is_some());
        assert!(ids.open(id.as_bytes(), Some(&bob), 1).is_none());
        assert!(ids.open(id.as_bytes(), None, 1).is_none());
        let open = ids
            .issue(random_bytes().unwrap(), false, Revision::LATEST_LEGACY, &ClientData::default(), None, 0)
            .unwrap();
        assert!(ids.open(open.as_bytes(), Some(&alice), 1).is_none());
        assert!(SessionIds::new(&ring(), 100, "other").open(open.as_bytes(), None, 1).is_none());
    }

    #[test]
    fn an_id_is_short_however_long_the_client_info_is() {
        let ids = session_ids();
        for (name, is_kept) in
            [("x".repeat(5000), true), ("語".repeat(5000), true), ("\u{1}".repeat(5000), false)]
        {
            let info = serde_json::json!({ "name": name, "version": name, "title": name }).to_string();
            let id = ids
                .issue(random_bytes().unwrap(), false, Revision::LATEST_LEGACY, &client(&info), None, 0)
                .unwrap();
            assert!(id.len() <= 1024, "{}", id.len());
            let session = ids.open(id.as_bytes(), None, 1).unwrap();
            let Some(back) = session.client.info.clone().filter(|_| is_kept) else {
                assert!(!is_kept && session.client.info.is_none());
                continue;
            };
            assert!(back.len() <= MAX_INFO);
            let back: Value = serde_json::from_str(&back).unwrap();
            assert!(name.starts_with(back["name"].as_str().unwrap()));
        }
    }
}
