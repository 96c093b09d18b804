//! Proofs that a client holds the key that its token is bound to.
//!
//! See [RFC 9449](https://www.rfc-editor.org/rfc/rfc9449).

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::request::Parts;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{
    compact_jwt::{CompactJwt, SigningAlgorithm, VerifyingKey},
    verifier::{Denied, DeniedReason},
};
use crate::core::{
    admission::Owner,
    connection::{Principal, principal_digest},
    crypto::{KeyRing, Seal},
    store::{ConsumedCall, SingleUse},
    unix_time::unix_seconds,
};

/// How old a proof may be.
const MAX_AGE: Duration = Duration::from_secs(60);
/// The most bytes of a proof.
const MAX_PROOF: usize = 8192;
/// The most characters of a proof's name.
const MAX_JTI: usize = 256;

/// Checks proofs; each is accepted once.
pub(super) struct ProofChecker {
    /// The URL that clients send their requests to.
    pub(super) resource: Url,
    pub(super) used: Arc<SingleUse>,
    pub(super) skew: Duration,
    /// Set if proofs must contain a nonce.
    pub(super) nonces: Option<Nonces>,
}

/// Makes nonces and recognizes them: the time at which one was made, sealed, so that nothing is kept.
pub(super) struct Nonces {
    seal: Seal,
    lifetime: Duration,
}

impl Nonces {
    pub(super) fn new(keys: &KeyRing, lifetime: Duration) -> Self {
        Self { seal: Seal::new(keys, "mcp-runtime dpop nonce 1"), lifetime }
    }

    /// Checks that a proof contains a nonce that is not too old. Replicas whose clocks are ahead may have made it.
    ///
    /// # Errors
    /// It does not; the client gets a new one.
    fn check(
        &self,
        nonce: Option<&str>,
        resource: &Url,
        skew: Duration,
        now: SystemTime,
    ) -> Result<(), Denied> {
        let bound = resource.as_str().as_bytes();
        let opened = nonce.and_then(|nonce| self.seal.open(nonce.as_bytes(), bound));
        let made = opened.and_then(|opened| <[u8; 8]>::try_from(opened.plain).ok());
        let made = made.map(|seconds| UNIX_EPOCH + Duration::from_secs(u64::from_be_bytes(seconds)));
        if made.is_some_and(|made| made <= now + skew && now < made + self.lifetime) {
            return Ok(());
        }
        let new = self.seal.seal(&unix_seconds(now).to_be_bytes(), bound);
        let new = new.map_err(|_| Denied::unavailable("the operating system provides no randomness"))?;
        Err(Denied::because(DeniedReason::NonceNeeded(new), "the proof of possession needs this nonce"))
    }
}

#[derive(Deserialize)]
struct ProofClaims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: Option<String>,
    nonce: Option<String>,
}

/// A proof that fits its request, and has to be used up.
pub(super) struct CheckedProof {
    id: String,
    owner: Owner,
    expires: SystemTime,
}

fn invalid(description: &'static str) -> Denied {
    Denied::because(DeniedReason::InvalidProof, description)
}

impl ProofChecker {
    /// Checks that a request proves possession of the key that this token of the principal is bound to.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn check(
        &self,
        token: &str,
        principal: &Principal,
        request: &Parts,
        now: SystemTime,
    ) -> Result<CheckedProof, Denied> {
        let mut proofs = request.headers.get_all("dpop").iter();
        let proof = proofs.next().ok_or_else(|| invalid("the proof of possession is missing"))?;
        if proofs.next().is_some() {
            return Err(invalid("there are several proofs of possession"));
        }
        let malformed = || invalid("the proof of possession is malformed");
        let proof = proof.to_str().ok().filter(|proof| proof.len() <= MAX_PROOF).ok_or_else(malformed)?;
        let jwt = CompactJwt::parse(proof, SigningAlgorithm::ALL).map_err(|_| malformed())?;
        if !jwt.is_of_type(&["dpop+jwt"]) {
            return Err(malformed());
        }
        let jwk = jwt.header.jwk.as_ref().filter(|jwk| !jwk.is_secret()).ok_or_else(malformed)?;
        // first, so that a thief of the token cannot make the server verify signatures
        if jwk.thumbprint().as_deref() != principal.confirmation_key() {
            return Err(invalid("the proof is of another key than the token"));
        }
        let key = VerifyingKey::from_jwk(jwk).ok_or_else(malformed)?;
        let claims = jwt.verify(&key).map_err(|_| invalid("the signature of the proof is not valid"))?;
        let claims: ProofClaims = serde_json::from_slice(&claims).map_err(|_| malformed())?;
        if claims.htm != request.method.as_str() || !self.is_url_of(request, &claims.htu) {
            return Err(invalid("the proof is of another request"));
        }
        if claims.ath.as_deref() != Some(&*URL_SAFE_NO_PAD.encode(Sha256::digest(token))) {
            return Err(invalid("the proof is of another token"));
        }
        if let Some(nonces) = &self.nonces {
            nonces.check(claims.nonce.as_deref(), &self.resource, self.skew, now)?;
        }
        if claims.jti.is_empty() || claims.jti.len() > MAX_JTI || !(0.0..=1e11).contains(&claims.iat) {
            return Err(malformed());
        }
        let made = UNIX_EPOCH + Duration::from_secs_f64(claims.iat);
        let expires = made + MAX_AGE + self.skew;
        if made > now + self.skew || now >= expires {
            return Err(invalid("the proof was not made now"));
        }
        let thumbprint = principal.confirmation_key().unwrap_or_default();
        let id =
            Sha256::new().chain_update(thumbprint).chain_update([0]).chain_update(&claims.jti).finalize();
        let owner = principal_digest(Some(principal)).map_or_else(Owner::anonymous, Owner::principal);
        Ok(CheckedProof { id: format!("dpop {}", URL_SAFE_NO_PAD.encode(id)), owner, expires })
    }

    /// Whether `htu` is the URL of a request, without its query. The host is that of the resource: what a request says
    /// itself may be that of a proxy. Its path is the resource's, or the one that was requested there.
    fn is_url_of(&self, request: &Parts, htu: &str) -> bool {
        let Ok(mut named) = htu.parse::<Url>() else { return false };
        named.set_query(None);
        named.set_fragment(None);
        let mut requested = self.resource.clone();
        if named == requested {
            return true;
        }
        requested.set_path(request.uri.path());
        named == requested
    }

    /// Uses a proof up.
    ///
    /// # Errors
    /// It was used before, or that cannot be found out.
    pub(super) async fn use_up(&self, proof: CheckedProof, now: SystemTime) -> Result<(), Denied> {
        let CheckedProof { id, owner, expires } = proof;
        let call = ConsumedCall { id: &id, owner: &owner, started: now, expires };
        if self.used.consume(call).await { Ok(()) } else { Err(invalid("the proof has been used before")) }
    }
}
