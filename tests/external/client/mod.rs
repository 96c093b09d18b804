//! The client with servers, authorization servers and receivers of other people.

mod oidc_provider;
mod servers;
mod webhooks;

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use mcp_runtime::client::{Client, FileTokens, OAuth};
use mcp_tests::support::soon;
use serde_json::json;

/// Asks until it holds.
async fn until(holds: impl FnMut() -> bool) {
    assert!(soon(holds).await, "it took too long");
}

/// This test binary again, as a program whose client uses the tokens of a file that others use.
fn program() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command
        .args(["--exact", "client::calls_with_the_tokens_of_a_file_succeed", "--ignored", "--nocapture"])
        .stdin(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a program that other tests start"]
async fn calls_with_the_tokens_of_a_file_succeed() {
    let Ok(url) = std::env::var("MCP_TESTS_URL") else { return };
    let tokens = FileTokens::new(std::env::var("MCP_TESTS_TOKENS").expect("a file"));
    let oauth = OAuth::headless("http://localhost:1/callback").store(tokens);
    let client = Client::builder().oauth(oauth).connect(url).await.unwrap();
    for _ in 0..8 {
        let calls: Vec<_> =
            (0..50).map(|_| tokio::spawn(client.call("t", json!({})).into_future())).collect();
        for call in calls {
            call.await.unwrap().unwrap();
        }
        // so that tokens come to their end
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    eprintln!("all calls succeeded.");
}
