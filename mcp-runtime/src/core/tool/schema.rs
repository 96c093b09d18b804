//! The schemas that a tool publishes: generated from its parameters and its return type, or written by hand, and
//! checked for what clients cannot use.

use std::sync::Arc;

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::ToolDescriptor;
use crate::{
    core::{
        arguments::{AnyArg, ToolInput, has_flatten, schema_of},
        item::ItemDescriptor,
        visible_text::in_one_line,
    },
    schema::{
        Direction, Validator, accept_aliases, cap_patterns, check_schema, close_objects, compile_conforming,
        drop_number_formats, drop_variants, enforceable_part, generator, generator_for_output,
        generator_of_accepted, has_aliases, hoist_defs, link_patterns, may_be_object, minimize,
        minimize_typed, remove_wrong_values, subschemas, suit_clients, wrap_for_legacy,
    },
};

/// A schema of a tool made at run time. Definitions are kept as long as their server, so it is JSON text: a value takes ten
/// times as much memory.
#[derive(Debug, Clone)]
pub(super) struct HandWrittenSchema {
    json: Arc<str>,
    enforcement: Enforcement,
}

/// How much of a schema that was written by hand is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enforcement {
    /// All of it, or it is an error.
    Whole,
    /// What can be, of one that was written for another program.
    Trusted,
    /// The same, and it is published as clients take it.
    Suited,
    /// Nothing: another program does.
    Nothing,
}

impl HandWrittenSchema {
    #[allow(clippy::needless_pass_by_value, reason = "as builders get it")]
    pub(super) fn new(schema: Value, enforcement: Enforcement) -> Self {
        Self { json: schema.to_string().into(), enforcement }
    }

    /// # Errors
    /// It is nested too deeply.
    pub(super) fn value(&self) -> Result<Value, String> {
        serde_json::from_str(&self.json).map_err(|error| format!("a schema cannot be read: {error}"))
    }

    /// The schema that clients see, the one that is enforced, and its validator. What of a trusted schema is not enforced is
    /// logged for a new tool.
    ///
    /// # Errors
    /// It cannot be enforced, or clients cannot use it.
    fn check(
        mut schema: Value,
        is_trusted: bool,
        tool: &str,
        is_new: bool,
    ) -> Result<(Value, Value, Validator), String> {
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            // clients refuse a whole list for a property whose schema is not an object
            properties.values_mut().for_each(replace_boolean);
        }
        if is_trusted {
            check_schema(&schema)
                .map_err(|error| format!("{error}\nif it is of another dialect, name that in `$schema`"))?;
            let (mut enforced, passed_over) = enforceable_part(&schema);
            if is_new && !passed_over.is_empty() {
                let shown: Vec<_> = passed_over.iter().take(5).map(ToString::to_string).collect();
                let count = passed_over.len();
                tracing::info!(
                    "tool `{tool}`: {count} keywords of its schema are left to its handler: {}",
                    in_one_line(&shown.join("; "))
                );
            }
            remove_wrong_values(&mut enforced);
            cap_patterns(&mut enforced);
            // a foreign schema may name formats in another sense
            let validator = Validator::compile(&enforced).map_err(|error| error.to_string())?;
            return Ok((schema, enforced, validator.bounded()));
        }
        cap_patterns(&mut schema);
        let trusted = "\nif it was written for another program, pass it to `.trusted_input_schema(..)` or `.trusted_output_schema(..)`";
        link_patterns();
        let validator = match compile_conforming(&mut schema) {
            Ok(Some(validator)) => validator.check_formats().bounded(),
            Ok(None) => return Err(format!("{}{trusted}", unsupported(&schema))),
            Err(error) if error.is_of_schema() => return Err(format!("{error}{trusted}")),
            Err(error) => {
                check_schema(&schema)?;
                return Err(error.to_string());
            }
        };
        check_schema(&schema)?;
        Ok((schema.clone(), schema, validator))
    }

    /// The input of a tool, of which this is the schema's value.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn input(
        &self,
        mut schema: Value,
        name: &str,
        is_new: bool,
        strict: bool,
    ) -> Result<ToolInput, String> {
        if schema.get("type") != Some(&Value::from("object")) {
            return Err("an input schema has `\"type\": \"object\"` at its root".to_owned());
        }
        if self.enforcement == Enforcement::Nothing {
            return Ok(ToolInput::unchecked(name.to_owned(), schema));
        }
        // OpenAI refuses arguments without `properties`
        let has_properties = ["properties", "$ref", "anyOf", "oneOf", "allOf"];
        if let Some(schema) = schema.as_object_mut()
            && !has_properties.iter().any(|keyword| schema.contains_key(*keyword))
        {
            schema.insert("properties".to_owned(), json!({}));
        }
        let is_trusted = self.is_trusted();
        if strict && !is_trusted {
            close_objects(&mut schema);
        }
        let (mut published, mut enforced, validator) = Self::check(schema, is_trusted, name, is_new)?;
        if self.enforcement == Enforcement::Suited {
            drop_variants(&mut published);
            drop_variants(&mut enforced);
        }
        if self.enforcement != Enforcement::Trusted {
            suit_clients(&mut published);
        }
        let input = ToolInput::from_schema(name.to_owned(), enforced, validator);
        // mostly all of it is enforced
        Ok(if input.schema == published { input } else { input.published_as(published) })
    }

    /// The schema of structured results.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(super) fn output(&self, name: &str, is_new: bool) -> Result<OutputSchema, String> {
        if self.enforcement == Enforcement::Nothing {
            return Ok(OutputSchema::new(&self.value()?, None));
        }
        let (published, _, validator) = Self::check(self.value()?, self.is_trusted(), name, is_new)?;
        Ok(OutputSchema::new(&published, Some(validator)))
    }

    pub(super) fn is_trusted(&self) -> bool {
        matches!(self.enforcement, Enforcement::Trusted | Enforcement::Suited)
    }
}

/// Why a schema cannot be compiled.
fn unsupported(schema: &Value) -> String {
    Validator::compile(schema).err().map(|error| error.to_string()).unwrap_or_default()
}

fn replace_boolean(property: &mut Value) {
    match property {
        Value::Bool(true) => *property = json!({}),
        Value::Bool(false) => *property = json!({ "not": {} }),
        _ => {}
    }
}

/// The schema of structured results, as JSON.
pub(crate) struct OutputSchema {
    natural: String,
    /// For clients of legacy revisions, which accept only objects; `None` if it is the same.
    legacy: Option<String>,
    /// Whether structured values are wrapped for legacy clients as well.
    pub(crate) wrap: bool,
    /// `None` if nothing of it is enforced.
    pub(crate) validator: Option<Validator>,
}

/// The schema of a tool's arguments.
#[derive(Default)]
pub(crate) struct InputSchema {
    /// The schema that clients see.
    pub(crate) published: Value,
    /// The schema that arguments are checked against, if that accepts names which clients do not see.
    pub(crate) accepted: Option<Value>,
    /// Of the schema that arguments are checked against; `None` if it cannot be compiled.
    pub(crate) validator: Option<Validator>,
    /// Of the schema that clients see, if more is accepted.
    pub(crate) published_validator: Option<Validator>,
    /// Whether objects in arguments refuse unknown members, which decoding ignores.
    pub(crate) closes_objects: bool,
    /// The part of it that parameter rules do not enforce.
    pub(crate) unenforced: Value,
}

/// The schema of a tool's arguments.
///
/// # Errors
/// A published default or example does not conform.
pub(crate) fn input_schema(item: &ItemDescriptor, strict: bool) -> Result<InputSchema, String> {
    let mut published_generator = generator();
    let mut published = generated_input(item, &mut published_generator)?;
    let mut accepted = if has_aliases(&mut published_generator) {
        let mut accepted = generated_input(item, &mut generator_of_accepted())?;
        accept_aliases(&mut accepted);
        Some(accepted)
    } else {
        None
    };
    // before `minimize`, which removes schemars' `format`: it distinguishes a type's bounds from the user's
    let unenforced = without_rule_keywords(accepted.as_ref().unwrap_or(&published), item.args);
    let mut closes_objects = false;
    for schema in [Some(&mut published), accepted.as_mut()].into_iter().flatten() {
        closes_objects |= finish_input(schema, item, strict);
    }
    let compiled = compile_conforming(&mut published).map_err(|error| error.to_string())?;
    let compiled = compiled.map(Validator::null_is_absent);
    drop_number_formats(&mut published);
    let (validator, published_validator) = match &accepted {
        None => (compiled, None),
        Some(accepted) => {
            (Validator::compile_generated(accepted).ok().map(Validator::null_is_absent), compiled)
        }
    };
    suit_clients(&mut published);
    Ok(InputSchema { published, accepted, validator, published_validator, closes_objects, unenforced })
}

/// The schema of a tool's arguments as it is generated.
fn generated_input(item: &ItemDescriptor, generator: &mut SchemaGenerator) -> Result<Value, String> {
    let mut root = Map::new();
    if let [arg] = item.args
        && arg.is_flatten()
    {
        let mut schema = arg.property_schema(generator).to_value();
        hoist_defs(&mut schema, generator.take_definitions(true));
        root = match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        };
    } else if !item.args.is_empty() {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for arg in item.args {
            properties.insert(arg.name().to_owned(), arg.property_schema(generator).to_value());
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
    check_names(&root)?;
    for arg in item.args {
        let schema = if arg.is_flatten() { Some(&root) } else { root["properties"].get(arg.name()) };
        if let Some(error) = schema.and_then(|schema| arg.key_error(&root, schema)) {
            return Err(error);
        }
    }
    cap_patterns(&mut root);
    Ok(root)
}

/// Makes a generated schema one that clients can see. Returns whether objects in it refuse unknown members.
fn finish_input(root: &mut Value, item: &ItemDescriptor, strict: bool) -> bool {
    if strict && let Some(root) = root.as_object_mut() {
        // members of alternatives are evaluated as well, and so are all members if a field is a map
        let composed = ["allOf", "anyOf", "oneOf", "$ref"].iter().any(|keyword| root.contains_key(*keyword));
        let keyword = if composed { "unevaluatedProperties" } else { "additionalProperties" };
        root.entry(keyword).or_insert(false.into());
    }
    minimize_typed(root, Direction::Input);
    // parts that repeat a definition have become references
    let closes_objects = strict && close_objects(root);
    for arg in item.args.iter().filter(|arg| arg.options().header.is_some()) {
        if let Some(property) = root.get_mut("properties").and_then(|p| p.get_mut(arg.name())) {
            add_string_type(property);
        }
    }
    closes_objects
}

/// Two fields of one name: schemars lists the name twice, and a value for both cannot be sent.
fn check_names(schema: &Value) -> Result<(), String> {
    let Some(map) = schema.as_object() else { return Ok(()) };
    let required = map.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, name) in required.iter().enumerate() {
        if required.iter().take(index).any(|other| other == name) {
            return Err(format!("two fields of a struct are named {name}\nrename one of them"));
        }
    }
    let mut checked = Ok(());
    subschemas(map, |_, child| {
        if checked.is_ok() {
            checked = check_names(child);
        }
    });
    checked
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
    let Some(arg) = args.first().filter(|arg| arg.is_flatten()) else { return Ok(()) };
    if may_be_object(&schema_of(*arg)) {
        return Ok(());
    }
    Err(format!("`{}` with `flatten` is not an object\nmake it a struct, or remove `flatten`", arg.name()))
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

/// The schema of values that clients get, as they see it, and the validator.
///
/// # Errors
/// A published default or example does not conform, or two fields have one name.
pub(crate) fn conforming_output(
    schema: Schema,
    mut generator: SchemaGenerator,
) -> Result<(Value, Option<Validator>), String> {
    let mut root = schema.to_value();
    hoist_defs(&mut root, generator.take_definitions(true));
    check_names(&root)?;
    minimize(&mut root, Direction::Output);
    let validator = compile_conforming(&mut root).map_err(|error| error.to_string())?;
    Ok((root, validator))
}

/// The schema of what an annotated tool returns: of the type that `output = Type` names, or else of its return type, whose
/// `IntoOutput` in `core/tool/output.rs` has one if the result is structured (`Json<T>`, alone or with blocks, `Option` and
/// `Result` of these). A tool that is made at run time has what its builder's `output_schema` was given.
pub(super) fn output_schema(def: &ToolDescriptor) -> Result<Option<OutputSchema>, String> {
    let mut generator = generator_for_output();
    let schema = match (def.output_type, def.output) {
        (Some(output), _) => Some((output.schema)(&mut generator)),
        (None, Some(schema)) => schema(&mut generator),
        (None, None) => None,
    };
    let Some(schema) = schema else { return Ok(None) };
    let (root, validator) = conforming_output(schema, generator)?;
    let validator = match validator {
        Some(validator) => validator,
        None => Validator::compile_generated(&root).map_err(|error| error.to_string())?,
    };
    Ok(Some(OutputSchema::new(&root, Some(validator))))
}

impl OutputSchema {
    /// Of the schema that clients see, and the validator of what is enforced.
    fn new(schema: &Value, validator: Option<Validator>) -> Self {
        let wrap = schema.get("type") != Some(&Value::from("object"));
        let legacy = wrap.then(|| wrap_for_legacy(schema).to_string());
        // `true` accepts any value; the protocol requires an object
        let natural = if *schema == Value::Bool(true) { "{}".to_owned() } else { schema.to_string() };
        Self { natural, legacy, wrap, validator }
    }

    /// The schema that clients see.
    pub(super) fn published(&self, is_modern: bool) -> &str {
        self.legacy.as_ref().filter(|_| !is_modern).unwrap_or(&self.natural)
    }
}
