//! A Chromium that does not depend on the machine: one npm package has its binary, libraries and fonts. Where that
//! package has no binary for the machine, `chromium` on the path is used.

use std::process::Command;

use mcp_tests::{programs::child, support::PATIENCE};

use super::{Missing, manifest_dir, package};

/// The first Node that can load the package.
const LEAST_NODE: u32 = 22;

/// The command that starts the browser, without arguments.
///
/// # Errors
///
/// If no browser exists for this machine, or npm is missing.
///
/// # Panics
///
/// If it cannot be installed.
pub fn chromium() -> Result<Command, Missing> {
    if (std::env::consts::OS, std::env::consts::ARCH) != ("linux", "x86_64") {
        return on_the_path();
    }
    let manifest = include_str!("browser/package.json");
    let node = package::node(LEAST_NODE)?;
    let packages = package::npm(manifest)?;
    let dir = package::fill_once("chromium", manifest, |dir| {
        let mut unpack = Command::new(node);
        unpack.arg(manifest_dir().join("programs/browser/unpack.mjs")).arg(packages).env("TMPDIR", dir);
        let finished = child::run(&mut unpack, "", PATIENCE);
        let _ = finished.expect("the installed node can be run").or_panic("unpacking Chromium");
    });
    let mut command = Command::new(dir.join("chromium"));
    command.env("LD_LIBRARY_PATH", dir.join("al2023/lib")).env("FONTCONFIG_PATH", dir.join("fonts"));
    Ok(command)
}

fn on_the_path() -> Result<Command, Missing> {
    let found = child::run(Command::new("chromium").arg("--version"), "", PATIENCE);
    match found {
        Ok(finished) if finished.success => Ok(Command::new("chromium")),
        _ => {
            Err(Missing("no npm package has a Chromium for this machine, and none is on the path".to_owned()))
        }
    }
}
