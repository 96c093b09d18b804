//! The protection of records, for TLS 1.3 ([RFC 8446, section 5.2]) and for the suites of TLS 1.2 that have an AEAD
//! ([RFC 5288], [RFC 7905]). A nonce is a start of the connection's own combined with the number of the record, which
//! never repeats: rustls ends the connection or changes its keys before a number would.
//!
//! [RFC 8446, section 5.2]: https://www.rfc-editor.org/rfc/rfc8446#section-5.2
//! [RFC 5288]: https://www.rfc-editor.org/rfc/rfc5288#section-3
//! [RFC 7905]: https://www.rfc-editor.org/rfc/rfc7905#section-2

use ring::aead::{self, Aad, LessSafeKey, UnboundKey};
use rustls::{
    ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion,
    crypto::cipher::{
        AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape, MessageDecrypter,
        MessageEncrypter, NONCE_LEN, Nonce, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload,
        Tls12AeadAlgorithm, Tls13AeadAlgorithm, UnsupportedOperationError, make_tls12_aad, make_tls13_aad,
    },
};

/// The largest content of a record.
const MAX_CONTENT: usize = 1 << 14;
const TAG: usize = 16;
/// With AES-GCM in TLS 1.2, a part of the nonce that is the same for all records, and one that each contains.
const GCM_SALT: usize = 4;
const GCM_EXPLICIT: usize = 8;

pub(super) static AES_128_GCM: RecordCipher =
    RecordCipher { algorithm: &aead::AES_128_GCM, is_gcm: true, confidentiality_limit: 1 << 24 };
pub(super) static AES_256_GCM: RecordCipher =
    RecordCipher { algorithm: &aead::AES_256_GCM, is_gcm: true, confidentiality_limit: 1 << 24 };
pub(super) static CHACHA20_POLY1305: RecordCipher =
    RecordCipher { algorithm: &aead::CHACHA20_POLY1305, is_gcm: false, confidentiality_limit: u64::MAX };

pub(super) struct RecordCipher {
    algorithm: &'static aead::Algorithm,
    is_gcm: bool,
    /// Records of one key.
    pub(super) confidentiality_limit: u64,
}

impl RecordCipher {
    fn protection(&self, key: &AeadKey, iv: Iv, form: RecordForm) -> Box<RecordProtection> {
        // rustls gives keys of the length that it was told
        let key = UnboundKey::new(self.algorithm, key.as_ref()).ok().map(LessSafeKey::new);
        Box::new(RecordProtection { key, iv, form })
    }

    fn tls12_form(&self) -> RecordForm {
        if self.is_gcm { RecordForm::Tls12Gcm } else { RecordForm::Tls12 }
    }
}

impl Tls13AeadAlgorithm for RecordCipher {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        self.protection(&key, iv, RecordForm::Tls13)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.protection(&key, iv, RecordForm::Tls13)
    }

    fn key_len(&self) -> usize {
        self.algorithm.key_len()
    }

    /// For TLS in the kernel, which is not used.
    fn extract_keys(&self, _: AeadKey, _: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

impl Tls12AeadAlgorithm for RecordCipher {
    fn encrypter(&self, key: AeadKey, iv: &[u8], explicit: &[u8]) -> Box<dyn MessageEncrypter> {
        self.protection(&key, joined(iv, explicit), self.tls12_form())
    }

    /// Of GCM's nonces only the salt is known before a record comes.
    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        self.protection(&key, joined(iv, &[]), self.tls12_form())
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        let (fixed_iv_len, explicit_nonce_len) =
            if self.is_gcm { (GCM_SALT, GCM_EXPLICIT) } else { (NONCE_LEN, 0) };
        KeyBlockShape { enc_key_len: self.algorithm.key_len(), fixed_iv_len, explicit_nonce_len }
    }

    fn extract_keys(
        &self,
        _: AeadKey,
        _: &[u8],
        _: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

/// Two parts of a nonce, in their order.
fn joined(first: &[u8], second: &[u8]) -> Iv {
    let mut bytes = [0; NONCE_LEN];
    for (to, from) in bytes.iter_mut().zip(first.iter().chain(second)) {
        *to = *from;
    }
    bytes.into()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordForm {
    /// The type of the content is encrypted with it.
    Tls13,
    Tls12,
    /// Each record begins with a part of its nonce.
    Tls12Gcm,
}

/// One direction of a connection.
struct RecordProtection {
    key: Option<LessSafeKey>,
    iv: Iv,
    form: RecordForm,
}

impl RecordProtection {
    fn prefix(&self) -> usize {
        if self.form == RecordForm::Tls12Gcm { GCM_EXPLICIT } else { 0 }
    }
}

impl MessageEncrypter for RecordProtection {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        number: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let key = self.key.as_ref().ok_or(Error::EncryptError)?;
        let nonce = Nonce::new(&self.iv, number).0;
        let content = message.payload.len();
        let length = self.encrypted_payload_len(content);
        let mut record = PrefixedPayload::with_capacity(length);
        if self.form == RecordForm::Tls12Gcm {
            record.extend_from_slice(nonce.get(GCM_SALT..).unwrap_or_default());
        }
        record.extend_from_chunks(&message.payload);
        let (tls12, tls13);
        let additional: &[u8] = if self.form == RecordForm::Tls13 {
            record.extend_from_slice(&[message.typ.into()]);
            tls13 = make_tls13_aad(length);
            &tls13
        } else {
            tls12 = make_tls12_aad(number, message.typ, message.version, content);
            &tls12
        };
        let text = record.as_mut().get_mut(self.prefix()..).ok_or(Error::EncryptError)?;
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(additional), text);
        record.extend_from_slice(tag.map_err(|_| Error::EncryptError)?.as_ref());
        Ok(match self.form {
            // the unencrypted header of a TLS 1.3 record
            RecordForm::Tls13 => {
                OutboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, record)
            }
            _ => OutboundOpaqueMessage::new(message.typ, message.version, record),
        })
    }

    fn encrypted_payload_len(&self, content: usize) -> usize {
        content + usize::from(self.form == RecordForm::Tls13) + self.prefix() + TAG
    }
}

impl MessageDecrypter for RecordProtection {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        number: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let key = self.key.as_ref().ok_or(Error::DecryptError)?;
        let record = &mut message.payload;
        let content = record.len().checked_sub(self.prefix() + TAG).ok_or(Error::DecryptError)?;
        let nonce = match self.form {
            RecordForm::Tls12Gcm => {
                let salt = self.iv.as_ref().get(..GCM_SALT).unwrap_or_default();
                let explicit = record.get(..GCM_EXPLICIT).unwrap_or_default();
                Nonce::new(&joined(salt, explicit), 0).0
            }
            _ => Nonce::new(&self.iv, number).0,
        };
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        let (tls12, tls13);
        let additional: &[u8] = if self.form == RecordForm::Tls13 {
            tls13 = make_tls13_aad(record.len());
            &tls13
        } else {
            tls12 = make_tls12_aad(number, message.typ, message.version, content);
            &tls12
        };
        let opened = key.open_within(nonce, Aad::from(additional), record, self.prefix()..);
        let length = opened.map_err(|_| Error::DecryptError)?.len();
        record.truncate(length);
        if self.form == RecordForm::Tls13 {
            return message.into_tls13_unpadded_message();
        }
        if length > MAX_CONTENT {
            return Err(Error::PeerSentOversizedRecord);
        }
        Ok(message.into_plain_message())
    }
}
