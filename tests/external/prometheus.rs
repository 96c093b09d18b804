//! The metrics, as Prometheus reads them.

use std::{net::SocketAddr, process::Stdio};

use mcp_external_tests::{Missing, skip};
use mcp_runtime::{ServerBuilder, prelude::*};
use mcp_tests::support::{HttpRequest, HttpResponse, HttpServer, within};
use serde_json::{Value, json};

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

#[tokio::test]
#[ignore = "needs Prometheus: the Debian package `prometheus`"]
async fn prometheus_scrapes_the_metrics() {
    let server = builder().telemetry(|telemetry| telemetry.metrics_path("/metrics")).build().unwrap();
    let http = HttpServer::of(&server).await;
    HttpRequest::modern(1, "tools/list", json!({})).send(http.address).await;
    let folder = std::env::temp_dir().join(format!("mcp-prometheus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = folder.join("prometheus.yml");
    let target = http.address;
    std::fs::write(
        &config,
        format!("scrape_configs:\n- job_name: mcp\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['{target}']\n"),
    )
    .unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap();
    drop(free);
    let prometheus = tokio::process::Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address={listen}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("prometheus");
    let query = "/api/v1/query?query=mcp_server_operation_duration_seconds_count";
    let mut found = Value::Null;
    for _ in 0..60 {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        if std::net::TcpStream::connect(listen).is_err() {
            continue;
        }
        found = get(listen, query).await.json()["data"]["result"].take();
        if found.as_array().is_some_and(|found| !found.is_empty()) {
            break;
        }
    }
    drop(prometheus);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found[0]["metric"]["mcp_method_name"], "tools/list", "{found}");
    drop(http);
}
