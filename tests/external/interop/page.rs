//! The page of `mcp-dev` in Chromium, with the example that has everything behind it.

use std::{ffi::OsString, fs, path::PathBuf, process::Command};

use mcp_external_tests::{browser, manifest_dir, skip};
use mcp_runtime::serde_json::{Value, from_str, json};
use mcp_tests::programs::{cache_dir, child, example};
use mcp_tests::support::PATIENCE;

use crate::interop::swaps::mcp_dev;

/// What a scenario of `page/drive.mjs` has seen; `None` without a Chromium.
fn drive(scenario: &str, words: impl FnOnce(&PathBuf) -> Vec<OsString>) -> Option<Value> {
    let chromium = match browser::chromium() {
        Ok(chromium) => chromium,
        Err(missing) => {
            skip(&format!("the page of mcp-dev in a browser: {scenario}"), &missing);
            return None;
        }
    };
    let folder = cache_dir(&format!("page-{scenario}"));
    let fonts = chromium.get_envs().find(|(name, _)| *name == "FONTCONFIG_PATH").and_then(|(_, path)| path);
    // forms do not appear without a font, and the browser's own list of them names other folders
    let list = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM \"fonts.dtd\"><fontconfig><dir>{}</dir><cachedir>{}</cachedir></fontconfig>",
        fonts.unwrap_or_default().to_string_lossy(),
        folder.join("fonts").display()
    );
    fs::write(folder.join("fonts.conf"), list).expect("a file");
    let profile = folder.join("profile");
    let _was_not_there = fs::remove_dir_all(&profile);
    let mut node = Command::new("node");
    node.arg(manifest_dir().join("interop/page/drive.mjs")).arg(scenario);
    node.args([mcp_dev(), chromium.get_program().into(), profile]).args(words(&folder));
    node.envs(chromium.get_envs().filter_map(|(name, value)| Some((name, value?))));
    node.env("FONTCONFIG_PATH", &folder);
    let report = child::run(&mut node, "", PATIENCE).expect("node can be run").or_panic(scenario);
    let report: Value = from_str(&report).expect("JSON");
    assert_eq!(report["problems"], json!([]), "{report:#}");
    Some(report["seen"].clone())
}

fn everything() -> OsString {
    example::binary("everything").into()
}

/// A server for Node.
fn kinds() -> OsString {
    manifest_dir().join("interop/page/kinds.mjs").into()
}

#[test]
fn the_page_shows_results_and_messages_and_is_loaded_again_in_chromium() {
    let Some(seen) = drive("calls", |_| vec![everything()]) else { return };
    assert_eq!(seen["address"], false, "the link is not kept: {seen:#}");
    assert_eq!(seen["text"], "This is a simple text response for testing.", "{seen:#}");
    assert_eq!(seen["image"], "data:image/png;base64,", "{seen:#}");
    assert!(seen["messages"].as_u64().is_some_and(|rows| rows >= 2), "{seen:#}");
    assert_eq!(seen["afterReload"], true, "{seen:#}");
}

#[test]
#[ignore = "it draws the pictures of mcp-dev/pictures, in `interop/page-pictures` of cargo's target folder"]
fn pictures_of_the_page_are_small_enough_for_a_document() {
    let mut shown = PathBuf::new();
    let seen = drive("pictures", |folder| {
        shown.clone_from(folder);
        vec![folder.into(), example::binary("notes").into(), everything()]
    });
    let Some(seen) = seen else { return };
    let sizes = seen.as_object().expect("the pictures");
    assert_eq!(sizes.len(), 3, "{seen:#}");
    for (name, size) in sizes {
        let drawn = fs::metadata(shown.join(name)).expect("a picture").len();
        assert_eq!(Some(drawn), size.as_u64(), "{seen:#}");
        assert!(drawn < 30_000, "{seen:#}");
    }
}

#[test]
fn every_kind_of_argument_and_answer_arrives_with_its_type_in_chromium() {
    let mut log = PathBuf::new();
    let seen = drive("forms", |folder| {
        log = folder.join("log.jsonl");
        let _was_not_there = fs::remove_file(&log);
        vec![everything(), log.clone().into(), kinds()]
    });
    let Some(seen) = seen else { return };
    let log = fs::read_to_string(log).expect("the log");
    let sent: Vec<Value> = log
        .lines()
        .map(|line| from_str::<Value>(line).expect("JSON"))
        .filter(|event| event["direction"] == "to_server" && event["method"] == "tools/call")
        .map(|mut event| event["message"]["params"].take())
        .collect();
    let arguments = |tool: &str| sent.iter().find(|call| call["name"] == tool).map(|call| &call["arguments"]);
    let address = json!({ "street": "Main", "city": "London" });
    assert_eq!(
        arguments("json_schema_2020_12_tool"),
        Some(
            &json!({ "name": "Ada", "address": address, "contactMethod": "email", "email": "ada@example.com" })
        )
    );
    assert_eq!(arguments("slow_compute"), Some(&json!({ "seconds": 0.25 })), "an optional one is left out");
    let answer = |tool: &str| {
        let answers =
            sent.iter().filter(|call| call["name"] == tool).find_map(|call| call.get("inputResponses"));
        answers.and_then(Value::as_object).and_then(|answers| answers.values().next()).cloned()
    };
    let presets =
        [["name", "John Doe"], ["age", "30"], ["score", "95.5"], ["status", "active"], ["verified", "true"]];
    assert_eq!(seen["presets"].as_array().map(Vec::len), Some(presets.len()), "{seen:#}");
    for preset in presets {
        assert!(seen["presets"].as_array().is_some_and(|all| all.contains(&json!(preset))), "{seen:#}");
    }
    let profile =
        json!({ "name": "Grace", "age": 31, "score": 7.25, "status": "pending", "verified": false });
    assert_eq!(
        answer("test_elicitation_sep1034_defaults"),
        Some(json!({ "action": "accept", "content": profile }))
    );
    assert!(seen["profile"].as_str().is_some_and(|text| text.contains("\"name\":\"Grace\"")), "{seen:#}");
    let choices = json!({
        "untitledSingle": "option2",
        "titledSingle": "value3",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option3"],
        "titledMulti": ["value2"],
    });
    assert_eq!(
        answer("test_elicitation_sep1330_enums"),
        Some(json!({ "action": "accept", "content": choices }))
    );
    assert!(seen["choices"].as_str().is_some_and(|text| text.contains("action=accept")), "{seen:#}");
    assert_eq!(seen["missing"], "is required", "{seen:#}");
    let said = seen["server"].as_str().unwrap_or_default();
    assert!(
        said.starts_with("warning: the server declares the capability and has no `prompts/list`"),
        "{seen:#}"
    );
    let taken = json!({
        "text": "tea\n\"for\" two",
        "empty": "",
        "pin": "•••",
        "day": "2026-01-31",
        "moment": "2026-01-31T12:00:00Z",
        "mail": "a@b.example",
        "link": "https://example.com/a?b",
        "count": 3,
        // a double of JavaScript, in which this report is written
        "large": 9_007_199_254_740_992_u64,
        "ratio": 0.001,
        "preset": 7,
        "sure": false,
        "color": "green",
        "step": 2,
        "level": "high",
        "tags": ["a", "b"],
        "points": [{ "x": 1, "y": 2 }],
        "place": { "x": 1.5, "y": -2, "name": "here" },
        "shape": { "kind": "square", "side": 4 },
        "maybe": "some",
        "free": { "a": [null] },
        "map": { "one": 1 },
    });
    assert_eq!(seen["taken"]["params"]["arguments"], taken, "{seen:#}");
    assert_eq!(seen["large"], true, "no number is rounded: {seen:#}");
    let command = seen["command"].as_str().unwrap_or_default();
    assert!(command.contains("\"pin\":\"•••\"") && !command.contains("planted"), "{command}");
}

#[test]
fn tasks_of_the_page_and_of_a_client_are_shown_answered_and_cancelled_in_chromium() {
    let Some(seen) = drive("tasks", |_| vec![everything(), kinds()]) else { return };
    assert!(
        seen["size"].as_str().is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit())),
        "{seen:#}"
    );
    assert!(seen["waits"].as_str().is_some_and(|text| text.contains("Delete a.txt?")), "{seen:#}");
    assert_eq!(seen["cancelled"], "cancelled", "what the client gets: {seen:#}");
    assert_eq!(seen["answered"], "Deleted b.txt", "what the client gets: {seen:#}");
    assert_eq!(seen["foreign"], 0, "the client gets responses of the page: {seen:#}");
    let cards = json!([
        ["completed", "confirm_delete", "client", "Deleted b.txt"],
        ["cancelled", "slow_compute", "client", ""],
        ["cancelled", "slow_compute", "page", ""],
        ["completed", "confirm_delete", "page", "Deleted a.txt"],
        ["completed", "slow_compute", "page", "tea done after 0.25 s"],
    ]);
    assert_eq!(seen["cards"], cards, "{seen:#}");
    assert_eq!(seen["legacy"], json!(["completed", "begin", "page", "the result of first"]), "{seen:#}");
}

#[test]
fn copied_commands_give_the_results_of_the_page_in_chromium() {
    let Some(seen) = drive("copies", |_| vec![everything()]) else { return };
    let text = format!("Header value: {}", seen["value"].as_str().unwrap_or_default());
    assert_eq!(seen["tool"], json!([text, text]), "page and command: {seen:#}");
    let resource = r#"{"id":"a b","templateTest":true,"data":"Data for ID: a b"}"#;
    assert_eq!(seen["resource"], json!([resource, resource]), "{seen:#}");
    let prompt = seen["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = "Prompt with arguments: arg1='one', arg2='it's'";
    assert!(
        prompt.len() == 2 && prompt.iter().all(|text| text.as_str().is_some_and(|text| text.contains(said))),
        "{seen:#}"
    );
    assert_eq!(seen["logged"], "Hello, it's Ada!", "a message of a client: {seen:#}");
}

#[test]
fn another_program_takes_the_place_of_the_server_and_the_client_goes_on_in_chromium() {
    let seen = drive("replaced", |folder| {
        vec![folder.join("server").into(), example::binary("content").into(), everything()]
    });
    let Some(seen) = seen else { return };
    assert_eq!(seen["hello"], "2025-11-25", "{seen:#}");
    assert_eq!(seen["first"], "always the same", "{seen:#}");
    assert_eq!(seen["old"], false, "the page lists tools that are gone: {seen:#}");
    assert_eq!(seen["second"], "This is a simple text response for testing.", "{seen:#}");
    assert!(
        seen["changes"].as_str().is_some_and(|text| text.contains("tool test_simple_text: is new")),
        "{seen:#}"
    );
}
