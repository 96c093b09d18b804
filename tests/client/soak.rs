//! What must not grow: tasks and calls of dropped requests, memory for replies that are refused. Small enough for every
//! run; the ignored tests are the same at full size: `cargo test -p mcp-tests --test client -- --ignored soak`.

use std::{process::Command, time::Duration};

use mcp_runtime::client::{Client, Error};
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
    let counted = tokio::time::timeout(Duration::from_secs(120), async {
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
        assert!(matches!(call, Err(Error::TooLarge { limit: LIMIT })), "{call:?}");
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
    println!("10,000 dropped calls: {:?}", start.elapsed());
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "measures memory, so that nothing else may run in this process"]
async fn soak_a_reply_of_100_mib_is_refused_without_memory_for_it() {
    let grown = refuse_replies(100 << 20).await;
    println!("three replies of 100 MiB: the peak of memory grew by {grown} KiB");
    assert!(grown < 8 << 10, "{grown} KiB");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_reply_above_the_limit_is_refused_and_the_connection_goes_on() {
    refuse_replies(4 << 20).await;
}
