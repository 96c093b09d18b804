//! The examples of the client.

use std::process::Command;

use mcp_runtime::{ServerBuilder, prelude::*};
use mcp_tests::{
    programs::{child, example},
    support::{HttpServer, PATIENCE},
};

/// Echoes
#[mcp_tool]
fn echo(message: String) -> String {
    message
}

/// Fails
#[mcp_tool]
fn fails() -> Result<String, ToolError> {
    Err("it does not work".into())
}

/// A note
#[mcp_resource(uri = "note://one")]
fn note() -> &'static str {
    "noted"
}

/// Greets
#[mcp_prompt]
fn greet(name: String) -> String {
    format!("Greet {name}.")
}

fn builder() -> ServerBuilder {
    let builder = mcp_runtime::server!().info(|info| info.name("shop"));
    builder.tool::<echo>().tool::<fails>().resource::<note>().prompt::<greet>()
}

fn run(example: &str, arguments: &[&str]) -> child::Finished {
    let mut command = Command::new(example::binary(example));
    child::run(command.args(arguments), "", PATIENCE).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_example_lists_calls_and_reads_any_server() {
    let server = HttpServer::start(builder()).await;
    let url = format!("http://{}/mcp", server.address);
    let listed = tokio::task::spawn_blocking(move || {
        let text = |arguments: &[&str]| run("client", arguments).or_panic("the example");
        assert_eq!(text(&[&url, "call", "echo", r#"{"message":"hi"}"#]), "hi\n");
        assert_eq!(text(&[&url, "read", "note://one"]), "noted\n");
        let failed = run("client", &[&url, "call", "fails"]);
        assert!(!failed.success && failed.stderr.contains("it does not work"), "{}", failed.stderr);
        assert_eq!(run("list_resources", &[&url]).stdout, "note://one note\n");
        text(&[&url])
    });
    let listed = listed.await.unwrap();
    assert!(listed.starts_with("shop ") && listed.contains("2026-07-28\ntool echo\n"), "{listed}");
    assert!(listed.contains("resource note://one\n") && listed.ends_with("prompt greet\n"), "{listed}");

    let program = example::binary("state").display().to_string();
    let listed = tokio::task::spawn_blocking(move || run("client", &[&program])).await.unwrap();
    assert!(listed.or_panic("the example").contains("tool visit\n"));
}

#[tokio::test]
async fn the_agent_example_uses_two_servers_and_hides_the_third() {
    let printed = tokio::task::spawn_blocking(|| run("agent", &[])).await.unwrap().or_panic("the example");
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(
        lines[0],
        "tools: shop__search shop__order shop__resources_list shop__resources_read \
         shop__resources_templates_list prices__multiply"
    );
    assert_eq!(lines[1], "unavailable: away");
    assert!(printed.contains("resource_link") && printed.contains("prices__multiply: 13.5\n"), "{printed}");
    assert!(printed.contains("shop__order: not allowed"), "{printed}");
    assert!(printed.contains("\"image/png\": 12000 bytes\n"), "{printed}");
    assert!(printed.contains("calls: 4, failed_calls: 1, denied: 1"), "{printed}");
}
