//! A workflow of GitHub that builds a server for five targets and attaches its bundle to each release. A file that is there is
//! its author's, and stays.

use std::{fs, path::Path, process::ExitCode};

use clap::{Arg, ArgMatches, Command};

use super::CrateInfo;
use crate::{Outcome, print, report};

const TEMPLATE: &str = include_str!("../../template/workflow.yml.txt");

pub(super) fn command(shared: impl IntoIterator<Item = Arg>) -> Command {
    let file =
        Arg::new("file").long("file").value_name("FILE").default_value(".github/workflows/bundles.yml");
    Command::new("workflow")
        .about("A workflow of GitHub that builds five targets and attaches the bundle to each release")
        .args(shared)
        .arg(file.help("The file"))
}

/// # Errors
/// Bundles lack something of the manifest, there is such a file, or it cannot be written.
pub(super) fn run(arguments: &ArgMatches) -> Outcome {
    let text = |name: &str| arguments.get_one::<String>(name).map(String::as_str);
    let (manifest, mut problems) = (text("manifest").unwrap_or("Cargo.toml"), Vec::new());
    let info = CrateInfo::read(manifest, text("bin"), &mut problems)?;
    // both are in quotes of a shell
    let is_plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "-_./ ".contains(c));
    if Path::new(manifest).is_absolute() || !is_plain(manifest) || !is_plain(&info.bin) {
        problems.push(format!("`{manifest}` and `{}` cannot be named in a workflow\nuse a path inside of the repository, of letters, digits, `-`, `_`, `.` and `/`", info.bin));
    }
    super::check(problems)?;
    let path = Path::new(text("file").unwrap_or_default());
    let shown = path.display();
    let real =
        mcp_runtime::__dev::resolve(path).map_err(|error| format!("`{shown}` cannot be written: {error}"))?;
    if real.exists() {
        return Err(format!("`{shown}` exists, and is left alone: `--file` names another one").into());
    }
    let workflow = TEMPLATE.replace("__MANIFEST__", manifest).replace("__BIN__", &info.bin);
    let written = fs::create_dir_all(real.parent().unwrap_or(&real))
        .and_then(|()| mcp_runtime::__dev::replace_file(path, workflow.as_bytes()));
    written.map_err(|error| format!("`{shown}` cannot be written: {error}"))?;
    print(&format!("{shown}\n"))?;
    report(
        "programs are not signed: `.github/sign-program.sh` and `.github/sign-bundle.sh`, if you write them, sign them",
    );
    Ok(ExitCode::SUCCESS)
}
