//! Rates that replicas count together, and what becomes of them while the store that they share does not answer.

use mcp_runtime::tool::TaskMode;

use super::{call, seen_by};
use crate::prelude::*;

/// Has a rate
#[mcp_tool(rate = "10/1h")]
fn seldom() -> &'static str {
    "called"
}

/// Has none
#[mcp_tool]
fn often() -> &'static str {
    "called"
}

/// Has a rate
#[mcp_resource(uri = "test://news", rate = "10/1h")]
async fn news() -> &'static str {
    "news"
}

/// Has a rate
#[mcp_prompt(rate = "10/1h")]
async fn plan() -> &'static str {
    "plan"
}

fn builder(store: &BreakableStore) -> ServerBuilder {
    let with_keys =
        Server::builder("rates", "1").stores(|stores| stores.keys([server_key(9)])).shared(store.clone());
    with_keys.tool::<seldom>().tool::<often>().resource::<news>().prompt::<plan>()
}

fn replicas(make: impl Fn() -> ServerBuilder) -> [Server; 3] {
    std::array::from_fn(|_| make().build().expect("a server"))
}

/// How many of so many calls of a tool by a caller were let in, at one replica after the other.
async fn let_in(replicas: &[Server], caller: &str, tool: &str, calls: usize) -> usize {
    let mut let_in = 0;
    for replica in replicas.iter().cycle().take(calls) {
        let reply = seen_by(replica, caller).call(tool, json!({})).await;
        let_in += usize::from(reply.text() == "called");
    }
    let_in
}

#[tokio::test]
async fn the_rate_of_a_resource_and_of_a_prompt_holds_for_all_replicas_together() {
    let store = BreakableStore::default();
    let replicas = replicas(|| builder(&store));
    let (mut read, mut got) = (0, 0);
    for replica in replicas.iter().cycle().take(30) {
        let ada = seen_by(replica, "ada");
        read += usize::from(!ada.read("test://news").await.is_error());
        got += usize::from(!ada.prompt("plan", json!({})).await.is_error());
    }
    assert_eq!((read, got), (10, 10));
}

#[tokio::test]
async fn the_rate_of_a_server_holds_for_all_replicas_together_on_every_transport() {
    let store = BreakableStore::default();
    let replicas = replicas(|| builder(&store).limits(|limits| limits.rate("10/1h")));
    assert_eq!(let_in(&replicas, "ada", "often", 30).await, 10);
    let mut statuses = Vec::new();
    let mut servers = Vec::new();
    for replica in replicas {
        servers.push(HttpServer::of(&replica).await);
    }
    for server in servers.iter().cycle().take(30) {
        let response = call("often").send(server.address).await;
        let wait = response.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
        assert_eq!(wait.is_some_and(|seconds| (1..=360).contains(&seconds)), response.status == 429);
        statuses.push(response.status);
    }
    let accepted = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!((accepted, statuses.len() - accepted), (10, 20), "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
}

#[tokio::test]
async fn the_rate_of_a_mount_of_a_task_and_of_a_tool_made_at_run_time_are_those_of_all_replicas() {
    let store = BreakableStore::default();
    let replicas = replicas(|| {
        let mounted =
            |rate: &'static str| mcp_runtime::server!().tool::<often>().limits(|limits| limits.rate(rate));
        let made = ToolDef::builder("made").rate("10/1h").handler(|_: ToolCall| async { "called" });
        let task = ToolDef::builder("task").rate("10/1h").task(TaskMode::Capable);
        let task = task.max_concurrency(1).handler(|_: ToolCall| async { "called" });
        builder(&store).mount("one", mounted("10/1h")).mount("two", mounted("10/1h")).add(made).add(task)
    });
    for tool in ["one_often", "two_often", "made"] {
        assert_eq!(let_in(&replicas, "ada", tool, 30).await, 10, "{tool}");
    }
    let mut done = 0;
    for replica in replicas.iter().cycle().take(30) {
        done += usize::from(seen_by(replica, "ada").call_task("task", json!({})).await.text() == "called");
    }
    assert_eq!(done, 10, "of tasks");
}

#[tokio::test]
async fn what_has_no_rate_does_not_ask_the_store_and_what_has_one_asks_once() {
    let store = BreakableStore::default();
    let replica = builder(&store).build().expect("a server");
    let ada = seen_by(&replica, "ada");
    // the first operation checks the keys as well
    ada.call("seldom", json!({})).await.expect_ok();
    let before = store.operations();
    for _ in 0..5 {
        ada.call("often", json!({})).await.expect_ok();
        ada.read("test://none").await.expect_code(-32602);
    }
    assert_eq!(store.operations(), before, "they have no rate");
    for _ in 0..9 {
        ada.call("seldom", json!({})).await.expect_ok();
    }
    assert_eq!(store.operations(), before + 9);
    for _ in 0..20 {
        ada.call("seldom", json!({})).await.expect_failure("may be called");
    }
    assert_eq!(store.operations(), before + 9, "what this replica has granted says that it is used up");
    let other = builder(&store).build().expect("a server");
    let ada = seen_by(&other, "ada");
    let before = store.operations();
    for _ in 0..20 {
        ada.call("seldom", json!({})).await.expect_failure("may be called");
    }
    // before that, the probe of the keys is subscribed to, read and written
    assert_eq!(store.operations(), before + 4, "a refusal of the store holds for its time");
}

/// How long calls take while the store does not answer, at most.
const A_DECISION: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn while_the_store_does_not_answer_each_replica_counts_by_itself() {
    type Set = fn(&BreakableStore, bool);
    for set_away in [BreakableStore::set_broken as Set, BreakableStore::set_silent] {
        let log = ThreadLog::capture();
        let store = BreakableStore::default();
        let replicas = replicas(|| builder(&store));
        assert_eq!(let_in(&replicas, "ada", "seldom", 6).await, 6);

        set_away(&store, true);
        for (n, replica) in replicas.iter().enumerate() {
            let started = tokio::time::Instant::now();
            assert_eq!(
                let_in(std::slice::from_ref(replica), "bob", "seldom", 30).await,
                10,
                "of each replica"
            );
            assert!(started.elapsed() <= 2 * A_DECISION, "one call waits for the store");
            let warnings = log.with("each replica counts rates by itself");
            assert_eq!(warnings.len(), n + 1, "once each: {warnings:?}");
            assert!(warnings.iter().all(|line| line.starts_with("WARN")), "{warnings:?}");
        }
        assert_eq!(let_in(&replicas, "ada", "seldom", 60).await, 24, "each has counted two of six");
        assert_eq!(log.with("rates together").len(), 0);

        set_away(&store, false);
        tokio::time::sleep(2 * A_DECISION).await;
        for replica in &replicas {
            // this call decides alone still, and finds out that the store answers
            seen_by(replica, "eve").call("seldom", json!({})).await.expect_ok();
            tokio::time::sleep(2 * A_DECISION).await;
        }
        assert_eq!(log.with("the replicas count rates together again").len(), 3);
        assert_eq!(log.with("each replica counts rates by itself").len(), 3);
        assert_eq!(let_in(&replicas, "eve", "seldom", 30).await, 7, "ten in all");
        assert_eq!(let_in(&replicas, "dan", "seldom", 30).await, 10);
    }
}

#[tokio::test]
async fn each_request_of_a_batch_counts_for_all_replicas() {
    let store = BreakableStore::default();
    let replicas = replicas(|| builder(&store).limits(|limits| limits.rate("10/1h")));
    let [one, two, _] = &replicas;
    let (one, two) = (HttpServer::of(one).await, HttpServer::of(two).await);
    let id = HttpRequest::initialize("2025-03-26").send(one.address).await.session();
    let request =
        |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "often" } });
    let batch = Value::from((0..8).map(request).collect::<Vec<_>>());
    let batch = HttpRequest::post(batch.to_string()).session(&id);
    let replies = batch.send(one.address).await.json();
    let replies = replies.as_array().expect("replies");
    assert!(replies.len() == 8 && replies.iter().all(|reply| text_of(reply) == "called"), "{replies:?}");
    // the handshake was the ninth
    let replies = batch.send(two.address).await.json();
    let errors: Vec<_> =
        replies.as_array().into_iter().flatten().map(|reply| &reply["error"]["code"]).collect();
    assert_eq!(errors.iter().filter(|code| code.is_null()).count(), 1, "{replies}");
    assert_eq!(errors.iter().filter(|code| ***code == -32603).count(), 7, "{replies}");
}
