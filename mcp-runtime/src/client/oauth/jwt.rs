//! Signed assertions: JSON Web Tokens with ES256.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::Value;

use crate::client::Error;

/// A private key for ES256.
pub(super) struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    /// Parses PKCS#8 in PEM.
    pub(super) fn parse(pem: &str) -> Result<Self, Error> {
        let not_a_key = || Error::invalid("the private key is not PKCS#8 in PEM, for ES256");
        let body: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        let der = STANDARD.decode(body).map_err(|_| not_a_key())?;
        Self::from_pkcs8(&der).map_err(|_| not_a_key())
    }

    /// A new key in PKCS#8.
    pub(super) fn generate() -> Result<Vec<u8>, Error> {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        key.map(|key| key.as_ref().to_vec()).map_err(|_| Error::invalid("no key can be made"))
    }

    pub(super) fn from_pkcs8(der: &[u8]) -> Result<Self, Error> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new());
        pair.map(Self).map_err(|_| Error::invalid("the key is not PKCS#8, for ES256"))
    }

    /// The coordinates of the public key.
    pub(super) fn public_point(&self) -> (&[u8], &[u8]) {
        // uncompressed: 4, x, y
        let point = self.0.public_key().as_ref();
        point.get(1..).unwrap_or_default().split_at_checked(32).unwrap_or_default()
    }

    /// Signs these claims.
    pub(super) fn sign(&self, header: &Value, claims: &Value) -> Result<String, Error> {
        let header = URL_SAFE_NO_PAD.encode(header.to_string());
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        let text = format!("{header}.{claims}");
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes());
        let signature = signature.map_err(|_| Error::invalid("the assertion cannot be signed"))?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Seconds since 1970, as tokens have them.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
