//! `mcp-dev`, for authors of MCP servers in any language: calls a server by its command or URL, adds it to clients, examines
//! it, holds its contract, and stays between a client and a server that changes. Results go to stdout, everything else to
//! stderr; the exit code is 1 if something failed, and 2 if the arguments are wrong.

mod call;
mod dev;
mod doctor;
mod examine;
mod folder;
mod install;
mod lock;
mod new;
mod package;
mod server;

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use clap::{ArgMatches, Command};
use mcp_runtime::__dev::{visible, visible_json};
use serde_json::Value;

/// What went wrong, for people.
type Failure = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<ExitCode, Failure>;
/// Runs a command with its arguments.
type Run = fn(&ArgMatches) -> Outcome;

/// Every command, in the order of the help.
fn commands() -> Vec<(Command, Run)> {
    let mut all = vec![(dev::command(), dev::run as Run), (new::command(), new::run)];
    all.extend(call::commands());
    all.extend([
        (doctor::command(), doctor::run as Run),
        (lock::command(), lock::run),
        (package::command(), package::run),
        (install::command(), install::run),
    ]);
    all
}

fn main() -> ExitCode {
    let (parsers, runs): (Vec<_>, Vec<_>) = commands().into_iter().unzip();
    let names: Vec<String> = parsers.iter().map(|parser| parser.get_name().to_owned()).collect();
    let matches = Command::new("mcp-dev")
        .version(env!("CARGO_PKG_VERSION"))
        .about(
            "For authors of MCP servers: call servers in any language, examine them, and add them to clients",
        )
        .override_usage("mcp-dev [OPTIONS] [-- COMMAND..]\n       mcp-dev <COMMAND>")
        .after_help("Without a command of these, it is `dev`: `mcp-dev dev --help` has its options.")
        .subcommand_required(true)
        .subcommands(parsers)
        .get_matches_from(dev::with_default_command(std::env::args_os()));
    let Some((name, arguments)) = matches.subcommand() else { return ExitCode::from(2) };
    let run = names.iter().zip(runs).find(|(known, _)| *known == name);
    match run.map_or(Ok(ExitCode::from(2)), |(_, run)| run(arguments)) {
        Ok(code) => code,
        Err(error) => {
            report(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Reads a text of the project, or another one that the user has named.
///
/// # Errors
/// Why it cannot be read; [`io::ErrorKind::NotFound`] is told apart.
fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(mcp_runtime::__dev::read_file(path)?).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Prints a line to stderr. Texts of servers in it do not control a terminal.
fn report(text: &str) {
    // a failed write cannot be reported anywhere
    let _result = writeln!(io::stderr(), "{}", visible(text));
}

/// Prints a value as JSON to stdout.
fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{}\n", visible_json(&format!("{value:#}"))))
}

/// Prints a text to stdout. Texts of servers in it do not control a terminal.
fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().write_all(visible(text).as_bytes()).and_then(|()| io::stdout().flush()) {
        // the reader, such as `head`, has exited
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
