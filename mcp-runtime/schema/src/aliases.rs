//! Names that `#[serde(alias = "..")]` gives to fields and variants. Schemas do not have them: clients see one name. A
//! schema of what is accepted is generated in addition, for types with aliases alone.

use schemars::{Schema, SchemaGenerator, transform::Transform};
use serde_json::{Map, Value};

use super::walk;

/// On the schema of a field: its aliases.
const FIELD: &str = "x-mcp-field-aliases";
/// On the schema of a variant: its tag, which is empty if the variant's name is the value or the key itself, and its aliases.
const VARIANT: &str = "x-mcp-variant-aliases";

/// Is in the transforms of a generator to tell types whether they list their aliases, and to be told that there are some.
#[derive(Debug, Clone, Default)]
pub(super) struct AliasMark {
    lists: bool,
    found: bool,
}

impl AliasMark {
    pub(super) fn listing() -> Self {
        Self { lists: true, found: false }
    }
}

impl Transform for AliasMark {
    fn transform(&mut self, _: &mut Schema) {}
}

/// Whether the generator of a schema of a type with aliases wants them listed.
pub fn lists_aliases(generator: &mut SchemaGenerator) -> bool {
    mark(generator).is_some_and(|mark| {
        mark.found = true;
        mark.lists
    })
}

/// Whether a schema that the generator has made is of a type with aliases.
pub fn has_aliases(generator: &mut SchemaGenerator) -> bool {
    mark(generator).is_some_and(|mark| mark.found)
}

fn mark(generator: &mut SchemaGenerator) -> Option<&mut AliasMark> {
    generator.transforms_mut().find_map(|transform| transform.downcast_mut::<AliasMark>())
}

/// Lets a schema in which aliases are listed accept them. A field with aliases is not required any more: decoding, which
/// knows that one of its names is enough, tells when it is missing.
pub fn accept_aliases(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    walk::subschemas_mut(map, &mut |_, child| accept_aliases(child));
    if let Some((tag, aliases)) = map.remove(VARIANT).as_ref().and_then(variant_aliases) {
        accept_variant(map, tag, &aliases);
    }
    let Some(Value::Object(properties)) = map.get_mut("properties") else { return };
    let mut added = Vec::new();
    for (name, property) in properties {
        let aliases = property.as_object_mut().and_then(|property| property.remove(FIELD));
        for alias in aliases.iter().flat_map(texts) {
            added.push((name.clone(), alias.to_owned(), property.clone()));
        }
    }
    for (name, alias, property) in added {
        add_property(map, &name, &alias, property);
    }
}

fn variant_aliases(value: &Value) -> Option<(&str, Vec<&str>)> {
    let mut names = texts(value);
    let tag = names.next()?;
    Some((tag, names.collect()))
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn accept_variant(variant: &mut Map<String, Value>, tag: &str, aliases: &[&str]) {
    if !tag.is_empty() {
        let tag = variant.get_mut("properties").and_then(|properties| properties.get_mut(tag));
        tag.and_then(Value::as_object_mut).into_iter().for_each(|tag| accept_values(tag, aliases));
    } else if variant.contains_key("properties") {
        // `{"variant": ..}`
        let Some(Value::Object(properties)) = variant.get("properties") else { return };
        if let Some((name, property)) =
            properties.iter().next().map(|(name, one)| (name.clone(), one.clone()))
        {
            aliases.iter().for_each(|alias| add_property(variant, &name, alias, property.clone()));
        }
    } else {
        accept_values(variant, aliases);
    }
}

/// Lets a schema of one text, or of several, accept others.
fn accept_values(schema: &mut Map<String, Value>, aliases: &[&str]) {
    let mut choices: Vec<Value> = schema.remove("const").into_iter().collect();
    if let Some(Value::Array(others)) = schema.remove("enum") {
        choices.extend(others);
    }
    choices.extend(aliases.iter().map(|alias| Value::from(*alias)));
    schema.insert("enum".into(), choices.into());
}

fn add_property(schema: &mut Map<String, Value>, name: &str, alias: &str, property: Value) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.entry(alias).or_insert(property);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|required| required != name);
        if required.is_empty() {
            schema.remove("required");
        }
    }
}
