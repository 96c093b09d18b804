//! `doctor`: reports items that clients refuse or truncate, mistakes that mislead models, and the tokens of the lists. It reads lists only:
//! nothing is called.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::{
    Outcome,
    call::fetch_schema_and_missing,
    examine::{Severity, examine},
    print, print_json, server,
};

pub(crate) fn command() -> Command {
    let budget = Arg::new("budget")
        .long("budget")
        .value_name("TOKENS")
        .value_parser(clap::value_parser!(u32).range(1..));
    server::command(
        "doctor",
        "Report items that clients refuse or truncate, mistakes that mislead models, and the tokens of the lists",
        vec![
            budget.help("Fail if the lists cost a model more tokens"),
            Arg::new("strict").long("strict").action(ArgAction::SetTrue).help("Fail on warnings too"),
            Arg::new("as-json").long("json").action(ArgAction::SetTrue).help("Print everything as JSON"),
        ],
    )
}

/// # Errors
/// The server refuses a list.
pub(crate) fn run(arguments: &ArgMatches) -> Outcome {
    server::with_client_and_output(arguments, async |client, lines| {
        let budget = arguments.get_one::<u32>("budget").map(|budget| *budget as usize);
        let (described, missing) = fetch_schema_and_missing(client).await?;
        let mut found = examine(&described, client.revision(), budget);
        found.add_conduct(&missing, lines.seen());
        if client.supports("tools") && !missing.contains(&"tools/list") {
            for tool in &client.tools().await? {
                found.add_unenforced(tool.name(), &tool.unenforced_output());
            }
        }
        match arguments.get_flag("as-json") {
            true => print_json(&found.to_json())?,
            false => print(&found.to_text())?,
        }
        let least = if arguments.get_flag("strict") { Severity::Warning } else { Severity::Error };
        let fails = found.findings.iter().any(|finding| finding.severity >= least);
        Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    })
}
