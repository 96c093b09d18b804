//! `new`: makes a crate with a server that builds, is tested, has a lock and can be packaged. The folder appears whole, or
//! not at all.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Arg, ArgMatches, Command};

use crate::{Failure, Outcome, folder, read_text, report};

/// The files of a crate. `{{..}}` is replaced.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("../template/Cargo.toml.txt")),
    ("src/lib.rs", include_str!("../template/lib.rs.txt")),
    ("src/main.rs", include_str!("../template/main.rs.txt")),
    ("tests/server.rs", include_str!("../template/test.rs.txt")),
    ("mcp.lock.json", include_str!("../template/mcp.lock.json.txt")),
    ("README.md", include_str!("../template/README.md.txt")),
    (".gitignore", include_str!("../template/gitignore.txt")),
];

/// Names that a crate cannot have: they are crates that it uses, words of the language, or folders of a build.
const TAKEN: [&str; 26] = [
    "alloc",
    "async",
    "await",
    "build",
    "const",
    "core",
    "crate",
    "deps",
    "enum",
    "examples",
    "fn",
    "impl",
    "incremental",
    "let",
    "loop",
    "main",
    "match",
    "mcp-runtime",
    "mcp_runtime",
    "proc-macro",
    "server",
    "self",
    "std",
    "struct",
    "test",
    "tokio",
];

pub(crate) fn command() -> Command {
    Command::new("new")
        .about("Make a crate with a server that builds, is tested, has a lock file and can be packaged")
        .arg(
            Arg::new("folder")
                .required(true)
                .value_name("NAME")
                .help("The crate's name, or a folder that ends with it"),
        )
        .arg(
            Arg::new("path")
                .long("path")
                .value_name("FOLDER")
                .help("Depend on `mcp-runtime` in this folder instead of its release"),
        )
        .arg(
            Arg::new("owner")
                .long("owner")
                .value_name("NAMESPACE")
                .help("The namespace in the registry, such as io.github.ada"),
        )
        .arg(Arg::new("author").long("author").value_name("NAME").help("The author"))
}

/// # Errors
/// There is something of that name, or a file cannot be written; the folder is not made then.
pub(crate) fn run(arguments: &ArgMatches) -> Outcome {
    let text = |name: &str| arguments.get_one::<String>(name).map(String::as_str);
    let folder = Path::new(text("folder").unwrap_or_default());
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let owner = text("owner").unwrap_or("io.github.OWNER");
    let author = text("author").unwrap_or("OWNER");
    let wrong =
        check_name(name).err().or_else(|| check_owner(owner).err()).or_else(|| check_author(author).err());
    if let Some(message) = wrong {
        report(&format!("error: {message}"));
        return Ok(ExitCode::from(2));
    }
    let source = match text("path") {
        Some(path) => path_source(Path::new(path))?,
        None => {
            let release = env!("CARGO_PKG_VERSION").rsplit_once('.').map_or("0.1", |(release, _)| release);
            format!("version = \"{release}\"")
        }
    };
    let module = name.replace('-', "_");
    let title = to_title(name);
    let values = [
        ("name", name),
        ("module", &module),
        ("title", &title),
        ("variable", &module.to_uppercase()),
        ("owner", owner),
        ("author", author),
        ("source", &source),
    ];
    write_all(folder, &values)?;
    let mut next = format!(
        "made `{}`\n\n  cd {0}\n  cargo test\n  cargo run -- call greet '{{\"name\": \"Ada\"}}'",
        folder.display()
    );
    if let Some(workspace) = workspace_of(folder) {
        next += &format!("\n\n`{}` is a workspace: add `{name}` to its members", workspace.display());
    }
    report(&next);
    Ok(ExitCode::SUCCESS)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.len() > 63 || !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_inside)
    {
        return Err("a name has up to 63 of `a-z`, `0-9`, `-` and `_`, and begins with a letter".to_owned());
    }
    if TAKEN.contains(&name) {
        return Err(format!(
            "a crate cannot be named `{name}`: the name is taken by Rust or by a crate that it uses"
        ));
    }
    Ok(())
}

fn check_owner(owner: &str) -> Result<(), String> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    if owner.is_empty() || owner.len() > 120 || !owner.chars().all(is_inside) {
        return Err("`--owner` is a name such as `io.github.ada` or `com.example`".to_owned());
    }
    Ok(())
}

fn check_author(author: &str) -> Result<(), String> {
    let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if author.trim().is_empty() || author.len() > 200 || !author.chars().all(is_plain) {
        return Err("`--author` is a name without quotation marks".to_owned());
    }
    Ok(())
}

/// `my-server` is `My server`.
fn to_title(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

fn path_source(path: &Path) -> Result<String, Failure> {
    let manifest = path.join("Cargo.toml");
    let text =
        read_text(&manifest).map_err(|error| format!("`{}` cannot be read: {error}", manifest.display()))?;
    if !text.contains("name = \"mcp-runtime\"") {
        return Err(format!("`{}` is not the folder of `mcp-runtime`", path.display()).into());
    }
    let path = path.canonicalize()?;
    let path = path.to_str().ok_or("the path is not UTF-8")?;
    let path = path.strip_prefix(r"\\?\").unwrap_or(path);
    // a JSON string is a basic string of TOML
    Ok(format!("path = {}", serde_json::Value::from(path)))
}

/// Writes the files into a folder that is not there, or empty.
fn write_all(folder: &Path, values: &[(&str, &str)]) -> Result<(), Failure> {
    let shown = folder.display();
    let real =
        mcp_runtime::__dev::resolve(folder).map_err(|error| format!("`{shown}` cannot be made: {error}"))?;
    let is_there = match fs::read_dir(&real) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(format!("`{shown}` cannot be read: {error}").into()),
    };
    if is_there {
        return Err(format!("`{shown}` is not empty").into());
    }
    let files = FILES.iter().map(|(path, text)| (*path, filled(text, values).into_bytes(), false));
    folder::write(&real, files).map_err(|error| format!("`{shown}` cannot be made: {error}").into())
}

/// A template with its values; what is in a value stays as it is.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut parts = template.split("{{");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let named = part.split_once("}}");
        let value =
            named.and_then(|(name, rest)| Some((values.iter().find(|(known, _)| *known == name)?.1, rest)));
        match value {
            Some((value, rest)) => text.extend([value, rest]),
            None => text.extend(["{{", part]),
        }
    }
    text
}

/// The manifest of the workspace that a folder is in.
fn workspace_of(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let manifests = folder.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    manifests.into_iter().find(|path| {
        fs::read_to_string(path).is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
    })
}
