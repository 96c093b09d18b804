//! The schemas that a tool publishes: generated from its parameters and its return type, or written by hand, and
//! checked for what clients cannot use.

use serde_json::{Map, Value};

use super::ToolDescriptor;
use crate::{
    arguments::{AnyArg, has_flatten},
    item::ItemDescriptor,
    schema::{Direction, Validator, generator, generator_for_output, hoist_defs, minimize, wrap_for_legacy},
};

/// The schema of structured results.
#[derive(Debug)]
pub(crate) struct OutputSchema {
    pub(super) natural: Value,
    /// For clients of legacy revisions, which accept only objects.
    pub(super) legacy: Value,
    /// Whether structured values are wrapped for legacy clients as well.
    pub(crate) wrap: bool,
    pub(crate) validator: Validator,
}

/// The schema of a tool's arguments, and the part of it that parameter rules do not enforce.
pub(super) fn input_schema(item: &ItemDescriptor, strict: bool) -> (Value, Value) {
    let mut generator = generator();
    let mut root = Map::new();
    if let [arg] = item.args
        && arg.is_flatten()
    {
        let mut schema = arg.property_schema(&mut generator).to_value();
        hoist_defs(&mut schema, generator.take_definitions(true));
        root = match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        };
    } else if !item.args.is_empty() {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for arg in item.args {
            properties.insert(arg.name().to_owned(), arg.property_schema(&mut generator).to_value());
            if arg.required() {
                required.push(Value::from(arg.name()));
            }
        }
        root.insert("properties".into(), Value::Object(properties));
        if !required.is_empty() {
            root.insert("required".into(), Value::Array(required));
        }
    }
    root.insert("type".into(), "object".into());
    let mut root = Value::Object(root);
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        hoist_defs(&mut root, definitions);
    }
    // before `lean`, which removes schemars' `format`: it distinguishes a type's bounds from the user's
    let unenforced = without_rule_keywords(&root, item.args);
    if strict && let Some(root) = root.as_object_mut() {
        // members of alternatives are evaluated as well, and so are all members if a field is a map
        let composed = ["allOf", "anyOf", "oneOf", "$ref"].iter().any(|keyword| root.contains_key(*keyword));
        let keyword = if composed { "unevaluatedProperties" } else { "additionalProperties" };
        root.entry(keyword).or_insert(false.into());
    }
    minimize(&mut root, Direction::Input);
    for arg in item.args.iter().filter(|arg| arg.header().is_some()) {
        if let Some(property) = root.get_mut("properties").and_then(|p| p.get_mut(arg.name())) {
            add_string_type(property);
        }
    }
    (root, unenforced)
}

/// The input schema without the keywords that parameter rules enforce.
fn without_rule_keywords(schema: &Value, args: &[&'static dyn AnyArg]) -> Value {
    let mut schema = schema.clone();
    if has_flatten(args) {
        return schema;
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties.iter_mut() {
            let Some(arg) = args.iter().find(|arg| arg.name() == name) else { continue };
            let Some(property) = property.as_object_mut() else { continue };
            let keywords = arg.rule_keywords();
            property.retain(|key, _| !keywords.iter().any(|keyword| keyword == key));
        }
    }
    schema
}

/// A parameter that is the whole `arguments` object must have a type that can be an object.
pub(super) fn check_flatten(args: &[&'static dyn AnyArg]) -> Result<(), String> {
    fn may_be_object(schema: &Value) -> bool {
        let branches = || ["oneOf", "anyOf"].iter().find_map(|key| schema.get(*key)?.as_array());
        match schema.get("type") {
            Some(Value::String(name)) => name == "object",
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            _ => match branches() {
                Some(branches) => branches.iter().any(may_be_object),
                None => schema.get("enum").is_none() && schema.get("const").is_none(),
            },
        }
    }
    let Some(arg) = args.first().filter(|arg| arg.is_flatten()) else { return Ok(()) };
    let mut generator = generator();
    let mut schema = arg.property_schema(&mut generator).to_value();
    hoist_defs(&mut schema, generator.take_definitions(true));
    if may_be_object(&schema) {
        return Ok(());
    }
    Err(format!("`{}` with `flatten` is not an object\nmake it a struct, or remove `flatten`", arg.name()))
}

/// An enum that is not a string, or a type with bounds of its own, cannot be mirrored.
pub(super) fn check_header(arg: &'static dyn AnyArg, schema: &Value) -> Result<(), String> {
    let Some(header) = arg.header() else { return Ok(()) };
    let property = schema.get("properties").and_then(|properties| properties.get(arg.name()));
    match property.and_then(|p| p.get("type")).and_then(Value::as_str) {
        Some("string" | "boolean" | "integer") => Ok(()),
        _ => Err(format!(
            "`{}` cannot be mirrored into the header `{header}`\nmake it a string, a bool or an integer",
            arg.name()
        )),
    }
}

/// Adds `type` to an enum of strings: clients mirror only properties with a primitive `type`, and schemars omits it on
/// an enum with documented variants.
fn add_string_type(property: &mut Value) {
    let choices = property.get("oneOf").or(property.get("enum")).and_then(Value::as_array);
    let is_string = |choice: &Value| choice.get("const").unwrap_or(choice).is_string();
    if choices.is_some_and(|choices| choices.iter().all(is_string))
        && let Some(property) = property.as_object_mut()
    {
        property.entry("type").or_insert_with(|| "string".into());
    }
}

pub(super) fn output_schema(def: &ToolDescriptor) -> Result<Option<OutputSchema>, String> {
    let mut generator = generator_for_output();
    let schema = match (def.output_type, def.output) {
        (Some(output), _) => Some((output.schema)(&mut generator)),
        (None, Some(out)) => out.schema(&mut generator),
        (None, None) => None,
    };
    let Some(schema) = schema else { return Ok(None) };
    let mut root = schema.to_value();
    hoist_defs(&mut root, generator.take_definitions(true));
    minimize(&mut root, Direction::Output);
    OutputSchema::new(root).map(Some)
}

impl OutputSchema {
    pub(super) fn new(natural: Value) -> Result<Self, String> {
        let wrap = natural.get("type") != Some(&Value::from("object"));
        let legacy = if wrap { wrap_for_legacy(&natural) } else { natural.clone() };
        let validator = Validator::compile(&natural).map_err(|e| e.to_string())?;
        Ok(Self { natural, legacy, wrap, validator })
    }
}
