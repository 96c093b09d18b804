//! The plan of an entry: how the client starts the server, with which variables, and what is left for the user. A plan for
//! the file of a project has no path of this machine and no secret; no text that shows a plan has a secret.

use std::{
    fmt::Write as _,
    path::{Component, Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{
    Job,
    client::{Launch, Reference, Variable, VariableValue},
    document::{self, Change, Document, Format, Members},
    problem::Problem,
    questions::{Question, Questions},
};
use crate::core::server::SettingToInstall;

/// The parts of an entry. Without `Debug`: some variables are secret.
#[derive(Clone)]
pub(super) struct Plan<'j> {
    job: Job<'j>,
    /// `None` if the server is only known by its name.
    launch: Option<Launch>,
    variables: Vec<Variable>,
    /// Notes for the user.
    notes: Vec<String>,
}

/// A secret setting whose flag is among the arguments. Without `Debug`.
#[derive(PartialEq)]
struct GivenSecret {
    variable: String,
    flag: String,
    value: String,
}

impl<'j> Plan<'j> {
    /// How the server starts, and what it needs.
    ///
    /// # Errors
    /// No server is named, its arguments are wrong, or the file of the client cannot have it.
    pub(super) fn new(job: Job<'j>) -> Result<Self, Problem> {
        let mut plan = Self { job, launch: None, variables: Vec::new(), notes: Vec::new() };
        let Job { server, options, .. } = job;
        plan.launch = match (&options.http, &server.command) {
            (Some(url), _) => {
                if options.project {
                    plan.notes.extend(secrets_in_url(url).iter().map(|what| committed(what)));
                }
                Some(Launch::Url(url.clone()))
            }
            (None, Some((command, arguments))) => Some(plan.command(command, arguments)?),
            (None, None) => None,
        };
        if plan.launch.is_some() || !options.remove {
            plan.entry_with(&[])?;
        }
        Ok(plan)
    }

    pub(super) fn job(&self) -> Job<'j> {
        self.job
    }

    /// The command as the client starts it; adds its variables.
    fn command(&mut self, command: &str, arguments: &[String]) -> Result<Launch, Problem> {
        let Job { server, options, .. } = self.job;
        let (arguments, secrets) = take_secrets(arguments, &server.settings)?;
        if options.project {
            self.notes.extend(secrets.iter().map(|GivenSecret { variable, flag, .. }| {
                format!("the value of `--{flag}` is not written, and `{variable}` is it: the file of a project is committed")
            }));
            let is_own = |flag: &str| server.settings.iter().any(|setting| setting.flag == flag);
            let doubtful = arguments.iter().flat_map(|argument| secrets_in(argument, is_own));
            self.notes.extend(doubtful.map(|what| committed(&what)));
        }
        if !server.is_own {
            self.notes.extend(self.missing_program(command));
        }
        let launch = if options.project {
            self.portable(command, &arguments)?
        } else {
            let arguments = self.absolute_arguments(arguments);
            if server.is_own && is_build(Path::new(command)) {
                self.notes.push(format!(
                    "`{command}` is a build of cargo, which `cargo clean` removes; `cargo install --path .` makes one that stays"
                ));
            }
            Launch::Command { command: command.to_owned(), arguments }
        };
        for setting in &server.settings {
            self.add_setting(setting, secrets.iter().find(|secret| secret.variable == setting.variable));
        }
        self.add_named_variables();
        Ok(launch)
    }

    /// Adds the variable of a setting, if the entry has one.
    fn add_setting(&mut self, setting: &SettingToInstall, flag: Option<&GivenSecret>) {
        let SettingToInstall { variable, given, description, is_secret, is_required, .. } = setting;
        if !setting.is_used && flag.is_none() {
            return;
        }
        let value = match (given, self.job.options.project) {
            (_, is_for_project) if *is_secret => match flag {
                Some(secret) if !is_for_project => VariableValue::Secret(secret.value.clone()),
                _ => VariableValue::Reference,
            },
            (Some(text), false) => VariableValue::Text(text.clone()),
            (None, _) if !*is_required => return,
            (Some(_), true) if !*is_required => {
                self.notes.push(format!(
                    "`{variable}` is set here, and is not written: the file of a project is committed"
                ));
                return;
            }
            _ => VariableValue::Missing,
        };
        self.variables.push(Variable {
            name: variable.clone(),
            value,
            description: description.lines().next().unwrap_or_default().to_owned(),
            is_required: *is_required,
            is_secret: *is_secret,
        });
    }

    /// Adds the variables that the options name.
    fn add_named_variables(&mut self) {
        let Job { server, options, .. } = self.job;
        for (name, value) in &options.env {
            let known = self.variables.iter().position(|variable| variable.name == *name);
            let is_secret = sounds_secret(name)
                || server.settings.iter().any(|own| own.is_secret && own.variable == *name);
            let value = match value {
                Some(text) if is_secret => VariableValue::Secret(text.clone()),
                Some(text) => VariableValue::Text(text.clone()),
                None => VariableValue::Reference,
            };
            let description = known.map(|at| self.variables.remove(at).description).unwrap_or_default();
            let name = name.clone();
            self.variables.push(Variable { name, value, description, is_required: true, is_secret });
        }
    }

    /// A note about a program that the client would not find.
    fn missing_program(&self, command: &str) -> Option<String> {
        let around = self.job.around;
        if command.contains(['/', std::path::MAIN_SEPARATOR]) {
            let is_there = around.folder.join(command).is_file();
            return (!is_there).then(|| format!("`{command}` does not exist"));
        }
        let is_there = around.program(command).is_some();
        (!is_there).then(|| format!("`{command}` is not in `PATH` here"))
    }

    /// Arguments whose paths lead to the same files from the folder in which the client starts.
    fn absolute_arguments(&mut self, arguments: Vec<String>) -> Vec<String> {
        let absolute = |argument: String| {
            let (option, value) = split_option(&argument);
            let path = inside_folder(&self.job.around.folder, value).filter(|path| path.exists());
            let Some(path) = path else { return argument };
            // a word may be a command that happens to be the name of a file too
            let is_path = value.contains(['/', std::path::MAIN_SEPARATOR])
                || value == "."
                || value == ".."
                || (value.contains('.') && path.is_file());
            match path.to_str() {
                Some(path) if is_path => format!("{option}{path}"),
                _ => {
                    self.notes.push(format!(
                        "`{value}` is written as it is: if the file of that name in this folder is meant, write `./{value}`"
                    ));
                    argument
                }
            }
        };
        arguments.into_iter().map(absolute).collect()
    }

    /// A command without paths of this machine.
    fn portable(&mut self, command: &str, arguments: &[String]) -> Result<Launch, Problem> {
        let Job { server, around, .. } = self.job;
        let relative = |text: &str| {
            let inside = Path::new(text).strip_prefix(&around.folder).ok()?;
            Some(inside.to_str()?.replace('\\', "/"))
        };
        let command = match relative(command).filter(|_| !server.is_own) {
            Some(inside) => format!("./{inside}"),
            None if is_absolute(command) => {
                let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
                let name = name.strip_suffix(".exe").unwrap_or(name).to_owned();
                self.notes.push(format!("everyone who works on the project needs `{name}` in their `PATH`"));
                name
            }
            None => command.to_owned(),
        };
        let mut portable = Vec::new();
        let home = around.home.display().to_string();
        for argument in arguments {
            let (option, value) = split_option(argument);
            match relative(value) {
                Some(inside) => {
                    portable.push(format!("{option}{}", if inside.is_empty() { "." } else { &inside }));
                }
                None if is_absolute(value) || (home.len() > 1 && value.contains(&home)) => {
                    return Err(Problem::MachinePath(argument.clone()));
                }
                None => portable.push(argument.clone()),
            }
        }
        Ok(Launch::Command { command, arguments: portable })
    }

    /// The plan for an entry that is `present`: secrets of clients that cannot refer to one have the values that the user
    /// types, if the user can be asked, and what is there already stays.
    pub(super) fn resolved(&self, present: &Value, mut questions: Option<&mut Questions<'_>>) -> Self {
        let mut plan = self.clone();
        let Job { client, options, around, .. } = self.job;
        plan.variables.retain(|variable| {
            // members that the user has added
            let is_there = ["env", "envs", "environment"].iter().any(|key| {
                present[*key][variable.name.as_str()].as_str().is_some_and(|text| !text.is_empty())
            });
            let is_open = matches!(variable.value, VariableValue::Missing | VariableValue::Reference);
            !(is_there
                && is_open
                && (client.reference == Reference::None || variable.value == VariableValue::Missing))
        });
        for variable in &mut plan.variables {
            let is_secret = match variable.value {
                VariableValue::Missing => false,
                VariableValue::Reference if client.reference == Reference::None => true,
                _ => continue,
            };
            variable.value = VariableValue::Missing;
            let is_named = options.env.iter().any(|(name, _)| *name == variable.name);
            let now = around.variables.get(&variable.name).and_then(|value| value.to_str());
            if let (true, false, Some(now)) = (is_named, options.project, now) {
                variable.value = VariableValue::Secret(now.to_owned());
            } else if let Some(questions) = &mut questions
                && !options.project
                && variable.is_required
            {
                let text = format!("{}{}, or nothing to add it later", variable.name, variable.about());
                if let Some(answer) = questions.answer(&Question { text: &text, is_secret }) {
                    variable.value = match is_secret {
                        true => VariableValue::Secret(answer),
                        false => VariableValue::Text(answer),
                    };
                }
            }
        }
        plan
    }

    /// The entry, and what VS Code is to ask.
    ///
    /// # Errors
    /// No server is named, or the file of the client cannot have it.
    pub(super) fn entry(&self) -> Result<(Members, Vec<Value>), Problem> {
        self.entry_with(&self.variables)
    }

    /// The entry with these variables.
    fn entry_with(&self, variables: &[Variable]) -> Result<(Members, Vec<Value>), Problem> {
        let Job { client, server, options, .. } = self.job;
        let launch = self.launch.as_ref().ok_or(Problem::NoServer)?;
        let entry = client.entry(launch, variables, &server.name);
        let (mut members, inputs) = entry.ok_or(Problem::NoUrls(client.title))?;
        members
            .extend(client.always_load.filter(|_| options.always_load).map(|member| (member, true.into())));
        Ok((members, inputs))
    }

    /// Whether an entry starts the same program with the same arguments, or connects to the same URL; a plan that is only a
    /// name fits every one.
    pub(super) fn is_of(&self, present: &Value) -> Result<bool, Problem> {
        Ok(self.launch.is_none() || is_same_server(present, &self.entry_with(&[])?.0))
    }

    /// The entry as it is shown, as the text of a file: secrets are placeholders.
    ///
    /// # Errors
    /// As of [`entry`](Self::entry).
    pub(super) fn shown(&self) -> Result<String, Problem> {
        let Job { client, server, options, .. } = self.job;
        let mut variables = self.variables.clone();
        for variable in &mut variables {
            let is_hidden = match variable.value {
                VariableValue::Secret(_) | VariableValue::Missing => true,
                VariableValue::Reference => client.reference == Reference::None,
                VariableValue::Text(_) => false,
            };
            if is_hidden {
                // no value belongs there in a file that is committed
                let is_left_out = options.project && variable.is_secret;
                variable.value = match is_left_out {
                    true => VariableValue::Missing,
                    false => VariableValue::Text(format!("<{}>", variable.name)),
                };
            }
        }
        let (mut members, inputs) = self.entry_with(&variables)?;
        members.retain(|(member, _)| !(options.project && client.is_of_user(member)));
        if client.format == Format::Yaml {
            return Ok(yaml_snippet(client.table, &server.name, &members));
        }
        let mut document = Document::parse(client.format, "")?;
        document.set(client.table, &server.name, &members, Change::Replace);
        document.add_inputs(&inputs)?;
        Ok(document.text())
    }

    /// The entry as it is in a link, and the variables that it has not: a link has no value that a placeholder stands for.
    ///
    /// # Errors
    /// As of [`entry`](Self::entry).
    pub(super) fn linked(&self) -> Result<(Value, Vec<&str>), Problem> {
        let client = self.job.client;
        let is_in_link = |variable: &&Variable| match variable.value {
            _ if client.id == "goose" => false,
            VariableValue::Text(_) => true,
            VariableValue::Reference => client.reference != Reference::None,
            VariableValue::Secret(_) | VariableValue::Missing => false,
        };
        let variables: Vec<Variable> = self.variables.iter().filter(is_in_link).cloned().collect();
        let absent = self.variables.iter().filter(|variable| !is_in_link(variable));
        let (members, inputs) = self.entry_with(&variables)?;
        let mut entry = to_object(&members);
        if !inputs.is_empty() {
            entry[document::INPUTS] = inputs.into();
        }
        Ok((entry, absent.map(|variable| variable.name.as_str()).collect()))
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The steps that are left for the user; a printed entry has placeholders.
    pub(super) fn notes(&self, file: &str, is_printed: bool) -> String {
        let mut text = String::new();
        let Job { client, server, options, .. } = self.job;
        let title = client.title;
        for variable in &self.variables {
            let (name, about) = (&variable.name, variable.about());
            let is_left_out = match (&variable.value, client.reference) {
                (VariableValue::Missing, _) | (VariableValue::Reference, Reference::None) => true,
                (VariableValue::Secret(_), _) => is_printed,
                _ => false,
            };
            let _result = match (&variable.value, client.reference) {
                _ if is_left_out && options.project && variable.is_secret => writeln!(
                    text,
                    "to do: `{name}`{about} is secret, {title} cannot refer to it, and `{file}` is committed: install without `--project`, everyone on their own"
                ),
                _ if is_left_out && is_printed => {
                    writeln!(text, "to do: write the value of `{name}`{about} in place of `<{name}>`")
                }
                _ if is_left_out => {
                    writeln!(text, "to do: add `{name}`{about} to `env` of `{}` in `{file}`", server.name)
                }
                (VariableValue::Reference, Reference::Input) => {
                    writeln!(text, "{title} asks for `{name}`{about} when it starts the server")
                }
                (VariableValue::Reference, _) => {
                    writeln!(text, "to do: set `{name}`{about} in the environment in which {title} starts")
                }
                _ => Ok(()),
            };
        }
        for note in &self.notes {
            let _result = writeln!(text, "note: {note}");
        }
        text
    }
}

/// Takes the flags of secret settings out of arguments: an entry has them as variables, which are masked where they are shown.
///
/// # Errors
/// A flag has no value, or is given twice; the error has no value.
fn take_secrets(
    arguments: &[String],
    settings: &[SettingToInstall],
) -> Result<(Vec<String>, Vec<GivenSecret>), Problem> {
    let (mut others, mut secrets) = (Vec::new(), Vec::<GivenSecret>::new());
    let mut arguments = arguments.iter().peekable();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&**argument, None),
        };
        let flag = name.strip_prefix("--").unwrap_or_default();
        let Some(setting) = settings.iter().find(|setting| setting.is_secret && setting.flag == flag) else {
            others.push(argument.clone());
            continue;
        };
        let SettingToInstall { variable, flag, .. } = setting;
        let value = value.or_else(|| arguments.next_if(|next| !next.starts_with("--")).map(String::as_str));
        let (variable, flag) = (variable.clone(), flag.clone());
        let Some(value) = value else { return Err(Problem::NoFlagValue(flag)) };
        if secrets.iter().any(|known| known.variable == variable) {
            return Err(Problem::FlagTwice(flag, variable));
        }
        secrets.push(GivenSecret { variable, flag, value: value.to_owned() });
    }
    Ok((others, secrets))
}

/// An entry in YAML, which is printed and not written: each value as JSON, which is YAML as well.
fn yaml_snippet(table: &str, name: &str, members: &Members) -> String {
    let mut text = format!("{table}:\n  {}:\n", Value::from(name));
    for (member, value) in members {
        let _result = writeln!(text, "    {member}: {value}");
    }
    text
}

/// A note about something in the file of a project.
fn committed(what: &str) -> String {
    format!("the file of a project is committed: if {what} is secret, remove it")
}

/// The parts of an argument that are probably secret, in words; `is_known` are the flags that are not.
fn secrets_in(argument: &str, is_known: impl Fn(&str) -> bool) -> Vec<String> {
    let (name, value) = match argument.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (argument, None),
    };
    let flag = name.strip_prefix("--");
    let is_variable = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut found = match (flag, value) {
        (Some(flag), _) if !is_known(flag) && sounds_secret(&flag.replace('-', "_")) => {
            vec![format!("the value of `--{flag}`")]
        }
        // of `docker run -e NAME=VALUE`
        (None, Some(value)) if is_variable(name) && !value.is_empty() && sounds_secret(name) => {
            vec![format!("the value of `{name}`")]
        }
        _ => Vec::new(),
    };
    if found.is_empty() {
        found = secrets_in_url(if flag.is_some() { value.unwrap_or_default() } else { argument });
    }
    found
}

/// The parts of a URL that are probably secret, in words.
fn secrets_in_url(text: &str) -> Vec<String> {
    let Some((scheme, rest)) = text.split_once("://") else { return Vec::new() };
    let mut found = Vec::new();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((user, host)) = authority.rsplit_once('@') {
        match user.split_once(':') {
            Some((_, password)) if !password.is_empty() => {
                found.push(format!("the password in the URL of `{host}`"));
            }
            // tokens are written as names of users
            _ if scheme.starts_with("http") => found.push(format!("the user name in the URL of `{host}`")),
            _ => {}
        }
    }
    let query = rest.split_once('?').and_then(|(_, query)| query.split('#').next()).unwrap_or_default();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let doubtful = pairs.filter(|(name, value)| !value.is_empty() && sounds_secret(&name.replace('-', "_")));
    found.extend(doubtful.map(|(name, _)| format!("the value of `{name}` in the URL")));
    found
}

/// The beginning of an argument with its `=`, if it is an option with a value, and the value or the whole argument.
fn split_option(argument: &str) -> (&str, &str) {
    match argument.find('=').filter(|_| argument.starts_with('-')) {
        Some(at) => argument.split_at(at + 1),
        None => ("", argument),
    }
}

/// A relative path from a folder, without `.` and `..`; `None` if it is not one.
fn inside_folder(folder: &Path, text: &str) -> Option<PathBuf> {
    if text.is_empty() || text.starts_with('-') || is_absolute(text) || text.contains("://") {
        return None;
    }
    let mut path = folder.to_owned();
    for part in Path::new(text).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(path.pop()),
            Component::Normal(part) => path.push(part),
            Component::Prefix(_) | Component::RootDir => return None,
        }
    }
    Some(path)
}

pub(super) fn to_object(members: &Members) -> Value {
    Value::Object(
        members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect::<Map<_, _>>(),
    )
}

/// Whether an entry starts the same program with the same arguments, or connects to the same URL.
fn is_same_server(present: &Value, own: &Members) -> bool {
    const IDENTITY: [&str; 8] = ["command", "args", "cmd", "url", "serverUrl", "httpUrl", "uri", "type"];
    let own = to_object(own);
    let value = |entry: &Value, key: &str| match (entry.get(key).cloned(), key) {
        // members that need not be written
        (None | Some(Value::Null), "args") => Value::Array(Vec::new()),
        (None, "type") if entry.get("command").is_some() => "stdio".into(),
        (Some(value), "type") if value == "streamable-http" => "http".into(),
        (None, "type") => "http".into(),
        (value, _) => value.unwrap_or_default(),
    };
    let is_url = own.get("command").is_none() && own.get("cmd").is_none();
    let keys = IDENTITY.iter().filter(|key| !(is_url && ["args", "httpUrl"].contains(key)));
    keys.into_iter().all(|key| value(present, key) == value(&own, key))
}

/// Whether a variable of this name is probably secret. `mcp-dev` masks by the same list.
pub(crate) fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // a personal access token; `PATH` has the same letters
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    if words.skip(1).any(|word| word == "PAT") {
        return true;
    }
    // the name of a person
    let name = name.replace("AUTHORI", "AUTH").replace("AUTHOR", "");
    ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "DSN", "COOKIE"]
        .iter()
        .any(|part| name.contains(part))
}

/// Whether a program lies in a folder that cargo builds in.
fn is_build(path: &Path) -> bool {
    let profile = path.parent();
    let target = profile.and_then(Path::parent);
    let is_profile =
        profile.and_then(Path::file_name).is_some_and(|name| name == "debug" || name == "release");
    is_profile && target.is_some_and(|target| target.join("CACHEDIR.TAG").exists())
}

/// Whether a text is a path of a machine, of any system.
fn is_absolute(text: &str) -> bool {
    let mut chars = text.chars();
    let has_drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next() == Some(':');
    let is_drive = has_drive && chars.next().is_some_and(|c| c == '\\' || c == '/');
    // `/c` is an option of Windows
    is_drive
        || text.starts_with("\\\\")
        || text.starts_with("file:")
        || (text.starts_with('/') && text.len() > 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_flag_is_a_variable_of_the_entry() {
        let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let settings = super::super::tests::server().settings;
        let (rest, secrets) =
            take_secrets(&line("serve --key planted --timeout 9 --key-file x --other"), &settings)
                .expect("arguments");
        assert_eq!(rest, line("serve --timeout 9 --key-file x --other"));
        let given = |value: &str| GivenSecret {
            variable: "LEDGER_KEY".to_owned(),
            flag: "key".to_owned(),
            value: value.to_owned(),
        };
        assert!(secrets == [given("planted")]);
        let joined = take_secrets(&line("--key=a=b"), &settings).expect("arguments").1;
        assert!(joined == [given("a=b")]);
        for (text, part) in
            [("--key", "needs a value"), ("--key --x", "needs a value"), ("--key a --key planted", "twice")]
        {
            let error = take_secrets(&line(text), &settings).err().expect(text).to_string();
            assert!(
                error.contains(part) && error.contains("`--key`") && !error.contains("planted"),
                "{error}"
            );
        }
    }

    #[test]
    fn paths_of_every_system_are_recognized() {
        for path in ["/opt/x", "C:\\x", "c:/x", "\\\\host\\x", "file:///x"] {
            assert!(is_absolute(path), "{path}");
        }
        for text in ["/c", "x", "./x", "https://example.com/x", "a:b", ""] {
            assert!(!is_absolute(text), "{text}");
        }
    }
}
