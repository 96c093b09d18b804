//! Processes that serve stdio: how they exit, and hosts that do not read.

use std::{path::Path, process::Command};

use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};

use crate::{
    prelude::*,
    process::{fixture, until_counted},
};

/// A process with a call that never returns, and this shutdown timeout.
async fn hanging(drain: Option<Duration>) -> LineConnection {
    let mut command = fixture();
    if let Some(drain) = drain {
        command.env("FIXTURE_DRAIN_MS", drain.as_millis().to_string());
    }
    let mut server = LineConnection::spawn(&mut command);
    server.send(&call("wait", "wait", &json!({}))).await;
    until_counted(&mut server, "waiting 1").await;
    server
}

/// A time for calls that no test waits for.
const LONG: Duration = PATIENCE.saturating_mul(10);

/// Waits until the process has exited successfully.
async fn ends(server: LineConnection) {
    let (status, errors) = within(server.exit()).await;
    assert_eq!(status.code(), Some(0), "{errors}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_after_the_end_of_stdin_ends_the_process_at_once() {
    let mut server = hanging(Some(LONG)).await;
    server.close_input().await;
    sleep(Duration::from_millis(300)).await;
    server.terminate();
    ends(server).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    for (first, second) in [("INT", "INT"), ("INT", "TERM")] {
        let server = hanging(Some(LONG)).await;
        server.signal(first);
        sleep(Duration::from_millis(300)).await;
        server.signal(second);
        ends(server).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_first_ctrl_c_leaves_calls_the_shutdown_timeout_and_then_answers_them() {
    let mut server = hanging(Some(Duration::from_millis(200))).await;
    server.signal("INT");
    let reply = server.message().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!("wait"), &json!(-32603)), "{reply}");
    assert_eq!(server.next().await, None);
    ends(server).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_second_signal_ends_a_process_that_serves_http_at_once() {
    for (first, second) in [("TERM", "TERM"), ("TERM", "INT")] {
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = free.local_addr().expect("an address");
        drop(free);
        let mut command = fixture();
        let server = LineConnection::spawn(
            command.args(["--http", &at.to_string()]).env("FIXTURE_DRAIN_MS", LONG.as_millis().to_string()),
        );
        while TcpStream::connect(at).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
        let mut running = HttpConnection::open(at).await;
        running.send(&HttpRequest::modern(1, "tools/call", json!({"name": "wait"}))).await;
        let count = HttpRequest::modern(2, "tools/call", json!({"name": "count"}));
        while !text_of(&count.send(at).await.json()).starts_with("waiting 1 ") {}
        server.signal(first);
        while TcpStream::connect(at).await.is_ok() {
            sleep(Duration::from_millis(5)).await;
        }
        server.signal(second);
        ends(server).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_lets_calls_end_and_ends_subscriptions() {
    const CALLS: usize = 100;
    let mut server = LineConnection::spawn(fixture().env("FIXTURE_IN_FLIGHT", "1000"));
    server.listen("listen", json!({ "toolsListChanged": true })).await;
    for id in 0..CALLS {
        server.send(&call(id, "nap", &json!({ "ms": 1000 }))).await;
    }
    // all of them have been read when it is answered
    server.send(&ping("read")).await;
    let mut rest = vec![server.message().await];
    while rest.last().is_some_and(|message| message["id"] != "read") {
        rest.push(server.message().await);
    }
    rest.pop();
    server.terminate();
    while let Some(message) = server.next().await {
        rest.push(message);
    }
    let replies = rest.iter().filter(|message| message["result"]["content"].is_array());
    assert_eq!(replies.count(), CALLS, "{rest:?}");
    let end: Vec<_> = rest.iter().filter(|message| message["result"]["content"].is_null()).collect();
    let [result, cancelled] = end[..] else { panic!("{end:?}") };
    assert_eq!(result["result"]["_meta"][SUBSCRIPTION], "listen", "{result}");
    assert_eq!(cancelled["params"]["requestId"], "listen", "{cancelled}");
    ends(server).await;
}

#[tokio::test]
async fn after_the_end_of_stdin_calls_are_cancelled_within_seconds() {
    let mut server = hanging(None).await;
    server.close_input().await;
    // 2 s, before official clients kill the process; thirty times that for a busy machine
    timeout(Duration::from_secs(60), ends(server)).await.expect("its end");
}

/// How many calls have written to the file beside the server.
fn written(side: &Path) -> u64 {
    std::fs::metadata(side).map_or(0, |file| file.len())
}

/// The fixture server, with capacity for more responses than the tests leave unread.
fn large_queue() -> Command {
    let mut command = fixture();
    command.env("FIXTURE_IN_FLIGHT", "256");
    command
}

/// Calls run while the client does not read, and all responses arrive once it does.
#[cfg(unix)]
async fn work_unread(mut server: LineConnection) {
    const CALLS: u64 = 40;
    // far more than the buffer of a pipe or a socket
    for id in 0..8 {
        server.send(&call(format!("large {id}"), "large", &json!({ "n": 500_000 }))).await;
    }
    sleep(Duration::from_millis(300)).await;
    let folder = TestFolder::default();
    let side = folder.join("side");
    for id in 0..CALLS {
        server.send(&call(id, "sign", &json!({ "path": side }))).await;
        until(|| written(&side) > id).await;
    }
    server.send(&call("hang", "hang", &json!({}))).await;
    server.send(&cancelled("hang")).await;
    let mut signed = 0;
    for _ in 0..CALLS + 8 {
        let reply = server.message().await;
        if reply["id"].is_u64() {
            assert_eq!(text_of(&reply), "signed");
            signed += 1;
        } else {
            assert_eq!(text_of(&reply).len(), 500_000);
        }
    }
    assert_eq!(signed, CALLS);
    server.close_input().await;
    assert_eq!(server.next().await, None);
    assert!(server.exit().await.0.success());
}

#[cfg(unix)]
#[tokio::test]
async fn calls_run_while_the_output_is_not_read() {
    for socket in [false, true] {
        work_unread(crate::process::unread(large_queue(), socket)).await;
    }
}
