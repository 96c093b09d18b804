//! Webhooks with programs of other people: a client and its receiver, two verifiers of signatures, and a server.

use std::{
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use axum::{body::Bytes, http::HeaderMap};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_external_tests::{Missing, manifest_dir, package, skip};
use mcp_runtime::{
    Principal, Server,
    client::{Client, WebhookReceiver},
    event,
    prelude::*,
    testing::TestServer,
};
use mcp_tests::support::{HttpRequest, HttpServer, serve_router, within};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::spawn_blocking,
};

use super::until;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/events.rs"]
mod example;

/// A note
#[mcp_type]
#[derive(Debug)]
struct Note {
    text: String,
}

/// A note was added.
#[mcp_event(name = "note.added")]
fn note_added(#[mcp(payload)] _note: &Note, #[mcp(default = "")] by: String) {
    let _anyone = by;
}

/// A server of notes, whose callers say who they are.
fn notes_server() -> Server {
    let builder = Server::builder("notes", "1")
        .add(event::of::<note_added>())
        .limits(|limits| limits.events(|events| events.webhooks_on_loopback()))
        .http(|http| {
            http.caller(|parts| {
                let user = parts.headers.get("x-user")?.to_str().ok()?;
                Some(Principal::new("test", user))
            })
        });
    builder.build().expect("a server")
}

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
const PYPI: &str = "\
    annotated-types==0.8.0\nanyio==4.16.0\nattrs==26.1.0\ncffi==2.1.1\nclick==8.5.1\ncryptography==50.0.2\n\
    h11==0.16.0\nhttpcore2==2.16.2\nhttpx2==2.16.2\nidna==3.20\njsonschema==4.26.0\n\
    jsonschema-specifications==2025.9.1\nmcp==2.3.0\nmcp-types==2.3.0\nmcp-webhook-events==0.2.0\n\
    opentelemetry-api==1.45.2\npycparser==3.12\npydantic==2.14.3\npydantic_core==2.50.4\nPyJWT==2.15.1\n\
    python-multipart==0.0.34\nreferencing==0.37.0\nrpds-py==2026.9.1\nsse-starlette==3.7.0\n\
    standardwebhooks==1.1.0\nstarlette==1.10.0\ntruststore==0.10.5\ntyping-inspection==0.4.5\n\
    typing_extensions==4.16.0\nuvicorn==0.54.0\n";

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
    let server = notes_server();
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
        let request = HttpRequest::modern(1, "events/subscribe", params).header("x-user", "ada");
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

#[tokio::test]
async fn a_server_of_other_people_delivers_to_a_receiver() {
    let python = match spawn_blocking(|| package::python(PYPI)).await.expect("it is installed") {
        Ok(python) => python,
        Err(missing) => return skip("webhooks of a Python server", &missing),
    };
    let file = manifest_dir().join("client/scripts/webhook_events.py");
    let line = format!("'{}' '{}'", python.display(), file.display());
    let client = within(Client::connect(line)).await.expect("a client");
    let listed = within(client.events().into_future()).await.expect("a list");
    assert_eq!(listed.iter().map(|event| event.name()).collect::<Vec<_>>(), ["note.added"]);

    let (listener, texts) =
        (std::net::TcpListener::bind("127.0.0.1:0").expect("a port"), Arc::new(Mutex::new(Vec::new())));
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let receiver = WebhookReceiver::new(&format!("http://{address}/hook")).expect("a receiver");
    let app = axum::Router::new().route_service("/hook", receiver.clone());
    let listener = tokio::net::TcpListener::bind(address).await.expect("the same port");
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let taken = texts.clone();
    let pending = client.subscribe_webhook(&receiver, "note.added", json!({}), move |event| {
        let note = event.payload::<Note>().map(|note| taken.lock().unwrap().push(note.text));
        async move { note }
    });
    let subscription = within(pending.into_future()).await.expect("a subscription");
    assert_eq!(subscription.cursor(), None, "this server cannot send events again");
    let publish = async |first: usize, count: usize| {
        let called = client.call("publish", json!({ "first": first, "count": count }));
        within(called.into_future()).await.expect("a result").ok().expect("a success").text()
    };
    assert_eq!(publish(0, 20).await, "20 20");
    within(subscription.rotate_secret()).await.expect("it is rotated");
    // of which five are the same again
    assert_eq!(publish(15, 10).await, "10 5");
    let mut numbers: Vec<usize> =
        texts.lock().unwrap().iter().map(|text: &String| text.parse().expect("a number")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..25).collect::<Vec<_>>());
    drop(subscription);
    within(async {
        loop {
            let called = client.call("subscriptions", json!({})).into_future().await.expect("a result");
            if called.ok().expect("a success").text() == "0" {
                return;
            }
        }
    })
    .await;
    within(client.close()).await;
    serving.abort();
}
