//! The metrics, as Prometheus reads them.

use std::{net::SocketAddr, process::Stdio};

use mcp_external_tests::{Missing, skip};
use mcp_runtime::{ServerBuilder, prelude::*};
use mcp_tests::support::{HttpRequest, HttpResponse, HttpServer, within};
use serde_json::json;

/// A long job
#[mcp_tool(task)]
async fn job() -> &'static str {
    "done"
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<job>()
}

async fn get(address: SocketAddr, path: &str) -> HttpResponse {
    HttpRequest::new("GET").path(path).send(address).await
}

/// What `promtool check metrics` says of a text.
async fn check_metrics(text: &str) -> Result<std::process::Output, Missing> {
    use tokio::io::AsyncWriteExt as _;
    let promtool = tokio::process::Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let Ok(mut promtool) = promtool else {
        return Err(Missing("`promtool` is not installed: the Debian package `prometheus` has it".into()));
    };
    promtool.stdin.take().expect("stdin").write_all(text.as_bytes()).await.unwrap();
    Ok(within(promtool.wait_with_output()).await.unwrap())
}

#[tokio::test]
async fn promtool_finds_nothing_wrong_with_the_metrics() {
    let server = builder().telemetry(|telemetry| telemetry.metrics_path("/metrics")).build().unwrap();
    let http = HttpServer::of(&server).await;
    HttpRequest::modern(1, "tools/list", json!({})).send(http.address).await;
    HttpRequest::modern(1, "tools/list", json!({})).with("host", "evil.example").send(http.address).await;
    let session = HttpRequest::initialize("2025-11-25").send(http.address).await.session();
    HttpRequest::new("DELETE").session(&session).send(http.address).await;
    let text = get(http.address, "/metrics").await.text().to_owned();
    match check_metrics(&text).await {
        Ok(checked) => assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}"),
        Err(missing) => skip("promtool_finds_nothing_wrong_with_the_metrics", &missing),
    }
}
