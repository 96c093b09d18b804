//! The server of a command: a process or a URL, as the arguments name it.

use std::{
    borrow::Cow,
    io::IsTerminal as _,
    process::{self, ExitCode, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use clap::{Arg, ArgAction, ArgMatches, Command};
use indicatif::{ProgressBar, ProgressStyle};
use mcp_runtime::{
    __dev::visible,
    client::{
        Client, ClientBuilder, ElicitAnswer, Error, ProgressUpdate, UrlRequest, end_children_on_signal,
    },
};
use serde_json::{Value, json};

use crate::{Failure, Outcome, dev, report};

/// The token that is sent to servers over HTTP.
const TOKEN: &str = "MCP_TOKEN";
/// How long a program may take to print its schema.
const SCHEMA_TIME: Duration = Duration::from_secs(60);
/// The limits of the client in time, which `--timeout` raises.
const LONGEST_CALL: Duration = Duration::from_secs(60 * 60);
const LONGEST_CONNECT: Duration = Duration::from_secs(5 * 60);
/// The beginning of a line of stdout that is kept.
const MAX_STRAY: usize = 120;

const HELP: &str = "\
The server is what follows `--`: a command and its arguments, or a URL.
A command gets the environment of this shell.";

/// A command that needs a server, with arguments besides those that name it.
pub(crate) fn command(name: &'static str, about: &'static str, own: Vec<Arg>) -> Command {
    let env = Arg::new("env").long("env").value_name("K=V").action(ArgAction::Append);
    let header = Arg::new("header").long("header").value_name("NAME: VALUE").action(ArgAction::Append);
    let timeout = Arg::new("timeout").long("timeout").value_name("SECONDS").default_value("60");
    let timeout = timeout.value_parser(clap::value_parser!(u64).range(1..=86_400));
    Command::new(name).about(about).after_help(HELP).args(own).args([
        Arg::new("http").long("http").value_name("URL").help("The server at this URL"),
        env.help("A variable of the server's process"),
        header.help("A header of requests to the URL; MCP_TOKEN is sent as a bearer token"),
        timeout.help("The time limit of a request"),
        // positional arguments are in this order, and this one is the last
        Arg::new("server").last(true).num_args(0..).value_name("SERVER").help("The server"),
    ])
}

/// Connects to the server that the arguments name, and closes the connection after the use of it.
///
/// # Errors
/// The server cannot be reached, or the use of it fails.
pub(crate) fn with_client(arguments: &ArgMatches, run: impl AsyncFnOnce(&Client) -> Outcome) -> Outcome {
    with_client_and_output(arguments, async |client, _| run(client).await)
}

/// The same, with the lines of the server's output that are not messages.
///
/// # Errors
/// The server cannot be reached, or the use of it fails.
pub(crate) fn with_client_and_output(
    arguments: &ArgMatches,
    run: impl AsyncFnOnce(&Client, &StrayLines) -> Outcome,
) -> Outcome {
    let options = match ServerOptions::read(arguments) {
        Ok(options) => options,
        Err(message) => {
            report(&format!("error: {message}"));
            return Ok(ExitCode::from(2));
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let lines = StrayLines::default();
        let client = options.connect(&lines).await?;
        let outcome = run(&client, &lines).await;
        client.close().await;
        outcome
    });
    let outcome = outcome.map_err(in_words_of_options);
    // a thread that waits for the keyboard must not delay the exit
    runtime.shutdown_background();
    outcome
}

/// The lines of a server's output that are not messages.
#[derive(Clone, Default)]
pub(crate) struct StrayLines(Arc<Mutex<(u64, String)>>);

impl StrayLines {
    pub(crate) fn add(&self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 == 0 {
            kept.1 = line.trim().chars().take(MAX_STRAY).collect();
        }
        kept.0 += 1;
    }

    /// Their number, and the beginning of the first one.
    pub(crate) fn seen(&self) -> Option<(u64, String)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.0 > 0).then(|| kept.clone())
    }
}

/// The same error, with the option of this program that raises a limit in time.
fn in_words_of_options(failure: Failure) -> Failure {
    failure.downcast_ref::<Error>().map(explained).map_or(failure, Into::into)
}

/// The text of an error, with the option of this program that raises a limit in time.
pub(crate) fn explained(error: &Error) -> String {
    let text = error.to_string();
    match error {
        Error::Timeout { option: Some(option), .. } => {
            text.replace(&format!("raise `{option}`"), "raise `--timeout SECONDS`")
        }
        _ => text,
    }
}

/// Without `Debug`: headers and variables may be secret.
pub(crate) struct ServerOptions {
    target: Target,
    env: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    timeout: Duration,
}

enum Target {
    Command(Vec<String>),
    Url(String),
}

impl ServerOptions {
    /// # Errors
    /// No server is named, or a value is not what it should be; the message has none of the value.
    pub(crate) fn read(arguments: &ArgMatches) -> Result<Self, Cow<'static, str>> {
        let texts = |name: &str| arguments.get_many::<String>(name).unwrap_or_default().cloned();
        let words: Vec<String> = texts("server").collect();
        let target = match (arguments.get_one::<String>("http"), words.as_slice()) {
            (Some(_), [_, ..]) => return Err("`--http URL` and `-- SERVER` are two servers: name one".into()),
            (Some(url), []) if is_url(url) => Target::Url(url.clone()),
            (Some(_), []) => return Err("`--http` needs a URL: `--http https://example.com/mcp`".into()),
            (None, []) => {
                let missing = "a server is missing: `-- COMMAND`, or `-- URL`";
                return Err(match dev::program_of_crate() {
                    Some(program) => {
                        format!("{missing}; the one of this crate, once it is built: `-- {program}`").into()
                    }
                    None => missing.into(),
                });
            }
            (None, [url]) if is_url(url) => Target::Url(url.clone()),
            (None, words) => Target::Command(words.to_vec()),
        };
        let headers = texts("header").map(|text| pair(&text, ':')).collect::<Option<Vec<_>>>();
        let seconds = arguments.get_one::<u64>("timeout").copied().unwrap_or(60);
        Ok(Self {
            target,
            env: read_env(arguments)?,
            headers: headers.ok_or("`--header` needs a name and a value: `--header 'Name: value'`")?,
            timeout: Duration::from_secs(seconds),
        })
    }

    /// # Errors
    /// The server cannot be started or reached, or does not speak the protocol.
    async fn connect(&self, lines: &StrayLines) -> Result<Client, Failure> {
        end_children_on_signal();
        let (timeout, lines) = (self.timeout, lines.clone());
        let mut builder = Client::builder()
            .info("mcp-dev", env!("CARGO_PKG_VERSION"))
            .inherit_environment()
            .request_timeout(timeout)
            .timeout(timeout.max(LONGEST_CALL))
            .limits(|limits| {
                let longest = timeout.max(LONGEST_CONNECT);
                limits.connect_timeout(longest).list_timeout(longest)
            })
            .__on_stray_line(move |line| lines.add(&line))
            .on_log(|log| {
                let text = log.data.as_str().map_or_else(|| log.data.to_string(), str::to_owned);
                report(&format!("{}: {text}", log.level));
            });
        for (name, value) in &self.env {
            builder = builder.env(name, value);
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value.trim());
        }
        let builder = answer_in_terminal(builder);
        let client = match &self.target {
            Target::Url(url) => {
                let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
                let builder = match token {
                    Some(token) => builder.bearer_token(&token),
                    None => builder,
                };
                builder.connect(url.as_str()).await?
            }
            Target::Command(words) => {
                let (program, arguments) = words.split_first().ok_or("a command is missing")?;
                let mut command = process::Command::new(program);
                command.args(arguments);
                builder.connect(command).await?
            }
        };
        Ok(client)
    }

    /// What the command `schema --json` of a program of `mcp-runtime` prints; `None` of any other server.
    pub(crate) async fn own_schema(&self) -> Option<Value> {
        let Target::Command(words) = &self.target else { return None };
        let (program, arguments) = words.split_first()?;
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).envs(self.env.iter().map(|(name, value)| (name, value)));
        printed_schema(command).await.ok().filter(|schema| schema["scopes"].is_object())
    }
}

/// What a program of `mcp-runtime` prints with `schema --json`.
///
/// # Errors
/// It fails, takes too long, or prints something else.
pub(crate) async fn printed_schema(mut command: tokio::process::Command) -> Result<Value, Failure> {
    let shown = format!("`{} schema --json`", command.as_std().get_program().display());
    command.args(["schema", "--json"]).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(SCHEMA_TIME, command.output()).await;
    let late = |_| format!("{shown} takes longer than {} s", SCHEMA_TIME.as_secs());
    let output = ended.map_err(late)?.map_err(|error| format!("{shown} cannot be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("{shown} fails: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let wrong = |error| format!("{shown} does not print JSON: {error}");
    Ok(serde_json::from_slice(&output.stdout).map_err(wrong)?)
}

/// The variables that `--env` gives to the server's process.
///
/// # Errors
/// A name or a value is missing; the message has nothing of it.
pub(crate) fn read_env(arguments: &ArgMatches) -> Result<Vec<(String, String)>, &'static str> {
    let given = arguments.get_many::<String>("env").unwrap_or_default();
    let env: Option<_> = given.map(|text| pair(text, '=')).collect();
    env.ok_or("`--env` needs a name and a value: `--env NAME=VALUE`")
}

fn pair(text: &str, separator: char) -> Option<(String, String)> {
    let (name, value) = text.split_once(separator)?;
    Some((name.trim().to_owned(), value.to_owned())).filter(|(name, _)| !name.is_empty())
}

/// Whether a word is the URL of a server over HTTP.
pub(crate) fn is_url(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.starts_with("http://") || text.starts_with("https://")
}

/// The same client, which asks its user what the server asks, if there is a terminal.
fn answer_in_terminal(builder: ClientBuilder) -> ClientBuilder {
    if !std::io::stdin().is_terminal() {
        return builder;
    }
    async fn ask(params: Value) -> Result<ElicitAnswer, Failure> {
        // on a thread: the connection goes on while the user types
        let answer =
            tokio::task::spawn_blocking(move || mcp_runtime::__dev::answer_question(&params)).await??;
        Ok(match answer["action"].as_str() {
            Some("accept") => ElicitAnswer::Accept(answer["content"].clone()),
            Some("decline") => ElicitAnswer::Decline,
            _ => ElicitAnswer::Cancel,
        })
    }
    let or_cancel = |answer: Result<ElicitAnswer, Failure>| answer.unwrap_or(ElicitAnswer::Cancel);
    builder
        .on_elicit(move |form| async move {
            or_cancel(ask(json!({ "message": form.message, "requestedSchema": form.schema })).await)
        })
        .on_elicit_url(move |request: UrlRequest| async move {
            or_cancel(ask(json!({ "mode": "url", "message": request.message, "url": request.url })).await)
        })
}

/// The progress of a call: a bar in a terminal, and lines elsewhere.
#[derive(Clone)]
pub(crate) struct Progress(Option<Arc<ProgressBar>>);

impl Progress {
    pub(crate) fn new() -> Self {
        let is_shown = std::io::stderr().is_terminal();
        Self(is_shown.then(|| Arc::new(ProgressBar::no_length())))
    }

    pub(crate) fn update(&self, update: &ProgressUpdate) {
        let message = visible(update.message.as_deref().unwrap_or_default());
        let Some(bar) = &self.0 else {
            let total = update.total.map(|total| format!("/{total}")).unwrap_or_default();
            report(format!("progress: {}{total} {message}", update.progress).trim_end());
            return;
        };
        // parts of a whole, in thousands: progress may be a fraction
        let template = match update.total {
            Some(total) if total > 0.0 => {
                bar.set_length(1000);
                bar.set_position(((update.progress / total).clamp(0.0, 1.0) * 1000.0) as u64);
                "{elapsed} {bar:30} {percent}% {msg}"
            }
            _ => {
                bar.set_position(update.progress.max(0.0) as u64);
                "{elapsed} {spinner} {pos} {msg}"
            }
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(message);
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
