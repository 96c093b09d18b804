//! The options of `install`, parsed without a crate, as those of the other commands are.

use super::client::{CLIENTS, Way};
use crate::schema::nearest;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Options {
    pub(super) client: Option<String>,
    pub(super) is_help: bool,
    pub(super) project: bool,
    pub(super) name: Option<String>,
    pub(super) http: Option<String>,
    /// Variables; those without a value are referred to, or have the value that they have now.
    pub(super) env: Vec<(String, Option<String>)>,
    pub(super) dry_run: bool,
    pub(super) print: bool,
    pub(super) force: bool,
    pub(super) remove: bool,
    pub(super) always_load: bool,
    /// The arguments after `--`.
    pub(super) rest: Option<Vec<String>>,
}

const OPTIONS: [&str; 10] = [
    "--project",
    "--name",
    "--http",
    "--env",
    "--dry-run",
    "--print",
    "--force",
    "--remove",
    "--always-load",
    "--help",
];

impl Options {
    /// # Errors
    /// An argument is unknown, misplaced, or its value is missing or wrong.
    pub(super) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                options.rest = Some(arguments.collect());
                break;
            }
            let (name, given) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (&*argument, None),
            };
            let flag = match name {
                "--project" => &mut options.project,
                "--dry-run" => &mut options.dry_run,
                "--print" => &mut options.print,
                "--force" => &mut options.force,
                "--remove" => &mut options.remove,
                "--always-load" => &mut options.always_load,
                "--help" | "-h" => &mut options.is_help,
                "--name" | "--http" | "--env" => {
                    let value = given.or_else(|| arguments.next()).filter(|value| !value.is_empty());
                    options.set(name, value)?;
                    continue;
                }
                _ if name.starts_with('-') => {
                    let near = nearest(name, OPTIONS);
                    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                    // a value may be secret
                    return Err(format!(
                        "unknown option `{name}`{near}\nflags of settings are written before `install`"
                    ));
                }
                _ if options.client.is_some() => {
                    return Err(format!("unexpected argument `{argument}`: one client at a time"));
                }
                _ => {
                    options.client = Some(argument);
                    continue;
                }
            };
            if given.is_some() {
                return Err(format!("`{name}` has no value"));
            }
            *flag = true;
        }
        options.check()?;
        Ok(options)
    }

    fn set(&mut self, option: &str, value: Option<String>) -> Result<(), String> {
        let needs = |example: &str| format!("`{option}` needs a value: `{option} {example}`");
        match option {
            "--name" => {
                let name = value.ok_or_else(|| needs("ledger"))?;
                if !is_name(&name) {
                    return Err(format!(
                        "`{name}` cannot be the name of a server: not every client reads it\n\
                         use at most 64 letters, digits, `-` and `_`, of which the first is not `-`"
                    ));
                }
                if self.name.replace(name).is_some() {
                    return Err("`--name` is given twice".to_owned());
                }
            }
            "--http" => {
                let url = value.ok_or_else(|| needs("https://example.com/mcp"))?;
                if !is_http_url(&url) {
                    return Err(needs("https://example.com/mcp"));
                }
                if self.http.replace(url).is_some() {
                    return Err("`--http` is given twice".to_owned());
                }
            }
            _ => {
                let text = value.ok_or_else(|| needs("NAME=VALUE"))?;
                let (name, value) = match text.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (&*text, None),
                };
                let is_variable = !name.is_empty()
                    && !name.starts_with(|c: char| c.is_ascii_digit())
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if !is_variable {
                    return Err("`--env` needs a variable: `--env NAME=VALUE`, or `--env NAME`".to_owned());
                }
                if self.env.iter().any(|(known, _)| known == name) {
                    return Err(format!("`--env {name}` is given twice"));
                }
                self.env.push((name.to_owned(), value));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.http.is_some() && !self.env.is_empty() {
            return Err(
                "`--env` is for a process that the client starts, and `--http` starts none".to_owned()
            );
        }
        if let Some((name, _)) = self.env.iter().find(|(_, value)| self.project && value.is_some()) {
            return Err(format!(
                "`--env {name}=..` writes a value, and the file of a project is committed\n\
                 write `--env {name}`: clients that can refer to a variable take everyone's own"
            ));
        }
        Ok(())
    }
}

/// Whether every client takes it as the name of a server: commands of clients would read one that begins with `-` as an option.
pub(super) fn is_name(name: &str) -> bool {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=64).contains(&name.len()) && !name.starts_with('-') && name.chars().all(is_kept)
}

fn is_http_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let is_clean = url.chars().all(|c| !c.is_whitespace() && !c.is_control());
    // names and passwords in URLs are shown by clients
    is_clean && host.is_some_and(|host| !host.is_empty() && !host.contains('@'))
}

/// The usage of `install`, of a command line that begins with `program`, followed by `command`.
pub(super) fn usage(program: &str, command: &str) -> String {
    let ids = |is_printed: bool| {
        let clients = CLIENTS.iter().filter(|client| (client.way == Way::Print) == is_printed);
        clients.map(|client| client.id).collect::<Vec<_>>().join(", ")
    };
    format!(
        "\
usage: {program} install [CLIENT] [OPTIONS] [-- {command}]

Adds this server to a client; without one, to a client that is found on this machine and that you choose.

  --project     in the file of the project in this folder, which is committed: without
                paths of this machine and values of variables
  --name NAME   the server's name in the client
  --http URL    the client connects to this URL, and starts nothing
  --env K=V     a variable of the server; `--env K` refers to the one of its user
  --dry-run     show what would be written
  --print       show the entry and where it belongs, for writing it yourself
  --force       replace another server of that name
  --remove      remove the server
  --always-load Claude Code loads the tools at once, and not when it looks for some

written: {}
printed: {}",
        ids(false),
        ids(true)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read_wherever_they_are() {
        let options = parse("--name n cursor --env A=b=c --env=B --dry-run -- serve --x").expect("options");
        let expected = Options {
            client: Some("cursor".into()),
            name: Some("n".into()),
            env: vec![("A".into(), Some("b=c".into())), ("B".into(), None)],
            dry_run: true,
            rest: Some(vec!["serve".into(), "--x".into()]),
            ..Options::default()
        };
        assert_eq!(options, expected);
        assert_eq!(parse("--http=https://a/mcp").expect("options").http.as_deref(), Some("https://a/mcp"));
    }

    #[test]
    fn mistakes_name_the_argument_and_not_its_value() {
        for (line, part) in [
            ("--nmae x", "did you mean `--name`?"),
            ("--token=planted", "unknown option `--token`"),
            ("--name", "needs a value"),
            ("--name a.b", "not every client reads it"),
            ("--http ftp://a", "`--http` needs a value"),
            ("--http https://user:planted@a/mcp", "`--http` needs a value"),
            ("--env =planted", "needs a variable"),
            ("--env A=1 --env A=planted", "`--env A` is given twice"),
            ("--project --env A=planted", "the file of a project is committed"),
            ("--http https://a --env A=planted", "starts none"),
            ("--force=planted", "`--force` has no value"),
            ("cursor zed", "one client at a time"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(part) && !error.contains("planted"), "{line}: {error}");
        }
    }
}
