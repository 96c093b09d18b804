//! Wraps an output schema for revisions whose structured results must be objects.

use serde_json::{Map, Value, json};

use super::walk;

/// The schema of `{"result": …}` around a value of `schema`; references still resolve.
pub fn wrap_for_legacy(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let mut root = Map::new();
    if let Value::Object(map) = &mut inner {
        for keyword in ["$schema", "$defs"] {
            if let Some(value) = map.remove(keyword) {
                root.insert(keyword.to_owned(), value);
            }
        }
    }
    let relocate = |reference: &str| {
        let pointer = walk::pointer(reference)?;
        let is_hoisted = pointer == "/$defs" || pointer.starts_with("/$defs/");
        (!is_hoisted)
            .then(|| format!("#/properties/result{}", reference.strip_prefix('#').unwrap_or_default()))
    };
    walk::rewrite_refs(&mut inner, &relocate);
    if let Some(Value::Object(defs)) = root.get_mut("$defs") {
        defs.values_mut().for_each(|definition| walk::rewrite_refs(definition, &relocate));
    }
    if inner == Value::Bool(true) {
        inner = json!({});
    }
    root.insert("type".to_owned(), "object".into());
    root.insert("properties".to_owned(), json!({ "result": inner }));
    root.insert("required".to_owned(), json!(["result"]));
    Value::Object(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_hoisted_and_other_references_relocated() {
        let schema = json!({
            "type": "array",
            "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/Leaf"}, {"$ref": "#/items/anyOf/1"}]},
            "$defs": {"Leaf": {"properties": {"up": {"$ref": "#"}}}}
        });
        assert_eq!(
            wrap_for_legacy(&schema),
            json!({
                "type": "object",
                "properties": {"result": {
                    "type": "array",
                    "items": {"anyOf": [
                        {"$ref": "#/properties/result"},
                        {"$ref": "#/$defs/Leaf"},
                        {"$ref": "#/properties/result/items/anyOf/1"}
                    ]}
                }},
                "required": ["result"],
                "$defs": {"Leaf": {"properties": {"up": {"$ref": "#/properties/result"}}}}
            })
        );
    }

    #[test]
    fn a_schema_without_references_is_nested_unchanged() {
        assert_eq!(
            wrap_for_legacy(&json!({"type": "integer"})),
            json!({"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]})
        );
    }
}
