//! Errors for invalid arguments, which models read: every problem, by path, with suggestions and the signature.

use mcp_runtime::prelude::*;
use serde_json::json;

use crate::common::{LEGACY, failure, serve};

#[mcp_type]
#[derive(Debug)]
struct Item {
    #[schemars(range(min = 1))]
    count: i32,
    sku: String,
}

/// Orders things.
#[mcp_tool]
async fn order(
    #[mcp(length(1..=5))] query: String,
    #[mcp(default = 10, range(1..=100))] limit: u32,
    items: Vec<Item>,
    #[mcp(one_of("asc", "desc"))] sort_order: Option<String>,
    urgent: bool,
) -> String {
    format!("{query} {limit} {items:?} {sort_order:?} {urgent}")
}

#[tokio::test]
async fn every_problem_is_reported_at_once() {
    let mut server = serve(mcp_runtime::server!().tool::<order>());
    let sent = json!({
        "querry": "x",
        "limit": 500,
        "items": [{ "count": 1, "sku": "a" }, { "count": 0 }, { "count": "two", "sku": 3 }],
        "sort_order": "dsc",
        "urgent": "maybe"
    });
    let expected = "invalid arguments for tool `order`:\n\
        - items[1].count: 0 is less than the minimum of 1\n\
        - items[1].sku: is missing (a string)\n\
        - items[2].count: \"two\" is not an integer\n\
        - items[2].sku: 3 is not a string\n\
        - limit: 500 is greater than the maximum of 100\n\
        - query: is missing (a string)\n\
        - sort_order: \"dsc\" is not one of \"asc\", \"desc\"; did you mean \"desc\"?\n\
        - urgent: \"maybe\" is not a boolean\n\
        - unknown argument `querry`; did you mean `query`?\n\
        expected: order(query: string 1..=5 chars, items: {count: integer 1.., sku: string}[], urgent: boolean, \
        limit?: integer 1..=100 = 10, sort_order?: \"asc\" | \"desc\")";
    let reply = server.call("order", sent.clone()).await;
    assert_eq!(failure(&reply), expected);
    assert_eq!(reply.value()["content"], json!([{ "type": "text", "text": expected }]));
    assert_eq!(reply.value().get("structuredContent"), None);
    for revision in LEGACY {
        server = server.legacy(revision);
        let reply = server.call("order", sent.clone()).await;
        assert_eq!(
            *reply.value(),
            json!({ "content": [{ "type": "text", "text": expected }], "isError": true }),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn deserialization_errors_are_reported_with_the_rest() {
    #[mcp_tool]
    fn book(day: chrono::NaiveDate, seats: u32, id: uuid::Uuid, name: String) -> String {
        format!("{day} {seats} {id} {name}")
    }
    let server = serve(mcp_runtime::server!().tool::<book>());
    let sent = json!({ "day": "2024-13-45", "seats": 5_000_000_000_u64, "id": "no", "nam": "x" });
    let text = failure(&server.call("book", sent).await);
    for said in ["- day: ", "- seats: ", "- id: ", "- name: is missing", "did you mean `name`?"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(text.contains("5000000000"), "{text}");
    assert!(!text.contains("at line"), "positions in JSON text mean nothing to a model: {text}");
    let text = failure(
        &server
            .call(
                "book",
                json!({ "day": "x", "seats": 1, "id": "67e55044-10b1-426f-9247-bb680e5fe0c8", "name": "" }),
            )
            .await,
    );
    let said = text.lines().filter(|line| line.starts_with("- ")).count();
    assert_eq!(said, 1, "{text}");
}

#[tokio::test]
async fn constraint_violations_name_their_argument_once() {
    #[mcp_tool]
    fn short(#[mcp(length(1..=3), pattern = "^[a-z]+$")] code: String, #[mcp(range(1..))] n: i64) -> String {
        format!("{code}{n}")
    }
    let server = serve(mcp_runtime::server!().tool::<short>());
    let text = failure(&server.call("short", json!({ "code": "ABCD", "n": 0 })).await);
    assert_eq!(text.matches("- code: ").count(), 1, "{text}");
    assert_eq!(text.matches("- n: ").count(), 1, "{text}");
    assert!(text.contains("- n: 0 is less than the minimum of 1"), "{text}");
}

#[tokio::test]
async fn long_reports_are_truncated() {
    #[mcp_tool]
    fn many(list: Vec<u8>) -> String {
        format!("{list:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<many>());
    let text = failure(&server.call("many", json!({ "list": vec!["x"; 100_000] })).await);
    assert!(text.len() < 20_000, "{} bytes", text.len());
    assert!(text.contains("- list[0]: \"x\" is not an integer"), "{text}");
    let keys: serde_json::Map<_, _> = (0..50_000).map(|n| (format!("key{n}"), json!(n))).collect();
    let text = failure(&server.call("many", json!(keys)).await);
    assert!(text.len() < 100_000, "{} bytes", text.len());
    assert!(text.contains("- list: is missing"), "{text}");
    let long = failure(&server.call("many", json!({ "list": "y".repeat(1_000_000) })).await);
    assert!(long.len() < 1_000, "{} bytes", long.len());
}

#[tokio::test]
async fn odd_names_and_values_are_quoted() {
    #[mcp_tool]
    fn odd(#[mcp(name = "a b")] spaced: u8, #[mcp(name = "é")] accented: u8) -> String {
        format!("{spaced}{accented}")
    }
    let server = serve(mcp_runtime::server!().tool::<odd>());
    let text = failure(&server.call("odd", json!({ "a b": "\u{0007}\n\"", "é": null })).await);
    assert!(text.contains("- [\"a b\"]: \"\\u0007\\n\\\"\" is not an integer"), "{text}");
    assert!(text.contains("- é: null is not an integer"), "{text}");
}

#[tokio::test]
async fn a_failed_call_does_not_affect_the_next() {
    let server = serve(mcp_runtime::server!().tool::<order>());
    server.call("order", json!({})).await.expect_failure("query: is missing");
    let good = json!({ "query": "q", "items": [], "urgent": true });
    server.call("order", good).await.expect_text("q 10 [] None true");
}
