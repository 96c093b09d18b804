//! Shutdown of a process with calls in flight and open subscriptions.

use tokio::net::{TcpListener, TcpStream};

use super::{Protocol, cells};
use crate::{prelude::*, process::fixture};

/// Calls in flight.
const CALLS: usize = 100;

fn nap() -> Value {
    json!({ "name": "nap", "arguments": { "ms": 1000 } })
}

fn counted(reply: &Value) -> bool {
    text_of(reply).starts_with(&format!("waiting {CALLS} "))
}

/// Asserts that `message` is the result of a listen request.
#[track_caller]
fn assert_result(message: &Value, id: &str) {
    assert_eq!((&message["id"], &message["result"]["resultType"]), (&json!(id), &json!("complete")));
    assert_eq!(message["result"]["_meta"][SUBSCRIPTION], id, "{message}");
}

async fn over_stdio(protocol: Protocol) {
    let mut server = LineConnection::spawn(fixture().env("FIXTURE_IN_FLIGHT", "1000"));
    if protocol == Protocol::Legacy {
        server.shake_hands("2025-11-25").await;
    }
    let request = |id: Value, method: &str, mut params: Value| {
        if protocol == Protocol::Modern {
            params["_meta"] = meta();
        }
        request(id, method, params)
    };
    if protocol == Protocol::Modern {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        server.send(&request(json!("listen"), "subscriptions/listen", filter)).await;
        assert_eq!(server.message().await["method"], "notifications/subscriptions/acknowledged");
    }
    for call in 0..CALLS {
        server.send(&request(json!(call), "tools/call", nap())).await;
    }
    let mut napped = 0;
    loop {
        server.send(&request(json!("count"), "tools/call", json!({ "name": "count" }))).await;
        let mut reply = server.message().await;
        while reply["id"] != "count" {
            napped += usize::from(text_of(&reply) == "napped");
            reply = server.message().await;
        }
        if counted(&reply) {
            break;
        }
    }
    server.terminate();
    let mut ends = Vec::new();
    while let Some(message) = server.next().await {
        if message["id"].is_u64() {
            assert_eq!(text_of(&message), "napped");
            napped += 1;
        } else {
            ends.push(message);
        }
    }
    assert_eq!(napped, CALLS, "{protocol:?}");
    match (protocol, ends.as_slice()) {
        (Protocol::Legacy, []) => {}
        (Protocol::Modern, [result, cancelled]) => {
            assert_result(result, "listen");
            assert_eq!(cancelled["method"], "notifications/cancelled");
            assert_eq!(cancelled["params"]["requestId"], "listen");
        }
        (_, others) => panic!("{protocol:?}: {others:?}"),
    }
    assert_eq!(server.exit().await.0.code(), Some(0), "{protocol:?}");
}

async fn over_http(protocol: Protocol) {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = free.local_addr().expect("an address");
    drop(free);
    let server = LineConnection::spawn(fixture().args(["--http", &at.to_string()]));
    while TcpStream::connect(at).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let session = match protocol {
        Protocol::Legacy => {
            let hello = HttpRequest::initialize("2025-11-25").send(at).await;
            hello.session()
        }
        Protocol::Modern => String::new(),
    };
    let mut streams = Vec::new();
    for id in ["a", "b", "c"] {
        let request = match protocol {
            Protocol::Legacy => HttpRequest::standalone_stream(&session),
            Protocol::Modern => {
                let filter = json!({ "notifications": { "toolsListChanged": true } });
                HttpRequest::modern(id, "subscriptions/listen", filter)
            }
        };
        let mut events = EventStream::open(&request, at).await.expect("a stream");
        if protocol == Protocol::Modern {
            events.next().await.expect("an acknowledgement");
        }
        streams.push((id, events));
    }
    let call = |id: usize, params: Value| match protocol {
        Protocol::Legacy => HttpRequest::legacy(&session, id, "tools/call", &params),
        Protocol::Modern => HttpRequest::modern(id, "tools/call", params),
    };
    let naps: Vec<_> = (0..CALLS)
        .map(|id| {
            let request = call(id, nap());
            spawn(async move { request.send(at).await })
        })
        .collect();
    while !counted(&call(CALLS, json!({ "name": "count" })).send(at).await.json()) {
        tokio::task::yield_now().await;
    }
    server.terminate();
    for (id, events) in &mut streams {
        if protocol == Protocol::Modern {
            assert_result(&events.next().await.expect("a result"), id);
        }
        assert_eq!(events.next().await, None, "{protocol:?}");
    }
    for nap in naps {
        assert_eq!(text_of(&nap.await.expect("no panic").json()), "napped");
    }
    let (status, _) = server.exit().await;
    assert_eq!(status.code(), Some(0), "{protocol:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_answers_a_hundred_calls_and_ends_streams() {
    for (transport, protocol) in cells("shutdown") {
        match transport {
            Transport::Memory => unreachable!("the table has no such cell"),
            Transport::Stdio => over_stdio(protocol).await,
            Transport::Http => within(over_http(protocol)).await,
        }
    }
}
