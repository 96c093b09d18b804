//! `package`: puts the built programs of a crate into what clients and users install: a bundle, or packages of npm, and lists it in
//! the registry of servers. What is in them comes from the crate's manifest and from the server itself. A file or folder is replaced whole, or is as it was.

mod archive;
mod crate_info;
mod mcpb;
mod npm;
mod program;
mod server_json;
mod workflow;

use std::{path::PathBuf, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use crate::{Failure, Outcome, print, read_text, report};
use crate_info::CrateInfo;
use program::{Profile, Program};

pub(crate) fn command() -> Command {
    let target = Arg::new("target").long("target").value_name("TRIPLE").action(ArgAction::Append);
    let binary = Arg::new("binary").long("binary").value_name("TRIPLE=FILE").action(ArgAction::Append);
    let shared = [
        Arg::new("manifest")
            .long("manifest-path")
            .value_name("FILE")
            .default_value("Cargo.toml")
            .help("The manifest of the crate"),
        Arg::new("bin").long("bin").value_name("NAME").help("The program, if the crate has several"),
        Arg::new("profile")
            .long("profile")
            .value_name("NAME")
            .default_value("release")
            .help("The profile of cargo that the programs were built with"),
        target.help("A target to package, from target/TRIPLE/PROFILE; this machine's by default"),
        binary.help("The program of a target, if it is elsewhere"),
        Arg::new("schema")
            .long("schema")
            .value_name("FILE")
            .help("The output of the server's `schema --json`, instead of starting it"),
        Arg::new("out").long("out").value_name("FOLDER").default_value("dist").help("Where the packages go"),
    ];
    let each = Arg::new("each")
        .long("each")
        .action(ArgAction::SetTrue)
        .help("A bundle for each target, instead of one for all");
    Command::new("package")
        .about("Make packages of the built programs of a crate")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("mcpb")
                .about("A bundle for Claude Desktop and other clients")
                .args(shared.clone())
                .arg(each),
        )
        .subcommand(
            Command::new("npm")
                .about("A launcher and a package for each target, for npm")
                .args(shared.clone()),
        )
        .subcommand(workflow::command(
            shared.iter().filter(|one| ["manifest", "bin"].contains(&one.get_id().as_str())).cloned(),
        ))
        .subcommand({
            let program = Arg::new("program").long("program").value_name("FILE");
            let is_used = |argument: &Arg| {
                ["manifest", "bin", "profile", "schema", "out"].contains(&argument.get_id().as_str())
            };
            let used = shared.into_iter().filter(is_used).map(|argument| match argument.get_id().as_str() {
                "out" => argument.help("Where bundles of `package mcpb` are"),
                _ => argument,
            });
            server_json::command(
                used.chain([program.help("The program of this machine, instead of target/PROFILE/NAME")]),
            )
        })
}

/// # Errors
/// All that is missing or wrong of programs, manifest and files, or a file cannot be written.
pub(crate) fn run(arguments: &ArgMatches) -> Outcome {
    let Some((kind, arguments)) = arguments.subcommand() else { return Ok(ExitCode::from(2)) };
    match kind {
        "server-json" => return server_json::run(arguments),
        "workflow" => return workflow::run(arguments),
        _ => {}
    }
    let mut problems = Vec::new();
    let input = Input::read(arguments, &mut problems)?;
    let made = match kind {
        "mcpb" => mcpb::make(&input, arguments.get_flag("each"), problems)?,
        _ => npm::make(&input, problems)?,
    };
    print(&format!("{}\n", made.join("\n")))?;
    let unverified = input.programs.iter().filter(|program| !program.is_of_this_machine());
    let unverified: Vec<String> = unverified.map(|program| program.platform()).collect();
    if !unverified.is_empty() {
        report(&format!("not started here, only known by their headers: {}", unverified.join(", ")));
    }
    Ok(ExitCode::SUCCESS)
}

/// What packages are made of.
struct Input {
    info: CrateInfo,
    /// Sorted, at least one.
    programs: Vec<Program>,
    /// What the server says about itself.
    schema: Value,
    out: PathBuf,
}

impl Input {
    /// What is missing or wrong is added to `problems`.
    ///
    /// # Errors
    /// Nothing is known without it.
    fn read(arguments: &ArgMatches, problems: &mut Vec<String>) -> Result<Self, Failure> {
        let text = |name: &str| arguments.get_one::<String>(name).map(String::as_str);
        let texts = |name: &str| arguments.get_many::<String>(name).unwrap_or_default().map(String::as_str);
        let info = CrateInfo::read(text("manifest").unwrap_or("Cargo.toml"), text("bin"), problems)?;
        let profile = Profile::of(arguments);
        let mut files: Vec<(String, PathBuf)> = Vec::new();
        for triple in texts("target") {
            let file = format!("{}{}", info.bin, if triple.contains("windows") { ".exe" } else { "" });
            let path = info.target_folder.join(triple).join(profile.folder()).join(file);
            files.push((triple.to_owned(), path));
        }
        for given in texts("binary") {
            let (triple, file) = given
                .split_once('=')
                .ok_or("`--binary` needs a target and a file: `--binary TRIPLE=FILE`")?;
            files.push((triple.to_owned(), file.into()));
        }
        if files.is_empty() {
            let file = format!("{}{}", info.bin, std::env::consts::EXE_SUFFIX);
            files.push((program::this_machine(), info.target_folder.join(profile.folder()).join(file)));
        }
        let mut programs = Vec::new();
        for (triple, path) in &files {
            let program = Program::read(triple, path, profile);
            programs.extend(program.map_err(|error| problems.push(error.to_string())).ok());
        }
        programs.sort_by_key(Program::platform);
        if let Some(pair) = programs.windows(2).find(|pair| pair[0].platform() == pair[1].platform()) {
            problems.push(format!("there are two programs for {}", pair[0].platform()));
        }
        let schema = match (text("schema"), programs.iter().find(|program| program.is_of_this_machine())) {
            (Some(file), _) => read_schema(file),
            (None, Some(program)) => program.schema(),
            // that of this machine may be the one that is missing
            (None, None) if programs.len() < files.len() => Ok(json!({ "server": { "name": "" } })),
            (None, None) => Err("none of the programs runs on this machine, so what the server offers is not known\n`--schema FILE` is what `schema --json` of the server prints".into()),
        };
        let schema = schema.unwrap_or_else(|error| {
            problems.push(error.to_string());
            json!({ "server": { "name": "" } })
        });
        if !schema["server"]["name"].is_string() {
            problems.push(
                "the schema does not name the server: it is not what `schema --json` prints".to_owned(),
            );
        }
        Ok(Self { info, programs, schema, out: text("out").unwrap_or("dist").into() })
    }
}

/// # Errors
/// There are problems: all of them.
fn check(mut problems: Vec<String>) -> Result<(), Failure> {
    match problems.len() {
        0 => Ok(()),
        1 => Err(problems.remove(0).into()),
        count => {
            let list = problems.iter().map(|problem| format!("\n  {}", problem.replace('\n', "\n    ")));
            Err(format!("{count} things are missing or wrong:{}", list.collect::<String>()).into())
        }
    }
}

fn read_schema(file: &str) -> Result<Value, Failure> {
    let text = read_text(file.as_ref()).map_err(|error| format!("`{file}` cannot be read: {error}"))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("`{file}` is not JSON: {error}"))?)
}

/// The kind of a setting's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Boolean,
    Text,
    /// A path of a file, or of a folder if the name of the setting says so.
    File,
    Directory,
}

impl Kind {
    fn of(name: &str, schema: &Value) -> Self {
        let alternatives = schema["anyOf"].as_array().into_iter().flatten();
        let schema = alternatives.clone().find(|one| one["type"] != "null").unwrap_or(schema);
        let types: Vec<&str> = match &schema["type"] {
            Value::Array(types) => {
                types.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect()
            }
            name => name.as_str().into_iter().collect(),
        };
        let is_folder = |word: &str| {
            ["dir", "directory", "folder", "root", "workspace", "home"].contains(&&*word.to_ascii_lowercase())
        };
        match types.as_slice() {
            ["integer" | "number"] => Self::Number,
            ["boolean"] => Self::Boolean,
            ["string"] if schema["format"] != "path" => Self::Text,
            ["string"] if name.split(['_', '-']).any(is_folder) => Self::Directory,
            ["string"] => Self::File,
            _ => Self::Text,
        }
    }

    /// Its name in bundles, which ask for a path by a dialog.
    fn in_bundle(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Text => "string",
            Self::File => "file",
            Self::Directory => "directory",
        }
    }

    /// Its name in the registry of servers.
    fn in_registry(self) -> &'static str {
        match self {
            Self::File | Self::Directory => "filepath",
            other => other.in_bundle(),
        }
    }
}

/// How a server gets the value of a setting.
enum Source {
    /// By a variable of this name.
    Variable(String),
    /// By a flag, with `--`, if no variable is known.
    Flag(String),
}

/// A setting of the server, as clients ask for it.
struct Setting {
    /// Its path, joined by `_`.
    key: String,
    source: Source,
    kind: Kind,
    schema: Value,
    is_required: bool,
    /// Whether its value, or a part of it, is not shown.
    is_secret: bool,
}

/// How many references to definitions are followed, of types that contain themselves.
const MAX_REFERENCES: usize = 16;

/// Whether a value of this schema may have something secret in it, such as a member of an item of a list; `root` has the
/// definitions.
fn has_secret(root: &Value, schema: &Value, references: usize) -> bool {
    match schema {
        Value::Object(members) => {
            let defined = members
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|to| root.pointer(to.strip_prefix('#')?));
            members.get("writeOnly") == Some(&Value::Bool(true))
                || members.values().any(|member| has_secret(root, member, references))
                || (references < MAX_REFERENCES
                    && defined.is_some_and(|schema| has_secret(root, schema, references + 1)))
        }
        Value::Array(items) => items.iter().any(|item| has_secret(root, item, references)),
        _ => false,
    }
}

/// The settings in the schema of a server.
fn settings(schema: &Value) -> Vec<Setting> {
    fn collect(root: &Value, table: &Value, path: &str, is_required: bool, found: &mut Vec<Setting>) {
        let required = table["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (name, property) in table["properties"].as_object().into_iter().flatten() {
            let key: String =
                format!("{path}{name}").replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
            let is_required = is_required && required.iter().any(|required| required == name);
            let text = |key: &str| property[key].as_str().map(str::to_owned);
            match text("x-env").map(Source::Variable).or_else(|| text("x-flag").map(Source::Flag)) {
                Some(source) => found.push(Setting {
                    kind: Kind::of(&key, property),
                    key,
                    source,
                    schema: property.clone(),
                    is_required: is_required && property.get("default").is_none(),
                    is_secret: has_secret(root, property, 0),
                }),
                None => collect(root, property, &format!("{key}_"), is_required, found),
            }
        }
    }
    let mut found = Vec::new();
    let root = &schema["settings"];
    collect(root, root, "", true, &mut found);
    found
}
