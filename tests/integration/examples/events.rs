//! The `events` example.

use crate::prelude::*;

#[allow(dead_code, reason = "`main` is what the example's program has besides")]
#[path = "../../../examples/events.rs"]
mod example;

#[tokio::test]
async fn a_subscriber_gets_the_incidents_that_it_asked_for() {
    let server = TestServer::new(example::server(None)).unwrap();
    let subscription = json!({ "name": "incident.opened", "arguments": { "severity": 2 } });
    let begun = server.request("events/poll", subscription.clone()).await;
    for (title, severity) in [("lamp", 4), ("database", 1)] {
        server.call("open", json!({ "title": title, "severity": severity })).await.expect_ok();
    }
    let mut poll = subscription;
    poll["cursor"] = begun.value()["cursor"].clone();
    let polled = server.request("events/poll", poll).await;
    let events = polled.value()["events"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{polled}");
    assert_eq!(events[0]["data"], json!({ "title": "database", "severity": 1 }));
}
