//! A Chromium that needs nothing of the machine: its binary, libraries and fonts come in one npm package. Where that
//! package has no binary for the machine, the browser is the `chromium` on the path.

use std::{process::Command, time::Duration};

use super::{Missing, child, package, sources};

/// The first Node that can load the package.
const LEAST_NODE: u32 = 22;

const UNPACK: Duration = Duration::from_secs(120);

/// The command that starts the browser, without arguments.
///
/// # Errors
///
/// If there is none for this machine, or no npm to install it with.
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
    let dir = package::once("chromium", manifest, |dir| {
        let mut unpack = Command::new(node);
        unpack.arg(sources().join("outside/browser/unpack.mjs")).arg(packages).env("TMPDIR", dir);
        let finished = child::run(&mut unpack, "", UNPACK);
        let _ = finished.expect("the installed node can be run").or_panic("unpacking Chromium");
    });
    let mut command = Command::new(dir.join("chromium"));
    command.env("LD_LIBRARY_PATH", dir.join("al2023/lib")).env("FONTCONFIG_PATH", dir.join("fonts"));
    Ok(command)
}

fn on_the_path() -> Result<Command, Missing> {
    let found = child::run(Command::new("chromium").arg("--version"), "", UNPACK);
    match found {
        Ok(finished) if finished.success => Ok(Command::new("chromium")),
        _ => {
            Err(Missing("no npm package has a Chromium for this machine, and none is on the path".to_owned()))
        }
    }
}
