//! What the extension defines, row by row, over every transport: the test makes the table of docs/conformance.md.

use std::{future::Future, pin::Pin};

use mcp_runtime::event;
use mcp_tests::programs::manifest_dir;

use super::{
    fixture::{
        Incident, Poller, builder, connect, incident, incident_created, incident_short, serve, titles,
    },
    webhook::{Endpoint, secret},
};
use crate::prelude::*;

const CREATED: &str = "incident.created";

type Check = fn(Transport) -> Pin<Box<dyn Future<Output = ()>>>;

/// What is checked, the check, and why it does not apply over some transports.
type Row = (&'static str, Check, &'static [(Transport, &'static str)]);

macro_rules! rows {
    ($($text:literal: $check:ident $([$($except:ident: $why:literal),+])?,)+) => {
        const ROWS: &[Row] = &[
            $(($text, |transport| Box::pin($check(transport)), &[$($((Transport::$except, $why)),+)?]),)+
        ];
    };
}

rows! {
    "declared in `extensions` and as `events`": declares_events,
    "unknown to clients of 2025-11-25": is_unknown_to_legacy_clients,
    "`events/list`: fields of an event": lists_fields,
    "`events/list`: pages": lists_pages,
    "`events/list`: `ttlMs` and `cacheScope`": lists_are_cached,
    "`notifications/events/list_changed`": says_that_the_list_has_changed,
    "`visible`: hidden events are not found": hides_events [Stdio: "the host of a process may use everything"],
    "`scopes`: for callers who have them": needs_scopes [Stdio: "the host of a process may use everything"],
    "`events/poll`: begins without a cursor, and continues with it": polls,
    "`events/poll`: held open for `timeoutMs`": polls_wait,
    "`events/poll`: `maxEvents`, `hasMore`, `nextPollMs`": polls_in_parts,
    "`events/poll`: `truncated`": polls_tell_of_gaps,
    "`events/poll`: `maxAgeMs`": polls_leave_out_old_events,
    "a cursor is bound to its event and arguments": binds_cursors,
    "a cursor is bound to its caller": binds_cursors_to_callers [Stdio: "the host of a process is the only caller"],
    "`events/stream`: `active`, then `event` with a cursor that a poll continues": streams,
    "`events/stream`: continues from a cursor, of a poll as well": streams_continue [Memory: "a stream of the test kit begins when it is opened"],
    "`events/stream`: `heartbeat` with a cursor": streams_have_heartbeats,
    "`events/stream`: `error`, and the stream goes on": streams_tell_of_errors,
    "`events/stream`: `terminated` with the reason, then its result": streams_are_terminated [Stdio: "the host of a process may use everything"],
    "`events/stream`: its result when the server stops": streams_end_with_the_server,
    "`events/stream`: errors with their `data`": streams_are_refused,
    "`events/subscribe` without a principal": subscribing_needs_a_principal,
    "`events/subscribe`: its result, signed deliveries, `events/unsubscribe`": subscribes [Stdio: "a subscription by webhook belongs to a principal"],
    "`events/subscribe`, `events/unsubscribe`: errors with their `data`": subscribing_is_refused [Stdio: "a subscription by webhook belongs to a principal"],
    "`rate`: for `events/poll` and `events/stream`": rates_hold,
    "`rate`: for `events/subscribe`": rates_hold_for_webhooks [Stdio: "a subscription by webhook belongs to a principal"],
    "spans, metrics and audit log name method and event": is_observed,
}

/// For callers with a scope.
#[mcp_event(scopes("incidents:read"))]
fn guarded(#[mcp(payload)] _incident: &Incident) {}

/// One each hour.
#[mcp_event(rate = "1/1h")]
fn rare(#[mcp(payload)] _incident: &Incident) {}

/// A server whose callers over HTTP say who they are.
fn with_callers(builder: ServerBuilder) -> Server {
    let builder = builder.http(|http| http.caller(x_user));
    builder.build().expect("a server")
}

fn with_webhooks(limits: fn(event::EventLimits) -> event::EventLimits) -> Server {
    let builder = builder().add(event::of::<rare>());
    with_callers(builder.limits(|all| all.events(|events| limits(events.webhooks_on_loopback()))))
}

pub(super) async fn emit(server: &Server, title: &str, severity: u8) {
    server.handle().emit::<incident_created>(&incident(title, severity)).id(title).await.expect("an id");
}

/// A client of this caller, if the transport has several.
async fn called_by(subject: &str, server: &Server, transport: Transport) -> Client {
    let client = connect(server, transport).await;
    if transport == Transport::Stdio { client } else { client.calling_as(subject) }
}

/// The ids of the events in the result of a poll that has missed none.
#[track_caller]
pub(super) fn ids(polled: &Value) -> Vec<&str> {
    assert_eq!(polled["truncated"], false, "{polled}");
    polled["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|event| event["eventId"].as_str())
        .collect()
}

/// The `params` of the next message of the open stream, which is of that kind.
pub(super) async fn next(client: &mut Client, kind: &str) -> Value {
    let message = client.next_message().await;
    assert_eq!(message["method"], format!("notifications/events/{kind}"), "{message}");
    assert_eq!(&message["params"]["_meta"], &json!({ SUBSCRIPTION: client.subscription() }), "{message}");
    message["params"].clone()
}

async fn error(client: &mut Client, method: &str, params: Value) -> Value {
    let reply = client.reply(method, params.clone()).await;
    assert!(reply["error"].is_object(), "{method} {params}: {reply}");
    reply["error"].clone()
}

#[track_caller]
fn assert_error(error: &Value, code: i64, data: &Value) {
    assert_eq!((&error["code"], &error["data"]), (&json!(code), data), "{error}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
}

async fn declares_events(transport: Transport) {
    let (server, _handle) = serve();
    let declared = connect(&server, transport).await.reply("server/discover", json!({})).await;
    let capabilities = &declared["capabilities"];
    assert_eq!(capabilities["events"]["listChanged"], true, "{capabilities}");
    assert_eq!(
        capabilities["extensions"]["io.modelcontextprotocol/events"]["listChanged"], true,
        "{capabilities}"
    );
}

async fn is_unknown_to_legacy_clients(transport: Transport) {
    for revision in LEGACY {
        let (server, _handle) = serve();
        let mut client = Client::connect(&server, transport, revision, json!({}), no_requests).await;
        for method in ["events/list", "events/poll", "events/stream"] {
            let error = error(&mut client, method, json!({ "name": CREATED })).await;
            assert_eq!(error["code"], -32601, "{revision}");
        }
    }
}

async fn lists_fields(transport: Transport) {
    let (server, _handle) = serve();
    let (entries, _) = connect(&server, transport).await.list("events/list", "events").await;
    let names: Vec<_> = entries.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["incident.created", "incident.short", "reset"]);
    assert_eq!(
        entries[0],
        json!({
            "name": "incident.created",
            "description": "A new incident was opened.",
            "delivery": entries[0]["delivery"],
            "inputSchema": {
                "type": "object",
                "properties": {
                    "severity": {
                        "type": "integer",
                        "description": "The least severity",
                        "default": 4,
                        "minimum": 1,
                        "maximum": 4
                    }
                }
            },
            "payloadSchema": {
                "type": "object",
                "properties": {
                    "title": { "type": "string" },
                    "severity": { "type": "integer", "description": "1 is the worst", "minimum": 0, "maximum": 255 }
                },
                "required": ["title", "severity"]
            },
            "_meta": { "team": "ops" }
        }),
        "{transport:?}"
    );
    assert!(entries[0]["delivery"].as_array().unwrap().contains(&json!("poll")));
    assert_eq!(entries[2]["delivery"], json!(["poll"]));
    let summary = &entries[1]["payloadSchema"]["properties"];
    assert!(summary.get("seen_by").is_some() && summary.get("severity").is_none(), "{summary}");
}

async fn lists_pages(transport: Transport) {
    let server = builder().lists(|lists| lists.page_size(1)).build().expect("a server");
    let (events, pages) = connect(&server, transport).await.list("events/list", "events").await;
    let names: Vec<_> = events.iter().map(|event| event["name"].as_str().expect("a name")).collect();
    assert_eq!((names, pages), (vec![CREATED, "incident.short", "reset"], 3));
}

async fn lists_are_cached(transport: Transport) {
    let (plain, _handle) = serve();
    let minute = |builder: ServerBuilder| builder.lists(|lists| lists.ttl(Duration::from_secs(60)));
    let same = minute(builder()).build().expect("a server");
    let differs = with_callers(minute(builder()).lists(|lists| lists.visible(|_, _| true)));
    for (server, ttl, scope) in
        [(&plain, 0, "private"), (&same, 60_000, "public"), (&differs, 60_000, "private")]
    {
        let list = called_by("ada", server, transport).await.reply("events/list", json!({})).await;
        assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(ttl), &json!(scope)), "{list}");
    }
}

async fn says_that_the_list_has_changed(transport: Transport) {
    let (server, handle) = serve();
    let mut client = connect(&server, transport).await;
    let filter = json!({ "eventsListChanged": true });
    assert_eq!(client.listen(filter.clone()).await, filter);
    handle.tools_changed();
    handle.events_changed();
    assert_eq!(client.next_message().await["method"], "notifications/events/list_changed");
}

async fn hides_events(transport: Transport) {
    let server = with_callers(builder().lists(|lists| {
        lists.visible(|caller, item| {
            caller.is_some_and(|caller| caller.subject() == "ada") || item.name() != CREATED
        })
    }));
    for (subject, visible) in [("ada", 3), ("bob", 2)] {
        let mut client = called_by(subject, &server, transport).await;
        assert_eq!(client.list("events/list", "events").await.0.len(), visible, "{subject}");
    }
    let mut client = called_by("bob", &server, transport).await;
    for method in ["events/poll", "events/stream", "events/subscribe"] {
        let error = error(&mut client, method, wanted("https://example.com/", CREATED)).await;
        assert_error(&error, -32023, &json!({ "kind": "event" }));
    }
}

async fn needs_scopes(transport: Transport) {
    let scoped = builder().add(event::of::<guarded>()).http(|http| {
        http.caller(|parts| {
            let name = parts.headers.get("x-user")?.to_str().ok()?;
            let scopes = (name == "ada").then_some("incidents:read");
            Some(Principal::new("test", name).with_scopes(scopes))
        })
    });
    let server = scoped.build().expect("a server");
    let poll = json!({ "name": "guarded" });
    if transport == Transport::Memory {
        let ada = Principal::new("test", "ada").with_scopes(["incidents:read"]);
        TestServer::of(&server).caller(ada).request("events/poll", poll.clone()).await.expect_ok();
    } else {
        let mut ada = connect(&server, transport).await.calling_as("ada");
        assert!(ada.reply("events/poll", poll.clone()).await["cursor"].is_string());
    }
    let mut bob = connect(&server, transport).await.calling_as("bob");
    let (events, _) = bob.list("events/list", "events").await;
    assert!(events.iter().all(|event| event["name"] != "guarded"), "{events:?}");
    for method in ["events/poll", "events/stream"] {
        let error = error(&mut bob, method, poll.clone()).await;
        assert_error(&error, -32023, &json!({ "kind": "event" }));
    }
}

async fn polls(transport: Transport) {
    let (server, handle) = serve();
    emit(&server, "before", 1).await;
    let mut bad = Poller::begin(&server, transport, CREATED, json!({ "severity": 2 })).await;
    let mut all = Poller::begin(&server, transport, CREATED, json!({})).await;
    let id = handle.emit::<incident_created>(&incident("minor", 3)).await.expect("an id");
    handle.emit::<incident_created>(&incident("major", 1)).id("INC-1").await.expect("an id");
    let polled = bad.poll(json!({})).await;
    let event = &polled["events"][0];
    assert_eq!(ids(&polled), ["INC-1"]);
    assert_eq!(
        (&event["name"], &event["data"]),
        (&json!(CREATED), &json!({ "title": "major", "severity": 1 }))
    );
    assert!(
        event["timestamp"].as_str().is_some_and(|time| time.ends_with('Z') && time.contains('T')),
        "{event}"
    );
    assert!(event.get("cursor").is_none() && polled["nextPollMs"] == 5000, "{polled}");
    assert_eq!(ids(&all.poll(json!({})).await), [&id, "INC-1"]);
    assert_eq!(bad.titles().await, [""; 0], "each event once");
    emit(&server, "next", 1).await;
    assert_eq!((bad.titles().await, all.titles().await), (vec!["next".to_owned()], vec!["next".to_owned()]));
}

async fn polls_wait(transport: Transport) {
    let (server, _handle) = serve();
    let mut poller = Poller::begin(&server, transport, CREATED, json!({ "severity": 2 })).await;
    let emitting = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        emit(&server, "other", 4).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        emit(&server, "wanted", 1).await;
    };
    let (polled, ()) = tokio::join!(poller.poll(json!({ "timeoutMs": 25_000 })), emitting);
    assert_eq!((titles(&polled), &polled["nextPollMs"]), (vec!["wanted".to_owned()], &json!(1000)));
    assert_eq!(poller.poll(json!({ "timeoutMs": 1 })).await["events"], json!([]));
}

async fn polls_in_parts(transport: Transport) {
    let (server, _handle) = serve();
    let mut poller = Poller::begin(&server, transport, CREATED, json!({})).await;
    for n in 0..250 {
        emit(&server, &n.to_string(), 1).await;
    }
    let first = poller.poll(json!({ "maxEvents": 3 })).await;
    assert_eq!((ids(&first), &first["hasMore"]), (vec!["0", "1", "2"], &json!(true)));
    assert_eq!(first["nextPollMs"], 5000);
    // no more than a hundred in one response
    for (more, count, has_more) in
        [(json!({}), 100, true), (json!({ "maxEvents": 1_000_000 }), 100, true), (json!({}), 47, false)]
    {
        let polled = poller.poll(more).await;
        assert_eq!((ids(&polled).len(), &polled["hasMore"]), (count, &json!(has_more)));
    }
}

async fn polls_tell_of_gaps(transport: Transport) {
    let server =
        builder().limits(|limits| limits.events(|events| events.max_kept(2))).build().expect("a server");
    let mut poller = Poller::begin(&server, transport, CREATED, json!({})).await;
    for title in ["one", "two", "three"] {
        emit(&server, title, 1).await;
    }
    let polled = poller.poll(json!({})).await;
    assert_eq!((titles(&polled), &polled["truncated"]), (vec!["two".into(), "three".into()], &json!(true)));
    assert_eq!(poller.poll(json!({})).await["truncated"], false);
    for cursor in ["", "nonsense", "AAAA"] {
        let polled = poller.poll(json!({ "cursor": cursor })).await;
        assert_eq!((titles(&polled).len(), &polled["truncated"]), (0, &json!(true)), "{cursor}");
    }
    assert_eq!(poller.poll(json!({})).await["truncated"], false);
}

async fn polls_leave_out_old_events(transport: Transport) {
    let (server, _handle) = serve();
    let mut poller = Poller::begin(&server, transport, CREATED, json!({})).await;
    emit(&server, "old", 1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let kept = poller.cursor.clone();
    let polled = poller.poll(json!({ "maxAgeMs": 1 })).await;
    assert_eq!((titles(&polled).len(), &polled["truncated"]), (0, &json!(true)));
    let polled = poller.poll(json!({ "maxAgeMs": 600_000, "cursor": kept })).await;
    assert_eq!((titles(&polled).len(), &polled["truncated"]), (1, &json!(false)));
}

async fn binds_cursors(transport: Transport) {
    let (server, _handle) = serve();
    let mut poller = Poller::begin(&server, transport, CREATED, json!({ "severity": 4 })).await;
    emit(&server, "one", 1).await;
    server.handle().emit::<incident_short>(&incident("one", 1)).await.expect("an id");
    let mut client = connect(&server, transport).await;
    for (name, arguments, truncated) in [
        (CREATED, json!({ "severity": 4 }), false),
        (CREATED, json!({ "severity": 4.0 }), false),
        (CREATED, json!({ "severity": 3 }), true),
        (CREATED, json!({}), true),
        ("incident.short", json!({}), true),
    ] {
        let poll = json!({ "name": name, "arguments": arguments, "cursor": poller.cursor });
        assert_eq!(client.reply("events/poll", poll).await["truncated"], truncated, "{name} {arguments}");
    }
    assert_eq!(poller.titles().await, ["one"]);
}

async fn binds_cursors_to_callers(transport: Transport) {
    let server = with_callers(builder());
    let [mut ada, mut bob] = [
        connect(&server, transport).await.calling_as("ada"),
        connect(&server, transport).await.calling_as("bob"),
    ];
    let cursor = ada.reply("events/poll", json!({ "name": CREATED })).await["cursor"].clone();
    let poll = json!({ "name": CREATED, "cursor": cursor });
    assert_eq!(ada.reply("events/poll", poll.clone()).await["truncated"], false);
    assert_eq!(bob.reply("events/poll", poll.clone()).await["truncated"], true);
    let mut anonymous = connect(&server, transport).await;
    assert_eq!(anonymous.reply("events/poll", poll).await["truncated"], true);
}

async fn streams(transport: Transport) {
    let (server, _handle) = serve();
    emit(&server, "before", 1).await;
    let mut client = connect(&server, transport).await;
    let arguments = json!({ "severity": 2 });
    let active = client.stream_events(json!({ "name": CREATED, "arguments": arguments })).await;
    assert_eq!((active["cursor"].is_string(), &active["truncated"]), (true, &json!(false)), "{active}");
    for (title, severity) in [("one", 1), ("other", 4), ("two", 2)] {
        emit(&server, title, severity).await;
    }
    let one = next(&mut client, "event").await;
    assert_eq!((&one["eventId"], &one["name"]), (&json!("one"), &json!(CREATED)), "{one}");
    assert_eq!(one["data"], json!({ "title": "one", "severity": 1 }));
    assert!(one["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{one}");
    let two = next(&mut client, "event").await;
    assert_eq!(two["eventId"], "two");
    let mut poller = connect(&server, transport).await;
    for (event, after) in [(active, &["one", "two"][..]), (one, &["two"]), (two, &[])] {
        let poll = json!({ "name": CREATED, "arguments": arguments, "cursor": event["cursor"] });
        assert_eq!(ids(&poller.reply("events/poll", poll).await), after);
    }
}

async fn streams_continue(transport: Transport) {
    let (server, _handle) = serve();
    let poller = Poller::begin(&server, transport, CREATED, json!({})).await;
    emit(&server, "one", 1).await;
    let of_a_poll = json!({ "name": CREATED, "arguments": {}, "cursor": poller.cursor });
    let mut client = connect(&server, transport).await;
    assert_eq!(client.stream_events(of_a_poll.clone()).await["truncated"], false);
    let one = next(&mut client, "event").await;
    assert_eq!(one["eventId"], "one");
    emit(&server, "two", 1).await;
    let mut again = connect(&server, transport).await;
    let of_an_event = json!({ "name": CREATED, "cursor": one["cursor"] });
    assert_eq!(again.stream_events(of_an_event).await["truncated"], false);
    assert_eq!(next(&mut again, "event").await["eventId"], "two");
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut aged = of_a_poll;
    aged["maxAgeMs"] = 1.into();
    for params in [aged, json!({ "name": CREATED, "cursor": "nonsense" })] {
        let mut lost = connect(&server, transport).await;
        assert_eq!(lost.stream_events(params).await["truncated"], true);
        emit(&server, "three", 1).await;
        assert_eq!(next(&mut lost, "event").await["eventId"], "three");
    }
    assert_eq!(next(&mut again, "event").await["eventId"], "three");
}

async fn streams_have_heartbeats(transport: Transport) {
    let (server, _handle) = serve();
    let client = connect(&server, transport).await;
    let silent = async |seconds| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
    };
    let poll = async |heartbeat: &Value| {
        let poll = json!({ "name": CREATED, "arguments": { "severity": 1 }, "cursor": heartbeat["cursor"] });
        connect(&server, transport).await.reply("events/poll", poll).await
    };
    let heartbeat = if transport == Transport::Memory {
        let mut events = client.memory().events(CREATED, json!({ "severity": 1 })).await;
        emit(&server, "minor", 4).await;
        assert_eq!(events.try_next(), None);
        silent(24).await;
        assert_eq!(events.try_next(), None);
        let mut last = Value::Null;
        for _ in 0..2 {
            silent(26).await;
            last = events.try_next().expect("a message");
            assert_eq!(last["method"], "notifications/events/heartbeat");
            assert_eq!(ids(&poll(&last["params"]).await), [""; 0]);
            assert_eq!(events.try_next(), None);
        }
        last["params"].clone()
    } else {
        let mut client = client;
        client.stream_events(json!({ "name": CREATED, "arguments": { "severity": 1 } })).await;
        silent(26).await;
        next(&mut client, "heartbeat").await
    };
    emit(&server, "one", 1).await;
    assert_eq!(ids(&poll(&heartbeat).await), ["one"]);
}

async fn streams_tell_of_errors(transport: Transport) {
    let (server, handle) = serve();
    let mut client = connect(&server, transport).await;
    client.stream_events(json!({ "name": "incident.short", "arguments": { "only": "n" } })).await;
    for title in ["broken", "other", "fine"] {
        handle.emit::<incident_short>(&incident(title, 1)).await.expect("an id");
    }
    assert_eq!(next(&mut client, "active").await["truncated"], true);
    let error = next(&mut client, "error").await["error"].clone();
    assert_eq!((&error["code"], &error["message"]), (&json!(-32603), &json!("the directory is down")));
    assert_eq!(next(&mut client, "event").await["data"], json!({ "title": "fine", "seen_by": null }));
}

async fn streams_are_terminated(transport: Transport) {
    let is_open = Arc::new(AtomicBool::new(true));
    let rule = is_open.clone();
    let hidden = builder()
        .lists(|lists| lists.visible(move |_, item| item.name() != CREATED || rule.load(Ordering::SeqCst)));
    let server = with_callers(hidden);
    let mut revoked = called_by("bob", &server, transport).await;
    revoked.stream_events(json!({ "name": "incident.short" })).await;
    server.handle().end_streams_of(&Principal::new("test", "bob"));
    let error = next(&mut revoked, "terminated").await["error"].clone();
    assert_error(&error, -32024, &json!({ "reason": "the access of the subscriber has ended" }));
    let mut client = called_by("ada", &server, transport).await;
    client.stream_events(json!({ "name": CREATED })).await;
    is_open.store(false, Ordering::SeqCst);
    server.handle().events_changed();
    let error = next(&mut client, "terminated").await["error"].clone();
    assert!(error["code"] == -32024 && error["data"]["reason"].is_string(), "{error}");
    if transport != Transport::Memory {
        let result = client.next_message().await;
        assert_eq!(
            (&result["id"], &result["result"]["resultType"]),
            (client.subscription(), &json!("complete"))
        );
    }
}

async fn streams_end_with_the_server(transport: Transport) {
    let (server, handle) = serve();
    if transport == Transport::Memory {
        let events = TestServer::of(&server).events(CREATED, json!({})).await;
        handle.end_subscriptions();
        assert_eq!(events.ended().await["resultType"], "complete");
        return;
    }
    let mut client = connect(&server, transport).await;
    client.stream_events(json!({ "name": CREATED })).await;
    handle.end_subscriptions();
    let result = client.next_message().await;
    assert_eq!((&result["id"], &result["result"]["resultType"]), (client.subscription(), &json!("complete")));
    assert_eq!(&result["result"]["_meta"][SUBSCRIPTION], client.subscription(), "{result}");
}

async fn streams_are_refused(transport: Transport) {
    let limits = builder().limits(|limits| limits.max_subscribers(1).max_in_flight(1));
    let server = limits.build().expect("a server");
    let mut client = connect(&server, transport).await;
    for (params, code, data) in [
        (json!({ "name": "incident.craeted" }), -32023, json!({ "kind": "event" })),
        (json!({ "name": "reset" }), -32026, json!({ "feature": "deliveryMode", "value": "push" })),
        (json!({ "name": CREATED, "arguments": { "severity": 9 } }), -32602, Value::Null),
        (json!({ "name": CREATED, "maxAgeMs": -1 }), -32602, Value::Null),
        (json!({ "name": CREATED, "cursor": 7 }), -32602, Value::Null),
        (json!({}), -32602, Value::Null),
    ] {
        let refused = error(&mut client, "events/stream", params.clone()).await;
        assert_error(&refused, code, &data);
        if params["arguments"].is_object() {
            let text = refused["message"].as_str().expect("a text");
            assert!(text.starts_with("invalid arguments for event `incident.created`:"), "{text}");
        }
    }
    // the refused ones hold nothing
    client.stream_events(json!({ "name": CREATED })).await;
    let mut other = connect(&server, transport).await;
    let full = error(&mut other, "events/stream", json!({ "name": CREATED })).await;
    assert_error(&full, -32025, &json!({ "limit": "subscriptions" }));
    // streams are not calls
    let opened = client.call("open", json!({ "title": "by a tool", "severity": 1 })).await;
    assert!(!opened.text().is_empty());
}

/// The params of `events/subscribe`.
fn wanted(url: &str, name: &str) -> Value {
    let delivery = json!({ "mode": "webhook", "url": url, "secret": secret(1) });
    json!({ "name": name, "arguments": {}, "delivery": delivery, "cursor": null })
}

async fn subscribing_needs_a_principal(transport: Transport) {
    let server = with_webhooks(|limits| limits);
    let mut client = connect(&server, transport).await;
    for method in ["events/subscribe", "events/unsubscribe"] {
        let error = error(&mut client, method, wanted("https://example.com/", CREATED)).await;
        assert!(error["code"] == -32024 && error["data"]["reason"].is_string(), "{error}");
    }
}

async fn subscribes(transport: Transport) {
    let (server, endpoint) = (with_webhooks(|limits| limits), Endpoint::start().await);
    let mut client = connect(&server, transport).await.calling_as("ada");
    let wanted = wanted(&endpoint.url, CREATED);
    let subscribed = client.reply("events/subscribe", wanted.clone()).await;
    for member in ["id", "refreshBefore", "cursor"] {
        assert!(subscribed[member].is_string(), "{subscribed}");
    }
    assert_eq!(subscribed["truncated"], false);
    emit(&server, "one", 1).await;
    assert!(soon(|| endpoint.events() == ["one"]).await, "{:?}", endpoint.events());
    assert!(endpoint.messages().iter().all(|message| message.is_signed_by(&secret(1))));
    assert_eq!(
        client.reply("events/subscribe", wanted.clone()).await["id"],
        subscribed["id"],
        "the same again"
    );
    assert_eq!(client.reply("events/unsubscribe", wanted.clone()).await["resultType"], "complete");
    let error = error(&mut client, "events/unsubscribe", wanted).await;
    assert_error(&error, -32023, &json!({ "kind": "subscription" }));
}

async fn subscribing_is_refused(transport: Transport) {
    let (server, endpoint) = (with_webhooks(|limits| limits.max_webhooks(1)), Endpoint::start().await);
    let mut client = connect(&server, transport).await.calling_as("ada");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed_url = format!("http://{}/", closed.local_addr().expect("an address"));
    drop(closed);
    for (params, code, data) in [
        (wanted(&endpoint.url, "incident.craeted"), -32023, json!({ "kind": "event" })),
        (wanted(&endpoint.url, "reset"), -32026, json!({ "feature": "deliveryMode", "value": "webhook" })),
        (wanted(&closed_url, CREATED), -32027, json!({ "reason": "connection_refused" })),
        (wanted("https://10.0.0.1/", CREATED), -32602, Value::Null),
    ] {
        let error = error(&mut client, "events/subscribe", params).await;
        assert_error(&error, code, &data);
    }
    let absent = error(&mut client, "events/unsubscribe", wanted(&endpoint.url, CREATED)).await;
    assert_error(&absent, -32023, &json!({ "kind": "subscription" }));
    assert!(client.reply("events/subscribe", wanted(&endpoint.url, CREATED)).await["id"].is_string());
    let full = error(&mut client, "events/subscribe", wanted(&endpoint.url, "incident.short")).await;
    assert_error(&full, -32025, &json!({ "limit": "subscriptions" }));
}

async fn rates_hold(transport: Transport) {
    for method in ["events/poll", "events/stream"] {
        let server = builder().add(event::of::<rare>()).build().expect("a server");
        let mut client = connect(&server, transport).await;
        match method {
            "events/poll" => {
                let polled = client.reply(method, json!({ "name": "rare" })).await;
                assert!(polled["cursor"].is_string(), "{polled}");
            }
            _ => {
                client.stream_events(json!({ "name": "rare" })).await;
            }
        }
        // they count together
        for method in ["events/poll", "events/stream"] {
            let error = error(&mut client, method, json!({ "name": "rare" })).await;
            assert!(error["message"].as_str().is_some_and(|text| text.contains("once in 1 hour")), "{error}");
        }
        assert!(client.reply("events/poll", json!({ "name": CREATED })).await["cursor"].is_string());
    }
}

async fn rates_hold_for_webhooks(transport: Transport) {
    let (server, endpoint) = (with_webhooks(|limits| limits), Endpoint::start().await);
    let mut ada = connect(&server, transport).await.calling_as("ada");
    assert!(ada.reply("events/subscribe", wanted(&endpoint.url, "rare")).await["id"].is_string());
    for (method, params) in
        [("events/subscribe", wanted(&endpoint.url, "rare")), ("events/poll", json!({ "name": "rare" }))]
    {
        let error = error(&mut ada, method, params).await;
        assert!(error["message"].as_str().is_some_and(|text| text.contains("once in 1 hour")), "{error}");
    }
    // one caller does not use up the rate of another
    let mut bob = connect(&server, transport).await.calling_as("bob");
    assert!(bob.reply("events/subscribe", wanted(&endpoint.url, "rare")).await["id"].is_string());
}

async fn is_observed(transport: Transport) {
    let recorded = Spans::capture();
    let lines = AuditLines::default();
    let observed = builder().audit(lines.sink()).telemetry(|telemetry| telemetry.metrics());
    let server = with_callers(observed.limits(|all| all.events(|events| events.webhooks_on_loopback())));
    let endpoint = Endpoint::start().await;
    let mut client = connect(&server, transport).await;
    client.reply("events/list", json!({})).await;
    let worst = json!({ "severity": 1 });
    client.reply("events/poll", json!({ "name": CREATED, "arguments": worst })).await;
    error(&mut client, "events/poll", json!({ "name": "made.up" })).await;
    let mut methods = vec!["events/poll", "events/stream"];
    if transport != Transport::Stdio {
        let mut ada = connect(&server, transport).await.calling_as("ada");
        for method in ["events/subscribe", "events/unsubscribe"] {
            let mut wanted = wanted(&endpoint.url, CREATED);
            wanted["arguments"] = worst.clone();
            let reply = ada.reply(method, wanted).await;
            assert_eq!(reply["resultType"], "complete", "{reply}");
            methods.push(method);
        }
    }
    // a stream is observed when it ends
    let mut streaming = connect(&server, transport).await;
    streaming.stream_events(json!({ "name": CREATED, "arguments": worst })).await;
    server.handle().end_subscriptions();
    drop(streaming);

    let counts = |method: &str| {
        let text = server.metrics().expect("they are collected");
        let event = if method == "events/list" { "" } else { CREATED };
        let labels = [format!("mcp_method_name=\"{method}\""), format!("mcp_event_name=\"{event}\"")];
        text.lines().any(|line| {
            line.starts_with("mcp_server_operation_duration_seconds_count")
                && labels.iter().all(|label| line.contains(label))
        })
    };
    for method in &methods {
        assert!(soon(|| counts(method)).await, "{method}: {}", server.metrics().unwrap_or_default());
    }
    assert!(counts("events/list"));
    let written = || {
        let lines = lines.0.lock().unwrap();
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let line_of = |method: &str, item: &str| {
        written().into_iter().find(|line| line["method"] == method && line["item"] == item)
    };
    for method in &methods {
        assert!(soon(|| line_of(method, CREATED).is_some()).await, "{method}: {:?}", written());
        let line = line_of(method, CREATED).expect("a line");
        assert_eq!((&line["kind"], &line["outcome"]), (&json!("event"), &json!("ok")), "{line}");
        assert_eq!(line["arguments"], json!(["severity"]), "{line}");
    }
    assert_eq!(line_of("events/poll", "made.up").expect("a line")["reason"], "unknown");
    let mut spans = Vec::new();
    for method in &methods {
        let name = format!("{method} {CREATED}");
        let has_ended = || {
            spans.extend(recorded.take());
            spans.iter().any(|span| span.get("otel.name") == Some(&name))
        };
        assert!(soon(has_ended).await, "{method}: {spans:?}");
    }
    // what a client made up is nowhere
    let everything = format!("{spans:?} {}", server.metrics().expect("they are collected"));
    assert!(!everything.contains("made.up"));
}

/// The table as it is in the page.
fn table() -> String {
    let mut text = "| | memory | stdio | HTTP |\n|---|---|---|---|\n".to_owned();
    for (row, _, except) in ROWS {
        let marks = Transport::ALL.map(|transport| {
            let why = except.iter().find(|(excepted, _)| *excepted == transport);
            why.map_or("tested", |(_, why)| *why)
        });
        text += &format!("| {row} | {} |\n", marks.join(" | "));
    }
    text
}

#[tokio::test]
async fn every_row_of_the_extension_holds_over_every_transport_that_has_it() {
    for (row, check, except) in ROWS {
        for transport in Transport::ALL {
            if except.iter().all(|(excepted, _)| *excepted != transport) {
                // shown if the check fails
                eprintln!("{row}: {transport:?}");
                check(transport).await;
            }
        }
    }
}

#[test]
fn the_page_has_the_table_of_these_tests() {
    const BEGIN: &str = "<!-- events over each transport: tests/integration/events/table.rs -->\n";
    const END: &str = "<!-- end of the table -->";
    let path = manifest_dir().join("../docs/conformance.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the table");
    let (written, after) = rest.split_once(END).expect("the end of the table");
    let made = format!("\n{}\n", table());
    if written != made && std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{made}{END}{after}")).expect("the page is written");
        return;
    }
    assert_eq!(written, made, "`UPDATE_GOLDENS=1` writes it");
}
