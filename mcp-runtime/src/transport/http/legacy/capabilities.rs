//! The client capabilities of legacy revisions as bits, so that they fit into a session id.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use crate::core::{
    connection::parse_capabilities,
    protocol::{UI_EXTENSION, UI_MIME_TYPE, supports_ui},
};

/// The capability of each bit, as a path into the `capabilities` object.
const KNOWN: [&[&str]; 9] = [
    &["roots"],
    &["roots", "listChanged"],
    &["sampling"],
    &["sampling", "tools"],
    &["sampling", "context"],
    &["elicitation"],
    &["elicitation", "form"],
    &["elicitation", "url"],
    // only with the MIME type of app pages
    &["extensions", UI_EXTENSION],
];

/// The number of sets.
const SETS: usize = 1 << KNOWN.len();

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PackedCapabilities(u16);

impl PackedCapabilities {
    /// The capabilities that the JSON object `json` declares; unknown ones are left out.
    pub(crate) fn parse(json: &str) -> Self {
        let declared = parse_capabilities(json);
        let bits = KNOWN.iter().enumerate().filter(|(_, path)| {
            if path.last() == Some(&UI_EXTENSION) {
                return supports_ui(&declared);
            }
            let value = path.iter().try_fold(&declared, |value, key| value.get(key));
            value.is_some_and(|v| v.is_object() || v == &Value::Bool(true))
        });
        Self(bits.fold(0, |set, (n, _)| set | 1 << n))
    }

    /// The set with these bits; unknown bits are ignored.
    pub(crate) fn from_bits(bits: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(bits) & ((1 << KNOWN.len()) - 1))
    }

    pub(crate) fn bits(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    /// The set as a JSON object, which is cached.
    pub(crate) fn json(self) -> Arc<str> {
        static CACHE: [OnceLock<Arc<str>>; SETS] = [const { OnceLock::new() }; SETS];
        let encode = || Arc::from(self.encode());
        CACHE.get(usize::from(self.0)).map_or_else(encode, |cached| Arc::clone(cached.get_or_init(encode)))
    }

    fn encode(self) -> String {
        let mut capabilities = Map::new();
        for (n, path) in KNOWN.iter().enumerate() {
            if self.0 & 1 << n == 0 {
                continue;
            }
            let mut object = &mut capabilities;
            for key in *path {
                let value = match *key {
                    "listChanged" => Value::Bool(true),
                    UI_EXTENSION => json!({ "mimeTypes": [UI_MIME_TYPE] }),
                    _ => Value::Object(Map::new()),
                };
                match object.entry(*key).or_insert(value) {
                    Value::Object(inner) => object = inner,
                    _ => break,
                }
            }
        }
        Value::Object(capabilities).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_capabilities_survive_a_round_trip() {
        let json = r#"{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}},"roots":{"listChanged":true},"sampling":{"tools":{}}}"#;
        let read = PackedCapabilities::parse(json);
        let back: Value = serde_json::from_str(&read.json()).unwrap();
        assert_eq!(back, serde_json::from_str::<Value>(json).unwrap());
        assert_eq!(
            &*PackedCapabilities::parse(r#"{"experimental":{"x":{}},"roots":{"listChanged":false}}"#).json(),
            r#"{"roots":{}}"#
        );
        assert_eq!(
            &*PackedCapabilities::parse(r#"{"extensions":{"io.modelcontextprotocol/ui":{},"other/x":{}}}"#)
                .json(),
            "{}"
        );
        assert_eq!(&*PackedCapabilities::parse("[]").json(), "{}");
    }

    #[test]
    fn every_set_survives_a_round_trip_through_its_json_and_its_bits() {
        for bits in 0..u16::try_from(SETS).unwrap() {
            let set = PackedCapabilities(bits);
            let json = set.json();
            let read = PackedCapabilities::parse(&json);
            assert_eq!(read.0 & bits, bits, "{json}");
            assert_eq!(read.json(), json);
            assert_eq!(PackedCapabilities::from_bits(set.bits()), set);
        }
        assert_eq!(PackedCapabilities::from_bits([0xff, 0xff]).0, (1 << KNOWN.len()) - 1);
    }
}
