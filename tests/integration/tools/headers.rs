//! Arguments that are mirrored into HTTP headers, as `tools/list` publishes them.

use crate::prelude::*;

#[mcp_type]
enum Region {
    Eu,
    Us,
}

#[mcp_type]
enum Payload {
    Empty,
    Full { size: u8 },
}

#[tokio::test]
async fn headers_are_named_in_the_schema() {
    #[mcp_tool]
    fn route(
        #[mcp(header = "Region")] region: Region,
        #[mcp(header = "Tenant-Id")] tenant: Option<String>,
        #[mcp(header = "Dry")] dry: bool,
        #[mcp(header = "Count")] count: u32,
        #[mcp(header = "Big", range(-9007199254740991..=9007199254740991))] big: i64,
    ) -> String {
        let region = match region {
            Region::Eu => "eu",
            Region::Us => "us",
        };
        format!("{region} {tenant:?} {dry} {count} {big}")
    }
    let server = serve(mcp_runtime::server!().tool::<route>());
    let properties = only_tool(&server).await["inputSchema"]["properties"].clone();
    assert_eq!(
        properties,
        json!({
            "region": { "type": "string", "enum": ["Eu", "Us"], "x-mcp-header": "Region" },
            "tenant": { "type": "string", "x-mcp-header": "Tenant-Id" },
            "dry": { "type": "boolean", "x-mcp-header": "Dry" },
            "count": { "type": "integer", "minimum": 0, "x-mcp-header": "Count" },
            "big": {
                "type": "integer", "minimum": -9007199254740991_i64, "maximum": 9007199254740991_i64,
                "x-mcp-header": "Big"
            }
        })
    );
    let sent = json!({ "region": "Us", "dry": true, "count": "3", "big": 1 });
    server.call("route", sent).await.expect_text("us None true 3 1");
}

#[test]
fn a_header_for_an_enum_with_payload_is_a_build_error() {
    #[mcp_tool]
    fn send(#[mcp(header = "Kind")] payload: Payload) -> String {
        match payload {
            Payload::Empty => "empty".into(),
            Payload::Full { size } => size.to_string(),
        }
    }
    let error = build_error(mcp_runtime::server!().tool::<send>());
    assert!(
        error.contains("tool `send`") && error.contains("`Kind`") && error.contains("headers.rs:"),
        "{error}"
    );
}

#[tokio::test]
async fn in_memory_and_on_stdio_no_headers_are_compared() {
    #[mcp_tool]
    fn at(#[mcp(header = "Region")] region: String) -> String {
        region
    }
    let mut server = serve(mcp_runtime::server!().tool::<at>());
    for revision in LEGACY {
        server.call("at", json!({ "region": "eu" })).await.expect_text("eu");
        server = server.legacy(revision);
    }
}
