//! The official Python and TypeScript SDKs drive the examples, over stdio and HTTP, in legacy and modern revisions.
//!
//! The requests and expected results are written once, in Rust, for both SDKs; the driver scripts only translate.

#[cfg(unix)]
mod author;
pub(crate) mod authorization;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod bundle;
mod content;
#[cfg(unix)]
mod doctor;
mod driver;
mod everything;
mod expect;
#[cfg(unix)]
mod page;
mod repo;
#[cfg(unix)]
mod swaps;

use mcp_external_tests::skip;
use mcp_tests::programs::example::{self, Served};

use driver::{Driver, Mode, Sdk};
use expect::Step;

/// The steps for an SDK and mode.
type Steps = fn(Sdk, Mode) -> Vec<Step>;

/// Drives an example over stdio and over HTTP.
fn drives(sdk: Sdk, example: &str, steps: Steps) {
    let Some(driver) = installed(sdk, example) else { return };
    drive(&driver, "stdio", &example::binary(example).display().to_string(), example, steps);
    let server = Served::start(example, &repo::tree());
    drive(&driver, "http", &server.url(), example, steps);
}

fn installed(sdk: Sdk, example: &str) -> Option<Driver> {
    let script = if matches!(example, "everything" | "swap") { example } else { "drive" };
    sdk.install(script).map_err(|missing| skip(&format!("{sdk:?} drives {example}"), &missing)).ok()
}

fn drive(driver: &Driver, transport: &str, target: &str, example: &str, steps: Steps) {
    for mode in Mode::ALL {
        let steps = steps(driver.sdk, mode);
        expect::check(&driver.drive(transport, target, mode, &steps), mode, example, &steps);
    }
}

#[test]
fn python_drives_repo() {
    drives(Sdk::Python, "repo", repo::steps);
}

#[test]
fn python_drives_content() {
    drives(Sdk::Python, "content", content::steps);
}

#[test]
fn python_drives_everything() {
    drives(Sdk::Python, "everything", everything::steps);
}

#[test]
fn typescript_drives_repo() {
    drives(Sdk::TypeScript, "repo", repo::steps);
}

#[test]
fn typescript_drives_content() {
    drives(Sdk::TypeScript, "content", content::steps);
}

#[test]
fn typescript_drives_everything() {
    drives(Sdk::TypeScript, "everything", everything::steps);
}
