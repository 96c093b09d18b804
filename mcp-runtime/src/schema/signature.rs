//! A tool's arguments in one line, as a model would write a call.
//!
//! `dispatch` ends the report of wrong arguments with it.

use serde_json::{Map, Value};

use super::walk;

/// How many values of an `enum` and how many fields of a nested object are listed.
const LISTED: usize = 12;

/// The signature of a tool, as in `search(query: string, limit?: integer 1..=100 = 10)`.
pub(crate) fn signature(tool: &str, schema: &Value) -> String {
    let writer = Writer { root: schema };
    let arguments = schema.as_object().map(|map| writer.fields(map, 0, usize::MAX)).unwrap_or_default();
    format!("{tool}({})", arguments.join(", "))
}

struct Writer<'s> {
    root: &'s Value,
}

impl Writer<'_> {
    /// Required fields in the order of `required`, then the others.
    fn fields(&self, map: &Map<String, Value>, depth: usize, most: usize) -> Vec<String> {
        let Some(properties) = map.get("properties").and_then(Value::as_object) else { return Vec::new() };
        let required: Vec<&str> = list(map, "required").iter().filter_map(Value::as_str).collect();
        let first = required.iter().filter_map(|name| Some((*name, properties.get(*name)?, "")));
        let others = properties.iter().filter(|(name, _)| !required.contains(&name.as_str()));
        let others = others.map(|(name, schema)| (name.as_str(), schema, "?"));
        let mut fields: Vec<String> = first
            .chain(others)
            .take(most)
            .map(|(name, schema, mark)| {
                let default = schema.get("default").map(|value| format!(" = {value}")).unwrap_or_default();
                format!("{name}{mark}: {}{default}", self.kind(schema, depth + 1))
            })
            .collect();
        if properties.len() > fields.len() {
            fields.push("…".to_owned());
        }
        fields
    }

    fn kind(&self, schema: &Value, depth: usize) -> String {
        let Some(map) = schema.as_object() else { return "any".to_owned() };
        if let Some(choices) = map.get("enum").and_then(Value::as_array) {
            return union(choices.iter().map(Value::to_string));
        }
        if let Some(constant) = map.get("const") {
            return constant.to_string();
        }
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, depth);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(map, keyword);
            if !branches.is_empty() {
                return union(branches.iter().map(|branch| self.kind(branch, depth + 1)));
            }
        }
        match map.get("type") {
            Some(Value::String(name)) => self.named(name, map, depth),
            Some(Value::Array(names)) => {
                union(names.iter().filter_map(Value::as_str).map(|name| self.named(name, map, depth)))
            }
            _ if map.contains_key("properties") => self.named("object", map, depth),
            _ => "any".to_owned(),
        }
    }

    fn reference(&self, reference: &str, depth: usize) -> String {
        if let Some(name) =
            walk::pointer(reference).as_deref().and_then(|pointer| pointer.strip_prefix("/$defs/"))
        {
            return name.replace("~1", "/").replace("~0", "~");
        }
        match walk::resolve(self.root, reference) {
            Some((pointer, schema)) if !pointer.is_empty() && depth < 8 => self.kind(schema, depth + 1),
            _ => "object".to_owned(),
        }
    }

    fn named(&self, name: &str, map: &Map<String, Value>, depth: usize) -> String {
        match name {
            "object" => self.object(map, depth),
            "array" => {
                let items = map.get("items").map(|items| self.kind(items, depth + 1));
                let prefix = list(map, "prefixItems");
                let written = match items {
                    _ if !prefix.is_empty() => {
                        let parts: Vec<String> =
                            prefix.iter().map(|part| self.kind(part, depth + 1)).collect();
                        format!("[{}]", parts.join(", "))
                    }
                    Some(items) if items.contains([' ', '|']) && !items.starts_with('{') => {
                        format!("({items})[]")
                    }
                    Some(items) => format!("{items}[]"),
                    None => "any[]".to_owned(),
                };
                let bounds =
                    if prefix.is_empty() { bounds(map, "minItems", "maxItems") } else { String::new() };
                if bounds.is_empty() { written } else { format!("{written}{bounds} items") }
            }
            "string" => {
                let length = bounds(map, "minLength", "maxLength");
                let length = if length.is_empty() { length } else { format!("{length} chars") };
                let format = map.get("format").and_then(Value::as_str).map(|format| format!(" {format}"));
                let pattern =
                    map.get("pattern").and_then(Value::as_str).map(|pattern| format!(" /{pattern}/"));
                format!("string{length}{}{}", format.unwrap_or_default(), pattern.unwrap_or_default())
            }
            "integer" | "number" => {
                let multiple = map.get("multipleOf").map(|by| format!(" step {by}")).unwrap_or_default();
                format!("{name}{}{}{multiple}", bounds(map, "minimum", "maximum"), open_bounds(map))
            }
            other => other.to_owned(),
        }
    }

    fn object(&self, map: &Map<String, Value>, depth: usize) -> String {
        if map.contains_key("properties") {
            // Nested further, a model is better served by the schema than by one long line.
            if depth > 3 {
                return "object".to_owned();
            }
            return format!("{{{}}}", self.fields(map, depth, LISTED).join(", "));
        }
        match map.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("{{[key]: {}}}", self.kind(values, depth + 1)),
            _ => "object".to_owned(),
        }
    }
}

fn union(parts: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in parts {
        if words.len() == LISTED {
            words.push("…".to_owned());
            break;
        }
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" | ")
}

fn bounds(map: &Map<String, Value>, least: &str, most: &str) -> String {
    match (map.get(least), map.get(most)) {
        (None, None) => String::new(),
        (Some(least), Some(most)) if least == most => format!(" {least}"),
        (Some(least), Some(most)) => format!(" {least}..={most}"),
        (Some(least), None) => format!(" {least}.."),
        (None, Some(most)) => format!(" ..={most}"),
    }
}

fn open_bounds(map: &Map<String, Value>) -> String {
    let above = map.get("exclusiveMinimum").map(|bound| format!(" >{bound}")).unwrap_or_default();
    let below = map.get("exclusiveMaximum").map(|bound| format!(" <{bound}")).unwrap_or_default();
    above + &below
}

fn list<'s>(map: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    map.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t15_a_signature_is_one_line() {
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 200},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
                "tone": {"type": "string", "enum": ["formal", "casual"]}
            },
            "required": ["query"]
        });
        assert_eq!(
            signature("search", &schema),
            r#"search(query: string 1..=200 chars, limit?: integer 1..=100 = 10, tone?: "formal" | "casual")"#
        );
        assert_eq!(signature("ping", &json!({"type": "object"})), "ping()");
    }

    #[test]
    fn every_kind_is_written() {
        let cases = [
            (json!({"type": "array", "items": {"type": "string"}}), "string[]"),
            (
                json!({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1}),
                r#"("a" | "b")[] 1.. items"#,
            ),
            (
                json!({"type": "array", "prefixItems": [{"type": "integer"}, {}], "minItems": 2}),
                "[integer, any]",
            ),
            (json!({"type": "object", "additionalProperties": {"type": "number"}}), "{[key]: number}"),
            (json!({"type": ["integer", "null"]}), "integer | null"),
            (json!({"type": "number", "exclusiveMinimum": 0}), "number >0"),
            (json!({"type": "string", "format": "date"}), "string date"),
            (json!({"type": "string", "pattern": "^a$"}), "string /^a$/"),
            (json!({"$ref": "#/$defs/Tree"}), "Tree"),
            (json!({"$ref": "#"}), "object"),
            (json!({"const": 1}), "1"),
            (
                json!({"type": "object", "properties": {"b": {"type": "boolean"}, "a": {}}, "required": ["b"]}),
                "{b: boolean, a?: any}",
            ),
            (json!({"oneOf": [{"const": "x"}, {"type": "object"}]}), r#""x" | object"#),
        ];
        for (schema, expected) in cases {
            let root = json!({"properties": {"p": schema}, "required": ["p"], "$defs": {"Tree": {}}});
            assert_eq!(signature("t", &root), format!("t(p: {expected})"));
        }
    }
}
