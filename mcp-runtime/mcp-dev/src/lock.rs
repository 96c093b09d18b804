//! `lock`: writes the contract of a server into a file, or says what has changed since it was written.

use std::{fs, io, path::Path, process::ExitCode};

use clap::ArgMatches;
use mcp_runtime::{client::Client, testing::Contract};

use crate::{Failure, Outcome, call::fetch_schema, print, report};

/// # Errors
/// The server refuses a list, or the file cannot be read or written.
pub(crate) async fn run(client: &Client, arguments: &ArgMatches) -> Outcome {
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
        return Ok(if changes.is_breaking() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    fs::write(path, newer.text()).map_err(|error| format!("`{path}` cannot be written: {error}"))?;
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
