//! Types of the user's that implement `IntoOutput` for each kind of result, alone and inside `Option` and `Result`.

use mcp_runtime::{
    ProtocolError, ToolResult,
    content::{IntoOutput, Message, ResourceContents},
    prompt::PromptResult,
    resource::ResourceResult,
};

use crate::prelude::*;

struct MyReport(&'static str);

impl IntoOutput<ToolResult> for MyReport {
    fn into_output(self) -> Result<ToolResult, ToolError> {
        match self.0 {
            "empty" => Err("there is nothing to report".into()),
            "broken" => Err(std::io::Error::other("secret").into()),
            "protocol" => Err(ProtocolError::new(1001, "no").into()),
            "not found" => Err(ToolError::not_found()),
            text => Ok(ToolResult::text(text).meta("example.org/rows", 1)),
        }
    }
}

#[mcp_tool]
fn report() -> MyReport {
    MyReport("a")
}
#[mcp_tool]
async fn fallible(text: String) -> Result<MyReport, ToolError> {
    tokio::task::yield_now().await;
    match text.as_str() {
        "function" => Err("the function failed".into()),
        _ => Ok(MyReport(text.leak())),
    }
}
#[mcp_tool]
fn optional(some: bool) -> Option<MyReport> {
    some.then_some(MyReport("a"))
}
#[mcp_tool]
fn both(some: bool) -> Result<Option<MyReport>, std::io::Error> {
    Ok(some.then_some(MyReport("a")))
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().discover_in(module_path!())
}

#[tokio::test]
async fn a_tool_returns_a_type_of_the_user() {
    let run_time = ToolDef::builder("run_time").handler(|_: ToolCall| async { MyReport("a") });
    let server = serve(builder().add(run_time));
    let sent = json!({ "content": [{ "type": "text", "text": "a" }], "_meta": { "example.org/rows": 1 } });
    for (tool, arguments) in [
        ("report", json!({})),
        ("fallible", json!({ "text": "a" })),
        ("optional", json!({ "some": true })),
        ("both", json!({ "some": true })),
        ("run_time", json!({})),
    ] {
        assert_eq!(result(&server.call(tool, arguments).await), sent, "{tool}");
    }
    for tool in ["optional", "both"] {
        let reply = server.call(tool, json!({ "some": false })).await;
        assert_eq!(result(&reply), json!({ "content": [] }), "{tool}");
    }
    for (text, message) in [
        ("empty", "there is nothing to report"),
        ("broken", "tool 'fallible' failed"),
        ("function", "the function failed"),
        ("not found", "tool 'fallible' found nothing"),
    ] {
        assert_eq!(failure(&server.call("fallible", json!({ "text": text })).await), message);
    }
    server.call("fallible", json!({ "text": "protocol" })).await.expect_code(1001);
}

struct Page(&'static str);

impl IntoOutput<ResourceResult> for Page {
    fn into_output(self) -> Result<ResourceResult, ToolError> {
        match self.0 {
            "missing" => Err(ToolError::not_found()),
            "closed" => Err("the page is closed".into()),
            text => Ok(ResourceResult::new([ResourceContents::text(text).mime("text/html")])),
        }
    }
}

struct Plain;

impl IntoOutput<ResourceResult> for Plain {
    fn into_output(self) -> Result<ResourceResult, ToolError> {
        Ok(ResourceResult::new([ResourceContents::text("plain")]))
    }
}

#[mcp_resource(uri = "pages://{name}")]
fn page(name: String) -> Page {
    Page(name.leak())
}
#[mcp_resource(uri = "maybe://{name}")]
async fn maybe(name: String) -> Result<Option<Page>, ToolError> {
    match name.as_str() {
        "missing" => Ok(None),
        "propagated" => Err(ToolError::not_found()),
        _ => Ok(Some(Page(name.leak()))),
    }
}
#[mcp_resource(uri = "plain://text")]
fn plain() -> Plain {
    Plain
}

#[tokio::test]
async fn a_resource_returns_a_type_of_the_user() {
    let server = serve(builder());
    for uri in ["pages://a", "maybe://a"] {
        let reply = server.read(uri).await;
        let contents = json!([{ "uri": uri, "mimeType": "text/html", "text": "a" }]);
        assert_eq!(reply.value()["contents"], contents);
    }
    assert_eq!(server.read("plain://text").await.value()["contents"][0]["mimeType"], "text/plain");
    assert_eq!(refusal(&server.read("pages://closed").await), (-32603, "the page is closed".to_owned()));
    let legacy = serve(builder()).legacy(LEGACY[3]);
    for uri in ["pages://missing", "maybe://missing", "maybe://propagated"] {
        let reply = server.read(uri).await;
        assert_eq!(refusal(&reply).0, -32602, "{reply}");
        assert_eq!(reply.error().and_then(|error| error.data), Some(json!({ "uri": uri })));
        legacy.read(uri).await.expect_code(-32002);
    }
}

struct Dialogue(&'static str);

impl IntoOutput<PromptResult> for Dialogue {
    fn into_output(self) -> Result<PromptResult, ToolError> {
        match self.0 {
            "closed" => Err("the dialogue is closed".into()),
            text => Ok(PromptResult::new([Message::user(text), Message::assistant("4")])),
        }
    }
}

#[mcp_prompt]
fn dialogue(about: String) -> Dialogue {
    Dialogue(about.leak())
}
#[mcp_prompt]
async fn fallible_dialogue(about: String) -> Result<Dialogue, String> {
    Ok(Dialogue(about.leak()))
}

#[tokio::test]
async fn a_prompt_returns_a_type_of_the_user() {
    let server = serve(builder());
    for prompt in ["dialogue", "fallible_dialogue"] {
        let reply = server.prompt(prompt, json!({ "about": "2 + 2" })).await;
        let texts: Vec<&Value> = (0..2).map(|i| &reply.value()["messages"][i]["content"]["text"]).collect();
        assert_eq!(texts, ["2 + 2", "4"]);
        let reply = server.prompt(prompt, json!({ "about": "closed" })).await;
        assert_eq!(refusal(&reply), (-32603, "the dialogue is closed".to_owned()));
    }
}
