//! Results: text, empty results, content blocks and their annotations, and how they are downgraded for older revisions.

use mcp_runtime::content::{Audio, Content, Embedded, Image, ResourceContents, ResourceLink, Role, Text};

use crate::prelude::*;

#[tokio::test]
async fn a_string_is_one_text_block() {
    #[mcp_tool]
    async fn echo(message: String) -> String {
        message
    }
    let mut server = serve(mcp_runtime::server!().tool::<echo>());
    let hi = json!({ "content": [{ "type": "text", "text": "hi" }] });
    assert_eq!(result(&server.call("echo", json!({ "message": "hi" })).await), hi);
    for revision in LEGACY {
        server = server.legacy(revision);
        assert_eq!(*server.call("echo", json!({ "message": "hi" })).await.value(), hi, "{revision}");
    }
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

#[mcp_tool]
fn everything() -> Vec<Content> {
    let text = Text::new("end").annotated(|hints| {
        hints.audience([Role::User, Role::Assistant]).priority(0.5).last_modified("2025-01-12T15:00:58Z")
    });
    vec![
        "text".into(),
        Image::new([0xff_u8, 0xfe], "image/png").into(),
        Audio::new([1_u8, 2, 3], "audio/wav").into(),
        ResourceLink::new("docs://a", "a").title("A").description("about").mime("text/plain").size(3).into(),
        Embedded::text("docs://b", "text/markdown", "# b").into(),
        Embedded::blob("docs://c", "application/x", [0_u8]).into(),
        text.meta("k", 1).into(),
    ]
}

#[tokio::test]
async fn blocks_keep_their_order() {
    let server = serve(mcp_runtime::server!().tool::<everything>());
    assert_eq!(
        result(&server.call("everything", json!({})).await),
        json!({ "content": [
            { "type": "text", "text": "text" },
            { "type": "image", "data": "//4=", "mimeType": "image/png" },
            { "type": "audio", "data": "AQID", "mimeType": "audio/wav" },
            {
                "type": "resource_link", "uri": "docs://a", "name": "a", "title": "A", "description": "about",
                "mimeType": "text/plain", "size": 3
            },
            { "type": "resource", "resource": { "uri": "docs://b", "mimeType": "text/markdown", "text": "# b" } },
            { "type": "resource", "resource": { "uri": "docs://c", "mimeType": "application/x", "blob": "AA==" } },
            {
                "type": "text", "text": "end",
                "annotations": {
                    "audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"
                },
                "_meta": { "k": 1 }
            }
        ] })
    );
}

#[tokio::test]
async fn blocks_are_downgraded_for_older_revisions() {
    let mut server = serve(mcp_runtime::server!().tool::<everything>());
    for revision in LEGACY {
        server = server.legacy(revision);
        let reply = server.call("everything", json!({})).await;
        let content = &reply.value()["content"];
        let audio = if revision >= Revision::V2025_03_26 {
            json!({ "type": "audio", "data": "AQID", "mimeType": "audio/wav" })
        } else {
            json!({ "type": "resource", "resource": { "uri": content[2]["resource"]["uri"], "mimeType": "audio/wav", "blob": "AQID" } })
        };
        assert_eq!(content[2], audio, "{revision}");
        let modern = revision >= Revision::V2025_06_18;
        if modern {
            assert_eq!(content[3]["type"], "resource_link", "{revision}");
        } else {
            assert_eq!(content[3], json!({ "type": "text", "text": "a: docs://a" }), "{revision}");
        }
        let mut end = json!({
            "type": "text", "text": "end", "annotations": { "audience": ["user", "assistant"], "priority": 0.5 }
        });
        if modern {
            end["annotations"]["lastModified"] = "2025-01-12T15:00:58Z".into();
            end["_meta"] = json!({ "k": 1 });
        }
        assert_eq!(content[6], end, "{revision}");
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
