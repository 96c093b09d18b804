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

/// Scenarios of authorization that both revisions have.
const AUTHORIZATION: &[&str] = &[
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
];
/// Those that only 2026-07-28 has.
const MODERN_AUTHORIZATION: &[&str] = &[
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];
/// Those without a revision: of extensions, and of 2025-03-26.
const OTHER_AUTHORIZATION: &[(&str, &str)] = &[
    ("auth/client-credentials-jwt", ""),
    ("auth/client-credentials-basic", ""),
    ("auth/enterprise-managed-authorization", ""),
    ("auth/wif-jwt-bearer", ""),
    ("auth/dpop", ""),
    ("auth/dpop-nonce", ""),
    ("auth/2025-03-26-oauth-metadata-backcompat", "2025-03-26"),
    ("auth/2025-03-26-oauth-endpoint-fallback", "2025-03-26"),
];
/// Scenarios in which the client must fail.
const REFUSALS: [&str; 8] = [
    "http-invalid-tool-headers",
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
    conforms(SCENARIOS);
}

#[test]
fn every_client_scenario_of_authorization_passes() {
    let at = |version| move |scenario: &&'static str| (*scenario, version);
    let legacy = AUTHORIZATION.iter().map(at("2025-11-25"));
    let modern = AUTHORIZATION.iter().chain(MODERN_AUTHORIZATION).map(at("2026-07-28"));
    let all: Vec<_> = legacy.chain(modern).chain(OTHER_AUTHORIZATION.iter().copied()).collect();
    conforms(&all);
}

fn conforms(scenarios: &[(&str, &str)]) {
    let suite = match Suite::install() {
        Ok(suite) => suite,
        Err(missing) => return skip("conformance of the client", &missing),
    };
    let client = example::binary("conformance_client");
    let _lock = lock("conformance");
    let mut complaints = Vec::new();
    for (scenario, version) in scenarios {
        let name = format!("client-{}-{version}", scenario.replace('/', "-"));
        let out = cache_dir(&format!("conformance/{name}"));
        fs::remove_dir_all(&out).expect("an earlier run's results can be removed");
        let finished = suite.run_client(&client, scenario, version, &out);
        let verdict = judge(checks(&out));
        if let Verdict::Not(why) = verdict {
            complaints.push(format!("`{scenario}` at {version}\n  {}", why.join("\n  ")));
        } else if !finished.success && !REFUSALS.contains(scenario) {
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
