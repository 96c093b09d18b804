//! Requests to a server and their expected results.

use serde_json::{Map, Value, json};

use crate::interop::driver::{Mode, Sdk};

/// One request and its expected outcome.
pub(crate) struct Step {
    /// In the form that the drivers read.
    pub(crate) send: Value,
    want: Value,
}

impl Step {
    /// A step whose result must contain `want`: every member of an object, `null` for an absent one. A text can be
    /// matched by its parts, `{"$contains": [..]}`, or as JSON, `{"$json": value}`.
    pub(crate) fn result(send: Value, want: &Value) -> Self {
        Self { send, want: json!({ "result": want }) }
    }

    /// A read that must end in "not found".
    pub(crate) fn not_found(sdk: Sdk, mode: Mode, uri: &str) -> Self {
        // the TypeScript SDK reports both codes as the newer one
        let code = if matches!((sdk, mode), (Sdk::Python, Mode::Legacy)) { -32002 } else { -32602 };
        Self::error(json!({ "op": "read", "uri": uri }), code, &json!({ "uri": uri }))
    }

    /// A step that must fail with a JSON-RPC error.
    pub(crate) fn error(send: Value, code: i64, data: &Value) -> Self {
        Self { send, want: json!({ "error": { "code": code, "data": data } }) }
    }
}

/// Compares a driver's report with the expected one, and reports every difference.
///
/// # Panics
///
/// If the two differ.
pub(crate) fn check(report: &Value, mode: Mode, example: &str, steps: &[Step]) {
    let mut differences = Vec::new();
    compare("version", &json!(mode.revision()), &report["version"], &mut differences);
    for (index, step) in steps.iter().enumerate() {
        compare(&step.send.to_string(), &step.want, &report["outcomes"][index], &mut differences);
    }
    assert!(differences.is_empty(), "`{example}`, {mode:?}:\n{}", differences.join("\n"));
}

fn compare(path: &str, want: &Value, got: &Value, differences: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(members), Value::String(text)) if has(members, text) => {}
        (Value::Object(members), Value::Object(_)) => {
            for (name, member) in members {
                compare(&format!("{path}.{name}"), member, &got[name.as_str()], differences);
            }
        }
        (Value::Array(items), Value::Array(found)) if items.len() == found.len() => {
            for (index, item) in items.iter().enumerate() {
                compare(&format!("{path}[{index}]"), item, &got[index], differences);
            }
        }
        (Value::Number(number), Value::Number(found)) if number.as_f64() == found.as_f64() => {}
        _ if want == got => {}
        _ => differences.push(format!("{path}\n  expected {want}\n  came     {got}")),
    }
}

fn has(want: &Map<String, Value>, text: &str) -> bool {
    let found = |part: &Value| part.as_str().is_some_and(|part| text.contains(part));
    let parts = want.get("$contains").and_then(Value::as_array);
    match (parts, want.get("$json")) {
        (Some(parts), _) => parts.iter().all(found),
        (None, Some(value)) => serde_json::from_str::<Value>(text).is_ok_and(|found| found == *value),
        (None, None) => false,
    }
}

#[test]
fn every_difference_is_reported() {
    let mut differences = Vec::new();
    let want = json!({ "same": 1, "absent": null, "list": [1, { "b": "c" }], "short": [1], "part": { "$contains": ["b", "x"] }, "json": { "$json": [1, 2] } });
    let got = json!({ "same": 1.0, "absent": 2, "list": [1, { "b": "d", "more": 1 }], "short": [1, 2], "part": "abc", "json": "[1]" });
    compare("", &want, &got, &mut differences);
    let paths: Vec<_> = differences.iter().filter_map(|difference| difference.lines().next()).collect();
    assert_eq!(paths, [".absent", ".json", ".list[1].b", ".part", ".short"]);
}
