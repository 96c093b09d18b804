//! Signed assertions: JSON Web Tokens with ES256.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
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
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &SystemRandom::new());
        pair.map(Self).map_err(|_| not_a_key())
    }

    /// Signs these claims.
    pub(super) fn sign(&self, claims: &Value) -> Result<String, Error> {
        let header = URL_SAFE_NO_PAD.encode(br#"{"alg":"ES256","typ":"JWT"}"#);
        let claims = URL_SAFE_NO_PAD.encode(claims.to_string());
        let text = format!("{header}.{claims}");
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes());
        let signature = signature.map_err(|_| Error::invalid("the assertion cannot be signed"))?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
