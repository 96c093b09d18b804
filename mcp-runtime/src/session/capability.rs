//! The client capabilities that the handshake era knows, as bits: small enough for a session id.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

/// Which capability each bit stands for; a path into the wire's object.
const KNOWN: [&[&str]; 8] = [
    &["roots"],
    &["roots", "listChanged"],
    &["sampling"],
    &["sampling", "tools"],
    &["sampling", "context"],
    &["elicitation"],
    &["elicitation", "form"],
    &["elicitation", "url"],
];

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Capabilities(pub(crate) u8);

impl Capabilities {
    /// Those that the JSON object `json` declares; what is unknown is left out.
    pub(crate) fn read(json: &str) -> Self {
        let Ok(declared) = serde_json::from_str::<Value>(json) else { return Self::default() };
        let bits = KNOWN.iter().enumerate().filter(|(_, path)| {
            let found = path.iter().try_fold(&declared, |at, key| at.get(key));
            found.is_some_and(|v| v.is_object() || v == &Value::Bool(true))
        });
        Self(bits.fold(0, |set, (n, _)| set | 1 << n))
    }

    /// The set as a JSON object; made once for each set.
    pub(crate) fn json(self) -> Arc<str> {
        static MADE: [OnceLock<Arc<str>>; 256] = [const { OnceLock::new() }; 256];
        Arc::clone(MADE[usize::from(self.0)].get_or_init(|| self.write().into()))
    }

    fn write(self) -> String {
        let mut all = Map::new();
        for (n, path) in KNOWN.iter().enumerate() {
            if self.0 & 1 << n == 0 {
                continue;
            }
            let mut at = &mut all;
            for (depth, key) in path.iter().enumerate() {
                let flag = *key == "listChanged" && depth + 1 == path.len();
                let fresh = if flag { Value::Bool(true) } else { Value::Object(Map::new()) };
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
        let json =
            r#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"tools":{}}}"#;
        let read = Capabilities::read(json);
        let back: Value = serde_json::from_str(&read.json()).unwrap();
        assert_eq!(back, serde_json::from_str::<Value>(json).unwrap());
        assert_eq!(
            &*Capabilities::read(r#"{"experimental":{"x":{}},"roots":{"listChanged":false}}"#).json(),
            r#"{"roots":{}}"#
        );
        assert_eq!(&*Capabilities::read("[]").json(), "{}");
    }

    #[test]
    fn every_set_survives_a_round_trip_through_its_json() {
        for bits in 0..=u8::MAX {
            let json = Capabilities(bits).json();
            let read = Capabilities::read(&json);
            assert_eq!(read.0 & bits, bits, "{json}");
            assert_eq!(read.json(), json);
        }
    }
}
