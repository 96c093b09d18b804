//! The loop of `mcp-dev` under the SDKs: two examples take each other's place again and again, behind one connection.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use mcp_tests::programs::{cache_dir, example};
use serde_json::json;

use crate::interop::{
    driver::{Mode, Sdk},
    expect::{self, Step},
    installed,
};

/// For 100 replacements on a busy machine.
const LIMIT: Duration = Duration::from_secs(1800);
/// A resource of `everything`, and the tool that says that it has changed.
const WATCHED: (&str, &str) = ("test://watched-resource", "test_trigger_resource_change");

/// An example, a tool of it without arguments, and its text.
struct Program(&'static str, &'static str, &'static str);

const EVERYTHING: Program =
    Program("everything", "test_simple_text", "This is a simple text response for testing.");
const CONTENT: Program = Program("content", "fixed_text", "always the same");

/// The tool for authors.
pub(crate) fn mcp_dev() -> PathBuf {
    example::program("mcp-dev")
}

/// Replaces the server `count` times on one connection. Each time the client is told that its tools have changed, its list
/// has those of the new program and none of the old one, and a subscription delivers.
fn swap(sdk: Sdk, mode: Mode, count: usize) {
    let Some(mut driver) = installed(sdk, "swap") else { return };
    driver.limit = LIMIT;
    let dev = mcp_dev();
    let folder = cache_dir(&format!("swap-{sdk:?}-{mode:?}-{count}"));
    let (server, start) = (folder.join("server"), folder.join("start"));
    fs::copy(example::binary(EVERYTHING.0), &server).expect("a program");
    let (uri, trigger) = WATCHED;
    let mut steps = vec![Step::result(json!({ "op": "subscribe", "uri": uri }), &json!({}))];
    steps.extend([(CONTENT, EVERYTHING), (EVERYTHING, CONTENT)].iter().cycle().take(count).map(
        |(Program(name, tool, text), Program(_, before, _))| {
            let updates = (*name == EVERYTHING.0).then_some((trigger, uri)).unzip();
            let send = json!({
                "op": "swap", "from": example::binary(name), "to": server, "tool": tool, "before": before, "trigger": updates.0,
            });
            Step::result(send, &json!({ "has": true, "had": false, "text": text, "updated": updates.1 }))
        },
    ));
    let since = Instant::now();
    // the SDKs' drivers start a program without arguments
    let script = format!("#!/bin/sh\nexec '{}' -- '{}'\n", dev.display(), server.display());
    fs::write(&start, script).expect("a file");
    fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).expect("a mode");
    let report = driver.drive("stdio", &start.display().to_string(), mode, &steps);
    expect::check(&report, mode, "swap", &steps);
    eprintln!("{sdk:?}, {mode:?}: {count} replacements in {:.1} s", since.elapsed().as_secs_f64());
}

#[test]
fn python_keeps_its_session_while_the_server_is_replaced() {
    swap(Sdk::Python, Mode::Legacy, 5);
    swap(Sdk::Python, Mode::Pinned, 5);
}

#[test]
fn typescript_keeps_its_session_while_the_server_is_replaced() {
    swap(Sdk::TypeScript, Mode::Legacy, 5);
    swap(Sdk::TypeScript, Mode::Pinned, 5);
}
