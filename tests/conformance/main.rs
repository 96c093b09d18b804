//! Runs the official conformance suite against the `everything` example, over HTTP.
//!
//! `not-yet.txt` names the scenarios that do not pass yet. A scenario that fails and is not named there fails
//! the test, and so does one that is named and passes.

mod listed;
mod revisions;
mod schemas;
mod suite;
mod verdict;

use mcp_tests::outside::{alone, example::Served, skip, sources};

use suite::{Set, Suite};

fn conforms(set: &Set) {
    let suite = match Suite::install() {
        Ok(suite) => suite,
        Err(missing) => return skip(&format!("conformance {}", set.name), &missing),
    };
    // Some scenarios count milliseconds, so sets are run one after the other.
    let _alone = alone("conformance");
    let server = Served::start("everything", sources());
    let verdicts = suite.run(set, &server.url());
    let complaints = listed::compare(&listed::of_set(set.name), &verdicts);
    assert!(complaints.is_empty(), "{} of set `{}`:\n{}", complaints.len(), set.name, complaints.join("\n"));
}

#[test]
fn requirements_2025_11_25() {
    conforms(&suite::REQUIREMENTS_2025_11_25);
}

#[test]
fn requirements_2026_07_28() {
    conforms(&suite::REQUIREMENTS_2026_07_28);
}

#[test]
fn every_scenario() {
    conforms(&suite::ALL);
}

#[test]
fn every_scenario_of_2025_06_18() {
    conforms(&suite::ALL_2025_06_18);
}

#[test]
fn every_scenario_of_2025_03_26() {
    conforms(&suite::ALL_2025_03_26);
}

#[test]
fn the_list_names_sets_that_exist() {
    for (set, scenario) in listed::all() {
        assert!(
            suite::SETS.iter().any(|known| known.name == set),
            "`{set}/{scenario}`: there is no set `{set}`"
        );
    }
}
