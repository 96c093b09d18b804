//! `server.json`, by which the registry of servers lists one: made from the manifest and the server's settings, and refused here
//! where the registry would refuse it later. `--check` says what has changed since it was written.

use std::{fmt::Write as _, fs, io, path::Path, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{
    Setting, Source,
    crate_info::CrateInfo,
    program::{self, Profile, Program},
    settings,
};
use crate::{Outcome, print, read_text, report};

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// What the author adds by hand, and is kept.
const KEPT: [&str; 2] = ["_meta", "icons"];
const PUBLISHER_META: &str = "io.modelcontextprotocol.registry/publisher-provided";
const MAX_PUBLISHER_META: usize = 4 << 10;
const MAX_DESCRIPTION: usize = 100;
const MAX_TITLE: usize = 100;
const MAX_ICON: usize = 255;
/// How many keywords crates.io takes of a crate, and characters of one.
const MAX_KEYWORDS: usize = 5;
const MAX_KEYWORD: usize = 20;

pub(super) fn command(shared: impl IntoIterator<Item = Arg>) -> Command {
    Command::new("server-json")
        .about("Write the file by which the registry lists the server")
        .args(shared)
        .arg(Arg::new("file").long("file").value_name("FILE").default_value("server.json").help("The file"))
        .arg(
            Arg::new("check")
                .long("check")
                .action(ArgAction::SetTrue)
                .help("Write nothing; the exit code is 1 if the file differs"),
        )
}

/// # Errors
/// The registry would refuse it, or the file cannot be read or written.
pub(super) fn run(arguments: &ArgMatches) -> Outcome {
    let text = |name: &str| arguments.get_one::<String>(name).map(String::as_str);
    let mut problems = Vec::new();
    let info = CrateInfo::read(text("manifest").unwrap_or("Cargo.toml"), text("bin"), &mut problems)?;
    let read_schema = || match text("schema") {
        Some(file) => super::read_schema(file),
        None => {
            let file = format!("{}{}", info.bin, std::env::consts::EXE_SUFFIX);
            let path = match text("program") {
                Some(path) => path.into(),
                None => info.target_folder.join(Profile::of(arguments).folder()).join(file),
            };
            Program::read(&program::this_machine(), &path, Profile::of(arguments))?.schema()
        }
    };
    let schema = read_schema();
    let schema = schema.map_err(|error| problems.push(error.to_string())).unwrap_or_default();
    let path = Path::new(text("file").unwrap_or("server.json"));
    let shown = path.display();
    let old = match read_text(path) {
        Ok(text) => Some(
            serde_json::from_str::<Value>(&text)
                .map_err(|error| format!("`{shown}` is not JSON, and is left alone: {error}"))?,
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("`{shown}` cannot be read: {error}").into()),
    };
    let mut made = make(&info, &settings(&schema), text("out").unwrap_or("dist").as_ref(), &mut problems);
    for name in KEPT {
        if let Some(own) = old.as_ref().and_then(|old| old.get(name)) {
            made[name] = own.clone();
        }
    }
    check(&made, &mut problems);
    if !problems.is_empty() {
        let mut list = "the registry would refuse it:".to_owned();
        for problem in problems {
            let _result = write!(list, "\n  {problem}");
        }
        return Err(list.into());
    }
    if arguments.get_flag("check") {
        let old =
            old.ok_or_else(|| format!("`{shown}` does not exist: `mcp-dev package server-json` writes it"))?;
        let mut differences = String::new();
        compare("", &old, &made, &mut differences);
        if differences.is_empty() {
            print("nothing has changed\n")?;
            return Ok(ExitCode::SUCCESS);
        }
        print(&differences)?;
        report(&format!("`mcp-dev package server-json` writes `{shown}` anew"));
        return Ok(ExitCode::FAILURE);
    }
    let written = mcp_runtime::__dev::replace_file(path, format!("{made:#}\n").as_bytes());
    written.map_err(|error| format!("`{shown}` cannot be written: {error}"))?;
    print(&format!("{shown}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn make(info: &CrateInfo, settings: &[Setting], out: &Path, problems: &mut Vec<String>) -> Value {
    let name = info.registry_name.clone().unwrap_or_default();
    let mut all = json!({
        "$schema": SCHEMA,
        "name": name,
        "description": info.description,
        "version": info.version,
    });
    for (key, value) in [("title", &info.title), ("websiteUrl", &info.homepage)] {
        if let Some(value) = value {
            all[key] = value.as_str().into();
        }
    }
    if let Some((url, source)) = info.repository.as_deref().and_then(|url| Some((url, source_of(url)?))) {
        all["repository"] = json!({ "url": url, "source": source });
    }
    let (mut variables, mut arguments) = (Vec::new(), Vec::new());
    for setting in settings {
        match setting.source {
            Source::Variable(_) => variables.push(input(setting)),
            Source::Flag(_) => arguments.push(input(setting)),
        }
    }
    let mut packages = Vec::new();
    for kind in &info.packages {
        let described = match kind.as_str() {
            "cargo" => of_cargo(info, &name, problems),
            "npm" => vec![json!({ "registryType": "npm", "identifier": info.npm, "version": info.version })],
            "mcpb" => of_bundles(info, out, problems),
            "oci" => of_image(info, problems),
            other => {
                problems
                    .push(format!("`{other}` is not a kind of packages: `cargo`, `npm`, `mcpb` or `oci`"));
                Vec::new()
            }
        };
        packages.extend(described);
    }
    for package in &mut packages {
        package["transport"] = json!({ "type": "stdio" });
        if !variables.is_empty() {
            package["environmentVariables"] = variables.clone().into();
        }
        if !arguments.is_empty() {
            package["packageArguments"] = arguments.clone().into();
        }
    }
    if !packages.is_empty() {
        all["packages"] = packages.into();
    }
    if !info.remotes.is_empty() {
        let remotes = info.remotes.iter().map(|url| json!({ "type": "streamable-http", "url": url }));
        all["remotes"] = remotes.collect::<Vec<_>>().into();
    }
    all
}

/// A variable or an argument, as the registry has it.
fn input(setting: &Setting) -> Value {
    let Setting { source, kind, schema, is_required, is_secret, .. } = setting;
    let mut all = match source {
        Source::Variable(name) => json!({ "name": name }),
        Source::Flag(name) => json!({ "type": "named", "name": name }),
    };
    all["format"] = kind.in_registry().into();
    if let Some(text) = schema["description"].as_str() {
        all["description"] = text.into();
    }
    if *is_required {
        all["isRequired"] = true.into();
    }
    if *is_secret {
        all["isSecret"] = true.into();
    }
    match &schema["default"] {
        Value::String(text) => all["default"] = text.as_str().into(),
        value @ (Value::Number(_) | Value::Bool(_)) => all["default"] = value.to_string().into(),
        _ => {}
    }
    if let Some(values) = schema["enum"].as_array() {
        all["choices"] = values.iter().filter(|value| value.is_string()).cloned().collect();
    }
    all
}

fn of_cargo(info: &CrateInfo, name: &str, problems: &mut Vec<String>) -> Vec<Value> {
    if !info.is_published {
        problems.push(
            "`publish` of the crate keeps it from being published: leave `cargo` out of `packages`"
                .to_owned(),
        );
    }
    let readme = info.readme.as_ref().and_then(|path| read_text(path).ok());
    if !readme.is_some_and(|text| names_server(&text, name)) {
        problems.push(format!(
            "the README of the crate does not say whose it is: add the visible line `mcp-name: {name}`"
        ));
    }
    if info.keywords.len() > MAX_KEYWORDS {
        problems.push(format!(
            "`keywords` of the crate are {}, and crates.io takes at most {MAX_KEYWORDS}: leave some out",
            info.keywords.len()
        ));
    }
    for keyword in info.keywords.iter().filter(|keyword| !is_keyword(keyword)) {
        problems.push(format!(
            "crates.io refuses the keyword `{keyword}`: write at most {MAX_KEYWORD} characters, ASCII letters, digits, `_`, `-` \
             and `+`, of which the first is a letter or a digit"
        ));
    }
    vec![json!({ "registryType": "cargo", "identifier": info.name, "version": info.version })]
}

/// Whether crates.io takes a keyword.
fn is_keyword(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-+".contains(c);
    text.len() <= MAX_KEYWORD
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_allowed)
}

/// Whether a README has the name where its readers see it: the registry of crates leaves comments out.
fn names_server(readme: &str, name: &str) -> bool {
    let mut visible = String::new();
    let mut rest = readme;
    while let Some((before, comment)) = rest.split_once("<!--") {
        visible.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    visible.push_str(rest);
    let mut places = visible.split("mcp-name:").skip(1);
    places.any(|after| {
        let found: String = after
            .trim_start()
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "./_-".contains(*c))
            .collect();
        found.trim_end_matches('.') == name
    })
}

/// The bundles that `package mcpb` has made, at the place where releases have them.
fn of_bundles(info: &CrateInfo, out: &Path, problems: &mut Vec<String>) -> Vec<Value> {
    let Some(repository) = info.repository.as_deref().filter(|url| source_of(url).is_some()) else {
        problems.push(
            "bundles are listed by a release on GitHub or GitLab: add `repository` to [package]".to_owned(),
        );
        return Vec::new();
    };
    let repository = repository.trim_end_matches('/').trim_end_matches(".git");
    let start = format!("{}-{}", info.name, info.version);
    let is_own = |file: &str| {
        file.strip_suffix(".mcpb")
            .and_then(|file| file.strip_prefix(&*start))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let files = fs::read_dir(out).into_iter().flatten().flatten();
    let mut files: Vec<String> =
        files.filter_map(|entry| entry.file_name().into_string().ok()).filter(|file| is_own(file)).collect();
    files.sort_unstable();
    if files.is_empty() {
        problems.push(format!(
            "`{}` has no bundle `{start}.mcpb`: `mcp-dev package mcpb` makes it",
            out.display()
        ));
    }
    let mut packages = Vec::new();
    for file in files {
        let place = match source_of(repository) {
            Some("gitlab") => format!("-/releases/v{}/downloads", info.version),
            _ => format!("releases/download/v{}", info.version),
        };
        match mcp_runtime::__dev::read_file(&out.join(&file)) {
            Ok(bytes) => packages.push(json!({
                "registryType": "mcpb",
                "identifier": format!("{repository}/{place}/{file}"),
                "fileSha256": Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            })),
            Err(error) => problems.push(format!("`{file}` cannot be read: {error}")),
        }
    }
    packages
}

fn of_image(info: &CrateInfo, problems: &mut Vec<String>) -> Vec<Value> {
    let Some(image) = &info.oci else {
        problems.push(
            "an image has a name: add `oci = \"ghcr.io/OWNER/NAME\"` to [package.metadata.mcp]".to_owned(),
        );
        return Vec::new();
    };
    let last = image.rsplit('/').next().unwrap_or_default();
    if !image.contains('/') || last.contains([':', '@']) {
        problems.push(format!("`{image}` is not the name of an image: host, owner and name, without a tag"));
    }
    vec![json!({ "registryType": "oci", "identifier": format!("{image}:{}", info.version) })]
}

/// What hosts a repository, if the registry knows it.
fn source_of(repository: &str) -> Option<&'static str> {
    let url = Url::parse(repository).ok()?;
    match url.host_str()? {
        "github.com" => Some("github"),
        "gitlab.com" => Some("gitlab"),
        _ => None,
    }
}

/// The rules of the registry.
fn check(made: &Value, problems: &mut Vec<String>) {
    let text = |name: &str| made[name].as_str().unwrap_or_default();
    let name = text("name");
    let is_part = |part: &str, more: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-' || more.contains(c))
    };
    match name.split_once('/') {
        _ if name.is_empty() => problems.push(
            "the server has no name there: add `name = \"io.github.OWNER/NAME\"` to [package.metadata.mcp]".to_owned(),
        ),
        Some((owner, own)) if is_part(owner, "") && is_part(own, "_") && (3..=200).contains(&name.len()) => {}
        _ => problems.push(format!("`{name}` is not a name: `io.github.OWNER/NAME`, of letters, digits, `.`, `-` and `_`, at most 200")),
    }
    for (key, most) in [("description", MAX_DESCRIPTION), ("title", MAX_TITLE)] {
        let length = text(key).chars().count();
        if length > most {
            problems.push(format!("`{key}` has {length} characters, of at most {most}"));
        }
    }
    let check_url = |what: &str, url: &str, problems: &mut Vec<String>| {
        let is_public = |url: &Url| {
            let host = url.host_str().unwrap_or_default();
            url.scheme() == "https" && !matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0")
        };
        if !Url::parse(url).is_ok_and(|url| is_public(&url)) {
            problems.push(format!("{what} `{url}` is not a public URL with https"));
        }
    };
    if made.get("websiteUrl").is_some() {
        check_url("the homepage", text("websiteUrl"), problems);
    }
    let list = |name: &str| made[name].as_array().map(Vec::as_slice).unwrap_or_default();
    for remote in list("remotes") {
        check_url("the remote", remote["url"].as_str().unwrap_or_default(), problems);
    }
    for icon in list("icons") {
        let source = icon["src"].as_str().unwrap_or_default();
        check_url("the icon", source, problems);
        if source.len() > MAX_ICON {
            problems.push(format!(
                "the address of an icon has {} characters, of at most {MAX_ICON}",
                source.len()
            ));
        }
    }
    for (kind, key) in [("packages", "identifier"), ("remotes", "url")] {
        let names: Vec<_> = list(kind).iter().map(|one| (&one["registryType"], &one[key])).collect();
        if let Some(at) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
            problems.push(format!("`{kind}` has {} twice", names[at].1));
        }
    }
    if list("packages").is_empty() && list("remotes").is_empty() {
        problems.push(
            "nothing says where the server is: add `packages` or `remotes` to [package.metadata.mcp]"
                .to_owned(),
        );
    }
    if let Some(meta) = made.get("_meta") {
        let own = meta.as_object().cloned().unwrap_or_else(Map::new);
        if let Some(other) = own.keys().find(|key| *key != PUBLISHER_META) {
            problems.push(format!(
                "`_meta` has `{other}`, which is left out there: only `{PUBLISHER_META}` is kept"
            ));
        }
        let length = own.get(PUBLISHER_META).map_or(0, |own| own.to_string().len());
        if length > MAX_PUBLISHER_META {
            problems.push(format!("`_meta` has {length} bytes, of at most {MAX_PUBLISHER_META}"));
        }
    }
}

/// Every difference, one a line.
fn compare(path: &str, old: &Value, new: &Value, differences: &mut String) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (old, new) {
        (Value::Object(older), Value::Object(newer)) => {
            let mut names: Vec<&String> = older.keys().chain(newer.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let of = |members: &Map<String, Value>| members.get(name).cloned().unwrap_or_default();
                compare(&below(name), &of(older), &of(newer), differences);
            }
        }
        (Value::Array(older), Value::Array(newer)) => {
            for at in 0..older.len().max(newer.len()) {
                let of = |entries: &[Value]| entries.get(at).cloned().unwrap_or_default();
                compare(&format!("{path}[{at}]"), &of(older), &of(newer), differences);
            }
        }
        (old, new) if old == new => {}
        (Value::Null, new) => drop(writeln!(differences, "{path}: is missing; it would be {new}")),
        (old, Value::Null) => drop(writeln!(differences, "{path}: is {old}, and would be left out")),
        (old, new) => drop(writeln!(differences, "{path}: is {old}, and would be {new}")),
    }
}
