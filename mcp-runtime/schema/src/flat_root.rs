//! The schema of an enum that is the whole `arguments` object, as one list of properties. Models are offered tools by
//! programs that refuse `oneOf` at the root of an input schema, and with it every tool of the server. The
//! published schema says less than the alternatives, which are enforced.

use serde_json::{Map, Value, json};

use super::walk;

/// The schema with the alternatives at its root merged; none if it has none.
pub fn flat_root(root: &Value) -> Option<Value> {
    let mut flat = resolve_object(root, root)?.clone();
    let mut alternatives: Vec<Vec<&Map<String, Value>>> = Vec::new();
    let mut parts: Vec<Map<String, Value>> = Vec::new();
    for keyword in ["oneOf", "anyOf"] {
        if flat.remove(keyword).is_some() {
            alternatives.push(object_branches(root, walk::array(resolve_object(root, root)?, keyword)));
        }
    }
    for part in walk::array(resolve_object(root, root)?, "allOf") {
        let part = resolve_object(root, part)?;
        let nested = ["oneOf", "anyOf"].into_iter().find(|keyword| part.contains_key(*keyword));
        match nested {
            Some(keyword) => alternatives.push(object_branches(root, walk::array(part, keyword))),
            None => parts.push(part.clone()),
        }
    }
    if alternatives.is_empty() {
        return None;
    }
    flat.remove("allOf");
    if let Some(definitions) = root.get("$defs") {
        flat.insert("$defs".to_owned(), definitions.clone());
    }
    for part in &parts {
        merge(&mut flat, &[part]);
    }
    for branches in &alternatives {
        merge(&mut flat, branches);
    }
    if flat.remove("unevaluatedProperties") == Some(Value::Bool(false)) {
        flat.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    flat.insert("type".to_owned(), "object".into());
    Some(Value::Object(flat))
}

fn resolve_object<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Map<String, Value>> {
    let map = schema.as_object()?;
    match map.get("$ref").and_then(Value::as_str) {
        Some(reference) => walk::resolve(root, reference)?.1.as_object(),
        None => Some(map),
    }
}

/// The alternatives that are objects: `arguments` is always one.
fn object_branches<'a>(root: &'a Value, branches: &'a [Value]) -> Vec<&'a Map<String, Value>> {
    let is_object = |map: &&Map<String, Value>| map.get("type").is_none_or(|name| name == "object");
    branches.iter().filter_map(|branch| resolve_object(root, branch)).filter(is_object).collect()
}

/// Adds the properties of all alternatives, of which one holds.
fn merge(flat: &mut Map<String, Value>, branches: &[&Map<String, Value>]) {
    let mut names: Vec<&String> = Vec::new();
    for branch in branches {
        for name in branch.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let tag = tag(branches);
    let mut properties = match flat.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for name in names {
        let schemas: Vec<&Value> =
            branches.iter().filter_map(|branch| branch.get("properties")?.get(name)).collect();
        let mut merged = merge_schemas(&schemas);
        if tag == Some(name)
            && let Some(merged) = merged.as_object_mut()
        {
            merged.insert("description".to_owned(), describe_variants(name, branches).into());
        }
        properties.entry(name.clone()).or_insert(merged);
    }
    flat.insert("properties".to_owned(), Value::Object(properties));
    let mut required: Vec<Value> = walk::array(flat, "required").to_vec();
    if let Some((first, rest)) = branches.split_first() {
        for name in walk::array(first, "required") {
            if rest.iter().all(|branch| walk::array(branch, "required").contains(name))
                && !required.contains(name)
            {
                required.push(name.clone());
            }
        }
    }
    if required.is_empty() {
        flat.remove("required");
    } else {
        flat.insert("required".to_owned(), Value::Array(required));
    }
    // externally tagged variants: one key, which is the name of the variant
    let is_closed =
        |branch: &&&Map<String, Value>| branch.get("additionalProperties") == Some(&Value::Bool(false));
    let has_one_key = |branch: &&Map<String, Value>| {
        branch.get("properties").and_then(Value::as_object).is_some_and(|properties| properties.len() == 1)
            && walk::array(branch, "required").len() == 1
    };
    if !branches.is_empty() && branches.iter().filter(is_closed).count() == branches.len() {
        let is_alone = flat
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|properties| properties.len() == branches.len());
        if is_alone && branches.iter().all(has_one_key) && tag.is_none() {
            flat.insert("minProperties".to_owned(), 1.into());
            flat.insert("maxProperties".to_owned(), 1.into());
        }
        flat.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// The property whose constant distinguishes the alternatives.
fn tag<'a>(branches: &[&'a Map<String, Value>]) -> Option<&'a String> {
    let (first, rest) = branches.split_first()?;
    let is_constant = |branch: &Map<String, Value>, name: &str| {
        branch
            .get("properties")
            .and_then(|properties| properties.get(name)?.get("const"))
            .is_some_and(Value::is_string)
    };
    let properties = first.get("properties")?.as_object()?;
    properties
        .keys()
        .find(|name| is_constant(first, name) && rest.iter().all(|branch| is_constant(branch, name)))
}

/// As in `` `add` with a, b: Adds two numbers; `neg` ``.
fn describe_variants(tag: &str, branches: &[&Map<String, Value>]) -> String {
    let describe = |branch: &&Map<String, Value>| {
        let properties = branch.get("properties").and_then(Value::as_object);
        let name =
            properties.and_then(|properties| properties.get(tag)?.get("const")?.as_str()).unwrap_or_default();
        let others: Vec<&str> = properties
            .into_iter()
            .flat_map(Map::keys)
            .filter(|name| *name != tag)
            .map(String::as_str)
            .collect();
        let with = if others.is_empty() { String::new() } else { format!(" with {}", others.join(", ")) };
        let text = branch.get("description").and_then(Value::as_str).and_then(|text| text.lines().next());
        let text = text.map(|text| format!(": {}", text.trim_end_matches('.'))).unwrap_or_default();
        format!("`{name}`{with}{text}")
    };
    branches.iter().map(describe).collect::<Vec<_>>().join("; ")
}

/// One schema for what several accept.
fn merge_schemas(schemas: &[&Value]) -> Value {
    let constants: Option<Vec<&Value>> =
        schemas.iter().map(|schema| schema.get("const").filter(|constant| constant.is_string())).collect();
    let mut distinct: Vec<&Value> = Vec::new();
    for one in constants.as_deref().unwrap_or(schemas) {
        if !distinct.contains(one) {
            distinct.push(one);
        }
    }
    match (constants, distinct.as_slice()) {
        (Some(_), several) => json!({ "type": "string", "enum": several }),
        (None, [one]) => (*one).clone(),
        (None, several) => json!({ "anyOf": several }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_become_one_list_of_properties() {
        let variant = |name: &str, field: &str, schema: Value| json!({"type": "object", "properties": {"op": {"type": "string", "const": name}, field: schema}, "required": ["op", field]});
        let root = json!({
            "type": "object",
            "properties": {"own": {"type": "boolean"}},
            "required": ["own"],
            "oneOf": [
                variant("add", "a", json!({"type": "integer"})),
                variant("set", "a", json!({"type": "string"})),
                {"$ref": "#/$defs/Neg"}
            ],
            "$defs": {"Neg": {"type": "object", "description": "Negates.\nAll of it.", "properties": {"op": {"const": "neg"}}, "required": ["op"]}},
            "unevaluatedProperties": false
        });
        assert_eq!(
            flat_root(&root),
            Some(json!({
                "type": "object",
                "properties": {
                    "own": {"type": "boolean"},
                    "op": {"type": "string", "enum": ["add", "set", "neg"], "description": "`add` with a; `set` with a; `neg`: Negates"},
                    "a": {"anyOf": [{"type": "integer"}, {"type": "string"}]}
                },
                "required": ["own", "op"],
                "$defs": root["$defs"],
                "additionalProperties": false
            }))
        );
        assert_eq!(flat_root(&json!({"type": "object", "properties": {"a": {"oneOf": []}}})), None);
    }

    #[test]
    fn externally_tagged_variants_are_one_key() {
        let variant = |name: &str| json!({"type": "object", "properties": {name: {"type": "integer"}}, "required": [name], "additionalProperties": false});
        let root = json!({"type": "object", "oneOf": [{"type": "string", "enum": ["none"]}, variant("a"), variant("b")]});
        assert_eq!(
            flat_root(&root),
            Some(json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "additionalProperties": false,
                "minProperties": 1,
                "maxProperties": 1
            }))
        );
    }
}
