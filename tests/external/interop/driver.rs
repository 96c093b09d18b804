//! Installs an SDK and runs its driver script.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use mcp_external_tests::{Missing, manifest_dir, package};
use mcp_tests::programs::child;
use mcp_tests::support::PATIENCE;
use serde_json::Value;

use crate::interop::{expect::Step, repo::tree};

/// The first Node that the TypeScript SDK supports.
const LEAST_NODE: u32 = 20;

/// How a client selects its revision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    /// It opens with `initialize`, and supports only legacy revisions.
    Legacy,
    /// It opens with `server/discover`, and takes the newest revision.
    Auto,
    /// It speaks only 2026-07-28.
    Pinned,
}

impl Mode {
    pub(crate) const ALL: [Self; 3] = [Self::Legacy, Self::Auto, Self::Pinned];

    /// The revision that must be negotiated.
    pub(crate) fn revision(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Auto | Self::Pinned => "2026-07-28",
        }
    }
}

/// An official SDK.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sdk {
    /// `mcp` on PyPI.
    Python,
    /// `@modelcontextprotocol/client` on npm.
    TypeScript,
}

impl Sdk {
    /// Installs the SDK if necessary, and one of the scripts that use it.
    pub(crate) fn install(self, script: &str) -> Result<Driver, Missing> {
        let read = |name: &str| {
            let path = manifest_dir().join("interop").join(name);
            fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
        };
        Ok(match self {
            Self::Python => Driver {
                sdk: self,
                interpreter: package::python(&read("python/requirements.txt"))?,
                script: manifest_dir().join(format!("interop/python/{script}.py")),
                limit: PATIENCE,
            },
            Self::TypeScript => {
                // Node resolves packages relative to the importing file.
                let dir = package::npm(&read("typescript/package.json"))?;
                for name in ["connection", script] {
                    let name = format!("{name}.mjs");
                    package::write(&dir.join(&name), &read(&format!("typescript/{name}")));
                }
                let script = dir.join(format!("{script}.mjs"));
                Driver { sdk: self, interpreter: package::node(LEAST_NODE)?, script, limit: PATIENCE }
            }
        })
    }
}

/// A script that performs steps with an SDK.
pub(crate) struct Driver {
    pub(crate) sdk: Sdk,
    interpreter: PathBuf,
    script: PathBuf,
    /// The longest that all steps may take.
    pub(crate) limit: Duration,
}

impl Driver {
    /// The script's report of one connection to `target`, a program or a URL.
    pub(crate) fn drive(&self, transport: &str, target: &str, mode: Mode, steps: &[Step]) -> Value {
        let wanted = match mode {
            Mode::Legacy => "legacy",
            Mode::Auto => "auto",
            Mode::Pinned => mode.revision(),
        };
        let input = Value::Array(steps.iter().map(|step| step.send.clone()).collect()).to_string();
        let mut command = Command::new(&self.interpreter);
        command.arg(&self.script).args([transport, target, wanted]).current_dir(tree());
        // otherwise Python writes bytecode next to the scripts
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let finished =
            child::run(&mut command, &input, self.limit).expect("an installed interpreter can be run");
        let printed = finished.or_panic(&format!("{command:?}"));
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error} in the report:\n{printed}"))
    }
}
