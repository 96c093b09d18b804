//! A value of a schema in which every map has a member, to find out whether a type accepts its keys.

use serde_json::{Map, Value, json};

use super::walk;

/// The key of the members of maps.
pub const SAMPLE_KEY: &str = "~key~";

/// How deep a value is made.
const MAX_DEPTH: usize = 8;

/// A value of the schema, which is a part of `root`, with a member in each map; `None` if it has no map whose keys are any
/// text.
pub fn sample_with_keys(root: &Value, schema: &Value) -> Option<Value> {
    let mut sampler = Sampler { root, has_map: false };
    let value = sampler.value(schema, 0);
    sampler.has_map.then_some(value)
}

struct Sampler<'a> {
    root: &'a Value,
    has_map: bool,
}

impl<'a> Sampler<'a> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let is_too_deep = depth > MAX_DEPTH;
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = walk::resolve(self.root, reference).filter(|_| !is_too_deep);
            return target.map_or(Value::Null, |(_, target)| self.value(target, depth + 1));
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(first) = schema.get("enum").and_then(|choices| choices.get(0)) {
            return first.clone();
        }
        for keyword in ["anyOf", "oneOf"] {
            let alternatives = schema.get(keyword).and_then(Value::as_array).filter(|_| !is_too_deep);
            let is_null = |one: &&Value| one.get("type").is_some_and(|name| name == "null");
            if let Some(one) = alternatives.and_then(|all| all.iter().find(|one| !is_null(one))) {
                return self.value(one, depth + 1);
            }
        }
        let types = match schema.get("type") {
            Some(Value::Array(names)) => names.first(),
            other => other,
        };
        match types.and_then(Value::as_str) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
            Some("boolean") => true.into(),
            Some("string") => text(schema).into(),
            _ => Value::Null,
        }
    }

    fn array(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return json!([]);
        }
        match (schema.get("prefixItems").and_then(Value::as_array), schema.get("items")) {
            (Some(items), _) => items.iter().map(|item| self.value(item, depth + 1)).collect(),
            (None, Some(item)) => Value::Array(vec![self.value(item, depth + 1)]),
            (None, None) => json!([]),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        let required = walk::array(schema.as_object().unwrap_or(&Map::new()), "required").to_vec();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_required = required.iter().any(|required| required == name);
            if depth <= MAX_DEPTH || is_required {
                let value = self.value(property, depth + 1);
                // optional members are omitted where they nest too deep
                if is_required || !value.is_null() {
                    members.insert(name.clone(), value);
                }
            }
        }
        if let Some(values @ (Value::Object(_) | Value::Bool(true))) = schema.get("additionalProperties")
            && depth <= MAX_DEPTH
        {
            self.has_map = true;
            members.insert(SAMPLE_KEY.to_owned(), self.value(values, depth + 1));
        }
        Value::Object(members)
    }
}

fn text(schema: &Value) -> &'static str {
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2026-07-28",
        Some("date-time") => "2026-07-28T12:00:00Z",
        Some("partial-date-time") => "2026-07-28T12:00:00",
        Some("time" | "partial-time") => "12:00:00",
        Some("uuid") => "67e55044-10b1-426f-9247-bb680e5fe0c8",
        Some("uri") => "https://example.com/",
        Some("ipv4") => "127.0.0.1",
        Some("ipv6") => "::1",
        Some("email") => "a@example.com",
        _ => "",
    }
}
