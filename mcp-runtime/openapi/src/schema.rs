//! Schemas of a description as JSON Schema 2020-12: what OpenAPI 3.0 has other words for is translated, what no reader of
//! JSON Schema knows is left out, and so is a keyword whose value is not what 2020-12 says. A reference that is used once is
//! replaced by what it leads to; the others, and with them all that contain themselves, become `$defs`.

use std::collections::{BTreeMap, HashMap, HashSet};

use mcp_runtime_schema::VARIANTS;
use serde_json::{Map, Value, json};

use crate::{
    document::Version,
    reader::{Reader, Target as Found, Trail},
};

/// Who writes the values: properties that only the other one writes are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Request,
    Response,
}

/// The value of a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Flag,
    Count,
    Number,
    /// Any list.
    List,
    /// Any value.
    Any,
    Names,
    NamesByName,
    Schema,
    Schemas,
    SchemasByName,
}

/// The keywords that are published, besides `type`; `format`, `required` and those of limits are translated.
const KEYWORDS: [(Kind, &[&str]); 12] = [
    (Kind::Text, &["$comment", "title", "description", "format", "pattern"]),
    (Kind::Text, &["contentEncoding", "contentMediaType"]),
    (Kind::Flag, &["deprecated", "uniqueItems"]),
    (
        Kind::Count,
        &[
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minContains",
            "maxContains",
        ],
    ),
    (Kind::Number, &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    (Kind::List, &["enum", "examples"]),
    (Kind::Any, &["const"]),
    (Kind::Names, &["required"]),
    (Kind::NamesByName, &["dependentRequired"]),
    (
        Kind::Schema,
        &[
            "items",
            "additionalProperties",
            "unevaluatedItems",
            "unevaluatedProperties",
            "propertyNames",
            "contains",
            "not",
            "if",
            "then",
            "else",
        ],
    ),
    (Kind::Schemas, &["allOf", "anyOf", "oneOf", "prefixItems"]),
    (Kind::SchemasByName, &["properties", "patternProperties", "dependentSchemas"]),
];

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// Formats that say how a number is stored, or that a field hides what is typed.
const FORMATS_OF_OPENAPI: [&str; 6] = ["int32", "int64", "float", "double", "password", "decimal"];
/// References in deeper schemas are not replaced.
const MAX_INLINE_DEPTH: usize = 24;
/// Schemas that are more levels deep accept every value: readers of JSON have a limit of 128, and most schemas have two levels
/// of it.
const MAX_DEPTH: usize = 50;
/// A schema of so many bytes without references replaces each reference to it.
const SMALL: usize = 160;
/// The most bytes that a schema of results refers to, of which no more than a few KiB are published.
const MAX_RESULT: usize = 256 << 10;
/// The longest default that a description repeats.
const MAX_DEFAULT: usize = 100;

/// The keyword and its kind, where its value is of that kind.
fn kind_of(keyword: &str, value: &Value) -> Option<Kind> {
    let (kind, _) = KEYWORDS.iter().find(|(_, keywords)| keywords.contains(&keyword))?;
    let is_schema = |value: &Value| value.is_object() || value.is_boolean();
    let is_names = |value: &Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
    let is_right = match kind {
        Kind::Text => value.is_string(),
        Kind::Flag => value.is_boolean(),
        Kind::Count => value.as_u64().is_some(),
        Kind::Number => value.as_f64().is_some_and(|number| keyword != "multipleOf" || number > 0.0),
        Kind::List => value.is_array(),
        Kind::Any => true,
        Kind::Names => is_names(value),
        Kind::NamesByName => value.as_object().is_some_and(|lists| lists.values().all(is_names)),
        Kind::Schema => is_schema(value),
        Kind::Schemas => value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_schema)),
        Kind::SchemasByName => value.is_object(),
    };
    is_right.then_some(*kind)
}

/// The schemas right inside of one.
fn children(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    schema.iter().flat_map(|(keyword, value)| {
        let found: Vec<&Value> = match (kind_of(keyword, value), value) {
            (Some(Kind::Schema), schema) => vec![schema],
            (Some(Kind::Schemas), Value::Array(list)) => list.iter().collect(),
            (Some(Kind::SchemasByName), Value::Object(members)) => members.values().collect(),
            _ => Vec::new(),
        };
        found
    })
}

/// A schema that others refer to.
struct Target {
    schema: Value,
    uses: usize,
    /// Its name in `$defs`.
    name: String,
    /// Whether it replaces each reference to it.
    is_small: bool,
}

/// Names, each given once: the second one that wants a name gets `_2`.
#[derive(Default)]
pub(crate) struct FreeNames {
    given: HashSet<String>,
    /// The number that was last tried for a name.
    numbers: HashMap<String, usize>,
}

impl FreeNames {
    pub(crate) fn take(&mut self, wanted: String) -> String {
        if self.given.insert(wanted.clone()) {
            return wanted;
        }
        let number = self.numbers.entry(wanted.clone()).or_insert(1);
        loop {
            *number += 1;
            let name = format!("{wanted}_{number}");
            if self.given.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Translates one schema with all that it refers to.
struct Translation<'r, 'd> {
    reader: &'r mut Reader<'d>,
    trail: Trail,
    direction: Direction,
    /// By reference: the places of the targets, which several references may lead to.
    places: BTreeMap<String, usize>,
    /// By place. Since a cycle is entered from outside of it, one target of each cycle is used more than once.
    targets: BTreeMap<usize, Target>,
    /// The names of targets.
    names: FreeNames,
    /// The places of targets that go into `$defs`.
    pending: Vec<usize>,
}

/// A schema of the description as clients see it, and whether that is all of it: of results that refer to too much it is the
/// type.
///
/// # Errors
/// A reference leads to nothing or to another document.
pub(crate) fn translate(
    reader: &mut Reader<'_>,
    direction: Direction,
    schema: &Value,
) -> Result<(Value, bool), String> {
    let (trail, places, targets) = (Trail::default(), BTreeMap::new(), BTreeMap::new());
    let (names, pending) = (FreeNames::default(), Vec::new());
    let mut translation = Translation { reader, trail, direction, places, targets, names, pending };
    let is_whole = translation.find_targets(schema)?;
    // clients need the `type` of the root
    let only_reference =
        schema.as_object().filter(|schema| schema.len() == 1).and_then(|schema| schema.get("$ref"));
    let target = only_reference.and_then(Value::as_str).and_then(|reference| translation.target(reference));
    let mut schema = target.map_or_else(|| schema.clone(), |(_, target)| target.schema.clone());
    if let (Some(schema), false) = (schema.as_object_mut(), is_whole) {
        schema.retain(|keyword, _| matches!(keyword.as_str(), "type" | "nullable"));
    }
    let mut root = translation.schema(&schema, 0, false);
    let mut defs: Map<String, Value> = Map::new();
    while let Some(place) = translation.pending.pop() {
        let Some(Target { schema, name, .. }) = translation.targets.get(&place) else { continue };
        if !defs.contains_key(name) {
            let (name, schema) = (name.clone(), schema.clone());
            defs.insert(name, translation.schema(&schema, 0, false));
        }
    }
    if let (Value::Object(root), false) = (&mut root, defs.is_empty()) {
        root.insert("$defs".to_owned(), Value::Object(defs));
    }
    Ok((root, is_whole))
}

impl Translation<'_, '_> {
    /// Finds what a schema refers to, and how often; returns whether that is all of it.
    fn find_targets(&mut self, schema: &Value) -> Result<bool, String> {
        let (mut found, mut size) = (Vec::new(), 0);
        references(schema, &mut found);
        while let Some(reference) = found.pop() {
            let Found { place, value } = self.reader.follow(&mut self.trail, &reference)?;
            let text = place.len();
            let place = place.start;
            let Some(schema) = value else {
                if let Some(target) = self.targets.get_mut(&place) {
                    target.uses += 1;
                }
                self.places.insert(reference, place);
                continue;
            };
            let before = found.len();
            references(&schema, &mut found);
            let is_small = found.len() == before && text <= SMALL;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            let name: String =
                last_step(&reference).chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
            let name = self.names.take(name);
            self.targets.insert(place, Target { schema, uses: 1, name, is_small });
            self.places.insert(reference, place);
            size += text;
            if self.direction == Direction::Response && size > MAX_RESULT {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn target(&self, reference: &str) -> Option<(usize, &Target)> {
        let place = *self.places.get(reference)?;
        Some((place, self.targets.get(&place)?))
    }

    /// `is_required` of a property: whether it has no default.
    fn schema(&mut self, schema: &Value, depth: usize, is_required: bool) -> Value {
        let Some(schema) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else {
            return schema.as_bool().map_or_else(|| json!({}), Value::Bool);
        };
        let mut translated = Map::new();
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            translated = self.referenced(reference, schema, depth, is_required);
        } else {
            self.keywords(schema, &mut translated, depth, is_required);
        }
        if self.reader.document.version == Version::V3_0 && schema.get("nullable") == Some(&Value::Bool(true))
        {
            accept_null(&mut translated);
        }
        Value::Object(translated)
    }

    fn referenced(
        &mut self,
        reference: &str,
        schema: &Map<String, Value>,
        depth: usize,
        is_required: bool,
    ) -> Map<String, Value> {
        let mut beside = Map::new();
        if self.reader.document.version == Version::V3_1 {
            self.keywords(schema, &mut beside, depth, is_required);
        } else if let Some(text @ Value::String(_)) = schema.get("description") {
            // 3.0 ignores what is beside a reference, which explains nothing
            beside.insert("description".to_owned(), text.clone());
        }
        let Some((place, target)) = self.target(reference) else { return beside };
        if depth < MAX_INLINE_DEPTH && (target.uses == 1 || target.is_small) {
            let inner = target.schema.clone();
            let inner = self.schema(&inner, depth + 1, is_required);
            match inner {
                Value::Object(mut inner) if beside.keys().all(is_annotation) => {
                    inner.extend(beside);
                    return inner;
                }
                inner => add_part(&mut beside, inner),
            }
            return beside;
        }
        beside.insert("$ref".to_owned(), format!("#/$defs/{}", target.name).into());
        self.pending.push(place);
        beside
    }

    /// Translates all keywords but `$ref` and `nullable`.
    fn keywords(
        &mut self,
        schema: &Map<String, Value>,
        into: &mut Map<String, Value>,
        depth: usize,
        is_required: bool,
    ) {
        let hidden = self.hidden_properties(schema);
        let required: HashSet<&str> = names(schema.get("required")).collect();
        let mut alternatives = None;
        for (keyword, value) in schema {
            let is_for_requests = matches!(keyword.as_str(), "title" | "examples" | "$comment");
            if is_for_requests && self.direction == Direction::Response {
                continue;
            }
            let Some(kind) = kind_of(keyword, value) else { continue };
            let translated = match (kind, value) {
                (Kind::Schema, schema) => self.schema(schema, depth + 1, false),
                (Kind::Schemas, Value::Array(list)) => {
                    list.iter().map(|schema| self.schema(schema, depth + 1, false)).collect()
                }
                (Kind::SchemasByName, Value::Object(members)) => {
                    let shown = members
                        .iter()
                        .filter(|(name, _)| keyword != "properties" || !hidden.contains(name.as_str()));
                    let pairs = shown.map(|(name, schema)| {
                        (name.clone(), self.schema(schema, depth + 1, required.contains(name.as_str())))
                    });
                    Value::Object(pairs.collect())
                }
                (Kind::Names, Value::Array(names)) => {
                    let mut known = HashSet::new();
                    let is_shown = |name: &&Value| name.as_str().is_some_and(|name| !hidden.contains(name));
                    let shown = names.iter().filter(is_shown).filter(|name| known.insert(name.as_str()));
                    let kept: Vec<Value> = shown.cloned().collect();
                    if kept.is_empty() {
                        continue;
                    }
                    Value::Array(kept)
                }
                (_, value) => value.clone(),
            };
            // a value of several alternatives is refused by `oneOf`, and no model can mend that
            if keyword == "oneOf" && !have_distinct_types(&translated) {
                alternatives = Some(translated);
            } else {
                into.insert(keyword.clone(), translated);
            }
        }
        if self.direction == Direction::Request {
            into.extend(variants(schema).map(|variants| (VARIANTS.to_owned(), variants)));
        }
        match alternatives {
            Some(list) if into.contains_key("anyOf") => add_part(into, json!({ "anyOf": list })),
            list => into.extend(list.map(|list| ("anyOf".to_owned(), list))),
        }
        if let Some(types) = schema.get("type").and_then(types) {
            into.insert("type".to_owned(), types);
        }
        self.translate_words(schema, into, is_required);
    }

    /// The words of OpenAPI, and of 3.0, for what 2020-12 says otherwise.
    fn translate_words(&self, schema: &Map<String, Value>, into: &mut Map<String, Value>, is_required: bool) {
        for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            if schema.get(exclusive) == Some(&Value::Bool(true))
                && let Some(number) = into.remove(limit)
            {
                into.insert(exclusive.to_owned(), number);
            }
        }
        match into.get("format").and_then(Value::as_str) {
            Some("byte" | "binary" | "base64") => {
                into.remove("format");
                into.entry("contentEncoding").or_insert_with(|| "base64".into());
            }
            Some(format) if FORMATS_OF_OPENAPI.contains(&format) => {
                into.remove("format");
            }
            _ => {}
        }
        if self.direction == Direction::Response {
            return;
        }
        if let Some(example) = schema.get("example") {
            into.entry("examples").or_insert_with(|| json!([example]));
        }
        // not as `default`: the runtime would fill it in, and a change of one member would reset the others
        let default = schema.get("default").filter(|default| !default.is_null() && !is_required);
        if let Some(default) = default.map(Value::to_string).filter(|default| default.len() <= MAX_DEFAULT) {
            add_sentence(into, &format!("Default: {default}"));
        }
    }

    /// The properties that only the other side writes.
    fn hidden_properties<'s>(&self, schema: &'s Map<String, Value>) -> HashSet<&'s str> {
        let keyword = match self.direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        let is_hidden = |schema: &Value| {
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|name| self.target(name));
            let keywords = [Some(schema), target.map(|(_, target)| &target.schema)];
            keywords.into_iter().flatten().any(|schema| schema.get(keyword) == Some(&Value::Bool(true)))
        };
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties.filter(|(_, schema)| is_hidden(schema)).map(|(name, _)| name.as_str()).collect()
    }
}

/// A `discriminator` as the runtime reads it: a name of `mapping`, or of a schema, and the place of its alternative. One that
/// leads to none of them is left out.
fn variants(schema: &Map<String, Value>) -> Option<Value> {
    let discriminator = schema.get("discriminator")?;
    let lists = (schema.get("oneOf"), schema.get("anyOf"));
    let ((Some(Value::Array(list)), None) | (None, Some(Value::Array(list)))) = lists else { return None };
    let references = list.iter().enumerate();
    let references: Vec<(usize, &str)> =
        references.filter_map(|(place, schema)| Some((place, schema.get("$ref")?.as_str()?))).collect();
    let named: HashMap<&str, usize> = references
        .iter()
        .flat_map(|(place, reference)| [(*reference, *place), (last_step(reference), *place)])
        .collect();
    let mapping = discriminator.get("mapping").and_then(Value::as_object).into_iter().flatten();
    let mapping = mapping.filter_map(|(name, target)| Some((name.clone(), *named.get(target.as_str()?)?)));
    let mapping: Vec<(String, usize)> = mapping.collect();
    let mapped: HashSet<usize> = mapping.iter().map(|(_, place)| *place).collect();
    // others have the names of their schemas
    let unmapped = references.iter().filter(|(place, _)| !mapped.contains(place));
    let mut places: Map<String, Value> =
        unmapped.map(|(place, reference)| (last_step(reference).to_owned(), (*place).into())).collect();
    places.extend(mapping.into_iter().map(|(name, place)| (name, place.into())));
    let property = discriminator.get("propertyName")?.as_str()?;
    (!places.is_empty()).then(|| json!({ "property": property, "places": places }))
}

/// The last name of a reference.
fn last_step(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or_default()
}

/// The names in a list.
pub(crate) fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Adds a schema that values conform to as well.
fn add_part(schema: &mut Map<String, Value>, part: Value) {
    if let Some(all) = schema.entry("allOf").or_insert_with(|| json!([])).as_array_mut() {
        all.push(part);
    }
}

/// Adds a sentence to the description of a schema.
pub(crate) fn add_sentence(schema: &mut Map<String, Value>, sentence: &str) {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default().trim_end();
    let separator = match description.chars().last() {
        None => "",
        Some('.' | '!' | '?') => " ",
        Some(_) => ". ",
    };
    let text = format!("{description}{separator}{sentence}");
    schema.insert("description".to_owned(), text.into());
}

/// Whether no value is of more than one of these schemas, as far as types tell.
fn have_distinct_types(schemas: &Value) -> bool {
    let mut known = HashSet::new();
    let types = schemas.as_array().into_iter().flatten().map(|schema| schema.get("type")?.as_str());
    let mut types = types.map(|name| name.map(|name| if name == "integer" { "number" } else { name }));
    types.all(|name| name.is_some_and(|name| known.insert(name)))
}

/// The references in a schema.
fn references(schema: &Value, found: &mut Vec<String>) {
    let Value::Object(schema) = schema else { return };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        found.push(reference.to_owned());
    }
    children(schema).for_each(|child| references(child, found));
}

/// The value of `type`, if it names types.
fn types(value: &Value) -> Option<Value> {
    match value {
        Value::String(name) if TYPES.contains(&name.as_str()) => Some(value.clone()),
        Value::Array(names) => {
            let mut known: Vec<&Value> = Vec::new();
            for name in names {
                if name.as_str().is_some_and(|name| TYPES.contains(&name)) && !known.contains(&name) {
                    known.push(name);
                }
            }
            (!known.is_empty()).then(|| json!(known))
        }
        _ => None,
    }
}

/// `nullable` of 3.0.
fn accept_null(schema: &mut Map<String, Value>) {
    if let Some(name @ Value::String(_)) = schema.get("type") {
        let types = json!([name, "null"]);
        schema.insert("type".to_owned(), types);
        if let Some(Value::Array(choices)) = schema.get_mut("enum")
            && !choices.contains(&Value::Null)
        {
            choices.push(Value::Null);
        }
    } else if !schema.keys().all(is_annotation) && !schema.contains_key("type") {
        let description = schema.remove("description");
        let inner = Value::Object(std::mem::take(schema));
        schema.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
        schema.extend(description.map(|text| ("description".to_owned(), text)));
    }
}

/// Whether a keyword accepts every value.
#[allow(clippy::ptr_arg, reason = "as the keys of maps")]
fn is_annotation(keyword: &String) -> bool {
    matches!(keyword.as_str(), "title" | "description" | "deprecated" | "examples" | "$comment")
}
