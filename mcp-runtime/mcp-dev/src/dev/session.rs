//! One client and its server: every message is passed on as it is, in both directions, while the process behind it is
//! replaced. The handshake and subscriptions are repeated to the new process, requests that it cannot know are answered with
//! an error or sent again, and no response reaches a process that did not ask. The client's pipe is never closed first.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    child::{Child, QUEUE, STABLE, pause_after},
    launch::Launcher,
    message::{self, Kind, Line, kind, not_answered},
    replay::{
        Answered, Asked, Effect, Handshake, MAX_CALLS, META_REVISION, META_SUBSCRIPTION_ID, may_repeat,
    },
    trace::{Direction, Trace},
};
use crate::report;

/// The largest total of messages that wait for a process.
const MAX_HELD: usize = 64 << 20;
/// The largest number of tools whose hints are known.
const MAX_KNOWN: usize = 4096;
/// Pages of the loop's own listing of tools.
const MAX_PAGES: usize = 64;
/// How long a new process may take to answer what is repeated.
const REPLAY: Duration = Duration::from_secs(30);
/// How long calls wait for the loop's own listing of tools, if `--list-wait` does not say it.
pub(super) const LIST_WAIT: Duration = Duration::from_secs(5);
/// The note on the page for a list that fails or comes late.
const NOT_LISTED: &str =
    "the server has not listed its tools in time: its calls go on, and all their values are masked";
/// How long a process may take to end once its client has gone.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// What a client sent and gets.
pub(super) struct Pipe {
    /// Lines of the client.
    pub(super) from: mpsc::Receiver<Vec<u8>>,
    /// Lines for the client.
    pub(super) to: mpsc::Sender<Vec<u8>>,
}

/// A request of the author in the session of a client, which gets nothing of it.
pub(super) struct OwnRequest {
    pub(super) method: String,
    pub(super) params: Value,
    /// Gets the whole response; it is dropped if no process answers.
    pub(super) response: oneshot::Sender<Value>,
}

/// What the lists of a server have said about its tools, for hints and masks.
#[derive(Clone, Default)]
pub(super) struct KnownTools(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    tools: HashMap<String, Value>,
    /// The generation of the program whose schemas they are.
    generation: u64,
}

impl KnownTools {
    /// Another program may have other schemas; hints stay for the calls in flight.
    fn begin(&self, generation: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.generation != generation {
            known.generation = generation;
            for tool in known.tools.values_mut() {
                tool["inputSchema"] = Value::Null;
            }
        }
    }

    pub(super) fn learn(&self, result: &Value) {
        let known = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).tools;
        for tool in result.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            if known.len() < MAX_KNOWN || known.contains_key(name) {
                known.insert(
                    name.to_owned(),
                    json!({
                        "inputSchema": tool.get("inputSchema"),
                        "annotations": tool.get("annotations"),
                    }),
                );
            }
        }
    }

    /// Whether a call may be sent twice.
    pub(super) fn is_repeatable(&self, name: &str) -> bool {
        let known = &self.0.lock().unwrap_or_else(PoisonError::into_inner).tools;
        let hints = known.get(name).map(|tool| &tool["annotations"]);
        hints.is_some_and(|hints| hints["readOnlyHint"] == true || hints["idempotentHint"] == true)
    }

    /// The schema of a tool's arguments; `None` if the running program has not listed it.
    pub(super) fn schema(&self, name: &str) -> Option<Value> {
        let known = &self.0.lock().unwrap_or_else(PoisonError::into_inner).tools;
        known.get(name).map(|tool| tool["inputSchema"].clone()).filter(|schema| !schema.is_null())
    }

    /// Whether a request calls a tool that is not known, so that its values are masked.
    fn is_unknown_call(&self, message: &Value) -> bool {
        message["method"] == "tools/call"
            && message["params"]["name"].as_str().is_none_or(|name| self.schema(name).is_none())
    }
}

/// A request of the client, which the server has not answered.
struct Call {
    id: Value,
    order: u64,
    batch: Option<u64>,
    since: Instant,
    effect: Effect,
    /// Its line, if it may be sent to another process.
    again: Option<Vec<u8>>,
    was_repeated: bool,
    /// It calls a tool whose secrets are not known.
    is_unknown: bool,
}

/// The loop's own listing of the tools of a process, by which their arguments are masked.
#[derive(Default)]
struct Listing {
    is_begun: bool,
    /// The id of the request in flight, and its `_meta`.
    waiting: Option<(String, Value)>,
    pages: usize,
    /// Calls wait for it until then.
    until: Option<Instant>,
}

#[derive(PartialEq)]
enum Phase {
    /// No process; the next one starts then, or when the program changes.
    Down {
        until: Option<Instant>,
    },
    /// The new process has not answered these.
    Replaying {
        waiting: HashSet<String>,
    },
    Up,
    /// Its stdin is closed.
    Stopping,
}

/// One client and its server.
pub(super) struct Session {
    name: String,
    launcher: Launcher,
    trace: Trace,
    tools: KnownTools,
    retry_safe: bool,
    list_wait: Duration,
    pipe: Pipe,
    /// Requests of the author, if there is a page.
    own_requests: Option<mpsc::Receiver<OwnRequest>>,
    /// Those that the process has not answered, by id.
    own_waiting: HashMap<String, (oneshot::Sender<Value>, Instant)>,
    /// The `_meta` by which requests of this client name their revision.
    meta: Value,
    child: Option<Child>,
    phase: Phase,
    /// Messages of the client that no process has got.
    held: VecDeque<Vec<u8>>,
    /// Those before them: a call whose secrets the loop's listing will tell, and what follows it.
    unlisted: VecDeque<Vec<u8>>,
    /// The bytes of both.
    held_bytes: usize,
    to_server: VecDeque<Vec<u8>>,
    to_client: VecDeque<Vec<u8>>,
    calls: HashMap<String, Call>,
    asked: Asked,
    listing: Listing,
    handshake: Option<Handshake>,
    started: Option<Instant>,
    starts: u64,
    /// The generation of the program that was started last.
    generation: u64,
    failures: u32,
    counter: u64,
    deadline: Option<Instant>,
    is_closing: bool,
    last_failure: String,
}

impl Session {
    pub(super) fn new(
        name: String,
        launcher: Launcher,
        trace: Trace,
        tools: KnownTools,
        retry_safe: bool,
        list_wait: Duration,
        pipe: Pipe,
    ) -> Self {
        Self {
            name,
            launcher,
            trace,
            tools,
            retry_safe,
            list_wait,
            pipe,
            own_requests: None,
            own_waiting: HashMap::new(),
            meta: Value::Null,
            child: None,
            phase: Phase::Down { until: None },
            held: VecDeque::new(),
            unlisted: VecDeque::new(),
            held_bytes: 0,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            calls: HashMap::new(),
            asked: Asked::default(),
            listing: Listing::default(),
            handshake: None,
            started: None,
            starts: 0,
            generation: 0,
            failures: 0,
            counter: 0,
            deadline: None,
            is_closing: false,
            last_failure: String::new(),
        }
    }

    /// The same session, which takes requests of the author too.
    pub(super) fn with_own_requests(mut self, requests: mpsc::Receiver<OwnRequest>) -> Self {
        self.own_requests = Some(requests);
        self
    }

    /// Runs until the client has closed its pipe and its server has ended, or until `token` is cancelled.
    pub(super) async fn run(mut self, token: CancellationToken) {
        loop {
            if matches!(self.phase, Phase::Down { until: None })
                && self.launcher.is_ready()
                && !self.is_closing_idle()
            {
                self.start().await;
            }
            self.pass_held();
            if self.is_closing && self.has_passed_all() && self.to_server.is_empty() {
                match &mut self.child {
                    Some(child) if self.phase == Phase::Up => {
                        child.close();
                        self.phase = Phase::Stopping;
                        self.deadline = Some(Instant::now() + LAST_CALLS);
                    }
                    Some(_) => {}
                    None if self.to_client.is_empty() => return,
                    None => {}
                }
            }
            let held = self.held.len() + self.unlisted.len();
            let takes_more = held < QUEUE && self.held_bytes < MAX_HELD && !self.is_closing;
            let until = match self.phase {
                Phase::Down { until } => until,
                _ => self.deadline,
            };
            let listed = self.listing.until.filter(|_| !self.unlisted.is_empty());
            let stdin = self.child.as_ref().and_then(|child| child.stdin.clone());
            tokio::select! {
                line = self.pipe.from.recv(), if takes_more => match line {
                    Some(line) => self.hold(line),
                    None => self.is_closing = true,
                },
                line = next_line(&mut self.child), if self.child.is_some() && self.to_client.len() < QUEUE => match line {
                    Some(line) => self.take_from_server(line),
                    None => self.take_end().await,
                },
                permit = reserve(stdin), if !self.to_server.is_empty() => match (permit, self.to_server.pop_front()) {
                    (Some(permit), Some(line)) => drop(permit.send(line)),
                    // the process has closed its stdin: its end comes
                    _ => self.to_server.clear(),
                },
                permit = self.pipe.to.clone().reserve_owned(), if !self.to_client.is_empty() => {
                    match (permit, self.to_client.pop_front()) {
                        (Ok(permit), Some(line)) => drop(permit.send(line)),
                        // the client is gone
                        _ => { self.to_client.clear(); self.is_closing = true; }
                    }
                }
                request = next_own(&mut self.own_requests) => self.send_own(request),
                () = self.launcher.changed() => self.take_change(),
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => self.take_deadline(),
                () = sleep_until(listed.unwrap_or_else(Instant::now)), if listed.is_some() => self.go_on_without_list(),
                () = token.cancelled() => {
                    if let Some(child) = &mut self.child {
                        child.stop();
                        let _status = child.status().await;
                    }
                    return;
                }
            }
        }
    }

    /// Whether the client is gone and nothing of it is left to do.
    fn is_closing_idle(&self) -> bool {
        self.is_closing && self.has_passed_all()
    }

    fn has_passed_all(&self) -> bool {
        self.held.is_empty() && self.unlisted.is_empty()
    }

    /// Whether the server cannot be expected soon.
    fn is_failing(&self) -> bool {
        self.child.is_none() && (self.failures >= 3 || self.launcher.failure().is_some())
    }

    fn hold(&mut self, line: Vec<u8>) {
        self.held_bytes += line.len();
        self.held.push_back(line);
    }

    fn fresh_id(&mut self) -> String {
        self.counter += 1;
        format!("mcp-dev:{}:{}", self.name, self.counter)
    }

    /// Passes on what the client has sent, or answers it.
    fn pass_held(&mut self) {
        if self.listing.until.is_none() || self.phase != Phase::Up {
            while let Some(line) = self.unlisted.pop_back() {
                self.held.push_front(line);
            }
        }
        while self.phase == Phase::Up && self.to_server.len() < QUEUE {
            let Some(line) = self.held.pop_front() else { break };
            let parsed = Line::parse(&line);
            if self.waits_for_list(&parsed) {
                self.unlisted.push_back(line);
                continue;
            }
            self.held_bytes -= line.len();
            self.pass_to_server(line, &parsed);
        }
        if self.is_failing() {
            self.end_waiting();
            for line in std::mem::take(&mut self.held) {
                self.held_bytes -= line.len();
                // a client that is connecting waits as long as it likes
                let waits = !self.is_closing
                    && Line::parse(&line).messages().iter().any(|message| {
                        matches!(
                            kind(message),
                            Kind::Request { method: "initialize" | "server/discover", .. }
                        )
                    });
                if waits { self.hold(line) } else { self.refuse(&line) }
            }
        }
    }

    /// Whether a line has a call whose secrets the loop's listing will tell, or follows such a line. Responses do not wait: the
    /// server may need them to answer the listing.
    fn waits_for_list(&mut self, line: &Line) -> bool {
        let messages = line.messages();
        if let Some(call) = messages.iter().find(|message| self.tools.is_unknown_call(message)) {
            self.list_tools(&call["params"]["_meta"]);
        } else if self.unlisted.is_empty()
            || messages.iter().all(|message| matches!(kind(message), Kind::Response { .. }))
        {
            return false;
        }
        self.listing.until.is_some()
    }

    fn go_on_without_list(&mut self) {
        self.listing.until = None;
        self.trace.note(&self.name, NOT_LISTED);
    }

    /// Answers requests that no process will get.
    fn refuse(&mut self, line: &[u8]) {
        let parsed = Line::parse(line);
        let failure = self.launcher.failure().unwrap_or_else(|| self.last_failure.clone());
        let detail = format!(
            "the server does not run, and this was not sent to it; it starts again when its program changes\n{failure}"
        );
        let mut answers = Vec::new();
        for message in parsed.messages() {
            self.trace.message(&self.name, Direction::ToServer, message, None, &self.tools, None);
            if let Kind::Request { id, .. } = kind(message) {
                answers.push(not_answered(id, "not_running", detail.trim_end()));
            }
        }
        self.answer(&parsed, answers);
    }

    fn answer(&mut self, of: &Line, answers: Vec<Value>) {
        for answer in &answers {
            self.trace.message(&self.name, Direction::ToClient, answer, None, &self.tools, None);
        }
        if let Some(line) = of.with_messages(answers) {
            self.to_client.push_back(line);
        }
    }

    fn pass_to_server(&mut self, line: Vec<u8>, parsed: &Line) {
        let batch = matches!(parsed, Line::Batch(_)).then(|| {
            self.counter += 1;
            self.counter
        });
        let mut refused = Vec::new();
        let line = parsed.changed(line, |message| self.take_from_client(message, batch, &mut refused));
        self.answer(parsed, refused);
        if matches!(parsed, Line::Other) {
            self.trace.note(&self.name, "the client sent a line that is not JSON-RPC");
        }
        if !line.is_empty() {
            self.to_server.push_back(line);
        }
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_initialized) {
            self.list_tools(&Value::Null);
        }
    }

    /// Notes a message of the client. `None` if the server must not get it, `Some(None)` if it gets it as it is.
    fn take_from_client(
        &mut self,
        message: &Value,
        batch: Option<u64>,
        refused: &mut Vec<Value>,
    ) -> Option<Option<Value>> {
        let mut schema = None;
        let mut changed = None;
        match kind(message) {
            Kind::Request { id, method } => {
                if self.calls.len() >= MAX_CALLS {
                    let text = "too many requests are in flight: send it again later";
                    refused.push(not_answered(id, "too_many", text));
                    return None;
                }
                let again = may_repeat(method, message, self.retry_safe, &self.tools)
                    .then(|| message::to_line(message));
                let effect = self.effect(method, message);
                self.counter += 1;
                let call = Call {
                    id: id.clone(),
                    order: self.counter,
                    batch,
                    since: Instant::now(),
                    effect,
                    again,
                    was_repeated: false,
                    is_unknown: self.tools.is_unknown_call(message),
                };
                self.note_meta(&message["params"]["_meta"]);
                self.list_tools(&message["params"]["_meta"]);
                self.calls.insert(id.to_string(), call);
            }
            Kind::Notification { method: "notifications/initialized" } => {
                if let Some(handshake) = &mut self.handshake {
                    handshake.is_initialized = true;
                }
            }
            Kind::Notification { method: "notifications/cancelled" } => {
                let id = &message["params"]["requestId"];
                // the end of a listen stream is its response
                if !matches!(self.calls.get(&id.to_string()), Some(Call { effect: Effect::Initialize, .. })) {
                    self.calls.remove(&id.to_string());
                }
            }
            Kind::Response { id } => match self.asked.answer(id) {
                Answered::Process { id: own, schema: asked } => {
                    schema = asked;
                    changed = message::with_id(message, own);
                }
                Answered::Gone => return None,
                // nor is what in it is secret
                Answered::Unknown => schema = Some(Value::Bool(false)),
            },
            Kind::Notification { .. } | Kind::Other => {}
        }
        self.trace.message(
            &self.name,
            Direction::ToServer,
            changed.as_ref().unwrap_or(message),
            None,
            &self.tools,
            schema.as_ref(),
        );
        Some(changed)
    }

    fn note_meta(&mut self, meta: &Value) {
        if meta.get(META_REVISION).is_some() {
            self.meta = without_progress(meta);
        }
    }

    /// Sends a request of the author as the client would.
    fn send_own(&mut self, request: OwnRequest) {
        // a response that is dropped tells the author
        if self.phase != Phase::Up {
            return;
        }
        let OwnRequest { method, mut params, response } = request;
        let id = self.fresh_id();
        if self.meta.is_object() {
            params["_meta"] = self.meta.clone();
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.trace.message(&self.name, Direction::ToServer, &message, None, &self.tools, None);
        self.to_server.push_back(message::to_line(&message));
        self.own_waiting.insert(id, (response, Instant::now()));
    }

    /// Takes the response to a request of the author.
    fn take_own(&mut self, id: &str, message: &Value) -> bool {
        let Some((response, since)) = self.own_waiting.remove(id) else { return false };
        let took = Some(since.elapsed());
        self.trace.message(&self.name, Direction::ToClient, message, took, &self.tools, None);
        // the page may be closed
        let _gone = response.send(message.clone());
        true
    }

    /// Lists the tools of a new process: after the handshake, or with the `_meta` of a request that needs none.
    fn list_tools(&mut self, meta: &Value) {
        let is_modern = meta.get(META_REVISION).is_some();
        let has_tools = || {
            let own = self.handshake.as_ref().filter(|own| own.is_initialized)?;
            own.result.as_ref()?["capabilities"].get("tools")
        };
        if self.listing.is_begun || !(is_modern || has_tools().is_some()) {
            return;
        }
        self.listing.is_begun = true;
        self.list_page(without_progress(meta), None);
        self.listing.until = Some(Instant::now() + self.list_wait).filter(|_| !self.list_wait.is_zero());
    }

    fn list_page(&mut self, meta: Value, cursor: Option<&Value>) {
        let id = self.fresh_id();
        let mut params = json!({});
        if meta.is_object() {
            params["_meta"] = meta.clone();
        }
        if let Some(cursor) = cursor {
            params["cursor"] = cursor.clone();
        }
        self.to_server.push_back(message::request(&id, "tools/list", &params));
        self.listing.pages += 1;
        self.listing.waiting = Some((id, meta));
    }

    /// Takes a page of the loop's own listing.
    fn take_listed(&mut self, id: &str, message: &Value) -> bool {
        let Some((_, meta)) = self.listing.waiting.take_if(|(own, _)| own == id) else { return false };
        let result = &message["result"];
        self.tools.learn(result);
        if let Some(cursor) = result.get("nextCursor").filter(|_| self.listing.pages < MAX_PAGES) {
            self.list_page(meta, Some(cursor));
        } else {
            self.listing.until = None;
        }
        true
    }

    fn effect(&mut self, method: &str, message: &Value) -> Effect {
        let params = &message["params"];
        let effect = Effect::of(method, params);
        if matches!(effect, Effect::Initialize) {
            self.handshake = Some(Handshake::new(params.clone()));
        }
        effect
    }

    fn take_from_server(&mut self, line: Vec<u8>) {
        let parsed = Line::parse(&line);
        if matches!(parsed, Line::Other) {
            let text: String = String::from_utf8_lossy(&line).chars().take(200).collect();
            let note = format!("the server wrote a line that is not JSON-RPC to its stdout: {text}");
            report(&format!("mcp-dev: {note}"));
            self.trace.note(&self.name, &note);
            self.to_client.push_back(line);
            return;
        }
        let line = parsed.changed(line, |message| self.take_message(message));
        if !line.is_empty() {
            self.to_client.push_back(line);
        }
    }

    /// Notes a message of the server. `None` if the client must not get it, `Some(None)` if it gets it as it is.
    fn take_message(&mut self, message: &Value) -> Option<Option<Value>> {
        let mut took = None;
        let mut schema = None;
        let changed = match kind(message) {
            Kind::Request { id, .. } => {
                schema = message["params"].get("requestedSchema").cloned();
                self.note_asked(id, message, schema.clone())?
            }
            Kind::Notification { method } => self.take_notification(method, message)?,
            Kind::Response { id } => {
                let key = id.to_string();
                let is_own = id.as_str().is_some_and(|id| {
                    self.take_listed(id, message)
                        || self.take_own(id, message)
                        || self.take_replayed(id, message)
                });
                // a stream goes on with the next process
                let goes_on = || {
                    self.phase == Phase::Stopping
                        && !self.is_closing
                        && self.calls.get(&key).is_some_and(|call| call.effect.is_stream())
                };
                if is_own || goes_on() {
                    return None;
                }
                let call = self.calls.remove(&key);
                took = call.as_ref().map(|call| call.since.elapsed());
                schema = call.as_ref().filter(|call| call.is_unknown).map(|_| Value::Bool(false));
                self.take_response(call, message)
            }
            Kind::Other => None,
        };
        let shown = changed.as_ref().unwrap_or(message);
        self.trace.message(&self.name, Direction::ToClient, shown, took, &self.tools, schema.as_ref());
        Some(changed)
    }

    /// Notes a request of the server. `None` if the client must not get it, `Some(None)` if it gets it as it is.
    fn note_asked(&mut self, id: &Value, message: &Value, schema: Option<Value>) -> Option<Option<Value>> {
        // its answer could not be delivered
        if self.phase == Phase::Stopping && !self.is_closing {
            return None;
        }
        if self.asked.is_full() {
            let text = "the client has too many requests to answer: ask again later";
            self.trace
                .note(&self.name, "a request of the server is refused: its client has too many to answer");
            // a server that does not read gets no refusals either
            if self.to_server.len() < QUEUE {
                self.to_server.push_back(message::to_line(&not_answered(id, "too_many", text)));
            }
            return None;
        }
        self.counter += 1;
        let (name, count) = (&self.name, self.counter);
        let Some(fresh) = self.asked.note(id, schema, || format!("mcp-dev:{name}:{count}")) else {
            return Some(None);
        };
        Some(message::with_id(message, fresh))
    }

    fn take_notification(&mut self, method: &str, message: &Value) -> Option<Option<Value>> {
        let params = &message["params"];
        match method {
            "notifications/subscriptions/acknowledged"
            | "notifications/events/active"
            | "notifications/events/event"
            | "notifications/events/heartbeat" => {
                let id = params["_meta"][META_SUBSCRIPTION_ID].to_string();
                match self.calls.get_mut(&id) {
                    Some(call) => call.effect.take_notification(&mut call.again, method, message),
                    None => Some(None),
                }
            }
            "notifications/events/terminated" if self.phase == Phase::Stopping && !self.is_closing => {
                let id = params["_meta"][META_SUBSCRIPTION_ID].to_string();
                let goes_on = self.calls.get(&id).is_some_and(|call| call.effect.is_stream());
                (!goes_on).then_some(None)
            }
            "notifications/cancelled" => {
                let id = &params["requestId"];
                let key = id.to_string();
                if self.calls.get(&key).is_some_and(|call| call.effect.is_stream()) {
                    if self.phase == Phase::Stopping && !self.is_closing {
                        return None;
                    }
                    self.calls.remove(&key);
                    return Some(None);
                }
                match self.asked.shown(id) {
                    Some(shown) if shown != *id => {
                        let mut message = message.clone();
                        message["params"]["requestId"] = shown;
                        Some(Some(message))
                    }
                    _ => Some(None),
                }
            }
            _ => Some(None),
        }
    }

    /// Notes what a response changes. Returns another message if the client gets one.
    fn take_response(&mut self, call: Option<Call>, message: &Value) -> Option<Value> {
        call?.effect.take_response(message, self.handshake.as_mut(), &self.tools)
    }

    /// The program is another one.
    fn take_change(&mut self) {
        if let Some(failure) = self.launcher.failure() {
            self.trace.note(&self.name, &failure);
            return;
        }
        if self.child.is_some() && self.launcher.generation() == self.generation {
            return;
        }
        self.failures = 0;
        match &mut self.child {
            Some(child) if !self.is_closing => {
                child.stop();
                self.phase = Phase::Stopping;
                self.deadline = None;
            }
            Some(_) => {}
            None => self.phase = Phase::Down { until: None },
        }
    }

    fn take_deadline(&mut self) {
        match self.phase {
            Phase::Down { .. } => self.phase = Phase::Down { until: None },
            Phase::Replaying { .. } => {
                let note =
                    "the new process has not answered the handshake in time; its client goes on with it";
                report(&format!("mcp-dev: {note}"));
                self.trace.note(&self.name, note);
                self.go_on();
            }
            Phase::Up | Phase::Stopping => {
                self.deadline = None;
                if let Some(child) = &mut self.child {
                    child.stop();
                }
            }
        }
    }

    async fn start(&mut self) {
        let Some(program) = self.launcher.program() else {
            self.phase = Phase::Down { until: None };
            return;
        };
        self.started = Some(Instant::now());
        self.generation = self.launcher.generation();
        self.listing = Listing::default();
        self.tools.begin(self.generation);
        self.starts += 1;
        match Child::start(&program, &self.trace, &self.name).await {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                self.note_failure(&format!("`{}` cannot be started: {error}", program.name()));
                return;
            }
        }
        self.trace.state(&self.name, "started", &program.name());
        let Some(handshake) = self.handshake.as_ref().filter(|handshake| handshake.result.is_some()) else {
            self.go_on();
            return;
        };
        let params = handshake.params.clone();
        let id = self.fresh_id();
        self.to_server.push_back(message::request(&id, "initialize", &params));
        // the rest follows its answer
        self.phase = Phase::Replaying { waiting: HashSet::from([id]) };
        self.deadline = Some(Instant::now() + REPLAY);
    }

    /// Takes the response to a request of our own.
    fn take_replayed(&mut self, id: &str, message: &Value) -> bool {
        let Phase::Replaying { waiting } = &mut self.phase else {
            return id.starts_with(&format!("mcp-dev:{}:", self.name));
        };
        if !waiting.remove(id) {
            return false;
        }
        if !waiting.is_empty() {
            return true;
        }
        let Some(handshake) = &mut self.handshake else { return true };
        if let Some(notes) = handshake.take_repeated(message) {
            for note in notes {
                report(&format!("mcp-dev: {note}"));
                self.trace.note(&self.name, &note);
            }
            if handshake.is_initialized {
                self.to_server.push_back(message::notification("notifications/initialized"));
            }
            let requests = handshake.repeated();
            let mut waiting = HashSet::new();
            for (method, params) in requests {
                let id = self.fresh_id();
                self.to_server.push_back(message::request(&id, method, &params));
                waiting.insert(id);
            }
            if !waiting.is_empty() {
                self.phase = Phase::Replaying { waiting };
                return true;
            }
        } else if let Some(error) = message.get("error") {
            let note = format!("the new process refuses the repeated messages: {error}");
            report(&format!("mcp-dev: {note}"));
            self.trace.note(&self.name, &note);
        }
        self.go_on();
        true
    }

    /// The process knows what its predecessor knew.
    fn go_on(&mut self) {
        self.phase = Phase::Up;
        self.deadline = None;
        self.list_tools(&Value::Null);
        let mut again: Vec<(u64, Vec<u8>)> = Vec::new();
        for call in self.calls.values_mut() {
            call.was_repeated |= !call.effect.begins_anew();
            again.extend(call.again.clone().map(|line| (call.order, line)));
        }
        again.sort_unstable_by_key(|(order, _)| *order);
        self.to_server.extend(again.into_iter().map(|(_, line)| line));
        if self.starts > 1 {
            self.send_list_changes();
        }
    }

    /// Tells the client that lists may have changed, where it wants to know.
    fn send_list_changes(&mut self) {
        let mut lines = self.handshake.as_ref().map(Handshake::list_changes).unwrap_or_default();
        lines.extend(self.calls.values().flat_map(|call| call.effect.list_changes(&call.id)));
        for message in lines {
            self.trace.message(&self.name, Direction::ToClient, &message, None, &self.tools, None);
            self.to_client.push_back(message::to_line(&message));
        }
    }

    /// The process has ended.
    async fn take_end(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let status = child.status().await;
        self.to_server.clear();
        self.own_waiting.clear();
        let was_stopped = self.phase == Phase::Stopping;
        let stderr = child.stderr();
        drop(child);
        self.drop_asked();
        let status = status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
        if was_stopped {
            self.trace.state(&self.name, "stopped", "");
            self.end_calls("restarted", "the server was restarted before it answered: send it again");
            self.phase = Phase::Down { until: None };
            return;
        }
        self.end_calls("crashed", &format!("the server has exited ({status}) before it answered, and is started again: send it again\n{stderr}"));
        if self.started.is_some_and(|started| started.elapsed() >= STABLE) {
            self.failures = 0;
        }
        let lines = if stderr.is_empty() { String::new() } else { format!("\n{stderr}") };
        self.note_failure(&format!("the server has exited ({status}){lines}"));
    }

    /// It is started again, later and later.
    fn note_failure(&mut self, what: &str) {
        let pause = pause_after(self.failures);
        self.failures += 1;
        if !self.is_closing {
            // its stderr was printed as it came
            let reason = what.lines().next().unwrap_or_default();
            report(&format!("mcp-dev: {reason}\nmcp-dev: it is started again in {} ms", pause.as_millis()));
        }
        self.trace.state(&self.name, "failed", what);
        what.clone_into(&mut self.last_failure);
        self.phase = Phase::Down { until: Some(Instant::now() + pause) };
        self.deadline = None;
    }

    /// Answers the requests that the process has not answered, but for those that the next one gets.
    fn end_calls(&mut self, reason: &str, detail: &str) {
        let is_closing = self.is_closing;
        let mut ended: Vec<Call> = Vec::new();
        let is_lost = |call: &Call| is_closing || call.again.is_none() || call.was_repeated;
        let keys: Vec<String> =
            self.calls.iter().filter(|(_, call)| is_lost(call)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            ended.extend(self.calls.remove(&key));
        }
        ended.sort_unstable_by_key(|call| call.order);
        let mut batches: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        for call in ended {
            let answer = not_answered(&call.id, reason, detail.trim_end());
            self.trace.message(
                &self.name,
                Direction::ToClient,
                &answer,
                Some(call.since.elapsed()),
                &self.tools,
                None,
            );
            match call.batch {
                Some(batch) => batches.entry(batch).or_default().push(answer),
                None => self.to_client.push_back(message::to_line(&answer)),
            }
        }
        for answers in batches.into_values() {
            self.to_client.push_back(message::to_line(&Value::Array(answers)));
        }
    }

    /// Answers the requests that wait for another process, but for those that only it can answer.
    fn end_waiting(&mut self) {
        let mut is_any = false;
        for call in self.calls.values_mut() {
            if !call.effect.begins_anew() {
                (call.was_repeated, is_any) = (true, true);
            }
        }
        if is_any {
            let failure = self.launcher.failure().unwrap_or_else(|| self.last_failure.clone());
            self.end_calls(
                "not_running",
                &format!("the server does not run: send it again when it does\n{failure}"),
            );
        }
    }

    /// Withdraws the questions of a process that is gone.
    fn drop_asked(&mut self) {
        for message in self.asked.withdraw() {
            self.trace.message(&self.name, Direction::ToClient, &message, None, &self.tools, None);
            self.to_client.push_back(message::to_line(&message));
        }
    }
}

async fn next_line(child: &mut Option<Child>) -> Option<Vec<u8>> {
    match child {
        Some(child) => child.stdout.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_own(requests: &mut Option<mpsc::Receiver<OwnRequest>>) -> OwnRequest {
    if let Some(receiver) = requests
        && let Some(request) = receiver.recv().await
    {
        return request;
    }
    // the page is left out
    std::future::pending().await
}

/// The `_meta` of a request, without the token by which its client gets progress.
fn without_progress(meta: &Value) -> Value {
    let mut meta = meta.clone();
    if let Some(members) = meta.as_object_mut() {
        members.remove("progressToken");
    }
    meta
}

async fn reserve(stdin: Option<mpsc::Sender<Vec<u8>>>) -> Option<mpsc::OwnedPermit<Vec<u8>>> {
    stdin?.reserve_owned().await.ok()
}
