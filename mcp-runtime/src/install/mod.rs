//! The command `install`: adds a server to a client, by an entry in its file. The rest of a file stays as it is, byte for byte;
//! a file that cannot be read as what it should be is left alone; another server of the same name is kept; a secret is in no
//! output, and in no argument of a process, since `install` starts none: other users can read those.

mod client;
mod document;
mod edit;
mod link;
mod options;
mod plan;
mod problem;
mod questions;
mod surroundings;
#[cfg(test)]
mod tests;
mod write;

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use client::{CLIENTS, Client, Way};
use edit::Edit;
use options::{Options, is_name, usage};
use plan::Plan;
pub(crate) use plan::sounds_secret;
use problem::Problem;
use questions::{Question, Questions, ask_in_terminal};
use surroundings::Surroundings;

use crate::core::server::{Error, Result, Server, SettingToInstall};

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
        return Err(usage_error(program, &Problem::NoServer.to_string()));
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
    run_options(&server, &options, &around)
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
    run_options(&to_install, &options, &around)
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

fn run_options(server: &ToInstall, options: &Options, around: &Surroundings) -> Result<()> {
    let mut ask = ask_in_terminal;
    let mut questions = Questions::new(&mut ask);
    let client = match &options.client {
        Some(name) => Client::named(name),
        None => choose(server, around, &mut questions),
    };
    let client = client.map_err(|message| usage_error(&server.program, &message))?;
    let job = Job { client, server, options, around };
    let report = job.run(&mut questions).map_err(|problem| Error::call(problem.to_string()))?;
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

/// What the command line asks for: a server in the files of a client.
#[derive(Clone, Copy)]
struct Job<'j> {
    client: &'static Client,
    server: &'j ToInstall,
    options: &'j Options,
    around: &'j Surroundings,
}

impl Job<'_> {
    /// Adds or removes the server; returns what was done.
    ///
    /// # Errors
    /// Why nothing was, or why only a part was.
    fn run(self, questions: &mut Questions<'_>) -> std::result::Result<String, Problem> {
        let Self { client, server, options, around } = self;
        let files = self.files()?;
        if options.always_load && client.always_load.is_none() {
            return Err(Problem::NoAlwaysLoad(client.title));
        }
        let plan = Plan::new(self)?;
        let first = files.first().ok_or(Problem::NoFile(client.title))?;
        if options.print || (client.way == Way::Print && !options.remove) {
            return self.printed(&plan, first);
        }
        if client.way == Way::Print {
            let (server, file) = (server.name.clone(), around.shown(first));
            return Err(Problem::NotWritten { title: client.title, server, file });
        }
        // what stops one of several files stops all of them, before the first is written
        if files.len() > 1 {
            files.iter().try_for_each(|path| Edit::check(&plan, path))?;
        }
        let mut report = String::new();
        for path in &files {
            match Edit::carry_out(&plan, path, questions) {
                Ok(done) => report += &done,
                Err(problem) => return Err(Problem::Partly(report, Box::new(problem))),
            }
        }
        Ok(report)
    }

    /// The files that have the entry.
    fn files(self) -> std::result::Result<Vec<PathBuf>, Problem> {
        if !self.options.project {
            return Ok(self.client.user_files(self.around));
        }
        let file = self.client.project_file(self.around);
        file.map(|file| vec![file]).ok_or(Problem::NoProjectFile(self.client.title))
    }

    /// The entry, its place and the link.
    fn printed(self, plan: &Plan<'_>, path: &Path) -> std::result::Result<String, Problem> {
        let Self { client, server, around, .. } = self;
        let file = around.shown(path);
        let shown = plan.shown()?;
        let mut text = format!("{} reads `{file}`:\n\n{}\n", client.title, shown.trim_end());
        let mut notes = plan.notes(&file, true);
        if let Some(link) = client.link {
            let (mut entry, absent) = plan.linked()?;
            if !absent.is_empty() {
                let absent = absent.join("`, `");
                notes += &format!("note: the link has no `{absent}`: add it to the entry afterwards\n");
            }
            let link = link(&server.name, &entry);
            let _result = write!(text, "\nor open {link}\n");
            if client.id == "vscode" {
                let page = link::on_page(&link);
                entry["name"] = server.name.as_str().into();
                let _result = write!(
                    text,
                    "\nor, on a page that opens no such links, {page}\n\nor run code --add-mcp {}\n",
                    quoted(&entry.to_string())
                );
            }
        }
        if !notes.is_empty() {
            text.push('\n');
            text += &notes;
        }
        Ok(text)
    }
}

/// Asks which of the clients on this machine it is.
///
/// # Errors
/// None was chosen; the message lists those that are found.
fn choose(
    server: &ToInstall,
    around: &Surroundings,
    questions: &mut Questions<'_>,
) -> std::result::Result<&'static Client, String> {
    let found: Vec<&'static Client> = CLIENTS.iter().filter(|client| client.is_found(around)).collect();
    let list: String = found.iter().enumerate().fold(String::new(), |mut list, (index, client)| {
        let _result = write!(list, "\n  {}. {:15} {}", index + 1, client.id, client.title);
        list
    });
    if found.is_empty() {
        return Err("no client is found on this machine: name one".to_owned());
    }
    let text = format!("clients on this machine:{list}\nadd `{}` to which one", server.name);
    let Some(answer) = questions.answer(&Question { text: &text, is_secret: false }) else {
        return Err(format!("clients on this machine:{list}\nname one of them"));
    };
    match answer.parse::<usize>().ok().and_then(|number| found.get(number.checked_sub(1)?)) {
        Some(client) => Ok(client),
        None => Client::named(&answer),
    }
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

/// A text as a shell reads it.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
