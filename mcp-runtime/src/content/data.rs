//! Binary data, which JSON holds as base64.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::jsonrpc::write_string;

/// Bytes to be encoded as base64, or base64 that is sent unchanged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BinaryData {
    Bytes(Vec<u8>),
    Base64(String),
}

impl BinaryData {
    pub(super) fn to_base64(&self) -> Cow<'_, str> {
        match self {
            Self::Bytes(bytes) => STANDARD.encode(bytes).into(),
            Self::Base64(text) => text.into(),
        }
    }

    /// `None` if the base64 is malformed.
    pub(super) fn to_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Bytes(bytes) => Some(bytes.into()),
            Self::Base64(text) => STANDARD.decode(text).ok().map(Cow::Owned),
        }
    }

    /// Appends the base64 as a JSON string.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => write_base64(out, bytes),
            Self::Base64(text) => write_string(out, text),
        }
    }
}

fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // the slice has exactly the encoded size, so this does not fail; if it did, the string would be empty
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
    out.push(b'"');
}
