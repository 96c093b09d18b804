//! Parses the program's arguments, without a crate: a command has two arguments at most.

use std::{ffi::OsString, sync::Arc};

use serde_json::{Map, Value};

use crate::{core::connection::Principal, schema::nearest};

/// The default address of HTTP.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";
/// The issuer of a caller without a claim `iss`.
const ISSUER: &str = "urn:mcp-runtime:command-line";

#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// No arguments: stdio, after a welcome message if stdin is a terminal.
    Default,
    Stdio,
    Http(String),
    /// An action, and the caller that it runs as: as the host without a caller.
    Action(Action, Option<Arc<Principal>>),
    /// Adds the server to a client, by these options.
    #[cfg(feature = "install")]
    Install(Vec<String>),
    Describe(Description),
}

/// What a command prints of a server without calling it.
#[derive(Debug, PartialEq)]
pub(super) enum Description {
    Help,
    Version,
    #[cfg(feature = "config")]
    Settings,
}

/// A command that calls the server.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    List {
        json: bool,
    },
    /// `arguments`, as of the others, is the JSON text of an object.
    Call {
        name: String,
        arguments: String,
    },
    Read(String),
    Prompt {
        name: String,
        arguments: String,
    },
    #[cfg(feature = "events")]
    Events {
        name: String,
        arguments: String,
    },
    Schema,
}

/// The commands that call the server, and so may say who calls: how they are used, and what they do.
pub(super) const ACTIONS: &[(&str, &str)] = &[
    ("list [--json]", "list what the server offers"),
    ("call NAME [JSON]", "call a tool with these arguments; in a terminal you answer what it asks"),
    ("read URI", "read a resource"),
    ("prompt NAME [JSON]", "get a prompt with these arguments"),
    #[cfg(feature = "events")]
    ("events NAME [JSON]", "print occurrences of an event, one JSON object a line, until stopped"),
    ("schema", "print every descriptor that clients see, as JSON"),
];

/// The names of these commands.
fn actions() -> impl Iterator<Item = &'static str> {
    ACTIONS.iter().map(|(usage, _)| usage.split(' ').next().unwrap_or(usage))
}

/// The others.
const COMMANDS: &[&str] = &[
    "stdio",
    "--http",
    "--help",
    "--version",
    #[cfg(feature = "config")]
    "config",
    #[cfg(feature = "install")]
    INSTALL,
];

fn commands() -> impl Iterator<Item = &'static str> {
    actions().chain(COMMANDS.iter().copied())
}

/// The command that prints a usage of its own.
const INSTALL: &str = "install";

fn is_help(text: &str) -> bool {
    text == "--help" || text == "-h"
}

impl Command {
    /// Parses the arguments after the program's name.
    pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = arguments
            .into_iter()
            .map(|text| text.into_string().map_err(|text| format!("{} is not UTF-8", text.display())))
            .collect::<Result<Vec<_>, _>>()?;
        let first = arguments.first().map_or("", String::as_str);
        let says_caller = actions().any(|action| action == first) || is_caller_option(first);
        let caller = if says_caller { take_caller(&mut arguments)? } else { None };
        let serves = arguments.first().is_none_or(|word| actions().all(|action| action != word));
        if serves && caller.is_some() {
            return Err(misplaced_caller("--as"));
        }
        let mut arguments = arguments.into_iter();
        let Some(word) = arguments.next() else { return Ok(Self::Default) };
        let is_command = word != INSTALL && commands().any(|command| command == word);
        if is_command && arguments.as_slice().iter().any(|text| is_help(text)) {
            return Ok(Self::Describe(Description::Help));
        }
        let command = match &*word {
            "stdio" => Self::Stdio,
            "--http" => Self::Http(parse_address(arguments.next().as_deref())?),
            "list" => Self::Action(Action::List { json: parse_flag(&mut arguments, "--json")? }, caller),
            "call" => {
                let (name, arguments) = parse_call(&mut arguments, "call NAME [JSON]")?;
                Self::Action(Action::Call { name, arguments }, caller)
            }
            "read" => {
                let uri = arguments.next().ok_or("`read` needs a URI: `read URI`")?;
                Self::Action(Action::Read(uri), caller)
            }
            "prompt" => {
                let (name, arguments) = parse_call(&mut arguments, "prompt NAME [JSON]")?;
                Self::Action(Action::Prompt { name, arguments }, caller)
            }
            #[cfg(feature = "events")]
            "events" => {
                let (name, arguments) = parse_call(&mut arguments, "events NAME [JSON]")?;
                Self::Action(Action::Events { name, arguments }, caller)
            }
            "schema" => {
                // it is JSON anyway
                let _json = parse_flag(&mut arguments, "--json")?;
                Self::Action(Action::Schema, caller)
            }
            #[cfg(feature = "config")]
            "config" => Self::Describe(Description::Settings),
            #[cfg(feature = "install")]
            "install" => Self::Install(arguments.by_ref().collect()),
            "--help" | "-h" | "help" => Self::Describe(Description::Help),
            "--version" | "-V" => Self::Describe(Description::Version),
            other => match other.strip_prefix("--http=") {
                Some(text) => Self::Http(parse_address(Some(text))?),
                None => {
                    let near = suggestion(other, commands());
                    return Err(format!("unknown command `{other}`{near}"));
                }
            },
        };
        match arguments.next() {
            None => Ok(command),
            Some(extra) if is_caller_option(&extra) => Err(misplaced_caller(&extra)),
            Some(extra) => {
                Err(format!("unexpected argument `{extra}`{}", suggestion(&extra, CALLER_OPTIONS)))
            }
        }
    }
}

/// Which of these words was meant, if one is similar.
fn suggestion(text: &str, known: impl IntoIterator<Item = &'static str>) -> String {
    let near = nearest(text, known);
    near.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

const CALLER_OPTIONS: [&str; 3] = ["--as", "--scope", "--claim"];

fn is_caller_option(text: &str) -> bool {
    CALLER_OPTIONS.contains(&text.split_once('=').map_or(text, |(option, _)| option))
}

fn misplaced_caller(option: &str) -> String {
    format!(
        "`{option}` is for the commands that call the server: {}\n\
         the caller on stdio is set in the program, with `.stdio(|stdio| stdio.caller(..))`",
        actions().collect::<Vec<_>>().join(", ")
    )
}

/// Removes the options that say who calls, wherever they are: `--as SUBJECT`, `--scope SCOPE` and `--claim NAME=VALUE`.
fn take_caller(arguments: &mut Vec<String>) -> Result<Option<Arc<Principal>>, String> {
    let (mut subject, mut scopes, mut claims) = (None, Vec::new(), Map::new());
    let mut others = Vec::new();
    let mut given = std::mem::take(arguments).into_iter();
    while let Some(text) = given.next() {
        if !is_caller_option(&text) {
            others.push(text);
            continue;
        }
        let (option, value) = match text.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (&*text, given.next()),
        };
        let value = value.filter(|value| !value.is_empty());
        match option {
            "--as" => {
                let value = value.ok_or("`--as` needs a subject: `--as ada`")?;
                if subject.replace(value).is_some() {
                    return Err("`--as` is given twice: a call has one caller".into());
                }
            }
            "--scope" => {
                let value = value.ok_or("`--scope` needs a scope: `--scope notes:read`")?;
                scopes.extend(value.split_whitespace().map(str::to_owned));
            }
            _ => {
                let usage = "`--claim` needs a name and a value: `--claim tenant=acme`";
                let value = value.ok_or(usage)?;
                let (name, value) =
                    value.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or(usage)?;
                // a value that is not JSON is a text
                let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
                if claims.insert(name.to_owned(), value).is_some() {
                    return Err(format!("the claim `{name}` is given twice"));
                }
            }
        }
    }
    *arguments = others;
    let Some(subject) = subject else {
        if scopes.is_empty() && claims.is_empty() {
            return Ok(None);
        }
        return Err("`--scope` and `--claim` describe a caller, and `--as SUBJECT` is missing".into());
    };
    let issuer = claims.get("iss").and_then(Value::as_str).unwrap_or(ISSUER).to_owned();
    let client = claims.get("client_id").and_then(Value::as_str).map(str::to_owned);
    let mut caller = Principal::new(issuer, subject).with_scopes(scopes);
    if let Some(client) = client {
        caller = caller.with_client_id(client);
    }
    Ok(Some(Arc::new(if claims.is_empty() { caller } else { caller.with_claims(claims) })))
}

/// Parses an address; `8080` and `:8080` are ports of the loopback interface.
fn parse_address(text: Option<&str>) -> Result<String, String> {
    let Some(text) = text else { return Ok(DEFAULT_ADDRESS.into()) };
    let port = text.strip_prefix(':').unwrap_or(text);
    if port.parse::<u16>().is_ok() {
        return Ok(format!("127.0.0.1:{port}"));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.into()),
        _ => Err(format!("`{text}` is not an address to listen on\nwrite one like `{DEFAULT_ADDRESS}`")),
    }
}

fn parse_flag(arguments: &mut impl Iterator<Item = String>, name: &str) -> Result<bool, String> {
    match arguments.next() {
        None => Ok(false),
        Some(text) if text == name => Ok(true),
        Some(text) => Err(format!("unexpected argument `{text}`; did you mean `{name}`?")),
    }
}

/// The name, and the JSON text of an object.
fn parse_call(arguments: &mut impl Iterator<Item = String>, usage: &str) -> Result<(String, String), String> {
    let name = arguments.next().ok_or_else(|| format!("a name is missing: `{usage}`"))?;
    if name.starts_with("--") {
        return Err(format!("unknown option `{name}`{}", suggestion(&name, CALLER_OPTIONS)));
    }
    let Some(text) = arguments.next() else { return Ok((name, "{}".to_owned())) };
    match serde_json::from_str(&text) {
        Ok(Value::Object(_)) => Ok((name, text)),
        Ok(_) => Err(format!("the arguments are not a JSON object: {text}")),
        Err(error) => {
            Err(format!("the arguments are not JSON: {error}\nquote them for the shell: '{{\"key\": 1}}'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn commands_are_parsed() {
        assert_eq!(parse(""), Ok(Command::Default));
        assert_eq!(parse("--http"), Ok(Command::Http("127.0.0.1:8080".into())));
        assert_eq!(parse("--http 9000"), Ok(Command::Http("127.0.0.1:9000".into())));
        assert_eq!(parse("--http=[::1]:80"), Ok(Command::Http("[::1]:80".into())));
        assert_eq!(parse("list --json"), Ok(Command::Action(Action::List { json: true }, None)));
        let text = r#"{"a":340282366920938463463374607431768211455}"#;
        assert_eq!(
            parse(&format!("call x {text}")),
            Ok(Command::Action(Action::Call { name: "x".into(), arguments: text.into() }, None))
        );
        assert_eq!(
            parse(r#"prompt x {"a":1}"#),
            Ok(Command::Action(Action::Prompt { name: "x".into(), arguments: r#"{"a":1}"#.into() }, None))
        );
        #[cfg(feature = "events")]
        assert_eq!(
            parse("events x"),
            Ok(Command::Action(Action::Events { name: "x".into(), arguments: "{}".into() }, None))
        );
    }

    #[test]
    fn a_call_says_who_calls_wherever_the_options_are() {
        let claims = json!({ "tenant": "acme", "level": 3 });
        let ada = Principal::new(ISSUER, "ada")
            .with_scopes(["read", "write"])
            .with_claims(claims.as_object().cloned().unwrap_or_default());
        let call = || Action::Call { name: "x".into(), arguments: "{}".into() };
        for line in [
            "call --as ada --scope read --scope write --claim tenant=acme --claim level=3 x",
            "--as ada --scope=read --scope write call x --claim tenant=acme --claim level=3",
            "call x --as=ada --scope read --claim tenant=acme --scope=write --claim=level=3",
            r#"call x {} --claim tenant="acme" --claim level=3 --as ada --scope read --scope write"#,
        ] {
            assert_eq!(parse(line), Ok(Command::Action(call(), Some(Arc::new(ada.clone())))), "{line}");
        }
        let there = Principal::new("https://id.example.com", "ada");
        let there = there.with_claims(Map::from_iter([("iss".to_owned(), json!("https://id.example.com"))]));
        let line = "list --json --as ada --claim iss=https://id.example.com";
        assert_eq!(parse(line), Ok(Command::Action(Action::List { json: true }, Some(Arc::new(there)))));
        for (line, error) in [
            ("call x --as", "`--as` needs a subject"),
            ("call x --as a --as b", "given twice"),
            ("call x --as a --claim tenant", "needs a name and a value"),
            ("call x --as a --claim =1", "needs a name and a value"),
            ("call x --as a --claim b=1 --claim b=2", "the claim `b` is given twice"),
            ("call x --scope read", "`--as SUBJECT` is missing"),
            ("call --scopes read x", "did you mean `--scope`?"),
            ("--as ada", "for the commands that call the server"),
            ("--as ada --http", "for the commands that call the server"),
            ("stdio --as ada", "`.stdio(|stdio| stdio.caller(..))`"),
        ] {
            assert!(parse(line).is_err_and(|found| found.contains(error)), "{line}: {:?}", parse(line));
        }
    }

    #[test]
    fn every_command_has_the_help() {
        for line in [
            "list --help",
            "call -h",
            "call x --help",
            "call x {} -h",
            "read --help",
            "stdio --help",
            "--http -h",
        ] {
            assert_eq!(parse(line), Ok(Command::Describe(Description::Help)), "{line}");
        }
        assert!(parse("lsit --help").is_err_and(|error| error.contains("did you mean `list`?")));
        #[cfg(feature = "config")]
        assert_eq!(parse("config --help"), Ok(Command::Describe(Description::Help)));
        #[cfg(feature = "install")]
        assert_eq!(parse("install --help"), Ok(Command::Install(vec!["--help".into()])));
    }

    #[cfg(all(feature = "config", feature = "install"))]
    #[test]
    fn commands_of_features_are_suggested_too() {
        for (line, near) in [("cnofig", "config"), ("instal", "install")] {
            assert_eq!(parse(line), Err(format!("unknown command `{line}`; did you mean `{near}`?")));
        }
    }

    #[test]
    fn errors_name_the_argument_and_the_fix() {
        assert_eq!(parse("lsit"), Err("unknown command `lsit`; did you mean `list`?".into()));
        assert_eq!(parse("stdio now"), Err("unexpected argument `now`".into()));
        assert_eq!(parse("call"), Err("a name is missing: `call NAME [JSON]`".into()));
        assert!(parse("call x [1]").is_err_and(|e| e.contains("not a JSON object")));
        assert!(parse("call x {a}").is_err_and(|e| e.contains("are not JSON")));
        assert!(parse("--http nowhere").is_err_and(|e| e.contains("not an address")));
    }
}
