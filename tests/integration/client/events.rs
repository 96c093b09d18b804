//! Events: what is pushed and polled, how a subscription goes on when its connection breaks, and how it ends. The server is
//! written to the text of the extension, so that it can also do what no server should.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_runtime::{
    Revision,
    client::{Client, Error},
};
use mcp_tests::support::{Act, SUBSCRIPTION, notification, refusal, response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{played, until, within};

/// A server over byte streams: what it was asked for, and what it is to say.
struct Peer {
    requests: mpsc::UnboundedReceiver<Value>,
    messages: mpsc::UnboundedSender<Value>,
}

impl Peer {
    /// The next request with this method; notifications count, too.
    async fn next(&mut self, method: &str) -> Value {
        let asked = async {
            loop {
                let request = self.requests.recv().await.expect("the client goes on");
                if request["method"] == method {
                    return request;
                }
            }
        };
        within(asked).await
    }

    fn send(&self, message: Value) {
        self.messages.send(message).expect("the client reads");
    }

    fn reply(&self, request: &Value, result: &Value) {
        self.send(response(request, result.clone()));
    }

    fn refuse(&self, request: &Value, code: i64) {
        self.send(refusal(request, code));
    }

    /// A notification of the stream that a request has opened.
    fn notify(&self, stream: &Value, kind: &str, mut params: Value) {
        params["_meta"] = json!({ SUBSCRIPTION: stream["id"] });
        self.send(notification(&format!("notifications/events/{kind}"), params));
    }

    fn event(&self, stream: &Value, id: &str, cursor: &str) {
        self.notify(stream, "event", with_cursor(occurrence(id), cursor));
    }
}

fn occurrence(id: &str) -> Value {
    json!({ "eventId": id, "name": "note.added", "timestamp": "2026-11-23T12:00:00Z", "data": { "note": id } })
}

fn with_cursor(mut occurrence: Value, cursor: &str) -> Value {
    occurrence["cursor"] = cursor.into();
    occurrence
}

/// A client of a server that lists one event with these ways of delivery; other requests are for the test.
async fn connected(delivery: &[&str]) -> (Client, Peer) {
    let (asked, requests) = mpsc::unbounded_channel();
    let delivery = json!(delivery);
    let capabilities = json!({ "events": { "listChanged": true } });
    let answer = move |method: &str, message: &Value| match method {
        "events/list" => Act::Result(json!({ "events": [
            { "name": "other", "delivery": ["webhook"] },
            { "name": "note.added", "description": "A note", "delivery": delivery, "inputSchema": { "type": "object" } },
        ] })),
        _ => {
            let _test_is_over = asked.send(message.clone());
            Act::Silence
        }
    };
    let (client, messages) = played(Revision::LATEST, capabilities, Client::builder(), answer).await;
    (client, Peer { requests, messages })
}

/// What a subscription has delivered, with `gap` where events may be missing.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<Vec<String>>>);

impl Log {
    fn push(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    async fn is(&self, expected: &[&str]) {
        until(|| self.0.lock().unwrap().len() >= expected.len()).await;
        assert_eq!(*self.0.lock().unwrap(), expected);
    }

    fn subscribe(&self, client: &Client) -> mcp_runtime::client::PendingSubscription {
        let (events, gaps) = (self.clone(), self.clone());
        client
            .on_event("note.added", json!({ "by": "ada" }), move |event| {
                assert_eq!((event.name.as_str(), event.data), ("note.added", json!({ "note": event.id })));
                events.push(&event.id);
            })
            .on_gap(move || gaps.push("gap"))
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_listed_with_their_ways_of_delivery() {
    let (client, _peer) = connected(&["poll", "webhook"]).await;
    let events = within(client.events().into_future()).await.expect("a list");
    let names: Vec<_> = events.iter().map(|event| event.name()).collect();
    assert_eq!(names, ["other", "note.added"]);
    assert_eq!(events[1].delivery().collect::<Vec<_>>(), ["poll", "webhook"]);
    assert_eq!(
        (events[1].description(), &events[1].input_schema()["type"]),
        (Some("A note"), &json!("object"))
    );
}

#[tokio::test(start_paused = true)]
async fn pushed_events_come_once_and_in_order_and_dropping_the_subscription_ends_the_stream() {
    let (client, mut peer) = connected(&["poll", "push"]).await;
    let log = Log::default();
    let subscribing = tokio::spawn(log.subscribe(&client).max_age(Duration::from_secs(5)).into_future());
    let stream = peer.next("events/stream").await;
    let params = &stream["params"];
    assert_eq!(
        (&params["name"], &params["arguments"], &params["cursor"]),
        (&json!("note.added"), &json!({ "by": "ada" }), &Value::Null)
    );
    assert_eq!(params.get("maxAgeMs"), None, "it begins now");
    peer.notify(&stream, "active", json!({ "cursor": "c0", "truncated": false }));
    let subscription = within(subscribing).await.unwrap().expect("a subscription");
    for (id, cursor) in [("1", "c1"), ("2", "c2"), ("1", "c3"), ("3", "c4")] {
        peer.event(&stream, id, cursor);
    }
    // of another stream
    peer.event(&json!({ "id": 4711 }), "lost", "c9");
    peer.notify(&stream, "error", json!({ "error": { "code": -32603, "message": "the source is away" } }));
    peer.notify(&stream, "active", json!({ "cursor": "c7", "truncated": true }));
    peer.event(&stream, "4", "c8");
    log.is(&["1", "2", "3", "gap", "4"]).await;
    peer.notify(&stream, "heartbeat", json!({ "cursor": "c9" }));
    until(|| subscription.cursor().as_deref() == Some("c9")).await;
    drop(subscription);
    let cancelled = peer.next("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], stream["id"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_opened_again_where_it_was() {
    let (client, mut peer) = connected(&["push"]).await;
    let log = Log::default();
    let pending = log.subscribe(&client).cursor("c0").max_age(Duration::from_secs(5));
    let subscribing = tokio::spawn(pending.into_future());
    let stream = peer.next("events/stream").await;
    assert_eq!((&stream["params"]["cursor"], &stream["params"]["maxAgeMs"]), (&json!("c0"), &json!(5000)));
    peer.event(&stream, "1", "c1");
    let _subscription = within(subscribing).await.unwrap().expect("an event confirms the stream, too");
    peer.reply(&stream, &json!({ "_meta": {} }));
    let stream = peer.next("events/stream").await;
    assert_eq!(stream["params"]["cursor"], "c1");
    // what comes twice was seen
    peer.event(&stream, "1", "c1");
    peer.event(&stream, "2", "c2");
    log.is(&["1", "2"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_send_events_again_leaves_a_gap_when_its_stream_breaks() {
    let (client, mut peer) = connected(&["push"]).await;
    let log = Log::default();
    let subscribing = tokio::spawn(log.subscribe(&client).into_future());
    let mut stream = peer.next("events/stream").await;
    peer.notify(&stream, "active", json!({ "cursor": null, "truncated": false }));
    let _subscription = within(subscribing).await.unwrap().expect("a subscription");
    for _ in 0..3 {
        peer.refuse(&stream, -32603);
        stream = peer.next("events/stream").await;
        assert_eq!(stream["params"]["cursor"], Value::Null);
        // what the program would read now may change before the stream is open
        log.is(&[]).await;
    }
    peer.notify(&stream, "active", json!({ "cursor": null, "truncated": false }));
    peer.notify(&stream, "event", occurrence("2"));
    log.is(&["gap", "2"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_sending_events_again_leaves_a_gap_and_a_stream_that_lasted_is_opened_soon() {
    let (client, mut peer) = connected(&["push"]).await;
    let log = Log::default();
    let subscribing = tokio::spawn(log.subscribe(&client).cursor("c0").into_future());
    let mut stream = peer.next("events/stream").await;
    peer.notify(&stream, "active", json!({ "cursor": null }));
    let _subscription = within(subscribing).await.unwrap().expect("a subscription");
    for (number, lasts) in [4, 10, 30, 3].into_iter().enumerate() {
        tokio::time::sleep(Duration::from_secs(lasts)).await;
        peer.reply(&stream, &json!({ "_meta": {} }));
        let ended = tokio::time::Instant::now();
        stream = peer.next("events/stream").await;
        assert!(ended.elapsed() < Duration::from_millis(1500), "{lasts}: {:?}", ended.elapsed());
        peer.notify(&stream, "active", json!({ "cursor": null }));
        log.is(&["gap"; 4][..=number]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_the_server_terminates_ends_with_its_reason() {
    let (client, mut peer) = connected(&["push"]).await;
    let log = Log::default();
    let subscribing = tokio::spawn(log.subscribe(&client).into_future());
    let stream = peer.next("events/stream").await;
    peer.notify(&stream, "active", json!({ "cursor": "c0" }));
    let subscription = within(subscribing).await.unwrap().expect("a subscription");
    peer.event(&stream, "1", "c1");
    peer.notify(
        &stream,
        "terminated",
        json!({ "error": { "code": -32012, "message": "access was revoked" } }),
    );
    peer.event(&stream, "2", "c2");
    let why = within(subscription.ended()).await;
    assert!(
        matches!(&why, Error::Protocol { code: -32012, message, .. } if message == "access was revoked"),
        "{why:?}"
    );
    log.is(&["1"]).await;
    // and with the client
    let subscribing = tokio::spawn(log.subscribe(&client).into_future());
    let stream = peer.next("events/stream").await;
    peer.notify(&stream, "active", json!({ "cursor": "c0" }));
    let subscription = within(subscribing).await.unwrap().expect("a subscription");
    client.close().await;
    assert!(matches!(within(subscription.ended()).await, Error::NotConnected { .. } | Error::Closed { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_refused_is_an_error_and_nothing_goes_on() {
    let (client, mut peer) = connected(&["push", "poll"]).await;
    for code in [-32602, -32011, -32012, -32013, -32603] {
        let subscribing = tokio::spawn(Log::default().subscribe(&client).into_future());
        let stream = peer.next("events/stream").await;
        peer.refuse(&stream, code);
        let error = within(subscribing).await.unwrap().expect_err("it is refused");
        assert_eq!(error.code(), Some(code));
    }
    for (name, arguments) in [("other", json!({})), ("missing", json!({})), ("note.added", json!([1]))] {
        let refused = within(client.on_event(name, arguments, |_| {}).into_future()).await;
        assert!(
            matches!(refused, Err(Error::Unsupported { .. } | Error::Invalid { .. })),
            "{name}: {refused:?}"
        );
    }
    // a way that the server lists and does not have
    let subscribing = tokio::spawn(Log::default().subscribe(&client).into_future());
    let stream = peer.next("events/stream").await;
    peer.refuse(&stream, -32014);
    let poll = peer.next("events/poll").await;
    peer.reply(
        &poll,
        &json!({ "events": [], "cursor": "c0", "truncated": false, "hasMore": false, "nextPollMs": 1 }),
    );
    let _subscription = within(subscribing).await.unwrap().expect("it is polled");
}

#[tokio::test(start_paused = true)]
async fn polled_events_are_drained_and_the_next_poll_is_where_the_last_one_was() {
    let (client, mut peer) = connected(&["poll"]).await;
    let log = Log::default();
    let subscribing = tokio::spawn(log.subscribe(&client).max_age(Duration::from_secs(9)).into_future());
    let poll = peer.next("events/poll").await;
    let params = &poll["params"];
    assert_eq!(
        (&params["cursor"], &params["arguments"], params.get("maxAgeMs")),
        (&Value::Null, &json!({ "by": "ada" }), None)
    );
    assert!(params["timeoutMs"].as_u64() > Some(1000) && params["maxEvents"].as_u64() > Some(1), "{params}");
    let result = |events: Value, cursor: &str, truncated: bool, more: bool| json!({ "events": events, "cursor": cursor, "truncated": truncated, "hasMore": more, "nextPollMs": 1 });
    peer.reply(&poll, &result(json!([]), "c0", false, false));
    let subscription = within(subscribing).await.unwrap().expect("a subscription");
    let poll = peer.next("events/poll").await;
    assert_eq!((&poll["params"]["cursor"], &poll["params"]["maxAgeMs"]), (&json!("c0"), &json!(9000)));
    peer.reply(&poll, &result(json!([occurrence("1"), occurrence("2")]), "c2", false, true));
    let poll = peer.next("events/poll").await;
    assert_eq!(poll["params"]["cursor"], "c2");
    peer.reply(&poll, &result(json!([occurrence("2"), occurrence("3")]), "c3", true, false));
    log.is(&["1", "2", "3", "gap"]).await;
    // a failure is tried again, one that is final ends it
    let poll = peer.next("events/poll").await;
    peer.refuse(&poll, -32603);
    let poll = peer.next("events/poll").await;
    assert_eq!(poll["params"]["cursor"], "c3");
    peer.refuse(&poll, -32011);
    assert_eq!(within(subscription.ended()).await.code(), Some(-32011));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_always_has_more_and_nothing_new_is_not_polled_without_a_pause() {
    let (client, mut peer) = connected(&["poll"]).await;
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let answering = tokio::spawn(async move {
        loop {
            let poll = peer.next("events/poll").await;
            counted.fetch_add(1, Ordering::SeqCst);
            peer.reply(
                &poll,
                &json!({ "events": [occurrence("1")], "cursor": "same", "hasMore": true, "nextPollMs": 0 }),
            );
        }
    });
    let log = Log::default();
    let _subscription = within(log.subscribe(&client).into_future()).await.expect("a subscription");
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    assert_eq!(
        polls.load(Ordering::SeqCst),
        12,
        "one more at once, since the cursor was new, then one a second"
    );
    log.is(&["1"]).await;
    answering.abort();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_silent_for_longer_than_two_heartbeats_is_opened_again() {
    let (client, mut peer) = connected(&["push"]).await;
    let log = Log::default();
    let subscribing = tokio::spawn(log.subscribe(&client).into_future());
    let stream = peer.next("events/stream").await;
    peer.notify(&stream, "active", json!({ "cursor": "c0" }));
    let _subscription = within(subscribing).await.unwrap().expect("a subscription");
    for beat in 1..5 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        peer.notify(&stream, "heartbeat", json!({ "cursor": format!("c{beat}") }));
    }
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(peer.requests.try_recv().is_err(), "heartbeats keep it");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(peer.next("notifications/cancelled").await["params"]["requestId"], stream["id"]);
    let again = peer.next("events/stream").await;
    assert_eq!(again["params"]["cursor"], "c4");
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_while_a_server_ends_its_streams_at_once() {
    let (client, mut peer) = connected(&["push"]).await;
    let subscribing = tokio::spawn(Log::default().subscribe(&client).into_future());
    let stream = peer.next("events/stream").await;
    peer.notify(&stream, "active", json!({ "cursor": "c0" }));
    let _subscription = within(subscribing).await.unwrap().expect("a subscription");
    peer.reply(&stream, &json!({}));
    let start = tokio::time::Instant::now();
    let mut streams = 0;
    while start.elapsed() < Duration::from_secs(300) {
        let Some(request) = peer.requests.recv().await else { break };
        if request["method"] == "events/stream" {
            streams += 1;
            peer.notify(&request, "active", json!({ "cursor": "c0" }));
            peer.reply(&request, &json!({}));
        }
    }
    assert!((5..=12).contains(&streams), "{streams} streams");
}

/// A note
#[mcp_runtime::mcp_type]
struct Note {
    text: String,
}

/// A note was added.
#[mcp_runtime::mcp_event(name = "note.added")]
fn note_added(#[mcp(payload)] note: &Note, word: String) -> bool {
    note.text.contains(&word)
}

/// What a subscriber sees of a note.
#[mcp_runtime::mcp_type]
#[derive(Debug)]
struct Short {
    word: String,
}

/// A note was added, in short.
#[mcp_runtime::mcp_event(name = "note.short")]
fn note_short(
    #[mcp(payload)] note: &Note,
    #[mcp(length(1..))] word: String,
    most: Option<usize>,
) -> Option<Short> {
    let fits = most.is_none_or(|most| note.text.len() <= most);
    (fits && note.text.contains(&word)).then_some(Short { word })
}

#[tokio::test]
async fn typed_subscriptions_get_values_of_the_type_that_the_event_delivers() {
    use mcp_runtime::event;
    for way in super::Transport::ALL {
        let builder = mcp_runtime::server!().add(event::of::<note_added>()).add(event::of::<note_short>());
        let server = builder.build().expect("a server");
        let connected = super::connect(&server, way, Client::builder()).await.expect("a client");
        let client = &connected.client;
        let log = Log::default();
        let (notes, shorts) = (log.clone(), log.clone());
        let subscribing =
            client.typed::<note_added>().on(("tea".to_owned(),), move |note: Note| notes.push(&note.text));
        let added = within(subscribing.into_future()).await.expect("a subscription");
        let handle = server.handle();
        handle.emit::<note_added>(&Note { text: "green tea".to_owned() }).await.expect("it is emitted");
        log.is(&["green tea"]).await;
        drop(added);
        let arguments = ("tea".to_owned(), Some(9));
        let subscribing =
            client.typed::<note_short>().on(arguments, move |short: Short| shorts.push(&short.word));
        let short = within(subscribing.into_future()).await.expect("a subscription");
        for text in ["a very long tea", "black tea"] {
            handle.emit::<note_short>(&Note { text: text.to_owned() }).await.expect("it is emitted");
        }
        log.is(&["green tea", "tea"]).await;
        drop(short);
        // rules are checked before anything is sent
        let wrong = client.typed::<note_short>().on((String::new(), None), |_: Short| {});
        assert!(matches!(within(wrong.into_future()).await, Err(Error::Invalid { .. })), "{way:?}");
        let missing = client.typed::<note_added>().named("note.gone").on((String::new(),), |_: Note| {});
        assert!(matches!(within(missing.into_future()).await, Err(Error::Unsupported { .. })), "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_typed_subscription_cannot_read_is_a_gap() {
    let (client, mut peer) = connected(&["push"]).await;
    let log = Log::default();
    let (notes, gaps) = (log.clone(), log.clone());
    let subscribing = client
        .typed::<note_added>()
        .on((String::new(),), move |note: Note| notes.push(&note.text))
        .on_gap(move || gaps.push("gap"));
    let subscribing = tokio::spawn(subscribing.into_future());
    let stream = peer.next("events/stream").await;
    peer.notify(&stream, "active", json!({ "cursor": "c0" }));
    let _subscription = within(subscribing).await.unwrap().expect("a subscription");
    for (id, data) in
        [("1", json!({ "text": "tea" })), ("2", json!({ "text": 1 })), ("3", json!({ "text": "milk" }))]
    {
        let mut event = with_cursor(occurrence(id), id);
        event["data"] = data;
        peer.notify(&stream, "event", event);
    }
    log.is(&["tea", "gap", "milk"]).await;
}
