//! The `hello` example.

use mcp_runtime::testing::TestServer;
use serde_json::json;

use super::program;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/hello.rs"]
mod example;

#[tokio::test]
async fn it_greets() {
    let server = mcp_runtime::server!().discover_in(concat!(module_path!(), "::example"));
    let server = TestServer::new(server).unwrap();
    server.call("greet", json!({ "name": "Ada" })).await.expect_text("Hello, Ada!");
    server.call("greet", json!({})).await.expect_failure("name");
}

#[tokio::test]
async fn the_program_serves_stdio() {
    assert!(program::run("hello", &["list"], &[]).contains("greet"));
    assert!(program::run("hello", &["call", "greet", r#"{"name":"Ada"}"#], &[]).contains("Hello, Ada!"));
    let reply = program::over_stdio("hello", "greet", &json!({ "name": "Ada" })).await;
    assert_eq!(reply["result"]["content"][0]["text"], "Hello, Ada!");
}
