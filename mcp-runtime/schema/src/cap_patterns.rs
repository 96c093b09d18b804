//! Bounds the text that patterns are matched against. Matching takes time in proportion to the text and the pattern,
//! which for a message of text is seconds.

use serde_json::Value;

use super::walk;

/// The most characters of a text with a pattern, unless its schema has a maximum: the published `maxLength`.
pub const MAX_PATTERN_TEXT: usize = 1 << 16;

/// Adds `maxLength` to the subschemas that have a pattern and no maximum.
pub fn cap_patterns(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    walk::subschemas_mut(map, &mut |_, child| cap_patterns(child));
    let is_bounded = ["maxLength", "enum", "const"].iter().any(|keyword| map.contains_key(*keyword));
    if map.contains_key("pattern") && !is_bounded {
        map.insert("maxLength".to_owned(), MAX_PATTERN_TEXT.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_patterns_without_a_maximum_are_capped() {
        let mut schema = json!({
            "properties": {
                "pattern": {"type": "string"},
                "a": {"pattern": "a"},
                "b": {"items": {"pattern": "b", "maxLength": 100_000}},
                "c": {"pattern": "c", "enum": ["c"]}
            },
            "$defs": {"D": {"anyOf": [{"pattern": "d"}]}}
        });
        cap_patterns(&mut schema);
        assert_eq!(
            schema,
            json!({
                "properties": {
                    "pattern": {"type": "string"},
                    "a": {"pattern": "a", "maxLength": 65536},
                    "b": {"items": {"pattern": "b", "maxLength": 100_000}},
                    "c": {"pattern": "c", "enum": ["c"]}
                },
                "$defs": {"D": {"anyOf": [{"pattern": "d", "maxLength": 65536}]}}
            })
        );
    }
}
