//! JSON Web Tokens: the three parts of a compact serialization, and signatures by public keys.
//!
//! Signatures are verified by `ring`. The token's own claims select nothing: its algorithm must be one of the
//! allowed ones, and the one that its key is for. Symmetric algorithms and `none` do not exist here.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::{core::reason::Refusal, schema::has_duplicate_keys};

/// The reason why a token is invalid: one part for operators, one for its client.
pub(super) type TokenFault = (Refusal, &'static str);

/// A signature algorithm of [RFC 7518](https://www.rfc-editor.org/rfc/rfc7518#section-3.1) or
/// [RFC 8037](https://www.rfc-editor.org/rfc/rfc8037#section-3.1), by its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum SigningAlgorithm {
    ES256,
    ES384,
    EdDSA,
    PS256,
    PS384,
    PS512,
    RS256,
    RS384,
    RS512,
}

impl SigningAlgorithm {
    /// Every algorithm that can be verified; all of them are asymmetric.
    pub(super) const ALL: &'static [Self] = &[
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::RS256,
        Self::RS384,
        Self::RS512,
    ];

    /// Its name in the header `alg`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        // RFC 9864 names the curve
        let name = if name == "Ed25519" { "EdDSA" } else { name };
        Self::ALL.iter().copied().find(|algorithm| algorithm.as_str() == name)
    }
}

/// The header of a token.
#[derive(Deserialize)]
pub(super) struct JoseHeader {
    pub(super) alg: String,
    pub(super) kid: Option<String>,
    pub(super) typ: Option<String>,
    /// Extensions that must be understood; none is.
    #[serde(default)]
    crit: Option<serde::de::IgnoredAny>,
    /// The key of a DPoP proof.
    pub(super) jwk: Option<JsonWebKey>,
}

/// A token, taken apart but not verified.
pub(super) struct CompactJwt<'a> {
    pub(super) header: JoseHeader,
    pub(super) algorithm: SigningAlgorithm,
    /// The signed bytes.
    signed: &'a [u8],
    signature: Vec<u8>,
    payload: &'a str,
}

/// The most bytes of a header, in base64url.
const MAX_HEADER: usize = 4096;

impl<'a> CompactJwt<'a> {
    /// Takes a token apart; `algorithms` are those that are allowed.
    ///
    /// # Errors
    /// The reason for operators, and the description for the client.
    pub(super) fn parse(text: &'a str, algorithms: &[SigningAlgorithm]) -> Result<Self, TokenFault> {
        const MALFORMED: TokenFault = (Refusal::TokenMalformed, "the token is not a signed JWT");
        let (signed, signature) = text.rsplit_once('.').ok_or(MALFORMED)?;
        let (header, payload) = signed.split_once('.').ok_or(MALFORMED)?;
        if header.len() > MAX_HEADER || payload.contains('.') {
            return Err(MALFORMED);
        }
        let header = URL_SAFE_NO_PAD.decode(header).map_err(|_| MALFORMED)?;
        let header = str::from_utf8(&header).map_err(|_| MALFORMED)?;
        if has_duplicate_keys(header) {
            return Err((Refusal::TokenMalformed, "a member of the token's header is duplicated"));
        }
        let header: JoseHeader = serde_json::from_str(header).map_err(|_| MALFORMED)?;
        if header.crit.is_some() {
            return Err((Refusal::TokenMalformed, "the token requires an extension that is not supported"));
        }
        let algorithm = SigningAlgorithm::from_name(&header.alg);
        let algorithm = algorithm.filter(|algorithm| algorithms.contains(algorithm));
        let algorithm =
            algorithm.ok_or((Refusal::TokenAlgorithm, "the algorithm of the token is not allowed"))?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| MALFORMED)?;
        Ok(Self { header, algorithm, signed: signed.as_bytes(), signature, payload })
    }

    /// The payload, if the key has signed it. It has no member twice: readers of JSON disagree about which one counts.
    ///
    /// # Errors
    /// The reason for operators, and the description for the client.
    pub(super) fn verify(&self, key: &VerifyingKey) -> Result<Vec<u8>, TokenFault> {
        if !key.verifies(self.algorithm, self.signed, &self.signature) {
            return Err((Refusal::TokenSignature, "the signature of the token is not valid"));
        }
        let unreadable = (Refusal::TokenMalformed, "the claims of the token are not readable");
        let payload = URL_SAFE_NO_PAD.decode(self.payload).map_err(|_| unreadable)?;
        if str::from_utf8(&payload).is_ok_and(has_duplicate_keys) {
            return Err((Refusal::TokenMalformed, "a claim of the token is duplicated"));
        }
        Ok(payload)
    }

    /// Whether a text is a token that says of itself that it is of this issuer; nothing is verified.
    pub(super) fn names_issuer(text: &str, issuer: &str) -> bool {
        #[derive(Deserialize)]
        struct Named {
            iss: String,
        }
        let payload = text.split('.').nth(1).and_then(|payload| URL_SAFE_NO_PAD.decode(payload).ok());
        let named = payload.and_then(|payload| serde_json::from_slice::<Named>(&payload).ok());
        named.is_some_and(|named| named.iss == issuer)
    }

    /// Whether its header `typ` is one of these, without `application/` and ignoring case.
    pub(super) fn is_of_type(&self, types: &[&str]) -> bool {
        let typ = self.header.typ.as_deref().unwrap_or_default();
        let is_long = typ.get(..12).is_some_and(|prefix| prefix.eq_ignore_ascii_case("application/"));
        let name = if is_long { &typ[12..] } else { typ };
        types.iter().any(|known| name.eq_ignore_ascii_case(known))
    }
}

/// A key of a set, or of a proof: [RFC 7517](https://www.rfc-editor.org/rfc/rfc7517#section-4).
#[derive(Clone, Default, Deserialize)]
pub(super) struct JsonWebKey {
    pub(super) kty: String,
    pub(super) kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    /// A part of a private key; its value is not kept.
    d: Option<serde::de::IgnoredAny>,
    /// A symmetric key.
    k: Option<serde::de::IgnoredAny>,
}

/// A public key that signatures are verified with.
#[derive(Clone)]
pub(super) struct VerifyingKey {
    material: KeyMaterial,
    /// The algorithm that the key is used with, one of those that it is suited for.
    algorithm: Option<SigningAlgorithm>,
}

#[derive(Clone)]
enum KeyMaterial {
    /// A point: `04`, x and y.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
}

impl VerifyingKey {
    /// `None` for keys that no signature can be verified with: symmetric ones, those for encryption, unknown curves.
    pub(super) fn from_jwk(jwk: &JsonWebKey) -> Option<Self> {
        let is_for_signatures = jwk.usage.as_deref().is_none_or(|usage| usage == "sig")
            && jwk.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !is_for_signatures || jwk.k.is_some() {
            return None;
        }
        let bytes = |field: &Option<String>| URL_SAFE_NO_PAD.decode(field.as_deref()?).ok();
        let point = |length: usize| {
            let (x, y) = (bytes(&jwk.x)?, bytes(&jwk.y)?);
            (x.len() == length && y.len() == length).then(|| [&[4], &*x, &*y].concat())
        };
        let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("EC", Some("P-256")) => KeyMaterial::P256(point(32)?),
            ("EC", Some("P-384")) => KeyMaterial::P384(point(48)?),
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(bytes(&jwk.x).filter(|x| x.len() == 32)?),
            ("RSA", _) => {
                let n = bytes(&jwk.n)?;
                let zeros = n.iter().take_while(|byte| **byte == 0).count();
                KeyMaterial::Rsa { n: n.get(zeros..)?.to_vec(), e: bytes(&jwk.e)? }
            }
            _ => return None,
        };
        let algorithm = match jwk.alg.as_deref() {
            None => None,
            Some(name) => Some(SigningAlgorithm::from_name(name)?),
        };
        Some(Self { material, algorithm })
    }

    /// Whether signatures by that algorithm can be of this key.
    pub(super) fn suits(&self, algorithm: SigningAlgorithm) -> bool {
        use SigningAlgorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        let is_of_kind = match &self.material {
            KeyMaterial::P256(_) => algorithm == ES256,
            KeyMaterial::P384(_) => algorithm == ES384,
            KeyMaterial::Ed25519(_) => algorithm == EdDSA,
            KeyMaterial::Rsa { .. } => {
                matches!(algorithm, RS256 | RS384 | RS512 | PS256 | PS384 | PS512)
            }
        };
        is_of_kind && self.algorithm.is_none_or(|own| own == algorithm)
    }

    fn verifies(&self, algorithm: SigningAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.suits(algorithm) {
            return false;
        }
        let verified = match &self.material {
            KeyMaterial::P256(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            KeyMaterial::P384(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            KeyMaterial::Ed25519(key) => {
                UnparsedPublicKey::new(&signature::ED25519, key).verify(message, signature)
            }
            KeyMaterial::Rsa { n, e } => {
                let parameters = match algorithm {
                    SigningAlgorithm::RS256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    SigningAlgorithm::RS384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    SigningAlgorithm::RS512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    SigningAlgorithm::PS256 => &signature::RSA_PSS_2048_8192_SHA256,
                    SigningAlgorithm::PS384 => &signature::RSA_PSS_2048_8192_SHA384,
                    SigningAlgorithm::PS512 => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
        };
        verified.is_ok()
    }
}

impl JsonWebKey {
    /// Whether it contains a private or symmetric key, which is not to be sent.
    pub(super) fn is_secret(&self) -> bool {
        self.d.is_some() || self.k.is_some()
    }

    /// The thumbprint in base64url: [RFC 7638](https://www.rfc-editor.org/rfc/rfc7638#section-3). `None` for kinds of keys
    /// that are not verified with.
    pub(super) fn thumbprint(&self) -> Option<String> {
        // the members in lexicographic order
        let members: &[(&str, &Option<String>)] = match self.kty.as_str() {
            "EC" => &[("crv", &self.crv), ("kty", &None), ("x", &self.x), ("y", &self.y)],
            "OKP" => &[("crv", &self.crv), ("kty", &None), ("x", &self.x)],
            "RSA" => &[("e", &self.e), ("kty", &None), ("n", &self.n)],
            _ => return None,
        };
        let mut canonical = String::from("{");
        for (name, value) in members {
            let value = if *name == "kty" { self.kty.as_str() } else { value.as_deref()? };
            if canonical.len() > 1 {
                canonical.push(',');
            }
            canonical.push_str(&format!("\"{name}\":{}", serde_json::to_string(value).ok()?));
        }
        canonical.push('}');
        Some(URL_SAFE_NO_PAD.encode(Sha256::digest(canonical)))
    }
}

/// No text is a token that a key has signed which has signed nothing, and no key of a set makes it one.
#[cfg(any(test, feature = "_fuzzing"))]
fn fuzz(data: &[u8]) {
    let Some((token, jwk)) = crate::fuzzing::halves(data) else { return };
    let _for_a_panic = CompactJwt::names_issuer(token, "https://issuer.example");
    let key = serde_json::from_str::<JsonWebKey>(jwk).ok();
    let key = key.as_ref().and_then(|key| {
        let _for_a_panic = (key.is_secret(), key.thumbprint());
        VerifyingKey::from_jwk(key)
    });
    let Ok(token) = CompactJwt::parse(token, SigningAlgorithm::ALL) else { return };
    let _for_a_panic = token.is_of_type(&["at+jwt"]);
    assert!(SigningAlgorithm::from_name(&token.header.alg) == Some(token.algorithm));
    assert!(token.header.alg != "none" && !token.header.alg.starts_with("HS"));
    if let Some(Ok(payload)) = key.map(|key| token.verify(&key)) {
        // a private key was found, or this is the seed with a valid signature
        assert!(
            serde_json::from_slice::<serde_json::Value>(&payload).is_ok_and(|claims| claims["seed"] == true)
        );
    }
}

#[cfg(any(test, feature = "_fuzzing"))]
inventory::submit!(crate::fuzzing::Target { name: "jwt", run: fuzz });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_of_a_key_is_that_of_the_specification() {
        // RFC 7638, section 3.1
        let key = r#"{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#;
        let key: JsonWebKey = serde_json::from_str(key).unwrap();
        assert_eq!(key.thumbprint().unwrap(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        assert!(!key.is_secret());
    }

    #[test]
    fn a_signature_of_the_specification_is_verified_and_a_changed_one_is_not() {
        // RFC 8037, appendix A
        let key: JsonWebKey = serde_json::from_str(
            r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        )
        .unwrap();
        let key = VerifyingKey::from_jwk(&key).unwrap();
        let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
        let jwt = CompactJwt::parse(token, SigningAlgorithm::ALL).unwrap();
        assert_eq!(jwt.verify(&key).unwrap(), b"Example of Ed25519 signing");
        let changed = token.replace("RXhh", "RXhi");
        let jwt = CompactJwt::parse(&changed, SigningAlgorithm::ALL).unwrap();
        assert!(jwt.verify(&key).is_err());
        assert!(CompactJwt::parse(token, &[SigningAlgorithm::ES256]).is_err(), "not allowed");
    }

    #[test]
    fn keys_that_are_not_for_signatures_verify_nothing() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        for (members, usable) in [
            (String::new(), true),
            (r#","use":"sig","alg":"EdDSA""#.into(), true),
            (r#","use":"enc""#.into(), false),
            (r#","key_ops":["sign"]"#.into(), false),
            (r#","alg":"HS256""#.into(), false),
        ] {
            let key = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"{members}}}"#);
            let key: JsonWebKey = serde_json::from_str(&key).unwrap();
            assert_eq!(VerifyingKey::from_jwk(&key).is_some(), usable, "{members}");
        }
        for key in [
            r#"{"kty":"oct","k":"c2VjcmV0"}"#,
            r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#,
            r#"{"kty":"EC","crv":"P-521","x":"AA","y":"AA"}"#,
        ] {
            let key: JsonWebKey = serde_json::from_str(key).unwrap();
            assert!(VerifyingKey::from_jwk(&key).is_none());
        }
    }

    #[test]
    fn tokens_that_are_not_signed_jwts_are_refused() {
        let header = |json: &str| URL_SAFE_NO_PAD.encode(json);
        for token in [
            String::new(),
            "opaque".into(),
            "a.b".into(),
            "a.b.c.d.e".into(),
            format!("{}.e30.", header(r#"{"alg":"none"}"#)),
            format!("{}.e30.AA", header(r#"{"alg":"HS256"}"#)),
            format!("{}.e30.AA", header(r#"{"alg":"ES256","crit":["b64"],"b64":false}"#)),
            format!("{}.e30.A A", header(r#"{"alg":"ES256"}"#)),
            format!("{}.e30.AA", header(r#"{"alg":"ES256","alg":"RS256"}"#)),
        ] {
            assert!(CompactJwt::parse(&token, SigningAlgorithm::ALL).is_err(), "{token}");
        }
    }
}
