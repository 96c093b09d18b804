//! The schema of a tool's arguments as the APIs of models take it: an object with properties, without the keywords that
//! they refuse at the top. Alternatives, references and conditions there become properties; none is lost, and the server
//! checks the arguments in any case.
//!
//! See [tool use](https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use) of Anthropic's API, and
//! [function calling](https://platform.openai.com/docs/guides/function-calling) of OpenAI's.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::model_format::legal_name;

/// The longest description that all of these APIs take, in characters.
pub(super) const MAX_DESCRIPTION: usize = 1024;
/// The largest schema that is passed on, in bytes of JSON.
pub(super) const MAX_SCHEMA: usize = 64 << 10;
/// The longest key of a property.
const MAX_KEY: usize = 64;
/// Levels of alternatives and references at the top that are followed.
const MAX_LEVELS: usize = 16;
/// Alternatives that are followed in one schema.
const MAX_BRANCHES: usize = 1000;
/// Schemas of one property that are told apart.
const MAX_FORMS: usize = 32;
/// Keywords at the top that become properties, or that the APIs refuse.
const REMOVED: [&str; 15] = [
    "$schema",
    "$id",
    "$ref",
    "$dynamicRef",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "properties",
    "required",
];

/// A schema for a model.
pub(super) struct ModelSchema {
    pub(super) schema: Value,
    /// The server's keys by those that the model gets, where they differ.
    pub(super) keys: HashMap<String, String>,
    /// Whether it is less than the tool's: that exceeds the limit.
    pub(super) is_reduced: bool,
}

/// Properties at the top, each with its possible schemas, and those that every valid object has.
#[derive(Default)]
struct TopProperties {
    properties: Map<String, Value>,
    required: Vec<String>,
}

struct Flattener<'a> {
    root: &'a Value,
    branches: usize,
}

/// The schema for a model.
pub(super) fn model_schema(schema: &Value) -> ModelSchema {
    let top = Flattener { root: schema, branches: 0 }.flatten(schema, 0);
    let mut object = top_of(schema);
    let TopProperties { mut properties, mut required } = top;
    // properties that are required and nowhere described
    for name in &required {
        if !properties.contains_key(name) {
            properties.insert(name.clone(), json!({}));
        }
    }
    let keys = rename_keys(&mut properties, &mut required);
    object.insert("type".to_owned(), json!("object"));
    object.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        object.insert("required".to_owned(), required.into());
    }
    let mut schema = Value::Object(object);
    let known = schema.clone();
    remove_broken_references(&mut schema, &known);
    let is_reduced = reduce(&mut schema);
    ModelSchema { schema, keys, is_reduced }
}

/// Arguments of a model with the keys that the server knows.
pub(super) fn with_own_keys(schema: &Value, arguments: Value) -> Value {
    let Value::Object(given) = arguments else { return arguments };
    let own = schema.get("properties").and_then(Value::as_object);
    if given.keys().all(|key| own.is_some_and(|own| own.contains_key(key))) {
        return Value::Object(given);
    }
    let keys = model_schema(schema).keys;
    let renamed = given.into_iter().map(|(key, value)| (keys.get(&key).cloned().unwrap_or(key), value));
    Value::Object(renamed.collect())
}

/// The keywords at the top that stay.
fn top_of(schema: &Value) -> Map<String, Value> {
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.retain(|key, _| !REMOVED.contains(&key.as_str()));
    // a closed object would exclude what its alternatives have
    if let Some(closed) = object.remove("unevaluatedProperties") {
        object.entry("additionalProperties").or_insert(closed);
    }
    object
}

impl Flattener<'_> {
    fn flatten(&mut self, schema: &Value, level: usize) -> TopProperties {
        let mut top = TopProperties::default();
        let Some(map) = schema.as_object().filter(|_| level < MAX_LEVELS) else { return top };
        self.branches += 1;
        if self.branches > MAX_BRANCHES {
            return top;
        }
        for (name, property) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            match property {
                // it must not be given
                Value::Bool(false) => {}
                Value::Object(_) => drop(top.properties.insert(name.clone(), property.clone())),
                _ => drop(top.properties.insert(name.clone(), json!({}))),
            }
        }
        let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
        top.require(required.filter_map(Value::as_str).map(str::to_owned));
        for reference in ["$ref", "$dynamicRef"] {
            let reference = map.get(reference).and_then(Value::as_str);
            if let Some(target) = reference.and_then(|reference| target_of(self.root, reference)) {
                let target = self.flatten(target, level + 1);
                top.both(target);
            }
        }
        for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let part = self.flatten(part, level + 1);
            top.both(part);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = map.get(keyword) {
                let branches = branches.iter().map(|branch| self.flatten(branch, level + 1)).collect();
                top.one_of(branches);
            }
        }
        let values = map.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let values: Vec<_> = values.iter().chain(map.get("const")).filter_map(Value::as_object).collect();
        if !values.is_empty() {
            top.one_of(values.into_iter().map(TopProperties::of_value).collect());
        }
        for keyword in ["if", "then", "else"] {
            if let Some(branch) = map.get(keyword) {
                let branch = self.flatten(branch, level + 1);
                top.one_of(vec![branch, TopProperties::default()]);
            }
        }
        top
    }
}

impl TopProperties {
    /// Those of one value.
    fn of_value(value: &Map<String, Value>) -> Self {
        let property = |(name, value): (&String, &Value)| (name.clone(), json!({ "enum": [value] }));
        Self { properties: value.iter().map(property).collect(), required: value.keys().cloned().collect() }
    }

    fn require(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// Both hold.
    fn both(&mut self, other: Self) {
        for (name, property) in other.properties {
            match self.properties.get_mut(&name) {
                None => drop(self.properties.insert(name, property)),
                Some(known) if *known == property || property == json!({}) => {}
                Some(known) if *known == json!({}) => *known = property,
                Some(known) => *known = json!({ "allOf": [known.take(), property] }),
            }
        }
        self.require(other.required);
    }

    /// One of these holds.
    fn one_of(&mut self, branches: Vec<Self>) {
        let mut forms: Vec<(String, Vec<Value>)> = Vec::new();
        let in_all =
            |name: &str| branches.iter().all(|branch| branch.required.iter().any(|known| known == name));
        let required: Vec<String> = match branches.first() {
            Some(first) => first.required.iter().filter(|name| in_all(name)).cloned().collect(),
            None => Vec::new(),
        };
        // a branch without the property allows anything there
        for branch in branches {
            for (name, property) in branch.properties {
                match forms.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) if known.contains(&property) || known.len() == MAX_FORMS => {}
                    Some((_, known)) => known.push(property),
                    None => forms.push((name, vec![property])),
                }
            }
        }
        for (name, forms) in forms {
            let property = merged(forms);
            let known = self.properties.entry(name).or_insert_with(|| json!({}));
            if *known == json!({}) {
                *known = property;
            }
        }
        self.require(required);
    }
}

/// A schema for values of all these forms.
fn merged(mut forms: Vec<Value>) -> Value {
    if forms.len() == 1 {
        return forms.remove(0);
    }
    // the tags of alternatives are one list
    let Some(tags) = forms.iter().map(only_values).collect::<Option<Vec<_>>>() else {
        return json!({ "anyOf": forms });
    };
    let mut all: Vec<&Value> = Vec::new();
    for tag in tags.into_iter().flatten() {
        if !all.contains(&tag) {
            all.push(tag);
        }
    }
    let mut schema = json!({ "enum": all });
    let kind = forms[0].get("type");
    if let Some(kind) = kind.filter(|_| forms.iter().all(|form| form.get("type") == kind)) {
        schema["type"] = kind.clone();
    }
    schema
}

/// The values of a form that has nothing else, and perhaps their type.
fn only_values(form: &Value) -> Option<&[Value]> {
    let mut keywords = form.as_object()?.iter().filter(|(keyword, _)| *keyword != "type");
    match (keywords.next()?, keywords.next()) {
        ((keyword, Value::Array(values)), None) if keyword == "enum" => Some(values),
        ((keyword, value), None) if keyword == "const" => Some(std::slice::from_ref(value)),
        _ => None,
    }
}

/// Renames properties whose keys the APIs do not take.
fn rename_keys(properties: &mut Map<String, Value>, required: &mut [String]) -> HashMap<String, String> {
    let is_legal = |key: &str| {
        !key.is_empty()
            && key.len() <= MAX_KEY
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    if properties.keys().all(|key| is_legal(key)) {
        return HashMap::new();
    }
    let mut keys = HashMap::new();
    let mut renamed = Map::new();
    for (key, property) in std::mem::take(properties) {
        if is_legal(&key) {
            renamed.insert(key, property);
            continue;
        }
        // always with a digest: a key that another property has already would hide it
        let name = legal_name(&key);
        required.iter_mut().filter(|known| **known == key).for_each(|known| known.clone_from(&name));
        renamed.insert(name.clone(), property);
        keys.insert(name, key);
    }
    *properties = renamed;
    keys
}

/// What a reference within a schema leads to by its path.
fn target_of<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = percent_encoding::percent_decode_str(reference.strip_prefix('#')?);
    root.pointer(&pointer.decode_utf8_lossy())
}

/// Removes references to what is not there any more, or is on another machine.
fn remove_broken_references(schema: &mut Value, root: &Value) {
    match schema {
        Value::Object(map) => {
            let is_broken = match map.get("$ref").and_then(Value::as_str) {
                // an anchor
                Some(reference)
                    if reference.starts_with('#') && !reference.starts_with("#/") && reference != "#" =>
                {
                    false
                }
                Some(reference) => target_of(root, reference).is_none(),
                None => false,
            };
            if is_broken {
                map.remove("$ref");
            }
            map.values_mut().for_each(|child| remove_broken_references(child, root));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|child| remove_broken_references(child, root));
        }
        _ => {}
    }
}

/// Reduces a schema that is too large: without what is only said, or to the names and types of its properties.
fn reduce(schema: &mut Value) -> bool {
    let size = |schema: &Value| schema.to_string().len();
    if size(schema) <= MAX_SCHEMA {
        return false;
    }
    remove_words(schema);
    if size(schema) <= MAX_SCHEMA {
        return true;
    }
    let mut plain = json!({ "type": "object", "properties": {} });
    let mut left = MAX_SCHEMA / 2;
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let property = match property.get("type") {
            Some(kind) => json!({ "type": kind }),
            None => json!({}),
        };
        let Some(rest) = left.checked_sub(name.len() + property.to_string().len() + 4) else { break };
        left = rest;
        plain["properties"][name] = property;
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<_> = required
        .filter(|name| name.as_str().is_some_and(|name| plain["properties"].get(name).is_some()))
        .cloned()
        .collect();
    if !required.is_empty() {
        plain["required"] = required.into();
    }
    *schema = plain;
    true
}

/// Removes what no value is checked by. Keys of properties are not keywords.
fn remove_words(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for keyword in ["description", "title", "examples", "default", "$comment", "deprecated"] {
        map.remove(keyword);
    }
    for (keyword, child) in map.iter_mut() {
        match (keyword.as_str(), child) {
            (
                "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                schemas.values_mut().for_each(remove_words);
            }
            ("enum" | "const", _) => {}
            (_, Value::Array(schemas)) => schemas.iter_mut().for_each(remove_words),
            (_, child) => remove_words(child),
        }
    }
}

/// A description as the APIs take it; whether it was cut is the second value.
pub(super) fn model_description(description: &str) -> (String, bool) {
    const CUT: &str = " ..";
    if description.chars().count() <= MAX_DESCRIPTION {
        return (description.to_owned(), false);
    }
    let beginning: String = description.chars().take(MAX_DESCRIPTION - CUT.len()).collect();
    (beginning + CUT, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what both APIs publish about schemas of tools.
    fn assert_accepted(schema: &Value) {
        let object = schema.as_object().expect("an object");
        for refused in ["$ref", "$schema", "anyOf", "oneOf", "allOf", "not", "enum", "const", "if"] {
            assert!(!object.contains_key(refused), "{refused} in {schema}");
        }
        assert_eq!(object["type"], "object");
        let properties = object["properties"].as_object().expect("properties");
        for key in properties.keys() {
            let is_legal = (1..=64).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
            assert!(is_legal, "{key}");
        }
        assert!(properties.values().all(Value::is_object), "{schema}");
        for name in object.get("required").and_then(Value::as_array).into_iter().flatten() {
            assert!(properties.contains_key(name.as_str().expect("text")), "{name} in {schema}");
        }
        assert!(schema.to_string().len() <= MAX_SCHEMA);
    }

    #[test]
    fn every_schema_becomes_one_that_both_apis_take_and_loses_no_property() {
        let tagged = json!([
            { "properties": { "kind": { "const": "a" }, "x": { "type": "integer" } }, "required": ["kind", "x"] },
            { "properties": { "kind": { "const": "b" }, "y": { "type": "string" } }, "required": ["kind", "y"] },
        ]);
        let of_tagged = json!({ "type": "object", "required": ["kind"], "properties": {
            "kind": { "enum": ["a", "b"] }, "x": { "type": "integer" }, "y": { "type": "string" } } });
        let empty = json!({ "type": "object", "properties": {} });
        let cases = [
            (Value::Null, empty.clone()),
            (json!(true), empty.clone()),
            (json!({ "type": "object", "not": { "required": ["a"] } }), empty.clone()),
            (json!({ "oneOf": tagged }), of_tagged.clone()),
            (json!({ "type": "object", "anyOf": tagged }), of_tagged.clone()),
            (json!({ "allOf": [{ "oneOf": tagged }] }), of_tagged.clone()),
            (json!({ "$ref": "#/$defs/T", "$defs": { "T": { "oneOf": tagged } } }), {
                let mut with_definitions = of_tagged;
                with_definitions["$defs"] = json!({ "T": { "oneOf": tagged } });
                with_definitions
            }),
            (
                json!({ "enum": [{ "mode": "a", "n": 1 }, { "mode": "b" }] }),
                json!({ "type": "object", "required": ["mode"],
                    "properties": { "mode": { "enum": ["a", "b"] }, "n": { "enum": [1] } } }),
            ),
            (
                json!({ "properties": { "a": { "type": "string" } }, "required": ["a", "b"],
                    "anyOf": [{ "properties": { "c": true } }, { "required": ["a"] }] }),
                json!({ "type": "object", "required": ["a", "b"],
                    "properties": { "a": { "type": "string" }, "b": {}, "c": {} } }),
            ),
            (
                json!({ "properties": { "a": {} }, "if": { "required": ["a"] }, "then": { "properties": { "b": {} },
                    "required": ["b"] }, "else": { "properties": { "c": {} } } }),
                json!({ "type": "object", "properties": { "a": {}, "b": {}, "c": {} } }),
            ),
            (
                json!({ "allOf": [{ "properties": { "a": { "type": "integer" } } },
                    { "properties": { "a": { "minimum": 1 } }, "required": ["a"] }] }),
                json!({ "type": "object", "required": ["a"],
                    "properties": { "a": { "allOf": [{ "type": "integer" }, { "minimum": 1 }] } } }),
            ),
            (
                json!({ "properties": { "a": { "$ref": "https://example.com/a" }, "b": { "$ref": "#/anyOf/0" } },
                    "anyOf": [{}] }),
                json!({ "type": "object", "properties": { "a": {}, "b": {} } }),
            ),
            // without an end
            (json!({ "$ref": "#" }), empty.clone()),
            (json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }), empty),
        ];
        for (schema, expected) in cases {
            let model = model_schema(&schema);
            assert_eq!(model.schema, expected, "{schema}");
            assert_accepted(&model.schema);
        }
    }

    #[test]
    fn keys_that_the_apis_refuse_have_others_and_come_back() {
        let schema = json!({ "properties": { "größe": {}, "a b": {}, "": {}, "plain": {}, "x".repeat(100): {} },
            "required": ["größe", "plain"] });
        let model = model_schema(&schema);
        assert_accepted(&model.schema);
        assert_eq!(model.schema["properties"].as_object().unwrap().len(), 5);
        let of_model: Map<_, _> = model.schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(|key| (key.clone(), json!(1)))
            .collect();
        let Value::Object(own) = with_own_keys(&schema, Value::Object(of_model)) else { unreachable!() };
        assert_eq!(
            own.keys().collect::<Vec<_>>(),
            schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>()
        );
        // a tool without a description of its arguments
        assert_eq!(with_own_keys(&Value::Null, json!({ "x y": 1 })), json!({ "x y": 1 }));
    }

    #[test]
    fn schemas_and_descriptions_above_the_limits_are_reduced() {
        let long = "x".repeat(MAX_SCHEMA);
        let described = json!({ "properties": { "description": { "type": "string", "description": long } },
            "required": ["description"] });
        let model = model_schema(&described);
        assert!(model.is_reduced);
        assert_accepted(&model.schema);
        assert_eq!(model.schema["properties"], json!({ "description": { "type": "string" } }));

        let many: Map<_, _> = (0..5000)
            .map(|n| (format!("property_{n}"), json!({ "type": "string", "pattern": "x".repeat(50) })))
            .collect();
        let model = model_schema(&json!({ "properties": many, "required": ["property_0", "property_4999"] }));
        assert!(model.is_reduced);
        assert_accepted(&model.schema);

        assert_eq!(model_description("short"), ("short".to_owned(), false));
        let (cut, is_cut) = model_description(&"é".repeat(MAX_DESCRIPTION + 1));
        assert!(is_cut && cut.chars().count() == MAX_DESCRIPTION && cut.ends_with("é .."));
        assert!(!model_description(&"é".repeat(MAX_DESCRIPTION)).1);
    }
}
