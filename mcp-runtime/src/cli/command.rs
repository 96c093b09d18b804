//! Parses the program's arguments, without a crate: a command has two arguments at most.

use std::ffi::OsString;

use serde_json::Value;

use crate::schema::nearest;

/// The default address of HTTP.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8080";

#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// No arguments: stdio, after a welcome message if stdin is a terminal.
    Default,
    Stdio,
    Http(String),
    Action(Action),
    Help,
    Version,
}

/// A command that calls the server.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    List {
        json: bool,
    },
    /// `arguments` is the JSON text of an object.
    Call {
        name: String,
        arguments: String,
    },
    Read(String),
    Prompt {
        name: String,
        arguments: Value,
    },
    Schema,
}

const COMMANDS: [&str; 9] =
    ["stdio", "list", "call", "read", "prompt", "schema", "--http", "--help", "--version"];

impl Command {
    /// Parses the arguments after the program's name.
    pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = arguments
            .into_iter()
            .map(|text| text.into_string().map_err(|text| format!("{} is not UTF-8", text.display())))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter();
        let Some(word) = arguments.next() else { return Ok(Self::Default) };
        let command = match &*word {
            "stdio" => Self::Stdio,
            "--http" => Self::Http(parse_address(arguments.next().as_deref())?),
            "list" => Self::Action(Action::List { json: parse_flag(&mut arguments, "--json")? }),
            "call" => {
                let (name, arguments) = parse_call(&mut arguments, "call NAME [JSON]")?;
                Self::Action(Action::Call { name, arguments })
            }
            "read" => Self::Action(Action::Read(arguments.next().ok_or("`read` needs a URI: `read URI`")?)),
            "prompt" => {
                let (name, arguments) = parse_call(&mut arguments, "prompt NAME [JSON]")?;
                let arguments = serde_json::from_str(&arguments).map_err(|error| error.to_string())?;
                Self::Action(Action::Prompt { name, arguments })
            }
            "schema" => Self::Action(Action::Schema),
            "--help" | "-h" | "help" => Self::Help,
            "--version" | "-V" => Self::Version,
            other => match other.strip_prefix("--http=") {
                Some(text) => Self::Http(parse_address(Some(text))?),
                None => {
                    let near = nearest(other, COMMANDS)
                        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                    return Err(format!("unknown command `{other}`{near}"));
                }
            },
        };
        match arguments.next() {
            None => Ok(command),
            Some(extra) => Err(format!("unexpected argument `{extra}`")),
        }
    }
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
        assert_eq!(parse("list --json"), Ok(Command::Action(Action::List { json: true })));
        let text = r#"{"a":340282366920938463463374607431768211455}"#;
        assert_eq!(
            parse(&format!("call x {text}")),
            Ok(Command::Action(Action::Call { name: "x".into(), arguments: text.into() }))
        );
        assert_eq!(
            parse(r#"prompt x {"a":1}"#),
            Ok(Command::Action(Action::Prompt { name: "x".into(), arguments: json!({ "a": 1 }) }))
        );
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
