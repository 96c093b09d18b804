//! `resources/read`: MIME types, bytes, several contents, cache hints, errors.

use mcp_runtime::content::ResourceContents;

use crate::prelude::*;

/// Functions with each type of result.
mod returned {
    use mcp_runtime::{content::Bytes, prelude::*};

    macro_rules! resources {
        ($($name:ident: $ty:ty = $value:expr, $uri:literal $(, $option:ident = $text:literal)*;)*) => {$(
            #[mcp_resource(uri = $uri $(, $option = $text)*)]
            pub(super) fn $name() -> $ty {
                $value
            }
        )*};
    }

    #[mcp_type]
    pub(super) struct Point {
        x: i32,
    }

    resources! {
        text: String = "ä\n".into(), "r2://text";
        borrowed: &'static str = "b", "r2://borrowed";
        number: u64 = 7, "r2://number";
        json_value: Json<Point> = Json(Point { x: 1 }), "r2://json";
        bytes: Vec<u8> = vec![0, 255], "r2://bytes";
        wrapped: Bytes = Bytes(b"hi".to_vec()), "r2://wrapped";
        optional: Option<Json<Vec<u8>>> = Some(Json(vec![1])), "r2://optional";
        fallible: Result<Vec<u8>, ToolError> = Ok(vec![]), "r2://fallible";
        image: Vec<u8> = vec![1], "r2://image", mime = "image/png";
        page: Json<u8> = Json(1), "r2://page", mime = "application/ld+json";
    }
}

#[tokio::test]
async fn the_return_type_determines_the_mime_type() {
    let mut server = serve(mcp_runtime::server!().discover_in(concat!(module_path!(), "::returned")));
    let expected = [
        ("r2://text", "text/plain", json!({ "text": "ä\n" })),
        ("r2://borrowed", "text/plain", json!({ "text": "b" })),
        ("r2://number", "text/plain", json!({ "text": "7" })),
        ("r2://json", "application/json", json!({ "text": "{\"x\":1}" })),
        ("r2://bytes", "application/octet-stream", json!({ "blob": "AP8=" })),
        ("r2://wrapped", "application/octet-stream", json!({ "blob": "aGk=" })),
        ("r2://optional", "application/json", json!({ "text": "[1]" })),
        ("r2://fallible", "application/octet-stream", json!({ "blob": "" })),
        ("r2://image", "image/png", json!({ "blob": "AQ==" })),
        ("r2://page", "application/ld+json", json!({ "text": "1" })),
    ];
    for revision in LEGACY {
        let listed = server.list_resources().await;
        for (uri, mime, body) in &expected {
            let entry = listed.iter().find(|entry| entry["uri"] == *uri).expect("it is listed");
            assert_eq!(entry["mimeType"], *mime, "{uri}");
            let mut contents = body.clone();
            contents["uri"] = (*uri).into();
            contents["mimeType"] = (*mime).into();
            assert_eq!(server.read(uri).await.value()["contents"], json!([contents]), "{uri}");
        }
        server = server.legacy(revision);
    }
}

#[tokio::test]
async fn bytes_are_a_blob_under_the_uri_of_the_request() {
    #[mcp_resource(uri = "Bin://Host/{name}")]
    fn bin(name: String) -> Vec<u8> {
        name.into_bytes()
    }
    let server = serve(mcp_runtime::server!().resource::<bin>());
    assert_eq!(
        server.read("bin://host/a%20b").await.value()["contents"],
        json!([{ "uri": "bin://host/a%20b", "mimeType": "application/octet-stream", "blob": "YSBi" }])
    );
}

#[tokio::test]
async fn several_contents_are_sent_unchanged() {
    #[mcp_resource(uri = "dir://all")]
    fn all() -> Vec<ResourceContents> {
        vec![
            ResourceContents::text("a").uri("dir://a").mime("text/x").meta("k", 1),
            ResourceContents::blob([1_u8]),
            ResourceContents::blob_from_base64("AA=="),
        ]
    }
    let server = serve(mcp_runtime::server!().resource::<all>());
    let contents = json!([
        { "uri": "dir://a", "mimeType": "text/x", "text": "a", "_meta": { "k": 1 } },
        { "uri": "dir://all", "mimeType": "application/octet-stream", "blob": "AQ==" },
        { "uri": "dir://all", "mimeType": "application/octet-stream", "blob": "AA==" }
    ]);
    assert_eq!(server.read("dir://all").await.value()["contents"], contents);
    let old = server.legacy(Revision::V2025_03_26).read("dir://all").await;
    assert_eq!(old.value()["contents"][0], json!({ "uri": "dir://a", "mimeType": "text/x", "text": "a" }));
}

#[tokio::test]
async fn cache_hints_are_for_modern_clients() {
    #[mcp_resource(uri = "cache://public", cache(ttl = "60s", public))]
    fn public() -> u8 {
        0
    }
    #[mcp_resource(uri = "cache://own", cache(ttl = "500ms"))]
    fn own() -> u8 {
        0
    }
    #[mcp_resource(uri = "cache://none")]
    fn none() -> u8 {
        0
    }
    let server = serve(mcp_runtime::server!().resource::<public>().resource::<own>().resource::<none>());
    for (uri, ttl, scope) in [
        ("cache://public", 60_000, "public"),
        ("cache://own", 500, "private"),
        ("cache://none", 0, "private"),
    ] {
        let read = result(&server.read(uri).await);
        assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(ttl), &json!(scope)), "{uri}");
    }
    let read = server.legacy(Revision::V2025_11_25).read("cache://public").await;
    assert_eq!(read.value().as_object().map(serde_json::Map::len), Some(1), "{read}");
}

#[mcp_resource(uri = "docs://a/{id}")]
fn doc(id: u32) -> Option<String> {
    (id < 10).then(|| id.to_string())
}

#[mcp_resource(uri = "typed://{id}/{flag}{?tone,day}")]
fn typed(id: u8, flag: bool, tone: Option<Tone>, day: Option<chrono::NaiveDate>) -> String {
    format!("{id} {flag} {tone:?} {day:?}")
}

#[mcp_type]
#[derive(Debug)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Low,
    High,
}

#[tokio::test]
async fn variables_are_typed_and_decoded() {
    let server = serve(mcp_runtime::server!().resource::<doc>().resource::<typed>());
    server.read("docs://a/%37").await.expect_text("7");
    server
        .read("typed://3/true?day=2024-02-29&tone=high")
        .await
        .expect_text("3 true Some(High) Some(2024-02-29)");
    server.read("typed://3/false").await.expect_text("3 false None None");
}

#[tokio::test]
async fn every_value_that_does_not_parse_is_reported() {
    let mut server = serve(mcp_runtime::server!().resource::<doc>().resource::<typed>());
    for revision in LEGACY {
        let uri = "docs://a/seven";
        let reply = server.read(uri).await;
        let (code, message) = refusal(&reply);
        assert_eq!(code, -32602);
        for said in ["`id`", "32-bit integer", "`seven`"] {
            assert!(message.contains(said), "{said}: {message}");
        }
        assert_eq!(reply.error().and_then(|error| error.data), Some(json!({ "uri": uri })));
        let reply = server.read("typed://300/maybe?tone=middle&day=never").await;
        let (code, message) = refusal(&reply);
        assert_eq!(code, -32602);
        for said in ["`id`", "`flag`", "`tone`", "`day`", "`300`", "`maybe`", "middle"] {
            assert!(message.contains(said), "{said}: {message}");
        }
        server = server.legacy(revision);
    }
}

#[tokio::test]
async fn constraints_on_variables_are_enforced() {
    #[mcp_resource(uri = "rule://{n}/{code}")]
    fn ruled(#[mcp(range(1..=5))] n: u8, #[mcp(length(2), pattern = "^[a-z]")] code: String) -> String {
        format!("{n}{code}")
    }
    let server = serve(mcp_runtime::server!().resource::<ruled>());
    server.read("rule://5/ab").await.expect_text("5ab");
    let (code, message) = refusal(&server.read("rule://6/ABC").await);
    assert_eq!(code, -32602);
    assert!(message.contains("`n`: 6 is greater than the maximum of 5"), "{message}");
    // a pattern is not matched against a text that another rule refuses
    assert!(message.contains("`code`: has 3 characters") && !message.contains("`^[a-z]`"), "{message}");
    let (_, message) = refusal(&server.read("rule://1/AB").await);
    assert!(message.contains("`code`: `AB` does not match the pattern `^[a-z]`"), "{message}");
}

#[tokio::test]
async fn unknown_uris_are_not_found() {
    let mut server = serve(mcp_runtime::server!().resource::<doc>().resource::<returned::text>());
    let unknown =
        ["docs://b/1", "docs://a/", "docs://a/99", "r2://text/", "nonsense", "", "\n", "r2://text#x"];
    for uri in unknown {
        let reply = server.read(uri).await;
        assert_eq!(refusal(&reply).0, -32602, "{uri:?}");
        assert_eq!(reply.error().and_then(|error| error.data), Some(json!({ "uri": uri })), "{uri:?}");
    }
    for revision in LEGACY {
        server = server.legacy(revision);
        for uri in unknown {
            let reply = server.read(uri).await;
            assert_eq!(refusal(&reply).0, -32002, "{uri:?} {revision}");
            assert_eq!(reply.error().and_then(|error| error.data), Some(json!({ "uri": uri })), "{uri:?}");
        }
    }
}
