//! Binary data, which JSON holds as base64.

use base64::Engine as _;

use crate::jsonrpc::write_string;

/// Bytes to be encoded as base64, or base64 that is sent unchanged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BinaryData {
    Bytes(Vec<u8>),
    Base64(String),
}

impl BinaryData {
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
    let written =
        base64::engine::general_purpose::STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
    out.push(b'"');
}
