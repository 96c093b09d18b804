//! Events and the rest of a server: its state, its audit log.

use mcp_runtime::event;

use super::fixture::{Incident, builder, incident};
use crate::prelude::*;

/// 32 bytes, for servers that share cursors.
pub(super) const KEY: [u8; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    29, 30, 31, 32,
];

struct Watched(Mutex<Vec<String>>);

/// Only what is watched.
#[mcp_event]
fn watched(#[mcp(payload)] incident: &Incident, watched: &Watched) -> bool {
    watched.0.lock().unwrap().contains(&incident.title)
}

#[tokio::test]
async fn a_function_takes_state() {
    let state = Watched(Mutex::new(vec!["a".to_owned()]));
    let server = mcp_runtime::server!().add(event::of::<watched>()).state(state).build().unwrap();
    let handle = server.handle();
    let client = TestServer::of(&server);
    let begun = client.request("events/poll", json!({ "name": "watched" })).await;
    for title in ["a", "b"] {
        handle.emit::<watched>(&incident(title, 1)).await.unwrap();
    }
    let poll = json!({ "name": "watched", "cursor": begun.value()["cursor"] });
    let polled = client.request("events/poll", poll).await;
    assert_eq!(super::fixture::titles(polled.value()), ["a"]);
}

#[tokio::test]
async fn a_poll_has_a_line_in_the_audit_log() {
    let lines = AuditLines::default();
    let server = TestServer::new(builder().audit(lines.sink())).unwrap();
    let poll = json!({ "name": "incident.created", "arguments": { "severity": 1 } });
    server.request("events/poll", poll).await.expect_ok();
    server.request("events/poll", json!({ "name": "absent" })).await.expect_code(-32023);
    let lines: Vec<Value> = vec![lines.next().await, lines.next().await];
    let call = lines.iter().find(|line| line["item"] == "incident.created").unwrap();
    assert_eq!(
        (&call["method"], &call["kind"], &call["outcome"]),
        (&json!("events/poll"), &json!("event"), &json!("ok"))
    );
    assert_eq!(call["arguments"], json!(["severity"]));
    let refused = lines.iter().find(|line| line["item"] == "absent").unwrap();
    assert_eq!(refused["reason"], "unknown");
}
