//! The `content` example.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/content.rs"]
mod example;

fn server() -> TestServer {
    let server = mcp_runtime::server!().discover_in(concat!(module_path!(), "::example"));
    TestServer::new(server).unwrap()
}

/// The kinds of the blocks of every tool, and what resources and prompts are made of; the official SDKs read their values.
#[tokio::test]
async fn every_item_has_what_it_is_an_example_of() {
    let server = server();
    let kiel = json!({ "city": "Kiel" });
    for (tool, arguments, kinds) in [
        ("owned_text", json!({ "name": "Ada" }), &["text"][..]),
        ("fixed_text", json!({}), &["text"]),
        ("maybe_fixed_text", json!({ "loud": true }), &["text"]),
        ("sum", json!({ "a": 1, "b": 2 }), &["text"]),
        ("is_even", json!({ "number": 3 }), &["text"]),
        ("forget", json!({}), &[]),
        ("nickname", json!({ "name": "Ada" }), &[]),
        ("forecast", kiel.clone(), &["text"]),
        ("forecasts", json!({ "cities": ["Kiel"] }), &["text"]),
        ("high", kiel.clone(), &["text"]),
        ("whole", json!({}), &["text"]),
        ("image", json!({}), &["image"]),
        ("sound", json!({}), &["audio"]),
        ("link", json!({}), &["resource_link"]),
        ("embedded", json!({}), &["resource"]),
        ("several", json!({}), &["text", "image", "resource_link"]),
        ("forecast_with_map", kiel, &["text", "image"]),
        ("countdown", json!({ "from": 2 }), &["text"; 3]),
        ("annotated", json!({}), &["text"; 2]),
    ] {
        let reply = server.call(tool, arguments).await;
        let blocks = reply.expect_ok().value()["content"].as_array().unwrap();
        assert!(blocks.iter().map(|block| &block["type"]).eq(kinds), "{tool}: {reply}");
    }
    for uri in ["content://note", "content://forecast/Kiel", "content://silence", "content://pixel"] {
        server.read(uri).await.expect_ok();
    }
    server.prompt("greet", json!({ "name": "Ada" })).await.expect_text("Say hello to Ada.");
    for prompt in ["quiz", "describe", "summarize"] {
        server.prompt(prompt, json!({})).await.expect_ok();
    }
}
