//! What a model gets of several servers: tools under one roof, contents in line or stored, reads that are kept, and only
//! what the program allows.

mod artifacts;
mod reads;
mod telemetry;
mod toolsets;

use mcp_runtime::client::{
    Client, Error,
    agent::{Toolset, ToolsetResult, ToolsetTool},
};
use serde_json::{Value, json};

use super::{negotiation, pinned, within};

/// A client of a legacy server that answers with these results.
async fn scripted(answer: impl Fn(&str, &Value) -> Value + Send + 'static) -> Client {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(negotiation::script(theirs, move |method, params| match method {
        "initialize" => Ok(json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {}, "resources": {} },
            "serverInfo": { "name": "scripted", "version": "1" }
        })),
        "server/discover" => Err(-32601),
        "tools/list" => Ok(json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] })),
        _ => Ok(answer(method, params)),
    }));
    within(pinned(None).connect(tokio::io::split(ours))).await.unwrap()
}

fn names(tools: &[ToolsetTool]) -> Vec<&str> {
    tools.iter().map(ToolsetTool::name).collect()
}

async fn call(toolset: &Toolset, name: &str, arguments: Value) -> Result<ToolsetResult, Error> {
    within(toolset.call(name, arguments)).await
}

/// The text of a call that succeeds.
async fn text(toolset: &Toolset, name: &str, arguments: Value) -> String {
    let result = call(toolset, name, arguments).await.unwrap();
    assert!(!result.is_error, "{result:?}");
    result.text()
}
