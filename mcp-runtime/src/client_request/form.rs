//! The form that asks a user for a `T`: its fields in order, and the check of what comes back.
//!
//! `elicit` makes one for every question; `lower` writes it for a revision.

use std::any::type_name;

use serde_json::{Map, Value, json};

use crate::client_request::{
    Elicitable, Refusal,
    field::{Field, Kind},
    order,
};
use crate::schema::{Direction, Validator, coerce, generator, minimize};

/// The name under which a value that is no struct is asked.
const VALUE: &str = "value";

/// What fits into a form, as messages end.
const FITS: &str = "forms have strings, numbers, booleans, enums without data and lists of such enums";

/// Keywords of schemas that say nothing about values, or only something that decoding repairs.
const UNCHECKED: [&str; 2] = ["enumNames", "uniqueItems"];

/// Keywords that make an object something else than a flat list of members.
const NOT_FLAT: [&str; 5] = ["$ref", "oneOf", "anyOf", "allOf", "patternProperties"];

/// How the answer of a form becomes a `T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A struct: the content is its members.
    Members,
    /// A bare value, which is the content's member `value`.
    Value,
    /// `()`: nothing is asked but whether the user agrees.
    Unit,
}

/// The form for one type.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) fields: Vec<Field>,
    shape: Shape,
    /// What answers are checked against: everything that the type's schema says, not only what forms can show.
    schema: Value,
    validator: Validator,
}

impl Form {
    /// The form that asks for a `T`.
    ///
    /// # Errors
    /// The type has something that no form can ask for.
    pub(super) fn of<T: Elicitable>() -> Result<Self, Refusal> {
        let mut root = generator().into_root_schema_for::<T>().to_value();
        minimize(&mut root, Direction::Input);
        Self::read(root, &order::declared::<T>()).map_err(|what| {
            Refusal::Unfit(format!("no form asks for `{}`: {what}\n{FITS}", type_name::<T>()))
        })
    }

    fn read(root: Value, declared: &[&str]) -> Result<Self, String> {
        let Value::Object(mut root) = root else { return Err("it may be any value".to_owned()) };
        let shape = match root.get("type").and_then(Value::as_str) {
            Some("null") => Shape::Unit,
            Some("object") => Shape::Members,
            _ => Shape::Value,
        };
        let (properties, required) = match shape {
            Shape::Unit => (Map::new(), Vec::new()),
            Shape::Value => {
                let required = if nullable(&root) { Vec::new() } else { vec![VALUE.to_owned()] };
                root.remove("title");
                let definitions = root.remove("$defs");
                let mut whole = json!({ "properties": { VALUE: root }, "required": required });
                if let Some(definitions) = definitions {
                    whole["$defs"] = definitions;
                }
                // once more, now that what may be null may also be absent
                minimize(&mut whole, Direction::Input);
                (members(&mut whole), required)
            }
            Shape::Members => {
                flat(&root)?;
                let required = root.get("required").and_then(Value::as_array).into_iter().flatten();
                let required = required.filter_map(Value::as_str).map(str::to_owned).collect();
                (members(&mut Value::Object(root)), required)
            }
        };
        let mut fields = Vec::with_capacity(properties.len());
        for (name, property) in &properties {
            let field = Field::read(name, property, required.contains(name)).map_err(|what| match shape {
                Shape::Members => format!("its field `{name}` is {what}"),
                _ => format!("it is {what}"),
            })?;
            fields.push(field);
        }
        let place = |name: &str| {
            let by_type = declared.iter().position(|known| *known == name);
            let by_schema = required.iter().position(|known| known == name);
            (by_type.unwrap_or(usize::MAX), by_schema.unwrap_or(usize::MAX))
        };
        fields.sort_by_key(|field| place(&field.name));
        let schema = checked(properties, &required);
        let validator = Validator::compile(&schema).map_err(|error| error.to_string())?.null_is_absent();
        Ok(Self { fields, shape, schema, validator })
    }

    /// Whether an agreement without any value is an answer.
    fn may_be_empty(&self) -> bool {
        self.fields.iter().all(|field| !field.required)
    }

    /// The answer that a user's content means.
    ///
    /// # Errors
    /// What is wrong with it, by path; never what the user wrote.
    pub(super) fn decode<T: Elicitable>(&self, content: Option<Value>) -> Result<T, String> {
        let value = self.repaired(content)?;
        serde_json::from_value(value).map_err(|_| {
            // the decoder's own words would quote the user
            format!("`content` fits the form, but makes no `{}`", type_name::<T>())
        })
    }

    fn repaired(&self, content: Option<Value>) -> Result<Value, String> {
        let mut content = match content {
            Some(Value::Object(content)) => content,
            None | Some(Value::Null) if self.may_be_empty() => Map::new(),
            None | Some(Value::Null) => return Err("`content` is missing".to_owned()),
            Some(_) => return Err("`content` is not an object".to_owned()),
        };
        content.retain(|name, value| {
            let field = self.fields.iter().find(|field| field.name == *name);
            field.is_some_and(|field| field.required || !value.is_null())
        });
        let mut content = Value::Object(content);
        coerce(&self.schema, &self.schema, &mut content, true);
        let errors = self.validator.validate(&content);
        if !errors.is_empty() {
            let said = errors.iter().map(|error| format!("`{}`: expected {}", error.path, error.expected));
            return Err(said.collect::<Vec<_>>().join("; "));
        }
        Ok(match self.shape {
            Shape::Members => content,
            Shape::Value => content.get_mut(VALUE).map_or(Value::Null, Value::take),
            Shape::Unit => Value::Null,
        })
    }

    /// Whether a field asks for several values of a list.
    pub(super) fn has_several(&self) -> bool {
        self.fields.iter().any(|field| matches!(field.kind, Kind::Choices { .. }))
    }
}

/// Whether a schema that stands for itself lets `null` in.
fn nullable(schema: &Map<String, Value>) -> bool {
    let is_null = |name: &Value| name == "null";
    let among = |types: &Value| types.as_array().is_some_and(|types| types.iter().any(is_null));
    let branch = |one: &Value| one.get("type").is_some_and(is_null);
    schema.get("type").is_some_and(among)
        || schema.get("anyOf").and_then(Value::as_array).is_some_and(|list| list.iter().any(branch))
}

fn members(root: &mut Value) -> Map<String, Value> {
    match root.get_mut("properties").map(Value::take) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn flat(root: &Map<String, Value>) -> Result<(), String> {
    let open = root.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false));
    if open {
        return Err("it has members of any name".to_owned());
    }
    match NOT_FLAT.iter().find(|keyword| root.contains_key(**keyword)) {
        Some(_) => Err("its members depend on its variant, or refer to itself".to_owned()),
        None => Ok(()),
    }
}

/// The schema of answers: members that nobody asked for are ignored, so `additionalProperties` is not there.
fn checked(mut properties: Map<String, Value>, required: &[String]) -> Value {
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        property.retain(|keyword, _| !UNCHECKED.contains(&keyword.as_str()) && !keyword.starts_with("x-"));
    }
    json!({ "type": "object", "properties": properties, "required": required })
}
