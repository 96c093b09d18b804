//! The programs of this workspace as processes, which are killed when they are dropped.

pub mod child;
pub mod example;
#[cfg(unix)]
pub mod fifo;

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

/// The directory of this package, which contains drivers and manifests.
#[must_use]
pub fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The packages in the order in which they are published: each depends only on those before it.
pub const PUBLISHED: [&str; 9] = [
    "mcp-runtime-macros",
    "mcp-runtime-schema",
    "mcp-runtime-fetch",
    "mcp-runtime",
    "mcp-runtime-openapi",
    "mcp-runtime-exchange",
    "mcp-runtime-remote",
    "mcp-runtime-search",
    "mcp-dev",
];

/// The directory of the workspace: cargo selects the packages there that `cargo test` selects.
#[must_use]
pub fn workspace_dir() -> &'static Path {
    manifest_dir().parent().expect("the package is in a workspace")
}

/// `target/<profile>`, derived from the path of the test binary, so that any target directory and profile work.
///
/// # Panics
///
/// If the test binary is not where cargo puts it.
#[must_use]
pub fn profile_dir() -> PathBuf {
    let binary = env::current_exe().expect("the test binary has a path");
    binary.ancestors().nth(2).expect("the test binary is in target/<profile>/deps").to_owned()
}

/// The cargo of this test run, without what it tells tests of their package: build scripts such as that of `ring` read the same
/// variables, and cargo would run them, and build all that depends on their crates, once more.
#[must_use]
pub fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// A directory under `target/` that is kept between runs: installed packages, logs and reports.
///
/// # Panics
///
/// If it cannot be created.
#[must_use]
pub fn cache_dir(name: &str) -> PathBuf {
    let profile = profile_dir();
    let target = profile.parent().expect("a profile folder is in a target folder");
    let dir = target.join("interop").join(name);
    fs::create_dir_all(&dir).unwrap_or_else(|error| panic!("cannot make `{}`: {error}", dir.display()));
    dir
}

/// Waits until no other test, of this process or another, holds the lock `name`; the lock is held until the file is
/// dropped.
///
/// # Panics
///
/// If the lock file cannot be made or locked.
#[must_use]
pub fn lock(name: &str) -> File {
    let path = cache_dir("locks").join(name);
    let file =
        File::create(&path).unwrap_or_else(|error| panic!("cannot make `{}`: {error}", path.display()));
    file.lock().unwrap_or_else(|error| panic!("cannot lock `{}`: {error}", path.display()));
    file
}
