//! The official Python and TypeScript SDKs drive the examples, over stdio and HTTP, in legacy and modern revisions.
//!
//! The requests and expected results are written once, in Rust, for both SDKs; the driver scripts only translate.

#[cfg(unix)]
mod author;
mod authorization;
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

fn over_stdio(sdk: Sdk, example: &str, steps: Steps) {
    if let Some(driver) = installed(sdk, example) {
        let binary = example::binary(example);
        drive(&driver, "stdio", &binary.display().to_string(), example, steps);
    }
}

fn over_http(sdk: Sdk, example: &str, steps: Steps) {
    if let Some(driver) = installed(sdk, example) {
        let server = Served::start(example, &repo::tree());
        drive(&driver, "http", &server.url(), example, steps);
    }
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
fn python_drives_repo_over_stdio() {
    over_stdio(Sdk::Python, "repo", repo::steps);
}

#[test]
fn python_drives_repo_over_http() {
    over_http(Sdk::Python, "repo", repo::steps);
}

#[test]
fn python_drives_content_over_stdio() {
    over_stdio(Sdk::Python, "content", content::steps);
}

#[test]
fn python_drives_content_over_http() {
    over_http(Sdk::Python, "content", content::steps);
}

#[test]
fn typescript_drives_repo_over_stdio() {
    over_stdio(Sdk::TypeScript, "repo", repo::steps);
}

#[test]
fn typescript_drives_repo_over_http() {
    over_http(Sdk::TypeScript, "repo", repo::steps);
}

#[test]
fn typescript_drives_content_over_stdio() {
    over_stdio(Sdk::TypeScript, "content", content::steps);
}

#[test]
fn typescript_drives_content_over_http() {
    over_http(Sdk::TypeScript, "content", content::steps);
}

#[test]
fn python_drives_everything_over_stdio() {
    over_stdio(Sdk::Python, "everything", everything::steps);
}

#[test]
fn python_drives_everything_over_http() {
    over_http(Sdk::Python, "everything", everything::steps);
}

#[test]
fn typescript_drives_everything_over_stdio() {
    over_stdio(Sdk::TypeScript, "everything", everything::steps);
}

#[test]
fn typescript_drives_everything_over_http() {
    over_http(Sdk::TypeScript, "everything", everything::steps);
}
