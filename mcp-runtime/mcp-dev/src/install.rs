//! `install`: adds a server to a client of this machine, by the code that servers of `mcp-runtime` do it with.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

use crate::{Outcome, dev, report};

pub(crate) fn command() -> Command {
    Command::new("install")
        .about("Add a server to a client on this machine: `mcp-dev install --help`")
        .disable_help_flag(true)
        .arg(
            Arg::new("arguments")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_name("ARGUMENTS"),
        )
}

/// # Errors
/// The file of the client cannot be changed; it is as it was then.
pub(crate) fn run(arguments: &ArgMatches) -> Outcome {
    let arguments = arguments.get_many::<String>("arguments").unwrap_or_default().cloned();
    match mcp_runtime::install::run("mcp-dev", dev::with_loop(arguments.collect())) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == mcp_runtime::ErrorKind::Usage => {
            report(&format!("error: {error}"));
            Ok(ExitCode::from(2))
        }
        Err(error) => Err(error.into()),
    }
}
