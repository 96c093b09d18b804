//! The code that `#[mcp_config]` generates: a descriptor of each field, and impls that read the struct as a part of other
//! settings.

use std::{any::TypeId, borrow::Cow, marker::PhantomData, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize as _, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _},
    ser::Error as _,
};
use serde_json::{Map, Value};

use super::{
    duration::{read_durations, without_null},
    setting::{PATH, is_table},
};
use crate::{
    core::{
        arguments::{
            AnyArg, ArgDescriptor, Call, HandlerResult, declaration_errors, decode_object, object_errors,
        },
        secret_texts::REDACTED,
        server::short_name,
    },
    schema::{generator, hoist_defs},
};

/// Settings: what `#[mcp_config]` makes of a struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no settings",
    label = "not a struct with `#[mcp_config]`",
    note = "put `#[mcp_config]` on `{Self}`; a value that the program makes itself is passed with `.state(..)`"
)]
pub trait Config: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    #[doc(hidden)]
    const DESCRIPTOR: &'static ConfigDescriptor;

    #[doc(hidden)]
    fn decode(call: &Call<'_>) -> HandlerResult<Self>;
}

/// A struct of settings, as generated code declares it.
#[derive(Debug)]
pub struct ConfigDescriptor {
    /// The name from which those of the variables and of the file derive.
    pub name: Option<&'static str>,
    /// The package that declares it.
    pub package: &'static str,
    /// The fields; those that are flattened come last.
    pub fields: &'static [SettingField],
}

/// A field of settings, as generated code declares it.
#[allow(missing_debug_implementations)] // a trait object without it
pub struct SettingField {
    /// Its name, type, default and rules.
    pub arg: &'static dyn AnyArg,
    /// The name of its flag, if it is not that of the field.
    pub flag: Option<&'static str>,
    /// The name of its variable, if it is not made of the field's.
    pub env: Option<&'static str>,
}

impl std::fmt::Debug for SettingField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.arg.name())
    }
}

/// Types that a setting can have. A message names `Leaf`, which is the `T` of a `Vec<T>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a setting",
    label = "not a type that can be read from text",
    note = "if `{Leaf}` is your type, put `#[mcp_type]` on it, or `#[mcp_config]` if it has settings of its own",
    note = "if it is another crate's, enable the feature `serde` of that crate and the feature of `schemars` for it, such as `url2`; if there is none, take a `String`"
)]
pub trait SettingType<Leaf: ?Sized>: DeserializeOwned + JsonSchema + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static, Leaf: ?Sized> SettingType<Leaf> for T {}

/// A setting.
#[must_use]
pub const fn setting<T: SettingType<Leaf>, Leaf: ?Sized>(name: &'static str) -> ArgDescriptor<T> {
    ArgDescriptor::member(name, false)
}

/// A struct whose fields are settings beside those of the struct that it is in.
#[must_use]
pub const fn flat_setting<T: SettingType<Leaf>, Leaf: ?Sized>(name: &'static str) -> ArgDescriptor<T> {
    ArgDescriptor::member(name, true)
}

/// The slot of the next field: fields under a `#[cfg]` may not be there.
pub fn next_slot(slot: &mut usize) -> usize {
    *slot += 1;
    *slot - 1
}

/// The members of settings that are serialized.
#[derive(Debug, Default)]
pub struct SettingMembers {
    members: Map<String, Value>,
    error: Option<String>,
}

impl SettingMembers {
    fn add(&mut self, name: Option<&'static str>, value: Result<Value, serde_json::Error>) {
        match (name, value) {
            (Some(name), Ok(value)) => {
                self.members.insert(name.to_owned(), value);
            }
            (None, Ok(Value::Object(members))) => self.members.extend(members),
            (None, Ok(_)) => {}
            (_, Err(error)) => self.error = Some(error.to_string()),
        }
    }

    /// Writes them.
    ///
    /// # Errors
    /// One of them cannot be written as JSON.
    pub fn write<S: Serializer>(self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.error {
            Some(error) => Err(S::Error::custom(error)),
            None => self.members.serialize(serializer),
        }
    }
}

/// Adds a field to [`SettingMembers`]: inherent functions take precedence over those of [`AnyMember`].
#[derive(Debug)]
pub struct MemberOf<T>(PhantomData<T>);

impl<T: Serialize> MemberOf<T> {
    /// Adds a member.
    pub fn add(members: &mut SettingMembers, name: &'static str, value: &T) {
        members.add(Some(name), serde_json::to_value(value));
    }

    /// Adds the members of a struct.
    pub fn add_flat(members: &mut SettingMembers, value: &T) {
        members.add(None, serde_json::to_value(value));
    }
}

/// Fields that are not serialized: their types cannot be.
pub trait AnyMember<T> {
    /// Adds nothing.
    fn add(_: &mut SettingMembers, _: &'static str, _: &T) {}

    /// Adds nothing.
    fn add_flat(_: &mut SettingMembers, _: &T) {}

    /// Adds a member that is not shown.
    fn add_secret(members: &mut SettingMembers, name: &'static str) {
        members.add(Some(name), Ok(REDACTED.into()));
    }
}

impl<T> AnyMember<T> for MemberOf<T> {}

/// A name of settings that no other type has.
#[must_use]
pub fn config_id<S: 'static>() -> Cow<'static, str> {
    Cow::Borrowed(std::any::type_name::<S>())
}

/// Reads settings that are a part of others.
///
/// # Errors
/// Everything that is missing or wrong.
pub fn deserialize_config<'de, S: Config, D: Deserializer<'de>>(deserializer: D) -> Result<S, D::Error> {
    let mut value = Value::Object(Map::deserialize(deserializer)?);
    let schema = root_schema::<S>();
    add_tables(&schema, &mut value);
    let durations = read_durations(&schema, &mut value, "");
    let mut members = match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    match decode_members(&mut members).filter(|_| durations.is_empty()) {
        Some(settings) => Ok(settings),
        None => {
            let mut problems = object_errors(&args::<S>(), &Value::Bool(true), &members, &[]);
            problems.extend(durations);
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Err(D::Error::custom(lines.join("; ")))
        }
    }
}

/// The schema of settings with everything that it refers to.
pub(super) fn root_schema<S: Config>() -> Value {
    let mut generator = generator();
    let mut schema = S::json_schema(&mut generator).to_value();
    hoist_defs(&mut schema, generator.take_definitions(true));
    schema
}

/// Adds the tables that are required and absent: each may have only defaults.
pub(super) fn add_tables(schema: &Value, value: &mut Value) {
    let Value::Object(members) = value else { return };
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !is_table(property) {
            continue;
        }
        if required.iter().any(|required| required == name) {
            members.entry(name).or_insert_with(|| Value::Object(Map::new()));
        }
        if let Some(member) = members.get_mut(name) {
            add_tables(without_null(property), member);
        }
    }
}

/// The schema of settings: an object with a property for each field, which says its flag and its variable if an option
/// names them.
///
/// The schema has errors of the declarations as `DECLARATION_ERRORS`: only schemas lead to the types of fields.
pub fn config_schema<S: Config>(generator: &mut SchemaGenerator) -> Schema {
    let name = short_name(std::any::type_name::<S>());
    let errors = declaration_errors(&args::<S>());
    let errors = errors.iter().map(|error| format!("the settings `{name}`: {error}").into()).collect();
    schema_of(S::DESCRIPTOR.fields, errors, generator)
}

/// The keyword of a schema with what is wrong with the declarations of its settings; there only if something is.
pub(super) const DECLARATION_ERRORS: &str = "x-declaration-errors";

fn schema_of(fields: &[SettingField], mut errors: Vec<Value>, generator: &mut SchemaGenerator) -> Schema {
    let mut root = Map::new();
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for SettingField { arg, flag, env } in fields {
        let mut schema = arg.property_schema(generator).to_value();
        if arg.is_flatten() {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                properties.entry(name).or_insert_with(|| property.clone());
            }
            required.extend(schema["required"].as_array().into_iter().flatten().cloned());
            errors.extend(schema[DECLARATION_ERRORS].as_array().into_iter().flatten().cloned());
            if let Some(others) = schema.get("additionalProperties") {
                root.insert("additionalProperties".to_owned(), others.clone());
            }
            continue;
        }
        // `true` is the schema of any value
        if !schema.is_object() {
            schema = Value::Object(Map::new());
        }
        if is_path(*arg) && schema.get("items").is_none() {
            schema["format"] = PATH.into();
        }
        for (key, name) in [("x-flag", flag), ("x-env", env)] {
            if let Some(name) = name {
                schema[key] = (*name).into();
            }
        }
        if arg.options().secret {
            schema["writeOnly"] = true.into();
        }
        if let Some(map) = schema.as_object_mut().filter(|map| map.contains_key("writeOnly")) {
            map.remove("default");
            map.remove("examples");
        }
        properties.insert(arg.name().to_owned(), schema);
        if arg.required() {
            required.push(arg.name().into());
        }
    }
    root.insert("type".to_owned(), "object".into());
    root.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        root.insert("required".to_owned(), required.into());
    }
    if !errors.is_empty() {
        root.insert(DECLARATION_ERRORS.to_owned(), errors.into());
    }
    root.into()
}

/// The descriptors of the fields.
pub(super) fn args<S: Config>() -> Vec<&'static dyn AnyArg> {
    S::DESCRIPTOR.fields.iter().map(|field| field.arg).collect()
}

/// Decodes settings; `None` if a member is refused.
pub(super) fn decode_members<S: Config>(members: &mut Map<String, Value>) -> Option<S> {
    expand_home(S::DESCRIPTOR.fields, members);
    decode_object(S::decode, &args::<S>(), members)
}

/// Whether the values of a setting are paths.
fn is_path(arg: &dyn AnyArg) -> bool {
    [TypeId::of::<PathBuf>(), TypeId::of::<Option<PathBuf>>(), TypeId::of::<Vec<PathBuf>>()]
        .contains(&arg.type_of())
}

/// Replaces `~` at the start of paths by the user's home directory, also of paths that are defaults.
fn expand_home(fields: &[SettingField], members: &mut Map<String, Value>) {
    for arg in fields.iter().map(|field| field.arg).filter(|arg| is_path(*arg)) {
        let name = arg.name();
        if !members.contains_key(name)
            && let Some(default) = arg.default_value().filter(|default| default.to_string().contains("\"~"))
        {
            members.insert(name.to_owned(), default);
        }
        match members.get_mut(name) {
            Some(Value::String(path)) => expand_path(path),
            Some(Value::Array(paths)) => paths.iter_mut().for_each(|path| {
                if let Value::String(path) = path {
                    expand_path(path);
                }
            }),
            _ => {}
        }
    }
}

/// Replaces a leading `~` by the home directory.
pub(super) fn expand_path(path: &mut String) {
    let Some(rest) = path.strip_prefix('~') else { return };
    if !(rest.is_empty() || rest.starts_with(['/', std::path::MAIN_SEPARATOR])) {
        return;
    }
    if let Some(home) = etcetera::home_dir().ok().and_then(|home| home.into_os_string().into_string().ok()) {
        *path = home + rest;
    }
}
