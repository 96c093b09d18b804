//! Authenticated encryption of what clients carry for us: session ids, and the state of calls that wait for input.
//! `server` holds the keys; `session` and `dispatch` seal and open with them.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{KeyInit as _, Tag, XChaCha20Poly1305, XNonce, aead::AeadInOut as _};
use hkdf::Hkdf;
use sha2::Sha256;

/// The environment variable that may hold the keys.
const VARIABLE: &str = "MCP_SERVER_KEYS";
const NONCE: usize = 24;
const TAG: usize = 16;
/// What tells the keys of a ring apart, in front of everything that is sealed.
const MARK: usize = 4;

/// Bytes that cannot be guessed.
///
/// # Errors
/// The operating system has no randomness to give.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// An id that cannot be guessed: 128 bits as 32 hexadecimal digits.
///
/// # Errors
/// The operating system has no randomness to give.
pub(crate) fn random_id() -> Result<String, getrandom::Error> {
    Ok(format!("{:032x}", u128::from_ne_bytes(random_bytes()?)))
}

/// A master key; what is sealed is sealed with a key derived from it, another one for each purpose.
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

    /// A key that no one else has, gone with the process.
    ///
    /// # Errors
    /// The operating system has no randomness to give.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        random_bytes().map(Self)
    }

    /// Reads 64 hexadecimal digits, or 32 bytes in base64 of either alphabet.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() == 64 {
            let digits: Option<Vec<u8>> =
                text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
            let bytes: Vec<u8> = digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
            return bytes.try_into().ok().map(Self);
        }
        let url_safe = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
        URL_SAFE_NO_PAD.decode(url_safe).ok()?.try_into().ok().map(Self)
    }
}

/// The keys of a server: the first seals, every one opens, so that keys can be replaced without a break.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    keys: Vec<Key>,
    /// Whether they are gone with the process.
    random: bool,
}

impl Ring {
    /// Keys that replicas and restarts share; none is as good as a random one.
    pub(crate) fn new(keys: Vec<Key>) -> Self {
        Self { keys, random: false }
    }

    /// The keys in the environment variable, or a random one.
    ///
    /// # Errors
    /// The variable holds something else, or there is no randomness; the text says so, and not what it holds.
    pub(crate) fn from_environment() -> Result<Self, String> {
        let bad = || {
            format!(
                "`{VARIABLE}` holds no keys\nset it to 64 hexadecimal digits; several keys stand with commas between"
            )
        };
        match std::env::var(VARIABLE) {
            // the text itself is a secret, also when it is a bad one
            Ok(text) => {
                let keys: Option<Vec<_>> = text.split(',').map(Key::from_text).collect();
                keys.map(Self::new).ok_or_else(bad)
            }
            Err(std::env::VarError::NotUnicode(_)) => Err(bad()),
            Err(std::env::VarError::NotPresent) => {
                let key = Key::random().map_err(|e| format!("there is no randomness for a key: {e}"))?;
                Ok(Self { keys: vec![key], random: true })
            }
        }
    }

    /// Whether what is sealed can be opened by this process alone.
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    pub(crate) fn is_random(&self) -> bool {
        self.random
    }
}

/// What was sealed, opened again.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Random, and another one for each seal: fit to be an identity.
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    pub(crate) nonce: [u8; NONCE],
    pub(crate) plain: Vec<u8>,
}

/// Seals and opens for one purpose.
pub(crate) struct Seal(Vec<Subkey>);

struct Subkey {
    mark: [u8; MARK],
    cipher: XChaCha20Poly1305,
}

impl Subkey {
    fn new(key: &Key, purpose: &str) -> Self {
        let hkdf = Hkdf::<Sha256>::new(None, &key.0);
        let expand = |part: &str, out: &mut [u8]| {
            let info = [purpose.as_bytes(), part.as_bytes()];
            hkdf.expand_multi_info(&info, out).expect("HKDF gives up to 255 × 32 bytes");
        };
        let (mut subkey, mut mark) = ([0; 32], [0; MARK]);
        expand(" key", &mut subkey);
        expand(" mark", &mut mark);
        Self { mark, cipher: XChaCha20Poly1305::new(&subkey.into()) }
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(..)")
    }
}

impl Seal {
    /// `purpose` sets apart what is sealed with the same keys.
    pub(crate) fn new(ring: &Ring, purpose: &str) -> Self {
        Self(ring.keys.iter().map(|key| Subkey::new(key, purpose)).collect())
    }

    /// Seals `plain` so that it opens only together with the same `bound`; visible ASCII.
    ///
    /// # Errors
    /// The operating system has no randomness to give, or `plain` is longer than the cipher can take.
    pub(crate) fn seal(&self, plain: &[u8], bound: &[u8]) -> Result<String, SealError> {
        let Subkey { mark, cipher } = self.0.first().ok_or(SealError)?;
        let nonce: [u8; NONCE] = random_bytes().map_err(|_| SealError)?;
        let mut sealed = Vec::with_capacity(MARK + NONCE + plain.len() + TAG);
        sealed.extend_from_slice(mark);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let text = (&mut sealed[MARK + NONCE..]).into();
        let tag = cipher.encrypt_inout_detached(&XNonce::from(nonce), bound, text).map_err(|_| SealError)?;
        sealed.extend_from_slice(&tag);
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens what [`seal`](Self::seal) made; `None` for anything else.
    pub(crate) fn open(&self, text: &[u8], bound: &[u8]) -> Option<Opened> {
        let mut sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let tag_at = sealed.len().checked_sub(TAG).filter(|at| *at >= MARK + NONCE)?;
        let subkey = self.0.iter().find(|subkey| sealed.starts_with(&subkey.mark))?;
        let nonce: [u8; NONCE] = sealed[MARK..MARK + NONCE].try_into().ok()?;
        let tag = Tag::try_from(&sealed[tag_at..]).ok()?;
        sealed.truncate(tag_at);
        let buffer = (&mut sealed[MARK + NONCE..]).into();
        subkey.cipher.decrypt_inout_detached(&XNonce::from(nonce), bound, buffer, &tag).ok()?;
        sealed.drain(..MARK + NONCE);
        Some(Opened { nonce, plain: sealed })
    }
}

/// Nothing could be sealed.
#[derive(Debug)]
pub(crate) struct SealError;

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSE: &str = "mcp-runtime test";

    #[test]
    fn what_is_sealed_opens_only_as_it_was_bound() {
        let ring = |byte| Ring::new(vec![Key::new([byte; 32])]);
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
    fn two_seals_of_one_text_differ() {
        let seal = Seal::new(&Ring::new(vec![Key::random().unwrap()]), PURPOSE);
        assert_ne!(seal.seal(b"x", b"").unwrap(), seal.seal(b"x", b"").unwrap());
    }

    #[test]
    fn the_first_key_seals_and_every_key_opens() {
        let (old, new) = (Key::new([1; 32]), Key::new([2; 32]));
        let before = Seal::new(&Ring::new(vec![old.clone()]), PURPOSE);
        let after = Seal::new(&Ring::new(vec![new.clone(), old]), PURPOSE);
        let text = before.seal(b"x", b"").unwrap();
        assert_eq!(after.open(text.as_bytes(), b"").unwrap().plain, b"x");
        let text = after.seal(b"y", b"").unwrap();
        assert!(before.open(text.as_bytes(), b"").is_none());
        assert_eq!(Seal::new(&Ring::new(vec![new]), PURPOSE).open(text.as_bytes(), b"").unwrap().plain, b"y");
        assert!(Seal::new(&Ring::new(Vec::new()), PURPOSE).seal(b"z", b"").is_err());
    }

    #[test]
    fn a_key_is_hexadecimal_or_base64() {
        let bytes = [0xab; 32];
        assert_eq!(Key::from_text(&"aB".repeat(32)).unwrap().0, bytes);
        let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
        assert_eq!(Key::from_text(&base64).unwrap().0, bytes);
        assert_eq!(Key::from_text(&URL_SAFE_NO_PAD.encode(bytes)).unwrap().0, bytes);
        assert!(Key::from_text("short").is_none());
        assert!(Key::from_text(&"zz".repeat(32)).is_none());
        assert_eq!(format!("{:?}", Key::new(bytes)), "Key(..)");
    }
}
