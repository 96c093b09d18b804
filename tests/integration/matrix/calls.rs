//! Calls in progress: progress, cancellation, and clients that disconnect.

use super::{Cell, Protocol, cells, connect};
use crate::prelude::*;

#[tokio::test]
async fn progress_precedes_the_result_and_only_increases() {
    for cell in cells("progress") {
        let (mut client, _) = connect(cell).await;
        for token in [json!("t"), json!(7), json!("")] {
            let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": token } });
            let exchange = client.request("tools/call", params).await;
            assert_eq!(exchange.text(), "done", "{cell:?}");
            let report = |step: u32| json!({ "progressToken": token, "progress": step, "total": 3, "message": "working" });
            let bare = json!({ "progressToken": token, "progress": 4 });
            assert_eq!(
                exchange.of("notifications/progress"),
                [&report(1), &report(2), &report(3), &bare],
                "{cell:?}"
            );
            assert_eq!(exchange.seen.len(), 4, "{cell:?}");
        }
        assert_eq!(
            client.call("steps", json!({})).await.seen,
            Vec::<Value>::new(),
            "{cell:?}: without a token"
        );
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
        let (mut client, gate) = connect(cell).await;
        for (calls, token) in [(1, None), (2, Some(1))] {
            match cell {
                // in memory and over modern HTTP a client can cancel only by dropping the request: it disconnects
                (Transport::Memory, _) => {
                    tokio::select! {
                        _ = client.request("tools/call", hold(token)) => panic!("it ended"),
                        () = gate.until_entered(calls) => {}
                    }
                }
                (Transport::Http, Protocol::Modern) => {
                    client.start("tools/call", hold(token)).await;
                    gate.until_entered(calls).await;
                    client.disconnect().await;
                }
                _ => {
                    let id = client.start("tools/call", hold(token)).await;
                    gate.until_entered(calls).await;
                    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
                }
            }
            gate.until_ended(calls, 0).await;
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
        let (mut client, gate) = connect(cell).await;
        if cell.0 == Transport::Memory {
            tokio::select! {
                _ = client.call("hold", json!({})) => panic!("it ended"),
                () = gate.until_entered(1) => {}
            }
            gate.until_ended(1, 0).await;
            continue;
        }
        for token in [None, Some(1)] {
            client.start("tools/call", hold(token)).await;
        }
        gate.until_entered(2).await;
        client.disconnect().await;
        if !survives_disconnect(cell) {
            gate.until_ended(2, 0).await;
            assert_eq!(client.call("steps", json!({})).await.text(), "done", "{cell:?}");
            continue;
        }
        if cell.0 == Transport::Http {
            // the session is still valid
            assert_eq!(client.call("steps", json!({})).await.text(), "done", "{cell:?}");
        }
        gate.open(2);
        gate.until_ended(0, 2).await;
        assert_eq!(gate.dropped(), 0, "{cell:?}");
        if cell.0 == Transport::Stdio {
            let rest = client.rest().await;
            let replies: Vec<_> = rest.iter().filter(|message| message.get("method").is_none()).collect();
            assert_eq!(replies.len(), 2, "{cell:?}: {rest:?}");
            assert!(replies.iter().all(|r| r["result"]["content"][0]["text"] == "let go"), "{rest:?}");
        }
    }
}
