//! What must not grow: tasks and calls of dropped requests, memory for replies that are refused. Small enough for every
//! run; the ignored tests are the same at full size: `cargo test -p mcp-tests --test client -- --ignored soak`.

use std::{
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use mcp_runtime::{
    client::{Client, Error},
    prelude::*,
};
use mcp_tests::support::HttpServer;
use serde_json::json;

use super::{until, within};

fn fixture() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fixture"))
}

/// Drops calls that are in progress, some at a time: the server drops them all, and no task of this runtime is left.
async fn drop_calls(total: usize) {
    const AT_ONCE: usize = 50;
    let mut command = fixture();
    // the calls of a batch begin while those of the one before are still ending
    command.env("FIXTURE_IN_FLIGHT", "500");
    let client = within(Client::connect(command)).await.unwrap();
    client.ping().await.unwrap();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..total / AT_ONCE {
        let calls: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                tokio::spawn(client.call("hang", json!({})).timeout(Duration::from_secs(600)).into_future())
            })
            .collect();
        // the server has begun all of them: it answers in the order of the requests
        client.ping().await.unwrap();
        for call in calls {
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
        }
    }
    let expected = format!("dropped {total}");
    let counted = tokio::time::timeout(crate::PATIENCE, async {
        loop {
            let text = client.call("count", json!({})).await.unwrap().text();
            if text.contains(&expected) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    if counted.await.is_err() {
        panic!("{}", client.call("count", json!({})).await.unwrap().text());
    }
    until(|| tasks() <= before).await;
    assert_eq!(client.call("echo", json!({ "message": "on" })).await.unwrap().text(), "on");
}

/// How many calls of `linger` have begun, and how many have ended.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// Waits until it is dropped
#[mcp_tool]
async fn linger() -> String {
    struct Ended;
    impl Drop for Ended {
        fn drop(&mut self) {
            ENDED.fetch_add(1, Ordering::SeqCst);
        }
    }
    BEGUN.fetch_add(1, Ordering::SeqCst);
    let _ended = Ended;
    std::future::pending().await
}

/// The same over HTTP, where dropping a call closes its request: the server runs here as well.
async fn drop_calls_over_http(total: usize) {
    const AT_ONCE: usize = 25;
    let server = HttpServer::start(mcp_runtime::server!().tool::<linger>()).await;
    let client = within(Client::connect(format!("http://{}/mcp", server.address))).await.unwrap();
    client.ping().await.unwrap();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (before, first) = (tasks(), ENDED.load(Ordering::SeqCst));
    for batch in 1..=total / AT_ONCE {
        let expected = first + batch * AT_ONCE;
        let calls: Vec<_> =
            (0..AT_ONCE).map(|_| tokio::spawn(client.call("linger", json!({})).into_future())).collect();
        until(|| BEGUN.load(Ordering::SeqCst) == expected).await;
        for call in calls {
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
        }
        until(|| ENDED.load(Ordering::SeqCst) == expected).await;
    }
    // those of connections that are kept for the next request are a few, however many calls there were
    until(|| tasks() <= before + 4).await;
    assert!(client.ping().await.is_ok());
}

/// The peak of this process's memory, in KiB.
#[cfg(target_os = "linux")]
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A reply above the limit is refused, and the connection goes on; how much the peak of memory has grown, in KiB.
#[cfg(target_os = "linux")]
async fn refuse_replies(bytes: usize) -> usize {
    const LIMIT: usize = 1 << 20;
    let client = within(Client::builder().max_message(LIMIT).connect(fixture())).await.unwrap();
    client.ping().await.unwrap();
    let before = peak_memory();
    for _ in 0..3 {
        let call = client.call("large", json!({ "n": bytes })).timeout(Duration::from_secs(60)).await;
        assert!(matches!(call, Err(Error::TooLarge { limit: LIMIT, .. })), "{call:?}");
    }
    let grown = peak_memory() - before;
    assert_eq!(client.call("echo", json!({ "message": "on" })).await.unwrap().text(), "on");
    grown
}

#[tokio::test]
async fn dropped_calls_leave_nothing_here_and_there() {
    drop_calls(200).await;
}

#[tokio::test]
#[ignore = "takes a minute"]
async fn soak_ten_thousand_dropped_calls_leave_nothing_here_and_there() {
    let start = std::time::Instant::now();
    drop_calls(10_000).await;
    eprintln!("10,000 dropped calls: {:?}", start.elapsed());
}

// one test, since the counters are shared; the full size is asked for by the environment
#[tokio::test]
async fn dropped_calls_over_http_end_on_the_server() {
    let total = std::env::var("MCP_TESTS_DROPPED").map_or(100, |total| total.parse().unwrap());
    drop_calls_over_http(total).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "measures memory, so that nothing else may run in this process"]
async fn soak_a_reply_of_100_mib_is_refused_without_memory_for_it() {
    let grown = refuse_replies(100 << 20).await;
    eprintln!("three replies of 100 MiB: the peak of memory grew by {grown} KiB");
    assert!(grown < 8 << 10, "{grown} KiB");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_reply_above_the_limit_is_refused_and_the_connection_goes_on() {
    refuse_replies(4 << 20).await;
}
