//! The author's loop: this program is what the client starts, and the server behind it is built and started again on every
//! save. The client's pipe stays open, whatever becomes of the server. stdout has the protocol and nothing else.

mod author;
mod backlog;
mod calls;
mod child;
mod known_tools;
mod launch;
mod listing;
mod members;
mod message;
mod page;
mod replay;
mod secrets;
mod session;
mod session_log;
mod trace;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Arg, ArgAction, ArgMatches, Command};
use mcp_runtime::__dev::signalled;
use tokio::{io::BufReader, sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Outcome, read_text, report,
    server::{is_url, read_env},
};
use child::{QUEUE, read_lines, write_lines};
use known_tools::KnownTools;
use launch::{Program, Source};
use session::{LIST_WAIT, Pipe, Session};
use trace::{Mask, Trace};

/// How long the client may take to read the last messages.
const LAST_MESSAGES: Duration = Duration::from_secs(5);

const HELP: &str = "\
Without `--` and a command, the server is the program of the crate in this folder: it is built, and built again when a file
of it is saved. A command is restarted when a file named on its command line, or by `--watch`, changes.

  mcp-dev install claude-code     a client that keeps its connection while you work
  mcp-dev -- python3 server.py
  mcp-dev --bin server --arg serve";

/// The command line of the loop, as the command `dev`.
pub(crate) fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("dev")
        .about(
            "Connect a client to a server that is rebuilt and restarted on every save; the default",
        )
        .override_usage("mcp-dev [dev] [OPTIONS] [-- COMMAND..]")
        .after_help(HELP)
        .args([
            text("dir", "DIR", "The folder of the crate or command, instead of this one"),
            text("package", "NAME", "The package of the workspace").short('p'),
            text("bin", "NAME", "The program of the crate"),
            text("example", "NAME", "An example of the crate, instead of a program"),
            text("features", "LIST", "Features of the crate"),
            flag("release", "Build with optimizations"),
            text("arg", "WORD", "An argument of the crate's program")
                .action(ArgAction::Append)
                .allow_hyphen_values(true),
            text("env", "K=V", "A variable of the server's process").action(ArgAction::Append),
            text("watch", "PATH", "A file or folder whose changes restart the command")
                .action(ArgAction::Append),
            flag(
                "retry-safe",
                "Send calls of read-only and idempotent tools to the new process instead of failing them",
            ),
            text(
                "log",
                "FILE",
                "Append messages to this file, one JSON object a line; secrets are masked",
            ),
            text("secret", "NAME", "An argument to mask in the log and the page, in addition to those that a schema marks")
                .action(ArgAction::Append),
            flag("values", "Mask nothing in the log and the page"),
            text(
                "list-wait",
                "SECONDS",
                "How long the first calls wait for the list of tools, which says what to mask; 0 for not at all [default: 5]",
            )
            .value_parser(clap::value_parser!(u64).range(..=600)),
            text("port", "PORT", "The port of the page, instead of a free one")
                .value_parser(clap::value_parser!(u16).range(1..)),
            flag("no-page", "Serve no page"),
            Arg::new("server").last(true).num_args(0..).value_name("COMMAND").help("The server"),
        ])
}

/// The arguments of this program, with the command `dev` where none is named.
pub(crate) fn with_default_command(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let is_own = |first: &str| matches!(first, "-h" | "--help" | "-V" | "--version");
    match arguments.get(1).and_then(|first| first.to_str()) {
        Some(first) if is_own(first) => {}
        Some(first) if !first.starts_with('-') => {}
        _ => arguments.insert(1.min(arguments.len()), "dev".into()),
    }
    arguments
}

/// The arguments of `install` in the folder of a crate: this program is what the client starts there, unless a server is named.
pub(crate) fn with_loop(mut arguments: Vec<String>) -> Vec<String> {
    let has = |name: &str| {
        arguments.iter().any(|argument| argument == name || argument.starts_with(&format!("{name}=")))
    };
    // what is removed by its name need not be this program
    let names_server =
        ["--", "--http", "--help", "-h"].into_iter().any(has) || (has("--remove") && has("--name"));
    let (false, Ok(manifest), Ok(folder)) =
        (names_server, read_text(Path::new("Cargo.toml")), std::env::current_dir())
    else {
        return arguments;
    };
    let is_for_project = has("--project");
    if !has("--name") {
        arguments.extend(["--name".to_owned(), name_of_crate(&manifest, &folder)]);
    }
    arguments.push("--".to_owned());
    let program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    match (program, folder.into_os_string().into_string()) {
        // the file of a project is committed, and its clients start servers in its folder
        (Some(program), Ok(folder)) if !is_for_project => {
            arguments.extend([program, "dev".to_owned(), "--dir".to_owned(), folder]);
        }
        _ => arguments.extend(["mcp-dev", "dev"].map(str::to_owned)),
    }
    arguments
}

/// The path of the program that cargo builds of the crate in this folder.
pub(crate) fn program_of_crate() -> Option<String> {
    let (manifest, folder) = (read_text(Path::new("Cargo.toml")).ok()?, std::env::current_dir().ok()?);
    if !manifest.lines().any(|line| line.trim() == "[package]") {
        return None;
    }
    // in a workspace, both are in the folder of its root
    let levels = folder.ancestors().position(|folder| folder.join("Cargo.lock").is_file());
    let root = "../".repeat(levels.unwrap_or_default());
    Some(format!("{root}target/debug/{}", name_of_crate(&manifest, &folder)))
}

/// The name of the package, or of the folder of a workspace without one.
fn name_of_crate(manifest: &str, folder: &Path) -> String {
    let package = manifest.lines().map(str::trim).skip_while(|line| *line != "[package]").skip(1);
    let name = package.take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "name").then(|| value.trim().trim_matches('"').to_owned())
    });
    let name = name.or_else(|| Some(folder.file_name()?.to_string_lossy().into_owned())).unwrap_or_default();
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = name.chars().take(64).map(|c| if is_kept(c) { c } else { '-' }).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

/// What the arguments say.
struct Options {
    source: Source,
    env: Vec<(String, String)>,
    retry_safe: bool,
    list_wait: Duration,
    log: Option<PathBuf>,
    secrets: Vec<String>,
    shows_values: bool,
    /// The port of the page; 0 for any.
    port: Option<u16>,
    /// The words that start the server.
    command: Vec<String>,
}

impl Options {
    /// # Errors
    /// Arguments contradict each other; the message has no value.
    fn read(arguments: &ArgMatches) -> Result<Self, &'static str> {
        let texts = |name: &str| arguments.get_many::<String>(name).unwrap_or_default().cloned();
        let env = read_env(arguments)?;
        let words: Vec<String> = texts("server").collect();
        let mut build = Vec::new();
        for option in ["package", "bin", "example", "features"] {
            if let Some(value) = arguments.get_one::<String>(option) {
                build.extend([format!("--{option}"), value.clone()]);
            }
        }
        build.extend(arguments.get_flag("release").then(|| "--release".to_owned()));
        let own: Vec<String> = texts("arg").collect();
        let mut paths: Vec<PathBuf> = texts("watch").map(PathBuf::from).collect();
        if matches!(words.as_slice(), [url] if is_url(url)) {
            return Err(
                "the loop starts its server itself, over stdio: name a command; `mcp-dev list`, `call` and others take a URL",
            );
        }
        let source = match words.split_first() {
            Some(_) if !build.is_empty() || !own.is_empty() => {
                return Err("options of a crate and `-- COMMAND` are two servers: name one");
            }
            Some((program, arguments)) => {
                paths.extend(files_of(&words));
                let program = PathBuf::from(program);
                Source::Command {
                    program: Program { program, arguments: arguments.to_vec(), env: env.clone() },
                    paths,
                }
            }
            None if !paths.is_empty() => {
                return Err("`--watch` is for a command: a crate's own files are watched");
            }
            None if !Path::new("Cargo.toml").is_file() => {
                return Err(
                    "a server is missing: `mcp-dev -- COMMAND`, or `mcp-dev` in the folder of a crate",
                );
            }
            None => Source::Crate { build, arguments: own, env: env.clone() },
        };
        Ok(Self {
            source,
            env,
            retry_safe: arguments.get_flag("retry-safe"),
            list_wait: arguments
                .get_one::<u64>("list-wait")
                .map_or(LIST_WAIT, |seconds| Duration::from_secs(*seconds)),
            log: texts("log").next().map(PathBuf::from),
            secrets: texts("secret").collect(),
            shows_values: arguments.get_flag("values"),
            port: (!arguments.get_flag("no-page"))
                .then(|| arguments.get_one::<u16>("port").copied().unwrap_or_default()),
            command: words,
        })
    }
}

/// The files that a command names.
fn files_of(words: &[String]) -> Vec<PathBuf> {
    words.iter().map(PathBuf::from).filter(|path| path.is_file()).collect()
}

/// Runs until the client is gone.
///
/// # Errors
/// The process cannot be set up.
pub(crate) fn run(arguments: &ArgMatches) -> Outcome {
    if let Some(folder) = arguments.get_one::<String>("dir") {
        std::env::set_current_dir(folder)
            .map_err(|error| format!("`{folder}` cannot be entered: {error}"))?;
    }
    let options = match Options::read(arguments) {
        Ok(options) => options,
        Err(message) => {
            report(&format!("error: {message}"));
            return Ok(ExitCode::from(2));
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(run_until_signal(options));
    // a thread that waits for stdin must not delay the exit
    runtime.shutdown_background();
    outcome
}

async fn run_until_signal(options: Options) -> Outcome {
    let token = CancellationToken::new();
    let mut work = tokio::spawn(work(options, token.clone()));
    tokio::select! {
        outcome = &mut work => outcome?,
        number = signalled() => {
            token.cancel();
            // processes end before this one does
            let _ended = timeout(LAST_MESSAGES * 2, work).await;
            Ok(ExitCode::from(128 + number))
        }
    }
}

async fn work(options: Options, token: CancellationToken) -> Outcome {
    let values = options.env.iter().flat_map(|(name, value)| {
        let in_url = secrets::secrets_of_variable(name, value);
        in_url.into_iter().chain([value.clone()])
    });
    let own = match &options.source {
        Source::Crate { arguments, .. } => arguments.as_slice(),
        Source::Command { .. } => &[],
    };
    let words = trace::masked_words(&[&options.command[..], own].concat()).1;
    let values = values.chain(words).chain(secrets::secret_variables());
    let mask = Mask::new(options.shows_values, &options.secrets, values);
    let trace = Trace::new(mask);
    if let Some(path) = &options.log {
        let file = async {
            let path = mcp_runtime::__dev::resolve(path)?;
            tokio::fs::OpenOptions::new().create(true).append(true).open(path).await
        };
        let file = file.await.map_err(|error| format!("`{}` cannot be written: {error}", path.display()))?;
        tokio::spawn(trace.clone().write(file));
    }
    let tools = KnownTools::default();
    let (own_requests, requests) = mpsc::channel(QUEUE);
    let launcher = launch::watch(options.source, trace.clone());
    if let Some(port) = options.port {
        let sources = page::Sources {
            trace: trace.clone(),
            launcher: launcher.clone(),
            tools: tools.clone(),
            command: options.command,
            env: options.env,
            client: own_requests,
            shows_values: options.shows_values,
        };
        page::serve(port, sources).await;
    }
    let (lines, from) = mpsc::channel(QUEUE);
    let (to, answers) = mpsc::channel(QUEUE);
    tokio::spawn(read_lines(
        BufReader::new(tokio::io::stdin()),
        lines,
        "the client",
        token.clone().cancelled_owned(),
    ));
    let writer = tokio::spawn(write_lines(tokio::io::stdout(), answers));
    let (retry_safe, list_wait) = (options.retry_safe, options.list_wait);
    let session =
        Session::new("client".to_owned(), launcher, trace, tools, retry_safe, list_wait, Pipe { from, to });
    session.with_own_requests(requests).run(token).await;
    // its client may read slowly, or not at all
    let _unread = timeout(LAST_MESSAGES, writer).await;
    Ok(ExitCode::SUCCESS)
}
