//! Which responses are JSON and which are event streams.

use super::fixture::plain;
use crate::prelude::*;

fn call(name: &str, token: Option<Value>) -> HttpRequest {
    let meta = token.map_or_else(|| json!({}), |token| json!({"progressToken": token}));
    HttpRequest::modern(1, "tools/call", json!({"name": name, "_meta": meta}))
}

#[tokio::test]
async fn a_response_is_json_unless_a_notification_precedes_it() {
    let server = plain().await;
    let json = call("steps", None).send(server.address).await;
    assert!(json.header("content-length").is_some());
    assert_eq!(text_of(&json.json()), "done");
    for name in ["steps", "burst"] {
        let stream = call(name, Some(json!(1))).send(server.address).await;
        assert_eq!(stream.status, 200);
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        assert_eq!(stream.header("cache-control"), Some("no-cache"));
        assert_eq!(text_of(stream.messages().last().expect("a result")), "done");
    }
}

#[tokio::test]
async fn accept_selects_the_media_type() {
    let server = plain().await;
    let send = async |accept: Option<&str>| {
        let request = call("steps", Some(json!(1))).without("Accept");
        accept.map_or(request.clone(), |accept| request.header("Accept", accept)).send(server.address).await
    };
    for both in [None, Some("*/*"), Some("text/event-stream, application/json;q=0.1")] {
        assert_eq!(send(both).await.messages().len(), 4);
    }
    // notifications are dropped for a client that accepts only JSON
    assert_eq!(text_of(&send(Some("application/json")).await.json()), "done");
    let only_events = send(Some("text/event-stream")).await.messages();
    assert_eq!(only_events.len(), 4);
    let request = call("burst", None).with("Accept", "text/event-stream").send(server.address).await;
    assert_eq!(request.messages().len(), 1);
    let neither = send(Some("text/html")).await;
    assert_eq!((neither.status, &neither.json()["id"]), (406, &json!(1)));
    let initialize =
        HttpRequest::initialize("2025-11-25").with("Accept", "image/png").send(server.address).await;
    assert_eq!((initialize.status, initialize.header("mcp-session-id")), (406, None));
    // a response without a body matches any `Accept`
    let note =
        HttpRequest::notification("notifications/x", &json!({})).header("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(note.with("Accept", "text/html").send(server.address).await.status, 202);
}
