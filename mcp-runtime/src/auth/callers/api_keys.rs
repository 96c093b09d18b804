//! API keys: secrets that a few known callers have, from a list, a file or the environment.

use std::{
    collections::HashMap,
    env, fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use http::request::Parts;
use ring::digest::{SHA256, digest as hash};
use serde_json::Map;

use super::verifier::{Denied, Method, PresentedToken, Verdict};
use crate::core::{
    connection::Principal, crypto::GENERATE, reason::Refusal, sync::RwLock, text_file::read_text,
};

/// The issuer of callers with API keys.
pub(super) const ISSUER: &str = "urn:mcp-runtime:api-keys";
/// Shorter keys could be guessed.
const MIN_KEY: usize = 16;

/// The API keys of known callers, which send theirs as `Authorization: Bearer <key>`.
/// Each entry is the name of a caller, its key, and its scopes, separated by spaces; entries are separated by line ends
/// or `;`, and a line that begins with `#` is a comment. A key has at least 16 characters. An entry may have the SHA-256
/// of the key instead, as `sha256:` and 64 hexadecimal digits, so that the list is not secret.
///
/// A word with `=` is a [claim](Principal::claims) of the caller, such as its tenant: JSON without spaces, a text in quotes,
/// or any other word, which is a text.
///
/// ```text
/// ada  4wVd0yKbUZJtq2Qn    notes:read notes:write  tenant=acme level=3 team="north sea"
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
    read_text(path, u64::MAX).map_err(|error| format!("`{}` cannot be read: {error}", path.display()))
}

/// Reads the entries of a list. Errors do not contain keys.
fn parse(text: &str) -> Result<KnownKeys, String> {
    let mut known = KnownKeys::new();
    let mut number = 0;
    for mut line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        loop {
            line = line.trim_start_matches(is_between_words);
            if line.is_empty() {
                break;
            }
            number += 1;
            let (name, rest) = line.split_at(word_length(line));
            let rest = rest.trim_start();
            let (key, rest) = rest.split_at(word_length(rest));
            let digest = match key.strip_prefix("sha256:") {
                _ if key.is_empty() => return Err(format!("entry {number} is not a name and a key")),
                Some(hex) => parse_digest(hex)
                    .ok_or_else(|| format!("the digest of entry {number} is not 64 hexadecimal digits"))?,
                None if key.len() < MIN_KEY => {
                    return Err(format!(
                        "the key of entry {number} is shorter than {MIN_KEY} characters\n{GENERATE}"
                    ));
                }
                None => digest(key),
            };
            let principal = Principal::new(ISSUER, name);
            let granted = with_grants(principal, rest).map_err(|error| format!("entry {number}: {error}"));
            let (principal, rest) = granted?;
            if known.insert(digest, Arc::new(principal)).is_some() {
                return Err(format!("the key of entry {number} is that of an earlier entry"));
            }
            line = rest;
        }
    }
    if known.is_empty() { Err("the list contains no API key".into()) } else { Ok(known) }
}

/// Reads the scopes of an entry, and claims such as `tenant=acme` or `tenant = "acme"`, until the `;` at its end. A value
/// that is not JSON is a text. The second output is the rest of the line.
fn with_grants(principal: Principal, mut text: &str) -> Result<(Principal, &str), String> {
    let (mut scopes, mut claims) = (Vec::new(), Map::new());
    loop {
        text = text.trim_start();
        if text.is_empty() || text.starts_with(';') {
            let principal = principal.with_scopes(scopes);
            return Ok((if claims.is_empty() { principal } else { principal.with_claims(claims) }, text));
        }
        let end = text.find(|c| is_between_words(c) || c == '=').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let Some(value) = rest.trim_start().strip_prefix('=') else {
            if word.contains(['"', '\\']) {
                return Err(
                    "a scope cannot contain a quote\nwrite the JSON of a claim without spaces, or in quotes"
                        .into(),
                );
            }
            scopes.push(word);
            text = rest;
            continue;
        };
        let value = value.trim_start();
        let length = if value.starts_with('"') { quoted_length(value)? } else { word_length(value) };
        let (value, rest) = value.split_at(length);
        if word.is_empty() || value.is_empty() {
            return Err("a claim needs a name and a value: `tenant=acme`".into());
        }
        let value = match serde_json::from_str(value) {
            Ok(value) => value,
            Err(_) if value.starts_with('"') => return Err("a claim in quotes is not a JSON string".into()),
            Err(_) => value.into(),
        };
        if claims.insert(word.to_owned(), value).is_some() {
            return Err(
                "a claim is given twice\nwrite several values as an array: `teams=[\"a\",\"b\"]`".into()
            );
        }
        text = rest;
    }
}

/// White space, and the `;` between two entries.
fn is_between_words(c: char) -> bool {
    c.is_whitespace() || c == ';'
}

fn word_length(text: &str) -> usize {
    text.find(is_between_words).unwrap_or(text.len())
}

/// The length of the text with both quotes.
fn quoted_length(text: &str) -> Result<usize, String> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Ok(at + 1),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    Err("a quote of a claim is not closed".into())
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

    /// The keys in an environment variable. Invalid keys are an error from
    /// [`build`](crate::ServerBuilder::build).
    pub fn from_env(name: impl Into<String>) -> Self {
        Self::read(KeyList::Variable(name.into()))
    }

    /// The keys in a file. Invalid keys are an error from [`build`](crate::ServerBuilder::build).
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self::read(KeyList::File(path.into()))
    }

    /// These keys, each with its caller. An empty list, a key of fewer than 16 characters and two equal keys are errors
    /// from [`build`](crate::ServerBuilder::build).
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

    /// The problem with the keys, if there is one.
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
        Verdict::Ready(match found {
            Some(principal) => token.require_bearer(principal),
            None => Err(Denied::token(Refusal::TokenUnknown, "the API key is unknown")),
        })
    }

    fn has(&self, principal: &Principal) -> Option<bool> {
        let known = self.known.as_ref().ok()?.read();
        Some(known.values().any(|known| **known == *principal))
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
    use serde_json::Value;

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
    fn words_with_an_equals_sign_are_claims() {
        let list = "ada 0123456789abcdef read tenant=acme level=3 team=\"north; \\\"sea\\\"\" write;\
                    bob fedcba98765432==;eve quoted\"in=\"the-key tenant = \"b c\" teams=[\"a\",\"b\"] x";
        let known = parse(list).unwrap();
        let claims = |key: &str| known[&digest(key)].claims().cloned().map(Value::Object);
        let ada = serde_json::json!({ "tenant": "acme", "level": 3, "team": "north; \"sea\"" });
        assert_eq!(claims("0123456789abcdef"), Some(ada));
        assert_eq!(known[&digest("0123456789abcdef")].scopes(), ["read", "write"]);
        assert_eq!(claims("fedcba98765432=="), None);
        let eve = serde_json::json!({ "tenant": "b c", "teams": ["a", "b"] });
        assert_eq!(claims("quoted\"in=\"the-key"), Some(eve));
        assert_eq!(known[&digest("quoted\"in=\"the-key")].scopes(), ["x"]);
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
            ("ada fedcba9876543210 tenant=", "a name and a value"),
            ("ada fedcba9876543210 =acme", "a name and a value"),
            ("ada fedcba9876543210 tenant=\"a; b", "not closed"),
            ("ada fedcba9876543210 tenant=a tenant=b", "given twice"),
            ("ada fedcba9876543210 teams=[\"a\", \"b\"]", "without spaces"),
        ] {
            let error = parse(list).unwrap_err();
            assert!(
                error.contains(reason) && !error.contains("0123") && !error.contains("short-key"),
                "{error}"
            );
        }
    }
}
