//! Time limits, and limits of calls at once.

use crate::prelude::*;

#[mcp_tool(timeout = "50ms")]
async fn slow(gate: &Gate) -> String {
    let _inside = gate.enter();
    std::future::pending::<()>().await;
    "never".into()
}

#[mcp_tool(timeout = "1m")]
async fn quick() -> &'static str {
    tokio::task::yield_now().await;
    "in time"
}

#[mcp_tool(blocking, timeout = "20ms")]
fn stuck(release: &Release) -> String {
    // waits until the test releases it, so that its thread ends
    let released = release.0.lock().expect("a lock");
    let (_released, _) = release.1.wait_timeout_while(released, PATIENCE, |go| !*go).expect("a lock");
    "never".into()
}

#[derive(Default)]
struct Release(Mutex<bool>, std::sync::Condvar);

#[tokio::test]
async fn a_call_over_its_limit_fails_and_is_dropped() {
    let gate = Gate::default();
    let mut server = serve(mcp_runtime::server!().tool::<slow>().tool::<quick>().state(gate.clone()));
    for (calls, revision) in (1..).zip(LEGACY) {
        let reply = server.call("slow", json!({})).await;
        assert_eq!(failure(&reply), "tool 'slow' took longer than its limit of 50ms");
        assert_eq!(gate.dropped(), calls, "the future is dropped before the reply");
        server.call("quick", json!({})).await.expect_text("in time");
        server = server.legacy(revision);
    }
}

#[tokio::test]
async fn a_blocking_call_over_its_limit_is_answered() {
    let release = Arc::new(Release::default());
    let server = serve(mcp_runtime::server!().tool::<stuck>().state(release.clone()));
    let reply = server.call("stuck", json!({})).await;
    assert_eq!(failure(&reply), "tool 'stuck' took longer than its limit of 20ms");
    *release.0.lock().expect("a lock") = true;
    release.1.notify_all();
}

/// The calls in the order in which they entered.
#[derive(Default, Clone)]
struct Order(Arc<Mutex<Vec<u32>>>);

#[mcp_tool(max_concurrency = 2)]
async fn narrow(n: u32, gate: &Gate, order: &Order) -> String {
    order.0.lock().expect("a lock").push(n);
    let inside = gate.enter();
    assert!(gate.running() <= 2);
    gate.wait().await;
    inside.finish();
    n.to_string()
}

fn narrow_server() -> (Arc<TestServer>, Gate, impl Fn() -> Vec<u32>) {
    let (gate, order) = (Gate::default(), Order::default());
    let builder = mcp_runtime::server!().tool::<narrow>().state(gate.clone()).state(order.clone());
    (Arc::new(serve(builder)), gate, move || order.0.lock().expect("a lock").clone())
}

/// Starts a call and runs it as far as possible.
fn start(server: &Arc<TestServer>, n: u32) -> tokio::task::JoinHandle<Value> {
    let server = server.clone();
    spawn(async move { result(&server.call("narrow", json!({ "n": n })).await) })
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn calls_over_the_limit_wait_in_order() {
    let (server, gate, order) = narrow_server();
    let mut calls = Vec::new();
    for n in 0..6 {
        calls.push(start(&server, n));
        settle().await;
    }
    assert_eq!(order(), [0, 1]);
    for done in 1..=4 {
        gate.open(1);
        gate.until_entered(2 + done).await;
    }
    assert_eq!(order(), [0, 1, 2, 3, 4, 5], "in the order in which they came");
    gate.open(2);
    for (n, call) in calls.into_iter().enumerate() {
        let reply = call.await.expect("a reply");
        assert_eq!(reply["content"][0]["text"], n.to_string());
    }
}

#[tokio::test]
async fn a_cancelled_waiter_leaves_the_queue() {
    let (server, gate, order) = narrow_server();
    let first = start(&server, 0);
    let second = start(&server, 1);
    settle().await;
    let waiter = start(&server, 2);
    settle().await;
    let last = start(&server, 3);
    settle().await;
    waiter.abort();
    assert!(waiter.await.is_err_and(|error| error.is_cancelled()));
    gate.open(1);
    gate.until_entered(3).await;
    assert_eq!(order(), [0, 1, 3]);
    // a cancelled running call releases its permit as well
    second.abort();
    assert!(second.await.is_err_and(|error| error.is_cancelled()));
    let after = start(&server, 4);
    gate.until_entered(4).await;
    gate.open(3);
    for call in [first, last, after] {
        call.await.expect("a reply");
    }
}

#[tokio::test]
async fn a_permit_is_released_however_the_call_ends() {
    #[mcp_tool(max_concurrency = 1, timeout = "20ms")]
    async fn single(case: String) -> Result<String, ToolError> {
        match case.as_str() {
            "fail" => Err(ToolError::new("failed")),
            "panic" => panic!("as asked"),
            "hang" => std::future::pending().await,
            _ => Ok(case),
        }
    }
    let server = serve(mcp_runtime::server!().tool::<single>());
    for case in ["fail", "panic", "hang"] {
        server.call("single", json!({ "case": case })).await.expect_failure("");
        server.call("single", json!({})).await.expect_failure("case: is missing");
        server.call("single", json!({ "case": "fine" })).await.expect_text("fine");
    }
}

/// Sleeps where it was called
#[mcp_tool]
fn sleeps(ms: u64) -> Result<(), ToolError> {
    std::thread::sleep(Duration::from_millis(ms));
    Err("slept".into())
}

/// Sleeps where it was called
#[mcp_prompt]
fn sleeps_too(ms: u64) -> String {
    std::thread::sleep(Duration::from_millis(ms));
    String::new()
}

/// Sleeps on a thread of its own
#[mcp_tool(blocking)]
fn sleeps_elsewhere(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Sleeps without holding up others
#[mcp_tool]
async fn sleeps_politely(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[tokio::test]
async fn a_plain_function_that_holds_up_its_client_is_reported_once() {
    let log = ThreadLog::capture();
    let builder = || {
        let tools = mcp_runtime::server!().tool::<sleeps>().tool::<sleeps_elsewhere>();
        tools.tool::<sleeps_politely>().prompt::<sleeps_too>()
    };
    // a busy machine may hold up the short call: then it says nothing, and another one is made
    loop {
        let server = serve(builder());
        let started = std::time::Instant::now();
        let _ = server.call("sleeps", json!({ "ms": 5 })).await;
        if started.elapsed() < Duration::from_millis(500) {
            assert!(log.with("add `blocking`").is_empty());
            break;
        }
    }
    let log = ThreadLog::capture();
    let server = serve(builder());
    for tool in ["sleeps", "sleeps", "sleeps_elsewhere", "sleeps_politely"] {
        let _ = server.call(tool, json!({ "ms": 501 })).await;
    }
    let _ = server.prompt("sleeps_too", json!({ "ms": "501" })).await;
    let warnings = log.with("add `blocking`");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("WARN") && warnings[0].contains("\"sleeps\""), "{warnings:?}");
    assert!(warnings[1].contains("\"sleeps_too\""), "{warnings:?}");
}
