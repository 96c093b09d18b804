//! `lock`: writes the contract of a server into a file, or says what has changed since it was written.

use std::{io, path::Path, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command};
use mcp_runtime::{
    Revision,
    client::Client,
    testing::{ChangeClass, Contract},
};

use crate::{
    Failure, Outcome,
    call::fetch_schema,
    examine::duplicates,
    print, read_text, report,
    server::{self, ServerOptions},
};

/// The exit code of a check that finds changes which break nothing: the file is out of date.
const OUT_OF_DATE: u8 = 3;
const NOT_COMPARED: &str =
    "settings and scopes are not compared: the server does not print them (`schema --json`)\n";

pub(crate) fn command() -> Command {
    let check = "Write nothing; the exit code is 1 for breaking changes, and 3 if anything else differs";
    server::command(
        "lock",
        "Write what models and clients depend on into mcp.lock.json, or report what has changed",
        vec![
            Arg::new("file").long("file").value_name("FILE").help("The lock file, instead of mcp.lock.json"),
            Arg::new("check").long("check").action(ArgAction::SetTrue).help(check),
        ],
    )
}

/// # Errors
/// The server refuses a list, or the file cannot be read or written.
pub(crate) fn run(arguments: &ArgMatches) -> Outcome {
    server::with_client(arguments, async |client| lock(client, arguments).await)
}

/// The contract of the server now: as its program prints it, with settings and scopes, or else by its lists.
async fn read_server(client: &Client, arguments: &ArgMatches) -> Result<Contract, Failure> {
    // programs of `mcp-runtime` speak the newest revision; others are not started with words that they do not know
    let own = match client.revision() {
        Some(Revision::LATEST) => ServerOptions::read(arguments)?.own_schema().await,
        _ => None,
    };
    let described = match own.filter(|own| own["server"]["name"] == client.server_info().0) {
        Some(own) => own,
        None => fetch_schema(client).await?,
    };
    let repeated = duplicates(&described);
    if !repeated.is_empty() {
        let lines = repeated.iter().map(|(item, count)| format!("{item}: is listed {count} times"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        return Err(format!("a contract has one item of each name\n{lines}").into());
    }
    Ok(Contract::of_lists(&described))
}

async fn lock(client: &Client, arguments: &ArgMatches) -> Outcome {
    let path = arguments.get_one::<String>("file").map_or("mcp.lock.json", String::as_str);
    let older = read(Path::new(path))?;
    let newer = read_server(client, arguments).await?;
    let anew = "`mcp-dev lock`, or `UPDATE_CONTRACT=1 cargo test`, writes";
    if arguments.get_flag("check") {
        let older = older.ok_or_else(|| format!("`{path}` does not exist: `mcp-dev lock` writes it"))?;
        let changes = older.compare(&newer);
        let (class, is_compared) = (changes.class(), older.is_of_program() && newer.is_of_program());
        let text = match (is_compared, class) {
            (false, None) => "nothing has changed in what clients see".to_owned(),
            _ => changes.to_string(),
        };
        print(&format!("{text}\n"))?;
        let is_unknown = !newer.is_of_program();
        if is_unknown {
            print(NOT_COMPARED)?;
        } else if !is_compared {
            print("settings and scopes are not compared: the file has none\n")?;
        }
        let code = match class {
            None if is_compared || is_unknown => return Ok(ExitCode::SUCCESS),
            Some(ChangeClass::Breaking) => ExitCode::FAILURE,
            _ => OUT_OF_DATE.into(),
        };
        report(&format!("{anew} `{path}` anew"));
        return Ok(code);
    }
    if older.as_ref().is_some_and(Contract::is_of_program) && !newer.is_of_program() {
        return Err(format!(
            "`{path}` has settings and scopes, which this server does not print (`schema --json`), and is left alone\n\
             `UPDATE_CONTRACT=1 cargo test` writes it, or `mcp-dev lock` after it is removed"
        )
        .into());
    }
    newer.write(path).map_err(|error| format!("`{path}` cannot be written: {error}"))?;
    if let Some(older) = older {
        print(&format!("{}\n", older.compare(&newer)))?;
    }
    if !newer.is_of_program() {
        print(NOT_COMPARED)?;
    }
    report(&format!("wrote `{path}`"));
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Option<Contract>, Failure> {
    let shown = path.display();
    match read_text(path) {
        Ok(text) => match Contract::parse(&text) {
            Ok(contract) => Ok(Some(contract)),
            Err(error) => Err(format!("`{shown}`: {error}").into()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("`{shown}` cannot be read: {error}").into()),
    }
}
