//! The packages that are published, with what the registry asks for.

use std::{fs, process::Command};

use mcp_tests::programs::{PUBLISHED, workspace_dir};
use serde_json::{Value, from_slice, from_str};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether crates.io takes a keyword; `cargo publish --dry-run` does not ask it.
fn is_keyword(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
    text.len() <= 20 && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_allowed)
}

#[test]
fn keywords_of_crates_are_those_that_the_registry_takes() {
    for taken in ["mcp", "modelcontextprotocol", "c++", "a_b-c"] {
        assert!(is_keyword(taken), "{taken}");
    }
    for refused in ["", "model-context-protocol", "-mcp", "4", "two words", "clé"] {
        assert!(!is_keyword(refused), "{refused}");
    }
    let workspace = workspace_dir();
    let template = fs::read_to_string(workspace.join("mcp-runtime/mcp-dev/template/Cargo.toml.txt"));
    let template = template.expect("the template of `mcp-dev new`");
    let line = template.lines().find_map(|line| line.strip_prefix("keywords = ")).expect("its keywords");
    let keywords: Vec<String> = from_str(line).expect("a list of texts");
    assert!((1..=5).contains(&keywords.len()), "{line}");
    for keyword in keywords {
        assert!(is_keyword(&keyword), "`mcp-dev new`: the registry refuses the keyword `{keyword}`");
    }
}

#[test]
fn these_packages_are_published_and_each_has_what_the_registry_shows_of_it() {
    let workspace = workspace_dir();
    let mut metadata = Command::new(env!("CARGO"));
    metadata.current_dir(workspace).args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = metadata.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let published: Vec<&Value> = packages.iter().filter(|package| package["publish"].is_null()).collect();
    let mut names: Vec<_> = published.iter().filter_map(|package| package["name"].as_str()).collect();
    names.sort_unstable();
    let mut expected = PUBLISHED;
    expected.sort_unstable();
    assert_eq!(names, expected, "others have `publish = false`");
    for package in &published {
        for member in ["description", "documentation", "license", "readme", "rust_version"] {
            assert!(package[member].is_string(), "{}: `{member}` is missing", package["name"]);
        }
        let count = |member: &str| package[member].as_array().map_or(0, Vec::len);
        assert!((1..=5).contains(&count("keywords")), "{}", package["name"]);
        assert!((1..=5).contains(&count("categories")), "{}", package["name"]);
        for keyword in package["keywords"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(is_keyword(keyword), "{}: the registry refuses the keyword `{keyword}`", package["name"]);
        }
        assert_eq!(package["version"], VERSION, "{}", package["name"]);
        let before = PUBLISHED.iter().take_while(|name| package["name"] != **name);
        let before: Vec<_> = before.collect();
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            // what is not in the registry at this version cannot be published
            let is_ours = dependency["path"].is_string();
            assert!(
                !is_ours || dependency["req"].as_str().is_some_and(|req| req.ends_with(VERSION)),
                "{dependency}"
            );
            let is_first = before.iter().any(|name| dependency["name"] == ***name);
            assert!(
                !is_ours || is_first,
                "{} is published before what it needs: {dependency}",
                package["name"]
            );
        }
    }
    let workflow = fs::read_to_string(workspace.join(".github/workflows/release.yml")).expect("the workflow");
    let order = format!("for package in {}; do", PUBLISHED.join(" "));
    assert!(workflow.contains(&order), "the workflow of releases does not have `{order}`");
}
