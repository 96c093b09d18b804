//! The hash functions of TLS, and HMAC with them.

use ring::{digest, hmac};
use rustls::crypto::{
    hash::{Context, Hash, HashAlgorithm, Output},
    hmac::{Hmac, Key, Tag},
};

pub(super) static SHA256: TlsHash = TlsHash(&digest::SHA256, HashAlgorithm::SHA256);
pub(super) static SHA384: TlsHash = TlsHash(&digest::SHA384, HashAlgorithm::SHA384);
pub(super) static HMAC_SHA256: TlsHmac = TlsHmac(&hmac::HMAC_SHA256);
pub(super) static HMAC_SHA384: TlsHmac = TlsHmac(&hmac::HMAC_SHA384);

pub(super) struct TlsHash(&'static digest::Algorithm, HashAlgorithm);

impl Hash for TlsHash {
    fn start(&self) -> Box<dyn Context> {
        Box::new(HashContext(digest::Context::new(self.0)))
    }

    fn hash(&self, data: &[u8]) -> Output {
        output(digest::digest(self.0, data))
    }

    fn output_len(&self) -> usize {
        self.0.output_len()
    }

    fn algorithm(&self) -> HashAlgorithm {
        self.1
    }
}

#[derive(Clone)]
struct HashContext(digest::Context);

impl Context for HashContext {
    fn fork_finish(&self) -> Output {
        output(self.0.clone().finish())
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(self.clone())
    }

    fn finish(self: Box<Self>) -> Output {
        output(self.0.finish())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

fn output(digest: digest::Digest) -> Output {
    Output::new(digest.as_ref())
}

pub(super) struct TlsHmac(&'static hmac::Algorithm);

impl Hmac for TlsHmac {
    fn with_key(&self, key: &[u8]) -> Box<dyn Key> {
        Box::new(HmacKey(hmac::Key::new(*self.0, key)))
    }

    fn hash_output_len(&self) -> usize {
        self.0.digest_algorithm().output_len()
    }
}

struct HmacKey(hmac::Key);

impl Key for HmacKey {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> Tag {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(first);
        for part in middle {
            context.update(part);
        }
        context.update(last);
        Tag::new(context.sign().as_ref())
    }

    fn tag_len(&self) -> usize {
        self.0.algorithm().digest_algorithm().output_len()
    }
}
