//! Whether a schema that was written by hand is one of 2020-12: keywords have values of the types that the meta-schema gives
//! them, also where nothing refers to them. A client that checks schemas refuses a whole list for one that is not.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::Validator;

/// The dialect without a fragment.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Whether 2020-12 has a keyword.
pub(super) fn is_keyword(name: &str) -> bool {
    static KEYWORDS: OnceLock<Value> = OnceLock::new();
    KEYWORDS.get_or_init(meta_schema)["properties"].get(name).is_some()
}

/// Checks a schema against its meta-schema; the error names the place. A schema of another dialect is not checked.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    static META: OnceLock<Option<Validator>> = OnceLock::new();
    let dialect = schema.get("$schema").and_then(Value::as_str);
    if dialect.is_some_and(|name| name.trim_end_matches('#') != DIALECT) {
        return Ok(());
    }
    // a test compiles it
    let meta = META.get_or_init(|| Validator::compile(&meta_schema()).ok());
    let errors = meta.as_ref().map(|meta| meta.errors(schema)).unwrap_or_default();
    match errors.first() {
        None => Ok(()),
        Some(error) => Err(format!("it is not a JSON Schema of 2020-12: {error}")),
    }
}

/// The keywords of 2020-12 and what their values are, in the words of 2020-12.
fn meta_schema() -> Value {
    let schema = || json!({ "$ref": "#" });
    let schemas = || json!({ "type": "object", "additionalProperties": { "$ref": "#" } });
    let list = || json!({ "type": "array", "minItems": 1, "items": { "$ref": "#" } });
    let names = || json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true });
    let count = || json!({ "type": "integer", "minimum": 0 });
    let types = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let anchor = || json!({ "type": "string", "pattern": "^[A-Za-z_][-A-Za-z0-9._]*$" });
    let groups: [(&[&str], Value); 13] = [
        (&["additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"], schema()),
        (&["propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"], schema()),
        (&["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"], schemas()),
        (&["allOf", "anyOf", "oneOf", "prefixItems"], list()),
        (
            &[
                "maxContains",
                "maxItems",
                "maxLength",
                "maxProperties",
                "minContains",
                "minItems",
                "minLength",
            ],
            count(),
        ),
        (&["minProperties"], count()),
        (&["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"], json!({ "type": "number" })),
        (&["deprecated", "readOnly", "uniqueItems", "writeOnly"], json!({ "type": "boolean" })),
        (
            &[
                "$comment",
                "$dynamicRef",
                "$ref",
                "$schema",
                "contentEncoding",
                "contentMediaType",
                "description",
            ],
            json!({ "type": "string" }),
        ),
        (&["format", "pattern", "title"], json!({ "type": "string" })),
        (&["$anchor", "$dynamicAnchor"], anchor()),
        (&["enum", "examples"], json!({ "type": "array" })),
        (&["required"], names()),
    ];
    let mut properties: Map<String, Value> = groups
        .into_iter()
        .flat_map(|(keywords, value)| {
            keywords.iter().map(move |keyword| ((*keyword).to_owned(), value.clone()))
        })
        .collect();
    let others = json!({
        "const": true,
        "default": true,
        "$id": { "type": "string", "pattern": "^[^#]*#?$" },
        "$vocabulary": { "type": "object", "additionalProperties": { "type": "boolean" } },
        "dependentRequired": { "type": "object", "additionalProperties": names() },
        "multipleOf": { "type": "number", "exclusiveMinimum": 0 },
        "type": { "anyOf": [
            { "enum": types },
            { "type": "array", "items": { "enum": types }, "minItems": 1, "uniqueItems": true },
        ] },
        // of earlier dialects, which 2020-12 keeps a place for
        "dependencies": { "type": "object", "additionalProperties": { "anyOf": [schema(), names()] } },
        "$recursiveAnchor": anchor(),
        "$recursiveRef": { "type": "string" },
    });
    if let Value::Object(others) = others {
        properties.extend(others);
    }
    json!({ "type": ["object", "boolean"], "properties": properties })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meta_schema_is_compiled_and_takes_itself() {
        assert!(Validator::compile(&meta_schema()).is_ok());
        assert_eq!(check_schema(&meta_schema()), Ok(()));
    }

    #[test]
    fn a_schema_of_another_dialect_is_not_looked_at() {
        let old = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "items": [true] });
        assert_eq!(check_schema(&old), Ok(()));
    }
}
