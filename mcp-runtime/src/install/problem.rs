//! The reasons why a server is not added or removed, which become text where they are shown.

use std::fmt;

use super::client::CLIENTS;

#[derive(Debug)]
pub(super) enum Problem {
    /// There is neither a command nor a URL.
    NoServer,
    /// The client of that title has no file.
    NoFile(&'static str),
    /// The client of that title has no file in projects.
    NoProjectFile(&'static str),
    /// The client of that title loads all tools in one way.
    NoAlwaysLoad(&'static str),
    /// The client of that title reads no URLs.
    NoUrls(&'static str),
    /// The file of the client is printed only.
    NotWritten { title: &'static str, server: String, file: String },
    /// The flag of a secret setting has no value.
    NoFlagValue(String),
    /// The flag of a secret setting is given twice, and has this variable.
    FlagTwice(String, String),
    /// An argument for the file of a project that leads elsewhere on this machine.
    MachinePath(String),
    /// Another server has this name.
    Another(String),
    /// The file has what the crates that edit it cannot change.
    NotEditable,
    /// Other programs have changed the file at each attempt.
    Busy,
    /// What is wrong with a file, of the parsers and of the system.
    File(String),
    /// The file of that path was not changed.
    Unchanged(String, Box<Self>),
    /// Other files were changed before, with this report.
    Partly(String, Box<Self>),
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::File(text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer => f.write_str("a server is missing: `-- COMMAND`, or `--http URL`"),
            Self::NoFile(title) => write!(f, "{title} has no file"),
            Self::NoProjectFile(title) => {
                let others = CLIENTS.iter().filter(|client| !client.project.is_empty());
                let others: Vec<_> = others.map(|client| client.id).collect();
                write!(f, "{title} has no file in projects\nthese have: {}", others.join(", "))
            }
            Self::NoAlwaysLoad(title) => {
                write!(f, "{title} has no option to load tools at once\n`--always-load` is for `claude-code`")
            }
            Self::NoUrls(title) => {
                write!(f, "the file of {title} has no URLs\nadd the URL in its settings, as a connector")
            }
            Self::NotWritten { title, server, file } => {
                write!(f, "`{title}` is not written by this program\nremove `{server}` from `{file}`")
            }
            Self::NoFlagValue(flag) => write!(f, "`--{flag}` needs a value"),
            Self::FlagTwice(flag, variable) => {
                write!(f, "`--{flag}` is given twice\nwrite one `--env {variable}=..` before `--`")
            }
            Self::MachinePath(argument) => write!(
                f,
                "an argument of the command is a path of this machine: `{argument}`\n\
                 the file of a project is committed: write a path in the project"
            ),
            Self::Another(name) => write!(
                f,
                "another server is named `{name}`\n\
                 `--force` replaces it, and `--name` is another name for this one"
            ),
            Self::NotEditable => {
                f.write_str("it is written in a way that cannot be changed here; `--print` shows what to add")
            }
            Self::Busy => f.write_str("other programs change it all the time\ntry again"),
            Self::File(text) => f.write_str(text),
            Self::Unchanged(file, problem) => write!(f, "`{file}` is as it was: {problem}"),
            Self::Partly(report, problem) => write!(f, "{report}{problem}"),
        }
    }
}
