//! What must not grow: tasks and calls of dropped requests, memory for replies that are refused. Small enough for every
//! run.

use std::{process::Command, time::Duration};

use mcp_runtime::{
    client::{Client, Error},
    prelude::*,
};
use mcp_tests::support::{Gate, HttpServer};
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

/// Waits until it is dropped
#[mcp_tool]
async fn linger(gate: &Gate) -> &'static str {
    gate.pass().await
}

#[tokio::test]
async fn dropped_calls_over_http_end_on_the_server() {
    const AT_ONCE: usize = 25;
    let gate = Gate::default();
    let server = HttpServer::start(mcp_runtime::server!().tool::<linger>().state(gate.clone())).await;
    let client = within(Client::connect(format!("http://{}/mcp", server.address))).await.unwrap();
    client.ping().await.unwrap();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for batch in 1..=4 {
        let calls: Vec<_> =
            (0..AT_ONCE).map(|_| tokio::spawn(client.call("linger", json!({})).into_future())).collect();
        gate.until_entered(batch * AT_ONCE).await;
        for call in calls {
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
        }
        gate.until_ended(batch * AT_ONCE, 0).await;
    }
    // those of connections that are kept for the next request are a few, however many calls there were
    until(|| tasks() <= before + 4).await;
    assert!(client.ping().await.is_ok());
}

#[tokio::test]
async fn dropped_calls_leave_nothing_here_and_there() {
    drop_calls(200).await;
}

#[tokio::test]
async fn a_reply_above_the_limit_is_refused_and_the_connection_goes_on() {
    const LIMIT: usize = 1 << 20;
    let client = within(Client::builder().max_message(LIMIT).connect(fixture())).await.unwrap();
    for _ in 0..3 {
        let call = client.call("large", json!({ "n": 4 << 20 })).timeout(Duration::from_secs(60)).await;
        assert!(matches!(call, Err(Error::TooLarge { limit: LIMIT, .. })), "{call:?}");
    }
    assert_eq!(client.call("echo", json!({ "message": "on" })).await.unwrap().text(), "on");
}
