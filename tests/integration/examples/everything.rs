//! The `everything` example: the requests of the conformance suite, in memory and over stdio.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/everything.rs"]
mod example;

fn server() -> TestServer {
    let server = mcp_runtime::server!().discover_in(concat!(module_path!(), "::example"));
    TestServer::new(server.add(example::json_schema_tool())).unwrap()
}

#[tokio::test]
async fn the_simple_text_is_first_and_every_item_has_a_description() {
    let server = server();
    let tools = server.list_tools().await;
    assert_eq!(tools[0]["name"], "test_simple_text");
    assert!(tools.iter().all(|tool| tool["description"].is_string()));
    assert!(server.list_prompts().await.iter().all(|prompt| prompt["description"].is_string()));
    assert_eq!(server.list_templates().await[0]["uriTemplate"], "test://template/{id}/data");
}

#[tokio::test]
async fn the_schema_that_the_conformance_suite_reads_is_enforced() {
    let server = server();
    let call = async |arguments| server.call("json_schema_2020_12_tool", arguments).await;
    call(json!({ "name": "Ada", "email": "ada@example.org" })).await.expect_text("Contact of Ada");
    call(json!({ "contactMethod": "phone", "email": "a@b" })).await.expect_failure("phone");
    call(json!({ "email": "a@b", "address": { "city": 7 } })).await.expect_failure("address.city");
}
