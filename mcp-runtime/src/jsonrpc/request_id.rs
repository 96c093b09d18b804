//! Request ids: which ones are accepted, and when two of them are equal.

use serde_json::value::RawValue;

use super::raw_value::decode_string;

/// The largest id or progress token in bytes of raw JSON: both are repeated in messages to the client.
pub(crate) const MAX_ID_BYTES: usize = 1 << 10;

/// An id as a key: `1` and `"1"` differ, `"a"` and `"\u0061"` do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RequestId {
    Number(Box<str>),
    Text(Box<str>),
}

impl RequestId {
    /// The id that this raw JSON denotes, if it is a string or an integer.
    pub(crate) fn from_raw(raw: &RawValue) -> Option<Self> {
        match decode_string(raw) {
            Some(text) => Some(Self::Text(text.into())),
            None => is_integer(raw.get()).then(|| Self::Number(raw.get().into())),
        }
    }

    /// The id of a message that [`parse`](super::parse) accepted.
    pub(crate) fn from_json(id: &str) -> Self {
        match id.strip_prefix('"').and_then(|_| serde_json::from_str::<String>(id).ok()) {
            Some(text) => Self::Text(text.into()),
            None => Self::Number(id.into()),
        }
    }
}

/// Whether raw JSON is a string or an integer of at most [`MAX_ID_BYTES`].
pub(crate) fn is_valid_id(raw: &RawValue) -> bool {
    let json = raw.get();
    json.len() <= MAX_ID_BYTES && (json.starts_with('"') || is_integer(json))
}

fn is_integer(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
