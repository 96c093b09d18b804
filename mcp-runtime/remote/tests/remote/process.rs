//! Processes: this test binary, in which one test serves when it is told to.

use mcp_runtime::prelude::*;
use mcp_runtime_remote::Remote;
use serde_json::json;

use crate::support::{names, test_server, until};

const TOLD: &str = "MCP_RUNTIME_REMOTE_TEST_SERVES";

/// Says which process this is, and what it was told.
#[mcp_tool]
fn who() -> String {
    format!("{} {}", std::process::id(), std::env::var(TOLD).unwrap_or_default())
}

/// Ends the process.
#[mcp_tool]
fn crash() -> String {
    std::process::exit(3)
}

#[tokio::test]
#[ignore = "serves, where another test starts it"]
async fn serves_as_a_process() {
    if std::env::var_os(TOLD).is_some() {
        let server = mcp_runtime::server!().tool::<who>().tool::<crash>().build().expect("a server");
        server.serve(tokio::io::stdin(), tokio::io::stdout()).await.expect("served");
    }
}

fn command() -> String {
    let program = std::env::current_exe().expect("this program");
    format!("'{}' process::serves_as_a_process --exact --ignored --nocapture", program.display())
}

#[cfg(target_os = "linux")]
fn is_running(id: &str) -> bool {
    std::path::Path::new("/proc").join(id).exists()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_process_ends_and_a_call_starts_another() {
    let remote = Remote::new("self", command()).env(TOLD, |secret: &String| secret.clone());
    let remote = remote.idle(std::time::Duration::from_millis(1));
    let server = test_server(mcp_runtime::server!().state("tea".to_owned()).add(remote));
    let who = || async {
        let text = server.call("self_who", json!({})).await.text();
        text.split_once(' ').expect("two words").0.to_owned()
    };
    let first = who().await;
    until(|| async { !is_running(&first) }).await;
    assert_eq!(names(&server.list_tools().await), ["self_who", "self_crash"]);
    let second = who().await;
    assert_ne!(first, second);
    until(|| async { !is_running(&second) }).await;
}

#[tokio::test]
async fn a_process_gets_its_credentials_restarts_after_a_crash_and_ends_with_the_server() {
    let remote = Remote::new("self", command()).env(TOLD, |secret: &String| secret.clone());
    let server = test_server(mcp_runtime::server!().state("tea".to_owned()).add(remote));
    assert_eq!(names(&server.list_tools().await), ["self_who", "self_crash"]);
    let who = server.call("self_who", json!({})).await.text();
    let (first, told) = who.split_once(' ').expect("two words");
    assert_eq!(told, "tea");
    server.call("self_crash", json!({})).await.expect_failure("`self` cannot be reached");
    until(|| async { !server.call("self_who", json!({})).await.is_error() }).await;
    let who = server.call("self_who", json!({})).await.text();
    let (second, _) = who.split_once(' ').expect("two words");
    assert_ne!(first, second);
    #[cfg(target_os = "linux")]
    {
        assert!(is_running(second));
        let second = second.to_owned();
        drop(server);
        until(|| async { !is_running(&second) }).await;
    }
}
