//! What the crates that users build consist of: permissive licences, crates.io alone, and each crate once, as `deny.toml`
//! says. `cargo deny check` reads the same file, and knows advisories besides.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use serde_json::Value;

/// A crate that is built for users of the runtime.
struct Dependency {
    name: String,
    version: String,
    license: String,
    source: Option<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The target that this machine builds for, since only its packages are here.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host").to_owned()
}

/// Everything that the runtime depends on with all its features, but not for its tests.
fn dependencies(workspace: &Path) -> Vec<Dependency> {
    let output = Command::new(env!("CARGO"))
        .current_dir(workspace)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--all-features",
            "--filter-platform",
            &host(),
        ])
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| (node["id"].as_str().expect("an id"), node))
        .collect();
    let root = packages.iter().find(|package| package["name"] == "mcp-runtime").expect("the runtime");
    let mut waiting = vec![root["id"].as_str().expect("an id")];
    let mut found = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !found.insert(id) {
            continue;
        }
        for dependency in nodes[id]["deps"].as_array().expect("dependencies") {
            let kinds = dependency["dep_kinds"].as_array().expect("kinds");
            if kinds.iter().any(|kind| kind["kind"] != "dev") {
                waiting.push(dependency["pkg"].as_str().expect("an id"));
            }
        }
    }
    let of_runtime = packages.iter().filter(|package| found.contains(package["id"].as_str().expect("an id")));
    of_runtime
        .map(|package| Dependency {
            name: text(&package["name"]),
            version: text(&package["version"]),
            license: text(&package["license"]),
            source: package["source"].as_str().map(str::to_owned),
        })
        .collect()
}

/// The value of the terms up to a closing parenthesis or the end.
fn terms(words: &mut dyn Iterator<Item = &str>, allowed: &BTreeSet<String>) -> bool {
    let (mut any, mut all) = (false, true);
    while let Some(word) = words.next() {
        match word {
            ")" => break,
            "OR" => {
                any |= all;
                all = true;
            }
            "AND" => {}
            "(" => all &= terms(words, allowed),
            licence => all &= allowed.contains(licence),
        }
    }
    any | all
}

/// Whether someone who accepts these licences may use what is under an SPDX expression.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    // an exception only adds permissions
    let mut words = Vec::new();
    let mut parts = spaced.split_whitespace();
    while let Some(word) = parts.next() {
        if word == "WITH" {
            parts.next();
        } else {
            words.push(word);
        }
    }
    !words.is_empty() && terms(&mut words.into_iter(), allowed)
}

fn strings(table: &toml::Table, section: &str, key: &str) -> BTreeSet<String> {
    let list = table[section].get(key).and_then(toml::Value::as_array);
    let entry = |value: &toml::Value| value.as_str().map(str::to_owned);
    list.into_iter().flatten().filter_map(entry).collect()
}

#[test]
fn what_users_build_is_as_deny_toml_says() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let rules = fs::read_to_string(workspace.join("deny.toml")).expect("the rules");
    let rules: toml::Table = rules.parse().expect("TOML");
    let licences = strings(&rules, "licenses", "allow");
    let registries = strings(&rules, "sources", "allow-registry");
    let skipped: BTreeSet<&str> = rules["bans"]["skip"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|skip| skip["crate"].as_str()?.split('@').next())
        .collect();
    let found = dependencies(workspace);
    assert!(found.len() > 40, "only {} crates were found", found.len());
    let mut wrong = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Dependency { name, version, license, source } in &found {
        versions.entry(name).or_default().push(version);
        if !is_allowed(license, &licences) {
            wrong.push(format!("`{name}` {version} is under `{license}`"));
        }
        match source {
            Some(source) if !registries.iter().any(|known| *source == format!("registry+{known}")) => {
                wrong.push(format!("`{name}` {version} comes from {source}"));
            }
            None if !name.starts_with("mcp-runtime") => wrong.push(format!("`{name}` is not of a registry")),
            _ => {}
        }
    }
    for (&name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        if !skipped.contains(name) {
            wrong.push(format!("`{name}` is built {} times: {}", versions.len(), versions.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_licence_is_allowed_if_one_of_its_alternatives_is() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned).into();
    for expression in [
        "MIT",
        "MIT OR GPL-3.0",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception",
        "GPL-3.0 OR (MIT AND Unicode-3.0)",
    ] {
        assert!(is_allowed(expression, &allowed), "{expression}");
    }
    for expression in
        ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "GPL-3.0 OR (MIT AND X)"]
    {
        assert!(!is_allowed(expression, &allowed), "{expression}");
    }
}
