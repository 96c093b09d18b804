//! `events/poll`.

use mcp_runtime::event;

use super::fixture::{Incident, Poller, connect, incident, incident_created, incident_short, serve, titles};
use crate::prelude::*;

#[tokio::test]
async fn a_tool_emits() {
    for transport in Transport::ALL {
        let (server, _handle) = serve();
        let mut created = Poller::begin(&server, transport, "incident.created", json!({})).await;
        let arguments = json!({ "title": "from a tool", "severity": 1 });
        let opened = connect(&server, transport).await.call("open", arguments).await;
        assert_eq!(created.poll(json!({})).await["events"][0]["eventId"], opened.text());
    }
}

#[tokio::test]
async fn arguments_are_checked_and_reported_like_those_of_tools() {
    for transport in Transport::ALL {
        let (server, _handle) = serve();
        let mut client = connect(&server, transport).await;
        let mut poll = async |params: Value| client.reply("events/poll", params).await["error"].clone();
        let error =
            poll(json!({ "name": "incident.created", "arguments": { "severity": 9, "colour": 1 } })).await;
        assert_eq!(error["code"], -32602, "{transport:?} {error}");
        let text = error["message"].as_str().unwrap();
        assert!(text.starts_with("invalid arguments for event `incident.created`:"), "{text}");
        assert!(text.contains("severity"), "{text}");
        assert!(text.contains("unknown argument `colour`"), "{text}");
        assert_eq!(
            poll(json!({ "name": "incident.created", "arguments": { "severity": "3" } })).await,
            Value::Null,
            "repaired"
        );
        assert_eq!(poll(json!({ "name": "incident.created", "arguments": [] })).await["code"], -32602);
        assert_eq!(poll(json!({})).await["code"], -32602);
        for wrong in ["maxEvents", "maxAgeMs", "timeoutMs", "cursor"] {
            for value in [json!(-1), json!([]), json!(1.5)] {
                let error = poll(json!({ "name": "incident.created", wrong: value })).await;
                assert_eq!(error["code"], -32602, "{wrong}: {value}");
            }
        }
        let error = poll(json!({ "name": "incident.craeted" })).await;
        assert_eq!((&error["code"], &error["data"]), (&json!(-32023), &json!({ "kind": "event" })));
        assert!(error["message"].as_str().unwrap().contains("did you mean `incident.created`?"), "{error}");
    }
}

#[tokio::test]
async fn strict_refuses_unknown_names_in_arguments_of_events_at_every_depth_and_closes_no_payload() {
    #[mcp_type]
    struct Filter {
        severity: Option<u8>,
    }
    #[mcp_event]
    fn filtered(#[mcp(payload)] incident: &Incident, filter: Option<Filter>) -> bool {
        filter.is_none_or(|filter| filter.severity == Some(incident.severity))
    }

    let builder = mcp_runtime::server!().add(event::of::<filtered>());
    let server = builder.lists(|lists| lists.strict()).build().unwrap();
    for transport in Transport::ALL {
        let mut client = connect(&server, transport).await;
        let listed = client.reply("events/list", json!({})).await["events"][0].clone();
        assert_eq!(listed["inputSchema"]["additionalProperties"], false, "{listed}");
        assert_eq!(listed["inputSchema"]["properties"]["filter"]["additionalProperties"], false, "{listed}");
        assert_eq!(listed["payloadSchema"].get("additionalProperties"), None, "{listed}");
        let mut poll = async |arguments: Value| {
            client.reply("events/poll", json!({ "name": "filtered", "arguments": arguments })).await["error"]
                .clone()
        };
        assert_eq!(poll(json!({ "filter": { "severity": 3 } })).await, Value::Null);
        for (wrong, name) in
            [(json!({ "colour": 1 }), "colour"), (json!({ "filter": { "sevrity": 3 } }), "sevrity")]
        {
            let error = poll(wrong).await;
            assert_eq!(error["code"], -32602, "{error}");
            assert!(error["message"].as_str().unwrap().contains(name), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_waits_for_half_a_minute_at_most() {
    let (server, _) = serve();
    let mut poller = Poller::begin(&server, Transport::Memory, "incident.created", json!({})).await;
    let asked = tokio::time::Instant::now();
    assert_eq!(poller.poll(json!({ "timeoutMs": 3_600_000 })).await["events"], json!([]));
    assert_eq!(asked.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn a_poll_ends_when_the_server_stops() {
    let (server, handle) = serve();
    let mut poller = Poller::begin(&server, Transport::Http, "incident.created", json!({})).await;
    let polled = within(async {
        let polling = poller.poll(json!({ "timeoutMs": 3_600_000 }));
        let stopping = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            handle.end_subscriptions();
        };
        tokio::join!(polling, stopping).0
    });
    assert_eq!(polled.await["events"], json!([]));
}

#[tokio::test]
async fn an_event_for_which_the_function_fails_is_a_gap_and_the_others_are_delivered() {
    let (server, handle) = serve();
    let mut created = Poller::begin(&server, Transport::Memory, "incident.created", json!({})).await;
    let mut short = Poller::begin(&server, Transport::Memory, "incident.short", json!({})).await;
    for title in ["a", "panic", "b"] {
        handle.emit::<incident_created>(&incident(title, 1)).await.unwrap();
    }
    for title in ["broken", "fine"] {
        handle.emit::<incident_short>(&incident(title, 1)).await.unwrap();
    }
    for (poller, expected) in [(&mut created, &["a", "b"][..]), (&mut short, &["fine"])] {
        let polled = poller.poll(json!({})).await;
        assert_eq!(
            (titles(&polled), &polled["truncated"]),
            (expected.iter().map(|t| t.to_string()).collect(), &json!(true))
        );
        assert_eq!(poller.poll(json!({})).await["truncated"], false);
    }
}

#[tokio::test]
async fn a_response_is_bounded_in_bytes_and_the_rest_comes_with_the_next() {
    let (server, handle) = serve();
    let mut poller = Poller::begin(&server, Transport::Http, "incident.created", json!({})).await;
    for _ in 0..12 {
        handle.emit::<incident_created>(&incident(&"x".repeat(150 << 10), 1)).await.unwrap();
    }
    let polled = poller.poll(json!({})).await;
    let first = titles(&polled).len();
    assert!((7..=8).contains(&first) && polled["hasMore"] == true, "{first}");
    assert_eq!(titles(&poller.poll(json!({})).await).len(), 12 - first);
}
