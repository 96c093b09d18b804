//! `events/stream`.

use std::time::SystemTime;

use mcp_runtime::event;

use super::{
    fixture::{Incident, builder, connect, incident, incident_created, incident_short, reset, serve},
    table::{emit, ids, next},
};
use crate::prelude::*;

const BAD: &str = "incident.created";

#[tokio::test]
async fn a_client_that_does_not_read_misses_what_has_gone_and_is_told_so() {
    let server = builder().limits(|limits| limits.events(|events| events.max_kept(2))).build().unwrap();
    let mut client = connect(&server, Transport::Memory).await;
    client.stream_events(json!({ "name": BAD })).await;
    for title in ["a", "b", "c", "d"] {
        emit(&server, title, 1).await;
    }
    let active = next(&mut client, "active").await;
    assert_eq!(active["truncated"], true);
    for title in ["c", "d"] {
        assert_eq!(next(&mut client, "event").await["eventId"], title);
    }
    let poll = json!({ "name": BAD, "cursor": active["cursor"] });
    assert_eq!(ids(&client.reply("events/poll", poll).await), ["c", "d"]);
}

#[tokio::test]
async fn what_a_caller_has_open_ends_when_it_expires_or_may_not_see_the_event_and_others_go_on() {
    let is_open = Arc::new(AtomicBool::new(true));
    let rule = is_open.clone();
    let server = builder()
        .lists(|lists| lists.visible(move |_, item| item.name() != BAD || rule.load(Ordering::SeqCst)))
        .build()
        .unwrap();
    let handle = server.handle();
    let called_by = |caller: Principal| TestServer::of(&server).caller(caller);
    let ada = || Principal::new("https://example.com", "ada");
    let begun = called_by(ada()).request("events/poll", json!({ "name": BAD })).await;
    let waiting = json!({ "name": BAD, "cursor": begun.value()["cursor"], "timeoutMs": 20_000 });
    let polling = called_by(ada());
    let waiting = spawn(async move { polling.request("events/poll", waiting).await });
    let expiring = ada().with_expiry(SystemTime::now() + Duration::from_millis(200));
    let mut expiring = called_by(expiring).events("incident.short", json!({})).await;
    let mut other = called_by(ada()).events("incident.short", json!({})).await;

    let error = expiring.next().await;
    assert_eq!(error["method"], "notifications/events/terminated", "{error}");
    assert_eq!(error["params"]["error"]["code"], -32024);
    assert_eq!(expiring.ended().await["resultType"], "complete");
    is_open.store(false, Ordering::SeqCst);
    handle.events_changed();
    waiting.await.unwrap().expect_code(-32024);
    handle.emit::<incident_short>(&incident("still", 1)).await.unwrap();
    assert_eq!(other.next().await["params"]["data"]["title"], "still");
}

#[tokio::test]
async fn a_cancelled_stream_says_nothing_more_and_others_go_on() {
    let (server, _handle) = serve();
    let mut client = connect(&server, Transport::Stdio).await;
    client.stream_events(json!({ "name": BAD })).await;
    let first = client.subscription().clone();
    client.stream_events(json!({ "name": BAD, "arguments": { "severity": 2 } })).await;
    client.notify("notifications/cancelled", json!({ "requestId": first })).await;
    assert_eq!(client.reply("server/discover", json!({})).await["resultType"], "complete");
    for title in ["one", "two"] {
        emit(&server, title, 1).await;
        assert_eq!(next(&mut client, "event").await["eventId"], title);
    }
}

/// Slowly checked.
#[mcp_event(validate = is_even)]
async fn even(#[mcp(payload)] incident: &Incident, number: u32) -> bool {
    tokio::task::yield_now().await;
    u32::from(incident.severity) == number
}

#[mcp_rule]
fn is_even(number: &u32) -> Result<(), String> {
    if number.is_multiple_of(2) { Ok(()) } else { Err("the number is odd".to_owned()) }
}

#[tokio::test]
async fn rules_hold_for_streams() {
    for transport in Transport::ALL {
        let server =
            mcp_runtime::server!().add(event::of::<even>()).add(event::of::<reset>()).build().unwrap();
        let mut client = connect(&server, transport).await;
        let error =
            client.reply("events/stream", json!({ "name": "even", "arguments": { "number": 3 } })).await;
        assert!(error["error"]["message"].as_str().unwrap().contains("the number is odd"), "{error}");
        client.stream_events(json!({ "name": "even", "arguments": { "number": 2 } })).await;
        server.handle().emit::<even>(&incident("two", 2)).await.unwrap();
        assert_eq!(next(&mut client, "event").await["data"]["title"], "two");
    }
}

#[tokio::test]
async fn what_a_client_over_http_does_not_read_is_a_gap_and_stays_out_of_memory() {
    const EMITTED: usize = 800;
    let server = builder().limits(|limits| limits.events(|events| events.max_kept(50))).build().unwrap();
    let http = HttpServer::of(&server).await;
    let request = HttpRequest::modern(1, "events/stream", json!({ "name": BAD }));
    let mut connection = HttpConnection::over(narrow_socket(http.address).await);
    connection.send(&request).await;
    assert_eq!(connection.head().await.status, 200);
    let mut stream = EventStream::of(connection);
    assert_eq!(stream.message().await["method"], "notifications/events/active");
    // some 13 MB, which neither the server nor the buffers of a connection have room for
    let title = "x".repeat(16_000);
    for n in 0..EMITTED {
        server.handle().emit::<incident_created>(&incident(&title, 1)).id(n.to_string()).await.unwrap();
        if n % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let (mut received, mut gaps) = (0, 0);
    let last = (EMITTED - 1).to_string();
    loop {
        let message = stream.message().await;
        gaps += usize::from(message["params"]["truncated"] == true);
        received += usize::from(message["method"] == "notifications/events/event");
        if message["params"]["eventId"] == last.as_str() {
            break;
        }
    }
    assert!(gaps > 0 && received < EMITTED * 3 / 4, "{gaps} gaps, {received} events");
}
