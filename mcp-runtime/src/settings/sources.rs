//! Where values come from: flags, variables and a file. Nothing of a value is in a message about what cannot be read, and
//! nothing that holds values has `Debug`.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use serde_json::{Map, Number, Value};

use super::{
    descriptor::expand_path,
    duration::{is_duration, without_null},
    setting::{Setting, is_secret, is_table, variable_prefix},
};
use crate::{
    core::{secret_texts::REDACTED, text_file::read_text},
    schema::{nearest, truncate},
};

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// Flags of the command line that are not settings, and whether a value follows.
pub(super) const COMMAND_LINE: [(&str, bool); 7] = [
    ("http", false),
    ("help", false),
    ("version", false),
    ("json", false),
    ("as", true),
    ("scope", true),
    ("claim", true),
];

/// The commands of the command line, which an unknown flag does not take as its value.
const COMMANDS: [&str; 10] =
    ["stdio", "list", "call", "read", "prompt", "events", "schema", "config", "help", "install"];

/// The flags of settings among a program's arguments.
#[derive(Default)]
pub(super) struct Flags {
    /// By name, in order; a switch that is alone has no text.
    values: Vec<(String, Option<String>)>,
    /// That of `--config`.
    file: Option<OsString>,
    pub(super) problems: Vec<String>,
}

impl Flags {
    /// Takes the flags of these settings from arguments; returns the others.
    pub(super) fn take(settings: &[Setting], arguments: Vec<OsString>) -> (Self, Vec<OsString>) {
        let mut flags = Self::default();
        let mut others = Vec::new();
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            let Some((name, value)) = split_flag(&argument) else {
                // the arguments after `install` are its own options
                let is_install = cfg!(feature = "install") && argument == "install";
                let is_command = is_install && others.is_empty();
                others.push(argument);
                if is_command {
                    others.extend(arguments);
                    break;
                }
                continue;
            };
            let is_value = |next: &OsString| !next.as_encoded_bytes().starts_with(b"--");
            if let Some(setting) = settings.iter().find(|setting| setting.flag == name) {
                let is_switch = setting.is_switch();
                let value = match value {
                    None if is_switch => {
                        arguments.next_if(|next| next.to_str().and_then(read_switch).is_some())
                    }
                    None => arguments.next_if(is_value),
                    given => given,
                };
                flags.set(setting, value);
            } else if name == "config" {
                match value.or_else(|| arguments.next_if(is_value)).filter(|file| !file.is_empty()) {
                    Some(_) if flags.file.is_some() => {
                        flags.problems.push("`--config` is given twice".to_owned());
                    }
                    Some(file) => flags.file = Some(file),
                    None => {
                        flags.problems.push("`--config` needs a file: `--config settings.toml`".to_owned());
                    }
                }
            } else if let Some((_, takes_value)) = COMMAND_LINE.iter().find(|(own, _)| *own == name) {
                others.push(argument);
                if *takes_value && value.is_none() {
                    others.extend(arguments.next());
                }
            } else {
                // the next argument may be its value, which no message has
                if value.is_none() {
                    let is_command = |next: &OsString| COMMANDS.iter().any(|command| next == command);
                    let _value = arguments.next_if(|next| is_value(next) && !is_command(next));
                }
                flags.problems.push(unknown_flag(&name, settings));
            }
        }
        (flags, others)
    }

    fn set(&mut self, setting: &Setting, value: Option<OsString>) {
        let flag = &setting.flag;
        let text = match value.map(OsString::into_string) {
            Some(Ok(text)) => Some(text),
            Some(Err(_)) => return self.problems.push(format!("the value of `--{flag}` is not UTF-8")),
            None if setting.is_switch() => None,
            None => {
                return self.problems.push(format!(
                    "`--{flag}` needs a value: `--{flag} {}`; one that begins with `--` is written `--{flag}=..`",
                    placeholder(setting)
                ));
            }
        };
        if !setting.is_list() && self.values.iter().any(|(known, _)| known == flag) {
            return self.problems.push(format!("`--{flag}` is given twice"));
        }
        self.values.push((flag.clone(), text));
    }

    /// # Errors
    /// It should be JSON, and is not.
    fn value(&self, setting: &Setting) -> Option<Result<Value, String>> {
        let given = || self.values.iter().filter(|(flag, _)| *flag == setting.flag);
        given().next()?;
        if setting.is_list() {
            let texts: Vec<&str> = given().filter_map(|(_, text)| text.as_deref()).collect();
            return Some(read_list(setting, &texts));
        }
        given().next().map(|(_, text)| {
            Ok(text.as_deref().map_or(Value::Bool(true), |text| read_text_of(setting, text)))
        })
    }
}

/// The name and the value of `--name=value`.
fn split_flag(argument: &OsStr) -> Option<(String, Option<OsString>)> {
    let bytes = argument.as_encoded_bytes().strip_prefix(b"--")?;
    let end = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
    let name = std::str::from_utf8(bytes.get(..end)?).ok().filter(|name| !name.is_empty())?;
    let value = match argument.to_str() {
        Some(text) => text.split_once('=').map(|(_, value)| OsString::from(value)),
        // a value that is not UTF-8 is an error, whatever it is
        None => Some(argument.to_owned()),
    };
    Some((name.to_owned(), value.filter(|_| end < bytes.len())))
}

fn unknown_flag(name: &str, settings: &[Setting]) -> String {
    let inside = format!("{name}-");
    let of_table: Vec<String> = settings
        .iter()
        .filter(|setting| setting.path.len() > 1 && setting.flag.starts_with(&inside))
        .map(|setting| format!("`--{}`", setting.flag))
        .collect();
    if !of_table.is_empty() {
        return format!("unknown flag `--{name}`; those of the table are {}", of_table.join(", "));
    }
    let known = Setting::nearest_flag(name, settings.iter());
    let known = known.or_else(|| nearest(name, COMMAND_LINE.iter().map(|(own, _)| *own).chain(["config"])));
    let near = known.map_or(String::new(), |near| format!("; did you mean `--{near}`?"));
    format!("unknown flag `--{}`{near}", truncate(name))
}

/// The placeholder for the value of a setting in its usage.
pub(super) fn placeholder(setting: &Setting) -> String {
    setting.path.last().map(|name| name.to_uppercase().replace('-', "_")).unwrap_or_default()
}

/// `a,b` and `["a", "b"]`, each any number of times, as one list; items that are tables or lists are JSON.
///
/// # Errors
/// A text should be JSON, and is not; the message has nothing of it.
fn read_list(setting: &Setting, texts: &[&str]) -> Result<Value, String> {
    let of_items = without_null(&setting.schema).get("items");
    let is_json = of_items.is_some_and(|schema| {
        let kind = without_null(schema).get("type").and_then(Value::as_str);
        matches!(kind, Some("object" | "array")) && !is_duration(schema)
    });
    let mut items = Vec::new();
    for text in texts.iter().map(|text| text.trim()) {
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(list)) if text.starts_with('[') => items.extend(list),
            _ if text.is_empty() => {}
            Ok(item @ Value::Object(_)) if is_json => items.push(item),
            Err(error) if is_json => return Err(format!("is not JSON: {error}")),
            _ => items.extend(text.split(',').map(|item| Value::from(item.trim()))),
        }
    }
    Ok(Value::Array(items))
}

/// The value that a text is before its type is known; switches may be written as in other programs.
fn read_text_of(setting: &Setting, text: &str) -> Value {
    match read_switch(text) {
        Some(value) if setting.is_switch() => value.into(),
        _ => text.into(),
    }
}

fn read_switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

/// The environment of a program.
#[derive(Default)]
pub(super) struct Surroundings {
    pub(super) variables: HashMap<String, OsString>,
    /// The folder of the platform for the files of settings.
    pub(super) folder: Option<PathBuf>,
}

impl Surroundings {
    /// The sources of this process.
    pub(super) fn of_process() -> Self {
        use etcetera::BaseStrategy as _;
        let named = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let folder = etcetera::choose_base_strategy().ok().map(|strategy| strategy.config_dir());
        Self { variables: named.collect(), folder }
    }

    /// A variable that is set, and not to nothing. Clients that start a bundle leave the placeholder of what their user has
    /// not filled in.
    fn variable(&self, name: &str) -> Option<&OsString> {
        let is_set =
            |value: &&OsString| !value.is_empty() && !value.as_encoded_bytes().starts_with(b"${user_config.");
        self.variables.get(name).filter(is_set)
    }

    /// The variable that was probably meant for a setting which is missing.
    pub(super) fn misspelt_variable(
        &self,
        setting: &Setting,
        settings: &[Setting],
        prefix: &str,
    ) -> Option<&str> {
        let is_unknown = |name: &&str| {
            name.starts_with(prefix) && !settings.iter().any(|setting| setting.variable == **name)
        };
        nearest(&setting.variable, self.variables.keys().map(String::as_str).filter(is_unknown))
    }
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Flag,
    Variable,
    File,
    Default,
}

/// The file of settings.
#[derive(Default)]
pub(super) struct SettingsFile {
    /// Where it is, or would be.
    pub(super) path: Option<PathBuf>,
    /// Whether a flag or a variable names it.
    pub(super) is_named: bool,
    pub(super) is_read: bool,
    pub(super) members: Map<String, Value>,
    pub(super) problem: Option<String>,
}

impl SettingsFile {
    /// Reads the file that a flag or a variable names, which must exist, or else that of the platform.
    pub(super) fn read(name: &str, flags: &Flags, surroundings: &Surroundings) -> Self {
        let variable = format!("{}CONFIG", variable_prefix(name));
        let named = flags.file.as_ref().or_else(|| surroundings.variable(&variable));
        let path = match named {
            // clients start programs without a shell, which would do it
            Some(path) => path.to_str().map_or_else(
                || PathBuf::from(path),
                |path| {
                    let mut path = path.to_owned();
                    expand_path(&mut path);
                    path.into()
                },
            ),
            None => match &surroundings.folder {
                Some(folder) => folder.join(to_file_name(name)).join("config.toml"),
                None => return Self::default(),
            },
        };
        let text = match read_text(&path, MAX_FILE) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                return Self { path: Some(path), ..Self::default() };
            }
            Err(error) => {
                let problem = format!("`{}` cannot be read: {error}", path.display());
                return Self { path: Some(path), problem: Some(problem), ..Self::default() };
            }
        };
        let (members, problem) = match read_toml(&text) {
            Ok(members) => (members, None),
            Err(error) => (Map::new(), Some(format!("`{}` is not valid TOML: {error}", path.display()))),
        };
        Self { path: Some(path), is_named: named.is_some(), is_read: true, members, problem }
    }

    /// Removes and describes the keys that these schemas do not have.
    pub(super) fn take_unknown_keys(&mut self, schemas: &[&Value]) -> Vec<String> {
        let place = self.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let mut problems = Vec::new();
        take_unknown(schemas, &mut self.members, "", &mut |path, near| {
            problems.push(unknown_key(path, &place, near));
        });
        problems
    }
}

fn unknown_key(path: &str, place: &str, near: Option<&str>) -> String {
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("unknown key `{}` in `{place}`{near}", truncate(path))
}

/// Removes and describes the keys in the value of a setting that its schema does not have; `place` is where the value comes
/// from.
pub(super) fn take_unknown_keys_of(setting: &Setting, value: &mut Value, place: &str) -> Vec<String> {
    let mut problems = Vec::new();
    take_unknown_inside(&[&setting.schema], value, &setting.name(), &mut |path, near| {
        problems.push(unknown_key(path, place, near));
    });
    problems
}

/// Reports a key by its path, with the nearest one that is known.
type ReportKey<'a> = &'a mut dyn FnMut(&str, Option<&str>);

fn take_unknown(schemas: &[&Value], members: &mut Map<String, Value>, path: &str, report: ReportKey<'_>) {
    if schemas.iter().any(|schema| schema.get("additionalProperties").is_some_and(|others| *others != false))
    {
        return;
    }
    let properties = || schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
    members.retain(|name, value| {
        let known: Vec<&Value> = properties().filter_map(|properties| properties.get(name)).collect();
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if known.is_empty() {
            report(&path, nearest(name, properties().flat_map(|own| own.keys().map(String::as_str))));
        } else {
            take_unknown_inside(&known, value, &path, report);
        }
        !known.is_empty()
    });
}

/// The schemas of the items of a list, or of the members of a map; `None` if one of these is something else.
fn parts_of<'s>(schemas: &[&'s Value], keyword: &str) -> Option<Vec<&'s Value>> {
    let part = |schema: &&'s Value| {
        let is_struct = keyword != "items" && schema.get("properties").is_some();
        schema.get(keyword).filter(|part| part.is_object() && !is_struct)
    };
    schemas.iter().map(part).collect()
}

/// In the tables of a value: it is one, or a list or a map of some.
fn take_unknown_inside(schemas: &[&Value], value: &mut Value, path: &str, report: ReportKey<'_>) {
    let inside: Vec<&Value> = schemas.iter().map(|schema| without_null(schema)).collect();
    let hidden = schemas.iter().any(|schema| is_secret(schema)).then(|| format!("{path}.{REDACTED}"));
    let report: ReportKey<'_> = &mut |path, near| match &hidden {
        Some(hidden) => report(hidden, None),
        None => report(path, near),
    };
    match value {
        Value::Object(members) if schemas.iter().all(|schema| is_table(schema)) => {
            take_unknown(&inside, members, path, report);
        }
        Value::Object(members) => {
            let Some(parts) = parts_of(&inside, "additionalProperties") else { return };
            for (name, member) in members {
                take_unknown_inside(&parts, member, &format!("{path}.{name}"), report);
            }
        }
        Value::Array(items) => {
            let Some(parts) = parts_of(&inside, "items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                take_unknown_inside(&parts, item, &format!("{path}[{index}]"), report);
            }
        }
        _ => {}
    }
}

/// A server's name as that of a folder.
fn to_file_name(name: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let name: String = name.chars().map(|c| if is_kept(c) { c } else { '-' }).collect();
    name.trim_start_matches('.').to_owned()
}

/// The members of a document, as JSON.
///
/// # Errors
/// Where it is not TOML, and why, without the text that is there.
fn read_toml(text: &str) -> Result<Map<String, Value>, String> {
    // editors on Windows begin a file with it
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("{} (line {line}, column {column})", error.message())
    })?;
    Ok(table.into_iter().map(|(name, value)| (name, to_json(value))).collect())
}

fn to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => {
            Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
        }
        toml::Value::Boolean(value) => value.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(to_json).collect(),
        toml::Value::Table(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, to_json(value))).collect())
        }
    }
}

/// The value of a setting, with where it comes from; `None` if only its default is left.
///
/// # Errors
/// The reason why it is invalid.
pub(super) fn find(
    setting: &Setting,
    flags: &Flags,
    surroundings: &Surroundings,
    file: &SettingsFile,
) -> Result<Option<(Value, Source)>, String> {
    if let Some(value) = flags.value(setting) {
        let value =
            value.map_err(|problem| format!("{}: {problem} (from `--{}`)", setting.name(), setting.flag))?;
        return Ok(Some((value, Source::Flag)));
    }
    if let Some(value) = surroundings.variable(&setting.variable) {
        let Some(text) = value.to_str() else {
            return Err(format!("{}: the value of `{}` is not UTF-8", setting.name(), setting.variable));
        };
        let value = match setting.is_list() {
            true => read_list(setting, &[text])
                .map_err(|problem| format!("{}: {problem} (from `{}`)", setting.name(), setting.variable))?,
            false => read_text_of(setting, text),
        };
        return Ok(Some((value, Source::Variable)));
    }
    let mut keys = setting.path.iter();
    let first = keys.next().and_then(|key| file.members.get(key));
    let found = keys.try_fold(first, |value, key| Some(value?.get(key))).flatten();
    Ok(found.map(|value| (value.clone(), Source::File)))
}

/// Sets a value at a path; what is in the way is replaced.
pub(super) fn set(members: &mut Map<String, Value>, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        members.insert(first.clone(), value);
        return;
    }
    let inner = members.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        set(inner, rest, value);
    }
}
