//! The command `install`: adds a server to a client, by an entry in its file. The rest of a file stays as it is, byte for byte;
//! a file that cannot be read as what it should be is left alone; another server of the same name is kept; a secret is in no
//! output, and in no argument of a process, since `install` starts none: other users can read those.

mod client;
mod document;
mod link;
mod options;
mod surroundings;
#[cfg(test)]
mod tests;
mod write;

use std::{
    fmt::Write as _,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::{Component, Path, PathBuf},
};

use serde_json::{Map, Value};

use client::{CLIENTS, Client, Launch, Reference, Variable, VariableValue, Way};
use document::{Change, Document, Format, Members};
use options::{Options, is_name, usage};
use surroundings::Surroundings;
use write::{Replaced, TextFile};

use crate::core::server::{Error, Result, Server, SettingToInstall};

/// How often an entry is added again to a file that other programs have changed meanwhile.
const MAX_ATTEMPTS: usize = 64;

/// Runs the command `install` for a server that another program starts: the options, then `--` and its command, or `--http`
/// and its URL. `program` is what the usage begins with.
///
/// This is what `mcp-dev install` is. A server's own command `install` is a part of [`run`](crate::ServerBuilder::run).
///
/// ```no_run
/// # fn main() -> mcp_runtime::Result<()> {
/// let arguments = ["cursor", "--name", "files", "--", "npx", "-y", "a-server", "."];
/// mcp_runtime::install::run("my-tool", arguments.map(String::from))
/// # }
/// ```
///
/// # Errors
/// The options are wrong, or the file of the client cannot be changed; it is as it was then.
pub fn run(program: &str, arguments: impl IntoIterator<Item = String>) -> Result<()> {
    let options = Options::parse(arguments).map_err(|message| usage_error(program, &message))?;
    if options.is_help {
        return print(&usage(program, "COMMAND"));
    }
    let around = Surroundings::of_process().map_err(Error::call)?;
    let command = options.rest.clone().filter(|rest| !rest.is_empty());
    if command.is_none() && options.http.is_none() && !(options.remove && options.name.is_some()) {
        return Err(usage_error(program, "a server is missing: `-- COMMAND`, or `--http URL`"));
    }
    let name = match (&options.name, &command) {
        (Some(name), _) => name.clone(),
        (None, Some(command)) => name_of_command(command).map_err(|message| usage_error(program, message))?,
        (None, None) => return Err(usage_error(program, "a name is missing: `--name NAME`")),
    };
    let command = command.map(|command| {
        let (first, rest) = command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
        (absolute_program(first, &around.folder), rest.to_vec())
    });
    let server =
        ToInstall { program: program.to_owned(), name, command, is_own: false, settings: Vec::new() };
    run_options(&server, &options, around)
}

/// Runs the command `install` of a server's own command line.
pub(crate) fn run_own(server: &Server, arguments: Vec<String>) -> Result<()> {
    let path = std::env::current_exe();
    let program = path.as_ref().ok().and_then(|path| path.file_stem()?.to_str());
    let program = program.unwrap_or("server").to_owned();
    let options = Options::parse(arguments).map_err(|message| usage_error(&program, &message))?;
    if options.is_help {
        return print(&usage(&program, "ARGUMENTS of this program"));
    }
    // what is missing may be added later, and an invalid value would be written
    #[cfg(feature = "config")]
    if !options.remove
        && options.http.is_none()
        && let Some(wrong) = server.server_settings().and_then(|settings| settings.wrong())
    {
        return Err(Error::settings(&*wrong));
    }
    let around = Surroundings::of_process().map_err(Error::call)?;
    let path = path.map_err(|error| Error::call(format!("the path of this program is unknown: {error}")))?;
    let path = path.into_os_string().into_string();
    let path = path.map_err(|path| Error::call(format!("`{}` is not UTF-8", path.display())))?;
    #[cfg(feature = "config")]
    let settings = server.server_settings().map(|settings| settings.to_install()).unwrap_or_default();
    #[cfg(not(feature = "config"))]
    let settings = Vec::new();
    let to_install = ToInstall {
        name: options.name.clone().unwrap_or_else(|| to_name(server.name())),
        command: Some((path, options.rest.clone().unwrap_or_default())),
        program,
        is_own: true,
        settings,
    };
    run_options(&to_install, &options, around)
}

fn usage_error(program: &str, message: &str) -> Error {
    Error::usage(format!("{message}\n`{program} install --help` lists the options"))
}

fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        // the reader, such as `head`, has exited
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn run_options(server: &ToInstall, options: &Options, around: Surroundings) -> Result<()> {
    let mut ask = ask_in_terminal;
    let mut installer = Installer { around, ask: &mut ask, answers: Vec::new() };
    let client = match &options.client {
        Some(name) => Client::named(name).map_err(|message| usage_error(&server.program, &message))?,
        None => match installer.choose(server) {
            Ok(client) => client,
            Err(message) => return Err(usage_error(&server.program, &message)),
        },
    };
    let report = installer.install(client, server, options).map_err(Error::call)?;
    print(report.trim_end())
}

/// A server that a client is to start.
struct ToInstall {
    /// The beginning of the usage.
    program: String,
    /// Its name in the client.
    name: String,
    /// Program and arguments; `None` if it is only known by its name.
    command: Option<(String, Vec<String>)>,
    /// Whether it is this program.
    is_own: bool,
    settings: Vec<SettingToInstall>,
}

/// A name that every client takes.
fn to_name(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = name.chars().take(64).map(|c| if is_kept(c) { c } else { '-' }).collect();
    if is_name(&name) { name } else { "server".to_owned() }
}

/// The variable and the flag of a secret setting, and the value that was given to the flag.
type GivenSecret = (String, String, String);

/// Takes the flags of secret settings out of arguments: an entry has them as variables, which are masked where they are shown.
///
/// # Errors
/// A flag has no value, or is given twice; the message has no value.
fn take_secrets(
    arguments: Vec<String>,
    settings: &[SettingToInstall],
) -> std::result::Result<(Vec<String>, Vec<GivenSecret>), String> {
    let (mut others, mut secrets) = (Vec::new(), Vec::<GivenSecret>::new());
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (&*argument, None),
        };
        let flag = name.strip_prefix("--").unwrap_or_default();
        let Some(setting) = settings.iter().find(|setting| setting.is_secret && setting.flag == flag) else {
            others.push(argument);
            continue;
        };
        let SettingToInstall { variable, flag, .. } = setting;
        let value = value.or_else(|| arguments.next_if(|next| !next.starts_with("--")));
        let value = value.ok_or_else(|| format!("`--{flag}` needs a value"))?;
        if secrets.iter().any(|(known, ..)| known == variable) {
            return Err(format!("`--{flag}` is given twice\nwrite one `--env {variable}=..` before `--`"));
        }
        secrets.push((variable.clone(), flag.clone(), value));
    }
    Ok((others, secrets))
}

/// The variables that a server gets: its settings, and those that the options name.
fn variables_of(
    server: &ToInstall,
    options: &Options,
    secrets: &[GivenSecret],
    notes: &mut Vec<String>,
) -> Vec<Variable> {
    let mut variables: Vec<Variable> = Vec::new();
    for setting in &server.settings {
        let SettingToInstall { variable, given, description, is_secret, is_required, .. } = setting;
        let flag = secrets.iter().find(|(own, ..)| own == variable).map(|(.., value)| value);
        if !setting.is_used && flag.is_none() {
            continue;
        }
        let value = match (given, options.project) {
            (_, is_for_project) if *is_secret => match flag {
                Some(secret) if !is_for_project => VariableValue::Secret(secret.clone()),
                _ => VariableValue::Reference,
            },
            (Some(text), false) => VariableValue::Text(text.clone()),
            (None, _) if !*is_required => continue,
            (Some(_), true) if !*is_required => {
                notes.push(format!(
                    "`{variable}` is set here, and is not written: the file of a project is committed"
                ));
                continue;
            }
            _ => VariableValue::Missing,
        };
        variables.push(Variable {
            name: variable.clone(),
            value,
            description: description.lines().next().unwrap_or_default().to_owned(),
            is_required: *is_required,
            is_secret: *is_secret,
        });
    }
    for (name, value) in &options.env {
        let known = variables.iter().position(|variable| variable.name == *name);
        let is_secret =
            sounds_secret(name) || server.settings.iter().any(|own| own.is_secret && own.variable == *name);
        let value = match value {
            Some(text) if is_secret => VariableValue::Secret(text.clone()),
            Some(text) => VariableValue::Text(text.clone()),
            None => VariableValue::Reference,
        };
        let description = known.map(|at| variables.remove(at).description).unwrap_or_default();
        let name = name.clone();
        variables.push(Variable { name, value, description, is_required: true, is_secret });
    }
    variables
}

/// The name of a server by its program, unless that runs others.
fn name_of_command(command: &[String]) -> std::result::Result<String, &'static str> {
    const RUNNERS: [&str; 14] = [
        "npx", "npm", "pnpm", "yarn", "bunx", "bun", "uv", "uvx", "pipx", "node", "python", "python3",
        "docker", "cargo",
    ];
    let path = command.first().map(|first| first.replace('\\', "/")).unwrap_or_default();
    let stem = Path::new(&path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    if stem.is_empty() || RUNNERS.contains(&stem.as_str()) {
        return Err("a name is missing: `--name NAME`");
    }
    Ok(to_name(&stem))
}

/// A program as a client in another folder finds it: one without a folder is found in `PATH`.
fn absolute_program(program: &str, folder: &Path) -> String {
    let has_folder = program.contains(['/', std::path::MAIN_SEPARATOR]);
    let path = folder.join(program.strip_prefix("./").unwrap_or(program));
    if !has_folder || !path.is_file() {
        return program.to_owned();
    }
    path.to_str().map_or_else(|| program.to_owned(), str::to_owned)
}

/// A question to the user.
struct Question<'q> {
    text: &'q str,
    /// Whether the answer is not shown while it is typed.
    is_secret: bool,
}

/// The answer, or `None` if there is none.
type Ask<'a> = &'a mut dyn FnMut(&Question<'_>) -> Option<String>;

fn ask_in_terminal(question: &Question<'_>) -> Option<String> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let mut out = io::stderr();
    write!(out, "{}: ", question.text).and_then(|()| out.flush()).ok()?;
    let mut line = String::new();
    if question.is_secret {
        line = rpassword::read_password().ok()?;
    } else {
        io::stdin().lock().read_line(&mut line).ok()?;
    }
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

struct Installer<'a> {
    around: Surroundings,
    ask: Ask<'a>,
    /// The questions that were asked, with their answers: each is asked once, whatever number of files and attempts.
    answers: Vec<(String, Option<String>)>,
}

/// The parts of an entry.
#[derive(Clone)]
struct Planned {
    launch: Option<Launch>,
    variables: Vec<Variable>,
    /// Notes for the user.
    notes: Vec<String>,
    /// Whether it goes into the file of a project.
    is_for_project: bool,
    /// Whether the client loads the tools at once.
    always_load: bool,
}

impl Planned {
    /// The entry with these variables, and what VS Code is to ask.
    ///
    /// # Errors
    /// No server is named, or the file of the client cannot have it.
    fn entry(
        &self,
        client: &Client,
        variables: &[Variable],
        name: &str,
    ) -> std::result::Result<(Members, Vec<Value>), String> {
        let Some(launch) = &self.launch else {
            return Err("a server is missing: `-- COMMAND`, or `--http URL`".to_owned());
        };
        let (mut members, inputs) = client.entry(launch, variables, name).ok_or_else(|| {
            format!("the file of {} has no URLs\nadd the URL in its settings, as a connector", client.title)
        })?;
        members.extend(client.always_load.filter(|_| self.always_load).map(|member| (member, true.into())));
        Ok((members, inputs))
    }
}

/// What becomes of a file: nothing is written before it is known.
struct Edit {
    outcome: Outcome,
    /// The text of the file afterwards; `None` if it stays.
    text: Option<String>,
    /// What is left for the user.
    notes: String,
}

enum Outcome {
    /// With the entry as it is shown.
    Added(String),
    Present,
    Removed,
    Absent,
}

impl Edit {
    /// What was done, or would be: `written` has the copy of the file as it was, if one was made.
    fn report(&self, name: &str, file: &str, written: Option<&str>) -> String {
        let done = match (&self.outcome, written) {
            (Outcome::Added(_), Some(copied)) => format!("added `{name}` to `{file}`{copied}"),
            (Outcome::Added(entry), None) => format!("would add to `{file}`:\n\n{}", entry.trim_end()),
            (Outcome::Present, _) => format!("`{name}` is in `{file}` already"),
            (Outcome::Removed, Some(copied)) => format!("removed `{name}` from `{file}`{copied}"),
            (Outcome::Removed, None) => format!("would remove `{name}` from `{file}`"),
            (Outcome::Absent, _) => format!("`{name}` is not in `{file}`: nothing to remove"),
        };
        format!("{done}\n{}", self.notes)
    }
}

impl Installer<'_> {
    /// Asks which of the clients on this machine it is.
    ///
    /// # Errors
    /// None was chosen; the message lists those that are found.
    fn choose(&mut self, server: &ToInstall) -> std::result::Result<&'static Client, String> {
        let found: Vec<&'static Client> =
            CLIENTS.iter().filter(|client| client.is_found(&self.around)).collect();
        let list: String = found.iter().enumerate().fold(String::new(), |mut list, (index, client)| {
            let _result = write!(list, "\n  {}. {:15} {}", index + 1, client.id, client.title);
            list
        });
        if found.is_empty() {
            return Err("no client is found on this machine: name one".to_owned());
        }
        let text = format!("clients on this machine:{list}\nadd `{}` to which one", server.name);
        let answer = (self.ask)(&Question { text: &text, is_secret: false });
        let by_number =
            |text: &str| text.parse::<usize>().ok().and_then(|number| found.get(number.checked_sub(1)?));
        match answer {
            Some(text) => match by_number(&text) {
                Some(client) => Ok(client),
                None => Client::named(&text),
            },
            None => Err(format!("clients on this machine:{list}\nname one of them")),
        }
    }

    /// Adds or removes a server; returns what was done.
    ///
    /// # Errors
    /// Why nothing was.
    fn install(
        &mut self,
        client: &'static Client,
        server: &ToInstall,
        options: &Options,
    ) -> std::result::Result<String, String> {
        let files = match (options.project, client.project_file(&self.around)) {
            (true, Some(file)) => vec![file],
            (true, None) => {
                let others =
                    CLIENTS.iter().filter(|client| !client.project.is_empty()).map(|client| client.id);
                return Err(format!(
                    "{} has no file in projects\nthese have: {}",
                    client.title,
                    others.collect::<Vec<_>>().join(", ")
                ));
            }
            (false, _) => client.user_files(&self.around),
        };
        if options.always_load && client.always_load.is_none() {
            return Err(format!(
                "{} has no option to load tools at once\n`--always-load` is for `claude-code`",
                client.title
            ));
        }
        let planned = self.plan(server, options)?;
        if planned.launch.is_some() || !options.remove {
            planned.entry(client, &[], &server.name)?;
        }
        let Some(first) = files.first() else { return Err(format!("{} has no file", client.title)) };
        if options.print || (client.way == Way::Print && !options.remove) {
            return self.print(client, server, &planned, first);
        }
        match client.way {
            Way::Print => Err(format!(
                "`{}` is not written by this program\nremove `{}` from `{}`",
                client.title,
                server.name,
                self.around.shown(first)
            )),
            Way::File => {
                // what stops one of several files stops all of them, before the first is written
                if let [_, _, ..] = &files[..] {
                    for path in &files {
                        let file = self.read(path, options)?;
                        let shown = self.around.shown(path);
                        let edit = self.edit(client, server, options, &planned, (&file, &shown), false);
                        edit.and_then(|_| file.check_writable())
                            .map_err(|problem| self.in_file(path, &problem))?;
                    }
                }
                let mut report = String::new();
                for path in &files {
                    let done = self.install_in_file(client, server, options, &planned, path);
                    report += &done.map_err(|error| format!("{report}{error}"))?;
                }
                Ok(report)
            }
        }
    }

    /// The answer to a question, which is asked once.
    fn answer(&mut self, question: &Question<'_>) -> Option<String> {
        if let Some((_, answer)) = self.answers.iter().find(|(text, _)| text == question.text) {
            return answer.clone();
        }
        let answer = (self.ask)(question);
        self.answers.push((question.text.to_owned(), answer.clone()));
        answer
    }

    /// How the server starts, and what it needs.
    fn plan(&self, server: &ToInstall, options: &Options) -> std::result::Result<Planned, String> {
        let (mut notes, mut secrets) = (Vec::new(), Vec::new());
        let launch = match (&options.http, &server.command) {
            (Some(url), _) => {
                if options.project {
                    notes.extend(secrets_in_url(url).iter().map(|what| committed(what)));
                }
                Some(Launch::Url(url.clone()))
            }
            (None, Some((command, arguments))) => {
                let (mut command, mut arguments) = (command.clone(), arguments.clone());
                (arguments, secrets) = take_secrets(arguments, &server.settings)?;
                if options.project {
                    notes.extend(secrets.iter().map(|(variable, flag, _)| {
                        format!("the value of `--{flag}` is not written, and `{variable}` is it: the file of a project is committed")
                    }));
                    let is_own = |flag: &str| server.settings.iter().any(|setting| setting.flag == flag);
                    let doubtful = arguments.iter().flat_map(|argument| secrets_in(argument, is_own));
                    notes.extend(doubtful.map(|what| committed(&what)));
                }
                if !server.is_own {
                    notes.extend(self.missing_program(&command));
                }
                if options.project {
                    (command, arguments) = self.portable(server, &command, &arguments, &mut notes)?;
                } else {
                    arguments = self.absolute_arguments(arguments, &mut notes);
                    if server.is_own && is_build(Path::new(&command)) {
                        notes.push(format!(
                            "`{command}` is a build of cargo, which `cargo clean` removes; `cargo install --path .` makes one that stays"
                        ));
                    }
                }
                Some(Launch::Command { command, arguments })
            }
            (None, None) => None,
        };
        let variables = match launch {
            Some(Launch::Command { .. }) => variables_of(server, options, &secrets, &mut notes),
            _ => Vec::new(),
        };
        let Options { project: is_for_project, always_load, .. } = *options;
        Ok(Planned { launch, variables, notes, is_for_project, always_load })
    }

    /// A note about a program that the client would not find.
    fn missing_program(&self, command: &str) -> Option<String> {
        if command.contains(['/', std::path::MAIN_SEPARATOR]) {
            let is_there = self.around.folder.join(command).is_file();
            return (!is_there).then(|| format!("`{command}` does not exist"));
        }
        let is_there = self.around.program(command).is_some();
        (!is_there).then(|| format!("`{command}` is not in `PATH` here"))
    }

    /// Arguments whose paths lead to the same files from the folder in which the client starts.
    fn absolute_arguments(&self, arguments: Vec<String>, notes: &mut Vec<String>) -> Vec<String> {
        let absolute = |argument: String| {
            let (option, value) = split_option(&argument);
            let Some(path) = inside_folder(&self.around.folder, value).filter(|path| path.exists()) else {
                return argument;
            };
            // a word may be a command that happens to be the name of a file too
            let is_path = value.contains(['/', std::path::MAIN_SEPARATOR])
                || value == "."
                || value == ".."
                || (value.contains('.') && path.is_file());
            match path.to_str() {
                Some(path) if is_path => format!("{option}{path}"),
                _ => {
                    notes.push(format!(
                        "`{value}` is written as it is: if the file of that name in this folder is meant, write `./{value}`"
                    ));
                    argument
                }
            }
        };
        arguments.into_iter().map(absolute).collect()
    }

    /// A command without paths of this machine.
    fn portable(
        &self,
        server: &ToInstall,
        command: &str,
        arguments: &[String],
        notes: &mut Vec<String>,
    ) -> std::result::Result<(String, Vec<String>), String> {
        let relative = |text: &str| {
            let inside = Path::new(text).strip_prefix(&self.around.folder).ok()?;
            Some(inside.to_str()?.replace('\\', "/"))
        };
        let command = match relative(command).filter(|_| !server.is_own) {
            Some(inside) => format!("./{inside}"),
            None if is_absolute(command) => {
                let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
                let name = name.strip_suffix(".exe").unwrap_or(name).to_owned();
                notes.push(format!("everyone who works on the project needs `{name}` in their `PATH`"));
                name
            }
            None => command.to_owned(),
        };
        let mut portable = Vec::new();
        let home = self.around.home.display().to_string();
        for argument in arguments {
            let (option, value) = split_option(argument);
            match relative(value) {
                Some(inside) => {
                    portable.push(format!("{option}{}", if inside.is_empty() { "." } else { &inside }));
                }
                None if is_absolute(value) || (home.len() > 1 && value.contains(&home)) => {
                    return Err(format!(
                        "an argument of the command is a path of this machine: `{argument}`\n\
                         the file of a project is committed: write a path in the project"
                    ));
                }
                None => portable.push(argument.clone()),
            }
        }
        Ok((command, portable))
    }

    /// Gives secrets of clients that cannot refer to one the values that their user types; what is there already stays.
    fn resolve(
        &mut self,
        client: &Client,
        options: &Options,
        may_ask: bool,
        variables: &mut Vec<Variable>,
        present: &Value,
    ) {
        variables.retain(|variable| {
            // members that the user has added
            let is_there = ["env", "envs", "environment"].iter().any(|key| {
                present[*key][variable.name.as_str()].as_str().is_some_and(|text| !text.is_empty())
            });
            let is_open = matches!(variable.value, VariableValue::Missing | VariableValue::Reference);
            !(is_there
                && is_open
                && (client.reference == Reference::None || variable.value == VariableValue::Missing))
        });
        for variable in variables {
            let is_secret = match variable.value {
                VariableValue::Missing => false,
                VariableValue::Reference if client.reference == Reference::None => true,
                _ => continue,
            };
            variable.value = VariableValue::Missing;
            let is_named = options.env.iter().any(|(name, _)| *name == variable.name);
            let now = self.around.variables.get(&variable.name).and_then(|value| value.to_str());
            if let (true, false, Some(now)) = (is_named, options.project, now) {
                variable.value = VariableValue::Secret(now.to_owned());
            } else if may_ask && !options.project && variable.is_required {
                let about = match variable.description.as_str() {
                    "" => String::new(),
                    text => format!(" ({text})"),
                };
                let text = format!("{}{about}, or nothing to add it later", variable.name);
                if let Some(answer) = self.answer(&Question { text: &text, is_secret }) {
                    variable.value = match is_secret {
                        true => VariableValue::Secret(answer),
                        false => VariableValue::Text(answer),
                    };
                }
            }
        }
    }

    /// The entry as it is shown: secrets are placeholders.
    ///
    /// # Errors
    /// As of [`Planned::entry`].
    fn shown_entry(
        client: &Client,
        server: &ToInstall,
        planned: &Planned,
    ) -> std::result::Result<(Members, Vec<Value>), String> {
        let mut variables = planned.variables.clone();
        for variable in &mut variables {
            let is_hidden = match variable.value {
                VariableValue::Secret(_) | VariableValue::Missing => true,
                VariableValue::Reference => client.reference == Reference::None,
                VariableValue::Text(_) => false,
            };
            if is_hidden {
                // no value belongs there in a file that is committed
                let is_left_out = planned.is_for_project && variable.is_secret;
                variable.value = match is_left_out {
                    true => VariableValue::Missing,
                    false => VariableValue::Text(format!("<{}>", variable.name)),
                };
            }
        }
        let (mut members, inputs) = planned.entry(client, &variables, &server.name)?;
        members.retain(|(member, _)| !(planned.is_for_project && client.is_of_user(member)));
        Ok((members, inputs))
    }

    /// The same as the text of a file.
    ///
    /// # Errors
    /// As of [`Planned::entry`].
    fn shown_text(
        client: &Client,
        server: &ToInstall,
        planned: &Planned,
    ) -> std::result::Result<String, String> {
        let (members, inputs) = Self::shown_entry(client, server, planned)?;
        if client.format == Format::Yaml {
            return Ok(yaml_snippet(client.table, &server.name, &members));
        }
        let mut document = Document::parse(client.format, "")?;
        document.set(client.table, &server.name, &members, Change::Replace);
        document.add_inputs(&inputs)?;
        Ok(document.text())
    }

    /// The entry, its place and the link.
    fn print(
        &self,
        client: &Client,
        server: &ToInstall,
        planned: &Planned,
        path: &Path,
    ) -> std::result::Result<String, String> {
        let shown = Self::shown_text(client, server, planned)?;
        let mut text = format!("{} reads `{}`:\n\n", client.title, self.around.shown(path));
        text += shown.trim_end();
        text.push('\n');
        let mut notes = notes_of(client, server, planned, &self.around.shown(path), true);
        if let Some(link) = client.link {
            // a link has no value that a placeholder stands for
            let is_in_link = |variable: &&Variable| match variable.value {
                _ if client.id == "goose" => false,
                VariableValue::Text(_) => true,
                VariableValue::Reference => client.reference != Reference::None,
                VariableValue::Secret(_) | VariableValue::Missing => false,
            };
            let variables: Vec<Variable> = planned.variables.iter().filter(is_in_link).cloned().collect();
            let absent = planned.variables.iter().filter(|variable| !is_in_link(variable));
            let absent: Vec<String> = absent.map(|variable| format!("`{}`", variable.name)).collect();
            if !absent.is_empty() {
                notes +=
                    &format!("note: the link has no {}: add it to the entry afterwards\n", absent.join(", "));
            }
            let (members, inputs) = planned.entry(client, &variables, &server.name)?;
            let mut entry = to_object(&members);
            if !inputs.is_empty() {
                entry[document::INPUTS] = inputs.into();
            }
            let link = link(&server.name, &entry);
            let _result = write!(text, "\nor open {link}\n");
            if client.id == "vscode" {
                let page = link::on_page(&link);
                let mut own = entry;
                own["name"] = server.name.as_str().into();
                let _result = write!(
                    text,
                    "\nor, on a page that opens no such links, {page}\n\nor run code --add-mcp {}\n",
                    quoted(&own.to_string())
                );
            }
        }
        if !notes.is_empty() {
            text.push('\n');
            text += &notes;
        }
        Ok(text)
    }

    /// Adds or removes an entry; begins again with what other programs have written meanwhile.
    fn install_in_file(
        &mut self,
        client: &Client,
        server: &ToInstall,
        options: &Options,
        planned: &Planned,
        path: &Path,
    ) -> std::result::Result<String, String> {
        let shown = self.around.shown(path);
        for _ in 0..MAX_ATTEMPTS {
            let file = self.read(path, options)?;
            let edit = self.edit(client, server, options, planned, (&file, &shown), !options.dry_run);
            let edit = edit.map_err(|problem| self.in_file(path, &problem))?;
            let mut written = None;
            if let Some(text) = edit.text.as_ref().filter(|_| !options.dry_run) {
                match file.replace(text).map_err(|problem| self.in_file(path, &problem))? {
                    Replaced::Done(copy) => written = Some(self.copied(copy)),
                    Replaced::Changed => continue,
                }
            }
            return Ok(edit.report(&server.name, &shown, written.as_deref()));
        }
        Err(self.in_file(path, "other programs change it all the time\ntry again"))
    }

    /// What is to become of a file, which is `shown` as that; `may_ask` whether the user can be asked for values.
    ///
    /// # Errors
    /// The file has another server of that name, or it cannot have this one.
    fn edit(
        &mut self,
        client: &Client,
        server: &ToInstall,
        options: &Options,
        planned: &Planned,
        (file, shown): (&TextFile, &str),
        may_ask: bool,
    ) -> std::result::Result<Edit, String> {
        let mut document = Document::parse(client.format, file.text()?)?;
        let present = document.get(client.table, &server.name)?;
        let is_same = match (&present, &planned.launch) {
            (Some(present), Some(_)) => is_same_server(present, &planned.entry(client, &[], &server.name)?.0),
            _ => true,
        };
        if !is_same && !options.force {
            return Err(another(&server.name));
        }
        if options.remove {
            let Some(present) = present else {
                return Ok(Edit { outcome: Outcome::Absent, text: None, notes: String::new() });
            };
            document.remove(client.table, &server.name);
            document.remove_inputs(&server.name, &present);
            let text = document.text();
            Self::verify(client, server, &text, None)?;
            return Ok(Edit { outcome: Outcome::Removed, text: Some(text), notes: String::new() });
        }
        let kept = present.clone().filter(|_| is_same).unwrap_or_default();
        let mut resolved = planned.clone();
        self.resolve(client, options, may_ask, &mut resolved.variables, &kept);
        let (mut members, inputs) = resolved.entry(client, &resolved.variables, &server.name)?;
        keep_forwarded(client, &mut members, &kept);
        let change = if is_same && present.is_some() { Change::Merge } else { Change::Replace };
        let before = document.text();
        document.set(client.table, &server.name, &members, change);
        document.add_inputs(&inputs)?;
        let mut text = document.text();
        // a new file ends with a line end, and one that is there as it did
        if before.trim().is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if client.reads_plain_json() && serde_json::from_str::<Value>(&text).is_err() {
            resolved.notes.push(format!(
                "`{shown}` has comments or trailing commas, which {} may refuse: remove them",
                client.title
            ));
        }
        let notes = notes_of(client, server, &resolved, shown, false);
        if text == before && file.exists() {
            return Ok(Edit { outcome: Outcome::Present, text: None, notes });
        }
        Self::verify(client, server, &text, Some(&members))?;
        let entry = Self::shown_text(client, server, &resolved)?;
        Ok(Edit { outcome: Outcome::Added(entry), text: Some(text), notes })
    }

    /// The problem with a file that was not changed.
    fn in_file(&self, path: &Path, problem: &str) -> String {
        format!("`{}` is as it was: {problem}", self.around.shown(path))
    }

    /// Reads a file of the project in this folder, or of the user.
    ///
    /// # Errors
    /// It cannot be read, or the project leads out of itself.
    fn read(&self, path: &Path, options: &Options) -> std::result::Result<TextFile, String> {
        TextFile::read(path, options.project.then_some(&*self.around.folder))
    }

    fn copied(&self, copy: Option<PathBuf>) -> String {
        copy.map_or(String::new(), |copy| format!("; the file as it was is `{}`", self.around.shown(&copy)))
    }

    /// Reads a changed text again, as the client will.
    ///
    /// # Errors
    /// The change did not do what it should.
    fn verify(
        client: &Client,
        server: &ToInstall,
        text: &str,
        members: Option<&Members>,
    ) -> std::result::Result<(), String> {
        let wrong =
            || "it is written in a way that cannot be changed here; `--print` shows what to add".to_owned();
        let present = Document::parse(client.format, text)
            .and_then(|document| document.get(client.table, &server.name))
            .map_err(|_| wrong())?;
        let is_right = match (present, members) {
            (None, None) => true,
            (Some(present), Some(members)) => contains(&present, &to_object(members)),
            _ => false,
        };
        if is_right { Ok(()) } else { Err(wrong()) }
    }
}

/// An entry in YAML, which is printed and not written: each value as JSON, which is YAML as well.
fn yaml_snippet(table: &str, name: &str, members: &Members) -> String {
    let mut text = format!("{table}:\n  {}:\n", Value::from(name));
    for (member, value) in members {
        let _result = writeln!(text, "    {member}: {value}");
    }
    text
}

/// A text as a shell reads it.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
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

fn another(name: &str) -> String {
    format!(
        "another server is named `{name}`\n`--force` replaces it, and `--name` is another name for this one"
    )
}

fn to_object(members: &Members) -> Value {
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

/// Whether a value has everything that another one has.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => {
            part.iter().all(|(key, part)| value.get(key).is_some_and(|value| contains(value, part)))
        }
        _ => value == part,
    }
}

/// Keeps the variables that an entry passes on already.
fn keep_forwarded(client: &Client, members: &mut Members, kept: &Value) {
    let Reference::Forwarded(key) = client.reference else { return };
    let Some((_, Value::Array(own))) = members.iter_mut().find(|(own, _)| *own == key) else { return };
    let old: Vec<Value> = kept[key].as_array().cloned().unwrap_or_default();
    let new: Vec<Value> = own.iter().filter(|name| !old.contains(name)).cloned().collect();
    *own = old.into_iter().chain(new).collect();
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

/// The steps that are left for the user; a printed entry has placeholders.
fn notes_of(client: &Client, server: &ToInstall, planned: &Planned, file: &str, is_printed: bool) -> String {
    let mut text = String::new();
    for Variable { name, value, description, is_secret, .. } in &planned.variables {
        let about = if description.is_empty() { String::new() } else { format!(" ({description})") };
        let title = client.title;
        let is_left_out = match (value, client.reference) {
            (VariableValue::Missing, _) | (VariableValue::Reference, Reference::None) => true,
            (VariableValue::Secret(_), _) => is_printed,
            _ => false,
        };
        if is_left_out && planned.is_for_project && *is_secret {
            let _result = writeln!(
                text,
                "to do: `{name}`{about} is secret, {title} cannot refer to it, and `{file}` is committed: install without `--project`, everyone on their own"
            );
            continue;
        }
        if is_left_out && is_printed {
            let _result = writeln!(text, "to do: write the value of `{name}`{about} in place of `<{name}>`");
            continue;
        }
        let _result = match (value, client.reference) {
            (VariableValue::Missing, _) | (VariableValue::Reference, Reference::None) => {
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
    for note in &planned.notes {
        let _result = writeln!(text, "note: {note}");
    }
    text
}
