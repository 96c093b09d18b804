//! Webhooks with programs of other people: a client, and its receiver, which verifies signatures by another implementation.

use std::{path::Path, process::Stdio};

use mcp_external_tests::{Missing, manifest_dir, package, skip};
use mcp_runtime::testing::TestServer;
use mcp_tests::support::{HttpServer, within};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::spawn_blocking,
};

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/events.rs"]
mod example;

const NPM: &str = r#"{
  "private": true,
  "type": "module",
  "dependencies": {
    "@ai-sdk/mcp": "2.0.99",
    "standardwebhooks": "1.1.1",
    "zod": "4.1.13"
  }
}
"#;

/// A script that is told what to do, and says what has happened.
struct Script {
    _process: Child,
    commands: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Script {
    fn start(program: &Path, script: &Path, arguments: &[String]) -> Self {
        let mut command = Command::new(program);
        command.arg(script).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("it starts");
        let commands = process.stdin.take().expect("its stdin");
        let said = BufReader::new(process.stdout.take().expect("its stdout")).lines();
        Self { _process: process, commands, said }
    }

    async fn says(&mut self, key: &str) -> Value {
        let line = within(self.said.next_line()).await.expect("its stdout").expect("it goes on");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        message.get(key).cloned().unwrap_or_else(|| panic!("`{key}` is not in {message}"))
    }

    async fn ask(&mut self, command: &str, key: &str) -> Value {
        self.commands.write_all(format!("{command}\n").as_bytes()).await.expect("it reads");
        self.says(key).await
    }
}

#[tokio::test]
async fn the_client_of_the_ai_sdk_subscribes_and_its_webhook_takes_a_hundred_events() {
    let install = || -> Result<_, Missing> {
        let node = package::node(22)?;
        let packages = package::npm(NPM)?;
        // modules are looked for beside the script
        let file = packages.join("webhooks.mjs");
        std::fs::copy(manifest_dir().join("client/scripts/webhooks.mjs"), &file).expect("a copy");
        Ok((node, file))
    };
    let (node, file) = match spawn_blocking(install).await.expect("it is installed") {
        Ok(installed) => installed,
        Err(missing) => return skip("webhooks with the AI SDK", &missing),
    };
    let key = "a-key-of-the-client";
    let example = example::server(Some(key.to_owned()));
    let example = example.limits(|limits| limits.events(|events| events.webhooks_on_loopback()));
    let server = example.build().expect("a server");
    let (http, host) = (HttpServer::of(&server).await, TestServer::of(&server));
    let mut sdk = Script::start(&node, &file, &[format!("http://{}/mcp", http.address), key.to_owned()]);
    let mut listed: Vec<String> = serde_json::from_value(sdk.says("listed").await).expect("names");
    listed.sort();
    assert_eq!(listed, ["incident.opened"]);
    let id = sdk.says("subscribed").await;
    for n in 0..100 {
        host.call("open", json!({ "title": n.to_string(), "severity": 1 })).await.expect_ok();
        host.call("open", json!({ "title": "not severe", "severity": 3 })).await.expect_ok();
    }
    let mut report = Value::Null;
    within(async {
        while report["texts"].as_array().map(Vec::len) < Some(100) {
            sdk.commands.write_all(b"report\n").await.expect("it reads");
            let line = sdk.said.next_line().await.expect("its stdout").expect("it goes on");
            report = serde_json::from_str(&line).expect("JSON");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let mut numbers: Vec<usize> = report["texts"]
        .as_array()
        .expect("texts")
        .iter()
        .map(|text| text.as_str().expect("text").parse().expect("a number"))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>(), "each once");
    // the challenge is one more message
    assert_eq!(
        (&report["verified"], &report["failures"], &report["gaps"]),
        (&json!(101), &json!(0), &json!(0))
    );
    assert_eq!(sdk.ask("refresh", "refreshed").await, id);
    assert_eq!(sdk.ask("refused", "refused").await, json!(-32602));
    // one that was refused stays with the SDK
    assert_eq!(sdk.ask("unsubscribe", "left").await, json!(1));
    host.call("open", json!({ "title": "late", "severity": 1 })).await.expect_ok();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    sdk.commands.write_all(b"report\n").await.expect("it reads");
    assert_eq!(sdk.says("texts").await.as_array().map(Vec::len), Some(100));
}
