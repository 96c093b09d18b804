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
async fn blocks_are_those_that_the_suite_expects() {
    let server = server();
    let content = async |tool| server.call(tool, json!({})).await.expect_ok().value()["content"].clone();
    assert_eq!(content("test_image_content").await[0]["mimeType"], "image/png");
    assert_eq!(content("test_audio_content").await[0]["mimeType"], "audio/wav");
    let resource = json!({
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    });
    assert_eq!(content("test_embedded_resource").await[0]["resource"], resource);
    let mixed = content("test_multiple_content_types").await;
    assert_eq!(mixed[0]["text"], "Multiple content types test:");
    assert_eq!(mixed[1]["type"], "image");
    assert_eq!(mixed[2]["resource"]["text"], r#"{"test":"data","value":123}"#);
    let failed = server.call("test_error_handling", json!({})).await;
    failed.expect_failure("This tool intentionally returns an error for testing");
}

#[tokio::test]
async fn progress_is_reported_three_times() {
    let reply = server().call("test_tool_with_progress", json!({})).await;
    reply.expect_ok();
    let values: Vec<_> = reply.notifications().iter().map(|message| &message["params"]["progress"]).collect();
    assert_eq!(values, [0, 50, 100]);
    assert!(reply.notifications().iter().all(|message| message["params"]["total"] == 100));
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
async fn the_header_is_published() {
    let tools = server().list_tools().await;
    let tool = tools.iter().find(|tool| tool["name"] == "test_custom_header").unwrap();
    assert_eq!(tool["inputSchema"]["properties"]["value"]["x-mcp-header"], "Value");
}

#[tokio::test]
async fn resources_are_read() {
    let server = server();
    server.read("test://static-text").await.expect_text("This is the content of the static text resource.");
    let binary = server.read("test://static-binary").await;
    assert!(binary.value()["contents"][0]["blob"].is_string(), "{binary}");
    let data = json!({ "id": "123", "templateTest": true, "data": "Data for ID: 123" });
    server.read("test://template/123/data").await.expect_json(&data);
    let unknown = "test://nonexistent-resource-for-conformance-testing";
    let reply = server.read(unknown).await;
    reply.expect_code(-32602);
    assert_eq!(reply.error().unwrap().data, Some(json!({ "uri": unknown })));
}

#[tokio::test]
async fn prompts_are_rendered_and_completed() {
    let server = server();
    server.prompt("test_simple_prompt", json!({})).await.expect_text("This is a simple prompt for testing.");
    let reply = server.prompt("test_prompt_with_arguments", json!({ "arg1": "a", "arg2": "b" })).await;
    reply.expect_text("Prompt with arguments: arg1='a', arg2='b'");
    let uri = json!({ "resourceUri": "test://x" });
    let reply = server.prompt("test_prompt_with_embedded_resource", uri).await;
    let messages = &reply.value()["messages"];
    assert_eq!(messages[0]["content"]["resource"]["uri"], "test://x");
    assert_eq!(messages[1]["content"]["text"], "Please process the embedded resource above.");
    let reply = server.prompt("test_prompt_with_image", json!({})).await;
    assert_eq!(reply.value()["messages"][0]["content"]["type"], "image");
    let reply = server.complete("test_prompt_with_arguments", "arg1", "TEST").await;
    assert_eq!(reply.value()["completion"]["values"], json!(["test value", "test case"]));
}

#[tokio::test]
async fn the_program_serves_stdio() {
    assert!(program::run("everything", &["list"], &[]).contains("test_tool_with_progress"));
    let reply = program::over_stdio("everything", "test_simple_text", &json!({})).await;
    assert_eq!(reply["result"]["content"][0]["text"], "This is a simple text response for testing.");
}
