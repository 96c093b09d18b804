//! `mcp-dev`, for authors of MCP servers in any language: calls a server by its command or URL, and adds it to clients.
//! Results go to stdout, everything else to stderr; the exit code is 1 if something failed, and 2 if the arguments are wrong.

mod call;
mod lock;
mod server;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{Arg, ArgAction, ArgMatches, Command};

use server::ServerOptions;

/// What went wrong, for people.
type Failure = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<ExitCode, Failure>;

const SERVER_HELP: &str = "\
The server is what follows `--`: a command and its arguments, or a URL.
A command gets the environment of this shell.";

fn command() -> Command {
    let json = || Arg::new("json").value_name("JSON").help("Its arguments, as an object");
    let with_server = |name: &'static str, about: &'static str, own: Vec<Arg>| {
        let env = Arg::new("env").long("env").value_name("K=V").action(ArgAction::Append);
        let header = Arg::new("header").long("header").value_name("NAME: VALUE").action(ArgAction::Append);
        let timeout = Arg::new("timeout").long("timeout").value_name("SECONDS").default_value("60");
        let timeout = timeout.value_parser(clap::value_parser!(u64).range(1..=86_400));
        Command::new(name).about(about).after_help(SERVER_HELP).args(own).args([
            Arg::new("http").long("http").value_name("URL").help("The server at this URL"),
            env.help("A variable of the server's process"),
            header.help("A header of requests to its URL; MCP_TOKEN is sent as a bearer token"),
            timeout.help("The longest that a request may take"),
            // positional arguments are in this order, and this one is the last
            Arg::new("server").last(true).num_args(0..).value_name("SERVER").help("The server"),
        ])
    };
    let name = |placeholder: &'static str| Arg::new("name").required(true).value_name(placeholder);
    let as_json =
        || Arg::new("as-json").long("json").action(ArgAction::SetTrue).help("Prints all of it, as JSON");
    let install = Command::new("install")
        .about("Adds a server to a client of this machine: `mcp-dev install --help`")
        .disable_help_flag(true)
        .arg(
            Arg::new("arguments")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_name("ARGUMENTS"),
        );
    Command::new("mcp-dev")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Calls MCP servers in any language, and adds them to clients")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            with_server("list", "Lists what a server offers", vec![as_json()]),
            with_server(
                "call",
                "Calls a tool; in a terminal you answer what it asks",
                vec![name("TOOL"), json(), as_json()],
            ),
            with_server("read", "Reads a resource", vec![name("URI")]),
            with_server("prompt", "Gets a prompt", vec![name("PROMPT"), json()]),
            with_server(
                "lock",
                "Writes what models and clients depend on into mcp.lock.json, or says what has changed",
                vec![
                    Arg::new("file").long("file").value_name("FILE").help("Another file"),
                    Arg::new("check")
                        .long("check")
                        .action(ArgAction::SetTrue)
                        .help("Writes nothing; the exit code is 1 if something breaks"),
                ],
            ),
            with_server("schema", "Prints everything that clients see, as JSON", Vec::new()),
            install,
        ])
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let outcome = match matches.subcommand() {
        Some(("install", arguments)) => install(arguments),
        Some((name, arguments)) => run(name, arguments),
        None => Ok(ExitCode::from(2)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            report(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line to stderr.
fn report(text: &str) {
    // a failed write cannot be reported anywhere
    let _result = writeln!(io::stderr(), "{text}");
}

/// Prints bytes to stdout.
fn print(bytes: &[u8]) -> Result<(), Failure> {
    match io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()) {
        // the reader, such as `head`, has exited
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn install(arguments: &ArgMatches) -> Outcome {
    let arguments = arguments.get_many::<String>("arguments").unwrap_or_default().cloned();
    match mcp_runtime::install::run("mcp-dev", arguments) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == mcp_runtime::ErrorKind::Usage => {
            report(&format!("error: {error}"));
            Ok(ExitCode::from(2))
        }
        Err(error) => Err(error.into()),
    }
}

fn run(name: &str, arguments: &ArgMatches) -> Outcome {
    let options = match ServerOptions::read(arguments) {
        Ok(options) => options,
        Err(message) => {
            report(&format!("error: {message}"));
            return Ok(ExitCode::from(2));
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let client = options.connect().await?;
        let outcome = match name {
            "lock" => lock::run(&client, arguments).await,
            _ => call::run(&client, name, arguments).await,
        };
        client.close().await;
        outcome
    });
    // a thread that waits for the keyboard must not delay the exit
    runtime.shutdown_background();
    outcome
}
