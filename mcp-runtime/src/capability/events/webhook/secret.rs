//! Secrets of webhooks, and signatures by the scheme of [Standard Webhooks](https://www.standardwebhooks.com): the secret
//! is the subscriber's, and appears neither in a log nor in `Debug`.

use std::fmt;

use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use hyper::body::Bytes;
use ring::hmac;
use serde::{Deserialize, Serialize};

const PREFIX: &str = "whsec_";
/// The length of the decoded secret, in bytes.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
const ANY_PADDING: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The key that signs the messages to an endpoint.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// `whsec_` and base64 of 24 to 64 bytes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = ANY_PADDING.decode(text.strip_prefix(PREFIX)?).ok()?;
        LENGTHS.contains(&bytes.len()).then_some(Self(bytes))
    }

    /// The signature of a message: `v1,` and base64 of HMAC-SHA256 over its id, its time and the parts of its body.
    pub(super) fn sign(&self, id: &str, timestamp: u64, body: &[Bytes]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let mut context = hmac::Context::with_key(&key);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        body.iter().for_each(|part| context.update(part));
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_signed_as_the_published_example_is() {
        // of the specification of Standard Webhooks and of its libraries
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = [r#"{"test": "#, "2432232314}"].map(Bytes::from);
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, &body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_secret_has_24_to_64_bytes_in_base64() {
        let secret = |length: usize| format!("whsec_{}", STANDARD.encode(vec![7; length]));
        for length in [24, 25, 26, 64] {
            assert!(Secret::parse(&secret(length)).is_some(), "{length}");
            assert!(
                Secret::parse(secret(length).trim_end_matches('=')).is_some(),
                "{length} without padding"
            );
        }
        for bad in [
            secret(23),
            secret(65),
            secret(0),
            "whsec_".into(),
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into(),
            "whsec_not base64 at all, but long enough".into(),
            String::new(),
        ] {
            assert!(Secret::parse(&bad).is_none(), "{bad}");
        }
    }
}
