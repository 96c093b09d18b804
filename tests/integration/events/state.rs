//! Events and the rest of a server: its state, its audit log.

use std::sync::{Arc, Mutex};

use mcp_runtime::{audit::Audit, event, prelude::*, testing::TestServer};
use serde_json::{Value, json};

use super::fixture::{Incident, builder, incident};

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

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_poll_has_a_line_in_the_audit_log() {
    let lines = Lines::default();
    let server = TestServer::new(builder().audit(Audit::to_writer(lines.clone()))).unwrap();
    let poll = json!({ "name": "incident.created", "arguments": { "severity": 1 } });
    server.request("events/poll", poll).await.expect_ok();
    server.request("events/poll", json!({ "name": "absent" })).await.expect_code(-32023);
    let read = || {
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    assert!(mcp_tests::support::soon(|| read().len() >= 2).await);
    let lines = read();
    let call = lines.iter().find(|line| line["item"] == "incident.created").unwrap();
    assert_eq!(
        (&call["method"], &call["kind"], &call["outcome"]),
        (&json!("events/poll"), &json!("event"), &json!("ok"))
    );
    assert_eq!(call["arguments"], json!(["severity"]));
    let refused = lines.iter().find(|line| line["item"] == "absent").unwrap();
    assert_eq!(refused["reason"], "unknown");
}
