//! The page of `mcp-dev` in Chromium, with the example that has everything behind it.

use std::{fs, process::Command, time::Duration};

use mcp_runtime::serde_json::{Value, from_str};
use mcp_tests::external::{browser, cache_dir, child, example, manifest_dir, skip};

use crate::swaps::mcp_dev;

const LIMIT: Duration = Duration::from_secs(180);

#[test]
fn the_page_calls_tools_and_answers_the_server_in_chromium() {
    let chromium = match browser::chromium() {
        Ok(chromium) => chromium,
        Err(missing) => return skip("the page of mcp-dev in a browser", &missing),
    };
    let folder = cache_dir("page");
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
    node.arg(manifest_dir().join("interop/page/drive.mjs"));
    node.args([mcp_dev(), example::binary("everything"), chromium.get_program().into(), profile]);
    node.envs(chromium.get_envs().filter_map(|(name, value)| Some((name, value?))));
    node.env("FONTCONFIG_PATH", &folder);
    let report = child::run(&mut node, "", LIMIT).expect("node can be run").or_panic("the page");
    let report: Value = from_str(&report).expect("JSON");
    let seen = &report["seen"];
    assert_eq!(seen["address"], false, "the link is not kept: {report:#}");
    assert_eq!(seen["text"], "This is a simple text response for testing.", "{report:#}");
    assert_eq!(seen["image"], "data:image/png;base64,", "{report:#}");
    assert!(seen["asked"].as_u64().is_some_and(|fields| fields >= 3), "{report:#}");
    assert!(seen["answered"].as_str().is_some_and(|text| text.contains("accept")), "{report:#}");
    assert!(seen["messages"].as_u64().is_some_and(|rows| rows >= 2), "{report:#}");
    assert_eq!(seen["afterReload"], true, "{report:#}");
    assert_eq!(report["problems"], Value::Array(Vec::new()), "{report:#}");
}
