//! One client and its server: every message is passed on as it is, in both directions, while the process behind it is
//! replaced. The handshake and subscriptions are repeated to the new process, requests that it cannot know are answered with
//! an error or sent again, and no response reaches a process that did not ask. The client's pipe is never closed first.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    author::{Author, OwnRequest},
    backlog::Backlog,
    calls::{Call, Calls},
    child::{Child, QUEUE, STABLE, pause_after},
    known_tools::KnownTools,
    launch::Launcher,
    listing::Listing,
    message::{self, Kind, Line, Pass, kind, not_answered, without_progress},
    replay::{Answered, Asked, Effect, Handshake, META_REVISION, META_SUBSCRIPTION_ID, may_repeat},
    session_log::SessionLog,
    trace::{Direction, Trace},
};
use crate::report;

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

#[derive(PartialEq)]
enum Phase {
    /// No process; the next one starts at the deadline, or when the program changes.
    Down,
    /// The new process has not answered these.
    Replaying {
        waiting: HashSet<String>,
    },
    Up,
    /// Its stdin is closed.
    Stopping,
}

/// The server's side: its process, and what was tried to have one.
struct Server {
    launcher: Launcher,
    child: Option<Child>,
    phase: Phase,
    /// Lines that the process gets.
    lines: VecDeque<Vec<u8>>,
    /// When something is done about the phase.
    deadline: Option<Instant>,
    started: Option<Instant>,
    starts: u64,
    /// The generation of the program that was started last.
    generation: u64,
    failures: u32,
    last_failure: String,
}

impl Server {
    fn new(launcher: Launcher) -> Self {
        Self {
            launcher,
            child: None,
            phase: Phase::Down,
            lines: VecDeque::new(),
            deadline: None,
            started: None,
            starts: 0,
            generation: 0,
            failures: 0,
            last_failure: String::new(),
        }
    }

    /// Whether the server cannot be expected soon.
    fn is_failing(&self) -> bool {
        self.child.is_none() && (self.failures >= 3 || self.launcher.failure().is_some())
    }

    /// Why it does not run.
    fn failure(&self) -> String {
        self.launcher.failure().unwrap_or_else(|| self.last_failure.clone())
    }

    /// Begins a phase, about which something is done after that time.
    fn enter(&mut self, phase: Phase, limit: Option<Duration>) {
        self.phase = phase;
        self.deadline = limit.map(|limit| Instant::now() + limit);
    }
}

/// The client's side.
struct Client {
    pipe: Pipe,
    /// Lines that it gets.
    lines: VecDeque<Vec<u8>>,
    /// What it has sent and no process has got.
    backlog: Backlog,
    /// Whether it has closed its pipe.
    is_closing: bool,
}

/// The ids of a session's own requests.
struct OwnIds {
    /// How all of them begin.
    prefix: String,
    counter: u64,
}

impl OwnIds {
    fn number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn next(&mut self) -> String {
        let number = self.number();
        format!("{}{number}", self.prefix)
    }
}

/// One client and its server.
pub(super) struct Session {
    log: SessionLog,
    retry_safe: bool,
    list_wait: Duration,
    client: Client,
    server: Server,
    author: Author,
    calls: Calls,
    /// Those of the server.
    asked: Asked,
    listing: Listing,
    handshake: Option<Handshake>,
    ids: OwnIds,
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
            ids: OwnIds { prefix: format!("mcp-dev:{name}:"), counter: 0 },
            log: SessionLog::new(name, trace, tools),
            retry_safe,
            list_wait,
            client: Client { pipe, lines: VecDeque::new(), backlog: Backlog::default(), is_closing: false },
            server: Server::new(launcher),
            author: Author::default(),
            calls: Calls::default(),
            asked: Asked::default(),
            listing: Listing::default(),
            handshake: None,
        }
    }

    /// The same session, which takes requests of the author too.
    pub(super) fn with_own_requests(mut self, requests: mpsc::Receiver<OwnRequest>) -> Self {
        self.author = Author::new(requests);
        self
    }

    /// Runs until the client has closed its pipe and its server has ended, or until `token` is cancelled.
    pub(super) async fn run(mut self, token: CancellationToken) {
        loop {
            let server = &self.server;
            if server.phase == Phase::Down
                && server.deadline.is_none()
                && server.launcher.is_ready()
                && !self.is_closing_idle()
            {
                self.start().await;
            }
            self.pass_held();
            if self.close_when_passed() {
                return;
            }
            let Self { client, server, author, listing, .. } = &mut self;
            let takes_more = client.backlog.has_room() && !client.is_closing;
            let until = server.deadline;
            let listed = listing.until().filter(|_| client.backlog.awaits_listing());
            let stdin = server.child.as_ref().and_then(|child| child.stdin.clone());
            tokio::select! {
                line = client.pipe.from.recv(), if takes_more => match line {
                    Some(line) => client.backlog.push(line),
                    None => client.is_closing = true,
                },
                line = next_line(&mut server.child), if server.child.is_some() && client.lines.len() < QUEUE => match line {
                    Some(line) => self.take_from_server(line),
                    None => self.take_end().await,
                },
                permit = reserve(stdin), if !server.lines.is_empty() => match (permit, server.lines.pop_front()) {
                    (Some(permit), Some(line)) => drop(permit.send(line)),
                    // the process has closed its stdin: its end comes
                    _ => server.lines.clear(),
                },
                permit = client.pipe.to.clone().reserve_owned(), if !client.lines.is_empty() => {
                    match (permit, client.lines.pop_front()) {
                        (Ok(permit), Some(line)) => drop(permit.send(line)),
                        // the client is gone
                        _ => { client.lines.clear(); client.is_closing = true; }
                    }
                }
                request = author.next() => self.send_own(request),
                () = server.launcher.changed() => self.take_change(),
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => self.take_deadline(),
                () = sleep_until(listed.unwrap_or_else(Instant::now)), if listed.is_some() => self.go_on_without_list(),
                () = token.cancelled() => {
                    if let Some(child) = &mut server.child {
                        child.stop();
                        let _status = child.status().await;
                    }
                    return;
                }
            }
        }
    }

    /// Closes the server's pipe once the client has closed its own and everything was passed on; whether nothing is left to do.
    fn close_when_passed(&mut self) -> bool {
        let Self { client, server, .. } = self;
        if !client.is_closing || !client.backlog.is_empty() || !server.lines.is_empty() {
            return false;
        }
        let Some(child) = &mut server.child else { return client.lines.is_empty() };
        if server.phase == Phase::Up {
            child.close();
            server.enter(Phase::Stopping, Some(LAST_CALLS));
        }
        false
    }

    /// Whether the client is gone and nothing of it is left to do.
    fn is_closing_idle(&self) -> bool {
        self.client.is_closing && self.client.backlog.is_empty()
    }

    /// Whether the process is being replaced.
    fn is_replaced(&self) -> bool {
        self.server.phase == Phase::Stopping && !self.client.is_closing
    }

    /// Passes on what the client has sent, or answers it.
    fn pass_held(&mut self) {
        if self.listing.until().is_none() || self.server.phase != Phase::Up {
            self.client.backlog.resume();
        }
        while self.server.phase == Phase::Up && self.server.lines.len() < QUEUE {
            let Some(line) = self.client.backlog.next() else { break };
            let parsed = Line::parse(&line);
            if self.waits_for_list(&parsed) {
                self.client.backlog.set_aside(line);
            } else {
                self.pass_to_server(line, &parsed);
            }
        }
        if self.server.is_failing() {
            self.end_waiting();
            for line in self.client.backlog.take_all() {
                // a client that is connecting waits as long as it likes
                let waits = !self.client.is_closing
                    && Line::parse(&line).messages().iter().any(|message| {
                        matches!(
                            kind(message),
                            Kind::Request { method: "initialize" | "server/discover", .. }
                        )
                    });
                if waits { self.client.backlog.push(line) } else { self.refuse(&line) }
            }
        }
    }

    /// Whether a line has a call whose secrets the loop's listing will tell, or follows such a line. Responses do not wait: the
    /// server may need them to answer the listing.
    fn waits_for_list(&mut self, line: &Line) -> bool {
        let messages = line.messages();
        if let Some(call) = messages.iter().find(|message| self.log.tools().is_unknown_call(message)) {
            self.list_tools(&call["params"]["_meta"]);
        } else if !self.client.backlog.awaits_listing()
            || messages.iter().all(|message| matches!(kind(message), Kind::Response { .. }))
        {
            return false;
        }
        self.listing.until().is_some()
    }

    fn go_on_without_list(&mut self) {
        self.listing.give_up();
        self.log.note(NOT_LISTED);
    }

    /// Answers requests that no process will get.
    fn refuse(&mut self, line: &[u8]) {
        let parsed = Line::parse(line);
        let failure = self.server.failure();
        let detail = format!(
            "the server does not run, and this was not sent to it; it starts again when its program changes\n{failure}"
        );
        let mut answers = Vec::new();
        for message in parsed.messages() {
            self.log.message(Direction::ToServer, message);
            if let Kind::Request { id, .. } = kind(message) {
                answers.push(not_answered(id, "not_running", detail.trim_end()));
            }
        }
        self.answer(&parsed, answers);
    }

    fn answer(&mut self, of: &Line, answers: Vec<Value>) {
        for answer in &answers {
            self.log.message(Direction::ToClient, answer);
        }
        if let Some(line) = of.with_messages(answers) {
            self.client.lines.push_back(line);
        }
    }

    fn pass_to_server(&mut self, line: Vec<u8>, parsed: &Line) {
        let batch = matches!(parsed, Line::Batch(_)).then(|| self.ids.number());
        let mut refused = Vec::new();
        let line = parsed.passed(line, |message| self.take_from_client(message, batch, &mut refused));
        self.answer(parsed, refused);
        if matches!(parsed, Line::Other) {
            self.log.note("the client sent a line that is not JSON-RPC");
        }
        if !line.is_empty() {
            self.server.lines.push_back(line);
        }
        if self.handshake.as_ref().is_some_and(|handshake| handshake.is_initialized) {
            self.list_tools(&Value::Null);
        }
    }

    /// Notes a message of the client.
    fn take_from_client(&mut self, message: &Value, batch: Option<u64>, refused: &mut Vec<Value>) -> Pass {
        let mut schema = None;
        let mut changed = None;
        match kind(message) {
            Kind::Request { id, method } => {
                if self.calls.is_full() {
                    let text = "too many requests are in flight: send it again later";
                    refused.push(not_answered(id, "too_many", text));
                    return Pass::Drop;
                }
                let again = may_repeat(method, message, self.retry_safe, self.log.tools())
                    .then(|| message::to_line(message));
                let effect = Effect::of(method, &message["params"]);
                if matches!(effect, Effect::Initialize) {
                    self.handshake = Some(Handshake::new(message["params"].clone()));
                }
                self.author.note_meta(&message["params"]["_meta"]);
                self.list_tools(&message["params"]["_meta"]);
                self.calls.note(id, batch, effect, again, self.log.tools().is_unknown_call(message));
            }
            Kind::Notification { method: "notifications/initialized" } => {
                if let Some(handshake) = &mut self.handshake {
                    handshake.is_initialized = true;
                }
            }
            Kind::Notification { method: "notifications/cancelled" } => {
                self.calls.cancel(&message["params"]["requestId"]);
            }
            Kind::Response { id } => match self.asked.answer(id) {
                Answered::Process { id: own, schema: asked } => {
                    schema = asked;
                    changed = message::with_id(message, own);
                }
                Answered::Gone => return Pass::Drop,
                // nor is what in it is secret
                Answered::Unknown => schema = Some(Value::Bool(false)),
            },
            Kind::Notification { .. } | Kind::Other => {}
        }
        let shown = changed.as_ref().unwrap_or(message);
        self.log.answer(Direction::ToServer, shown, None, schema.as_ref());
        changed.into()
    }

    /// Sends a request of the author as the client would.
    fn send_own(&mut self, request: OwnRequest) {
        // a response that is dropped tells the author
        if self.server.phase != Phase::Up {
            return;
        }
        let id = self.ids.next();
        let message = self.author.ask(id, request);
        self.log.message(Direction::ToServer, &message);
        self.server.lines.push_back(message::to_line(&message));
    }

    /// Takes the response to a request of the author.
    fn take_own(&mut self, id: &str, message: &Value) -> bool {
        let Some((response, took)) = self.author.take(id) else { return false };
        self.log.answer(Direction::ToClient, message, Some(took), None);
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
        if self.listing.is_begun() || !(is_modern || has_tools().is_some()) {
            return;
        }
        let id = self.ids.next();
        self.server.lines.push_back(self.listing.begin(id, without_progress(meta), self.list_wait));
    }

    /// Takes a page of the loop's own listing.
    fn take_listed(&mut self, id: &str, message: &Value) -> bool {
        let next_id = || self.ids.next();
        let Some(next) = self.listing.take(id, message, self.log.tools(), next_id) else { return false };
        self.server.lines.extend(next);
        true
    }

    fn take_from_server(&mut self, line: Vec<u8>) {
        let parsed = Line::parse(&line);
        if matches!(parsed, Line::Other) {
            let text: String = String::from_utf8_lossy(&line).chars().take(200).collect();
            let note = format!("the server wrote a line that is not JSON-RPC to its stdout: {text}");
            report(&format!("mcp-dev: {note}"));
            self.log.note(&note);
            self.client.lines.push_back(line);
            return;
        }
        let line = parsed.passed(line, |message| self.take_message(message));
        if !line.is_empty() {
            self.client.lines.push_back(line);
        }
    }

    /// Notes a message of the server.
    fn take_message(&mut self, message: &Value) -> Pass {
        let mut took = None;
        let mut schema = None;
        let pass = match kind(message) {
            Kind::Request { id, .. } => {
                schema = message["params"].get("requestedSchema").cloned();
                self.note_asked(id, message, schema.clone())
            }
            Kind::Notification { method } => self.take_notification(method, message),
            Kind::Response { id } => {
                let is_own = id.as_str().is_some_and(|id| {
                    self.take_listed(id, message)
                        || self.take_own(id, message)
                        || self.take_replayed(id, message)
                });
                // a stream goes on with the next process
                if is_own || (self.is_replaced() && self.calls.is_stream(id)) {
                    return Pass::Drop;
                }
                let call = self.calls.take(id);
                took = call.as_ref().map(Call::took);
                schema = call.as_ref().filter(|call| call.is_unknown).map(|_| Value::Bool(false));
                let take = |call: Call| {
                    call.effect.take_response(message, self.handshake.as_mut(), self.log.tools())
                };
                call.and_then(take).into()
            }
            Kind::Other => Pass::AsItIs,
        };
        let shown = match &pass {
            Pass::Drop => return pass,
            Pass::AsItIs => message,
            Pass::Changed(changed) => changed,
        };
        self.log.answer(Direction::ToClient, shown, took, schema.as_ref());
        pass
    }

    /// Notes a request of the server.
    fn note_asked(&mut self, id: &Value, message: &Value, schema: Option<Value>) -> Pass {
        // its answer could not be delivered
        if self.is_replaced() {
            return Pass::Drop;
        }
        if self.asked.is_full() {
            let text = "the client has too many requests to answer: ask again later";
            self.log.note("a request of the server is refused: its client has too many to answer");
            // a server that does not read gets no refusals either
            if self.server.lines.len() < QUEUE {
                self.server.lines.push_back(message::to_line(&not_answered(id, "too_many", text)));
            }
            return Pass::Drop;
        }
        let Some(fresh) = self.asked.note(id, schema, || self.ids.next()) else {
            return Pass::AsItIs;
        };
        message::with_id(message, fresh).into()
    }

    fn take_notification(&mut self, method: &str, message: &Value) -> Pass {
        let params = &message["params"];
        match method {
            "notifications/subscriptions/acknowledged"
            | "notifications/events/active"
            | "notifications/events/event"
            | "notifications/events/heartbeat" => {
                self.calls.take_notification(&params["_meta"][META_SUBSCRIPTION_ID], method, message)
            }
            "notifications/events/terminated" if self.is_replaced() => {
                let goes_on = self.calls.is_stream(&params["_meta"][META_SUBSCRIPTION_ID]);
                if goes_on { Pass::Drop } else { Pass::AsItIs }
            }
            "notifications/cancelled" => {
                let id = &params["requestId"];
                if self.calls.is_stream(id) {
                    if self.is_replaced() {
                        return Pass::Drop;
                    }
                    self.calls.take(id);
                    return Pass::AsItIs;
                }
                match self.asked.shown(id) {
                    Some(shown) if shown != *id => {
                        let mut message = message.clone();
                        message["params"]["requestId"] = shown;
                        Pass::Changed(message)
                    }
                    _ => Pass::AsItIs,
                }
            }
            _ => Pass::AsItIs,
        }
    }

    /// The program is another one.
    fn take_change(&mut self) {
        if let Some(failure) = self.server.launcher.failure() {
            self.log.note(&failure);
            return;
        }
        if self.server.child.is_some() && self.server.launcher.generation() == self.server.generation {
            return;
        }
        self.server.failures = 0;
        match &mut self.server.child {
            Some(child) if !self.client.is_closing => {
                child.stop();
                self.server.enter(Phase::Stopping, None);
            }
            Some(_) => {}
            None => self.server.enter(Phase::Down, None),
        }
    }

    fn take_deadline(&mut self) {
        self.server.deadline = None;
        match self.server.phase {
            Phase::Down => {}
            Phase::Replaying { .. } => {
                let note =
                    "the new process has not answered the handshake in time; its client goes on with it";
                report(&format!("mcp-dev: {note}"));
                self.log.note(note);
                self.go_on();
            }
            Phase::Up | Phase::Stopping => {
                if let Some(child) = &mut self.server.child {
                    child.stop();
                }
            }
        }
    }

    async fn start(&mut self) {
        let Some(program) = self.server.launcher.program() else { return };
        self.server.started = Some(Instant::now());
        self.server.generation = self.server.launcher.generation();
        self.listing = Listing::default();
        self.log.tools().begin(self.server.generation);
        self.server.starts += 1;
        match Child::start(&program, self.log.trace(), self.log.name()).await {
            Ok(child) => self.server.child = Some(child),
            Err(error) => {
                self.note_failure(&format!("`{}` cannot be started: {error}", program.name()));
                return;
            }
        }
        self.log.state("started", &program.name());
        let Some(handshake) = self.handshake.as_ref().filter(|handshake| handshake.result.is_some()) else {
            self.go_on();
            return;
        };
        let params = handshake.params.clone();
        let id = self.ids.next();
        self.server.lines.push_back(message::request(&id, "initialize", &params));
        // the rest follows its answer
        self.server.enter(Phase::Replaying { waiting: HashSet::from([id]) }, Some(REPLAY));
    }

    /// Takes the response to a request of our own.
    fn take_replayed(&mut self, id: &str, message: &Value) -> bool {
        let Phase::Replaying { waiting } = &mut self.server.phase else {
            return id.starts_with(&self.ids.prefix);
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
                self.log.note(&note);
            }
            if handshake.is_initialized {
                self.server.lines.push_back(message::notification("notifications/initialized"));
            }
            let requests = handshake.repeated();
            let mut waiting = HashSet::new();
            for (method, params) in requests {
                let id = self.ids.next();
                self.server.lines.push_back(message::request(&id, method, &params));
                waiting.insert(id);
            }
            if !waiting.is_empty() {
                self.server.phase = Phase::Replaying { waiting };
                return true;
            }
        } else if let Some(error) = message.get("error") {
            let note = format!("the new process refuses the repeated messages: {error}");
            report(&format!("mcp-dev: {note}"));
            self.log.note(&note);
        }
        self.go_on();
        true
    }

    /// The process knows what its predecessor knew.
    fn go_on(&mut self) {
        self.server.enter(Phase::Up, None);
        self.list_tools(&Value::Null);
        self.server.lines.extend(self.calls.again());
        if self.server.starts > 1 {
            self.send_list_changes();
        }
    }

    /// Tells the client that lists may have changed, where it wants to know.
    fn send_list_changes(&mut self) {
        let mut lines = self.handshake.as_ref().map(Handshake::list_changes).unwrap_or_default();
        lines.extend(self.calls.list_changes());
        for message in lines {
            self.log.message(Direction::ToClient, &message);
            self.client.lines.push_back(message::to_line(&message));
        }
    }

    /// The process has ended.
    async fn take_end(&mut self) {
        let Some(mut child) = self.server.child.take() else { return };
        let status = child.status().await;
        self.server.lines.clear();
        self.author.clear();
        let was_stopped = self.server.phase == Phase::Stopping;
        let stderr = child.stderr();
        drop(child);
        self.drop_asked();
        let status = status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
        if was_stopped {
            self.log.state("stopped", "");
            self.end_calls("restarted", "the server was restarted before it answered: send it again");
            self.server.enter(Phase::Down, None);
            return;
        }
        self.end_calls("crashed", &format!("the server has exited ({status}) before it answered, and is started again: send it again\n{stderr}"));
        if self.server.started.is_some_and(|started| started.elapsed() >= STABLE) {
            self.server.failures = 0;
        }
        let lines = if stderr.is_empty() { String::new() } else { format!("\n{stderr}") };
        self.note_failure(&format!("the server has exited ({status}){lines}"));
    }

    /// It is started again, later and later.
    fn note_failure(&mut self, what: &str) {
        let pause = pause_after(self.server.failures);
        self.server.failures += 1;
        if !self.client.is_closing {
            // its stderr was printed as it came
            let reason = what.lines().next().unwrap_or_default();
            report(&format!("mcp-dev: {reason}\nmcp-dev: it is started again in {} ms", pause.as_millis()));
        }
        self.log.state("failed", what);
        what.clone_into(&mut self.server.last_failure);
        self.server.enter(Phase::Down, Some(pause));
    }

    /// Answers the requests that the process has not answered, but for those that the next one gets.
    fn end_calls(&mut self, reason: &str, detail: &str) {
        let lines = self.calls.end(self.client.is_closing, reason, detail, &self.log);
        self.client.lines.extend(lines);
    }

    /// Answers the requests that wait for another process, but for those that only it can answer.
    fn end_waiting(&mut self) {
        if self.calls.wait_no_longer() {
            let failure = self.server.failure();
            self.end_calls(
                "not_running",
                &format!("the server does not run: send it again when it does\n{failure}"),
            );
        }
    }

    /// Withdraws the questions of a process that is gone.
    fn drop_asked(&mut self) {
        for message in self.asked.withdraw() {
            self.log.message(Direction::ToClient, &message);
            self.client.lines.push_back(message::to_line(&message));
        }
    }
}

async fn next_line(child: &mut Option<Child>) -> Option<Vec<u8>> {
    match child {
        Some(child) => child.stdout.recv().await,
        None => std::future::pending().await,
    }
}

async fn reserve(stdin: Option<mpsc::Sender<Vec<u8>>>) -> Option<mpsc::OwnedPermit<Vec<u8>>> {
    stdin?.reserve_owned().await.ok()
}
