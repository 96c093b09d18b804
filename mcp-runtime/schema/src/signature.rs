//! The signature of a tool: its arguments in one line, in the notation of a function call.

use std::{
    cell::{Cell, RefCell},
    fmt::Write as _,
};

use serde_json::{Map, Value};

use super::{MAX_PATTERN_TEXT, walk};

/// The most values of an `enum`, and the most fields of a nested object, that are listed.
const MAX_LISTED: usize = 12;
/// The most types that a signature is made of: references that are not to definitions are followed for each.
const MAX_TYPES: usize = 20_000;

/// The signature of a tool, as in `search(query: string, limit?: integer 1..=100 = 10)`.
///
/// A recursive type is written by name, and explained at the end: `grow(tree: Tree) where Tree: {children: Tree[]}`.
pub fn signature(tool: &str, schema: &Value) -> String {
    let writer = SignatureWriter { root: schema, named: RefCell::default(), left: Cell::new(MAX_TYPES) };
    let arguments = schema.as_object().map(|map| writer.arguments(map, 0)).unwrap_or_default();
    let mut signature = format!("{tool}({})", arguments.join(", "));
    // an explanation can name further types
    let mut explained = 0;
    loop {
        let next = writer.named.borrow().get(explained).cloned();
        let Some((name, definition)) = next else { return signature };
        signature.push_str(if explained == 0 { " where " } else { "; " });
        let _ = write!(signature, "{name}: {}", writer.type_of(definition, 1));
        explained += 1;
    }
}

struct SignatureWriter<'s> {
    root: &'s Value,
    /// The types that were written by name, each once, with their schemas.
    named: RefCell<Vec<(String, &'s Value)>>,
    /// How many types may still be written.
    left: Cell<usize>,
}

impl<'s> SignatureWriter<'s> {
    /// The fields of the root, then its alternatives, of which one holds.
    fn arguments(&self, map: &Map<String, Value>, depth: usize) -> Vec<String> {
        let target = map.get("$ref").and_then(Value::as_str);
        if let Some((_, Value::Object(target))) = target.and_then(|target| walk::resolve(self.root, target))
            && depth == 0
        {
            return self.arguments(target, depth + 1);
        }
        let mut arguments = self.fields(map, 0, usize::MAX);
        for keyword in ["anyOf", "oneOf"] {
            let branches = walk::array(map, keyword);
            if !branches.is_empty() {
                arguments.push(union(branches.iter().map(|branch| self.type_of(branch, 1))));
            }
        }
        for part in walk::array(map, "allOf").iter().filter_map(Value::as_object).filter(|_| depth < 8) {
            arguments.extend(self.arguments(part, depth + 1));
        }
        if arguments.is_empty()
            && let Some(values @ Value::Object(_)) = map.get("additionalProperties")
        {
            arguments.push(format!("[key]: {}", self.type_of(values, 1)));
        }
        arguments
    }

    /// Required fields in the order of `required`, then the others.
    fn fields(&self, map: &Map<String, Value>, depth: usize, max: usize) -> Vec<String> {
        let Some(properties) = map.get("properties").and_then(Value::as_object) else { return Vec::new() };
        let required: Vec<&str> = walk::array(map, "required").iter().filter_map(Value::as_str).collect();
        let first = required.iter().filter_map(|name| Some((*name, properties.get(*name)?, "")));
        let others = properties.iter().filter(|(name, _)| !required.contains(&name.as_str()));
        let others = others.map(|(name, schema)| (name.as_str(), schema, "?"));
        let mut fields: Vec<String> = first
            .chain(others)
            .take(max)
            .map(|(name, schema, mark)| {
                let default = schema.get("default").map(|value| format!(" = {value}")).unwrap_or_default();
                format!("{name}{mark}: {}{default}", self.type_of(schema, depth + 1))
            })
            .collect();
        if properties.len() > fields.len() {
            fields.push("…".to_owned());
        }
        fields
    }

    fn type_of(&self, schema: &Value, depth: usize) -> String {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        let Some(map) = schema.as_object().filter(|_| left > 0) else { return "any".to_owned() };
        let parts = walk::array(map, "allOf");
        if !parts.is_empty() {
            let mut own = map.clone();
            own.remove("allOf");
            let parts = parts.iter().map(|part| self.type_of(part, depth + 1));
            let own = self.plain_type_of(&own, depth);
            let mut all: Vec<String> = Vec::new();
            let mut is_object = false;
            for part in std::iter::once(own).chain(parts).filter(|part| part != "any") {
                if part == "object" {
                    is_object = true;
                    continue;
                }
                if !all.contains(&part) && all.len() < MAX_LISTED {
                    all.push(part);
                }
            }
            return match all.is_empty() {
                true if is_object => "object".to_owned(),
                true => "any".to_owned(),
                false => all.join(" & "),
            };
        }
        self.plain_type_of(map, depth)
    }

    /// The type of a schema without `allOf`.
    fn plain_type_of(&self, map: &Map<String, Value>, depth: usize) -> String {
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
            let branches = walk::array(map, keyword);
            if !branches.is_empty() {
                if let Some(decimal) = decimal(branches) {
                    return decimal;
                }
                let alternatives = union(branches.iter().map(|branch| self.type_of(branch, depth + 1)));
                return if map.contains_key("properties") {
                    format!("{} & ({alternatives})", self.object(map, depth))
                } else {
                    alternatives
                };
            }
        }
        match map.get("type") {
            Some(Value::String(name)) => self.named_type(name, map, depth),
            Some(Value::Array(names)) => {
                union(names.iter().filter_map(Value::as_str).map(|name| self.named_type(name, map, depth)))
            }
            _ if map.contains_key("properties") => self.named_type("object", map, depth),
            _ => "any".to_owned(),
        }
    }

    fn reference(&self, reference: &str, depth: usize) -> String {
        let target = walk::resolve(self.root, reference);
        if let Some(name) =
            walk::pointer(reference).as_deref().and_then(|pointer| pointer.strip_prefix("/$defs/"))
        {
            let name = name.replace("~1", "/").replace("~0", "~");
            let mut named = self.named.borrow_mut();
            if let Some((_, definition)) = target
                && named.len() < MAX_LISTED
                && named.iter().all(|(known, _)| *known != name)
            {
                named.push((name.clone(), definition));
            }
            return name;
        }
        match target {
            Some((pointer, schema)) if !pointer.is_empty() && depth < 8 => self.type_of(schema, depth + 1),
            _ => "object".to_owned(),
        }
    }

    fn named_type(&self, name: &str, map: &Map<String, Value>, depth: usize) -> String {
        match name {
            "object" => self.object(map, depth),
            "array" => {
                let items = map.get("items").map(|items| self.type_of(items, depth + 1));
                let prefix = walk::array(map, "prefixItems");
                let array = match items {
                    _ if !prefix.is_empty() => {
                        let parts: Vec<String> =
                            prefix.iter().map(|part| self.type_of(part, depth + 1)).collect();
                        format!("[{}]", parts.join(", "))
                    }
                    Some(items) if items.contains([' ', '|']) && !items.starts_with('{') => {
                        format!("({items})[]")
                    }
                    Some(items) => format!("{items}[]"),
                    None => "any[]".to_owned(),
                };
                let bounds = if prefix.is_empty() {
                    bounds(map.get("minItems"), map.get("maxItems"))
                } else {
                    String::new()
                };
                if bounds.is_empty() { array } else { format!("{array}{bounds} items") }
            }
            "string" => {
                let pattern = map.get("pattern").and_then(Value::as_str);
                // this maximum is not the author's
                let is_capped = |max: &Value| pattern.is_some() && *max == MAX_PATTERN_TEXT;
                let max = map.get("maxLength").filter(|max| !is_capped(max));
                let length = bounds(map.get("minLength"), max);
                let length = if length.is_empty() { length } else { format!("{length} chars") };
                let name = map.get("format").and_then(Value::as_str).unwrap_or("string");
                let pattern = pattern.map(|pattern| format!(" /{pattern}/"));
                format!("{name}{length}{}", pattern.unwrap_or_default())
            }
            "integer" | "number" => {
                let multiple = map.get("multipleOf").map(|by| format!(" step {by}")).unwrap_or_default();
                format!("{name}{}{multiple}", number_bounds(map))
            }
            other => other.to_owned(),
        }
    }

    fn object(&self, map: &Map<String, Value>, depth: usize) -> String {
        if map.contains_key("properties") {
            // for deeper nesting, the schema is more readable than one long line
            if depth > 3 {
                return "object".to_owned();
            }
            return format!("{{{}}}", self.fields(map, depth, MAX_LISTED).join(", "));
        }
        let patterns = map.get("patternProperties").and_then(Value::as_object);
        if let Some((pattern, values)) = patterns.and_then(|patterns| patterns.iter().next()) {
            let key = match pattern.as_str() {
                r"^-?\d+$" | r"^\d+$" => "integer".to_owned(),
                other => format!("/{other}/"),
            };
            return format!("{{[{key}]: {}}}", self.type_of(values, depth + 1));
        }
        match map.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("{{[key]: {}}}", self.type_of(values, depth + 1)),
            _ => "object".to_owned(),
        }
    }
}

fn union(parts: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for part in parts {
        if distinct.len() == MAX_LISTED {
            distinct.push("…".to_owned());
            break;
        }
        if !distinct.contains(&part) {
            distinct.push(part);
        }
    }
    distinct.join(" | ")
}

/// A decimal: a number, or a text of the pattern that the types of decimals have.
fn decimal(branches: &[Value]) -> Option<String> {
    const PATTERN: &str = r"^-?\d+(\.\d+)?([eE]\d+)?$";
    let has_type = |branch: &&Value, name: &str| branch["type"] == name;
    let text = branches.iter().find(|branch| has_type(branch, "string"))?;
    let number = branches.iter().find(|branch| has_type(branch, "number"))?.as_object()?;
    let has_null = branches.iter().any(|branch| has_type(&branch, "null"));
    (text["pattern"] == PATTERN && branches.len() == 2 + usize::from(has_null)).then(|| {
        let null = if has_null { " | null" } else { "" };
        format!("decimal{}{null}", number_bounds(number))
    })
}

fn number_bounds(map: &Map<String, Value>) -> String {
    bounds(map.get("minimum"), map.get("maximum")) + &exclusive_bounds(map)
}

fn bounds(min: Option<&Value>, max: Option<&Value>) -> String {
    match (min, max) {
        (None, None) => String::new(),
        (Some(min), Some(max)) if min == max => format!(" {min}"),
        (Some(min), Some(max)) => format!(" {min}..={max}"),
        (Some(min), None) => format!(" {min}.."),
        (None, Some(max)) => format!(" ..={max}"),
    }
}

fn exclusive_bounds(map: &Map<String, Value>) -> String {
    let min = map.get("exclusiveMinimum").map(|bound| format!(" >{bound}")).unwrap_or_default();
    let max = map.get("exclusiveMaximum").map(|bound| format!(" <{bound}")).unwrap_or_default();
    min + &max
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signature_is_one_line() {
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
    fn alternatives_of_the_whole_object_are_listed() {
        let variant = |name: &str, more: Value| {
            let mut schema =
                json!({"type": "object", "properties": {"op": {"const": name}}, "required": ["op"]});
            schema["properties"]
                .as_object_mut()
                .expect("an object")
                .extend(more.as_object().cloned().unwrap_or_default());
            schema
        };
        let alternatives =
            json!([variant("add", json!({"a": {"type": "integer"}})), variant("neg", json!({}))]);
        let root = json!({"type": "object", "oneOf": alternatives});
        assert_eq!(signature("t", &root), r#"t({op: "add", a?: integer} | {op: "neg"})"#);
        let root = json!({"properties": {"x": {}}, "required": ["x"], "allOf": [{"oneOf": alternatives}]});
        assert_eq!(signature("t", &root), r#"t(x: any, {op: "add", a?: integer} | {op: "neg"})"#);
        let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        assert_eq!(signature("t", &map), "t([key]: integer)");
        let nested = json!({"properties": {"p": {"type": "object", "properties": {"x": {}}, "oneOf": [{"type": "object"}]}}});
        assert_eq!(signature("t", &nested), "t(p?: {x?: any} & (object))");
    }

    #[test]
    fn every_type_has_a_notation() {
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
            (
                json!({"type": "object", "patternProperties": {"^\\d+$": {"type": "string"}}}),
                "{[integer]: string}",
            ),
            (json!({"type": "object", "patternProperties": {"^x": {}}}), "{[/^x/]: any}"),
            (json!({"type": ["integer", "null"]}), "integer | null"),
            (
                json!({"allOf": [{"properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}, {"minProperties": 1}]}),
                "{a?: any} & {b?: any}",
            ),
            (json!({"allOf": [{"type": "string"}], "description": "One"}), "string"),
            (json!({"allOf": [{"description": "Any"}]}), "any"),
            (json!({"type": "number", "exclusiveMinimum": 0}), "number >0"),
            (json!({"type": "string", "format": "date"}), "date"),
            (json!({"type": "string", "format": "uri", "maxLength": 80}), "uri ..=80 chars"),
            (json!({"type": "string", "pattern": "^a$", "maxLength": 65536}), "string /^a$/"),
            (
                json!({"anyOf": [
                    {"type": "string", "pattern": r"^-?\d+(\.\d+)?([eE]\d+)?$", "maxLength": 65536},
                    {"type": "number", "minimum": 0}
                ]}),
                "decimal 0..",
            ),
            (json!({"type": "string", "pattern": "^a$"}), "string /^a$/"),
            (json!({"$ref": "#"}), "object"),
            (json!({"const": 1}), "1"),
            (
                json!({"type": "object", "properties": {"b": {"type": "boolean"}, "a": {}}, "required": ["b"]}),
                "{b: boolean, a?: any}",
            ),
            (json!({"oneOf": [{"const": "x"}, {"type": "object"}]}), r#""x" | object"#),
        ];
        for (schema, expected) in cases {
            let root = json!({"properties": {"p": schema}, "required": ["p"]});
            assert_eq!(signature("t", &root), format!("t(p: {expected})"));
        }
    }

    #[test]
    fn a_recursive_type_is_written_by_name_and_explained_once() {
        let tree = json!({"$ref": "#/$defs/Tree"});
        let definitions = json!({
            "Tree": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": tree}, "leaf": {"$ref": "#/$defs/Leaf"}},
                "required": ["children"]
            },
            "Leaf": {"enum": ["green", "brown"]}
        });
        let root =
            json!({"properties": {"a": tree, "b": tree}, "required": ["a", "b"], "$defs": definitions});
        assert_eq!(
            signature("grow", &root),
            r#"grow(a: Tree, b: Tree) where Tree: {children: Tree[], leaf?: Leaf}; Leaf: "green" | "brown""#
        );
    }
}
