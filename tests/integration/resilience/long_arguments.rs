//! Long arguments: what is repaired in them, and what the report says of those that are not.

use crate::prelude::*;

#[mcp_type]
struct Row {
    #[schemars(range(min = 1, max = 9))]
    limit: u32,
}

#[mcp_tool]
fn take(rows: Option<Vec<Row>>, limit: Option<u32>, text: Option<String>) -> String {
    format!("{} {limit:?} {}", rows.map_or(0, |rows| rows.len()), text.map_or(0, |text| text.len()))
}

async fn call(arguments: Value) -> String {
    let server = mcp_runtime::server!().tool::<take>().build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    client.start(1, "tools/call", json!({ "name": "take", "arguments": arguments, "_meta": meta })).await;
    text_of(&client.message().await).to_owned()
}

#[tokio::test]
async fn a_slip_beside_a_text_of_megabytes_is_repaired() {
    let report = call(json!({ "limit": "5", "text": "text".repeat(800_000) })).await;
    assert_eq!(report, "0 Some(5) 3200000");
}

#[tokio::test]
async fn arguments_of_too_many_values_to_be_repaired_are_reported_at_the_first_wrong_value() {
    for (wrong, error) in [
        (json!({ "limit": 0 }), "rows[7].limit: 0 is less than the minimum of 1"),
        (json!({ "limit": "2" }), "rows[7].limit: \"2\" is not an integer"),
        (json!({}), "rows[7].limit: is missing (an integer)"),
    ] {
        let rows: Vec<_> =
            (0..6_000).map(|n| if n % 100 == 7 { wrong.clone() } else { json!({ "limit": 1 }) }).collect();
        let report = call(json!({ "rows": rows })).await;
        assert!(report.contains(error) && report.len() < 20_000, "{error}: {report}");
    }
}

#[tokio::test]
async fn more_values_than_a_call_may_have_are_refused_and_a_text_is_one_value() {
    let rows = |count: usize| json!({ "rows": vec![json!({ "limit": 1 }); count] });
    let refusal =
        "invalid arguments for tool `take`:\n- more than 150000 values in one call; send fewer at a time";
    let text = json!({ "text": ",[{".repeat(60_000) });
    assert_eq!(call(text).await, "0 None 180000");
    // `rows`, its objects and their members, and two brackets for each
    assert_eq!(call(rows(70_000)).await, "70000 None 0");
    let report = call(rows(80_000)).await;
    assert!(report.starts_with(refusal), "{report}");
}

#[tokio::test]
async fn a_run_time_tool_refuses_more_values_than_a_call_may_have() {
    let tool = ToolDef::builder("take").handler(|_: ToolCall| async { "taken" });
    let server = mcp_runtime::server!().add(tool);
    let server = TestServer::new(server).expect("a server");
    server.call("take", json!({ "any": [1, 2, 3] })).await.expect_text("taken");
    server.call("take", json!({ "any": vec![1; 150_001] })).await.expect_failure("more than 150000 values");
}
