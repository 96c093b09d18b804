//! Reads the program's arguments. Seven commands with two arguments at most need no crate for that.

use std::ffi::OsString;

use serde_json::Value;

use crate::schema::nearest;

/// Where HTTP listens unless told otherwise.
const ADDRESS: &str = "127.0.0.1:8080";

#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// No arguments.
    Guess,
    Stdio,
    Http(String),
    Try(Action),
    Help,
    Version,
}

/// What can be done to a server from a shell.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    List { json: bool },
    Call { name: String, arguments: Value },
    Read(String),
    Prompt { name: String, arguments: Value },
    Schema,
}

const KNOWN: [&str; 9] =
    ["stdio", "list", "call", "read", "prompt", "schema", "--http", "--help", "--version"];

impl Command {
    /// Reads the arguments behind the program's name.
    pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = arguments
            .into_iter()
            .map(|text| text.into_string().map_err(|text| format!("{} is not UTF-8", text.display())))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter();
        let Some(word) = arguments.next() else { return Ok(Self::Guess) };
        let command = match &*word {
            "stdio" => Self::Stdio,
            "--http" => Self::Http(address(arguments.next().as_deref())?),
            "list" => Self::Try(Action::List { json: flag(&mut arguments, "--json")? }),
            "call" => {
                let (name, arguments) = named(&mut arguments, "call NAME [JSON]")?;
                Self::Try(Action::Call { name, arguments })
            }
            "read" => Self::Try(Action::Read(arguments.next().ok_or("`read` needs a URI: `read URI`")?)),
            "prompt" => {
                let (name, arguments) = named(&mut arguments, "prompt NAME [JSON]")?;
                Self::Try(Action::Prompt { name, arguments })
            }
            "schema" => Self::Try(Action::Schema),
            "--help" | "-h" | "help" => Self::Help,
            "--version" | "-V" => Self::Version,
            other => match other.strip_prefix("--http=") {
                Some(given) => Self::Http(address(Some(given))?),
                None => {
                    let near = nearest(other, KNOWN)
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

/// `8080` and `:8080` are ports of the loopback interface.
fn address(given: Option<&str>) -> Result<String, String> {
    let Some(given) = given else { return Ok(ADDRESS.into()) };
    let port = given.strip_prefix(':').unwrap_or(given);
    if port.parse::<u16>().is_ok() {
        return Ok(format!("127.0.0.1:{port}"));
    }
    match given.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(given.into()),
        _ => Err(format!("`{given}` is no address to listen on\nwrite one like `{ADDRESS}`")),
    }
}

fn flag(arguments: &mut impl Iterator<Item = String>, name: &str) -> Result<bool, String> {
    match arguments.next() {
        None => Ok(false),
        Some(given) if given == name => Ok(true),
        Some(given) => Err(format!("unexpected argument `{given}`; did you mean `{name}`?")),
    }
}

fn named(arguments: &mut impl Iterator<Item = String>, usage: &str) -> Result<(String, Value), String> {
    let name = arguments.next().ok_or_else(|| format!("a name is missing: `{usage}`"))?;
    let Some(text) = arguments.next() else { return Ok((name, Value::Null)) };
    match serde_json::from_str(&text) {
        Ok(value @ Value::Object(_)) => Ok((name, value)),
        Ok(_) => Err(format!("the arguments are no JSON object: {text}")),
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
    fn commands_are_read() {
        assert_eq!(parse(""), Ok(Command::Guess));
        assert_eq!(parse("--http"), Ok(Command::Http("127.0.0.1:8080".into())));
        assert_eq!(parse("--http 9000"), Ok(Command::Http("127.0.0.1:9000".into())));
        assert_eq!(parse("--http=[::1]:80"), Ok(Command::Http("[::1]:80".into())));
        assert_eq!(parse("list --json"), Ok(Command::Try(Action::List { json: true })));
        let arguments = json!({ "a": 1 });
        assert_eq!(
            parse(r#"call x {"a":1}"#),
            Ok(Command::Try(Action::Call { name: "x".into(), arguments }))
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parse("lsit"), Err("unknown command `lsit`; did you mean `list`?".into()));
        assert_eq!(parse("stdio now"), Err("unexpected argument `now`".into()));
        assert_eq!(parse("call"), Err("a name is missing: `call NAME [JSON]`".into()));
        assert!(parse("call x [1]").is_err_and(|e| e.contains("no JSON object")));
        assert!(parse("call x {a}").is_err_and(|e| e.contains("not JSON")));
        assert!(parse("--http nowhere").is_err_and(|e| e.contains("no address")));
    }
}
