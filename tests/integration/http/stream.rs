//! When a reply is JSON and when it is an event stream, and who may have which.

use serde_json::{Value, json};

use super::{
    client::{Ask, Wire, messages, said, within},
    fixture::{Probe, Served, builder},
};

fn call(name: &str, token: Option<Value>) -> Ask {
    let meta = token.map_or_else(|| json!({}), |token| json!({"progressToken": token}));
    Ask::modern(1, "tools/call", json!({"name": name, "_meta": meta}))
}

fn progress(events: &[Value]) -> Vec<(Value, f64)> {
    let sent = events.iter().filter(|e| e["method"] == "notifications/progress");
    sent.map(|e| (e["params"]["progressToken"].clone(), e["params"]["progress"].as_f64().expect("a number")))
        .collect()
}

#[tokio::test]
async fn a_reply_is_json_until_something_comes_before_it() {
    within(async {
        let server = Served::plain().await;
        let json = call("steps", None).send(server.at).await;
        assert!(json.header("content-length").is_some());
        assert_eq!(said(&json.json()), "done");
        for name in ["steps", "burst"] {
            let stream = call(name, Some(json!(1))).send(server.at).await;
            assert_eq!(stream.status, 200);
            assert_eq!(stream.header("x-accel-buffering"), Some("no"));
            assert_eq!(stream.header("cache-control"), Some("no-cache"));
            assert_eq!(said(stream.events().last().expect("a result")), "done");
        }
    })
    .await;
}

#[tokio::test]
async fn events_arrive_while_the_call_is_running() {
    within(async {
        let probe = Probe::default();
        let server = Served::start(builder(&probe)).await;
        let mut wire = Wire::open(server.at).await;
        wire.write(&call("hold", Some(json!("x"))).bytes()).await;
        assert_eq!(wire.head().await.header("content-type"), Some("text/event-stream"));
        let first = wire.chunk().await.expect("an event");
        assert_eq!(progress(&messages(std::str::from_utf8(&first).expect("UTF-8"))), [(json!("x"), 1.0)]);
        probe.entered(1).await;
        probe.let_go(1);
        let last = wire.chunk().await.expect("an event");
        assert_eq!(said(&messages(std::str::from_utf8(&last).expect("UTF-8"))[0]), "let go");
        assert!(wire.chunk().await.is_none());
        // the connection is as good as before
        wire.write(&call("burst", None).bytes()).await;
        assert_eq!(said(&wire.reply().await.json()), "done");
    })
    .await;
}

#[tokio::test]
async fn accept_decides_what_may_be_sent() {
    within(async {
        let server = Served::plain().await;
        let send = async |accept: Option<&str>| {
            let ask = call("steps", Some(json!(1))).without("Accept");
            accept.map_or(ask.clone(), |accept| ask.header("Accept", accept)).send(server.at).await
        };
        for both in [None, Some("*/*"), Some("text/event-stream, application/json;q=0.1")] {
            assert_eq!(send(both).await.events().len(), 4);
        }
        // notifications are dropped for who cannot have them
        assert_eq!(said(&send(Some("application/json")).await.json()), "done");
        let only_events = send(Some("text/event-stream")).await.events();
        assert_eq!(only_events.len(), 4);
        let ask = call("burst", None).with("Accept", "text/event-stream").send(server.at).await;
        assert_eq!(ask.events().len(), 1);
        let neither = send(Some("text/html")).await;
        assert_eq!((neither.status, &neither.json()["id"]), (406, &json!(1)));
        let initialize = Ask::initialize("2025-11-25").with("Accept", "image/png").send(server.at).await;
        assert_eq!((initialize.status, initialize.header("mcp-session-id")), (406, None));
        // nothing is sent back, so nothing can be excluded
        let note =
            Ask::notification("notifications/x", &json!({})).header("MCP-Protocol-Version", "2026-07-28");
        assert_eq!(note.with("Accept", "text/html").send(server.at).await.status, 202);
    })
    .await;
}
