//! The `content` example.

use super::program;
use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/content.rs"]
mod example;

fn server() -> TestServer {
    let server = mcp_runtime::server!().discover_in(concat!(module_path!(), "::example"));
    TestServer::new(server).unwrap()
}

/// The content blocks of a tool's result.
async fn blocks(tool: &str, arguments: Value) -> Vec<Value> {
    let reply = server().call(tool, arguments).await;
    reply.expect_ok();
    reply.value()["content"].as_array().unwrap().clone()
}

async fn kinds(tool: &str, arguments: Value) -> Vec<String> {
    blocks(tool, arguments).await.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn scalars_become_text_and_unit_is_empty() {
    let server = server();
    server.call("owned_text", json!({ "name": "Ada" })).await.expect_text("Hello, Ada!");
    server.call("fixed_text", json!({})).await.expect_text("always the same");
    server.call("maybe_fixed_text", json!({ "loud": true })).await.expect_text("QUIET");
    server.call("sum", json!({ "a": 1, "b": 2 })).await.expect_text("3");
    server.call("is_even", json!({ "number": 3 })).await.expect_text("false");
    assert_eq!(blocks("forget", json!({})).await, Vec::<Value>::new());
    assert_eq!(blocks("nickname", json!({ "name": "Ada" })).await, Vec::<Value>::new());
    server.call("nickname", json!({ "name": "Friedrich" })).await.expect_text("Fri");
}

#[tokio::test]
async fn structured_values_have_schemas() {
    let server = server();
    let kiel = json!({ "city": "Kiel", "high": 21.5, "rain": false });
    let reply = server.call("forecast", json!({ "city": "Kiel" })).await;
    reply.expect_json(&kiel);
    assert_eq!(reply.value()["structuredContent"], kiel);
    server.call("forecasts", json!({ "cities": ["Kiel"] })).await.expect_json(&json!([kiel]));
    server.call("high", json!({ "city": "Kiel" })).await.expect_json(&json!(21.5));
    let whole = server.call("whole", json!({})).await;
    whole.expect_text("Kiel will be fine");
    assert_eq!(whole.value()["structuredContent"], kiel);
    assert_eq!(whole.value()["_meta"]["example.org/source"], "almanac");
    let tools = server.list_tools().await;
    let described = ["forecast", "forecasts", "high", "whole", "forecast_with_map"];
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(tool.get("outputSchema").is_some(), described.contains(&name), "{tool}");
    }
}

#[tokio::test]
async fn blocks_of_every_kind_keep_their_order() {
    assert_eq!(kinds("image", json!({})).await, ["image"]);
    assert_eq!(kinds("link", json!({})).await, ["resource_link"]);
    assert_eq!(kinds("embedded", json!({})).await, ["resource"]);
    assert_eq!(kinds("several", json!({})).await, ["text", "image", "resource_link"]);
    assert_eq!(kinds("forecast_with_map", json!({ "city": "Kiel" })).await, ["text", "image"]);
    assert_eq!(kinds("countdown", json!({ "from": 2 })).await, ["text"; 3]);
    let sound = &blocks("sound", json!({})).await[0];
    assert_eq!((&sound["type"], &sound["mimeType"]), (&json!("audio"), &json!("audio/wav")));
    assert!(sound["data"].as_str().unwrap().starts_with("UklGR"), "it is a RIFF file in base64");
    let annotated = blocks("annotated", json!({})).await;
    let annotations =
        json!({ "audience": ["user"], "priority": 0.9, "lastModified": "2026-07-28T12:00:00Z" });
    assert_eq!(annotated[0]["annotations"], annotations);
    assert_eq!(annotated[1]["annotations"], json!({ "audience": ["assistant"], "priority": 0.1 }));
}

#[tokio::test]
async fn resources_of_every_kind() {
    let server = server();
    let read = async |uri| server.read(uri).await.expect_ok().value()["contents"][0].clone();
    let note = json!({ "uri": "content://note", "mimeType": "text/markdown", "text": "# A note" });
    assert_eq!(read("content://note").await, note);
    assert_eq!(read("content://forecast/Kiel").await["mimeType"], "application/json");
    assert!(read("content://silence").await["blob"].as_str().unwrap().starts_with("UklGR"));
    let pixel = read("content://pixel").await;
    assert_eq!(
        (&pixel["mimeType"], &pixel["_meta"]["example.org/colour"]),
        (&json!("image/png"), &json!("red"))
    );
    server.read("content://forecast/kiel").await.expect_code(-32602);
}

#[tokio::test]
async fn prompts_of_every_kind() {
    let server = server();
    server.prompt("greet", json!({ "name": "Ada" })).await.expect_text("Say hello to Ada.");
    let quiz = server.prompt("quiz", json!({})).await;
    assert_eq!(quiz.value()["messages"][0]["role"], "user");
    assert_eq!(quiz.value()["messages"][1]["role"], "assistant");
    let describe = server.prompt("describe", json!({})).await;
    assert_eq!(describe.value()["messages"][0]["content"]["type"], "image");
    let summarize = server.prompt("summarize", json!({})).await;
    assert_eq!(summarize.value()["description"], "Summarizes the note");
    assert_eq!(summarize.value()["messages"][0]["content"]["resource"]["text"], "# A note");
}

#[test]
fn the_program_serves_stdio() {
    assert!(program::run("content", &["list"], &[]).contains("forecast_with_map"));
    let forecast = program::run("content", &["call", "forecast", r#"{"city": "Kiel"}"#], &[]);
    assert!(forecast.contains("21.5"), "{forecast}");
    assert!(program::run("content", &["read", "content://note"], &[]).contains("# A note"));
    assert!(
        program::run("content", &["prompt", "greet", r#"{"name": "Ada"}"#], &[])
            .contains("Say hello to Ada.")
    );
}
