//! Third-party programs (SDKs, the conformance suite, a browser, PostgreSQL, Redis, nginx): installed once, killed when they are dropped,
//! and skipped visibly where something is missing.

pub mod browser;
#[cfg(unix)]
pub mod nginx;
pub mod package;
#[cfg(unix)]
pub mod postgres;
#[cfg(unix)]
pub mod redis;
pub mod replicas;

use std::{env, io::Write, path::Path};

/// What a test needs and the machine does not have.
#[derive(Debug)]
pub struct Missing(pub String);

/// Reports on the terminal that `test` was skipped because something is missing.
///
/// # Panics
///
/// Under `CI=true`, where nothing may be missing.
pub fn skip(test: &str, missing: &Missing) {
    let Missing(what) = missing;
    assert!(env::var("CI").as_deref() != Ok("true"), "`{test}` cannot run: {what}");
    // not `eprintln!`: the test harness captures that, and does not show it for a test that passes
    let _ = std::io::stderr().write_all(format!("SKIPPED: {test}: {what}\n").as_bytes());
}

/// The directory of this package, which contains drivers and manifests.
#[must_use]
pub fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages whose blocks need crates that take long to compile. `tests/lib.rs` has the others.
#[cfg(doctest)]
mod docs {
    #[doc = include_str!("../../../docs/cluster.md")]
    struct Cluster;
    #[doc = include_str!("../../../docs/database.md")]
    struct Database;
    #[doc = include_str!("../../../docs/telemetry.md")]
    struct Telemetry;
}
