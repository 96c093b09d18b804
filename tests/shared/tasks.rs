//! Tasks at many replicas: any of them answers for each, and those of a replica that stops are run again or have failed.
//! Functions are controlled by files, so that they may run in other processes, which are killed and stopped.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, SystemTime},
};

use mcp_runtime::{
    Principal, ProtocolError, Server, ServerBuilder,
    prelude::*,
    store::{Memory, Redis, Shared},
};
use mcp_tests::{
    external::{child::Guard, redis::RedisServer, skip},
    support::{BreakableStore, EventStream, HttpRequest, HttpServer, server_key, within},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::TestStore;

/// How long a replica that does not answer is waited for.
const LEASE: Duration = Duration::from_millis(800);

/// A directory whose files control functions, and have what they did.
struct Files(PathBuf);

impl Files {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-tasks-{test}-{}", std::process::id()));
        let _from_before = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a text")
    }

    /// Lets functions end.
    fn open(&self) {
        fs::write(self.0.join("go"), "").expect("a file");
    }

    /// What functions did.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|found| *found == line).count()
    }

    async fn until(&self, line: &str, times: usize) {
        for _ in 0..3000 {
            if self.count(line) >= times {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("`{line}` is not there {times} times: {:?}", self.lines());
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _best_effort = fs::remove_dir_all(&self.0);
    }
}

fn note(dir: &str, line: &str) {
    let log = fs::OpenOptions::new().create(true).append(true).open(Path::new(dir).join("log"));
    writeln!(log.expect("a file"), "{line}").expect("written");
}

async fn wait_for_go(dir: &str) {
    while !Path::new(dir).join("go").exists() {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Notes when it begins, is dropped and ends.
struct Noted(String);

impl Noted {
    fn new(dir: &str) -> Self {
        note(dir, "begun");
        Self(dir.to_owned())
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if Path::new(&self.0).exists() {
            note(&self.0, "over");
        }
    }
}

/// Waits for its file
#[mcp_tool(task)]
async fn hold(dir: String, ctx: &Context) -> &'static str {
    let _noted = Noted::new(&dir);
    ctx.progress(1.0).message("at the gate").send();
    wait_for_go(&dir).await;
    "held"
}

/// Waits for its file, and may begin again
#[mcp_tool(task(restart), idempotent)]
async fn again(dir: String, caller: Option<&Principal>, ctx: &Context) -> Result<String, ToolError> {
    let _noted = Noted::new(&dir);
    let ticket: u32 = ctx
        .once("ticket", async || {
            note(&dir, "ticket");
            Ok(7)
        })
        .await?;
    note(&dir, "has its ticket");
    wait_for_go(&dir).await;
    let caller = caller.map_or("anonymous", Principal::subject);
    let scopes = ctx.caller().map_or(0, |caller| caller.scopes().len());
    let region = ctx.meta("example.com/region").unwrap_or_default();
    Ok(format!("{ticket} {caller} {scopes} {region}"))
}

#[mcp_type]
struct Name {
    name: String,
}

/// Asks twice, and may begin again
#[mcp_tool(task(restart), idempotent)]
async fn ask(dir: String, ctx: &Context) -> Result<String, ToolError> {
    let _noted = Noted::new(&dir);
    let first: Name = ctx.elicit("first", "First name?").await?;
    note(&dir, "has the first");
    let second: Name = ctx.elicit("second", "Second name?").await?;
    Ok(format!("{} {}", first.name, second.name))
}

fn builder(store: impl Shared + 'static) -> ServerBuilder {
    Server::builder("sharing", "1")
        .stores(|stores| stores.keys([server_key(9)]))
        .limits(|limits| limits.shutdown_timeout(Duration::from_millis(10)))
        .http(|http| {
            http.caller(|parts| {
                let header = |name: &str| parts.headers.get(name)?.to_str().ok();
                let caller = Principal::new("test", header("x-user")?).with_scopes(["a", "b"]);
                Some(match header("x-seconds").and_then(|seconds| seconds.parse().ok()) {
                    Some(seconds) => caller.with_expiry(SystemTime::now() + Duration::from_secs_f64(seconds)),
                    None => caller,
                })
            })
        })
        .tasks(|tasks| tasks.lease(LEASE).ttl(Duration::from_secs(60)))
        .tool::<hold>()
        .tool::<again>()
        .tool::<ask>()
        .shared(store)
}

async fn two(store: &TestStore) -> [HttpServer; 2] {
    [HttpServer::start(builder(store.open())).await, HttpServer::start(builder(store.open())).await]
}

fn request(method: &str, mut params: Value) -> HttpRequest {
    params["_meta"] = json!({
        "io.modelcontextprotocol/clientCapabilities":
            { "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
        "example.com/region": "north",
    });
    HttpRequest::modern(1, method, params).header("x-user", "ada")
}

async fn start(at: SocketAddr, tool: &str, files: &Files) -> String {
    let params = json!({ "name": tool, "arguments": { "dir": files.path() } });
    let reply = request("tools/call", params).send(at).await.json();
    assert_eq!(reply["result"]["resultType"], "task", "{reply}");
    reply["result"]["taskId"].as_str().expect("an id").to_owned()
}

async fn get(at: SocketAddr, id: &str) -> Value {
    request("tasks/get", json!({ "taskId": id })).send(at).await.json()["result"].clone()
}

/// Waits for a status; the task.
async fn until(at: SocketAddr, id: &str, status: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..2000 {
        last = get(at, id).await;
        if last["status"] == status {
            return last;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the task is not {status}: {last}");
}

async fn answer(at: SocketAddr, id: &str, key: &str, name: &str) {
    let response = json!({ "action": "accept", "content": { "name": name } });
    let params = json!({ "taskId": id, "inputResponses": { key: response } });
    let reply = request("tasks/update", params).send(at).await.json();
    assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
}

async fn listen(at: SocketAddr, ids: &[&str]) -> (EventStream, Value) {
    let listen = request("subscriptions/listen", json!({ "notifications": { "taskIds": ids } }));
    let mut stream = EventStream::open(&listen, at).await.expect("a stream");
    let acknowledged = stream.message().await["params"]["notifications"].clone();
    (stream, acknowledged)
}

/// The next notification with a status.
async fn told(stream: &mut EventStream, status: &str) -> Value {
    loop {
        let message = stream.message().await;
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        if message["params"]["status"] == status {
            return message["params"].clone();
        }
    }
}

fn text(task: &Value) -> &str {
    task["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {task}"))
}

#[tokio::test]
async fn any_replica_polls_answers_and_cancels_a_task() {
    for store in TestStore::all("any_replica_polls_answers_and_cancels_a_task") {
        within(async {
            let [one, two] = two(&store).await;
            let files = Files::new("any");
            let id = start(one.address, "ask", &files).await;
            let asked = until(two.address, &id, "input_required").await;
            assert_eq!(asked["inputRequests"]["first"]["params"]["message"], "First name?", "{asked}");
            answer(two.address, &id, "first", "Ada").await;
            answer(two.address, &id, "unknown", "Eve").await;
            files.until("has the first", 1).await;
            until(one.address, &id, "input_required").await;
            answer(one.address, &id, "second", "Lovelace").await;
            for at in [&two, &one] {
                let done = until(at.address, &id, "completed").await;
                assert_eq!(text(&done), "Ada Lovelace", "{}", store.name);
            }
            // an answer that comes late has no effect
            answer(two.address, &id, "second", "Byron").await;
            assert_eq!(text(&get(two.address, &id).await), "Ada Lovelace");

            let files = Files::new("cancelled");
            let id = start(one.address, "hold", &files).await;
            files.until("begun", 1).await;
            let cancelled = request("tasks/cancel", json!({ "taskId": id })).send(two.address).await.json();
            assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
            assert_eq!(get(two.address, &id).await["status"], "cancelled");
            files.until("over", 1).await;
            files.open();
            assert_eq!(get(one.address, &id).await["status"], "cancelled");
        })
        .await;
    }
}

#[tokio::test]
async fn a_task_belongs_to_its_caller_at_every_replica() {
    for store in TestStore::all("a_task_belongs_to_its_caller_at_every_replica") {
        within(async {
            let [one, two] = two(&store).await;
            let files = Files::new("caller");
            let id = start(one.address, "hold", &files).await;
            for at in [&one, &two] {
                let get = request("tasks/get", json!({ "taskId": id }));
                let cancel = request("tasks/cancel", json!({ "taskId": id }));
                let update = request("tasks/update", json!({ "taskId": id, "inputResponses": {} }));
                for request in [get, cancel, update] {
                    let reply = request.with("x-user", "bob").send(at.address).await.json();
                    assert_eq!(reply["error"]["code"], -32602, "{reply}");
                }
                let listen = request("subscriptions/listen", json!({ "notifications": { "taskIds": [id] } }));
                let listen = listen.with("x-user", "bob");
                let mut stream = EventStream::open(&listen, at.address).await.expect("a stream");
                assert_eq!(stream.message().await["params"]["notifications"], json!({}));
            }
            assert_eq!(get(two.address, &id).await["status"], "working");
            if let Some(redis) = &store.redis {
                let everything = redis.everything();
                assert!(everything.contains("{sharing/tasks}"), "{everything}");
                for secret in [id.as_str(), "\"ada\"", "at the gate", files.path()] {
                    assert!(!everything.contains(secret), "`{secret}` can be read in {everything}");
                }
            }
            files.open();
        })
        .await;
    }
}

#[tokio::test]
async fn subscribers_at_any_replica_are_told_of_a_task() {
    for store in TestStore::all("subscribers_at_any_replica_are_told_of_a_task") {
        within(async {
            let [one, two] = two(&store).await;
            let files = Files::new("told");
            let id = start(one.address, "ask", &files).await;
            until(one.address, &id, "input_required").await;
            let (mut here, acknowledged) = listen(one.address, &[&id, "unknown"]).await;
            assert_eq!(acknowledged, json!({ "taskIds": [id] }), "{}", store.name);
            let (mut there, acknowledged) = listen(two.address, &[&id]).await;
            assert_eq!(acknowledged, json!({ "taskIds": [id] }));
            answer(two.address, &id, "first", "Ada").await;
            for stream in [&mut here, &mut there] {
                let asked = told(stream, "input_required").await;
                assert_eq!(asked["inputRequests"]["second"]["params"]["message"], "Second name?", "{asked}");
            }
            answer(one.address, &id, "second", "Lovelace").await;
            let polled = until(two.address, &id, "completed").await;
            for stream in [&mut here, &mut there] {
                let mut done = told(stream, "completed").await;
                done.as_object_mut().expect("params").remove("_meta");
                let mut polled = polled.clone();
                for key in ["_meta", "resultType"] {
                    polled.as_object_mut().expect("a task").remove(key);
                }
                assert_eq!(done, polled);
            }
            let (_stream, acknowledged) = listen(two.address, &[&id]).await;
            assert_eq!(acknowledged, json!({}), "it changes no more");
        })
        .await;
    }
}

#[tokio::test]
async fn a_replica_that_shuts_down_hands_its_tasks_over_or_lets_them_fail() {
    for store in TestStore::all("a_replica_that_shuts_down_hands_its_tasks_over") {
        within(async {
            let [mut one, two] = two(&store).await;
            let (held, again) = (Files::new("failed"), Files::new("handed"));
            let fails = start(one.address, "hold", &held).await;
            let goes_on = start(one.address, "again", &again).await;
            again.until("has its ticket", 1).await;
            let (mut stream, _) = listen(two.address, &[&fails, &goes_on]).await;
            one.stop();
            one.stopped().await;
            // without a wait for the lease
            let failed = told(&mut stream, "failed").await;
            assert_eq!(failed["taskId"], fails.as_str());
            assert_eq!(failed["statusMessage"], "the server that ran it has stopped", "{}", store.name);
            assert_eq!(failed["error"]["code"], -32603);
            again.until("has its ticket", 2).await;
            again.open();
            let done = until(two.address, &goes_on, "completed").await;
            assert_eq!(text(&done), "7 ada 2 \"north\"");
            assert_eq!((again.count("begun"), again.count("ticket")), (2, 1), "{:?}", again.lines());
        })
        .await;
    }
}

#[tokio::test]
async fn a_result_is_kept_while_the_store_is_away() {
    within(async {
        let store = BreakableStore::default();
        let one = HttpServer::start(builder(store.clone())).await;
        let two = HttpServer::start(builder(store.clone())).await;
        let files = Files::new("away");
        let id = start(one.address, "hold", &files).await;
        files.until("begun", 1).await;
        store.set_broken(true);
        files.open();
        files.until("over", 1).await;
        let away = request("tasks/get", json!({ "taskId": id })).send(two.address).await;
        assert_eq!((away.status, away.code()), (503, -32603), "it may be tried again");
        assert!(away.header("retry-after").is_some());
        let refused = json!({ "name": "hold", "arguments": { "dir": files.path() } });
        assert_eq!(request("tools/call", refused).send(one.address).await.status, 503);
        assert_eq!(request("tasks/cancel", json!({ "taskId": id })).send(two.address).await.status, 503);
        // for longer than a lease
        sleep(LEASE * 2).await;
        store.set_broken(false);
        let done = until(two.address, &id, "completed").await;
        assert_eq!((text(&done), files.count("begun")), ("held", 1));
    })
    .await;
}

#[tokio::test]
async fn a_store_that_was_away_for_longer_than_a_lease_costs_no_task() {
    within(async {
        let store = BreakableStore::default();
        let one = HttpServer::start(builder(store.clone())).await;
        let two = HttpServer::start(builder(store.clone())).await;
        let files = Files::new("lease");
        let id = start(one.address, "again", &files).await;
        files.until("has its ticket", 1).await;
        for _ in 0..2 {
            store.set_broken(true);
            sleep(LEASE * 2).await;
            store.set_broken(false);
            sleep(LEASE * 2).await;
        }
        files.open();
        let done = until(two.address, &id, "completed").await;
        assert_eq!((text(&done), files.count("begun")), ("7 ada 2 \"north\"", 1), "{:?}", files.lines());
    })
    .await;
}

#[tokio::test]
async fn nothing_of_a_task_is_left_after_its_time() {
    let redis = match RedisServer::start() {
        Ok(redis) => redis,
        Err(missing) => return skip("nothing_of_a_task_is_left_after_its_time", &missing),
    };
    within(async {
        let short = |builder: ServerBuilder| {
            builder.tasks(|tasks| tasks.lease(Duration::from_millis(100)).ttl(Duration::from_millis(500)))
        };
        let one = HttpServer::start(short(builder(Redis::at(redis.url())))).await;
        let two = HttpServer::start(short(builder(Redis::at(redis.url())))).await;
        let files = Files::new("left");
        files.open();
        for _ in 0..5 {
            let id = start(one.address, "hold", &files).await;
            until(two.address, &id, "completed").await;
        }
        assert!(redis.keys().iter().all(|(_, expires)| *expires > 0), "{:?}", redis.keys());
        let left = || {
            let keys = redis.keys().into_iter().map(|(key, _)| key);
            keys.filter(|key| !key.contains("{sharing/keys}")).collect::<Vec<_>>()
        };
        for _ in 0..1000 {
            if left().is_empty() {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?} are left", left());
    })
    .await;
}

/// A replica in a process of its own.
struct Replica {
    process: Guard,
    address: SocketAddr,
}

const URL: &str = "MCP_TEST_REPLICA_OF_TASKS";

impl Replica {
    fn start(redis: &RedisServer) -> Self {
        let process = Command::new(std::env::current_exe().expect("the test binary"))
            .args(["--exact", "tasks::a_replica_in_a_process", "--nocapture", "--test-threads=1"])
            .env(URL, redis.url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process = Guard(process.expect("it starts"));
        let stdout = BufReader::new(process.0.stdout.take().expect("a pipe"));
        let address = stdout.lines().map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("listens at ")?;
            address.parse().ok()
        });
        Self { process, address: address.expect("it listens") }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.process.0.id()).expect("an id")).expect("an id");
        kill_process(pid, signal).expect("it is ours");
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _status = self.process.0.wait();
    }
}

/// Not a test by itself: the process of a [`Replica`].
#[tokio::test]
async fn a_replica_in_a_process() {
    let Ok(url) = std::env::var(URL) else { return };
    let server = HttpServer::start(builder(Redis::at(url))).await;
    writeln!(std::io::stdout(), "\nlistens at {}", server.address).expect("to say where it listens");
    // it is killed before
    sleep(Duration::from_secs(120)).await;
}

fn redis(test: &str) -> Option<RedisServer> {
    RedisServer::start().map_err(|missing| skip(test, &missing)).ok()
}

#[tokio::test]
async fn a_killed_replica_has_its_tasks_run_again_once_or_failed() {
    let Some(redis) = redis("a_killed_replica_has_its_tasks_run_again_once_or_failed") else { return };
    within(async {
        let mut killed = Replica::start(&redis);
        let others = [Replica::start(&redis), Replica::start(&redis)];
        let (held, again, asked) = (Files::new("kill-a"), Files::new("kill-b"), Files::new("kill-c"));
        let fails = start(killed.address, "hold", &held).await;
        let goes_on = start(killed.address, "again", &again).await;
        let asks = start(killed.address, "ask", &asked).await;
        again.until("has its ticket", 1).await;
        until(others[0].address, &asks, "input_required").await;
        answer(others[0].address, &asks, "first", "Ada").await;
        asked.until("has the first", 1).await;
        until(others[0].address, &asks, "input_required").await;
        let (mut stream, _) = listen(others[1].address, &[&fails]).await;
        killed.kill();
        let failed = told(&mut stream, "failed").await;
        assert_eq!(failed["statusMessage"], "the server that ran it has stopped");
        // without a poll
        again.until("has its ticket", 2).await;
        again.open();
        let done = until(others[0].address, &goes_on, "completed").await;
        assert_eq!(text(&done), "7 ada 2 \"north\"");
        assert_eq!((again.count("begun"), again.count("ticket")), (2, 1), "{:?}", again.lines());
        // what its client has answered is not asked again, and what it was asked may be answered still
        asked.until("has the first", 2).await;
        let open = until(others[1].address, &asks, "input_required").await;
        let open: Vec<_> = open["inputRequests"].as_object().expect("requests").keys().cloned().collect();
        assert_eq!(open, ["second"]);
        answer(others[1].address, &asks, "second", "Lovelace").await;
        assert_eq!(text(&until(others[0].address, &asks, "completed").await), "Ada Lovelace");
        assert_eq!((held.count("begun"), asked.count("begun")), (1, 2));
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_was_stopped_and_wakes_changes_nothing() {
    let Some(redis) = redis("a_replica_that_was_stopped_and_wakes_changes_nothing") else { return };
    within(async {
        let (stopped, other) = (Replica::start(&redis), Replica::start(&redis));
        let (held, again) = (Files::new("stop-a"), Files::new("stop-b"));
        let fails = start(stopped.address, "hold", &held).await;
        let goes_on = start(stopped.address, "again", &again).await;
        again.until("has its ticket", 1).await;
        let (mut stream, _) = listen(stopped.address, &[&fails, &goes_on]).await;
        stopped.signal(Signal::STOP);
        again.until("has its ticket", 2).await;
        until(other.address, &fails, "failed").await;
        // both functions would end at once
        held.open();
        stopped.signal(Signal::CONT);
        held.until("over", 1).await;
        again.until("over", 1).await;
        assert_eq!(get(stopped.address, &fails).await["status"], "failed");
        again.open();
        until(other.address, &goes_on, "completed").await;
        // its own subscribers get what is true
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let message = stream.message().await["params"].clone();
            let status = message["status"].as_str().expect("a status").to_owned();
            if ["failed", "completed", "cancelled"].contains(&status.as_str()) {
                seen.push((message["taskId"].as_str().expect("an id").to_owned(), status));
            }
        }
        seen.sort();
        let mut right = vec![(fails, "failed".to_owned()), (goes_on, "completed".to_owned())];
        right.sort();
        assert_eq!(seen, right);
        assert_eq!((again.count("begun"), again.count("ticket")), (2, 1), "{:?}", again.lines());
    })
    .await;
}

#[tokio::test]
async fn a_task_whose_caller_has_expired_is_not_run_again() {
    let Some(redis) = redis("a_task_whose_caller_has_expired_is_not_run_again") else { return };
    within(async {
        let (mut killed, other) = (Replica::start(&redis), Replica::start(&redis));
        let files = Files::new("expired");
        let params = json!({ "name": "again", "arguments": { "dir": files.path() } });
        let call = request("tools/call", params).header("x-seconds", "1.5");
        let id =
            call.send(killed.address).await.json()["result"]["taskId"].as_str().expect("an id").to_owned();
        files.until("has its ticket", 1).await;
        sleep(Duration::from_millis(1500)).await;
        killed.kill();
        let failed = until(other.address, &id, "failed").await;
        let message = failed["statusMessage"].as_str().expect("a message");
        assert!(message.starts_with("the server that ran it has stopped"), "{message}");
        assert!(message.contains("authentication of its caller has expired"), "{message}");
        assert_eq!(files.count("begun"), 1);
    })
    .await;
}

#[tokio::test]
async fn a_task_that_ends_every_process_that_runs_it_fails_in_the_end() {
    let Some(redis) = redis("a_task_that_ends_every_process") else { return };
    within(async {
        let survivor = Replica::start(&redis);
        let mut others: Vec<Replica> = Vec::new();
        let files = Files::new("poison");
        let mut first = Replica::start(&redis);
        let id = start(first.address, "again", &files).await;
        files.until("has its ticket", 1).await;
        first.kill();
        others.push(survivor);
        // whichever process runs it is stopped
        for run in 2..=4 {
            files.until("has its ticket", run).await;
            let next = Replica::start(&redis);
            for mut other in others.drain(..) {
                other.kill();
            }
            others.push(next);
        }
        let failed = until(others[0].address, &id, "failed").await;
        let message = failed["statusMessage"].as_str().expect("a message");
        assert!(message.contains("has stopped, as 3 before it"), "{message}");
        assert_eq!(files.count("begun"), 4);
    })
    .await;
}

/// A value of the request
#[derive(Clone)]
struct Tenant;

/// Needs its request
#[mcp_tool(task(restart), idempotent)]
async fn bound(_tenant: &Tenant) -> &'static str {
    "bound"
}

#[test]
fn a_task_that_needs_its_request_cannot_be_restarted() {
    let built = mcp_runtime::server!().http(|http| http.from_request::<Tenant>()).tool::<bound>().build();
    let refused = built.expect_err("it needs its request").to_string();
    assert!(refused.contains("`&Tenant`") && refused.contains("a restart does not have"), "{refused}");
    mcp_runtime::server!().state(Tenant).tool::<bound>().build().expect("the server has it");
}

#[test]
fn a_tool_made_at_run_time_is_restarted_if_it_is_idempotent() {
    use mcp_runtime::tool::{TaskMode, ToolCall, ToolDef};
    let tool = || ToolDef::builder("made").restart_task();
    let handler = |_: ToolCall| async { Ok::<_, ProtocolError>("made") };
    let build = |tool| mcp_runtime::server!().add(tool).build();
    let refused = build(tool().handler(handler)).expect_err("no task").to_string();
    assert!(refused.contains("do not become tasks") && refused.contains("not `idempotent`"), "{refused}");
    let manual = tool().task(TaskMode::Manual).hints(|hints| hints.idempotent = Some(true));
    assert!(build(manual.handler(handler)).expect_err("manual").to_string().contains("begins in the call"));
    let right = tool().task(TaskMode::Capable).hints(|hints| hints.idempotent = Some(true));
    build(right.handler(handler)).expect("a server");
}

#[tokio::test]
async fn replicas_with_many_tasks_and_one_store_in_memory_lose_none() {
    within(async {
        let store: Arc<dyn Shared> = Arc::new(Memory::default());
        let mut servers = Vec::new();
        for _ in 0..3 {
            servers.push(HttpServer::start(builder(store.clone())).await);
        }
        let files = Files::new("many");
        let mut ids = Vec::new();
        for n in 0..60 {
            ids.push(start(servers[n % 3].address, "again", &files).await);
        }
        files.until("has its ticket", 60).await;
        let mut stopped = servers.remove(0);
        stopped.stop();
        stopped.stopped().await;
        files.until("has its ticket", 80).await;
        files.open();
        for (n, id) in ids.iter().enumerate() {
            let done = until(servers[n % 2].address, id, "completed").await;
            assert_eq!(text(&done), "7 ada 2 \"north\"");
        }
        assert_eq!((files.count("begun"), files.count("ticket")), (80, 60));
    })
    .await;
}
