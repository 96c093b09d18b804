//! Opens the page of the `app` example in a browser, inside a host page, and checks the messages between them.
//!
//! Host, sandbox and MCP server each have their own origin, as in production. A script clicks instead of a user.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use axum::{
    Router,
    response::Html,
    routing::{get, post},
};
use mcp_external_tests::{browser, skip};
use mcp_tests::{
    programs::child::Guard,
    support::{PATIENCE, TestFolder, serve_router},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/app/main.rs"]
mod example;

/// The CSP that hosts apply to pages that declare no origins.
const POLICY: &str = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; media-src 'self' data:; object-src 'none'; connect-src 'none'";

/// A browser with a fresh profile, killed when it is dropped.
struct Browser {
    process: Guard,
    profile: TestFolder,
}

impl Browser {
    fn open(mut command: Command, url: &str) -> Self {
        let profile = TestFolder::default();
        let log = fs::File::create(Self::log(&profile)).expect("a log");
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            // no other host is ever contacted
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ]);
        command.arg(format!("--user-data-dir={}", profile.display())).arg(url);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let process = process.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        Self { process: Guard(process), profile }
    }

    fn log(profile: &Path) -> PathBuf {
        profile.join("stderr.txt")
    }

    /// Terminates the browser and waits until its child processes have exited too.
    async fn close(&mut self) {
        let asked = Command::new("kill").arg(self.process.0.id().to_string()).status();
        for _ in 0..500 {
            if asked.is_err() || self.process.0.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The report that the host page posts at the end.
async fn shown(chromium: Command) -> Value {
    let mcp = serve_router(example::server().into_router().expect("a router")).await;
    let proxy = get(|| async { ([("content-security-policy", POLICY)], Html(include_str!("proxy.html"))) });
    let sandbox = serve_router(Router::new().route("/", proxy)).await;
    let (reported, mut reports) = mpsc::channel(1);
    let host = Router::new().route("/", get(|| async { Html(include_str!("host.html")) })).route(
        "/report",
        post(move |report: String| async move {
            let _only_the_first_counts = reported.try_send(report);
        }),
    );
    let host = serve_router(host).await;
    let mut browser =
        Browser::open(chromium, &format!("http://{host}/?mcp=http://{mcp}/mcp&sandbox=http://{sandbox}/"));
    let report = timeout(PATIENCE, reports.recv()).await;
    browser.close().await;
    let log = || fs::read_to_string(Browser::log(&browser.profile)).unwrap_or_default();
    let Ok(Some(report)) = report else { panic!("the host page reports nothing\n{}", log()) };
    serde_json::from_str(&report).expect("a report in JSON")
}

#[tokio::test]
async fn a_page_exchanges_messages_with_its_host_in_a_browser() {
    let installed = tokio::task::spawn_blocking(browser::chromium).await.expect("no panic");
    let chromium = match installed {
        Ok(chromium) => chromium,
        Err(missing) => return skip("a page in a browser", &missing),
    };
    let report = shown(chromium).await;
    assert_eq!(report.get("failed"), None, "{report:#}");
    assert_eq!(
        report["page"],
        json!({
            "uri": "ui://poll/page.html", "mimeType": "text/html;profile=mcp-app", "ui": { "prefersBorder": true }
        })
    );
    assert_eq!(report["app"]["protocolVersion"], "2026-01-26");
    assert_eq!(report["app"]["appInfo"]["name"], "poll");
    let passing = ["ui/notifications/size-changed", "notifications/message"];
    let messages: Vec<_> = report["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| (message[0].as_str().unwrap_or_default(), message[1].as_str().unwrap_or_default()))
        .filter(|(_, method)| !passing.contains(method))
        .collect();
    assert_eq!(
        messages,
        [
            ("page", "ui/notifications/sandbox-proxy-ready"),
            ("host", "ui/notifications/sandbox-resource-ready"),
            ("page", "ui/initialize"),
            ("host", "result"),
            ("page", "ui/notifications/initialized"),
            ("host", "ui/notifications/tool-input"),
            ("host", "ui/notifications/tool-result"),
            ("page", "tools/call"),
            ("host", "result"),
            ("host", "ui/resource-teardown"),
            ("page", "result"),
        ],
        "{report:#}"
    );
    // the text before and after the click
    assert_eq!(
        report["seen"],
        json!(["tea: 0, coffee: 0, water: 0", "tea: 1, coffee: 0, water: 0"]),
        "{report:#}"
    );
    assert_eq!(report["after"], json!({ "tea": 1, "coffee": 0, "water": 0 }), "the vote was counted");
}
