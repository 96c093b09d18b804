//! Judges the checks of one scenario, more strictly than the suite's exit status does.

use serde_json::Value;

/// How a scenario ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// At least one check succeeded, and no check ended otherwise.
    Passed,
    /// What was wrong, one line each.
    Not(Vec<String>),
}

/// The one check that the suite always skips, alone in the scenario of the same name: it looks for task notifications
/// as an older draft defined them.
const ALWAYS_SKIPPED: &str = "tasks-status-notifications";

/// Judges the content of a scenario's `checks.json`; `None` if the suite wrote none.
pub(crate) fn judge(checks: Option<String>) -> Verdict {
    let Some(checks) = checks else {
        return Verdict::Not(vec!["left no result".to_owned()]);
    };
    let checks: Vec<Value> = serde_json::from_str(&checks).expect("checks.json is an array");
    let wrong: Vec<String> = checks.iter().filter_map(problem).collect();
    if !wrong.is_empty() {
        return Verdict::Not(wrong);
    }
    if checks.iter().any(|check| check["status"] == "SUCCESS" || is_always_skipped(check)) {
        return Verdict::Passed;
    }
    Verdict::Not(vec!["checked nothing".to_owned()])
}

fn is_always_skipped(check: &Value) -> bool {
    check["status"] == "SKIPPED" && check["id"] == ALWAYS_SKIPPED
}

/// Failures, and also warnings and skipped checks.
fn problem(check: &Value) -> Option<String> {
    match check["status"].as_str() {
        Some("SUCCESS" | "INFO") => None,
        _ if is_always_skipped(check) => None,
        status => {
            let text = |member: &str| check[member].as_str().unwrap_or_default().to_owned();
            Some(format!("{} {}: {}", status.unwrap_or("no status"), text("id"), text("errorMessage")))
        }
    }
}

#[test]
fn warnings_skips_and_missing_checks_do_not_pass() {
    let with =
        |status: &str| judge(Some(format!(r#"[{{"status":"SUCCESS"}},{{"status":"{status}","id":"x"}}]"#)));
    assert_eq!(with("INFO"), Verdict::Passed);
    let known = format!(r#"[{{"status":"SKIPPED","id":"{ALWAYS_SKIPPED}"}}]"#);
    assert_eq!(judge(Some(known)), Verdict::Passed);
    for status in ["FAILURE", "WARNING", "SKIPPED"] {
        assert_eq!(with(status), Verdict::Not(vec![format!("{status} x: ")]));
    }
    assert_eq!(
        judge(Some(r#"[{"status":"INFO"}]"#.to_owned())),
        Verdict::Not(vec!["checked nothing".to_owned()])
    );
    assert_eq!(judge(None), Verdict::Not(vec!["left no result".to_owned()]));
}
