//! A bundle of `mcp-dev package mcpb`, with settings of every kind, and the official tool for bundles.

use std::{fs, path::Path, process::Command, time::Duration};

use mcp_tests::external::{
    cache_dir, child,
    package::{self, write},
    skip,
};

use crate::swaps::mcp_dev;

const LIMIT: Duration = Duration::from_secs(120);
const TOOL: &str = r#"{ "private": true, "dependencies": { "@anthropic-ai/mcpb": "2.1.2" } }"#;
const MANIFEST: &str = r#"
[package]
name = "bundled"
version = "0.1.0"
edition = "2024"
description = "Settings of every kind"
license = "MIT"
keywords = ["mcp"]
repository = "https://github.com/ada/bundled"
homepage = "https://example.com"

[package.metadata.mcp]
name = "io.github.ada/bundled"
title = "Bundled"
author = "Ada Lovelace <ada@example.com>"

[workspace]
"#;

fn run(command: &mut Command) -> String {
    child::run(command, "", LIMIT).expect("the program can be run").or_panic(&format!("{command:?}"))
}

#[test]
fn the_official_tool_unpacks_a_bundle_and_finds_its_manifest_valid() {
    let tool = match package::npm(TOOL) {
        Ok(packages) => packages.join("node_modules/@anthropic-ai/mcpb/dist/cli/cli.js"),
        Err(missing) => return skip("the official tool for bundles", &missing),
    };
    let folder = cache_dir("bundle");
    for made in ["dist", "unpacked"] {
        let _was_not_there = fs::remove_dir_all(folder.join(made));
    }
    fs::create_dir_all(folder.join("src")).expect("a folder");
    write(&folder.join("Cargo.toml"), MANIFEST);
    write(&folder.join("src/main.rs"), "fn main() {}\n");
    let program = concat!("x86_64-unknown-linux-gnu=", env!("CARGO_BIN_EXE_settings"));
    let mut package = Command::new(mcp_dev());
    run(package.args(["package", "mcpb", "--binary", program]).current_dir(&folder));
    let official =
        |arguments: &[&str]| run(Command::new("node").arg(&tool).args(arguments).current_dir(&folder));
    official(&["unpack", "dist/bundled-0.1.0-linux-x64.mcpb", "unpacked"]);
    let said = official(&["validate", "unpacked/manifest.json"]);
    assert!(said.contains("passes"), "{said}");
    let listed = run(Command::new(folder.join("unpacked/server/bundled")).arg("--help"));
    assert!(listed.contains("--token"), "{listed}");
    assert!(!Path::new(&folder.join("unpacked/src")).exists(), "only what is named is in it");
}
