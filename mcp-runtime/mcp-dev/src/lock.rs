//! `lock`: writes the contract of a server into a file, or says what has changed since it was written.

use std::{fs, io, path::Path, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command};
use mcp_runtime::{
    client::Client,
    testing::{ChangeClass, Contract},
};

use crate::{Failure, Outcome, call::fetch_schema, print, report, server};

/// The exit code of a check that finds changes which break nothing: the file is out of date.
const OUT_OF_DATE: u8 = 3;

pub(crate) fn command() -> Command {
    let check = "Writes nothing; the exit code is 1 if something breaks, and 3 if anything else differs";
    server::command(
        "lock",
        "Writes what models and clients depend on into mcp.lock.json, or says what has changed",
        vec![
            Arg::new("file").long("file").value_name("FILE").help("Another file"),
            Arg::new("check").long("check").action(ArgAction::SetTrue).help(check),
        ],
    )
}

/// # Errors
/// The server refuses a list, or the file cannot be read or written.
pub(crate) fn run(arguments: &ArgMatches) -> Outcome {
    server::with_client(arguments, async |client| lock(client, arguments).await)
}

async fn lock(client: &Client, arguments: &ArgMatches) -> Outcome {
    let path = arguments.get_one::<String>("file").map_or("mcp.lock.json", String::as_str);
    let older = read(Path::new(path))?;
    let mut newer = Contract::of_lists(&fetch_schema(client).await?);
    if let Some(older) = &older {
        newer = newer.with_own_of(older);
    }
    if arguments.get_flag("check") {
        let older = older.ok_or_else(|| format!("`{path}` does not exist: `mcp-dev lock` writes it"))?;
        let changes = older.compare(&newer);
        print(format!("{changes}\n").as_bytes())?;
        let Some(class) = changes.class() else { return Ok(ExitCode::SUCCESS) };
        report(&format!("`mcp-dev lock`, or `UPDATE_CONTRACT=1 cargo test`, writes `{path}` anew"));
        return Ok(if class == ChangeClass::Breaking { ExitCode::FAILURE } else { OUT_OF_DATE.into() });
    }
    newer.write(path).map_err(|error| format!("`{path}` cannot be written: {error}"))?;
    if let Some(older) = older {
        print(format!("{}\n", older.compare(&newer)).as_bytes())?;
    }
    report(&format!("wrote `{path}`"));
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Option<Contract>, Failure> {
    let shown = path.display();
    match fs::read_to_string(path) {
        Ok(text) => match Contract::parse(&text) {
            Ok(contract) => Ok(Some(contract)),
            Err(error) => Err(format!("`{shown}`: {error}").into()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("`{shown}` cannot be read: {error}").into()),
    }
}
