//! `mcp_runtime::testing`, and what needs no transport.

use crate::prelude::*;

/// Adds
#[mcp_tool]
fn add(a: i64, b: i64) -> Json<i64> {
    Json(a + b)
}

/// Reports progress
#[mcp_tool]
async fn steps(ctx: &Context, upto: u32) -> u32 {
    for step in 1..=upto {
        ctx.progress(f64::from(step)).send();
        tokio::task::yield_now().await;
    }
    ctx.progress(1.0).send();
    upto
}

/// Fails
#[mcp_tool]
fn fails(how: String) -> Result<String, ToolError> {
    Err(ToolError::new(format!("it is {how}")))
}

/// An item
#[mcp_resource(uri = "shop://item/{id}")]
fn item(id: u32) -> String {
    format!("item {id}")
}

/// Greets
#[mcp_prompt]
fn greet(#[mcp(complete("Ann", "Anton", "Bo"))] name: String, times: u32) -> String {
    format!("Greet {name} {times} times.")
}

fn server() -> TestServer {
    let builder = mcp_runtime::server!().discover_in(module_path!()).lists(|lists| lists.page_size(2));
    TestServer::new(builder).unwrap()
}

#[tokio::test]
async fn one_function_answers_legacy_and_modern_clients() {
    let modern = server();
    let reply = modern.call("add", json!({ "a": 1, "b": 2 })).await;
    reply.expect_text("3").expect_json(&json!(3));
    assert_eq!(reply.value()["structuredContent"], 3);
    for &revision in Revision::ALL.iter().filter(|revision| **revision < Revision::LATEST) {
        let legacy = server().legacy(revision);
        let reply = legacy.call("add", json!({ "a": 1, "b": 2 })).await;
        assert_eq!(reply.expect_text("3").json::<i64>(), 3);
        assert_eq!(reply.value().get("resultType"), None);
    }
}

#[tokio::test]
async fn every_operation_has_a_method() {
    let server = server();
    server.read("shop://item/7").await.expect_text("item 7");
    server.read("shop://nothing").await.expect_code(-32602);
    server.prompt("greet", json!({ "name": "Ann", "times": 2 })).await.expect_text("Greet Ann 2 times.");
    let offered = server.complete("greet", "name", "an").await;
    assert_eq!(offered.expect_ok().value()["completion"]["values"], json!(["Ann", "Anton"]));
    let named = |entries: Vec<Value>| -> Vec<String> {
        entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(named(server.list_tools().await), ["add", "steps", "fails"]);
    assert_eq!(named(server.list_templates().await), ["item"]);
    assert_eq!(named(server.list_prompts().await), ["greet"]);
    assert!(server.list_resources().await.is_empty());
    assert!(server.capabilities().await["completions"].is_object());
    assert!(server.legacy(Revision::V2025_06_18).capabilities().await["tools"].is_object());
}

#[tokio::test]
async fn tool_failures_and_protocol_errors_are_distinguished() {
    let server = server();
    let failed = server.call("fails", json!({ "how": "broken" })).await;
    assert!(failed.is_error() && failed.error().is_none());
    failed.expect_failure("it is broken");
    let unknown = server.call("ad", json!({})).await;
    assert!(unknown.expect_code(-32602).error().unwrap().message.contains("add"));
    server.request("tools/cal", json!({})).await.expect_code(-32601);
}

#[tokio::test]
async fn a_failed_expectation_shows_the_whole_reply() {
    let reply = server().call("steps", json!({ "upto": 1 })).await;
    let panic = std::panic::catch_unwind(|| {
        reply.expect_text("2");
    })
    .unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    for part in ["expected the text \"2\"", "\"text\": \"1\"", "serverInfo", "notifications/progress"] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
}

#[tokio::test]
async fn an_annotated_function_is_just_a_function() {
    assert_eq!(add(1, 2).0, 3);
    assert_eq!(steps(&Context::for_test(), 2).await, 2);
    assert_eq!(item(3), "item 3");
    assert_eq!(greet("Bo".into(), 1), "Greet Bo 1 times.");
}
