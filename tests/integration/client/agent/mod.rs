//! What a model gets of several servers: tools under one roof, contents in line or stored, reads that are kept, and only
//! what the program allows.

mod artifacts;
mod reads;
mod telemetry;
mod toolsets;

use mcp_runtime::{
    Revision,
    client::{
        Client, Error,
        agent::{Toolset, ToolsetResult, ToolsetTool},
    },
};
use mcp_tests::support::Act;
use serde_json::{Value, json};

use super::{pinned, played, within};

/// A client of a legacy server that answers with these results.
async fn scripted(answer: impl Fn(&str, &Value) -> Value + Send + 'static) -> Client {
    let answer = move |method: &str, message: &Value| match method {
        "tools/list" => {
            Act::Result(json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }))
        }
        "notifications/initialized" => Act::Silence,
        _ => Act::Result(answer(method, &message["params"])),
    };
    let capabilities = json!({ "tools": {}, "resources": {} });
    played(Revision::V2025_11_25, capabilities, pinned(None), answer).await.0
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
