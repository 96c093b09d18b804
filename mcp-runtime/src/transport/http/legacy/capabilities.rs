//! The client capabilities that revisions before 2026-07-28 know, as bits: small enough for a session id.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use crate::protocol::{UI_EXTENSION, UI_MIME_TYPE, supports_ui};

/// Which capability each bit stands for; a path into the wire's object.
const KNOWN: [&[&str]; 9] = [
    &["roots"],
    &["roots", "listChanged"],
    &["sampling"],
    &["sampling", "tools"],
    &["sampling", "context"],
    &["elicitation"],
    &["elicitation", "form"],
    &["elicitation", "url"],
    // only with the MIME type of pages
    &["extensions", UI_EXTENSION],
];

/// How many sets there are.
const SETS: usize = 1 << KNOWN.len();

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PackedCapabilities(u16);

impl PackedCapabilities {
    /// Those that the JSON object `json` declares; what is unknown is left out.
    pub(crate) fn read(json: &str) -> Self {
        let Ok(declared) = serde_json::from_str::<Value>(json) else { return Self::default() };
        let bits = KNOWN.iter().enumerate().filter(|(_, path)| {
            if path.last() == Some(&UI_EXTENSION) {
                return supports_ui(&declared);
            }
            let found = path.iter().try_fold(&declared, |at, key| at.get(key));
            found.is_some_and(|v| v.is_object() || v == &Value::Bool(true))
        });
        Self(bits.fold(0, |set, (n, _)| set | 1 << n))
    }

    /// The set with these bits; what they stand for beyond the known ones is left out.
    pub(crate) fn from_bits(bits: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(bits) & ((1 << KNOWN.len()) - 1))
    }

    pub(crate) fn bits(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    /// The set as a JSON object; made once for each set.
    pub(crate) fn json(self) -> Arc<str> {
        static MADE: [OnceLock<Arc<str>>; SETS] = [const { OnceLock::new() }; SETS];
        let make = || Arc::from(self.write());
        MADE.get(usize::from(self.0)).map_or_else(make, |made| Arc::clone(made.get_or_init(make)))
    }

    fn write(self) -> String {
        let mut all = Map::new();
        for (n, path) in KNOWN.iter().enumerate() {
            if self.0 & 1 << n == 0 {
                continue;
            }
            let mut at = &mut all;
            for key in *path {
                let fresh = match *key {
                    "listChanged" => Value::Bool(true),
                    UI_EXTENSION => json!({ "mimeTypes": [UI_MIME_TYPE] }),
                    _ => Value::Object(Map::new()),
                };
                match at.entry(*key).or_insert(fresh) {
                    Value::Object(inner) => at = inner,
                    _ => break,
                }
            }
        }
        Value::Object(all).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_capabilities_come_back() {
        let json = r#"{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}},"roots":{"listChanged":true},"sampling":{"tools":{}}}"#;
        let read = PackedCapabilities::read(json);
        let back: Value = serde_json::from_str(&read.json()).unwrap();
        assert_eq!(back, serde_json::from_str::<Value>(json).unwrap());
        assert_eq!(
            &*PackedCapabilities::read(r#"{"experimental":{"x":{}},"roots":{"listChanged":false}}"#).json(),
            r#"{"roots":{}}"#
        );
        assert_eq!(
            &*PackedCapabilities::read(r#"{"extensions":{"io.modelcontextprotocol/ui":{},"other/x":{}}}"#)
                .json(),
            "{}"
        );
        assert_eq!(&*PackedCapabilities::read("[]").json(), "{}");
    }

    #[test]
    fn every_set_survives_a_round_trip_through_its_json_and_its_bits() {
        for bits in 0..u16::try_from(SETS).unwrap() {
            let set = PackedCapabilities(bits);
            let json = set.json();
            let read = PackedCapabilities::read(&json);
            assert_eq!(read.0 & bits, bits, "{json}");
            assert_eq!(read.json(), json);
            assert_eq!(PackedCapabilities::from_bits(set.bits()), set);
        }
        assert_eq!(PackedCapabilities::from_bits([0xff, 0xff]).0, (1 << KNOWN.len()) - 1);
    }
}
