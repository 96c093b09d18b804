//! What a client sends, as bytes describe it, and which responses it may expect.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{heard::Heard, server::BOARD};

/// The revisions that a handshake settles.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision whose requests say it themselves.
const MODERN: &str = "2026-07-28";
/// The only one with batches.
const WITH_BATCHES: &str = "2025-03-26";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const LEVELS: [&str; 4] = ["debug", "info", "error", "loud"];

/// The bytes that are left.
pub(super) struct Script<'a>(pub(super) &'a [u8]);

impl Script<'_> {
    pub(super) fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }

    /// One of these.
    fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(usize::from(self.byte()) % of.len().max(1))
    }
}

/// The responses to the requests of one id.
#[derive(Debug, Clone, Default)]
pub(super) struct Expected {
    /// How many requests there were, of which each has one response.
    pub(super) requests: usize,
    /// None are needed: one of them was cancelled.
    pub(super) may_be_silent: bool,
    /// It cannot be cancelled.
    is_handshake: bool,
    /// It is answered at the end of the connection.
    pub(super) is_stream: bool,
}

/// What is done next.
pub(super) enum Step {
    Line(Vec<u8>),
    Pause(Duration),
}

/// What was sent.
#[derive(Default)]
pub(super) struct Sent {
    /// That the last handshake has settled.
    pub(super) handshake: Option<&'static str>,
    /// Requests say their revision.
    pub(super) is_modern: bool,
    /// By their ids as JSON.
    pub(super) requests: BTreeMap<String, Expected>,
    /// Ids of requests that end, and begin, the subscription to the resource.
    pub(super) unsubscribed: Vec<u64>,
    pub(super) subscribed: u64,
    pub(super) next_id: u64,
}

impl Sent {
    /// What the first byte says of the connection, and the lines that open it.
    pub(super) fn open(era: u8) -> (Self, Vec<Value>) {
        let mut sent = Self { is_modern: era % 8 < 3, ..Self::default() };
        let version = match era % 8 {
            3 => LEGACY[0],
            4 => LEGACY[1],
            5 => LEGACY[2],
            6 => LEGACY[3],
            // neither
            _ => return (sent, Vec::new()),
        };
        let initialize = sent.initialize(version);
        (sent, vec![initialize, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })])
    }

    fn expect(&mut self, id: &Value) -> &mut Expected {
        let expected = self.requests.entry(id.to_string()).or_default();
        expected.requests += 1;
        expected
    }

    pub(super) fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn initialize(&mut self, version: &str) -> Value {
        let id = self.id();
        self.expect(&json!(id)).is_handshake = true;
        // an unknown one is answered with the newest that has a handshake
        let known = LEGACY.into_iter().find(|known| *known == version);
        self.handshake = Some(known.unwrap_or(LEGACY[3]));
        let client = json!({ "name": "player", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": { "elicitation": {} }, "clientInfo": client });
        json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
    }

    fn with_id(&mut self, id: &Value, method: &str, mut params: Value, extensions: &Value) -> Value {
        self.expect(id);
        if self.is_modern {
            let mut meta = params["_meta"].take();
            if meta.is_null() {
                meta = json!({});
            }
            meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            meta["io.modelcontextprotocol/clientCapabilities"] =
                json!({ "elicitation": { "form": {} }, "extensions": extensions });
            params["_meta"] = meta;
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = json!(self.id());
        self.with_id(&id, method, params, &json!({}))
    }

    pub(super) fn of_tasks(&mut self, method: &str, params: Value) -> Value {
        let id = json!(self.id());
        self.with_id(&id, method, params, &json!({ TASKS: {} }))
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Whether requests are served as those of a revision.
    pub(super) fn is_served(&self) -> bool {
        self.is_modern || self.handshake.is_some()
    }

    pub(super) fn listen(&mut self, notifications: &Value) -> Value {
        let request = self.of_tasks("subscriptions/listen", json!({ "notifications": notifications }));
        if let Some(expected) = self.requests.get_mut(&request["id"].to_string()) {
            expected.is_stream = true;
        }
        request
    }

    fn chatty(&mut self, script: &mut Script<'_>) -> Value {
        let id = json!(self.id());
        let mut meta = json!({ "progressToken": id });
        if self.is_modern
            && let Some(level) = script.pick(&LEVELS)
        {
            meta["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        let arguments = json!({ "ms": script.byte() % 16, "id": id });
        let params = json!({ "name": "chatty", "arguments": arguments, "_meta": meta });
        self.with_id(&id, "tools/call", params, &json!({}))
    }

    fn cancel(&mut self, script: &mut Script<'_>) -> Value {
        let id = json!(u64::from(script.byte()) % self.next_id.max(1));
        let expected = self.requests.entry(id.to_string()).or_default();
        // of an id without a request too: a batch waits for its turn, and a request may have that id by then
        if !expected.is_handshake || expected.requests > 1 {
            expected.may_be_silent = true;
        }
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
    }

    fn batch(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let form = script.byte();
        let before = self.requests.clone();
        let mut members = vec![self.request("ping", json!({})), self.request("tools/list", json!({}))];
        match form % 8 {
            0 => members.clear(),
            1 => members.push(json!(1)),
            2 => members.push(self.call("one", &json!({ "ms": 3 }))),
            3 => members.push(self.chatty(script)),
            4 => members.push(self.cancel(script)),
            5 => members.push(self.call("ask", &json!({}))),
            6 => members = vec![json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })],
            _ => {}
        }
        // elsewhere nothing of it is read; without members no request was made
        if self.handshake != Some(WITH_BATCHES) || matches!(form % 8, 0 | 6) {
            self.requests = before;
        }
        serde_json::to_vec(&members).expect("JSON")
    }

    /// An answer to what a client was asked, or to nothing.
    fn answer(script: &mut Script<'_>, heard: &Heard) -> Value {
        let asked = heard.requests();
        let id = script.pick(&asked).cloned().unwrap_or_else(|| json!(0));
        match script.byte() % 5 {
            0 => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no" } }),
            1 => json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } }),
            2 => json!({ "jsonrpc": "2.0", "id": id, "result": [] }),
            3 => json!({ "jsonrpc": "2.0", "id": "unknown", "result": {} }),
            _ => json!({ "jsonrpc": "2.0", "id": id, "result": accepted() }),
        }
    }

    /// A call again, with answers to what its result requests.
    fn retry(&mut self, script: &mut Script<'_>, heard: &Heard) -> Value {
        let unfinished = heard.unfinished();
        let Some(result) = script.pick(&unfinished) else { return self.call("ask", &json!({})) };
        let mut state = result["requestState"].clone();
        let form = script.byte() % 4;
        if form == 0 {
            state = json!("forged");
        }
        let answer = if form == 1 { json!({ "action": "cancel" }) } else { accepted() };
        let params = json!({
            "name": if form == 2 { "echo" } else { "ask" },
            "arguments": {},
            "requestState": state,
            "inputResponses": { "sure": answer },
        });
        self.request("tools/call", params)
    }

    fn task(&mut self, script: &mut Script<'_>, heard: &Heard, method: &str) -> Value {
        let tasks = heard.tasks();
        let id = script.pick(&tasks).cloned().unwrap_or_else(|| "unknown".to_owned());
        let mut params = json!({ "taskId": id });
        if method == "tasks/update" {
            params["inputResponses"] = json!({ "sign": accepted() });
        }
        self.of_tasks(method, params)
    }

    fn complete(&mut self, variant: u8) -> Value {
        let (of, name) = match variant % 3 {
            0 => (json!({ "type": "ref/prompt", "name": "review" }), "tone"),
            1 => (json!({ "type": "ref/resource", "uri": "board://notes/{id}" }), "id"),
            _ => (json!({ "type": "ref/prompt", "name": "unknown" }), "x"),
        };
        let value = if variant < 4 { "" } else { "7" };
        self.request(
            "completion/complete",
            json!({ "ref": of, "argument": { "name": name, "value": value } }),
        )
    }

    /// One step.
    pub(super) fn step(&mut self, script: &mut Script<'_>, step: u8, heard: &Heard) -> Step {
        let variant = step / 32;
        let value = match step % 32 {
            0 => self.request("ping", json!({})),
            1 => {
                let text = String::from_utf8_lossy(&script.bytes(8)).into_owned();
                self.call("echo", &json!({ "text": text }))
            }
            2 => self.call("one", &json!({ "ms": script.byte() })),
            3 => self.call("ask", &json!({})),
            4 => self.cancel(script),
            5 => json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            6 => {
                let lists = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
                let params = if variant < 4 { json!({}) } else { json!({ "cursor": "forged" }) };
                self.request(lists[usize::from(variant % 4)], params)
            }
            7 => self.request(if variant == 0 { "server/discover" } else { "no/such" }, json!({})),
            8 => {
                let mut line = script.bytes(12);
                line.retain(|byte| *byte != b'\n');
                return Step::Line(line);
            }
            9 => Self::answer(script, heard),
            10 => {
                return Step::Pause(Duration::from_millis(
                    [0, 1, 4, 20, 100, 1000, 10_000, 40_000][usize::from(variant)],
                ));
            }
            11 => return Step::Line(self.batch(script)),
            12 => self.call("panics", &json!({})),
            13 => {
                let tasks = heard.tasks();
                self.listen(&match variant % 4 {
                    0 => json!({ "toolsListChanged": true }),
                    1 => json!({ "resourceSubscriptions": [BOARD] }),
                    2 => json!({ "taskIds": tasks.last().map_or_else(Vec::new, |task| vec![task]) }),
                    _ => json!([]),
                })
            }
            14 => self.call("one", &json!({ "ms": "many", "other": 1 })),
            15 => self.request("logging/setLevel", json!({ "level": LEVELS[usize::from(variant % 4)] })),
            16 => self.chatty(script),
            17 => {
                let uri = if variant < 6 { BOARD } else { "board://unknown" };
                self.subscribed = self.next_id;
                self.request("resources/subscribe", json!({ "uri": uri }))
            }
            18 => {
                self.unsubscribed.push(self.next_id);
                self.request("resources/unsubscribe", json!({ "uri": BOARD }))
            }
            19 => {
                let arguments = if variant < 6 { json!({ "code": "fn" }) } else { json!({}) };
                self.request("prompts/get", json!({ "name": "review", "arguments": arguments }))
            }
            20 => self.complete(variant),
            21 => {
                let uris = [BOARD, "board://notes/7", "board://notes/x", "no"];
                self.request("resources/read", json!({ "uri": uris[usize::from(variant % 4)] }))
            }
            22 => {
                let arguments = json!({ "ms": script.byte() % 99 });
                self.of_tasks("tools/call", json!({ "name": "build", "arguments": arguments }))
            }
            23 => self.of_tasks("tools/call", json!({ "name": "sign", "arguments": {} })),
            24 => self.task(script, heard, ["tasks/get", "tasks/update"][usize::from(variant % 2)]),
            25 => self.task(script, heard, "tasks/cancel"),
            26 => self.call("change", &json!({})),
            27 => self.retry(script, heard),
            28 => {
                let versions = [LEGACY[0], LEGACY[1], LEGACY[2], LEGACY[3], "1999-01-01", MODERN];
                self.initialize(versions[usize::from(variant) % versions.len()])
            }
            29 => {
                let id = json!(u64::from(script.byte()) % self.next_id.max(1));
                self.with_id(&id, "tools/list", json!({}), &json!({}))
            }
            30 => self.call("limited", &json!({ "ms": script.byte() % 99 })),
            _ => {
                let id = json!(format!("s{}", self.id()));
                self.with_id(&id, "tools/list", json!({}), &json!({}))
            }
        };
        Step::Line(serde_json::to_vec(&value).expect("JSON"))
    }
}

fn accepted() -> Value {
    json!({ "action": "accept", "content": { "value": true } })
}
