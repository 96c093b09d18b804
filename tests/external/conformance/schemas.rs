//! The schemas of the protocol, made strict: members that a revision does not define are errors. They come with the
//! suite, so no copy is kept here.

use std::process::Command;

use jsonschema::Validator;
use mcp_external_tests::manifest_dir;
use mcp_runtime::Revision;
use mcp_tests::{programs::child, support::PATIENCE};
use serde_json::{Map, Value, json};

use crate::suite::Suite;

/// The schema of one revision.
pub(crate) struct Schema {
    draft: Value,
    /// The member that holds the definitions.
    definitions: &'static str,
    of: Map<String, Value>,
}

impl Schema {
    /// The schemas in the suite, by revision; 2024-11-05 has none.
    pub(crate) fn all(suite: &Suite) -> Vec<(Revision, Self)> {
        let script = manifest_dir().join("conformance/schemas.mjs");
        let mut node = Command::new(suite.node());
        let printed = child::run(node.arg(script).arg(suite.script()), "", PATIENCE);
        let printed = printed.expect("the installed node can be run").or_panic("reading the schemas");
        let schemas: Vec<Value> = serde_json::from_str(&printed).expect("an array");
        schemas.into_iter().map(Self::read).collect()
    }

    fn read(mut schema: Value) -> (Revision, Self) {
        let definitions = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        let Value::Object(mut of) = schema[definitions].take() else { panic!("no definitions") };
        let has = |name: &str| of.contains_key(name);
        let revision = match (has("DiscoverRequest"), has("Icon"), has("ElicitRequest")) {
            (true, ..) => Revision::V2026_07_28,
            (_, true, _) => Revision::V2025_11_25,
            (.., true) => Revision::V2025_06_18,
            _ => Revision::V2025_03_26,
        };
        // metadata may contain anything, also under its own name
        for (_, definition) in of.iter_mut().filter(|(name, _)| !name.ends_with("MetaObject")) {
            close(definition);
        }
        (revision, Self { draft: schema["$schema"].take(), definitions, of })
    }

    pub(crate) fn has(&self, definition: &str) -> bool {
        self.of.contains_key(definition)
    }

    /// What is invalid about a value that must match the definition.
    pub(crate) fn violations(&self, definition: &str, value: &Value) -> Vec<String> {
        let root = json!({
            "$schema": self.draft,
            "$ref": format!("#/{}/{definition}", self.definitions),
            self.definitions: self.of,
        });
        let validator: Validator = jsonschema::validator_for(&root).expect("a schema");
        let mut value = value.clone();
        // older schemas describe the message without its envelope
        if self.of[definition]["properties"].get("jsonrpc").is_none()
            && let Value::Object(message) = &mut value
        {
            message.retain(|key, _| key != "jsonrpc" && key != "id");
        }
        validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }
}

/// Forbids members that an object's schema does not name, unless they are schemas or metadata themselves.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                for (name, property) in properties {
                    if !matches!(name.as_str(), "inputSchema" | "outputSchema" | "_meta") {
                        close(property);
                    }
                }
                object.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            for key in ["items", "anyOf", "oneOf", "allOf"] {
                object.get_mut(key).into_iter().for_each(close);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

#[test]
fn a_closed_schema_refuses_undefined_members() {
    let schema = json!({ "definitions": { "A": {
        "type": "object",
        "properties": { "a": { "type": "object", "properties": { "b": { "type": "string" } } }, "_meta": {} },
    } }, "$schema": "http://json-schema.org/draft-07/schema#" });
    let (_, schema) = Schema::read(schema);
    assert!(schema.violations("A", &json!({ "a": { "b": "x" }, "_meta": { "any": 1 } })).is_empty());
    assert_eq!(schema.violations("A", &json!({ "a": { "c": "x" } })).len(), 1);
    assert_eq!(schema.violations("A", &json!({ "b": 1 })).len(), 1);
}
