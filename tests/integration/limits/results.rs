//! Results that are too large: cut with a notice, or refused with their size.

use mcp_runtime::{
    content::ResourceContents,
    prompt::{PromptCall, PromptDef},
    resource::{ResourceCall, ResourceDef},
};

use crate::prelude::*;

/// A text of any length
#[mcp_tool(max_result = "20B")]
fn text(length: usize) -> String {
    "ö".repeat(length)
}

#[mcp_type]
struct Numbers {
    numbers: Vec<u32>,
}

/// Structured content of any length
#[mcp_tool(max_result = "20B")]
fn numbers(length: usize) -> Json<Numbers> {
    Json(Numbers { numbers: vec![7; length] })
}

/// A failure of any length
#[mcp_tool(max_result = "20B")]
fn fails(length: usize) -> Result<String, ToolError> {
    Err(ToolError::new("x".repeat(length)))
}

/// Has the limit of the server
#[mcp_tool]
fn large() -> String {
    "x".repeat(1000)
}

/// A text of 40 bytes
#[mcp_resource(uri = "log://{day}", max_result = "20B")]
fn log(day: String) -> String {
    format!("{day:>40}")
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<text>().tool::<numbers>().tool::<fails>().tool::<large>().resource::<log>()
}

/// The texts of a result.
fn texts(reply: &Reply) -> Vec<&str> {
    let blocks = reply.value()["content"].as_array().expect("blocks");
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

#[tokio::test]
async fn a_text_is_cut_with_a_notice_that_says_how_to_get_the_rest() {
    let server = serve(builder());
    server.call("text", json!({ "length": 10 })).await.expect_text(&"ö".repeat(10));
    let reply = server.call("text", json!({ "length": 1000 })).await;
    let notice = "[20 of 2000 bytes are shown; call 'text' again with arguments that select less]";
    assert_eq!(texts(&reply), [&*"ö".repeat(10), notice]);
    assert!(!reply.is_error(), "part of a result is a result");
    let reply = server.call("fails", json!({ "length": 1000 })).await;
    assert_eq!(reply.value()["isError"], true);
    assert!(texts(&reply)[1].starts_with("[20 of 1000 bytes are shown"), "{reply}");
}

#[tokio::test]
async fn structured_content_is_never_cut() {
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let server = TestServer::new(builder()).expect("a server");
        let server = if revision.is_modern() { server } else { server.legacy(revision) };
        // what the text repeats counts once
        let reply = server.call("numbers", json!({ "length": 3 })).await;
        assert_eq!(reply.value()["structuredContent"], json!({ "numbers": [7, 7, 7] }));
        let reply = server.call("numbers", json!({ "length": 100 })).await;
        assert_eq!(
            failure(&reply),
            "the result of 'numbers' has 213 bytes, and at most 20 are sent\n\
             call 'numbers' again with arguments that select less"
        );
        assert!(reply.value().get("structuredContent").is_none());
    }
}

#[tokio::test]
async fn the_limit_of_the_server_is_for_items_without_their_own() {
    let server = serve(builder().limits(|limits| limits.max_result(100)));
    assert!(texts(&server.call("large", json!({})).await)[1].starts_with("[100 of 1000 bytes"));
    assert!(texts(&server.call("text", json!({ "length": 1000 })).await)[1].starts_with("[20 of 2000 bytes"));
    let server = serve(builder());
    server.call("large", json!({})).await.expect_text(&"x".repeat(1000));
}

#[tokio::test]
async fn contents_of_a_resource_are_never_cut() {
    let made = ResourceDef::builder("made://blob")
        .max_result(10)
        .handler(|_: ResourceCall| async { ResourceContents::blob(vec![0; 9]) });
    let server = serve(builder().add(made));
    let reply = server.read("log://monday").await;
    assert_eq!(refusal(&reply), (-32603, "`log://monday` has 40 bytes, and at most 20 are sent".into()));
    assert_eq!(reply.error().expect("an error").data, Some(json!({ "uri": "log://monday", "size": 40 })));
    server.read("made://blob").await.expect_code(-32603);
}

/// A prompt of any length
#[mcp_prompt(max_result = "20B")]
fn ask(length: usize) -> Vec<String> {
    vec!["x".repeat(length / 2), "y".repeat(length - length / 2)]
}

#[tokio::test]
async fn messages_of_a_prompt_are_never_cut() {
    let made = PromptDef::builder("made").max_result(10).handler(|_: PromptCall| async { "x".repeat(11) });
    let of_server = PromptDef::builder("of_server").handler(|_: PromptCall| async { "x".repeat(101) });
    let builder = builder().prompt::<ask>().add(made).add(of_server);
    let server = serve(builder.limits(|limits| limits.max_result(100)));
    server.prompt("ask", json!({ "length": 20 })).await.expect_ok();
    let reply = server.prompt("ask", json!({ "length": 21 })).await;
    assert_eq!(refusal(&reply), (-32603, "the prompt `ask` has 21 bytes, and at most 20 are sent".into()));
    assert_eq!(reply.error().expect("an error").data, Some(json!({ "size": 21 })));
    for name in ["made", "of_server"] {
        server.prompt(name, json!({})).await.expect_code(-32603);
    }
}
