//! Runs the official conformance suite against the `everything` example, over HTTP, and the client against its servers. Every scenario must pass: failures,
//! warnings, skipped checks and scenarios that check nothing all fail the test.

mod client;
mod relay;
#[cfg(unix)]
mod replicas;
mod revisions;
#[path = "../../integration/matrix/sample_server.rs"]
mod sample_server;
mod schemas;
mod suite;
mod verdict;

use mcp_external_tests::{manifest_dir, skip};
use mcp_tests::programs::{example::Served, lock};

use suite::{Set, Suite};
use verdict::Verdict;

fn conforms(set: &Set) {
    let suite = match Suite::install() {
        Ok(suite) => suite,
        Err(missing) => return skip(&format!("conformance {}", set.name), &missing),
    };
    // some scenarios measure milliseconds, so sets run one after the other
    let _lock = lock("conformance");
    let server = Served::start("everything", manifest_dir());
    passes(&suite, set, &server.url());
}

/// Runs a set against the server at a URL: each scenario must pass.
fn passes(suite: &Suite, set: &Set, url: &str) {
    let verdicts = suite.run(set, url);
    let complaints: Vec<_> = verdicts
        .iter()
        .filter_map(|(scenario, verdict)| match verdict {
            Verdict::Passed => None,
            Verdict::Not(why) => Some(format!("`{scenario}`\n  {}", why.join("\n  "))),
        })
        .collect();
    assert!(complaints.is_empty(), "{} of set `{}`:\n{}", complaints.len(), set.name, complaints.join("\n"));
}

#[test]
fn requirements_of_2025_11_25_are_met() {
    conforms(&suite::REQUIREMENTS_2025_11_25);
}

#[test]
fn requirements_of_2026_07_28_are_met() {
    conforms(&suite::REQUIREMENTS_2026_07_28);
}

#[test]
fn every_scenario_passes() {
    conforms(&suite::ALL);
}

#[test]
fn every_scenario_of_2025_06_18_passes() {
    conforms(&suite::ALL_2025_06_18);
}

#[test]
fn every_scenario_of_2025_03_26_passes() {
    conforms(&suite::ALL_2025_03_26);
}
