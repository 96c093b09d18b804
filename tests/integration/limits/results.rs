//! Results that are too large: cut with a notice, refused with their size, or kept and linked.

use std::time::Duration;

use mcp_runtime::{
    Principal, Revision, ServerBuilder,
    content::{Content, Image, ResourceContents},
    prelude::*,
    prompt::{PromptCall, PromptDef},
    resource::{ResourceCall, ResourceDef},
    testing::{Reply, TestServer},
    tool::{ToolCall, ToolDef},
};
use mcp_tests::support::{BreakableStore, HttpRequest, HttpServer, server_key, within};
use serde_json::{Value, json};

use super::seen_by;
use crate::common::{failure, refusal, serve};

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

/// The same, which keeps what is too large.
fn keeping() -> ServerBuilder {
    builder().limits(|limits| limits.keep_results(Duration::from_secs(60)).max_result(100))
}

/// The texts of a result.
fn texts(reply: &Reply) -> Vec<&str> {
    let blocks = reply.value()["content"].as_array().expect("blocks");
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

/// The link in a result.
#[track_caller]
fn link(reply: &Reply) -> Value {
    let blocks = reply.value()["content"].as_array().expect("blocks");
    let link = blocks.iter().find(|block| block["type"] == "resource_link");
    link.unwrap_or_else(|| panic!("no link in {reply}")).clone()
}

fn uri(link: &Value) -> &str {
    link["uri"].as_str().expect("a URI")
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

#[tokio::test]
async fn a_link_of_one_replica_is_read_on_another_that_shares_keys_and_store() {
    let shared = BreakableStore::default();
    let replica = |key: u8| {
        let builder = keeping().stores(|stores| stores.keys([server_key(key)]));
        builder.shared(shared.clone()).build().expect("a server")
    };
    let (one, two, stranger) = (replica(1), replica(1), replica(2));
    let made = link(&seen_by(&one, "ada").call("text", json!({ "length": 1000 })).await);
    let read = seen_by(&two, "ada").read(uri(&made)).await;
    assert_eq!(read.value()["contents"][0]["text"], "ö".repeat(1000));
    seen_by(&two, "bob").read(uri(&made)).await.expect_code(-32602);
    seen_by(&stranger, "ada").read(uri(&made)).await.expect_code(-32602);

    shared.set_broken(true);
    seen_by(&two, "ada").read(uri(&made)).await.expect_code(-32603);
    // as if nothing were kept
    let reply = seen_by(&one, "ada").call("text", json!({ "length": 1000 })).await;
    assert!(texts(&reply)[1].contains("call 'text' again"), "{reply}");
}

#[tokio::test]
async fn what_is_kept_is_read_by_its_caller_and_no_other() {
    let built = keeping().build().expect("a server");
    let (ada, bob) = (seen_by(&built, "ada"), seen_by(&built, "bob"));
    let reply = ada.call("text", json!({ "length": 1000 })).await;
    let notice = "[20 of 2000 bytes are shown; the linked resource is the whole, for 1m]";
    assert_eq!(texts(&reply), [&*"ö".repeat(10), notice]);
    let link = link(&reply);
    assert_eq!((&link["name"], &link["size"]), (&json!("result of text"), &json!(2000)));
    let read = ada.read(uri(&link)).await;
    let contents = json!([{ "uri": uri(&link), "mimeType": "text/plain", "text": "ö".repeat(1000) }]);
    assert_eq!(read.value()["contents"], contents);
    assert_eq!((&read.value()["ttlMs"], &read.value()["cacheScope"]), (&json!(0), &json!("private")));
    let (code, message) = refusal(&bob.read(uri(&link)).await);
    assert_eq!((code, message), (-32602, format!("unknown resource `{}`", uri(&link))));
    TestServer::of(&built).read(uri(&link)).await.expect_code(-32602);
    let forged = format!("{}A", uri(&link));
    ada.read(&forged).await.expect_code(-32602);
    ada.read("result://kept/").await.expect_code(-32602);
    // it is in no list
    assert!(ada.list_resources().await.is_empty());
}

#[tokio::test]
async fn structured_content_is_kept_whole() {
    let untyped = ToolDef::builder("untyped").max_result(20).handler(|_: ToolCall| async {
        ToolResult::text("see the numbers").structured(&vec![7; 100]).map_err(ToolError::private)
    });
    let image = ToolDef::builder("image").max_result(20).handler(|_: ToolCall| async {
        vec![Content::text("a picture"), Image::new([0; 30], "image/png").into()]
    });
    let server = serve(keeping().add(untyped).add(image));
    let reply = server.call("numbers", json!({ "length": 100 })).await;
    // clients refuse a success without the structured content that the schema promises
    assert!(failure(&reply).contains("the linked resource is the whole, for 1m"), "{reply}");
    let read = server.read(uri(&link(&reply))).await;
    let contents = &read.value()["contents"];
    assert_eq!(contents.as_array().map(Vec::len), Some(1), "the text repeats it");
    assert_eq!(contents[0]["mimeType"], "application/json");
    let numbers: Value = serde_json::from_str(contents[0]["text"].as_str().expect("text")).expect("JSON");
    assert_eq!(numbers["numbers"].as_array().map(Vec::len), Some(100));
    let reply = server.call("untyped", json!({})).await;
    assert!(!reply.is_error() && reply.value().get("structuredContent").is_none(), "{reply}");
    let read = server.read(uri(&link(&reply))).await;
    assert_eq!(read.value()["contents"][1]["text"], "see the numbers");
    let reply = server.call("image", json!({})).await;
    assert_eq!(texts(&reply)[0], "a picture");
    let read = server.read(uri(&link(&reply))).await;
    assert_eq!(read.value()["contents"][1]["mimeType"], "image/png");
}

#[tokio::test]
async fn what_has_no_room_is_cut() {
    let built = keeping().limits(|limits| limits.max_kept_bytes(4400)).build().expect("a server");
    let (ada, bob) = (seen_by(&built, "ada"), seen_by(&built, "bob"));
    link(&ada.call("text", json!({ "length": 1000 })).await);
    let reply = ada.call("text", json!({ "length": 1000 })).await;
    assert_eq!(
        texts(&reply)[1],
        "[20 of 2000 bytes are shown; call 'text' again with arguments that select less]"
    );
    // her share is full, not his
    link(&bob.call("text", json!({ "length": 1000 })).await);
}

#[tokio::test]
async fn a_server_that_keeps_results_has_resources() {
    let only_tools = || mcp_runtime::server!().tool::<text>();
    assert!(serve(only_tools()).capabilities().await.get("resources").is_none());
    let keeping = serve(only_tools().limits(|limits| limits.keep_results(Duration::from_secs(60))));
    assert!(keeping.capabilities().await.get("resources").is_some());
    let reply = keeping.call("text", json!({ "length": 100 })).await;
    keeping.read(uri(&link(&reply))).await.expect_ok();
}

#[tokio::test]
async fn a_kept_result_is_read_over_http_with_the_same_principal() {
    within(async {
        let builder = keeping().http(|http| {
            http.caller(|parts| Some(Principal::new("test", parts.headers.get("x-user")?.to_str().ok()?)))
        });
        let server = HttpServer::start(builder).await;
        let call = HttpRequest::modern(1, "tools/call", json!({ "name": "large" }));
        let reply = call.header("x-user", "ada").send(server.address).await.json();
        let blocks = reply["result"]["content"].as_array().expect("blocks");
        let link = blocks.iter().find(|block| block["type"] == "resource_link").expect("a link");
        let read = HttpRequest::modern(2, "resources/read", json!({ "uri": link["uri"] }));
        let hers = read.clone().header("x-user", "ada").send(server.address).await.json();
        assert_eq!(hers["result"]["contents"][0]["text"], "x".repeat(1000));
        let his = read.clone().header("x-user", "bob").send(server.address).await.json();
        assert_eq!(his["error"]["code"], -32602);
        assert_eq!(read.send(server.address).await.json()["error"]["code"], -32602);
    })
    .await;
}
