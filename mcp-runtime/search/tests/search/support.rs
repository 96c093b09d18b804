//! Servers with many tools, and what their search answers.

use mcp_runtime::{
    ServerBuilder,
    testing::TestServer,
    tool::{ToolCall, ToolDef},
};
use serde_json::{Value, json};

/// A tool that says its name.
pub(crate) fn tool(name: &str, description: &str) -> ToolDef {
    let said = name.to_owned();
    ToolDef::builder(name).description(description).handler(move |_: ToolCall| {
        let said = said.clone();
        async move { said }
    })
}

/// A server with so many tools that say their names.
pub(crate) fn many(count: usize) -> ServerBuilder {
    (0..count).fold(mcp_runtime::server!(), |builder, n| {
        builder.add(tool(&format!("part{n}_read"), &format!("Reads part {n} of the machine.")))
    })
}

/// The names that a search answers with, in order.
pub(crate) async fn found(server: &TestServer, query: &str) -> Vec<String> {
    let reply = server.call("search_tools", json!({ "query": query })).await;
    names(&reply.text())
}

/// The names in an answer of a search.
pub(crate) fn names(answer: &str) -> Vec<String> {
    let blocks = answer.split("\n\n").skip(1);
    blocks.filter_map(|block| Some(block.split_once('(')?.0.to_owned())).collect()
}

/// The names in the list of tools.
pub(crate) async fn listed(server: &TestServer) -> Vec<String> {
    let tools = server.list_tools().await;
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

/// The arguments of a tool that passes calls on.
#[allow(clippy::needless_pass_by_value, reason = "arguments are written where they are used")]
pub(crate) fn to(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}
