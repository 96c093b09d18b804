//! Servers of other people: the official ones from npm and PyPI.

use std::{
    collections::BTreeMap,
    net::TcpStream,
    process::{Command, Stdio},
};

use mcp_external_tests::{package, replicas::free_addresses, skip};
use mcp_runtime::{
    Revision,
    client::{CallResult, Client},
};
use serde_json::{Value, json};

use mcp_tests::{
    programs::child,
    support::{soon, within},
};

const NPM: &str = r#"{
  "private": true,
  "dependencies": {
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31"
  }
}
"#;
const PYPI: &str = "mcp-server-time==2026.10.19\n";

/// Connects to a server, checks its revision, and calls a tool of it.
async fn call(line: &str, revision: Revision, tool: &str, arguments: Value) -> CallResult {
    let client = within(Client::connect(line)).await.unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(client.revision(), Some(revision), "{line}");
    let tools = client.tools().await.unwrap();
    assert!(tools.iter().any(|entry| entry.name() == tool), "{line}: {tools:?}");
    let result = within(client.call(tool, arguments).into_future()).await.unwrap().ok().unwrap();
    within(client.close()).await;
    result
}

/// The members of a structured result.
type Members = BTreeMap<String, Value>;

#[tokio::test]
async fn the_official_typescript_servers_are_used_over_stdio() {
    let installed = tokio::task::spawn_blocking(|| Ok((package::npm(NPM)?, package::node(20)?)));
    let (packages, node) = match installed.await.unwrap() {
        Ok(installed) => installed,
        Err(missing) => return skip("the client with TypeScript servers", &missing),
    };
    let modules = packages.join("node_modules/@modelcontextprotocol");
    let line = |server: &str, arguments: &str| {
        let script = modules.join(server).join("dist/index.js");
        format!("'{}' '{}' {arguments}", node.display(), script.display())
    };
    let legacy = Revision::V2025_11_25;
    let everything = line("server-everything", "stdio");
    assert_eq!(call(&everything, legacy, "echo", json!({ "message": "tea" })).await.text(), "Echo: tea");
    let weather = call(&everything, legacy, "get-structured-content", json!({ "location": "Chicago" })).await;
    assert!(weather.structured::<Members>().unwrap()["conditions"].is_string(), "{weather:?}");
    let client = within(Client::connect(everything)).await.unwrap();
    assert!(!client.resources().await.unwrap().is_empty() && !client.prompts().await.unwrap().is_empty());
    within(client.close()).await;

    let files = line("server-filesystem", &format!("'{}'", packages.display()));
    let listed = call(&files, legacy, "list_directory", json!({ "path": packages })).await;
    let content = listed.structured::<Members>().unwrap()["content"].to_string();
    assert!(content.contains("package.json"), "{listed:?}");
    let graph = call(&line("server-memory", ""), legacy, "read_graph", json!({})).await;
    assert_eq!(graph.structured::<Members>().unwrap()["entities"], json!([]), "{graph:?}");
}

#[tokio::test]
async fn the_official_typescript_server_is_used_over_http_and_http_sse() {
    let installed = tokio::task::spawn_blocking(|| Ok((package::npm(NPM)?, package::node(20)?)));
    let (packages, node) = match installed.await.unwrap() {
        Ok(installed) => installed,
        Err(missing) => return skip("the client with a TypeScript server over HTTP", &missing),
    };
    let script = packages.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    for (way, path) in [("streamableHttp", "mcp"), ("sse", "sse")] {
        let [address] = free_addresses();
        let mut command = Command::new(&node);
        command.arg(&script).arg(way).env("PORT", address.port().to_string());
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let _process = child::Guard(process.expect("it starts"));
        assert!(soon(|| TcpStream::connect(address).is_ok()).await, "it does not listen");
        let builder = if way == "sse" { Client::builder().http_sse() } else { Client::builder() };
        let client = within(builder.connect(format!("http://{address}/{path}"))).await.unwrap();
        let said = within(client.call("echo", json!({ "message": "tea" })).into_future()).await.unwrap();
        assert_eq!(said.text(), "Echo: tea", "{way}");
        assert!(!client.resources().await.unwrap().is_empty() && !client.prompts().await.unwrap().is_empty());
        within(client.close()).await;
    }
}

#[tokio::test]
async fn an_official_python_server_is_used_over_stdio() {
    let python = match tokio::task::spawn_blocking(|| package::python(PYPI)).await.unwrap() {
        Ok(python) => python,
        Err(missing) => return skip("the client with a Python server", &missing),
    };
    let line = format!("'{}' -m mcp_server_time", python.display());
    let time = call(&line, Revision::V2026_07_28, "get_current_time", json!({ "timezone": "UTC" })).await;
    let text = time.text();
    assert!(text.contains("\"timezone\": \"UTC\""), "{text}");
}
