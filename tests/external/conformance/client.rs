//! The suite's client half, against the `conformance_client` example: every scenario that the suite lists, at every
//! revision that it has the scenario for. Each on its own, since the suite would start all of them at once, and some
//! measure milliseconds.

use std::fs;

use mcp_external_tests::skip;
use mcp_tests::programs::{cache_dir, example, lock};
use serde_json::Value;

use crate::{
    suite::Suite,
    verdict::{Verdict, judge},
};

/// Scenarios in which the client must fail.
const REFUSALS: [&str; 11] = [
    "http-invalid-tool-headers",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Checks of `http-standard-headers` of messages that 2026-07-28 does not have.
const WITHOUT_MESSAGE: [&str; 2] = ["initialize request", "notifications/initialized request"];

#[test]
fn every_client_scenario_without_authorization_passes() {
    conforms(|scenario| !scenario.starts_with("auth/"));
}

#[test]
fn every_client_scenario_of_authorization_passes() {
    conforms(|scenario| scenario.starts_with("auth/"));
}

fn conforms(selects: fn(&str) -> bool) {
    let suite = match Suite::install() {
        Ok(suite) => suite,
        Err(missing) => return skip("conformance of the client", &missing),
    };
    let mut scenarios = suite.client_scenarios();
    scenarios.retain(|(scenario, _)| selects(scenario));
    assert!(!scenarios.is_empty(), "the suite lists no such scenario");
    let client = example::binary("conformance_client");
    let _lock = lock("conformance");
    let mut complaints = Vec::new();
    for (scenario, version) in &scenarios {
        let name = format!("client-{}-{version}", scenario.replace('/', "-"));
        let out = cache_dir(&format!("conformance/{name}"));
        fs::remove_dir_all(&out).expect("an earlier run's results can be removed");
        let finished = suite.run_client(&client, scenario, version, &out);
        let verdict = judge(checks(&out));
        if let Verdict::Not(why) = verdict {
            complaints.push(format!("`{scenario}` at {version}\n  {}", why.join("\n  ")));
        } else if !finished.success && !REFUSALS.contains(&scenario.as_str()) {
            complaints.push(format!("`{scenario}` at {version}\n{}\n{}", finished.stdout, finished.stderr));
        }
    }
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}

/// The checks of the only result in a directory, without those of messages that do not exist.
fn checks(out: &std::path::Path) -> Option<String> {
    // the name of a scenario may have a slash
    let mut folder = out.to_owned();
    while !folder.join("checks.json").exists() {
        folder = fs::read_dir(&folder).ok()?.next()?.ok()?.path();
    }
    let checks = fs::read_to_string(folder.join("checks.json")).ok()?;
    let mut checks: Vec<Value> = serde_json::from_str(&checks).expect("checks.json is an array");
    checks.retain(|check| {
        let text = check["description"].as_str().unwrap_or_default();
        check["status"] != "SKIPPED" || !WITHOUT_MESSAGE.iter().any(|message| text.ends_with(message))
    });
    Some(Value::from(checks).to_string())
}
