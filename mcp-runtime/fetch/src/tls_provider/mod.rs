//! The cryptography of TLS, by `ring`: the equivalent of rustls's feature `ring`, without that feature.
//!
//! Cargo unites the features of a crate over the whole program. A program in which two crates choose two providers of
//! rustls has lost its default provider, and what relies on it panics. So nothing here names a feature of rustls that
//! chooses one. Protocol and arithmetic are not here: rustls runs the protocol, `ring` has the algorithms,
//! `webpki` verifies signatures. Clients only: a private key is not loaded.

mod key_exchange;
mod record_cipher;
mod tls_hash;

use std::sync::Arc;

use rustls::{
    CipherSuite, CipherSuiteCommon, Error, SignatureScheme, SupportedCipherSuite, Tls12CipherSuite,
    Tls13CipherSuite,
    crypto::{
        CryptoProvider, GetRandomFailed, KeyExchangeAlgorithm, KeyProvider, SecureRandom,
        WebPkiSupportedAlgorithms, tls12::PrfUsingHmac, tls13::HkdfUsingHmac,
    },
    pki_types::PrivateKeyDer,
    sign::SigningKey,
};
use webpki::ring as signatures;

use key_exchange::GROUPS;
use record_cipher::{AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, RecordCipher};
use tls_hash::{HMAC_SHA256, HMAC_SHA384, SHA256, SHA384, TlsHash, TlsHmac};

/// The provider of every TLS connection of this crate.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: SUITES.to_vec(),
        kx_groups: GROUPS.to_vec(),
        signature_verification_algorithms: SIGNATURES,
        secure_random: &RingProvider,
        key_provider: &RingProvider,
    }
}

#[derive(Debug)]
struct RingProvider;

impl SecureRandom for RingProvider {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), bytes).map_err(|_| GetRandomFailed)
    }
}

impl KeyProvider for RingProvider {
    fn load_private_key(&self, _key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("client certificates are not supported".to_owned()))
    }
}

static SUITES: &[SupportedCipherSuite] = &[
    SupportedCipherSuite::Tls13(&TLS13_AES_256),
    SupportedCipherSuite::Tls13(&TLS13_AES_128),
    SupportedCipherSuite::Tls13(&TLS13_CHACHA20),
    SupportedCipherSuite::Tls12(&ECDSA_AES_256),
    SupportedCipherSuite::Tls12(&ECDSA_AES_128),
    SupportedCipherSuite::Tls12(&ECDSA_CHACHA20),
    SupportedCipherSuite::Tls12(&RSA_AES_256),
    SupportedCipherSuite::Tls12(&RSA_AES_128),
    SupportedCipherSuite::Tls12(&RSA_CHACHA20),
];

static TLS13_AES_256: Tls13CipherSuite = tls13(CipherSuite::TLS13_AES_256_GCM_SHA384, &AES_256);
static TLS13_AES_128: Tls13CipherSuite = tls13(CipherSuite::TLS13_AES_128_GCM_SHA256, &AES_128);
static TLS13_CHACHA20: Tls13CipherSuite = tls13(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, &CHACHA20);
static ECDSA_AES_256: Tls12CipherSuite =
    tls12(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, ECDSA_SCHEMES, &AES_256);
static ECDSA_AES_128: Tls12CipherSuite =
    tls12(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, ECDSA_SCHEMES, &AES_128);
static ECDSA_CHACHA20: Tls12CipherSuite =
    tls12(CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, ECDSA_SCHEMES, &CHACHA20);
static RSA_AES_256: Tls12CipherSuite =
    tls12(CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, RSA_SCHEMES, &AES_256);
static RSA_AES_128: Tls12CipherSuite =
    tls12(CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, RSA_SCHEMES, &AES_128);
static RSA_CHACHA20: Tls12CipherSuite =
    tls12(CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, RSA_SCHEMES, &CHACHA20);

/// What suites have in common that differ in the version of TLS and in the certificate's key.
struct Protection {
    cipher: &'static RecordCipher,
    hash: &'static TlsHash,
    hkdf: HkdfUsingHmac<'static>,
    prf: PrfUsingHmac<'static>,
}

static AES_256: Protection = protection(&AES_256_GCM, &SHA384, &HMAC_SHA384);
static AES_128: Protection = protection(&AES_128_GCM, &SHA256, &HMAC_SHA256);
static CHACHA20: Protection = protection(&CHACHA20_POLY1305, &SHA256, &HMAC_SHA256);

const fn protection(
    cipher: &'static RecordCipher,
    hash: &'static TlsHash,
    hmac: &'static TlsHmac,
) -> Protection {
    Protection { cipher, hash, hkdf: HkdfUsingHmac(hmac), prf: PrfUsingHmac(hmac) }
}

const fn common(suite: CipherSuite, with: &'static Protection) -> CipherSuiteCommon {
    CipherSuiteCommon {
        suite,
        hash_provider: with.hash,
        confidentiality_limit: with.cipher.confidentiality_limit,
    }
}

const fn tls13(suite: CipherSuite, with: &'static Protection) -> Tls13CipherSuite {
    Tls13CipherSuite {
        common: common(suite, with),
        hkdf_provider: &with.hkdf,
        aead_alg: with.cipher,
        quic: None,
    }
}

const fn tls12(
    suite: CipherSuite,
    sign: &'static [SignatureScheme],
    with: &'static Protection,
) -> Tls12CipherSuite {
    Tls12CipherSuite {
        common: common(suite, with),
        prf_provider: &with.prf,
        kx: KeyExchangeAlgorithm::ECDHE,
        sign,
        aead_alg: with.cipher,
    }
}

const ECDSA_SCHEMES: &[SignatureScheme] = &[
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP256_SHA256,
];

const RSA_SCHEMES: &[SignatureScheme] = &[
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA256,
];

static SIGNATURES: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: webpki::ALL_VERIFICATION_ALGS,
    // in TLS 1.3 a scheme means its first algorithm; in TLS 1.2 the scheme does not fix the curve
    mapping: &[
        (
            SignatureScheme::ECDSA_NISTP384_SHA384,
            &[signatures::ECDSA_P384_SHA384, signatures::ECDSA_P256_SHA384],
        ),
        (
            SignatureScheme::ECDSA_NISTP256_SHA256,
            &[signatures::ECDSA_P256_SHA256, signatures::ECDSA_P384_SHA256],
        ),
        (SignatureScheme::ED25519, &[signatures::ED25519]),
        (SignatureScheme::RSA_PSS_SHA512, &[signatures::RSA_PSS_2048_8192_SHA512_LEGACY_KEY]),
        (SignatureScheme::RSA_PSS_SHA384, &[signatures::RSA_PSS_2048_8192_SHA384_LEGACY_KEY]),
        (SignatureScheme::RSA_PSS_SHA256, &[signatures::RSA_PSS_2048_8192_SHA256_LEGACY_KEY]),
        (SignatureScheme::RSA_PKCS1_SHA512, &[signatures::RSA_PKCS1_2048_8192_SHA512]),
        (SignatureScheme::RSA_PKCS1_SHA384, &[signatures::RSA_PKCS1_2048_8192_SHA384]),
        (SignatureScheme::RSA_PKCS1_SHA256, &[signatures::RSA_PKCS1_2048_8192_SHA256]),
    ],
};
