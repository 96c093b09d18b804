//! The single settings of a schema: each has a path in the file, a flag and a variable.

use serde_json::Value;

use super::{
    duration::{are_durations, is_duration, without_null},
    sources::COMMAND_LINE,
};
use crate::schema::{nearest, signature};

/// The format of settings that are paths.
pub(super) const PATH: &str = "path";
/// Tables deeper than this are set as JSON.
const MAX_DEPTH: usize = 8;

/// One setting: a field whose value is not a table of further settings.
#[derive(Clone)]
pub(super) struct Setting {
    /// The keys that lead to it in the file.
    pub(super) path: Vec<String>,
    /// Without `--`.
    pub(super) flag: String,
    pub(super) variable: String,
    pub(super) schema: Value,
    /// Whether its value is required.
    pub(super) is_required: bool,
    /// Whether its value, or a part of it, is not shown.
    pub(super) is_secret: bool,
}

impl Setting {
    /// The path as messages and the file have it.
    pub(super) fn name(&self) -> String {
        self.path.join(".")
    }

    pub(super) fn has_type(&self, name: &str) -> bool {
        match without_null(&self.schema).get("type") {
            Some(Value::String(own)) => own == name,
            Some(Value::Array(names)) => names.iter().any(|own| own == name),
            _ => false,
        }
    }

    /// Whether its flag may be alone.
    pub(super) fn is_switch(&self) -> bool {
        self.has_type("boolean") && !self.has_type("string")
    }

    /// Whether its flag may be repeated.
    pub(super) fn is_list(&self) -> bool {
        self.has_type("array")
    }

    /// Whether its value is a path.
    #[cfg(feature = "install")]
    pub(super) fn is_path(&self) -> bool {
        without_null(&self.schema).get("format").is_some_and(|format| format == PATH)
    }

    /// Its values in a few words, such as `integer 1..=60`.
    pub(super) fn type_in_words(&self) -> String {
        if are_durations(&self.schema) {
            return "duration such as 5s".to_owned();
        }
        let mut schema = without_null(&self.schema).clone();
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("default");
            if schema.get("format").is_some_and(|format| format == PATH) {
                return "path".to_owned();
            }
        }
        let root = serde_json::json!({ "type": "object", "properties": { "x": schema }, "required": ["x"] });
        let text = signature("", &root);
        let text = text.strip_prefix("(x: ").and_then(|text| text.strip_suffix(')')).unwrap_or_default();
        text.strip_suffix(" | null").unwrap_or(text).to_owned()
    }

    /// Whether it may have a default, which is secret.
    pub(super) fn has_hidden_default(&self) -> bool {
        self.is_secret && !self.is_required && !self.has_type("null")
    }

    pub(super) fn description(&self) -> &str {
        self.schema["description"].as_str().unwrap_or_default()
    }

    /// The flag of a list of settings that is named like this one, or nearly.
    pub(super) fn nearest_flag<'s>(name: &str, settings: impl Iterator<Item = &'s Self>) -> Option<&'s str> {
        let flags: Vec<&str> = settings.map(|setting| setting.flag.as_str()).collect();
        // `--rates_key`
        let dashed = name.replace('_', "-");
        flags.iter().copied().find(|flag| *flag == dashed).or_else(|| nearest(name, flags))
    }
}

/// The prefix of the variables of a server, such as `LEDGER_` of `ledger`.
pub(super) fn variable_prefix(name: &str) -> String {
    to_variable(name) + "_"
}

fn to_variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// All settings of a schema; `first` are the names of its properties in the order of their declaration.
pub(super) fn settings_of(schema: &Value, prefix: &str, first: &[&str]) -> Vec<Setting> {
    let mut found = Vec::new();
    collect(schema, prefix, true, &mut Vec::new(), &mut found);
    let rank = |setting: &Setting| {
        let name = setting.path.first().map(String::as_str).unwrap_or_default();
        first.iter().position(|first| *first == name).unwrap_or(first.len())
    };
    let mut ordered: Vec<(usize, Setting)> =
        found.into_iter().map(|setting| (rank(&setting), setting)).collect();
    crate::schema::sort_by(&mut ordered, |(one, _), (other, _)| one.cmp(other));
    ordered.into_iter().map(|(_, setting)| setting).collect()
}

/// Collects the settings of a table; what a table needs that need not be there is not required.
fn collect(
    schema: &Value,
    prefix: &str,
    is_required: bool,
    path: &mut Vec<String>,
    found: &mut Vec<Setting>,
) {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        let is_required = is_required && required.iter().any(|required| required == name);
        if is_table(property) && path.len() < MAX_DEPTH {
            collect(without_null(property), prefix, is_required, path, found);
        } else {
            let own = |key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
            found.push(Setting {
                path: path.clone(),
                flag: own("x-flag").unwrap_or_else(|| path.join("-").replace('_', "-")),
                variable: own("x-env").unwrap_or_else(|| format!("{prefix}{}", to_variable(&path.join("_")))),
                is_required,
                is_secret: has_secret(property),
                schema: property.clone(),
            });
        }
        path.pop();
    }
}

/// Whether a property is a struct, whose fields are settings.
pub(super) fn is_table(property: &Value) -> bool {
    let own = without_null(property);
    own.get("properties").is_some()
        && !is_duration(property)
        && !["oneOf", "anyOf", "allOf", "$ref"].iter().any(|keyword| own.get(*keyword).is_some())
        && own.get("writeOnly").is_none()
}

/// Whether a value of this schema is secret as a whole.
pub(super) fn is_secret(schema: &Value) -> bool {
    [schema, without_null(schema)].iter().any(|schema| schema.get("writeOnly") == Some(&Value::Bool(true)))
}

/// Whether a value of this schema may have something secret in it.
pub(super) fn has_secret(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.get("writeOnly") == Some(&Value::Bool(true)) || map.values().any(has_secret)
        }
        Value::Array(items) => items.iter().any(has_secret),
        _ => false,
    }
}

/// The conflicts between the settings of a program: two of one name, or a flag that the command line has.
pub(super) fn check_names(settings: &[&Setting]) -> Vec<String> {
    let mut errors = Vec::new();
    for (index, setting) in settings.iter().enumerate() {
        let (name, flag, variable) = (setting.name(), &setting.flag, &setting.variable);
        if flag == "config" || COMMAND_LINE.iter().any(|(own, _)| own == flag) {
            errors.push(format!(
                "the setting `{name}` has the flag `--{flag}`, which is an option of every server's command line\nname it differently: `#[mcp(flag = \"..\")]`"
            ));
        }
        for other in settings.iter().take(index) {
            if other.path == setting.path {
                errors.push(format!("two settings are named `{name}`\nrename one"));
            } else if other.flag == *flag {
                errors.push(format!(
                    "the settings `{}` and `{name}` have the flag `--{flag}`\nname one differently: `#[mcp(flag = \"..\")]`",
                    other.name()
                ));
            } else if other.variable == *variable {
                errors.push(format!(
                    "the settings `{}` and `{name}` have the variable `{variable}`\nname one differently: `#[mcp(env = \"..\")]`",
                    other.name()
                ));
            }
        }
    }
    errors
}
