//! Which crates are built with which features. `cargo deny` checks their licences and sources: `tests/external` runs it.

use std::process::Command;

use mcp_tests::programs::workspace_dir;

/// The crates that a package builds with all of its features, each with its own.
fn tree_of(package: &str) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(workspace_dir());
    command.args(["tree", "--locked", "--prefix", "none", "--format", "{p} [{f}]"]);
    command.args(["--edges", "normal,build", "--all-features", "--package", package]);
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The features of a crate in a tree; none if it is not in it.
fn features_of<'a>(tree: &'a str, of: &str) -> Vec<&'a str> {
    let line = tree.lines().find(|line| line.split(' ').next() == Some(of));
    let listed = line.and_then(|line| Some(line.split_once('[')?.1.split_once(']')?.0));
    listed.map(|listed| listed.split(',').collect()).unwrap_or_default()
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
    let tree = tree_of("mcp-runtime");
    assert_eq!(features_of(&tree, "rustls"), ["std", "tls12"]);
    assert_eq!(features_of(&tree, "reqwest"), [""; 0]);
    // what chooses would be seen
    let tree = tree_of("mcp-feature-neighbours");
    let chosen = features_of(&tree, "rustls");
    assert!(chosen.contains(&"aws_lc_rs"), "{chosen:?}");
}
