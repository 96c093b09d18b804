//! Packages of npm: one that starts the program of this machine, and one for each target, of which npm installs the one that
//! fits. Nothing runs during the installation.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{Input, program::Program};
use crate::{
    Failure,
    folder::{self, Entry},
    read_text,
};

const LAUNCHER: &str = include_str!("../../template/launcher.js.txt");

/// Makes the packages; returns their folders.
///
/// # Errors
/// The name is not one of npm, or a file cannot be written.
pub(super) fn make(input: &Input, mut problems: Vec<String>) -> Result<Vec<String>, Failure> {
    let info = &input.info;
    problems.extend(check_name(&info.npm).err());
    let folder = input.out.join("npm");
    // everything is read and checked before the first package is written
    let readme = info.readme.as_ref().and_then(|path| {
        let read = mcp_runtime::__dev::read_file(path);
        read.map_err(|error| problems.push(format!("`{}` cannot be read: {error}", path.display()))).ok()
    });
    let names = input.programs.iter().map(|program| format!("{}-{}", info.npm, program.platform()));
    for name in names.chain([info.npm.clone()]) {
        problems.extend(check_place(&folder, &name).err());
    }
    super::check(problems)?;
    let mut made = Vec::new();
    let mut table = Map::new();
    let mut optional = Map::new();
    for program in &input.programs {
        let name = format!("{}-{}", info.npm, program.platform());
        let file = format!("{}{}", info.bin, program.suffix());
        optional.insert(name.clone(), info.version.as_str().into());
        for processor in processors(input, program) {
            let key = format!("{}-{processor}", program.system);
            let entry = json!({ "name": name, "file": file, "musl": program.is_musl });
            match table.entry(key).or_insert_with(|| json!([])) {
                Value::Array(entries) => entries.push(entry),
                _ => return Err("the table of programs is broken".into()),
            }
        }
        let files = [
            ("package.json", pretty(&of_program(input, program, &name)), false),
            (&*format!("bin/{file}"), program.bytes.clone(), true),
        ];
        made.push(write_folder(&folder, &name, files)?);
    }
    let mut main = described(input, &info.npm);
    main["bin"] = json!({ info.bin.as_str(): "bin/launch.js" });
    main["files"] = json!(["bin"]);
    main["engines"] = json!({ "node": ">=18" });
    main["optionalDependencies"] = optional.into();
    if !info.keywords.is_empty() {
        main["keywords"] = json!(info.keywords);
    }
    if let Some(name) = &info.registry_name {
        main["mcpName"] = name.as_str().into();
    }
    let script = LAUNCHER.replace("__PROGRAMS__", &format!("{:#}", Value::Object(table)));
    let mut files =
        vec![("package.json", pretty(&main), false), ("bin/launch.js", script.into_bytes(), true)];
    if let Some(text) = readme {
        files.push(("README.md", text, false));
    }
    made.push(write_folder(&folder, &info.npm, files)?);
    Ok(made)
}

/// The members that all of the packages have.
fn described(input: &Input, name: &str) -> Value {
    let info = &input.info;
    let mut all = json!({ "name": name, "version": info.version, "description": info.description });
    if let Some(license) = &info.license {
        all["license"] = license.as_str().into();
    }
    if let Some(url) = &info.repository {
        all["repository"] = json!({ "type": "git", "url": url });
    }
    if let Some(url) = &info.homepage {
        all["homepage"] = url.as_str().into();
    }
    all
}

/// The processors on which a program runs: Windows on Arm runs the one for x64, unless there is one of its own.
fn processors(input: &Input, program: &Program) -> Vec<&'static str> {
    let mut all = program.processors.to_vec();
    let is_arm = |other: &Program| other.system == "win32" && other.processors.contains(&"arm64");
    if program.system == "win32" && !input.programs.iter().any(is_arm) {
        all.push("arm64");
    }
    all
}

fn of_program(input: &Input, program: &Program, name: &str) -> Value {
    let mut all = described(input, name);
    all["description"] = format!("{} ({})", input.info.description, program.platform()).into();
    all["os"] = json!([program.system]);
    all["cpu"] = json!(processors(input, program));
    let has_other = input.programs.iter().any(|other| {
        other.system == program.system
            && other.processors == program.processors
            && other.is_musl != program.is_musl
    });
    // one for musl runs with glibc as well
    if program.system == "linux" && (!program.is_musl || has_other) {
        all["libc"] = json!([if program.is_musl { "musl" } else { "glibc" }]);
    }
    all["files"] = json!(["bin"]);
    all["preferUnplugged"] = true.into();
    all
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

/// # Errors
/// npm refuses the name.
fn check_name(name: &str) -> Result<(), String> {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '_'])
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c))
    };
    let is_name = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_part(scope) && is_part(name)),
        None => is_part(name),
    };
    if is_name && name.len() <= 190 {
        return Ok(());
    }
    Err(format!(
        "`{name}` cannot be the name of a package of npm\nadd `npm = \"..\"` to [package.metadata.mcp]"
    ))
}

/// The folder of a package: its name without the scope.
fn place_of(parent: &Path, name: &str) -> PathBuf {
    parent.join(name.rsplit('/').next().unwrap_or(name))
}

/// # Errors
/// The folder of a package has something else.
fn check_place(parent: &Path, name: &str) -> Result<(), String> {
    let folder = place_of(parent, name);
    let shown = folder.display();
    match read_text(&folder.join("package.json")) {
        Ok(text) => {
            let old: Value = serde_json::from_str(&text).unwrap_or_default();
            if old["name"] != name {
                return Err(format!("`{shown}` has another package, and is left alone"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!("`{shown}` is not a package, and is left alone"));
        }
        Err(error) => return Err(format!("`{shown}` cannot be read: {error}")),
    }
    Ok(())
}

/// Writes a package into its folder; one that was made before is replaced.
fn write_folder<'f>(
    parent: &Path,
    name: &str,
    files: impl IntoIterator<Item = Entry<'f>>,
) -> Result<String, Failure> {
    let folder = place_of(parent, name);
    let shown = folder.display().to_string();
    let real = mcp_runtime::__dev::resolve(&folder);
    real.and_then(|real| folder::write(&real, files))
        .map_err(|error| format!("`{shown}` cannot be written: {error}"))?;
    Ok(shown)
}
