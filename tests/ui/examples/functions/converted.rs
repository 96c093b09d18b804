//! What is converted on the way: texts into an `Option`, errors of set-up code, and the URIs of mounted instances.

use mcp_runtime::{prelude::*, serde_json::json, testing::TestServer};

#[mcp_tool]
fn optional(
    #[mcp(default = "a", example = "b")] text: Option<String>,
    #[mcp(example = "c")] other: Option<Box<str>>,
) -> String {
    format!("{text:?} {other:?}")
}

fn set_up() -> mcp_runtime::Result<u32> {
    "x".parse().map_err(mcp_runtime::Error::other)
}

#[mcp_tool]
fn directly() -> mcp_runtime::Result<u32> {
    set_up()
}

#[mcp_tool]
fn by_question_mark() -> Result<u32, ToolError> {
    Ok(set_up()?)
}

fn names() -> [&'static str; 1] {
    ["note://milk"]
}

#[mcp_resource(uri = "note://{name}", list = names)]
fn note(name: String) -> String {
    name
}

#[mcp_runtime::main]
pub(crate) async fn main() -> mcp_runtime::Result<()> {
    let notes = mcp_runtime::server!().resource::<note>();
    let builder = mcp_runtime::server!()
        .tool::<optional>()
        .tool::<directly>()
        .tool::<by_question_mark>()
        .resource::<note>()
        .mount("pantry", notes);
    let server = TestServer::new(builder)?;

    server.call("optional", json!({})).await.expect_text("Some(\"a\") None");
    let tools = server.list_tools().await;
    let optional = tools.iter().find(|tool| tool["name"] == "optional").expect("the tool");
    let properties = &optional["inputSchema"]["properties"];
    assert_eq!(properties["text"]["examples"], json!(["b"]));
    assert_eq!(properties["other"]["examples"], json!(["c"]));

    server.call("directly", json!({})).await.expect_failure("tool 'directly' failed");
    server.call("by_question_mark", json!({})).await.expect_failure("tool 'by_question_mark' failed");

    let listed = server.list_resources().await;
    let uris: Vec<_> = listed.iter().map(|entry| entry["uri"].as_str().expect("a URI")).collect();
    assert_eq!(uris, ["note://milk", "note://pantry/milk"]);
    for uri in uris {
        server.read(uri).await.expect_text("milk");
    }
    Ok(())
}
