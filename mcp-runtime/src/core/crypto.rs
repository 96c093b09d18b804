//! Random bytes, and authenticated encryption of the server's state that clients store: session ids and `requestState`.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{KeyInit as _, Tag, XChaCha20Poly1305, XNonce, aead::AeadInOut as _};
use hkdf::Hkdf;
use sha2::Sha256;

use crate::core::sync::RwLock;

/// The environment variable with the keys.
const VARIABLE: &str = "MCP_SERVER_KEYS";
const NONCE: usize = 24;
/// Random and unique, so that a part of it can serve as an id.
pub(crate) type Nonce = [u8; NONCE];
const TAG: usize = 16;
/// Length of the prefix that identifies the key of a sealed text.
const KEY_ID: usize = 4;

/// Bytes that cannot be guessed.
///
/// # Errors
/// The operating system provides no randomness.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// An id that cannot be guessed: 128 bits as 32 hexadecimal digits.
///
/// # Errors
/// The operating system provides no randomness.
pub(crate) fn random_id() -> Result<String, getrandom::Error> {
    Ok(format!("{:032x}", u128::from_ne_bytes(random_bytes()?)))
}

/// Bytes in hexadecimal digits.
#[cfg(any(feature = "client", feature = "events-webhook", feature = "skills"))]
pub(crate) fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A master key, from which a key for each purpose is derived.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A random key, which is lost when the process ends.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        random_bytes().map(Self)
    }

    /// Parses 64 hexadecimal digits, or 32 bytes in base64 of either alphabet.
    ///
    /// # Errors
    /// It is something else, or a key that can be guessed; the error does not contain it.
    pub(crate) fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let digits: Option<Vec<u8>> =
            text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
        let bytes = match digits.filter(|digits| digits.len() % 2 == 0) {
            Some(digits) => digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect(),
            None => {
                let url_safe = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
                URL_SAFE_NO_PAD.decode(url_safe).map_err(|_| KeyError::Malformed)?
            }
        };
        let length = bytes.len();
        let key = bytes.try_into().map(Self).map_err(|_| match length {
            0..32 => KeyError::TooShort,
            _ => KeyError::Malformed,
        })?;
        key.check().map(|()| key)
    }

    /// Refuses keys that no generator of random bytes makes: a repeated byte or pattern, a short word that is padded.
    ///
    /// # Errors
    /// The key is one of them.
    pub(crate) fn check(&self) -> Result<(), KeyError> {
        let mut found = [false; 256];
        for byte in self.0 {
            found[usize::from(byte)] = true;
        }
        let distinct = found.iter().filter(|&&found| found).count();
        if distinct < MIN_DISTINCT { Err(KeyError::Weak) } else { Ok(()) }
    }
}

/// Different bytes of a key at least. Of 32 random bytes more than 28 are different, nearly always.
const MIN_DISTINCT: usize = 12;

/// The reason why a key is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyError {
    Malformed,
    TooShort,
    Weak,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is not 64 hexadecimal digits, or base64 of 32 bytes",
            Self::TooShort => "it is too short: a key has 32 bytes",
            Self::Weak => "it can be guessed, since its bytes repeat",
        })
    }
}

/// How keys are made.
pub(crate) const GENERATE: &str = "generate one with `openssl rand -hex 32`";

/// The keys of a server: the first seals, and all of them open, so that keys can be rotated without downtime. Clones
/// share them.
#[derive(Clone)]
pub(crate) struct KeyRing(Arc<RingInner>);

struct RingInner {
    keys: RwLock<Arc<[Key]>>,
    /// Counts how often they were replaced.
    generation: AtomicU64,
    /// Whether the key was generated, so that it is lost when the process ends.
    random: AtomicBool,
    /// Where they are read again.
    file: Option<PathBuf>,
}

impl KeyRing {
    /// Keys that replicas share and that survive restarts.
    pub(crate) fn new(keys: Vec<Key>) -> Self {
        Self::of(keys, false, None)
    }

    fn of(keys: Vec<Key>, random: bool, file: Option<PathBuf>) -> Self {
        let (keys, generation) = (RwLock::new(keys.into()), AtomicU64::new(0));
        let random = AtomicBool::new(random);
        Self(Arc::new(RingInner { keys, generation, random, file }))
    }

    /// One random key.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(crate) fn random() -> Result<Self, String> {
        let key = Key::random()
            .map_err(|e| format!("the operating system provides no randomness for a key: {e}"))?;
        Ok(Self::of(vec![key], true, None))
    }

    /// The keys in the environment variable, if it is set.
    ///
    /// # Errors
    /// The variable contains something else; the message does not contain its value.
    pub(crate) fn from_environment() -> Result<Option<Self>, String> {
        let source = format!("`{VARIABLE}`");
        match std::env::var(VARIABLE) {
            Ok(text) => parse_keys(&text, &source).map(|keys| Some(Self::new(keys))),
            Err(std::env::VarError::NotUnicode(_)) => Err(invalid_key(&source, KeyError::Malformed)),
            Err(std::env::VarError::NotPresent) => Ok(None),
        }
    }

    /// The keys in a file, which [`reload`](Self::reload) reads again.
    ///
    /// # Errors
    /// It cannot be read, or contains something else.
    pub(crate) fn from_file(path: &Path) -> Result<Self, String> {
        Ok(Self::of(read_keys(path)?, false, Some(path.into())))
    }

    /// Replaces the keys by those that are in the file now.
    ///
    /// # Errors
    /// Returns the errors of [`from_file`](Self::from_file), or the keys are not from a file. The keys are unchanged then.
    pub(crate) fn reload(&self) -> Result<(), String> {
        let Some(file) = &self.0.file else {
            return Err(
                "the keys are not from a file\nset it with `.stores(|stores| stores.keys_from_file(..))`"
                    .into(),
            );
        };
        let keys = read_keys(file)?;
        let mut current = self.0.keys.write();
        *current = keys.into();
        self.0.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// A digest of `data` that no one computes without the newest key; for each purpose another one.
    #[cfg(feature = "events-webhook")]
    pub(crate) fn keyed_digest(&self, purpose: &str, data: &[u8]) -> [u8; 16] {
        let keys = self.0.keys.read();
        let key = keys.first().map_or(&[][..], |key| &key.0[..]);
        let mut digest = [0; 16];
        // as long as the output may be
        let _fits =
            Hkdf::<Sha256>::new(None, key).expand_multi_info(&[purpose.as_bytes(), &[0], data], &mut digest);
        digest
    }

    /// Whether only this process can open what it sealed.
    pub(crate) fn is_random(&self) -> bool {
        self.0.random.load(Ordering::Relaxed)
    }

    /// Replaces a random key by the keys in the environment variable, if that is set.
    ///
    /// # Errors
    /// Returns the errors of [`from_environment`](Self::from_environment).
    pub(crate) fn read_environment(&self) -> Result<(), String> {
        if !self.is_random() {
            return Ok(());
        }
        if let Some(found) = Self::from_environment()? {
            let keys = found.0.keys.read().clone();
            *self.0.keys.write() = keys;
            self.0.random.store(false, Ordering::Relaxed);
            self.0.generation.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// Warns, once in a process, if the environment variable is set and was not read.
    pub(crate) fn warn_of_unread_environment(&self) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if self.is_random() && std::env::var_os(VARIABLE).is_some() && !WARNED.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "`{VARIABLE}` is set, and the server does not read it: its key is random\n\
                 add `.stores(|stores| stores.keys_from_env())` to the builder"
            );
        }
    }

    fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }
}

fn read_keys(path: &Path) -> Result<Vec<Key>, String> {
    let source = format!("`{}`", path.display());
    let text = super::text_file::read_text(path, u64::MAX)
        .map_err(|error| format!("the keys in {source} cannot be read: {error}"))?;
    parse_keys(&text, &source)
}

/// Keys that are separated by commas or line ends.
fn parse_keys(text: &str, source: &str) -> Result<Vec<Key>, String> {
    let parts = text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty());
    // the text is a secret, even if it is malformed
    let keys: Result<Vec<_>, _> = parts.map(Key::parse).collect();
    match keys {
        Ok(keys) if keys.is_empty() => Err(invalid_key(source, KeyError::TooShort)),
        Ok(keys) => Ok(keys),
        Err(error) => Err(invalid_key(source, error)),
    }
}

fn invalid_key(source: &str, error: KeyError) -> String {
    format!("{source} contains an invalid key: {error}\n{GENERATE}; separate several keys by commas")
}

/// The opened content of a sealed text.
pub(crate) struct Opened {
    pub(crate) nonce: Nonce,
    pub(crate) plain: Vec<u8>,
}

/// Seals and opens texts for one purpose, with the keys that the ring has at that moment.
pub(crate) struct Seal {
    ring: KeyRing,
    purpose: &'static str,
    /// Derived from the keys of that generation.
    subkeys: RwLock<(u64, Arc<[Subkey]>)>,
}

struct Subkey {
    key_id: [u8; KEY_ID],
    cipher: XChaCha20Poly1305,
}

impl Subkey {
    fn new(key: &Key, purpose: &str) -> Self {
        let hkdf = Hkdf::<Sha256>::new(None, &key.0);
        let expand = |part: &str, out: &mut [u8]| {
            let info = [purpose.as_bytes(), part.as_bytes()];
            hkdf.expand_multi_info(&info, out).expect("HKDF gives up to 255 × 32 bytes");
        };
        let (mut subkey, mut key_id) = ([0; 32], [0; KEY_ID]);
        expand(" key", &mut subkey);
        expand(" mark", &mut key_id);
        Self { key_id, cipher: XChaCha20Poly1305::new(&subkey.into()) }
    }
}

/// The subkeys of a ring's keys, and the generation of these.
fn derive(ring: &KeyRing, purpose: &str) -> (u64, Arc<[Subkey]>) {
    // the generation changes under the same lock
    let keys = ring.0.keys.read();
    (ring.generation(), keys.iter().map(|key| Subkey::new(key, purpose)).collect())
}

impl Seal {
    /// A text that was sealed for one purpose does not open for another.
    pub(crate) fn new(ring: &KeyRing, purpose: &'static str) -> Self {
        let subkeys = RwLock::new(derive(ring, purpose));
        Self { ring: ring.clone(), purpose, subkeys }
    }

    fn subkeys(&self) -> Arc<[Subkey]> {
        let generation = self.ring.generation();
        {
            let current = self.subkeys.read();
            if current.0 == generation {
                return current.1.clone();
            }
        }
        let derived = derive(&self.ring, self.purpose);
        let subkeys = derived.1.clone();
        *self.subkeys.write() = derived;
        subkeys
    }

    /// Changes whenever the keys do: a value that was opened before may no longer open.
    pub(crate) fn generation(&self) -> u64 {
        self.ring.generation()
    }

    /// Seals `plain` as visible ASCII, which opens only with the same `bound` data.
    ///
    /// # Errors
    /// The operating system provides no randomness, or `plain` is too long for the cipher.
    pub(crate) fn seal(&self, plain: &[u8], bound: &[u8]) -> Result<String, SealError> {
        self.seal_with(random_bytes().map_err(|_| SealError)?, plain, bound)
    }

    /// Seals `plain` with a nonce that is random and not used for anything else.
    ///
    /// # Errors
    /// `plain` is too long for the cipher.
    pub(crate) fn seal_with(&self, nonce: Nonce, plain: &[u8], bound: &[u8]) -> Result<String, SealError> {
        Ok(URL_SAFE_NO_PAD.encode(self.seal_raw(nonce, plain, bound)?))
    }

    pub(crate) fn seal_raw(&self, nonce: Nonce, plain: &[u8], bound: &[u8]) -> Result<Vec<u8>, SealError> {
        let subkeys = self.subkeys();
        let Subkey { key_id, cipher } = subkeys.first().ok_or(SealError)?;
        let mut sealed = Vec::with_capacity(KEY_ID + NONCE + plain.len() + TAG);
        sealed.extend_from_slice(key_id);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let text = (&mut sealed[KEY_ID + NONCE..]).into();
        let tag = cipher.encrypt_inout_detached(&XNonce::from(nonce), bound, text).map_err(|_| SealError)?;
        sealed.extend_from_slice(&tag);
        Ok(sealed)
    }

    /// Opens the result of [`seal`](Self::seal); `None` for anything else.
    pub(crate) fn open(&self, text: &[u8], bound: &[u8]) -> Option<Opened> {
        self.open_bytes(URL_SAFE_NO_PAD.decode(text).ok()?, bound)
    }

    /// Opens the result of [`seal_raw`](Self::seal_raw); `None` for anything else.
    pub(crate) fn open_bytes(&self, mut sealed: Vec<u8>, bound: &[u8]) -> Option<Opened> {
        let tag_at = sealed.len().checked_sub(TAG).filter(|at| *at >= KEY_ID + NONCE)?;
        let subkeys = self.subkeys();
        let subkey = subkeys.iter().find(|subkey| sealed.starts_with(&subkey.key_id))?;
        let nonce: Nonce = sealed[KEY_ID..KEY_ID + NONCE].try_into().ok()?;
        let tag = Tag::try_from(&sealed[tag_at..]).ok()?;
        sealed.truncate(tag_at);
        let buffer = (&mut sealed[KEY_ID + NONCE..]).into();
        subkey.cipher.decrypt_inout_detached(&XNonce::from(nonce), bound, buffer, &tag).ok()?;
        sealed.drain(..KEY_ID + NONCE);
        Some(Opened { nonce, plain: sealed })
    }
}

/// The text was not sealed.
#[derive(Debug)]
pub(crate) struct SealError;

/// A key for tests, which is not random but passes for it.
#[cfg(test)]
pub(crate) fn test_key(first: u8) -> [u8; 32] {
    std::array::from_fn(|n| first.wrapping_add(u8::try_from(n).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSE: &str = "mcp-runtime test";

    #[test]
    fn a_sealed_text_opens_only_with_its_key_purpose_and_bound_data() {
        let ring = |byte| KeyRing::new(vec![Key::new([byte; 32])]);
        let seal = Seal::new(&ring(7), PURPOSE);
        let text = seal.seal(b"hello", b"alice").unwrap();
        assert!(text.bytes().all(|b| b.is_ascii_graphic()));
        assert_eq!(seal.open(text.as_bytes(), b"alice").unwrap().plain, b"hello");
        assert!(seal.open(text.as_bytes(), b"bob").is_none());
        assert!(Seal::new(&ring(7), "mcp-runtime other test").open(text.as_bytes(), b"alice").is_none());
        assert!(Seal::new(&ring(8), PURPOSE).open(text.as_bytes(), b"alice").is_none());
        for n in 0..text.len() {
            let mut bad = text.clone().into_bytes();
            bad[n] = if bad[n] == b'A' { b'B' } else { b'A' };
            assert!(seal.open(&bad, b"alice").is_none(), "byte {n}");
            assert!(seal.open(&text.as_bytes()[..n], b"alice").is_none(), "length {n}");
        }
    }

    #[test]
    fn sealing_the_same_text_twice_gives_different_results() {
        let seal = Seal::new(&KeyRing::new(vec![Key::random().unwrap()]), PURPOSE);
        assert_ne!(seal.seal(b"x", b"").unwrap(), seal.seal(b"x", b"").unwrap());
    }

    #[test]
    fn the_first_key_seals_and_every_key_opens() {
        let (old, new) = (Key::new([1; 32]), Key::new([2; 32]));
        let before = Seal::new(&KeyRing::new(vec![old.clone()]), PURPOSE);
        let after = Seal::new(&KeyRing::new(vec![new.clone(), old]), PURPOSE);
        let text = before.seal(b"x", b"").unwrap();
        assert_eq!(after.open(text.as_bytes(), b"").unwrap().plain, b"x");
        let text = after.seal(b"y", b"").unwrap();
        assert!(before.open(text.as_bytes(), b"").is_none());
        assert_eq!(
            Seal::new(&KeyRing::new(vec![new]), PURPOSE).open(text.as_bytes(), b"").unwrap().plain,
            b"y"
        );
        assert!(Seal::new(&KeyRing::new(Vec::new()), PURPOSE).seal(b"z", b"").is_err());
    }

    #[test]
    fn a_key_is_hexadecimal_or_base64() {
        let bytes: [u8; 32] = std::array::from_fn(|n| u8::try_from(n * 7).unwrap());
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(Key::parse(&hex).unwrap().0, bytes);
        assert_eq!(Key::parse(&format!(" {} ", hex.to_uppercase())).unwrap().0, bytes);
        let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
        assert_eq!(Key::parse(&base64).unwrap().0, bytes);
        assert_eq!(Key::parse(&URL_SAFE_NO_PAD.encode(bytes)).unwrap().0, bytes);
        assert_eq!(Key::parse(&"zz".repeat(32)).unwrap_err(), KeyError::Malformed);
        assert_eq!(format!("{:?}", Key::new(bytes)), "Key(..)");
    }

    #[test]
    fn keys_that_can_be_guessed_are_refused() {
        let refused = |text: &str| Key::parse(text).unwrap_err();
        for short in ["", "00", "password", &"ab".repeat(31), &URL_SAFE_NO_PAD.encode([9; 24])] {
            assert_eq!(refused(short), KeyError::TooShort, "{short}");
        }
        let mut padded = [0; 32];
        padded[..8].copy_from_slice(b"password");
        for weak in [[0; 32], [7; 32], [255; 32], padded] {
            assert_eq!(refused(&URL_SAFE_NO_PAD.encode(weak)), KeyError::Weak);
        }
        assert_eq!(refused(&"0123456789abcdef".repeat(4)), KeyError::Weak);
        for _ in 0..10_000 {
            assert_eq!(Key::random().unwrap().check(), Ok(()));
        }
    }

    #[test]
    fn keys_are_separated_by_commas_or_line_ends() {
        let key = |first: u8| (first..first + 32).map(|byte| format!("{byte:02x}")).collect::<String>();
        for text in [format!("{},{}", key(1), key(2)), format!("{}\n\r\n {} \n", key(1), key(2))] {
            assert_eq!(parse_keys(&text, "a file").unwrap().len(), 2);
        }
        for text in ["", "\n,", &format!("{},", "00".repeat(32))] {
            let error = parse_keys(text, "a file").unwrap_err();
            assert!(error.starts_with("a file contains an invalid key: it "), "{error}");
        }
    }
}
