use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/search.rs"]
mod example;

#[tokio::test]
async fn the_tools_of_the_bank_are_found_and_called_by_their_class() {
    let server = TestServer::new(example::server()).unwrap();
    let tools = server.list_tools().await;
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["whoami", "search_tools", "call_read_only", "call_tool", "call_destructive"]);
    let found = server.call("search_tools", json!({ "query": "freeze account" })).await;
    assert!(found.text().contains("\n\nfreeze_account(id?: string)\n  by call_tool: "), "{}", found.text());
    let call = json!({ "name": "freeze_account", "arguments": { "id": "4711" } });
    server.call("call_tool", call.clone()).await.expect_text("freeze account \"4711\"");
    server.call("call_read_only", call).await.expect_failure("call it with `call_tool`");
}
