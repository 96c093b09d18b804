use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/remote.rs"]
mod example;

/// Adds.
#[mcp_tool]
fn sum(a: i64, b: i64) -> i64 {
    a + b
}

/// Not for others.
#[mcp_tool]
fn dump_debug() -> &'static str {
    "secrets"
}

#[tokio::test]
async fn the_tools_of_the_other_server_are_beside_that_of_this_one() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let other = mcp_runtime::server!().tool::<sum>().tool::<dump_debug>().build().unwrap();
    let routes: ::axum::Router = other.into_router().unwrap();
    let serving = tokio::spawn(async move { ::axum::serve(listener, routes).await });
    let server = TestServer::new(example::server(&url, example::Token("t".to_owned()))).unwrap();
    let tools = server.list_tools().await;
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hello", "other_sum"]);
    assert_eq!(tools[1]["_meta"]["com.example/from"], "another server");
    server.call("other_sum", json!({ "a": 1, "b": 2 })).await.expect_text("3");
    server.call("hello", json!({ "name": "Ada" })).await.expect_text("Hello, Ada!");
    serving.abort();
}
