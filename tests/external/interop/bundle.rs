//! A bundle of `mcp-dev package mcpb`, with settings of every kind, and the official tool for bundles.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use mcp_external_tests::{
    package::{self, write},
    skip,
};
use mcp_tests::programs::{cache_dir, child, example};
use mcp_tests::support::PATIENCE;

use serde_json::{Value, json};

use crate::interop::swaps::mcp_dev;

/// The program with settings of every kind.
fn settings() -> PathBuf {
    example::program("settings")
}

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
icon = "icon.png"
packages = ["cargo", "npm", "mcpb", "oci"]
oci = "ghcr.io/ada/bundled"
remotes = ["https://example.com/mcp"]
author = "Ada Lovelace <ada@example.com>"

[workspace]
"#;

/// A linter with the registry's own schema of `server.json`, and its rules for what is published.
const REGISTRY: &str = "skillsaw==0.22.0\n";
const ICON: &str = r"
import struct, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
rows = zlib.compress((b'\0' + b'\x20\x40\x60' * 512) * 512)
with open('icon.png', 'wb') as file:
    file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 512, 512, 8, 2, 0, 0, 0))
        + chunk(b'IDAT', rows) + chunk(b'IEND', b''))
";

/// The crate whose programs are packaged.
fn make_crate(name: &str) -> PathBuf {
    let folder = cache_dir(name);
    for made in ["dist", "unpacked", "server.json"] {
        let path = folder.join(made);
        let _was_not_there = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
    fs::create_dir_all(folder.join("src")).expect("a folder");
    write(&folder.join("Cargo.toml"), MANIFEST);
    write(&folder.join("src/main.rs"), "fn main() {}\n");
    write(&folder.join("README.md"), "# Bundled\n\nmcp-name: io.github.ada/bundled\n");
    run(Command::new("python3").args(["-c", ICON]).current_dir(&folder));
    folder
}

/// Beginnings of programs for other machines, and the options that name them.
pub(crate) fn other_programs(folder: &Path) -> Vec<String> {
    let mut windows = b"MZ".to_vec();
    windows.resize(0x3c, 0);
    windows.extend_from_slice(b"\x40\0\0\0PE\0\0\x64\x86");
    let mac =
        b"\xca\xfe\xba\xbe\0\0\0\x02\x01\0\0\x07\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\x0c\x01\0\0\x0c".to_vec();
    let arm = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xb7\0".to_vec();
    let programs = [
        ("x86_64-pc-windows-msvc", "windows.exe", windows),
        ("universal-apple-darwin", "mac", mac),
        ("aarch64-unknown-linux-gnu", "arm", arm),
    ];
    let mut options = Vec::new();
    for (triple, file, bytes) in programs {
        fs::write(folder.join(file), bytes).expect("a file");
        options.extend(["--binary".to_owned(), format!("{triple}={file}")]);
    }
    options
}

fn run(command: &mut Command) -> String {
    child::run(command, "", PATIENCE).expect("the program can be run").or_panic(&format!("{command:?}"))
}

#[test]
fn the_official_tool_unpacks_a_bundle_and_finds_its_manifest_valid() {
    let tool = match package::npm(TOOL) {
        Ok(packages) => packages.join("node_modules/@anthropic-ai/mcpb/dist/cli/cli.js"),
        Err(missing) => return skip("the official tool for bundles", &missing),
    };
    let folder = make_crate("bundle");
    let program = format!("x86_64-unknown-linux-gnu={}", settings().display());
    let mut package = Command::new(mcp_dev());
    run(package.args(["package", "mcpb", "--binary", &program]).current_dir(&folder));
    let official =
        |arguments: &[&str]| run(Command::new("node").arg(&tool).args(arguments).current_dir(&folder));
    official(&["unpack", "dist/bundled-0.1.0-linux-x64.mcpb", "unpacked"]);
    let said = official(&["validate", "unpacked/manifest.json"]);
    assert!(said.contains("passes"), "{said}");
    let listed = run(Command::new(folder.join("unpacked/server/bundled")).arg("--help"));
    assert!(listed.contains("--token"), "{listed}");
    assert!(!Path::new(&folder.join("unpacked/src")).exists(), "only what is named is in it");

    // one for every system: a script, another program on Windows, an icon, and prompts, which the official tool wants in full
    let mut schema: Value = serde_json::from_str(&run(Command::new(settings()).arg("schema"))).expect("JSON");
    schema["prompts"] = json!([{ "name": "ask", "arguments": [{ "name": "what" }] }]);
    write(&folder.join("schema.json"), &schema.to_string());
    let mut package = Command::new(mcp_dev());
    package.args(["package", "mcpb", "--schema", "schema.json", "--binary", &program]);
    run(package.args(other_programs(&folder)).current_dir(&folder));
    fs::remove_dir_all(folder.join("unpacked")).expect("a folder");
    official(&["unpack", "dist/bundled-0.1.0.mcpb", "unpacked"]);
    let said = official(&["validate", "unpacked/manifest.json"]);
    assert!(said.contains("passes"), "{said}");
    let manifest = fs::read_to_string(folder.join("unpacked/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!((&manifest["icon"], &manifest["prompts_generated"]), (&json!("icon.png"), &json!(true)));
    assert!(manifest.get("prompts").is_none(), "{manifest}");
    let overrides = &manifest["server"]["mcp_config"]["platform_overrides"];
    assert_eq!(overrides["win32"]["command"], "${__dirname}/server/bundled.exe");
    assert_eq!(manifest["compatibility"]["platforms"], json!(["darwin", "linux", "win32"]));
    // a path is asked for by a dialog
    assert_eq!(manifest["user_config"]["database"]["type"], "file");
    let listed = run(Command::new(folder.join("unpacked/server/bundled")).arg("--help"));
    assert!(listed.contains("--token"), "{listed}");
}

#[test]
fn the_registrys_schema_and_rules_accept_the_file_that_lists_a_server() {
    let python = match package::python(REGISTRY) {
        Ok(python) => python,
        Err(missing) => return skip("the schema of the registry", &missing),
    };
    let folder = make_crate("listed");
    let program = format!("x86_64-unknown-linux-gnu={}", settings().display());
    let mut bundle = Command::new(mcp_dev());
    run(bundle.args(["package", "mcpb", "--binary", &program]).current_dir(&folder));
    let mut list = Command::new(mcp_dev());
    list.args(["package", "server-json", "--program", &settings().display().to_string()]);
    run(list.current_dir(&folder));
    let alone = folder.join("unpacked");
    fs::create_dir_all(&alone).expect("a folder");
    let written = fs::read_to_string(folder.join("server.json")).expect("the file");
    let lint = |text: &str| {
        write(&alone.join("server.json"), text);
        let output = Command::new(python.with_file_name("skillsaw"))
            .arg("lint")
            .arg(&alone)
            .env("NO_COLOR", "1")
            .output()
            .expect("the linter");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (is_accepted, said) = lint(&written);
    assert!(is_accepted && said.contains("Repo type: mcp-registry"), "{said}{written}");
    let all: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(all["packages"].as_array().map(Vec::len), Some(4));
    let variables = &all["packages"][0]["environmentVariables"];
    let database = variables.as_array().into_iter().flatten().find(|one| one["name"] == "PROBE_DATABASE");
    assert_eq!(database.expect("a variable")["format"], "filepath");
    // it looks at what it is given
    let (is_accepted, said) = lint(&written.replace("\"filepath\"", "\"path\""));
    assert!(!is_accepted && said.contains("does not conform to MCP Registry 2025-12-11"), "{said}");
}
