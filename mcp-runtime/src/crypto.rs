//! Random bytes, and authenticated encryption of the server's state that clients store: session ids and `requestState`.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{KeyInit as _, Tag, XChaCha20Poly1305, XNonce, aead::AeadInOut as _};
use hkdf::Hkdf;
use sha2::Sha256;

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
    pub(crate) fn parse(text: &str) -> Option<Self> {
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

/// The keys of a server: the first seals, and all of them open, so that keys can be rotated without downtime.
#[derive(Clone, Debug)]
pub(crate) struct KeyRing {
    keys: Vec<Key>,
    /// Whether the key was generated, so that it is lost when the process ends.
    random: bool,
}

impl KeyRing {
    /// Keys that replicas share and that survive restarts.
    pub(crate) fn new(keys: Vec<Key>) -> Self {
        Self { keys, random: false }
    }

    /// One random key.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(crate) fn random() -> Result<Self, String> {
        let key = Key::random()
            .map_err(|e| format!("the operating system provides no randomness for a key: {e}"))?;
        Ok(Self { keys: vec![key], random: true })
    }

    /// The keys in the environment variable, if it is set.
    ///
    /// # Errors
    /// The variable contains something else; the message does not contain its value.
    pub(crate) fn from_environment() -> Result<Option<Self>, String> {
        let malformed = || {
            format!(
                "`{VARIABLE}` contains an invalid key\nset it to 64 hexadecimal digits; separate several keys by commas"
            )
        };
        match std::env::var(VARIABLE) {
            // the text is a secret, even if it is malformed
            Ok(text) => {
                let keys: Option<Vec<_>> = text.split(',').map(Key::parse).collect();
                keys.map(|keys| Some(Self::new(keys))).ok_or_else(malformed)
            }
            Err(std::env::VarError::NotUnicode(_)) => Err(malformed()),
            Err(std::env::VarError::NotPresent) => Ok(None),
        }
    }

    /// Whether only this process can open what it sealed.
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    pub(crate) fn is_random(&self) -> bool {
        self.random
    }
}

/// The opened content of a sealed text.
#[derive(Debug)]
pub(crate) struct Opened {
    #[cfg_attr(not(feature = "http"), allow(dead_code))]
    pub(crate) nonce: Nonce,
    pub(crate) plain: Vec<u8>,
}

/// Seals and opens texts for one purpose.
pub(crate) struct Seal(Vec<Subkey>);

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

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(..)")
    }
}

impl Seal {
    /// A text that was sealed for one purpose does not open for another.
    pub(crate) fn new(ring: &KeyRing, purpose: &str) -> Self {
        Self(ring.keys.iter().map(|key| Subkey::new(key, purpose)).collect())
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
        let Subkey { key_id, cipher } = self.0.first().ok_or(SealError)?;
        let mut sealed = Vec::with_capacity(KEY_ID + NONCE + plain.len() + TAG);
        sealed.extend_from_slice(key_id);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let text = (&mut sealed[KEY_ID + NONCE..]).into();
        let tag = cipher.encrypt_inout_detached(&XNonce::from(nonce), bound, text).map_err(|_| SealError)?;
        sealed.extend_from_slice(&tag);
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens the result of [`seal`](Self::seal); `None` for anything else.
    pub(crate) fn open(&self, text: &[u8], bound: &[u8]) -> Option<Opened> {
        let mut sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let tag_at = sealed.len().checked_sub(TAG).filter(|at| *at >= KEY_ID + NONCE)?;
        let subkey = self.0.iter().find(|subkey| sealed.starts_with(&subkey.key_id))?;
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
        let bytes = [0xab; 32];
        assert_eq!(Key::parse(&"aB".repeat(32)).unwrap().0, bytes);
        let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
        assert_eq!(Key::parse(&base64).unwrap().0, bytes);
        assert_eq!(Key::parse(&URL_SAFE_NO_PAD.encode(bytes)).unwrap().0, bytes);
        assert!(Key::parse("short").is_none());
        assert!(Key::parse(&"zz".repeat(32)).is_none());
        assert_eq!(format!("{:?}", Key::new(bytes)), "Key(..)");
    }
}
