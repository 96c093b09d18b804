//! API keys: secrets that a few known callers have, from a list, a file or the environment.

use std::{
    collections::HashMap,
    env, fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use http::request::Parts;
use ring::digest::{SHA256, digest as hash};

use super::verifier::{Denied, Method, PresentedToken, Verdict};
use crate::{connection::Principal, crypto::GENERATE, sync::RwLock};

/// The issuer of callers with API keys.
const ISSUER: &str = "urn:mcp-runtime:api-keys";
/// Shorter keys could be guessed.
const MIN_KEY: usize = 16;

/// The API keys of known callers, which send theirs as `Authorization: Bearer <key>`.
///
/// Each entry is the name of a caller, its key, and the scopes that are granted to it, separated by spaces; entries are
/// separated by line ends or `;`, and a line that begins with `#` is a comment. A key has at least 16 characters. Instead
/// of a key, its SHA-256 can be given, as `sha256:` and 64 hexadecimal digits, so that the list is not secret.
///
/// ```text
/// ada  4wVd0yKbUZJtq2Qn    notes:read notes:write
/// ci   sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824    notes:read
/// ```
///
/// Two keys of one name are two keys of one caller, such as the old and the new one of a rotation.
/// [`ServerHandle::reload_auth`](crate::ServerHandle::reload_auth) reads the file or the variable again.
#[derive(Clone)]
#[must_use = "give it to `ServerBuilder::auth`"]
pub struct ApiKeys {
    source: KeyList,
    known: Result<Arc<RwLock<KnownKeys>>, String>,
}

type KnownKeys = HashMap<KeyDigest, Arc<Principal>>;

/// SHA-256 of a key, as lists may have it instead of the key.
type KeyDigest = [u8; 32];

fn digest(key: &str) -> KeyDigest {
    let mut digest = [0; 32];
    digest.copy_from_slice(hash(&SHA256, key.as_bytes()).as_ref());
    digest
}

/// Where the keys are.
#[derive(Clone)]
enum KeyList {
    Fixed,
    Variable(String),
    File(PathBuf),
}

impl KeyList {
    /// Reads the keys; `None` if they are not read from anywhere.
    fn read(&self) -> Result<Option<KnownKeys>, String> {
        let text = match self {
            Self::Fixed => return Ok(None),
            Self::Variable(name) => env::var(name)
                .map_err(|_| format!("the environment variable `{name}` with API keys is not set"))?,
            Self::File(path) => read_file(path)?,
        };
        parse(&text).map(Some).map_err(|error| match self {
            Self::Fixed => error,
            Self::Variable(name) => format!("the environment variable `{name}`: {error}"),
            Self::File(path) => format!("`{}`: {error}", path.display()),
        })
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("`{}` cannot be read: {error}", path.display()))
}

/// Reads the entries of a list. Errors do not contain keys.
fn parse(text: &str) -> Result<KnownKeys, String> {
    let mut known = KnownKeys::new();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let entries = lines.flat_map(|line| line.split(';')).map(str::trim).filter(|entry| !entry.is_empty());
    for (index, entry) in entries.enumerate() {
        let number = index + 1;
        let mut words = entry.split_whitespace();
        let (Some(name), Some(key)) = (words.next(), words.next()) else {
            return Err(format!("entry {number} is not a name and a key"));
        };
        let digest = match key.strip_prefix("sha256:") {
            Some(hex) => parse_digest(hex)
                .ok_or_else(|| format!("the digest of entry {number} is not 64 hexadecimal digits"))?,
            None if key.len() < MIN_KEY => {
                return Err(format!(
                    "the key of entry {number} is shorter than {MIN_KEY} characters\n{GENERATE}"
                ));
            }
            None => digest(key),
        };
        let principal = Principal::new(ISSUER, name).with_scopes(words);
        if known.insert(digest, Arc::new(principal)).is_some() {
            return Err(format!("the key of entry {number} is that of an earlier entry"));
        }
    }
    if known.is_empty() { Err("the list contains no API key".into()) } else { Ok(known) }
}

fn parse_digest(hex: &str) -> Option<KeyDigest> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl ApiKeys {
    fn read(source: KeyList) -> Self {
        let known = match source.read() {
            Ok(Some(known)) => Ok(Arc::new(RwLock::new(known))),
            Ok(None) => Err("the list contains no API key".into()),
            Err(error) => Err(error),
        };
        Self { source, known }
    }

    /// The keys in an environment variable. What is wrong with them is an error of
    /// [`build`](crate::ServerBuilder::build).
    pub fn from_env(name: impl Into<String>) -> Self {
        Self::read(KeyList::Variable(name.into()))
    }

    /// The keys in a file. What is wrong with them is an error of [`build`](crate::ServerBuilder::build).
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self::read(KeyList::File(path.into()))
    }

    /// These keys, each with who calls with it. No key, one of fewer than 16 characters and two that are equal are errors of
    /// [`build`](crate::ServerBuilder::build).
    pub fn new<K: AsRef<str>>(keys: impl IntoIterator<Item = (K, Principal)>) -> Self {
        let mut known = KnownKeys::new();
        for (key, principal) in keys {
            let error = if key.as_ref().len() < MIN_KEY {
                format!("an API key is shorter than {MIN_KEY} characters\n{GENERATE}")
            } else if known.insert(digest(key.as_ref()), Arc::new(principal)).is_some() {
                "two API keys are equal\ngive each caller its own".into()
            } else {
                continue;
            };
            return Self { source: KeyList::Fixed, known: Err(error) };
        }
        if known.is_empty() {
            return Self { source: KeyList::Fixed, known: Err("the list contains no API key".into()) };
        }
        Self { source: KeyList::Fixed, known: Ok(Arc::new(RwLock::new(known))) }
    }

    /// What is wrong with the keys.
    pub(super) fn problem(&self) -> Option<&str> {
        self.known.as_ref().err().map(String::as_str)
    }
}

/// Without the keys.
impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKeys")
    }
}

impl Method for ApiKeys {
    fn verify<'a>(&'a self, token: PresentedToken<'a>, _request: &'a Parts) -> Verdict<'a> {
        // the time that it takes to find a digest says nothing about a key
        let found = self.known.as_ref().ok().and_then(|known| known.read().get(&digest(token.text)).cloned());
        Verdict::Ready(found.ok_or_else(|| Denied::invalid_token("the API key is unknown")))
    }

    fn reload(&self) -> Result<Vec<Principal>, String> {
        let (Ok(known), Some(fresh)) = (&self.known, self.source.read()?) else { return Ok(Vec::new()) };
        let mut known = known.write();
        // the streams of a caller end as well if its scopes have changed
        let is_gone = |old: &&Arc<Principal>| !fresh.values().any(|new| new == *old);
        let gone = known.values().filter(is_gone).map(|old| Principal::clone(old)).collect();
        *known = fresh;
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_a_name_a_key_and_scopes() {
        let list = "# the keys\nada 0123456789abcdef notes:read notes:write; bob fedcba9876543210\n\n\
                    ci sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 x";
        let known = parse(list).unwrap();
        let ada = &known[&digest("0123456789abcdef")];
        assert_eq!(
            (ada.subject(), ada.scopes()),
            ("ada", &["notes:read".to_owned(), "notes:write".into()][..])
        );
        assert_eq!(known[&digest("fedcba9876543210")].subject(), "bob");
        assert_eq!(known[&digest("0123456789abcdef")].issuer(), ISSUER);
        assert_eq!(known.len(), 3);
    }

    #[test]
    fn what_is_wrong_with_a_list_is_said_without_its_keys() {
        for (list, reason) in [
            ("", "no API key"),
            ("# none", "no API key"),
            ("ada", "not a name and a key"),
            ("ada short-key", "shorter"),
            ("ada sha256:12", "64 hexadecimal digits"),
            ("ada 0123456789abcdef\nbob 0123456789abcdef", "earlier entry"),
        ] {
            let error = parse(list).unwrap_err();
            assert!(
                error.contains(reason) && !error.contains("0123") && !error.contains("short-key"),
                "{error}"
            );
        }
    }
}
