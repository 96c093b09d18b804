//! Keys that sign JSON Web Tokens with ES256: those of clients, and that of the test kit's authorization server.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    error::{KeyRejected, Unspecified},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};

/// A private key.
pub(crate) struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    /// A new key in PKCS#8.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(crate) fn generate() -> Result<Vec<u8>, Unspecified> {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())?;
        Ok(key.as_ref().to_vec())
    }

    /// # Errors
    /// It is not PKCS#8 of such a key.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Result<Self, KeyRejected> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new()).map(Self)
    }

    /// The public key.
    pub(crate) fn jwk(&self) -> Value {
        // a byte that says how it is encoded, and two coordinates of 32 bytes
        let point = self.0.public_key().as_ref();
        let coordinate = |from: usize| URL_SAFE_NO_PAD.encode(point.get(from..from + 32).unwrap_or_default());
        json!({ "kty": "EC", "crv": "P-256", "x": coordinate(1), "y": coordinate(33) })
    }

    /// Signs these claims.
    ///
    /// # Errors
    /// The operating system provides no randomness.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> Result<String, Unspecified> {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(header), part(claims));
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes())?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
