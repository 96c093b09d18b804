//! Proofs of possession ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449)): a token that is bound to a key of the client
//! is of no use to who steals it alone.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use http::{HeaderMap, HeaderName, Method};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::now;
use crate::{
    client::Error,
    core::{crypto::random_id, es256::SigningKey, recent_map::RecentMap, sync::Mutex},
};

/// The header of a proof.
pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The header with what the next proof must contain.
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The longest nonce that is kept.
const MAX_NONCE: usize = 1024;

/// Origins whose nonces are kept. Two are in use at a time; those of servers that the client has left go.
const MAX_ORIGINS: usize = 8;

/// A key of this client, and the nonces that servers have asked for: one of the authorization server and one of the
/// resource server.
pub(super) struct ProofKey {
    key: SigningKey,
    /// The public half.
    jwk: Value,
    nonces: Mutex<RecentMap<String, String>>,
}

impl ProofKey {
    /// A new key as text, to be kept with the tokens that are bound to it.
    pub(super) fn generate() -> Result<String, Error> {
        let key = SigningKey::generate().map_err(|_| Error::invalid("no key can be made"))?;
        Ok(STANDARD.encode(key))
    }

    /// The key of a text.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let key = STANDARD.decode(text).ok().and_then(|key| SigningKey::from_pkcs8(&key).ok());
        let key = key.ok_or_else(|| Error::invalid("the key of the tokens is malformed"))?;
        let jwk = key.jwk();
        Ok(Self { key, jwk, nonces: Mutex::new(RecentMap::new(MAX_ORIGINS)) })
    }

    /// The proof for a request, and for the token that it contains.
    pub(super) fn proof(&self, method: &Method, url: &Url, token: Option<&str>) -> Result<String, Error> {
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        let id = random_id().map_err(|error| Error::invalid(error.to_string()))?;
        let mut claims = json!({ "jti": id, "htm": method.as_str(), "htu": target.as_str(), "iat": now() });
        if let Some(token) = token {
            claims["ath"] = URL_SAFE_NO_PAD.encode(Sha256::digest(token)).into();
        }
        if let Some(nonce) = self.nonce(url) {
            claims["nonce"] = nonce.into();
        }
        let signed = self.key.sign(&json!({ "alg": "ES256", "typ": "dpop+jwt", "jwk": self.jwk }), &claims);
        signed.map_err(|_| Error::invalid("the proof cannot be signed"))
    }

    /// The nonce that proofs for this URL contain.
    pub(super) fn nonce(&self, url: &Url) -> Option<String> {
        self.nonces.lock().get(&origin(url)).cloned()
    }

    /// Keeps the nonce of a response; whether it is another than the one in the request, which others may have learned
    /// meanwhile.
    pub(super) fn keep_nonce(&self, url: &Url, headers: &HeaderMap, used: Option<&str>) -> bool {
        let nonce = headers.get(NONCE).and_then(|nonce| nonce.to_str().ok());
        let Some(nonce) = nonce.filter(|nonce| nonce.len() <= MAX_NONCE) else { return false };
        let mut nonces = self.nonces.lock();
        drop(nonces.trim());
        nonces.insert(origin(url), nonce.to_owned());
        used != Some(nonce)
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_names_the_request_without_its_query_and_contains_the_nonce_of_the_origin() {
        let key = ProofKey::parse(&ProofKey::generate().unwrap()).unwrap();
        let url: Url = "https://mcp.example.com/mcp?a=b#c".parse().unwrap();
        let claims = |proof: &str| -> Value {
            let part = proof.split('.').nth(1).unwrap();
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        let proof = claims(&key.proof(&Method::POST, &url, Some("token")).unwrap());
        assert_eq!((&proof["htm"], &proof["htu"]), (&json!("POST"), &json!("https://mcp.example.com/mcp")));
        assert_eq!(proof["ath"], URL_SAFE_NO_PAD.encode(Sha256::digest("token")));
        assert!(proof["nonce"].is_null());
        let headers = HeaderMap::from_iter([(NONCE, "once".parse().unwrap())]);
        assert!(key.keep_nonce(&url, &headers, None));
        assert!(key.keep_nonce(&url, &headers, None), "requests that were sent at once all lack it");
        assert!(!key.keep_nonce(&url, &headers, key.nonce(&url).as_deref()), "it was used");
        for left in 0..100 {
            let left: Url = format!("https://{left}.example.com/").parse().unwrap();
            key.keep_nonce(&left, &headers, None);
            assert_eq!(key.nonce(&url).as_deref(), Some("once"), "it is in use");
        }
        let other: Url = "https://id.example.com/token".parse().unwrap();
        assert_eq!(claims(&key.proof(&Method::POST, &url, None).unwrap())["nonce"], "once");
        assert!(claims(&key.proof(&Method::POST, &other, None).unwrap())["nonce"].is_null());
    }
}
