//! Tasks at many replicas: any of them answers for each, and those of a replica that stops are run again or have failed.
//! Functions are controlled by files, so that they may run in other processes, which are killed and stopped.

use std::{
    fs,
    io::Write as _,
    net::SocketAddr,
    path::Path,
    time::{Duration, SystemTime},
};

use mcp_runtime::{
    FromContext, Principal, ProtocolError, Server, ServerBuilder,
    prelude::*,
    store::{Memory, Shared},
};
use mcp_tests::support::{
    AnyStore, BreakableStore, EventStream, HttpRequest, HttpServer, LineConnection, TestFolder, server_key,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::TestStore;

/// How long a replica that does not answer is waited for.
const LEASE: Duration = Duration::from_millis(800);

/// A directory whose files control functions, and have what they did.
pub(crate) struct Files(pub(crate) TestFolder);

impl Files {
    pub(crate) fn new() -> Self {
        Self(TestFolder::default())
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("a text")
    }

    /// Lets functions end.
    pub(crate) fn open(&self) {
        self.create("go");
    }

    pub(crate) fn create(&self, file: &str) {
        self.0.write(file, "");
    }

    /// What functions did.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|found| *found == line).count()
    }

    pub(crate) async fn until(&self, line: &str, times: usize) {
        for _ in 0..60_000 {
            if self.count(line) >= times {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("`{line}` is not there {times} times: {:?}", self.lines());
    }
}

fn note(dir: &str, line: &str) {
    let log = fs::OpenOptions::new().create(true).append(true).open(Path::new(dir).join("log"));
    writeln!(log.expect("a file"), "{line}").expect("written");
}

async fn wait_for(dir: &str, file: &str) {
    while !Path::new(dir).join(file).exists() {
        sleep(Duration::from_millis(10)).await;
    }
}

async fn wait_for_go(dir: &str) {
    wait_for(dir, "go").await;
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
    note(&dir, &format!("run by {}", std::process::id()));
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

/// Consumes the responses of the client, and tries it again.
async fn pay_twice(dir: &str, ctx: &Context) {
    note(dir, "asked");
    for file in ["first", "second"] {
        wait_for(dir, file).await;
        let consumed = ctx.consume_once().await;
        note(dir, if consumed.is_ok() { "paid" } else { "refused" });
    }
    wait_for_go(dir).await;
}

/// Asks who pays, and may begin again
#[mcp_tool(task(restart), idempotent)]
async fn pay(dir: String, ctx: &Context) -> Result<&'static str, ToolError> {
    let _payer: Name = ctx.elicit("payer", "Who pays?").await?;
    pay_twice(&dir, ctx).await;
    Ok("over")
}

/// Who pays, asked before the task begins
struct Payer(String);

impl FromContext for Payer {
    type Error = ToolError;

    async fn from_context(ctx: &Context) -> Result<Self, ToolError> {
        let dir: String = serde_json::from_value(ctx.meta("example.com/dir").unwrap_or_default())?;
        let account = ctx
            .once("account", async || {
                note(&dir, "account");
                Ok("account".to_owned())
            })
            .await?;
        let payer: Name = ctx.elicit("payer", "Who pays?").await?;
        Ok(Self(format!("{account} of {}", payer.name)))
    }
}

/// Knows who pays, and may begin again
#[mcp_tool(task(restart), idempotent)]
async fn pay_by(#[mcp(inject)] payer: Payer, dir: String, ctx: &Context) -> String {
    pay_twice(&dir, ctx).await;
    payer.0
}

/// Reports progress until its file is there
#[mcp_tool(task)]
async fn report(dir: String, ctx: &Context) -> &'static str {
    let _noted = Noted::new(&dir);
    for step in 1_u32.. {
        ctx.progress(f64::from(step)).send();
        if Path::new(&dir).join("go").exists() {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    "reported"
}

/// Asks a long question
#[mcp_tool(task)]
async fn ask_much(dir: String, ctx: &Context) -> Result<String, ToolError> {
    let _noted = Noted::new(&dir);
    let answered: Name = ctx.elicit("long", "Why? ".repeat(20_000)).await?;
    Ok(answered.name)
}

pub(crate) fn builder(store: impl Shared + 'static) -> ServerBuilder {
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
        .tool::<pay>()
        .tool::<pay_by>()
        .tool::<report>()
        .tool::<ask_much>()
        .shared(store)
}

async fn two(store: &TestStore) -> [HttpServer; 2] {
    [HttpServer::start(builder(store.open())).await, HttpServer::start(builder(store.open())).await]
}

pub(crate) fn request(method: &str, mut params: Value) -> HttpRequest {
    params["_meta"] = json!({
        "io.modelcontextprotocol/clientCapabilities":
            { "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
        "example.com/region": "north",
    });
    HttpRequest::modern(1, method, params).header("x-user", "ada")
}

pub(crate) async fn start(at: SocketAddr, tool: &str, files: &Files) -> String {
    let params = json!({ "name": tool, "arguments": { "dir": files.path() } });
    let reply = request("tools/call", params).send(at).await.json();
    assert_eq!(reply["result"]["resultType"], "task", "{reply}");
    reply["result"]["taskId"].as_str().expect("an id").to_owned()
}

/// Starts a task, and waits until it has done this: what it does, and its id.
async fn begun(at: SocketAddr, tool: &str, line: &str) -> (Files, String) {
    let files = Files::new();
    let id = start(at, tool, &files).await;
    files.until(line, 1).await;
    (files, id)
}

/// Waits for the end of [`again`], which had to begin so often.
async fn assert_again(at: &HttpServer, id: &str, files: &Files, times: usize) {
    let done = until(at.address, id, "completed").await;
    assert_eq!((text(&done), files.count("begun")), ("7 ada 2 \"north\"", times), "{:?}", files.lines());
}

pub(crate) async fn get(at: SocketAddr, id: &str) -> Value {
    request("tasks/get", json!({ "taskId": id })).send(at).await.json()["result"].clone()
}

/// Waits for a status; the task.
pub(crate) async fn until(at: SocketAddr, id: &str, status: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..60_000 {
        last = get(at, id).await;
        if last["status"] == status {
            return last;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the task is not {status}: {last}");
}

pub(crate) async fn answer(at: SocketAddr, id: &str, key: &str, name: &str) {
    let response = json!({ "action": "accept", "content": { "name": name } });
    let params = json!({ "taskId": id, "inputResponses": { key: response } });
    let reply = request("tasks/update", params).send(at).await.json();
    assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
}

pub(crate) async fn listen(at: SocketAddr, ids: &[&str]) -> (EventStream, Value) {
    let listen = request("subscriptions/listen", json!({ "notifications": { "taskIds": ids } }));
    let mut stream = EventStream::open(&listen, at).await.expect("a stream");
    let acknowledged = stream.message().await["params"]["notifications"].clone();
    (stream, acknowledged)
}

/// The next notification with a status.
pub(crate) async fn told(stream: &mut EventStream, status: &str) -> Value {
    loop {
        let message = stream.message().await;
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        if message["params"]["status"] == status {
            return message["params"].clone();
        }
    }
}

pub(crate) fn text(task: &Value) -> &str {
    task["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {task}"))
}

#[tokio::test]
async fn any_replica_polls_answers_and_cancels_a_task() {
    for store in TestStore::all("any_replica_polls_answers_and_cancels_a_task") {
        let [one, two] = two(&store).await;
        let files = Files::new();
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

        let files = Files::new();
        let id = start(one.address, "hold", &files).await;
        files.until("begun", 1).await;
        let cancelled = request("tasks/cancel", json!({ "taskId": id })).send(two.address).await.json();
        assert_eq!(cancelled["result"]["resultType"], "complete", "{cancelled}");
        assert_eq!(get(two.address, &id).await["status"], "cancelled");
        files.until("over", 1).await;
        files.open();
        assert_eq!(get(one.address, &id).await["status"], "cancelled");
    }
}

#[tokio::test]
async fn a_task_belongs_to_its_caller_at_every_replica() {
    for store in TestStore::all("a_task_belongs_to_its_caller_at_every_replica") {
        let [one, two] = two(&store).await;
        let files = Files::new();
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
        if let Some(content) = &store.content {
            let (everything, _) = content();
            assert!(everything.contains("{sharing/tasks}"), "{everything}");
            for secret in [id.as_str(), "\"ada\"", "at the gate", files.path()] {
                assert!(!everything.contains(secret), "`{secret}` can be read in {everything}");
            }
        }
        files.open();
    }
}

#[tokio::test]
async fn subscribers_at_any_replica_are_told_of_a_task() {
    for store in TestStore::all("subscribers_at_any_replica_are_told_of_a_task") {
        let [one, two] = two(&store).await;
        let files = Files::new();
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
    }
}

#[tokio::test]
async fn a_replica_that_shuts_down_hands_its_tasks_over_or_lets_them_fail() {
    for store in TestStore::all("a_replica_that_shuts_down_hands_its_tasks_over") {
        let [mut one, two] = two(&store).await;
        let (held, again) = (Files::new(), Files::new());
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
    }
}

#[tokio::test]
async fn a_result_is_kept_while_the_store_is_away() {
    let store = BreakableStore::default();
    let one = HttpServer::start(builder(store.clone())).await;
    let two = HttpServer::start(builder(store.clone())).await;
    let (files, id) = begun(one.address, "hold", "begun").await;
    store.set_broken(true);
    files.open();
    files.until("over", 1).await;
    let away = request("tasks/get", json!({ "taskId": id })).send(two.address).await;
    assert_eq!((away.status, away.code()), (503, -32603), "it may be tried again");
    assert!(away.header("retry-after").is_some());
    let refused = json!({ "name": "hold", "arguments": { "dir": files.path() } });
    assert_eq!(request("tools/call", refused).send(one.address).await.status, 503);
    assert_eq!(request("tasks/cancel", json!({ "taskId": id })).send(two.address).await.status, 503);
    let listen = request("subscriptions/listen", json!({ "notifications": { "taskIds": [id] } }));
    let away = listen.send(two.address).await;
    assert_eq!((away.status, away.code()), (503, -32603), "it is not acknowledged without the task");
    // for longer than a lease
    sleep(LEASE * 2).await;
    store.set_broken(false);
    let done = until(two.address, &id, "completed").await;
    assert_eq!((text(&done), files.count("begun")), ("held", 1));
}

#[tokio::test]
async fn a_task_goes_on_whose_replica_reaches_the_store_later_than_the_others() {
    let store = BreakableStore::default();
    let (here, there) = (store.of_another_replica(), store.of_another_replica());
    let one = HttpServer::start(builder(here.clone())).await;
    let two = HttpServer::start(builder(there.clone())).await;
    let (files, id) = begun(one.address, "again", "has its ticket").await;
    // until the other does not wait any longer since it has just begun
    sleep(Duration::from_secs(9)).await;
    for store in [&here, &there] {
        store.set_broken(true);
    }
    sleep(LEASE * 2).await;
    there.set_broken(false);
    // for longer than a lease, as long as an attempt to connect may be away
    sleep(LEASE * 5).await;
    assert_eq!(get(two.address, &id).await["status"], "working");
    here.set_broken(false);
    files.open();
    assert_again(&two, &id, &files, 1).await;
}

#[tokio::test]
async fn a_replica_that_was_cut_off_until_its_task_had_expired_ends_it() {
    let store = BreakableStore::default();
    let (here, there) = (store.of_another_replica(), store.of_another_replica());
    let short = |builder: ServerBuilder| {
        builder.tasks(|tasks| tasks.lease(Duration::from_millis(200)).ttl(Duration::from_secs(1)))
    };
    let one = HttpServer::start(short(builder(here.clone()))).await;
    let two = HttpServer::start(short(builder(there.clone()))).await;
    let (files, id) = begun(one.address, "report", "begun").await;
    here.set_broken(true);
    // its time to live, and four leases
    sleep(Duration::from_secs(4)).await;
    here.set_broken(false);
    files.until("over", 1).await;
    for at in [&one, &two] {
        let gone = request("tasks/get", json!({ "taskId": id })).send(at.address).await.json();
        assert_eq!(gone["error"]["code"], -32602, "{gone}");
    }
}

#[tokio::test]
async fn a_task_whose_question_has_no_room_in_the_store_fails_and_says_so() {
    let store = BreakableStore::default();
    store.set_largest(50_000);
    let one = HttpServer::start(builder(store)).await;
    let files = Files::new();
    let id = start(one.address, "ask_much", &files).await;
    let failed = until(one.address, &id, "failed").await;
    let message = failed["statusMessage"].as_str().expect("a message");
    assert!(message.contains("could not be saved: the store is full"), "{message}");
    assert_eq!(failed["error"]["code"], -32603);
    files.until("over", 1).await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_while_another_replica_takes_it_over_ends() {
    let store = BreakableStore::default();
    let there = store.of_another_replica();
    let slow = |builder: ServerBuilder| builder.tasks(|tasks| tasks.lease(Duration::from_secs(16)));
    let mut one = HttpServer::start(slow(builder(store.of_another_replica()))).await;
    let two = HttpServer::start(slow(builder(there.clone()))).await;
    let (files, id) = begun(one.address, "again", "has its ticket").await;
    let (carried_out, release) = there.hold_answer("/tasks");
    one.stop();
    one.stopped().await;
    carried_out.await.expect("it takes it over");
    let three = HttpServer::start(slow(builder(store.of_another_replica()))).await;
    let cancel = request("tasks/cancel", json!({ "taskId": id })).send(three.address).await.json();
    assert_eq!(cancel["result"]["resultType"], "complete", "{cancel}");
    // until the other was told
    sleep(Duration::from_millis(300)).await;
    release.send(()).expect("it waits");
    for _ in 0..500 {
        if files.count("begun") == 2 {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    // it would be noticed after 48 s otherwise
    files.until("over", files.count("begun")).await;
    assert_eq!(get(two.address, &id).await["status"], "cancelled");
}

#[tokio::test]
async fn a_task_that_is_taken_over_without_an_answer_of_the_store_is_run() {
    let store = BreakableStore::default();
    let there = store.of_another_replica();
    let mut one = HttpServer::start(builder(store.of_another_replica())).await;
    let two = HttpServer::start(builder(there.clone())).await;
    let (files, id) = begun(one.address, "again", "has its ticket").await;
    let (carried_out, unanswered) = there.hold_answer("/tasks");
    one.stop();
    one.stopped().await;
    carried_out.await.expect("it takes it over");
    // the operation fails after two seconds
    files.until("has its ticket", 2).await;
    drop(unanswered);
    files.open();
    assert_again(&two, &id, &files, 2).await;
}

#[tokio::test]
async fn a_stream_of_tasks_is_refused_on_byte_streams_while_the_store_is_away() {
    let store = BreakableStore::default();
    let server = builder(store.clone()).build().expect("a server");
    let mut client = LineConnection::serve(&server, 1 << 16);
    store.set_broken(true);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities":
            { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let notifications = json!({ "taskIds": ["unknown"] });
    for (id, method, params) in [
        (1, "subscriptions/listen", json!({ "_meta": meta, "notifications": notifications })),
        (2, "tools/list", json!({ "_meta": meta })),
    ] {
        let reply = client.request(id, method, params).await;
        assert_eq!(reply["error"]["code"].as_i64(), (id == 1).then_some(-32603), "{reply}");
    }
}

#[tokio::test]
async fn responses_are_consumed_when_the_store_has_that() {
    let store = BreakableStore::default();
    let one = HttpServer::start(builder(store.clone())).await;
    let files = Files::new();
    let id = start(one.address, "pay", &files).await;
    until(one.address, &id, "input_required").await;
    answer(one.address, &id, "payer", "Ada").await;
    files.until("asked", 1).await;
    store.set_broken(true);
    files.create("first");
    files.until("refused", 1).await;
    store.set_broken(false);
    files.create("second");
    files.until("paid", 1).await;
    files.open();
    until(one.address, &id, "completed").await;
    assert_eq!(files.lines(), ["asked", "refused", "paid"]);
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
    let store: AnyStore = AnyStore::new(Memory::default());
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(HttpServer::start(builder(store.clone())).await);
    }
    let files = Files::new();
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
}
