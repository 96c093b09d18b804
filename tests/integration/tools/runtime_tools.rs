//! Tools made at run time: defined without an attribute, added to a builder or to a running server, replaced, removed.

use std::time::Duration;

use mcp_runtime::{
    prelude::*,
    testing::TestServer,
    tool::{ToolCall, ToolDef},
};
use serde_json::{Value, json};

use crate::common::{failure, only_tool, refusal, result, serve};

#[mcp_tool]
fn fixed() -> &'static str {
    "annotated"
}

fn shout() -> ToolDef {
    ToolDef::builder("shout")
        .title("Shout")
        .description("Says it louder")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "maxLength": 5 },
                "times": { "type": "integer", "minimum": 1 }
            },
            "required": ["text"]
        }))
        .output_schema(
            json!({ "type": "object", "properties": { "said": { "type": "string" } }, "required": ["said"] }),
        )
        .hints(|hints| hints.read_only = Some(true))
        .meta(json!({ "k": 1 }))
        .handler(|call: ToolCall| async move {
            let text: String = call.arg("text")?;
            let times: Option<usize> = call.arg("times")?;
            Ok::<_, ToolError>(Json(json!({ "said": text.to_uppercase().repeat(times.unwrap_or(1)) })))
        })
}

#[tokio::test]
async fn a_runtime_tool_is_listed_and_called() {
    let server = serve(mcp_runtime::server!().add_tool(shout()));
    assert_eq!(
        only_tool(&server).await,
        json!({
            "name": "shout",
            "title": "Shout",
            "description": "Says it louder",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "text": { "type": "string", "maxLength": 5 },
                    "times": { "type": "integer", "minimum": 1 }
                },
                "required": ["text"]
            },
            "outputSchema": { "type": "object", "properties": { "said": { "type": "string" } }, "required": ["said"] },
            "annotations": { "readOnlyHint": true },
            "_meta": { "k": 1 }
        })
    );
    let reply = server.call("shout", json!({ "text": "ab", "times": "2" })).await;
    assert_eq!(
        result(&reply),
        json!({
            "content": [{ "type": "text", "text": "{\"said\":\"ABAB\"}" }],
            "structuredContent": { "said": "ABAB" }
        })
    );
    let text = failure(&server.call("shout", json!({ "times": 0, "txt": "x" })).await);
    for said in [
        "- text: is missing",
        "- times: 0 is less than the minimum of 1",
        "did you mean `text`?",
        "expected: shout(",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    server.request("tools/call", json!({ "name": "shout", "arguments": [] })).await.expect_code(-32602);
}

#[tokio::test]
async fn tools_can_be_added_and_removed_while_the_server_runs() {
    let built = mcp_runtime::server!().tool::<fixed>().build().expect("a server");
    let handle = built.handle();
    let server = TestServer::of(&built);
    let names = async || -> Vec<Value> {
        server.list_tools().await.iter().map(|tool| tool["name"].clone()).collect()
    };
    assert_eq!(names().await, ["fixed"]);
    handle.add_tool(shout()).expect("added");
    assert_eq!(names().await, ["fixed", "shout"]);
    server.call("shout", json!({ "text": "a" })).await.expect_ok();

    let replaced = ToolDef::builder("shout").handler(|_| async { "replaced" });
    handle.clone().add_tool(replaced).expect("replaced");
    assert_eq!(names().await, ["fixed", "shout"]);
    server.call("shout", json!({})).await.expect_text("replaced");

    assert!(handle.remove_tool("shout").expect("removed"));
    assert!(!handle.remove_tool("shout").expect("gone already"));
    assert_eq!(names().await, ["fixed"]);
    assert_eq!(refusal(&server.call("shout", json!({})).await).0, -32602);
}

#[tokio::test]
async fn adding_a_duplicate_changes_nothing() {
    let built = mcp_runtime::server!().tool::<fixed>().add_tool(shout()).build().expect("a server");
    let handle = built.handle();
    let server = TestServer::of(&built);
    let clash = ToolDef::builder("fixed").handler(|_| async { "usurper" });
    let error = handle.add_tool(clash).expect_err("a clash").to_string();
    assert!(error.contains("two tools are `fixed`") && error.contains("runtime_tools.rs:"), "{error}");
    let bad =
        ToolDef::builder("shout").input_schema(json!({ "type": "string" })).handler(|_| async { "bad" });
    assert!(handle.add_tool(bad).is_err());
    assert!(!handle.remove_tool("fixed").expect("annotated tools stay"));
    server.call("fixed", json!({})).await.expect_text("annotated");
    server.call("shout", json!({ "text": "a" })).await.expect_ok();
}

#[tokio::test]
async fn a_server_with_a_handle_declares_tools() {
    let built = mcp_runtime::server!().build().expect("a server");
    let server = TestServer::of(&built);
    assert_eq!(server.capabilities().await.get("tools"), None);
    server.request("tools/list", json!({})).await.expect_code(-32601);
    let handle = built.handle();
    assert!(server.capabilities().await.get("tools").is_some());
    assert_eq!(server.list_tools().await, [] as [Value; 0]);
    handle.add_tool(shout()).expect("added");
    assert_eq!(server.list_tools().await.len(), 1);
}

#[tokio::test]
async fn runtime_tools_have_the_same_limits_and_failures() {
    let slow =
        ToolDef::builder("slow").timeout(Duration::from_millis(20)).max_concurrency(1).handler(|_| async {
            std::future::pending::<()>().await;
        });
    let panics = ToolDef::builder("panics").handler(|call: ToolCall| async move {
        assert!(call.arguments.get("x").is_none(), "secret");
        "fine"
    });
    let at_once = ToolDef::builder("at_once").handler(|call: ToolCall| {
        assert!(call.arguments.get("x").is_none(), "secret");
        std::future::ready("fine")
    });
    let strict = ToolDef::builder("strict")
        .strict()
        .input_schema(json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false }))
        .handler(|call: ToolCall| async move { call.arguments.to_string() });
    let promises = ToolDef::builder("promises")
        .output_schema(json!({ "type": "integer" }))
        .handler(|_| async { Json("x") });
    let server = serve(
        mcp_runtime::server!()
            .add_tool(slow)
            .add_tool(panics)
            .add_tool(at_once)
            .add_tool(strict)
            .add_tool(promises),
    );
    for _ in 0..2 {
        let text = failure(&server.call("slow", json!({})).await);
        assert_eq!(text, "tool 'slow' took longer than its limit of 20ms");
    }
    for tool in ["panics", "at_once"] {
        assert_eq!(failure(&server.call(tool, json!({ "x": 1 })).await), format!("tool '{tool}' failed"));
        server.call(tool, json!({})).await.expect_text("fine");
    }
    server.call("strict", json!({ "n": 1.0 })).await.expect_text("{\"n\":1}");
    server.call("strict", json!({ "n": "1" })).await.expect_failure("- n: \"1\" is not an integer");
    server.call("strict", json!({ "m": 1 })).await.expect_failure("unknown argument `m`");
    assert_eq!(failure(&server.call("promises", json!({})).await), "tool 'promises' failed");
}
