//! What a session id says. Made at `initialize`, opened with every later request; the ids that were opened last are
//! kept open.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use serde_json::Value;

use super::capabilities::PackedCapabilities;
use crate::{
    connection::{Caller, ClientData},
    crypto::{KeyRing, Seal},
    protocol::Revision,
    sync::Mutex,
};

/// The identity of a session.
pub(crate) type Sid = [u8; 16];

/// The layout of the plain text; another number for another layout.
const LAYOUT: u8 = 2;
const FIXED: usize = 1 + 1 + 2 + 8 + 8;
/// How much of `clientInfo` travels with the client.
const MAX_INFO: usize = 128;
const PURPOSE: &str = "mcp-runtime session id 1";

/// An open session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) sid: Sid,
    pub(crate) revision: Revision,
    pub(crate) client: ClientData,
    /// Seconds since 1970.
    pub(crate) expires: u64,
}

/// Makes and opens session ids.
#[derive(Debug)]
pub(crate) struct SessionIds {
    seal: Seal,
    lifetime: u64,
    /// What the sessions of this server are bound to, before their caller.
    server: Vec<u8>,
    /// The same without a caller.
    anonymous: Vec<u8>,
    /// Ids that were opened, by a random part of each.
    opened: Mutex<HashMap<[u8; RANDOM], SessionClaims>>,
}

/// Characters of an id that tell it from others; they are random.
const RANDOM: usize = 24;
/// Where they begin.
const RANDOM_AT: usize = 8;
/// Ids that are kept open.
const MAX_OPENED: usize = 1024;

/// An id that was opened before.
#[derive(Debug)]
struct SessionClaims {
    id: Box<[u8]>,
    caller: Option<(String, String)>,
    issued: u64,
    session: Arc<Session>,
}

impl SessionClaims {
    fn is(&self, id: &[u8], caller: Option<&Caller>) -> bool {
        let same_caller = match (&self.caller, caller) {
            (None, None) => true,
            (Some((issuer, subject)), Some(caller)) => *issuer == caller.issuer && *subject == caller.subject,
            _ => false,
        };
        same_caller && *self.id == *id
    }
}

impl SessionIds {
    /// `lifetime` is in seconds; two servers with one key have different sessions by their names.
    pub(crate) fn new(ring: &KeyRing, lifetime: u64, server: &str) -> Self {
        let mut bytes = (server.len() as u64).to_le_bytes().to_vec();
        bytes.extend(server.as_bytes());
        let anonymous = [&bytes[..], &[0]].concat();
        let opened = Mutex::default();
        Self { seal: Seal::new(ring, PURPOSE), lifetime, server: bytes, anonymous, opened }
    }

    /// A new session's id; `None` when the operating system has no randomness to give.
    pub(crate) fn issue(
        &self,
        revision: Revision,
        client: &ClientData,
        caller: Option<&Caller>,
        now: u64,
    ) -> Option<String> {
        let capabilities = client.capabilities.as_deref().map(PackedCapabilities::read).unwrap_or_default();
        let mut plain = Vec::with_capacity(FIXED + MAX_INFO);
        plain.extend([LAYOUT, u8::try_from(revision.index()).ok()?]);
        plain.extend(capabilities.bits());
        plain.extend(now.to_le_bytes());
        plain.extend(now.saturating_add(self.lifetime).to_le_bytes());
        if let Some(info) = client.info.as_deref().and_then(truncate) {
            plain.extend(info.into_bytes());
        }
        self.seal.seal(&plain, &self.bound(caller)).ok()
    }

    /// The session that `id` is, unless it expired, is not of this server or belongs to another caller.
    pub(crate) fn open(&self, id: &[u8], caller: Option<&Caller>, now: u64) -> Option<Arc<Session>> {
        let key: [u8; RANDOM] = id.get(RANDOM_AT..RANDOM_AT + RANDOM)?.try_into().ok()?;
        let mut opened = self.opened.lock();
        if let Some(known) = opened.get(&key).filter(|known| known.is(id, caller)) {
            let alive = is_alive(known.issued, known.session.expires, now);
            return alive.then(|| known.session.clone());
        }
        drop(opened);
        let (session, issued) = self.unseal(id, caller)?;
        if !is_alive(issued, session.expires, now) {
            return None;
        }
        let session = Arc::new(session);
        let caller = caller.map(|caller| (caller.issuer.clone(), caller.subject.clone()));
        opened = self.opened.lock();
        if opened.len() >= MAX_OPENED {
            opened.clear();
        }
        opened.insert(key, SessionClaims { id: id.into(), caller, issued, session: session.clone() });
        Some(session)
    }

    /// What an id says, and when it was issued.
    fn unseal(&self, id: &[u8], caller: Option<&Caller>) -> Option<(Session, u64)> {
        let opened = self.seal.open(id, &self.bound(caller))?;
        let (fixed, info) = opened.plain.split_at_checked(FIXED)?;
        let (&[layout, revision, low, high], times) = fixed.split_first_chunk::<4>()?;
        let (issued, expires) = times.split_first_chunk::<8>()?;
        let (issued, expires) = (u64::from_le_bytes(*issued), u64::from_le_bytes(expires.try_into().ok()?));
        let revision = *Revision::ALL.get(usize::from(revision))?;
        if layout != LAYOUT {
            return None;
        }
        let info = std::str::from_utf8(info).ok()?;
        let client = ClientData {
            info: (!info.is_empty()).then(|| Arc::from(info)),
            capabilities: Some(PackedCapabilities::from_bits([low, high]).json()),
        };
        let (sid, _) = opened.nonce.split_first_chunk::<16>()?;
        Some((Session { sid: *sid, revision, client, expires }, issued))
    }

    /// Server and caller as bytes that no other pair has.
    fn bound(&self, caller: Option<&Caller>) -> Cow<'_, [u8]> {
        let Some(caller) = caller else { return Cow::Borrowed(&self.anonymous) };
        let mut bytes = self.server.clone();
        bytes.push(1);
        bytes.extend((caller.issuer.len() as u64).to_le_bytes());
        bytes.extend(caller.issuer.as_bytes());
        bytes.extend(caller.subject.as_bytes());
        Cow::Owned(bytes)
    }
}

fn is_alive(issued: u64, expires: u64, now: u64) -> bool {
    // replicas' clocks differ a little: one that lags must not refuse what another has just issued
    expires > now && issued <= now.saturating_add(60)
}

/// `clientInfo` in at most [`MAX_INFO`] bytes, still an object; only the name and the version if it is longer.
fn truncate(info: &str) -> Option<String> {
    if info.len() <= MAX_INFO {
        return Some(info.to_owned());
    }
    let info: Value = serde_json::from_str(info).ok()?;
    let text = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mut name, mut version) = (text("name"), text("version"));
    cut(&mut version, 32);
    cut(&mut name, 64);
    loop {
        let short = serde_json::json!({ "name": name, "version": version }).to_string();
        if short.len() <= MAX_INFO {
            return Some(short);
        }
        // escapes made it longer than its text
        let (n, v) = (name.len() / 2, version.len() / 2);
        cut(&mut name, n);
        cut(&mut version, v);
    }
}

fn cut(text: &mut String, at_most: usize) {
    while text.len() > at_most {
        text.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> KeyRing {
        KeyRing::new(vec![crate::crypto::Key::new([1; 32])])
    }

    fn token() -> SessionIds {
        SessionIds::new(&ring(), 100, "test")
    }

    fn client(info: &str) -> ClientData {
        ClientData { info: Some(info.into()), capabilities: Some(r#"{"sampling":{}}"#.into()) }
    }

    #[test]
    fn a_session_comes_back_until_it_expires() {
        let token = token();
        let id =
            token.issue(Revision::V2025_06_18, &client(r#"{"name":"c","version":"1"}"#), None, 1000).unwrap();
        let session = token.open(id.as_bytes(), None, 1099).unwrap();
        assert_eq!((session.revision, session.expires), (Revision::V2025_06_18, 1100));
        assert_eq!(session.client.info.as_deref(), Some(r#"{"name":"c","version":"1"}"#));
        assert_eq!(session.client.capabilities.as_deref(), Some(r#"{"sampling":{}}"#));
        assert!(token.open(id.as_bytes(), None, 1100).is_none());
        assert!(token.open(id.as_bytes(), None, 900).is_none(), "issued in the future");
        assert!(token.open(b"", None, 1000).is_none());
    }

    #[test]
    fn a_session_is_its_callers_alone() {
        let token = token();
        let (alice, bob) = (Caller::new("a", "bc"), Caller::new("ab", "c"));
        let id = token.issue(Revision::LATEST_LEGACY, &ClientData::default(), Some(&alice), 0).unwrap();
        assert!(token.open(id.as_bytes(), Some(&alice), 1).is_some());
        assert!(token.open(id.as_bytes(), Some(&bob), 1).is_none());
        assert!(token.open(id.as_bytes(), None, 1).is_none());
        let open = token.issue(Revision::LATEST_LEGACY, &ClientData::default(), None, 0).unwrap();
        assert!(token.open(open.as_bytes(), Some(&alice), 1).is_none());
        assert!(SessionIds::new(&ring(), 100, "other").open(open.as_bytes(), None, 1).is_none());
    }

    #[test]
    fn an_id_is_short_whatever_the_client_says_of_itself() {
        let token = token();
        for name in ["x".repeat(5000), "\u{1}".repeat(5000), "語".repeat(5000)] {
            let info = serde_json::json!({ "name": name, "version": name, "title": name }).to_string();
            let id = token.issue(Revision::LATEST_LEGACY, &client(&info), None, 0).unwrap();
            assert!(id.len() <= 1024, "{}", id.len());
            let session = token.open(id.as_bytes(), None, 1).unwrap();
            let back = session.client.info.clone().unwrap();
            assert!(back.len() <= MAX_INFO);
            let back: Value = serde_json::from_str(&back).unwrap();
            assert!(name.starts_with(back["name"].as_str().unwrap()));
        }
    }
}
