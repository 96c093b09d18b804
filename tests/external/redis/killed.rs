//! Clients of three replicas that are killed and started again meanwhile, behind nginx, which keeps a session at its
//! replica, and on a store that stops. Each request ends in its right result, or in an error that says that it may be sent again; each
//! subscription that is opened is followed by a change; nothing is consumed twice, and nothing that was acknowledged is
//! lost. The table of what became of the requests is written to the terminal.
//!
//! The clients are those of the official SDKs and of this crate, both eras, and one that sends each retry four times at
//! once. `CLIENTS_SECONDS=600` lets them go on for longer than half a minute.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use mcp_external_tests::{
    Missing, manifest_dir,
    nginx::Nginx,
    package,
    redis::RedisServer,
    replicas::{Replicas, free_addresses},
    skip,
};
use mcp_runtime::{
    Revision,
    client::{CallResult, ChangeEvent, Client, Error},
    client_request::Answer,
};
use mcp_tests::{
    programs::child,
    support::{HttpRequest, PATIENCE, TestFolder, server_key, unique},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Longer than anything takes, also on a busy machine.
const ANSWER: Duration = Duration::from_secs(40);
/// Between two replicas that are killed.
const KILLED_EVERY: Duration = Duration::from_secs(5);
/// How long one is gone.
const GONE: Duration = Duration::from_millis(500);

/// The connection to a replica, or the one that it has to its client, has broken, or the proxy had no whole response.
const BROKEN: [&str; 11] = [
    "error HTTP status 502",
    "error CLIENT_HTTP_NOT_IMPLEMENTED 502:",
    "error CLIENT_HTTP_FAILED_TO_OPEN_STREAM 502:",
    "fetch failed",
    "terminated",
    // the SDK for Python says no more of any status
    "error -32603: Server returned an error response",
    "error -32000: Connection closed",
    // the SDK for Python resumes a stream twice, and replicas are killed faster than one is found to be gone
    "error -32000: SSE stream ended and reconnection attempts were exhausted",
    "peer closed connection",
    "error the server closed the connection",
    "error not connected:",
];

/// Something happens to the replicas or to the store, and requests may end in these errors because of it, but in no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// Replicas are killed.
    Killed,
    /// The store is away for a while, and has everything afterwards.
    Away,
    /// The store is away, and has nothing afterwards.
    Forgotten,
    /// Nothing.
    None,
}

impl Trouble {
    /// Whether a request may end so: it says that it may be sent again, or that its outcome is unknown.
    fn explains(self, kind: &str, outcome: &str) -> bool {
        let is_one_of = |reasons: &[&str]| reasons.iter().any(|reason| outcome.contains(reason));
        let is_of_store = is_one_of(&[
            "error sessions cannot be looked up at the moment",
            "error tasks cannot be reached at the moment",
            "error the task cannot be saved",
            "error subscriptions cannot be kept at the moment",
            "503",
        ]);
        match self {
            Self::None => false,
            Self::Killed => {
                is_one_of(&BROKEN)
                    || is_one_of(&["broken: "]) && kind == "client"
                    || is_one_of(&["error of the time limit"]) && kind.ends_with(", legacy")
                    // one that may be begun again is given up after three lost processes
                    || is_one_of(&["the server that ran it has stopped"]) && kind.contains("job")
                    || is_one_of(&["error of the tool"]) && kind.starts_with("pay")
                    || is_one_of(&["no answer to the call", "no answer to the retry"]) && kind == "retries"
                    // one that has just started may have no connection to the store yet
                    || is_of_store
            }
            Self::Away => is_of_store || is_one_of(&["error of the tool"]) && kind.starts_with("pay"),
            Self::Forgotten => {
                Self::Away.explains(kind, outcome)
                    // one that has ended, or that its process has not stored again yet
                    || is_one_of(&["error unknown task"]) && kind.contains("job")
                    // see the table of what a store without persistence forgets
                    || outcome == PAID_TWICE && kind == "retries"
            }
        }
    }
}

/// Three replicas with a store, and what they have recorded.
struct Cluster {
    replicas: Replicas,
    redis: RedisServer,
    proxy: Nginx,
    ledger: PathBuf,
    /// That of the ledger.
    _folder: TestFolder,
}

impl Cluster {
    fn start() -> Result<Self, Missing> {
        let redis = RedisServer::start()?;
        let folder = TestFolder::default();
        let ledger = folder.write("ledger", "");
        let key: String = server_key(17).iter().map(|byte| format!("{byte:02x}")).collect();
        let url = redis.url();
        let path = ledger.display().to_string();
        let environment = [("MCP_SERVER_KEYS", key.as_str()), ("MCP_SHARED", &url), ("LEDGER", &path)];
        let program = env!("CARGO_BIN_EXE_replica").into();
        let replicas = Replicas::start(program, manifest_dir().to_owned(), &environment);
        let [at] = free_addresses();
        let proxy = Nginx::start(at, &replicas.addresses())?;
        Ok(Self { replicas, redis, proxy, ledger, _folder: folder })
    }

    /// The invoices that were paid, each once, and how often tasks were begun again.
    fn recorded(&self) -> (HashSet<String>, usize) {
        let (once, twice, again) = self.recorded_more_than_once();
        assert!(twice.is_empty(), "consumed twice: {twice:?}");
        (once, again)
    }

    /// The invoices that were paid, those of them that were paid again, and how often tasks were begun again.
    fn recorded_more_than_once(&self) -> (HashSet<String>, Vec<String>, usize) {
        let text = fs::read_to_string(&self.ledger).expect("the ledger");
        let (mut once, mut twice, mut runs) = (HashSet::new(), Vec::new(), BTreeMap::<_, usize>::new());
        for line in text.lines() {
            if !once.insert(line.to_owned()) {
                twice.push(line.to_owned());
            }
            if let Some((name, _)) = line.strip_prefix("run of ").and_then(|rest| rest.split_once(' ')) {
                *runs.entry(name.to_owned()).or_default() += 1;
            }
        }
        once.retain(|line| !line.starts_with("run of "));
        (once, twice, runs.values().map(|runs| runs - 1).sum())
    }

    /// Kills one replica after the other and starts it again; how many.
    fn kill_until(&self, end: Instant) -> usize {
        for n in 0.. {
            if Instant::now() + KILLED_EVERY > end {
                return n;
            }
            thread::sleep(KILLED_EVERY.saturating_sub(GONE));
            self.replicas.kill(n % 3);
            thread::sleep(GONE);
            self.replicas.restart(n % 3);
        }
        0
    }
}

/// Several of the four retries of one call have paid.
const PAID_TWICE: &str = "WRONG: paid twice";

/// Outcomes that need no trouble.
const RIGHT: [&str; 6] = [
    "right",
    "opened",
    "followed by a change",
    "connected, ",
    // those that a client has opened again, and ended
    "ended in an orderly way",
    "broken before a change",
];

/// How many requests of each kind had which outcome, and which invoices were reported as paid.
#[derive(Default)]
struct Report {
    counts: BTreeMap<String, BTreeMap<String, u64>>,
    paid: Vec<String>,
}

impl Report {
    fn count(&mut self, kind: &str, outcome: &str) {
        *self.counts.entry(kind.into()).or_default().entry(outcome.into()).or_default() += 1;
    }

    fn parse(printed: &str) -> Self {
        let value: Value = serde_json::from_str(printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
        Self {
            counts: serde_json::from_value(value["counts"].clone()).expect("counts"),
            paid: serde_json::from_value(value["paid"].clone()).expect("invoices"),
        }
    }

    fn of(&self, kind: &str, outcome: &str) -> u64 {
        self.counts.get(kind).and_then(|outcomes| outcomes.get(outcome)).copied().unwrap_or_default()
    }

    fn errors(&self, kind: &str) -> u64 {
        let outcomes = self.counts.get(kind).into_iter().flatten();
        outcomes.filter(|(outcome, _)| outcome.starts_with("error")).map(|(_, count)| count).sum()
    }

    /// Writes the table, and checks it.
    fn check(&self, client: &str, recorded: &HashSet<String>, trouble: Trouble) {
        let mut table = format!("\n| {client} | outcome | |\n|---|---|--:|\n");
        let mut wrong = Vec::new();
        for (kind, outcomes) in &self.counts {
            for (outcome, count) in outcomes {
                table.push_str(&format!("| {kind} | {} | {count} |\n", outcome.replace('\n', " ")));
                let is_right = RIGHT.iter().any(|right| outcome.starts_with(right));
                if !is_right && !trouble.explains(kind, outcome) {
                    wrong.push(format!("{kind}: {count} {outcome}"));
                }
            }
        }
        // not `eprintln!`, which the harness captures
        let _ = std::io::stderr().write_all(table.as_bytes());
        let lost: Vec<_> = self.paid.iter().filter(|invoice| !recorded.contains(*invoice)).collect();
        assert!(lost.is_empty(), "{client}: paid and not recorded: {lost:?}");
        assert!(wrong.is_empty(), "{client}: {wrong:#?}");
    }
}

/// What our client's requests count; clones count the same.
#[derive(Clone, Default)]
struct Counter {
    report: Arc<Mutex<Report>>,
    /// Whether they have to end, before their time is over.
    is_stopped: Arc<AtomicBool>,
}

impl Counter {
    fn count(&self, kind: &str, outcome: &str) {
        self.report.lock().expect("no panic").count(kind, outcome);
    }

    fn paid(&self, invoice: &str) {
        self.report.lock().expect("no panic").paid.push(invoice.to_owned());
    }

    fn is_over(&self, end: Instant) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || Instant::now() > end
    }

    fn take(&self) -> Report {
        std::mem::take(&mut *self.report.lock().expect("no panic"))
    }
}

/// What an error says, without what differs from one to the next.
fn told(error: &Error) -> String {
    match error {
        Error::Timeout { .. } => "WRONG: no answer".into(),
        Error::Invalid { .. } | Error::Unsupported { .. } => format!("WRONG: {error}"),
        _ => format!("error {error}").lines().next().unwrap_or_default().chars().take(160).collect(),
    }
}

/// One client of this crate, and what it sends.
#[derive(Clone)]
struct Session {
    client: Client,
    era: &'static str,
    counter: Counter,
    end: Instant,
}

impl Session {
    fn is_over(&self) -> bool {
        self.counter.is_over(self.end)
    }

    async fn ask(
        &self,
        kind: &str,
        request: impl Future<Output = Result<CallResult, Error>>,
        judge: impl FnOnce(&CallResult) -> String,
    ) {
        // a task that begins again waits until the lease of the process that is gone has ended, several times perhaps
        let limit = if kind.contains("job") { 6 * ANSWER } else { ANSWER };
        let kind = format!("{kind}, {}", self.era);
        match timeout(limit, request).await {
            Ok(Ok(result)) => self.counter.count(&kind, &judge(&result)),
            Ok(Err(error)) => {
                self.counter.count(&kind, &told(&error));
                sleep(Duration::from_millis(100)).await;
            }
            Err(_) => self.counter.count(&kind, "WRONG: no answer"),
        }
    }

    async fn calls(self, name: &'static str, ms: u64) {
        let mut n = 0;
        while !self.is_over() {
            n += 1;
            let message = format!("{name} {n}");
            let mut arguments = json!({ "message": message });
            if ms > 0 {
                arguments["ms"] = ms.into();
            }
            let judge = |result: &CallResult| match result.text() {
                text if text == message && !result.is_error => "right".into(),
                text => format!("WRONG: {text}"),
            };
            self.ask(name, self.client.call(name, arguments).into_future(), judge).await;
            sleep(Duration::from_millis(30)).await;
        }
    }

    async fn pays(self) {
        while !self.is_over() {
            let invoice = unique();
            let judge = |result: &CallResult| {
                let text = result.text();
                match text.as_str() {
                    _ if result.is_error && is_told(&text) => "error of the tool".into(),
                    _ if !result.is_error && text == format!("paid {invoice}") => {
                        self.counter.paid(&invoice);
                        "right".into()
                    }
                    text => format!("WRONG: {text}"),
                }
            };
            let request = self.client.call("pay", json!({ "invoice": invoice })).into_future();
            self.ask("pay", request, judge).await;
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Tasks of some length.
    async fn tasks(self, name: &'static str, ms: u64) {
        while !self.is_over() {
            let job = unique();
            let judge = |result: &CallResult| match result.text() {
                text if !result.is_error && text == format!("{job} is done") => "right".into(),
                text => format!("WRONG: {text}"),
            };
            let request = self.client.call(name, json!({ "ms": ms, "name": job })).into_future();
            self.ask(&format!("{name} of {ms} ms"), request, judge).await;
        }
    }

    /// One subscription, which the client opens again; a change must follow each time.
    async fn listens(self, restored: Arc<AtomicU64>) {
        let changes = Arc::new(AtomicU64::new(0));
        let seen = changes.clone();
        let subscribed = self.client.subscribe("test://state", move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
        });
        let subscription = match timeout(ANSWER, subscribed).await {
            Ok(Ok(subscription)) => subscription,
            Ok(Err(error)) => return self.counter.count("subscription", &told(&error)),
            Err(_) => return self.counter.count("subscription", "WRONG: no answer"),
        };
        self.counter.count("subscription", "opened");
        let mut followed = (u64::MAX, 0);
        let mut since = Instant::now();
        while !self.is_over() {
            let _may_fail = timeout(ANSWER, self.client.call("touch", json!({})).into_future()).await;
            sleep(Duration::from_millis(500)).await;
            let (opened, changes) = (restored.load(Ordering::SeqCst), changes.load(Ordering::SeqCst));
            if followed.0 != opened && changes > followed.1 {
                self.counter.count("subscription", "followed by a change");
                followed = (opened, changes);
                since = Instant::now();
            } else if followed.0 == opened {
                followed.1 = changes;
                since = Instant::now();
            } else if since.elapsed() > ANSWER {
                self.counter.count("subscription", "WRONG: no change follows");
                since = Instant::now();
            }
        }
        drop(subscription);
    }
}

/// Whether a tool that could not consume its responses says so.
fn is_told(text: &str) -> bool {
    // the last one: the store was away for longer than a call waits for its client
    ["used before", "cannot be told", "no answer to `agreed` came in time"]
        .iter()
        .any(|why| text.contains(why))
}

/// Sends requests by clients of this crate until the time is over.
async fn ours(at: SocketAddr, end: Instant, counter: Counter) -> Report {
    let mut running = Vec::new();
    for (revision, era) in [(Revision::V2025_11_25, "legacy"), (Revision::V2026_07_28, "modern")] {
        let restored = Arc::new(AtomicU64::new(0));
        let client = loop {
            let (restored, of_stream) = (restored.clone(), counter.clone());
            let builder = Client::builder()
                .revision(revision)
                .request_timeout(ANSWER)
                .limits(|limits| limits.elicitation_rate("1000/1s").server_requests(1000))
                .on_change(move |event| match event {
                    ChangeEvent::Restored => {
                        restored.fetch_add(1, Ordering::SeqCst);
                        of_stream.count("subscription", "opened again");
                    }
                    ChangeEvent::Ended => of_stream.count("subscription", "ended in an orderly way"),
                    _ => {}
                })
                .on_elicit(|_| async { Answer::Accept(json!({ "value": true })) });
            match builder.connect(format!("http://{at}/mcp")).await {
                Ok(client) => break client,
                Err(error) => counter.count("client", &told(&error)),
            }
            sleep(Duration::from_millis(200)).await;
        };
        let session = Session { client, era, counter: counter.clone(), end };
        for _ in 0..2 {
            running.push(tokio::spawn(session.clone().calls("echo", 0)));
        }
        running.push(tokio::spawn(session.clone().calls("nap", 300)));
        running.push(tokio::spawn(session.clone().pays()));
        if era == "modern" {
            for ms in [50, 1500, 6000] {
                running.push(tokio::spawn(session.clone().tasks("job", ms)));
            }
            running.push(tokio::spawn(session.clone().tasks("restartable_job", 3000)));
            running.push(tokio::spawn(session.clone().listens(restored)));
        }
    }
    running.push(tokio::spawn(retries(at, counter.clone(), end)));
    for running in running {
        running.await.expect("no panic");
    }
    counter.take()
}

/// Sends one request over a connection of its own; `None` without a whole response.
async fn raw(at: SocketAddr, request: &HttpRequest) -> Option<Value> {
    let sent = async {
        let mut stream = TcpStream::connect(at).await.ok()?;
        stream.write_all(&request.clone().header("Connection", "close").bytes()).await.ok()?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.ok()?;
        let text = String::from_utf8_lossy(&response).into_owned();
        let body = text.split_once("\r\n\r\n")?.1;
        serde_json::from_str(body).ok()
    };
    timeout(ANSWER, sent).await.ok()?
}

/// Answers a question, and sends that four times at once: at most one of them pays.
async fn retries(at: SocketAddr, counter: Counter, end: Instant) {
    while !counter.is_over(end) {
        let invoice = unique();
        let call = |mut params: Value| {
            params["name"] = "pay".into();
            params["arguments"] = json!({ "invoice": invoice });
            params["_meta"] =
                json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } } });
            HttpRequest::modern(1, "tools/call", params)
        };
        let Some(asked) = raw(at, &call(json!({}))).await else {
            counter.count("retries", "no answer to the call");
            continue;
        };
        let answer = json!({ "agreed": { "action": "accept", "content": { "value": true } } });
        let state = &asked["result"]["requestState"];
        if !state.is_string() {
            counter.count("retries", &format!("WRONG: {asked}"));
            continue;
        }
        let retry = call(json!({ "inputResponses": answer, "requestState": state }));
        let mut sent = Vec::new();
        for _ in 0..4 {
            let retry = retry.clone();
            sent.push(tokio::spawn(async move { raw(at, &retry).await }));
        }
        let mut paid = 0;
        for sent in sent {
            let Some(reply) = sent.await.expect("no panic") else {
                counter.count("retries", "no answer to the retry");
                continue;
            };
            let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
            if text == format!("paid {invoice}") {
                paid += 1;
                counter.paid(&invoice);
                counter.count("retries", "right: paid");
            } else if is_told(text) {
                counter.count("retries", "right: refused");
            } else {
                counter.count("retries", &format!("WRONG: {reply}"));
            }
        }
        if paid > 1 {
            counter.count("retries", PAID_TWICE);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

fn run_ours(at: SocketAddr, end: Instant, counter: Counter) -> Report {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(ours(at, end, counter))
}

/// An official SDK, and the script that uses it.
struct Script {
    interpreter: PathBuf,
    script: PathBuf,
}

impl Script {
    fn python() -> Result<Self, Missing> {
        let requirements = read("interop/python/requirements.txt");
        Ok(Self {
            interpreter: package::python(&requirements)?,
            script: manifest_dir().join("redis/clients/clients.py"),
        })
    }

    fn typescript() -> Result<Self, Missing> {
        let dir = package::npm(&read("interop/typescript/package.json"))?;
        let script = dir.join("clients.mjs");
        // Node resolves packages relative to the importing file
        package::write(&script, &read("redis/clients/clients.mjs"));
        Ok(Self { interpreter: package::node(20)?, script })
    }

    fn run(&self, url: &str, end: Instant, eras: &[&str]) -> Report {
        let left = end.saturating_duration_since(Instant::now());
        let mut command = Command::new(&self.interpreter);
        command.arg(&self.script).arg(url).arg(left.as_secs().to_string()).args(eras);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let finished =
            child::run(&mut command, "", left + 3 * ANSWER).expect("an installed interpreter runs");
        Report::parse(&finished.or_panic("the clients"))
    }
}

fn read(name: &str) -> String {
    let path: &Path = &manifest_dir().join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read `{}`: {error}", path.display()))
}

/// A client that sends until a time.
type Sender = Box<dyn FnOnce(&Cluster, Instant) -> Report + Send>;

/// Lets clients send while replicas are killed, and checks what they report.
fn while_replicas_are_killed(lasts: Duration, clients: Vec<(&'static str, Sender)>) {
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(missing) => return skip("clients of replicas that are killed", &missing),
    };
    let end = Instant::now() + lasts;
    let (reports, kills) = thread::scope(|scope| {
        let cluster = &cluster;
        let sending: Vec<_> =
            clients.into_iter().map(|(name, send)| (name, scope.spawn(move || send(cluster, end)))).collect();
        let kills = cluster.kill_until(end);
        let reports: Vec<_> =
            sending.into_iter().map(|(name, sent)| (name, sent.join().expect("no panic"))).collect();
        (reports, kills)
    });
    let (recorded, again) = cluster.recorded();
    let line = format!(
        "\n{kills} replicas were killed in {} s, {} invoices paid, {again} tasks begun again\n",
        lasts.as_secs(),
        recorded.len(),
    );
    let _ = std::io::stderr().write_all(line.as_bytes());
    for (name, report) in reports {
        report.check(name, &recorded, Trouble::Killed);
        for era in ["legacy", "modern"] {
            for kind in ["echo", "nap", "pay"] {
                assert!(report.of(&format!("{kind}, {era}"), "right") > 0, "{name}: no {kind}, {era}");
            }
            for kind in ["nap", "pay"] {
                let silent = report.of(&format!("{kind}, {era}"), "error of the time limit");
                assert!(silent <= kills as u64, "{name}: {silent} of `{kind}`, {era}, are not answered");
            }
            // two are sent at once
            let (errors, broken) = (report.errors(&format!("echo, {era}")), 2 * kills as u64);
            assert!(errors <= broken, "{name}: {errors} errors of `echo`, {era}, of {kills} killed replicas");
        }
        let followed = report.of("subscription", "followed by a change");
        assert!(followed > 0, "{name}: no change has come");
    }
    let lasting: Vec<_> = cluster.redis.keys().into_iter().filter(|(_, expires)| *expires == -1).collect();
    assert!(lasting.is_empty(), "without an expiry: {lasting:?}");
}

fn script(script: Script) -> Sender {
    Box::new(move |cluster, end| script.run(&cluster.proxy.url(), end, &[]))
}

fn client() -> Sender {
    Box::new(|cluster, end| run_ours(cluster.proxy.address(), end, Counter::default()))
}

/// Lets the client of this crate send while the store stops for these times, ends its connections, and is killed and
/// started again, with what it has on disk or without anything.
fn while_the_store_stops(stops: &[u64], then: Trouble) {
    const BETWEEN: Duration = Duration::from_secs(3);
    let on_disk: &[&str] = match then {
        Trouble::Forgotten => &[],
        _ => &["--appendonly", "yes", "--appendfsync", "always"],
    };
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(missing) => return skip("requests while the store stops", &missing),
    };
    cluster.redis.restart(on_disk);
    let (counter, end) = (Counter::default(), Instant::now() + PATIENCE);
    let report = thread::scope(|scope| {
        let sent = scope.spawn(|| run_ours(cluster.proxy.address(), end, counter.clone()));
        // the trouble begins when the clients of both eras are served, which takes a while on a busy machine
        let is_awaited = |kind| counter.report.lock().expect("no panic").of(kind, "right") == 0;
        while ["echo, legacy", "job of 50 ms, modern"].into_iter().any(is_awaited) && !counter.is_over(end) {
            thread::sleep(Duration::from_millis(20));
        }
        for stop in stops {
            thread::sleep(BETWEEN);
            cluster.redis.pause();
            thread::sleep(Duration::from_secs(*stop));
            cluster.redis.go_on();
        }
        thread::sleep(BETWEEN);
        cluster.redis.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        thread::sleep(BETWEEN);
        cluster.redis.restart(on_disk);
        thread::sleep(BETWEEN);
        counter.is_stopped.store(true, Ordering::Relaxed);
        sent.join().expect("no panic")
    });
    let (recorded, twice, again) = cluster.recorded_more_than_once();
    let line = format!("\n{} invoices paid, {again} tasks begun again\n", recorded.len());
    let _ = std::io::stderr().write_all(line.as_bytes());
    report.check(
        &format!("client of this crate; the store stops for {stops:?} s, {then:?}"),
        &recorded,
        then,
    );
    // one call is retried at a time, and the store forgets once that it was
    let forgotten = if then == Trouble::Forgotten { 1 } else { 0 };
    assert!(twice.len() <= forgotten * 3, "consumed twice: {twice:?}");
    assert!(report.of("retries", PAID_TWICE) <= forgotten as u64, "one call began before");
    for kind in ["echo, legacy", "echo, modern", "pay, modern", "job of 50 ms, modern"] {
        assert!(report.of(kind, "right") > 0, "no {kind}");
    }
    assert!(report.of("retries", "right: paid") > 0);
    assert_eq!(report.errors("echo, modern"), 0, "they need no store");
}

#[test]
fn requests_end_in_their_result_or_in_an_error_while_the_store_stops_and_is_restarted() {
    while_the_store_stops(&[5], Trouble::Away);
}

#[test]
fn requests_end_in_their_result_or_in_an_error_when_the_store_has_forgotten_everything() {
    while_the_store_stops(&[], Trouble::Forgotten);
}

/// Sends requests by a client of this crate over HTTP+SSE until the time is over.
async fn ours_over_http_sse(at: SocketAddr, end: Instant) -> Report {
    let counter = Counter::default();
    let builder = Client::builder()
        .http_sse()
        .request_timeout(ANSWER)
        .limits(|limits| limits.elicitation_rate("1000/1s").server_requests(1000))
        .on_elicit(|_| async { Answer::Accept(json!({ "value": true })) });
    let client = builder.connect(format!("http://{at}/sse")).await.expect("a connection");
    let session = Session { client, era: "http_sse", counter: counter.clone(), end };
    let running = [
        tokio::spawn(session.clone().calls("echo", 0)),
        tokio::spawn(session.clone().calls("nap", 300)),
        tokio::spawn(session.pays()),
    ];
    for running in running {
        running.await.expect("no panic");
    }
    counter.take()
}

#[test]
fn clients_of_http_sse_are_served_by_the_replica_of_their_address() {
    let started = Script::python().and_then(|python| Ok((python, Cluster::start()?)));
    let (python, cluster) = match started {
        Ok(started) => started,
        Err(missing) => return skip("clients of HTTP+SSE at replicas", &missing),
    };
    let (at, end) = (cluster.proxy.address(), Instant::now() + Duration::from_secs(4));
    let reports = thread::scope(|scope| {
        let theirs = scope.spawn(|| python.run(&format!("http://{at}/sse"), end, &["http_sse"]));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let ours = runtime.expect("a runtime").block_on(ours_over_http_sse(at, end));
        [("client of this crate", ours), ("Python SDK", theirs.join().expect("no panic"))]
    });
    let (recorded, _) = cluster.recorded();
    for (name, report) in reports {
        report.check(name, &recorded, Trouble::None);
        for kind in ["echo", "nap", "pay"] {
            assert!(report.of(&format!("{kind}, http_sse"), "right") > 0, "{name}: no {kind}");
        }
    }
}

#[test]
fn requests_end_in_their_result_or_in_an_error_while_replicas_are_killed() {
    let scripts = Script::python().and_then(|python| Ok((python, Script::typescript()?)));
    let (python, typescript) = match scripts {
        Ok(scripts) => scripts,
        Err(missing) => return skip("requests while replicas are killed", &missing),
    };
    let clients = vec![
        ("Python SDK", script(python)),
        ("TypeScript SDK", script(typescript)),
        ("client of this crate", client()),
    ];
    let seconds = std::env::var("CLIENTS_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    while_replicas_are_killed(Duration::from_secs(seconds.unwrap_or(30)), clients);
}
