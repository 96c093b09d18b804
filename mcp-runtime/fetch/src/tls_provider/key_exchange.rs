//! The key exchanges of TLS, each with a key that is used once.

use std::fmt;

use ring::{
    agreement::{self, EphemeralPrivateKey, PublicKey, UnparsedPublicKey},
    rand::SystemRandom,
};
use rustls::{
    Error, NamedGroup, PeerMisbehaved,
    crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup},
};

pub(super) static GROUPS: &[&dyn SupportedKxGroup] = &[
    &ExchangeGroup { name: NamedGroup::X25519, algorithm: &agreement::X25519 },
    &ExchangeGroup { name: NamedGroup::secp256r1, algorithm: &agreement::ECDH_P256 },
    &ExchangeGroup { name: NamedGroup::secp384r1, algorithm: &agreement::ECDH_P384 },
];

struct ExchangeGroup {
    name: NamedGroup,
    algorithm: &'static agreement::Algorithm,
}

impl fmt::Debug for ExchangeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl SupportedKxGroup for ExchangeGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let private = EphemeralPrivateKey::generate(self.algorithm, &SystemRandom::new());
        let private = private.map_err(|_| GetRandomFailed)?;
        let public = private.compute_public_key().map_err(|_| GetRandomFailed)?;
        Ok(Box::new(StartedExchange { name: self.name, private, public }))
    }

    fn name(&self) -> NamedGroup {
        self.name
    }
}

struct StartedExchange {
    name: NamedGroup,
    private: EphemeralPrivateKey,
    public: PublicKey,
}

impl ActiveKeyExchange for StartedExchange {
    /// `ring` checks length and form of the other side's key, and that its point is on the curve.
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer = UnparsedPublicKey::new(self.private.algorithm(), peer);
        let agreed = agreement::agree_ephemeral(self.private, &peer, |secret| SharedSecret::from(secret));
        agreed.map_err(|_| PeerMisbehaved::InvalidKeyShare.into())
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn group(&self) -> NamedGroup {
        self.name
    }
}
