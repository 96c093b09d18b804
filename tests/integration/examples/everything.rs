//! The `everything` example: the requests of the conformance suite, in memory and over stdio.

use super::program;
use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/everything.rs"]
mod example;

fn server() -> TestServer {
    let server = mcp_runtime::server!().discover_in(concat!(module_path!(), "::example"));
    TestServer::new(server.add(example::json_schema_tool())).unwrap()
}

#[tokio::test]
async fn the_simple_text_is_first_and_every_item_has_a_description() {
    let server = server();
    let tools = server.list_tools().await;
    assert_eq!(tools[0]["name"], "test_simple_text");
    assert!(
        tools.iter().all(|tool| tool["description"].is_string() && tool["inputSchema"]["type"] == "object")
    );
    let prompts = server.list_prompts().await;
    assert!(!prompts.is_empty() && prompts.iter().all(|prompt| prompt["description"].is_string()));
    let resources = server.list_resources().await;
    for uri in ["test://static-text", "test://static-binary", "test://watched-resource"] {
        assert!(resources.iter().any(|entry| entry["uri"] == uri && entry["name"].is_string()), "{uri}");
    }
    assert_eq!(server.list_templates().await[0]["uriTemplate"], "test://template/{id}/data");
    // arguments may be absent
    server
        .call("test_simple_text", Value::Null)
        .await
        .expect_text("This is a simple text response for testing.");
}

#[tokio::test]
async fn the_schema_is_published_verbatim_and_enforced() {
    let server = server();
    let tools = server.list_tools().await;
    let schema =
        &tools.iter().find(|tool| tool["name"] == "json_schema_2020_12_tool").unwrap()["inputSchema"];
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["$defs"]["address"]["$anchor"], "addressDef");
    assert_eq!(schema["properties"]["address"], json!({ "$ref": "#/$defs/address" }));
    assert_eq!(schema["allOf"], json!([{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }]));
    let condition =
        json!({ "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] });
    assert_eq!(schema["if"], condition);
    assert_eq!(schema["then"], json!({ "required": ["phone"] }));
    assert_eq!(schema["else"], json!({ "required": ["email"] }));
    assert_eq!(schema["additionalProperties"], false);
    let call = async |arguments| server.call("json_schema_2020_12_tool", arguments).await;
    call(json!({ "name": "Ada", "email": "ada@example.org" })).await.expect_text("Contact of Ada");
    call(json!({ "contactMethod": "phone", "email": "a@b" })).await.expect_failure("phone");
    call(json!({ "email": "a@b", "address": { "city": 7 } })).await.expect_failure("address.city");
}

#[tokio::test]
async fn the_program_serves_stdio() {
    assert!(program::run("everything", &["list"], &[]).contains("test_tool_with_progress"));
    let reply = program::over_stdio("everything", "test_simple_text", &json!({})).await;
    assert_eq!(reply["result"]["content"][0]["text"], "This is a simple text response for testing.");
}
