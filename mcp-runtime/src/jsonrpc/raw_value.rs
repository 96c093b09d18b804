//! Raw JSON values: slices of a message's text that are decoded only when they are needed.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The text of a JSON string, borrowed where it has no escape; `None` for any other value.
pub(crate) fn decode_string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_some() {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Unlike `Option<&RawValue>` alone, distinguishes `null` from an absent member.
pub(super) fn deserialize_raw<'de: 'a, 'a, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

/// A string, borrowed where it has no escape.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct CowStr<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);
