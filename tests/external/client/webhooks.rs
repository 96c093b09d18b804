//! Webhooks with programs of other people: a client and its receiver, and two verifiers of signatures.

use std::{
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use axum::{body::Bytes, http::HeaderMap};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_external_tests::{Missing, manifest_dir, package, skip};
use mcp_runtime::{Principal, Server, event, prelude::*, testing::TestServer};
use mcp_tests::support::{HttpRequest, HttpServer, serve_router, until, within};
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
const PYPI: &str = "standardwebhooks==1.1.0\n";

/// A note
#[mcp_type]
struct Note {
    text: String,
}

/// A note was added.
#[mcp_event(name = "note.added")]
fn note_added(#[mcp(payload)] _note: &Note) {}

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

#[tokio::test]
async fn the_verifier_of_standard_webhooks_for_python_accepts_every_message() {
    let python = match spawn_blocking(|| package::python(PYPI)).await.expect("it is installed") {
        Ok(python) => python,
        Err(missing) => return skip("webhooks with a verifier for Python", &missing),
    };
    let builder = Server::builder("notes", "1")
        .add(event::of::<note_added>())
        .limits(|limits| limits.events(|events| events.webhooks_on_loopback()))
        .http(|http| http.caller(|_| Some(Principal::new("test", "ada"))));
    let server = builder.build().expect("a server");
    let http = HttpServer::of(&server).await;
    let secrets = [1, 2].map(|byte| format!("whsec_{}", STANDARD.encode([byte; 32])));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let (kept, secret) = (lines.clone(), secrets[0].clone());
    let app = axum::Router::new().fallback(move |headers: HeaderMap, body: Bytes| {
        let text = |value: &axum::http::HeaderValue| value.to_str().expect("text").to_owned();
        let headers: serde_json::Map<String, Value> =
            headers.iter().map(|(name, value)| (name.to_string(), text(value).into())).collect();
        let body = String::from_utf8(body.to_vec()).expect("text");
        let challenge = serde_json::from_str::<Value>(&body).expect("JSON").get("challenge").cloned();
        kept.lock().unwrap().push(json!({ "headers": headers, "body": body, "secret": secret }));
        async move {
            challenge.map_or_else(String::new, |challenge| json!({ "challenge": challenge }).to_string())
        }
    });
    let url = format!("http://{}/hook", serve_router(app).await);
    for secret in &secrets {
        let delivery = json!({ "mode": "webhook", "url": url, "secret": secret });
        let params = json!({ "name": "note.added", "arguments": {}, "delivery": delivery });
        let request = HttpRequest::modern(1, "events/subscribe", params);
        let subscribed = request.send(http.address).await.json();
        assert!(subscribed["result"]["id"].is_string(), "{subscribed}");
        for n in 0..10 {
            let text = format!("{n} — «tea» \u{1F375}");
            server.handle().emit::<note_added>(&Note { text }).await.expect("it is emitted");
        }
    }
    until(|| lines.lock().unwrap().len() == 21).await;
    let mut lines: Vec<Value> = lines.lock().unwrap().clone();
    // signed by both while the first one is replaced
    let last = lines.last().expect("a message").clone();
    assert_eq!(last["headers"]["webhook-signature"].as_str().map(|text| text.split(' ').count()), Some(2));
    lines.push(json!({ "headers": last["headers"], "body": last["body"], "secret": secrets[1] }));
    let file = manifest_dir().join("client/scripts/verify_webhooks.py");
    let mut verifier = Script::start(&python, &file, &[]);
    for line in &lines {
        verifier.commands.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
    }
    drop(verifier.commands);
    let verified = within(verifier.said.next_line()).await.expect("its stdout");
    assert_eq!(verified.as_deref(), Some("22"));
}
