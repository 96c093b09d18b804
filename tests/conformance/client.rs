//! The suite's client half, against the `conformance_client` example: each scenario on its own, since the suite would
//! start all of them at once, and some measure milliseconds.

use std::fs;

use mcp_tests::external::{cache_dir, example, lock, skip};
use serde_json::Value;

use crate::{
    suite::Suite,
    verdict::{Verdict, judge},
};

/// Scenarios and the revision that each is run at.
const SCENARIOS: &[(&str, &str)] = &[
    ("initialize", "2025-11-25"),
    ("tools_call", "2025-11-25"),
    ("tools_call", "2026-07-28"),
    ("elicitation-sep1034-client-defaults", "2025-11-25"),
    ("sse-retry", "2025-11-25"),
    ("request-metadata", "2026-07-28"),
    ("sep-2322-client-request-state", "2026-07-28"),
    ("http-standard-headers", "2026-07-28"),
    ("http-custom-headers", "2026-07-28"),
    ("http-invalid-tool-headers", "2026-07-28"),
    ("json-schema-ref-no-deref", "2026-07-28"),
    ("json-schema-2020-12-preservation", "2025-11-25"),
    ("json-schema-2020-12-preservation", "2026-07-28"),
];

/// Checks of `http-standard-headers` of messages that 2026-07-28 does not have.
const WITHOUT_MESSAGE: [&str; 2] = ["initialize request", "notifications/initialized request"];

#[test]
fn every_client_scenario_without_authorization_passes() {
    let suite = match Suite::install() {
        Ok(suite) => suite,
        Err(missing) => return skip("conformance of the client", &missing),
    };
    let client = example::binary("conformance_client");
    let _lock = lock("conformance");
    let mut complaints = Vec::new();
    for (scenario, version) in SCENARIOS {
        let name = format!("client-{}-{version}", scenario.replace('/', "-"));
        let out = cache_dir(&format!("conformance/{name}"));
        fs::remove_dir_all(&out).expect("an earlier run's results can be removed");
        let finished = suite.run_client(&client, scenario, version, &out);
        let verdict = judge(checks(&out));
        if let Verdict::Not(why) = verdict {
            complaints.push(format!("`{scenario}` at {version}\n  {}", why.join("\n  ")));
        } else if !finished.success {
            complaints.push(format!("`{scenario}` at {version}\n{}\n{}", finished.stdout, finished.stderr));
        }
    }
    assert!(complaints.is_empty(), "{}:\n{}", complaints.len(), complaints.join("\n"));
}

/// The checks of the only result in a directory, without those of messages that do not exist.
fn checks(out: &std::path::Path) -> Option<String> {
    let folder = fs::read_dir(out).ok()?.next()?.ok()?;
    let checks = fs::read_to_string(folder.path().join("checks.json")).ok()?;
    let mut checks: Vec<Value> = serde_json::from_str(&checks).expect("checks.json is an array");
    checks.retain(|check| {
        let text = check["description"].as_str().unwrap_or_default();
        check["status"] != "SKIPPED" || !WITHOUT_MESSAGE.iter().any(|message| text.ends_with(message))
    });
    Some(Value::from(checks).to_string())
}
