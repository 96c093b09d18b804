//! Results: text, empty results, content blocks and their annotations, and how they are downgraded for older revisions.

use mcp_runtime::content::{Content, Embedded, Image, ResourceContents, Role};

use crate::{matrix::sample_server, prelude::*};

#[tokio::test]
async fn a_string_is_one_text_block() {
    #[mcp_tool]
    async fn echo(message: String) -> String {
        message
    }
    let server = serve(mcp_runtime::server!().tool::<echo>());
    let hi = json!({ "content": [{ "type": "text", "text": "hi" }] });
    assert_eq!(result(&server.call("echo", json!({ "message": "hi" })).await), hi);
    let odd = "\u{0}\u{1f}\u{7f}\n\r\t\"\\/\u{2028}\u{feff}\u{1f600}é</script>";
    server.call("echo", json!({ "message": odd })).await.expect_text(odd);
    let long = "ü".repeat(1 << 20);
    server.call("echo", json!({ "message": long })).await.expect_text(&long);
}

#[tokio::test]
async fn values_of_each_type_become_content_blocks() {
    /// The blocks of a function of that type that returns that value.
    macro_rules! returned {
        ($($ty:ty: $value:expr => $content:tt;)*) => {$({
            #[mcp_tool]
            fn give() -> $ty {
                $value
            }
            let reply = serve(mcp_runtime::server!().tool::<give>()).call("give", json!({})).await;
            assert_eq!(result(&reply), json!({ "content": $content }), stringify!($ty));
        })*};
    }
    returned! {
        f64: 1.5 => [{ "type": "text", "text": "1.5" }];
        f64: f64::NAN => [{ "type": "text", "text": "NaN" }];
        u128: u128::MAX => [{ "type": "text", "text": "340282366920938463463374607431768211455" }];
        bool: true => [{ "type": "text", "text": "true" }];
        char: 'ß' => [{ "type": "text", "text": "ß" }];
        &'static str: "static" => [{ "type": "text", "text": "static" }];
        std::borrow::Cow<'static, str>: "cow".into() => [{ "type": "text", "text": "cow" }];
        Result<i8, ToolError>: Ok(-1) => [{ "type": "text", "text": "-1" }];
        Option<String>: Some("some".into()) => [{ "type": "text", "text": "some" }];
        (): () => [];
        Result<(), ToolError>: Ok(()) => [];
        Option<String>: None => [];
        Vec<Content>: Vec::new() => [];
        Vec<String>: vec!["a".into(), "b".into()] => [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }];
        Vec<Content>: vec!["a".into(), Image::from_base64("AA==", "image/gif").into()] =>
            [{ "type": "text", "text": "a" }, { "type": "image", "data": "AA==", "mimeType": "image/gif" }];
        Result<Image, ToolError>: Ok(Image::new([], "image/png").annotated(|hints| hints.audience([Role::User]))) =>
            [{ "type": "image", "data": "", "mimeType": "image/png", "annotations": { "audience": ["user"] } }];
    }
}

#[tokio::test]
async fn blocks_keep_their_order_and_are_downgraded_for_older_revisions() {
    let mut server = serve(sample_server::builder());
    let icon = json!({
        "src": "https://example.com/light.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"
    });
    let whole = json!([
        {
            "type": "text", "text": "text",
            "annotations": { "audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z" }
        },
        { "type": "image", "data": "cG5n", "mimeType": "image/png", "_meta": { "k": 1 } },
        { "type": "audio", "data": "d2F2", "mimeType": "audio/wav" },
        {
            "type": "resource_link", "uri": "test://link", "name": "link", "title": "A link",
            "description": "Leads somewhere", "icons": [icon], "mimeType": "text/plain", "size": 3,
            "annotations": { "priority": 1.0 }, "_meta": { "k": 1 }
        },
        {
            "type": "resource",
            "resource": {
                "uri": "test://embedded", "mimeType": "text/plain", "text": "embedded", "_meta": { "k": 1 }
            },
            "_meta": { "k": 1 }
        },
        { "type": "resource", "resource": { "uri": "test://blob", "mimeType": "image/png", "blob": "cG5n" } }
    ]);
    for revision in [Revision::LATEST].into_iter().chain(LEGACY.into_iter().rev()) {
        server = server.legacy(revision);
        let content = server.call("blocks", json!({})).await.value()["content"].clone();
        let mut known = whole.clone();
        if revision < Revision::V2025_11_25 {
            known[3].as_object_mut().map(|link| link.remove("icons"));
        }
        if revision < Revision::V2025_06_18 {
            known[0]["annotations"] = json!({ "audience": ["user"], "priority": 0.5 });
            known[3] =
                json!({ "type": "text", "text": "link: test://link", "annotations": { "priority": 1.0 } });
            for block in known.as_array_mut().into_iter().flatten() {
                block.as_object_mut().map(|block| block.remove("_meta"));
            }
            known[4]["resource"].as_object_mut().map(|resource| resource.remove("_meta"));
        }
        if revision < Revision::V2025_03_26 {
            let uri = &content[2]["resource"]["uri"];
            let blob = json!({ "uri": uri, "mimeType": "audio/wav", "blob": "d2F2" });
            known[2] = json!({ "type": "resource", "resource": blob });
        }
        assert_eq!(content, known, "{revision}");
        // messages of prompts have the same blocks
        let prompt = server.prompt("messages", json!({ "topic": "tea" })).await;
        let messages = prompt.value()["messages"].as_array().cloned().unwrap_or_default();
        let blocks: Vec<_> = messages[..6].iter().map(|message| message["content"].clone()).collect();
        assert_eq!(json!(blocks), known, "{revision}");
    }
}

#[tokio::test]
async fn a_whole_result_has_its_blocks_its_failure_and_any_key_of_meta() {
    #[mcp_tool]
    fn whole() -> ToolResult {
        let whole = ToolResult::text("a").with("b").meta("org.example/k", "v\"\\").failed();
        whole.meta("a\"b", 1).meta("\"", 2).meta("c\\", 3).meta("\n", 4)
    }
    let server = serve(mcp_runtime::server!().tool::<whole>());
    let meta = json!({ "org.example/k": "v\"\\", "a\"b": 1, "\"": 2, "c\\": 3, "\n": 4 });
    assert_eq!(
        result(&server.call("whole", json!({})).await),
        json!({
            "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }],
            "isError": true,
            "_meta": meta
        })
    );
    let legacy = server.legacy(Revision::V2025_11_25).call("whole", json!({})).await;
    assert_eq!(legacy.value()["_meta"], meta);
}

#[tokio::test]
async fn an_embedded_resource_without_a_uri_gets_one() {
    #[mcp_tool]
    fn unnamed() -> (Embedded, Embedded) {
        (Embedded::new(ResourceContents::text("a")), Embedded::new(ResourceContents::blob([0_u8])))
    }
    let mut server = serve(mcp_runtime::server!().tool::<unnamed>());
    for revision in LEGACY {
        let reply = server.call("unnamed", json!({})).await;
        let content = &reply.value()["content"];
        let uri = "resource:inline";
        assert_eq!(content[0]["resource"], json!({ "uri": uri, "mimeType": "text/plain", "text": "a" }));
        assert_eq!(
            content[1]["resource"],
            json!({ "uri": uri, "mimeType": "application/octet-stream", "blob": "AA==" })
        );
        server = server.legacy(revision);
    }
}
