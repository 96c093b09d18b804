//! Reads settings of all sources, and says what is missing or wrong: all of it, each with its source or how to set it, and
//! nothing of a value that is secret.

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{
    Config,
    descriptor::{DECLARATION_ERRORS, add_tables, args, decode_members, root_schema},
    duration::{read_durations, show_durations, show_schema, without_null},
    setting::{Setting, check_names, has_secret, is_secret, is_table, settings_of, variable_prefix},
    sources::{Flags, SettingsFile, Source, Surroundings, find, placeholder, set, take_unknown_keys_of},
};
use crate::{
    core::{
        arguments::{Problem, ProblemKind, is_within, object_errors},
        extensions::Extensions,
        secret_texts::{REDACTED, SecretTexts},
        server::short_name,
    },
    schema::{Direction, ValidationError, Validator, minimize},
};

/// A value of a type that is not known here.
pub(super) type AnyValue = Box<dyn Any + Send + Sync>;
/// The value of valid members.
type DecodeFn = fn(&mut Map<String, Value>) -> Option<AnyValue>;
/// The errors of refused members of a schema, besides violations of the schema.
type ErrorsFn = fn(&Value, &Map<String, Value>, &[ValidationError]) -> Vec<Problem>;

/// A struct of settings without its type.
pub(super) struct ConfigType {
    pub(super) type_name: &'static str,
    pub(super) name: Option<&'static str>,
    /// The names of its fields.
    fields: Vec<&'static str>,
    schema: fn() -> Value,
    decode: DecodeFn,
    errors: ErrorsFn,
    /// Makes a value state of the server.
    pub(super) insert: fn(AnyValue, &mut Extensions),
    /// Its key in state.
    pub(super) key: TypeId,
    /// Whether the program has such a value already.
    pub(super) is_given: fn(&Extensions) -> bool,
}

impl ConfigType {
    pub(super) fn of<S: Config>() -> Self {
        Self {
            type_name: std::any::type_name::<S>(),
            name: S::DESCRIPTOR.name,
            fields: S::DESCRIPTOR.fields.iter().map(|field| field.arg.name()).collect(),
            schema: root_schema::<S>,
            decode: |members| Some(Box::new(decode_members::<S>(members)?)),
            errors: |schema, members, violations| object_errors(&args::<S>(), schema, members, violations),
            insert: |value, state| {
                if let Ok(value) = value.downcast::<S>() {
                    state.insert(*value);
                }
            },
            key: Extensions::keys_like::<S>()[0],
            is_given: Extensions::provides_like::<S>,
        }
    }

    /// The name of its type without its path.
    pub(super) fn short_name(&self) -> &'static str {
        short_name(self.type_name)
    }
}

/// A struct of settings with what its schema says.
pub(super) struct ConfigSchema<'c> {
    config: &'c ConfigType,
    schema: Value,
    pub(super) settings: Vec<Setting>,
}

impl<'c> ConfigSchema<'c> {
    /// The reader for a server of that name.
    pub(super) fn new(config: &'c ConfigType, server: &str) -> Self {
        let schema = (config.schema)();
        let prefix = variable_prefix(config.name.unwrap_or(server));
        let settings = settings_of(&schema, &prefix, &config.fields);
        Self { config, schema, settings }
    }
}

/// The errors in the declarations of settings.
pub(super) fn check_declarations(schemas: &[ConfigSchema<'_>]) -> Vec<String> {
    let mut errors = Vec::new();
    for ConfigSchema { config, schema, .. } in schemas {
        let name = config.short_name();
        collect_declaration_errors(schema, &mut errors);
        if let Err(error) = Validator::compile(schema) {
            errors.push(format!("the settings `{name}`: {error}"));
        }
    }
    let all: Vec<&Setting> = schemas.iter().flat_map(|schema| &schema.settings).collect();
    errors.extend(check_names(&all));
    errors
}

/// Collects what is wrong with the declarations of settings in a schema, each once: also with those in tables and lists.
fn collect_declaration_errors(schema: &Value, errors: &mut Vec<String>) {
    let parts: Vec<&Value> = match schema {
        Value::Object(members) => members.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => return,
    };
    for error in schema.get(DECLARATION_ERRORS).and_then(Value::as_array).into_iter().flatten() {
        let error = error.as_str().unwrap_or_default();
        if !errors.iter().any(|known| known == error) {
            errors.push(error.to_owned());
        }
    }
    parts.into_iter().for_each(|part| collect_declaration_errors(part, errors));
}

/// A setting with what was read. Without `Debug`, like everything that holds values: some are secret.
pub(super) struct ReadSetting {
    pub(super) setting: Setting,
    pub(super) value: Option<Value>,
    pub(super) source: Source,
    /// The value of a flag or a variable; never a secret.
    pub(super) given: Option<Value>,
}

/// The settings of a struct, as their sources have them.
struct Gathered {
    members: Map<String, Value>,
    problems: Vec<String>,
    /// The names of those whose sources cannot be read.
    unread: Vec<String>,
}

/// The value of a struct of settings, or the problems with its own settings. There may be none: others can have problems too.
pub(super) type ReadConfig = Result<AnyValue, Vec<String>>;

/// The settings of a server, as they were read.
pub(crate) struct ReadSettings {
    server: String,
    pub(super) prefix: String,
    pub(super) file: SettingsFile,
    pub(super) settings: Vec<ReadSetting>,
    schema: Value,
    secrets: SecretTexts,
    /// The errors of flags and file as a whole.
    common: Vec<String>,
    has_wrong_flags: bool,
    /// The values that are invalid, and not only missing.
    pub(super) wrong: Vec<String>,
    pub(super) problems: Option<Arc<str>>,
    /// Whether functions of `configure` were called, or would have been.
    pub(super) is_configured: bool,
    /// Whether one of them was not called, since its settings are missing or wrong.
    pub(super) is_incomplete: bool,
}

impl ReadSettings {
    /// Reads all settings: those of `schemas` for which `is_read` is true.
    pub(super) fn new(
        server: &str,
        schemas: &[ConfigSchema<'_>],
        is_read: impl Fn(&ConfigType) -> bool,
        flags: &Flags,
        surroundings: &Surroundings,
    ) -> (Self, Vec<ReadConfig>) {
        let name = schemas.iter().find_map(|schema| schema.config.name).unwrap_or(server);
        let mut file = SettingsFile::read(name, flags, surroundings);
        let roots: Vec<&Value> = schemas.iter().map(|schema| &schema.schema).collect();
        let mut common = flags.problems.clone();
        common.extend(file.problem.clone());
        common.extend(file.take_unknown_keys(&roots));
        let mut reading = Self {
            server: server.to_owned(),
            prefix: variable_prefix(name),
            file,
            settings: Vec::new(),
            schema: joined_schema(schemas),
            secrets: SecretTexts::new(),
            common,
            has_wrong_flags: !flags.problems.is_empty(),
            wrong: Vec::new(),
            problems: None,
            is_configured: false,
            is_incomplete: false,
        };
        let mut configs = Vec::new();
        for schema in schemas {
            let read = is_read(schema.config).then(|| reading.read(schema, flags, surroundings));
            configs.push(read.unwrap_or_else(|| Err(Vec::new())));
        }
        reading.common = reading.common.iter().map(|line| reading.without_secrets(line)).collect();
        reading.secrets.remember();
        (reading, configs)
    }

    /// Reads the settings of one struct: gathers them, checks them as they are used, and explains what is wrong.
    fn read(&mut self, config: &ConfigSchema<'_>, flags: &Flags, surroundings: &Surroundings) -> ReadConfig {
        let first = self.settings.len();
        let Gathered { members, mut problems, unread } = self.gather(config, flags, surroundings);
        let ConfigSchema { config, schema, .. } = config;
        let mut value = Value::Object(members);
        add_tables(schema, &mut value);
        let durations = read_durations(schema, &mut value, "");
        let validator = Validator::compile(schema).ok().map(Validator::null_is_absent);
        if let Some(validator) = &validator {
            validator.repair(&mut value, false);
        }
        problems.extend(self.take_unknown_keys(first, &mut value));
        self.keep_values(first, &value, &durations);
        let Value::Object(mut members) = value else { return Err(problems) };
        let object = Value::Object(members.clone());
        let violations = validator.map(|validator| validator.validate(&object)).unwrap_or_default();
        if problems.is_empty()
            && violations.is_empty()
            && durations.is_empty()
            && let Some(value) = (config.decode)(&mut members)
        {
            return Ok(value);
        }
        let mut found = durations;
        found.extend(violations.iter().map(Problem::from));
        found.extend((config.errors)(schema, &members, &violations));
        // of a value that cannot be read that is said already
        found.retain(|problem| !unread.contains(&problem.path));
        problems.extend(self.explain_all(&found, &problems, first, surroundings));
        if problems.is_empty() {
            problems.push(format!("`{}` refuses these settings", config.short_name()));
        }
        Err(problems)
    }

    /// Looks for each setting in its sources, the file included, and notes those that are secret.
    fn gather(&mut self, config: &ConfigSchema<'_>, flags: &Flags, surroundings: &Surroundings) -> Gathered {
        let ConfigSchema { schema, settings, .. } = config;
        let is_open = schema.get("additionalProperties").is_some();
        let mut members = self.file.members.clone();
        members.retain(|name, _| is_open || schema["properties"].get(name).is_some());
        let (mut problems, mut unread) = (Vec::new(), Vec::new());
        for setting in settings {
            let (value, source) = match find(setting, flags, surroundings, &self.file) {
                Ok(Some((value, source))) => (Some(value), source),
                Ok(None) => (None, Source::Default),
                Err(problem) => {
                    problems.push(problem);
                    unread.push(setting.name());
                    (None, Source::Variable)
                }
            };
            if let (Some(value), Source::Flag | Source::Variable) = (&value, source) {
                set(&mut members, &setting.path, value.clone());
            }
            if let Some(value) = value.as_ref().filter(|_| setting.is_secret) {
                self.secrets.add(value);
                add_secret_keys(&mut self.secrets, &setting.schema, value, false);
            }
            let given = value
                .clone()
                .filter(|_| !setting.is_secret && matches!(source, Source::Flag | Source::Variable));
            self.settings.push(ReadSetting { setting: setting.clone(), value, source, given });
        }
        Gathered { members, problems, unread }
    }

    /// Takes the unknown keys of flags and variables out of a value, with a line about each; those of the file are checked when
    /// it is read.
    fn take_unknown_keys(&self, first: usize, value: &mut Value) -> Vec<String> {
        let mut lines = Vec::new();
        for ReadSetting { setting, source, .. } in self.settings.get(first..).unwrap_or_default() {
            let place = match source {
                Source::Flag => format!("--{}", setting.flag),
                Source::Variable => setting.variable.clone(),
                Source::File | Source::Default => continue,
            };
            let found = setting.path.iter().try_fold(&mut *value, |value, key| value.get_mut(key));
            let unknown = found.map(|found| take_unknown_keys_of(setting, found, &place));
            lines.extend(unknown.into_iter().flatten().map(|line| self.without_secrets(&line)));
        }
        lines
    }

    /// Keeps each value as it is used; what is not a duration is shown as it was written.
    fn keep_values(&mut self, first: usize, value: &Value, durations: &[Problem]) {
        let is_read = |name: &str| !durations.iter().any(|problem| is_within(&problem.path, name));
        for read in self.settings.iter_mut().skip(first) {
            if read.value.is_some() && is_read(&read.setting.name()) {
                read.value = read.setting.path.iter().try_fold(value, |value, key| value.get(key)).cloned();
            }
        }
    }

    /// A line about each problem, each once. Those about values, and `earlier` ones, are kept as what is wrong.
    fn explain_all(
        &mut self,
        found: &[Problem],
        earlier: &[String],
        first: usize,
        surroundings: &Surroundings,
    ) -> Vec<String> {
        let own = self.settings.get(first..).unwrap_or_default();
        let mut wrong = earlier.to_vec();
        let mut lines: Vec<String> = Vec::new();
        for problem in found {
            let line = self.explain(problem, own, surroundings);
            if !lines.contains(&line) {
                wrong.extend(Some(line.clone()).filter(|_| !is_missing_setting(problem, own)));
                lines.push(line);
            }
        }
        self.wrong.append(&mut wrong);
        lines
    }

    /// A line about a value, with its source or how to set it, and without the value if that is secret.
    fn explain(&self, problem: &Problem, settings: &[ReadSetting], surroundings: &Surroundings) -> String {
        let (path, is_missing) = (problem.path.as_str(), problem.kind == ProblemKind::Missing);
        let own = settings.iter().filter(|read| is_within(path, &read.setting.name()));
        let own = own.max_by_key(|read| read.setting.name().len());
        let Some(ReadSetting { setting, source, .. }) = own else {
            // of a table, or of no setting
            let inside = |read: &&ReadSetting| !path.is_empty() && is_within(&read.setting.name(), path);
            let is_secret = settings.iter().filter(inside).any(|read| read.setting.is_secret);
            let line = if is_secret && !is_missing { hidden(problem) } else { problem.to_string() };
            let is_in_file =
                self.file.members.contains_key(path.split(['.', '[']).next().unwrap_or_default());
            return match is_in_file {
                true => format!("{} ({})", self.without_secrets(&line), self.file_in_words(path)),
                false => self.without_secrets(&line),
            };
        };
        if is_missing && path == setting.name() {
            return self.missing(problem, setting, settings, surroundings);
        }
        let line = match secret_at(setting, path).filter(|_| !is_missing) {
            Some(shown) if shown == path => hidden(problem),
            Some(shown) => format!("{shown}: a value in it, which is secret, is not accepted"),
            None => self.without_secrets(&problem.to_string()),
        };
        let source = match source {
            Source::Flag => format!("`--{}`", setting.flag),
            Source::Variable => format!("`{}`", setting.variable),
            Source::File => self.file_in_words(&setting.name()),
            Source::Default => "its default".to_owned(),
        };
        format!("{line} (from {source})")
    }

    fn missing(
        &self,
        problem: &Problem,
        setting: &Setting,
        settings: &[ReadSetting],
        surroundings: &Surroundings,
    ) -> String {
        let mut text = problem.to_string();
        let description = setting.description().lines().next().unwrap_or_default();
        if !description.is_empty() {
            text = format!("{text}: {description}");
        }
        let Setting { flag, variable, .. } = setting;
        text.push_str(&format!("\n  set `{variable}`, or pass `--{flag} {}`", placeholder(setting)));
        if let Some(path) = &self.file.path {
            text.push_str(&format!(", or write `{} = ..` in `{}`", setting.name(), path.display()));
        }
        let all: Vec<Setting> = settings.iter().map(|read| read.setting.clone()).collect();
        if let Some(name) = surroundings.misspelt_variable(setting, &all, &self.prefix) {
            text.push_str(&format!("\n  `{name}` is set; did you mean `{variable}`?"));
        }
        self.without_secrets(&text)
    }

    fn file_in_words(&self, key: &str) -> String {
        let path = self.file.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        format!("`{key}` in `{path}`")
    }

    /// A text without secret values.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        self.secrets.mask(text)
    }

    /// The missing and invalid settings as a text; `None` without any.
    pub(super) fn report(&self, own: &[String]) -> Option<Arc<str>> {
        let lines: Vec<String> = self.common.iter().chain(own).map(|line| format!("\n- {line}")).collect();
        if lines.is_empty() {
            return None;
        }
        Some(format!("the settings of `{}` are missing or wrong:{}", self.server, lines.concat()).into())
    }
}

/// Whether a setting is missing, or a table of some.
fn is_missing_setting(problem: &Problem, settings: &[ReadSetting]) -> bool {
    problem.kind == ProblemKind::Missing
        && settings.iter().any(|read| is_within(&read.setting.name(), &problem.path))
}

/// As much of a path as may be shown, if the part of a setting there has something secret in it: `hosts[0].name` may have
/// nothing, and `hosts[0]` a key. Of what is secret as a whole, the keys are secret as well.
fn secret_at<'p>(setting: &Setting, path: &'p str) -> Option<&'p str> {
    let name = setting.name();
    let (mut schema, mut rest) = (&setting.schema, path.strip_prefix(&*name).unwrap_or_default());
    while !rest.is_empty() {
        let own = without_null(schema);
        let shown = path.strip_suffix(rest);
        if is_secret(schema) {
            return shown;
        }
        let (part, behind) = match (rest.strip_prefix('.'), rest.strip_prefix('[')) {
            (Some(inside), _) => {
                let (key, behind) = inside.split_at(inside.find(['.', '[']).unwrap_or(inside.len()));
                let property = own.get("properties").and_then(|properties| properties.get(key));
                (property.or_else(|| own.get("additionalProperties")), behind)
            }
            (None, Some(inside)) => {
                (own.get("items"), inside.split_once(']').map_or("", |(_, behind)| behind))
            }
            (None, None) => (None, ""),
        };
        // of what is not known, all may be
        let Some(part) = part else { return shown.filter(|_| setting.is_secret) };
        (schema, rest) = (part, behind);
    }
    has_secret(schema).then_some(path)
}

/// Adds the keys of maps that are secret as a whole.
fn add_secret_keys(secrets: &mut SecretTexts, schema: &Value, value: &Value, is_inside: bool) {
    let (own, is_inside) = (without_null(schema), is_inside || is_secret(schema));
    match value {
        Value::Array(items) => {
            let schema = own.get("items").unwrap_or(&Value::Null);
            items.iter().for_each(|item| add_secret_keys(secrets, schema, item, is_inside));
        }
        Value::Object(members) => {
            for (key, member) in members {
                let property = own.get("properties").and_then(|properties| properties.get(key));
                if is_inside && property.is_none() {
                    secrets.add(&Value::from(key.as_str()));
                }
                let schema = property.or_else(|| own.get("additionalProperties")).unwrap_or(&Value::Null);
                add_secret_keys(secrets, schema, member, is_inside);
            }
        }
        _ => {}
    }
}

/// A line about a value that is not shown.
fn hidden(problem: &Problem) -> String {
    let expected = match &problem.kind {
        ProblemKind::Mismatch { expected } => expected.as_str(),
        _ => "accepted",
    };
    format!("{}: the value, which is secret, is not {expected}", problem.path)
}

/// The schema of all settings, with the flag and the variable of each.
fn joined_schema(schemas: &[ConfigSchema<'_>]) -> Value {
    let mut joined = serde_json::json!({ "type": "object", "properties": {} });
    let mut required = Vec::new();
    for ConfigSchema { schema, settings, .. } in schemas {
        let mut schema = schema.clone();
        for setting in settings {
            let mut at = Some(&mut schema);
            for key in &setting.path {
                at = at.and_then(|schema| inner(schema)["properties"].get_mut(key));
            }
            if let Some(property) = at.filter(|property| property.is_object()) {
                property["x-flag"] = format!("--{}", setting.flag).into();
                property["x-env"] = setting.variable.clone().into();
            }
        }
        drop_complete_tables(&mut schema);
        minimize(&mut schema, Direction::Input);
        show_schema(&mut schema);
        if let (Value::Object(all), Value::Object(own)) =
            (&mut joined["properties"], schema["properties"].take())
        {
            all.extend(own);
        }
        required.extend(schema["required"].as_array().into_iter().flatten().cloned());
        if let Some(definitions) = schema.get("$defs") {
            joined["$defs"] = definitions.clone();
        }
    }
    if !required.is_empty() {
        joined["required"] = required.into();
    }
    joined
}

/// Removes tables from what is required if they need not be there: nothing in them is required.
fn drop_complete_tables(schema: &mut Value) {
    let mut complete = Vec::new();
    for (name, property) in schema["properties"].as_object_mut().into_iter().flatten() {
        if is_table(property) {
            let own = inner(property);
            drop_complete_tables(own);
            if own.get("required").and_then(Value::as_array).is_none_or(Vec::is_empty) {
                complete.push(name.clone());
            }
        }
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !complete.iter().any(|complete| name == complete));
    }
}

/// The schema itself, or its one alternative beside `null`.
fn inner(schema: &mut Value) -> &mut Value {
    if schema.get("properties").is_some() {
        return schema;
    }
    let position = schema["anyOf"].as_array().and_then(|list| list.iter().position(is_table));
    match position {
        Some(position) => &mut schema["anyOf"][position],
        None => schema,
    }
}

/// A value for people: secret parts are masked.
fn shown(schema: &Value, value: &Value) -> Value {
    let (schema, is_masked) = (without_null(schema), is_secret(schema));
    match value {
        _ if is_masked => REDACTED.into(),
        Value::Array(items) if has_secret(schema) => match schema.get("items") {
            Some(schema) => items.iter().map(|item| shown(schema, item)).collect(),
            None => REDACTED.into(),
        },
        Value::Object(members) if has_secret(schema) => {
            let own = |name: &str| {
                schema.get("properties")?.get(name).or_else(|| schema.get("additionalProperties"))
            };
            let member = |(name, value): (&String, &Value)| {
                (name.clone(), own(name).map_or(REDACTED.into(), |schema| shown(schema, value)))
            };
            Value::Object(members.iter().map(member).collect())
        }
        _ if has_secret(schema) => REDACTED.into(),
        value => value.clone(),
    }
}

impl ReadSettings {
    /// The values that are missing or invalid, and how to set them.
    pub(crate) fn problems(&self) -> Option<&str> {
        self.problems.as_deref()
    }

    /// Whether the program's arguments have flags that cannot be read.
    pub(crate) fn has_wrong_flags(&self) -> bool {
        self.has_wrong_flags
    }

    /// Whether there are none: the program may have passed the values with `.state(..)`.
    pub(crate) fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    /// Whether a flag, without `--`, is one of them.
    pub(crate) fn has_flag(&self, name: &str) -> bool {
        name == "config" || self.settings.iter().any(|read| read.setting.flag == name)
    }

    /// Their part of `--help`, the table of their values, and what is missing or wrong; `None` without settings.
    pub(crate) fn texts(&self) -> Option<(String, String, Option<String>)> {
        let problems = self.problems().map(str::to_owned);
        (!self.is_empty()).then(|| (self.help(), self.table(), problems))
    }

    /// Their part of `--help`.
    fn help(&self) -> String {
        let mut rows = Vec::new();
        for ReadSetting { setting, .. } in &self.settings {
            let value =
                if setting.is_switch() { String::new() } else { format!(" {}", placeholder(setting)) };
            let mut notes = vec![setting.type_in_words(), setting.variable.clone()];
            match default_of(setting) {
                _ if setting.is_required => notes.push("required".to_owned()),
                Some(default) => notes.push(format!("{default} by default")),
                None => {}
            }
            if setting.is_secret {
                notes.push("secret".to_owned());
            }
            notes.retain(|note| !note.is_empty());
            let description = setting.description().lines().next().unwrap_or_default();
            let space = if description.is_empty() { "" } else { " " };
            rows.push((
                format!("--{}{value}", setting.flag),
                format!("{description}{space}[{}]", notes.join("; ")),
            ));
        }
        let place = self.file.path.as_ref().map(|path| format!("; {}", path.display())).unwrap_or_default();
        rows.push((
            "--config FILE".to_owned(),
            format!("a TOML file with settings [{}CONFIG{place}]", self.prefix),
        ));
        rows.push(("config".to_owned(), "print the settings, and where each comes from".to_owned()));
        let width = rows.iter().map(|(flag, _)| flag.chars().count()).max().unwrap_or_default().clamp(21, 32);
        let rows: Vec<String> = rows
            .into_iter()
            .map(|(flag, text)| match flag.chars().count() > width {
                true => format!("  {flag}\n  {:width$}  {text}", ""),
                false => format!("  {flag:width$}  {text}"),
            })
            .collect();
        format!("settings\n{}", rows.join("\n"))
    }

    /// Their values and where these come from, without those that are secret.
    fn table(&self) -> String {
        let mut rows = Vec::new();
        for ReadSetting { setting, value, source, .. } in &self.settings {
            let shown = match value {
                Some(value) => {
                    let mut value = shown(&setting.schema, value);
                    show_durations(&mut value);
                    match value {
                        Value::String(text) => text,
                        value => value.to_string(),
                    }
                }
                None => default_of(setting).unwrap_or_else(|| "-".to_owned()),
            };
            let source = match (source, value) {
                (Source::Flag, _) => format!("--{}", setting.flag),
                (Source::Variable, _) => setting.variable.clone(),
                (Source::File, _) => {
                    self.file.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
                }
                (Source::Default, _) if default_of(setting).is_none() && !setting.has_hidden_default() => {
                    "not set".to_owned()
                }
                (Source::Default, _) => "default".to_owned(),
            };
            // control characters of a value must not write to the terminal
            let shown: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            rows.push([setting.name(), shown, source]);
        }
        let width = |column: usize| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|text| text.chars().count())
                .max()
                .unwrap_or_default()
        };
        let (names, values) = (width(0), width(1).min(40));
        let mut text = String::new();
        for [name, value, source] in &rows {
            text.push_str(&format!("{name:names$}  {value:values$}  {source}\n"));
        }
        if let Some(path) = &self.file.path {
            let state = match (self.file.is_read, &self.file.problem) {
                (true, _) => "",
                (false, None) => " (not there)",
                (false, Some(_)) => " (cannot be read)",
            };
            text.push_str(&format!("\nfile: {}{state}\n", path.display()));
        }
        self.without_secrets(&text)
    }

    /// Their schema, with flags and variables.
    pub(crate) fn schema(&self) -> Value {
        self.schema.clone()
    }
}

/// The default of a setting as people write it.
fn default_of(setting: &Setting) -> Option<String> {
    let mut default = setting.schema.get("default").filter(|default| !default.is_null()).cloned()?;
    show_durations(&mut default);
    Some(match default {
        Value::String(text) => text,
        value => value.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_of_which_nothing_is_required_need_not_be_there_also_beside_null() {
        for required in [json!([]), json!(["host"])] {
            let table = json!({ "type": "object", "properties": { "host": {} }, "required": required });
            let mut schema = json!({
                "properties": { "plain": table, "nullable": { "anyOf": [table, { "type": "null" }] } },
                "required": ["nullable", "plain"],
            });
            drop_complete_tables(&mut schema);
            let left = if required == json!([]) { json!([]) } else { json!(["nullable", "plain"]) };
            assert_eq!(schema["required"], left);
        }
    }
}
