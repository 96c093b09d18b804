//! Calls in progress: progress, log messages, cancellation, and clients that disconnect.

use super::{Cell, Protocol, cells, connect};
use crate::prelude::*;

#[tokio::test]
async fn progress_precedes_the_result_and_only_increases() {
    for cell in cells("progress") {
        let (mut client, _) = connect(cell).await;
        for token in [json!("t"), json!(7)] {
            let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": token } });
            let exchange = client.request("tools/call", params).await;
            assert_eq!(exchange.text(), "done", "{cell:?}");
            let report = |step: u32| json!({ "progressToken": token, "progress": step, "total": 3, "message": "working" });
            assert_eq!(
                exchange.of("notifications/progress"),
                [&report(1), &report(2), &report(3)],
                "{cell:?}"
            );
            assert_eq!(exchange.seen.len(), 3, "{cell:?}");
        }
        assert_eq!(
            client.call("steps", json!({})).await.seen,
            Vec::<Value>::new(),
            "{cell:?}: without a token"
        );
    }
}

/// Levels of the messages that a call of `talk` sends.
async fn logged(client: &mut Client, asked_for: Option<&str>) -> Vec<String> {
    let mut params = json!({ "name": "talk", "arguments": {} });
    if let Some(level) = asked_for {
        params["_meta"] = json!({ "io.modelcontextprotocol/logLevel": level });
    }
    let exchange = client.request("tools/call", params).await;
    assert_eq!(exchange.text(), "talked");
    let messages = exchange.of("notifications/message");
    assert_eq!(messages.len(), exchange.seen.len(), "{exchange:?}");
    let level = |message: &&Value| {
        assert_eq!((&message["logger"], &message["data"]), (&json!("talker"), &message["level"]));
        message["level"].as_str().expect("a level").to_owned()
    };
    messages.iter().map(level).collect()
}

#[tokio::test]
async fn log_messages_precede_the_result_and_honour_the_level() {
    for cell in cells("logging") {
        let (mut client, _) = connect(cell).await;
        match cell.1 {
            Protocol::Legacy => {
                assert_eq!(
                    logged(&mut client, None).await.len(),
                    7,
                    "{cell:?}: info, unless it says otherwise"
                );
                let set = client.request("logging/setLevel", json!({ "level": "alert" })).await.reply;
                assert_eq!(set, json!({}), "{cell:?}");
                // the level of the other protocol is ignored here
                for asked_for in [None, Some("debug")] {
                    assert_eq!(logged(&mut client, asked_for).await, ["alert", "emergency"], "{cell:?}");
                }
                let unknown = client.request("logging/setLevel", json!({ "level": "loud" })).await.reply;
                assert_eq!(unknown["error"]["code"], -32602, "{cell:?}");
            }
            Protocol::Modern => {
                assert_eq!(logged(&mut client, Some("alert")).await, ["alert", "emergency"], "{cell:?}");
                assert_eq!(logged(&mut client, Some("debug")).await.len(), 8, "{cell:?}");
                assert!(logged(&mut client, None).await.is_empty(), "{cell:?}: each request for itself");
                let removed = client.request("logging/setLevel", json!({ "level": "alert" })).await.reply;
                assert_eq!(removed["error"]["code"], -32601, "{cell:?}");
            }
        }
    }
}

/// A call that waits: with a token it has reported progress, so that over HTTP its response has begun.
fn hold(token: Option<u32>) -> Value {
    let meta = token.map_or_else(|| json!({}), |token| json!({ "progressToken": token }));
    json!({ "name": "hold", "arguments": {}, "_meta": meta })
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_and_gets_no_response() {
    for cell in cells("cancellation") {
        let (mut client, seen) = connect(cell).await;
        for (calls, token) in [(1, None), (2, Some(1))] {
            match cell {
                // in memory and over modern HTTP a client can cancel only by dropping the request: it disconnects
                (Transport::Memory, _) => {
                    tokio::select! {
                        _ = client.request("tools/call", hold(token)) => panic!("it ended"),
                        () = seen.until_entered(calls) => {}
                    }
                }
                (Transport::Http, Protocol::Modern) => {
                    client.start("tools/call", hold(token)).await;
                    seen.until_entered(calls).await;
                    client.disconnect().await;
                }
                _ => {
                    let id = client.start("tools/call", hold(token)).await;
                    seen.until_entered(calls).await;
                    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
                }
            }
            seen.until_dropped(calls).await;
        }
        let next = client.call("steps", json!({})).await;
        assert_eq!(next.text(), "done", "{cell:?}");
        let replies = next.seen.iter().filter(|message| message.get("method").is_none());
        assert_eq!(replies.count(), 0, "{cell:?}: {:?}", next.seen);
    }
}

/// Whether calls continue after their client disconnects.
fn survives_disconnect((transport, protocol): Cell) -> bool {
    match (transport, protocol) {
        // requests that precede the end of the input are answered
        (Transport::Stdio, _) => true,
        // over HTTP, closing a connection does not end the session
        (Transport::Http, Protocol::Legacy) => true,
        (Transport::Memory, _) | (Transport::Http, Protocol::Modern) => false,
    }
}

#[tokio::test]
async fn a_disconnect_cancels_calls_unless_the_session_can_resume() {
    for cell in cells("disconnects") {
        let (mut client, seen) = connect(cell).await;
        if cell.0 == Transport::Memory {
            tokio::select! {
                _ = client.call("hold", json!({})) => panic!("it ended"),
                () = seen.until_entered(1) => {}
            }
            seen.until_dropped(1).await;
            continue;
        }
        for token in [None, Some(1)] {
            client.start("tools/call", hold(token)).await;
        }
        seen.until_entered(2).await;
        client.disconnect().await;
        if !survives_disconnect(cell) {
            seen.until_dropped(2).await;
            assert_eq!(client.call("steps", json!({})).await.text(), "done", "{cell:?}");
            continue;
        }
        if cell.0 == Transport::Http {
            // the session is still valid
            assert_eq!(client.call("steps", json!({})).await.text(), "done", "{cell:?}");
        }
        seen.gate.add_permits(2);
        seen.until_finished(2).await;
        assert_eq!(seen.dropped.load(Ordering::SeqCst), 0, "{cell:?}");
        if cell.0 == Transport::Stdio {
            let rest = client.rest().await;
            let replies: Vec<_> = rest.iter().filter(|message| message.get("method").is_none()).collect();
            assert_eq!(replies.len(), 2, "{cell:?}: {rest:?}");
            assert!(replies.iter().all(|r| r["result"]["content"][0]["text"] == "let go"), "{rest:?}");
        }
    }
}
