//! Descriptions of real APIs, which packages of npm have: every operation becomes a tool, and every schema that is published is
//! one of JSON Schema 2020-12, as the crate `jsonschema` knows it.

use std::{
    fs,
    io::{Cursor, Write as _},
    path::PathBuf,
    process::Command,
};

use mcp_external_tests::{Missing, package, skip};
use mcp_runtime::testing::TestServer;
use mcp_runtime_openapi::{OpenApi, Route};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

pub(crate) const GITHUB: &str = "@octokit/openapi/generated/api.github.com.json";

/// The files of these packages, each by the path of one in `node_modules`.
pub(crate) fn descriptions() -> Result<PathBuf, Missing> {
    let manifest = json!({ "private": true, "dependencies": {
        "@digdir/dialogporten-schema": "1.118.6", "@octokit/openapi": "23.0.2", "rclone-openapi": "1.75.0",
    } });
    Ok(package::npm(&manifest.to_string())?.join("node_modules"))
}

pub(crate) fn parse(folder: &std::path::Path, file: &str) -> OpenApi {
    let text = fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    OpenApi::parse(text).unwrap_or_else(|error| panic!("{file}: {error}")).server("https://api.example.com")
}

async fn tools(api: OpenApi) -> Vec<Value> {
    let server = TestServer::new(mcp_runtime::server!().add(api));
    server.unwrap_or_else(|error| panic!("{error}")).list_tools().await
}

/// The names in `$defs` that references lead to.
fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.push(reference.strip_prefix("#/$defs/").unwrap_or(reference).to_owned());
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_operation_of_real_descriptions_is_listed_with_schemas_of_2020_12() {
    let folder = match descriptions() {
        Ok(folder) => folder,
        Err(missing) => return skip("descriptions of real APIs", &missing),
    };
    for (file, count) in [
        (GITHUB, 1223),
        ("@digdir/dialogporten-schema/swagger.verified.json", 44),
        ("rclone-openapi/openapi.json", 101),
        ("rclone-openapi/openapi.yaml", 101),
    ] {
        let tools = tools(parse(&folder, file).allow_all()).await;
        assert_eq!(tools.len(), count, "{file}");
        for tool in &tools {
            for schema in [tool.get("inputSchema"), tool.get("outputSchema")].into_iter().flatten() {
                if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
                    panic!("{file}: {}: {error}\n{schema}", tool["name"]);
                }
                let mut named = Vec::new();
                references(schema, &mut named);
                named.sort_unstable();
                named.dedup();
                let defs = schema.get("$defs").and_then(Value::as_object);
                let mut defined: Vec<_> = defs.into_iter().flat_map(|defs| defs.keys().cloned()).collect();
                defined.sort_unstable();
                assert_eq!(named, defined, "{file}: {}: no more and no less than what is used", tool["name"]);
            }
        }
    }
    // what was not chosen is refused with a summary
    let error = mcp_runtime::server!().add(parse(&folder, GITHUB)).build().expect_err("too many").to_string();
    assert!(error.contains("1223 operations") && error.contains("`repos`: "), "{error}");
    let chosen = parse(&folder, GITHUB).include(Route::tag("gists")).exclude(Route::method("DELETE"));
    assert_eq!(tools(chosen).await.len(), 17);
}

/// The value that a reference leads to, or the value itself.
fn resolved<'v>(whole: &'v Value, value: &'v Value) -> &'v Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    reference.and_then(|reference| whole.pointer(reference.trim_start_matches('#'))).unwrap_or(value)
}

/// The names of the members that a schema and its alternatives describe.
fn members<'v>(whole: &'v Value, schema: &'v Value, found: &mut Vec<&'v str>) {
    let schema = resolved(whole, schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    found.extend(properties.into_iter().flatten().map(|(name, _)| name.as_str()));
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
    lists.flatten().for_each(|part| members(whole, part, found));
}

#[tokio::test]
async fn the_bodies_of_a_real_description_show_their_members() {
    let folder = match descriptions() {
        Ok(folder) => folder,
        Err(missing) => return skip("descriptions of real APIs", &missing),
    };
    let tools = tools(parse(&folder, GITHUB).allow_all()).await;
    let text = fs::read_to_string(folder.join(GITHUB)).expect("the description");
    let description: Value = serde_json::from_str(&text).expect("JSON");
    let items = description["paths"].as_object().expect("paths").values();
    let operations = items.flat_map(|item| item.as_object().into_iter().flat_map(|item| item.values()));
    let (mut bodies, mut shown) = (0, 0);
    for operation in operations {
        let (Some(id), Some(body)) = (operation["operationId"].as_str(), operation.get("requestBody")) else {
            continue;
        };
        let Some(schema) = resolved(&description, body)["content"].get("application/json") else { continue };
        let mut described = Vec::new();
        members(&description, &schema["schema"], &mut described);
        let name = id.replace(['/', '-'], "_");
        // those with long names have shorter ones
        let Some(tool) = tools.iter().find(|tool| tool["name"] == name.as_str()) else {
            assert!(name.len() > 63, "{name}");
            continue;
        };
        // as arguments, or as members of `body`
        let input = &tool["inputSchema"];
        let mut published = Vec::new();
        members(input, input, &mut published);
        members(input, &input["properties"]["body"], &mut published);
        bodies += 1;
        let is_shown =
            |name: &&str| published.contains(name) || published.contains(&&*format!("{name}_body"));
        shown += usize::from(described.iter().all(is_shown));
    }
    assert!(bodies > 300 && shown * 100 >= bodies * 95, "{shown} of {bodies}");
}

/// Set in the process that serves.
const SERVES: &str = "MCP_TEST_OPENAPI_SERVES";

/// Lists a thousand operations, and prints the most memory that this process has had, in KiB.
async fn list_a_thousand(folder: &std::path::Path) {
    let server = mcp_runtime::server!().add(parse(folder, GITHUB).allow_all()).build().expect("a server");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let mut replies = String::new();
    let served = server.serve(Cursor::new(format!("{list}\n").into_bytes()), theirs);
    let (served, read) = tokio::join!(served, ours.read_to_string(&mut replies));
    served.expect("served");
    read.expect("replies");
    assert_eq!(replies.matches("\"inputSchema\":").count(), 1000, "a page");
    let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    // without the pages of this program, a debug build with all features
    let peak = kib("VmHWM:") - kib("RssFile:");
    writeln!(std::io::stdout(), "\npeak:{peak}").expect("to say it");
}

#[tokio::test]
async fn a_server_that_lists_a_thousand_operations_takes_less_than_50_mib() {
    let folder = match descriptions() {
        Ok(folder) if cfg!(target_os = "linux") => folder,
        Ok(_) => return skip("the memory of a large description", &Missing("no `/proc`".to_owned())),
        Err(missing) => return skip("the memory of a large description", &missing),
    };
    if std::env::var_os(SERVES).is_some() {
        return list_a_thousand(&folder).await;
    }
    let name = "openapi::a_server_that_lists_a_thousand_operations_takes_less_than_50_mib";
    let mut child = Command::new(std::env::current_exe().expect("the test binary"));
    let child = child.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(SERVES, "1");
    let output = child.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let peak = text.split_once("peak:").and_then(|(_, peak)| peak.split_whitespace().next()).expect("a peak");
    let kib: u64 = peak.parse().expect("a number");
    assert!((10 << 10..45 << 10).contains(&kib), "{kib} KiB");
}
