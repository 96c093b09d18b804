//! Plays a session that bytes describe: requests of both eras, answers, cancellations, garbage and pauses, in any order.
//! Whatever is played, each request gets one response at most, and one at least unless it was cancelled; what is written
//! is JSON-RPC; after the end nothing is; and no permit is lost.
//!
//! `cargo fuzz` plays random bytes, a test plays what was found.

use std::{collections::BTreeMap, time::Duration};

use mcp_runtime::{
    Server,
    tool::{ToolCall, ToolDef},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, duplex, split},
    runtime::Builder,
    time::timeout,
};

/// Far longer than any session lasts, in paused time.
const PATIENCE: Duration = Duration::from_secs(600);

fn server() -> Server {
    let schema = json!({ "type": "object", "properties": { "ms": { "type": "integer", "maximum": 99 } } });
    let echo = ToolDef::builder("echo")
        .input_schema(json!({ "type": "object", "properties": { "text": { "type": "string" } } }))
        .handler(|call: ToolCall| async move {
            call.arg::<Option<String>>("text").map(Option::unwrap_or_default)
        });
    let one = ToolDef::builder("one").input_schema(schema).max_concurrency(1).handler(
        |call: ToolCall| async move {
            let pause = call.arg::<Option<u64>>("ms")?.unwrap_or(5);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok::<_, mcp_runtime::ToolError>("slept")
        },
    );
    let ask = ToolDef::builder("ask").handler(|call: ToolCall| async move {
        call.context.elicit::<bool>("sure", "Sure?").await.map(|sure| sure.to_string())
    });
    let panics = ToolDef::builder("panics").handler(|call: ToolCall| async move {
        assert!(call.arg::<Option<bool>>("not")?.unwrap_or(false), "as it should");
        Ok::<_, mcp_runtime::ToolError>("did not panic")
    });
    let builder = Server::builder("played", "1.0.0").add(echo).add(one).add(ask).add(panics);
    builder.limits(|limits| limits.max_in_flight(8)).build().expect("a server")
}

/// The bytes that are left.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

/// What was sent.
struct Sent {
    era: u8,
    /// Of each request: how many responses are allowed and needed.
    requests: BTreeMap<u64, Expected>,
    next_id: u64,
    /// Ids of requests of the server, as the lines are read.
    asked: u64,
}

#[derive(Debug, Clone, Copy)]
struct Expected {
    is_needed: bool,
}

impl Sent {
    fn request(&mut self, method: &str, mut params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.requests.insert(id, Expected { is_needed: true });
        if self.era == 0 {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
            });
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// One step, as a line without its end; `None` to pause.
    fn line(&mut self, script: &mut Script<'_>, step: u8) -> Option<Vec<u8>> {
        let value = match step % 16 {
            0 => self.request("ping", json!({})),
            1 => {
                let text = String::from_utf8_lossy(&script.bytes(8)).into_owned();
                self.call("echo", &json!({ "text": text }))
            }
            2 => {
                let pause = script.byte();
                self.call("one", &json!({ "ms": pause }))
            }
            3 => self.call("ask", &json!({})),
            4 => {
                let id = u64::from(script.byte()) % self.next_id.max(1);
                // the id of the handshake cannot be cancelled
                if let Some(request) =
                    self.requests.get_mut(&id).filter(|_| id != 0 || self.era.is_multiple_of(3))
                {
                    request.is_needed = false;
                }
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
            }
            5 => json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            6 => self.request("tools/list", json!({})),
            7 => self.request("no/such", json!({})),
            8 => {
                let mut line = script.bytes(12);
                line.retain(|byte| *byte != b'\n');
                return Some(line);
            }
            9 => {
                let id = format!("{}", u64::from(script.byte()) % (self.asked + 3));
                let id = if script.byte().is_multiple_of(2) { json!(id) } else { json!(self.asked) };
                match script.byte() % 4 {
                    0 => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no" } }),
                    1 => json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } }),
                    2 => json!({ "jsonrpc": "2.0", "id": id, "result": [] }),
                    _ => {
                        json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept", "content": { "sure": true } } })
                    }
                }
            }
            10 => return None,
            11 => {
                let form = script.byte();
                if form == 0 {
                    return Some(b"[]".to_vec());
                }
                let (ping, list) = (self.request("ping", json!({})), self.request("tools/list", json!({})));
                // only one revision has batches; elsewhere neither request was made
                if self.era != 2 {
                    for id in [self.next_id - 1, self.next_id - 2] {
                        self.requests.remove(&id);
                    }
                }
                if form == 1 { json!([ping, list, 1]) } else { json!([ping, list]) }
            }
            12 => self.call("panics", &json!({})),
            13 => {
                let request = self.request(
                    "subscriptions/listen",
                    json!({ "notifications": { "toolsListChanged": true } }),
                );
                if let Some(sent) = self.requests.get_mut(&(self.next_id - 1)) {
                    // it is answered at its end, or not at all
                    sent.is_needed = false;
                }
                request
            }
            14 => self.call("one", &json!({ "ms": "many", "other": 1 })),
            _ => self.request("logging/setLevel", json!({ "level": "debug" })),
        };
        Some(serde_json::to_vec(&value).expect("JSON"))
    }
}

/// Plays the session of these bytes.
///
/// # Panics
/// The server breaks a promise.
pub(crate) fn play(data: &[u8]) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let server = server();
        timeout(PATIENCE, session(&server, data)).await.expect("the session ends");
        timeout(PATIENCE, permits_are_back(&server)).await.expect("the permit is back");
    });
}

async fn session(server: &Server, data: &[u8]) {
    let mut script = Script(data);
    let (ours, theirs) = duplex(1 << 16);
    let (reader, writer) = split(theirs);
    let served = tokio::spawn({
        let server = server.clone();
        async move { server.serve(reader, writer).await }
    });
    let (output, mut input) = split(ours);
    let reading = tokio::spawn(async move {
        let mut lines = BufReader::new(output).lines();
        let mut read = Vec::new();
        while let Some(line) = lines.next_line().await.expect("UTF-8") {
            read.push(line);
        }
        read
    });
    let era = script.byte() % 4;
    let mut sent = Sent { era, requests: BTreeMap::new(), next_id: 0, asked: 0 };
    if let 1 | 2 = era {
        let version = if era == 1 { "2025-11-25" } else { "2025-03-26" };
        let client = json!({ "name": "player", "version": "1" });
        let capabilities = json!({ "elicitation": {} });
        let params =
            json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": client });
        let line = sent.request("initialize", params);
        input.write_all(format!("{line}\n").as_bytes()).await.expect("the server reads");
    }
    while let Some(step) = script.next() {
        sent.asked += u64::from(step % 16 == 3);
        let pause = Duration::from_millis(u64::from(step / 16));
        match sent.line(&mut script, step) {
            Some(mut line) => {
                line.push(b'\n');
                // the server may have ended the connection
                if input.write_all(&line).await.is_err() {
                    break;
                }
            }
            None => tokio::time::sleep(pause).await,
        }
    }
    // what clients are asked and do not answer is waited for only as long as the connection lasts
    input.shutdown().await.expect("the end of the input");
    drop(input);
    served.await.expect("no panic").expect("the end of the input is not an error");
    let lines = reading.await.expect("no panic");
    check(&sent, &lines);
}

/// All messages of a line.
fn messages(line: &str) -> Vec<Value> {
    match serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")) {
        Value::Array(batch) => batch,
        message => vec![message],
    }
}

fn check(sent: &Sent, lines: &[String]) {
    let mut responses = BTreeMap::<u64, usize>::new();
    for message in lines.iter().flat_map(|line| messages(line)) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message.get("method").is_some() {
            continue;
        }
        assert!(message.get("result").is_some() != message.get("error").is_some(), "{message}");
        match message.get("id") {
            Some(Value::Number(id)) => {
                *responses.entry(id.as_u64().expect("an id that was sent")).or_default() += 1;
            }
            // what cannot be read has no id
            id => assert!(message.get("error").is_some(), "{id:?}: {message}"),
        }
    }
    for (id, count) in &responses {
        // garbage may happen to be a request of its own
        if sent.requests.contains_key(id) {
            assert_eq!(*count, 1, "the request {id} has {count} responses: {lines:#?}");
        }
    }
    for (id, request) in &sent.requests {
        let is_answered = responses.contains_key(id);
        assert!(is_answered || !request.is_needed, "the request {id} has no response: {lines:#?}");
    }
}

/// The tool that runs once at a time runs again.
async fn permits_are_back(server: &Server) {
    let (ours, theirs) = duplex(1 << 16);
    let (reader, writer) = split(theirs);
    let (mut output, mut input) = split(ours);
    let mut sent = Sent { era: 0, requests: BTreeMap::new(), next_id: 0, asked: 0 };
    let call = format!("{}\n", sent.call("one", &json!({})));
    input.write_all(call.as_bytes()).await.expect("the server reads");
    input.shutdown().await.expect("the end of the input");
    drop(input);
    let (served, text) = tokio::join!(server.serve(reader, writer), async {
        let mut text = String::new();
        output.read_to_string(&mut text).await.expect("UTF-8");
        text
    });
    served.expect("the end of the input is not an error");
    assert!(text.contains("slept"), "{text}");
}
