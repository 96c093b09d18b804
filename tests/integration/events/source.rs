//! Events whose function opens a stream: one function, polled and pushed, which ends, fails, panics, floods or is silent.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Poll, Waker},
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt, stream};
use mcp_runtime::{
    Principal, Server,
    event::{self, EventStream, Position, StreamedEvent},
    prelude::*,
    testing::TestServer,
};
use mcp_tests::support::{SUBSCRIPTION, Transport, within};
use serde_json::{Value, json};

use super::fixture::{Poller, connect};

#[mcp_type]
#[derive(Debug, Clone)]
struct Mail {
    subject: String,
    from: String,
}

/// Mails, and who waits for the next one.
#[derive(Clone, Default)]
struct Mailbox(Arc<Mutex<Mails>>);

#[derive(Default)]
struct Mails {
    all: Vec<Mail>,
    waiting: Vec<Waker>,
}

impl Mailbox {
    fn receive(&self, from: &str, subject: &str) {
        let mut mails = self.0.lock().unwrap();
        mails.all.push(Mail { subject: subject.to_owned(), from: from.to_owned() });
        mails.waiting.drain(..).for_each(Waker::wake);
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().all.len()
    }

    /// The mails after so many, each with the number up to it; more as they come.
    fn after(&self, mut read: usize) -> impl futures_util::Stream<Item = (usize, Mail)> + Send + use<> {
        let mailbox = self.clone();
        stream::poll_fn(move |cx| {
            let mut mails = mailbox.0.lock().unwrap();
            let Some(mail) = mails.all.get(read).cloned() else {
                mails.waiting.push(cx.waker().clone());
                return Poll::Pending;
            };
            read += 1;
            Poll::Ready(Some((read, mail)))
        })
    }
}

/// Mails as they arrive.
#[mcp_event(name = "mail.received")]
fn received(
    #[mcp(position)] since: Option<Position>,
    /// Whose
    #[mcp(default = "*", length(1..=9))]
    from: String,
    mailbox: &Mailbox,
) -> Result<EventStream<Mail>, ToolError> {
    let begin = since.map(|since| since.parse()).transpose()?.unwrap_or_else(|| mailbox.len());
    let mails = mailbox.after(begin).filter(move |(_, mail)| {
        let is_wanted = from == "*" || mail.from == from;
        async move { is_wanted }
    });
    Ok(EventStream::new(mails.boxed()).begins_at(begin))
}

fn serve() -> (Server, Mailbox) {
    let mailbox = Mailbox::default();
    let builder = mcp_runtime::server!().state(mailbox.clone()).add(event::of::<received>());
    (builder.build().unwrap(), mailbox)
}

fn subjects(polled: &Value) -> Vec<&str> {
    let events = polled["events"].as_array().expect("events").iter();
    events.map(|event| event["data"]["subject"].as_str().expect("a subject")).collect()
}

#[tokio::test]
async fn one_function_is_polled_and_pushed_and_the_cursors_of_one_continue_the_other() {
    // in memory, a stream begins now
    for transport in [Transport::Stdio, Transport::Http] {
        let (server, mailbox) = serve();
        mailbox.receive("ada", "before");
        let mut poller = Poller::begin(&server, transport, "mail.received", json!({ "from": "ada" })).await;
        for (from, subject) in [("ada", "one"), ("bob", "other"), ("ada", "two")] {
            mailbox.receive(from, subject);
        }
        let first = poller.poll(json!({ "maxEvents": 1 })).await;
        assert_eq!((subjects(&first), &first["hasMore"]), (vec!["one"], &json!(true)), "{transport:?}");
        let at_one = poller.cursor.clone();
        let rest = poller.poll(json!({})).await;
        assert_eq!((subjects(&rest), &rest["hasMore"]), (vec!["two"], &json!(false)));
        assert_eq!(rest["truncated"], false);
        assert_eq!(subjects(&poller.poll(json!({})).await), [""; 0]);

        let mut client = connect(&server, transport).await;
        let params = json!({ "name": "mail.received", "arguments": { "from": "ada" }, "cursor": at_one });
        let active = client.stream_events(params).await;
        assert_eq!(active["truncated"], false);
        let two = client.next_message().await["params"].take();
        assert_eq!(
            (&two["data"]["subject"], &two["eventId"]),
            (&json!("two"), &rest["events"][0]["eventId"])
        );
        assert!(two["_meta"].get(SUBSCRIPTION).is_some());
        mailbox.receive("ada", "three");
        let three = client.next_message().await["params"].take();
        assert_eq!(three["data"]["subject"], "three");
        poller.cursor = three["cursor"].clone();
        mailbox.receive("ada", "four");
        assert_eq!(subjects(&poller.poll(json!({})).await), ["four"]);
    }
}

#[tokio::test]
async fn arguments_are_checked_before_anything_is_opened_and_positions_are_sealed() {
    let (server, mailbox) = serve();
    let client = TestServer::of(&server);
    for method in ["events/poll", "events/stream"] {
        let params = json!({ "name": "mail.received", "arguments": { "from": "" } });
        client.request(method, params).await.expect_code(-32602);
    }
    mailbox.receive("ada", "one");
    let begun = client.request("events/poll", json!({ "name": "mail.received" })).await;
    let cursor = begun.value()["cursor"].as_str().unwrap().to_owned();
    mailbox.receive("ada", "two");
    // of other arguments, and one that is made up
    for (arguments, cursor) in
        [(json!({ "from": "ada" }), cursor.as_str()), (json!({}), "1"), (json!({}), "")]
    {
        let params = json!({ "name": "mail.received", "arguments": arguments, "cursor": cursor });
        let polled = client.request("events/poll", params).await;
        assert_eq!(polled.value()["truncated"], true, "{}", polled.value());
    }
    let params = json!({ "name": "mail.received", "cursor": cursor });
    assert_eq!(subjects(client.request("events/poll", params).await.value()), ["two"]);
    let list = client.request("events/list", json!({})).await;
    let event = &list.value()["events"][0];
    assert_eq!(event["delivery"], json!(["poll", "push"]));
    assert_eq!(event["payloadSchema"]["properties"]["subject"]["type"], "string");
    assert_eq!(event["inputSchema"]["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["from"]);
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_waits_returns_with_the_first_event_and_one_of_a_silent_source_in_time() {
    let (server, mailbox) = serve();
    let mut poller = Poller::begin(&server, Transport::Memory, "mail.received", json!({})).await;
    let started = tokio::time::Instant::now();
    assert_eq!(subjects(&poller.poll(json!({})).await), [""; 0]);
    assert!(started.elapsed() <= Duration::from_millis(1100));
    let later = mailbox.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(7)).await;
        later.receive("ada", "one");
        // a source that is read slowly is still one answer
        tokio::time::sleep(Duration::from_millis(50)).await;
        later.receive("ada", "two");
    });
    assert_eq!(subjects(&poller.poll(json!({ "timeoutMs": 20_000 })).await), ["one", "two"]);
    let started = tokio::time::Instant::now();
    assert_eq!(subjects(&poller.poll(json!({ "timeoutMs": 3_000 })).await), [""; 0]);
    assert!(started.elapsed() <= Duration::from_millis(3100));
}

/// What a stream does when it is opened.
enum Plan {
    Events(Vec<u64>),
    Fail,
    Panic,
    OpenFails,
    OpenPanics,
    Silent,
    Flood,
}

/// The plans, and from where each was opened.
#[derive(Default)]
struct Plans(Mutex<VecDeque<Plan>>, Mutex<Vec<Option<u64>>>);

#[mcp_type]
#[derive(Debug)]
struct Tick {
    n: u64,
}

/// Follows the plans.
#[mcp_event]
async fn ticks(
    #[mcp(position)] since: Option<Position>,
    plans: &Arc<Plans>,
) -> Result<EventStream<Tick>, ToolError> {
    let since: Option<u64> = since.map(|since| since.parse()).transpose()?;
    plans.1.lock().unwrap().push(since);
    tokio::task::yield_now().await;
    let plan = plans.0.lock().unwrap().pop_front().unwrap_or(Plan::Silent);
    let tick = |n: u64| Ok::<_, ToolError>((n, Tick { n }));
    let stream = match plan {
        Plan::Events(all) => stream::iter(all).map(tick).boxed(),
        Plan::Fail => stream::iter([Err(ToolError::new("the source is down"))]).boxed(),
        Plan::Panic => stream::poll_fn(|_| panic!("a bug of the source")).boxed(),
        Plan::OpenFails => return Err(ToolError::new("no such folder")),
        Plan::OpenPanics => panic!("a bug"),
        Plan::Silent => stream::pending().boxed(),
        Plan::Flood => stream::iter(1..).map(tick).boxed(),
    };
    Ok(EventStream::new(stream).begins_at(since.unwrap_or_default()))
}

fn following(plans: impl IntoIterator<Item = Plan>) -> (Server, Arc<Plans>) {
    let plans = Arc::new(Plans(Mutex::new(plans.into_iter().collect()), Mutex::default()));
    let builder = mcp_runtime::server!().state(plans.clone()).add(event::of::<ticks>());
    (builder.build().unwrap(), plans)
}

/// The kinds of the next notifications, with the numbers of events.
async fn pushed(events: &mut mcp_runtime::testing::Changes, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < count {
        let message =
            tokio::time::timeout(Duration::from_secs(600), poll_long(events)).await.expect("a message");
        let method = message["method"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        match method.as_str() {
            "heartbeat" => {}
            "event" => all.push(message["params"]["data"]["n"].to_string()),
            "error" => all.push(message["params"]["error"]["message"].as_str().unwrap().to_owned()),
            "active" => all.push(format!("active, truncated: {}", message["params"]["truncated"])),
            _ => all.push(method),
        }
    }
    all
}

/// The next message, however long it takes.
async fn poll_long(events: &mut mcp_runtime::testing::Changes) -> Value {
    loop {
        if let Some(message) = events.try_next() {
            return message;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_fails_or_panics_is_opened_again_where_it_was() {
    let (server, plans) = following([
        Plan::Events(vec![1, 2]),
        Plan::Events(vec![3]),
        Plan::Fail,
        Plan::Panic,
        Plan::OpenFails,
        Plan::OpenPanics,
        Plan::Events(vec![4]),
    ]);
    let mut events = TestServer::of(&server).events("ticks", json!({})).await;
    let all = pushed(&mut events, 8).await;
    assert_eq!(
        all,
        [
            "1",
            "2",
            "3",
            "the source is down",
            "event 'ticks' failed",
            "no such folder",
            "event 'ticks' failed",
            "4"
        ]
    );
    let opened = [None, Some(2), Some(3), Some(3), Some(3), Some(3), Some(3)];
    assert_eq!(plans.1.lock().unwrap()[..7], opened);
}

#[tokio::test(start_paused = true)]
async fn a_poll_of_a_source_that_fails_is_an_error_and_its_cursor_stays_good() {
    let (server, _plans) = following([
        Plan::Events(vec![]),
        Plan::OpenFails,
        Plan::Fail,
        Plan::Panic,
        Plan::Events(vec![1, 2]),
        Plan::Silent,
    ]);
    let client = TestServer::of(&server);
    let begun = client.request("events/poll", json!({ "name": "ticks" })).await;
    let poll = json!({ "name": "ticks", "cursor": begun.value()["cursor"] });
    for text in ["no such folder", "the source is down", "event 'ticks' failed"] {
        let failed = client.request("events/poll", poll.clone()).await;
        assert_eq!(failed.expect_code(-32603).error().unwrap().message, text);
    }
    let polled = client.request("events/poll", poll.clone()).await;
    let numbers: Vec<_> =
        polled.value()["events"].as_array().unwrap().iter().map(|event| &event["data"]["n"]).collect();
    assert_eq!((numbers, &polled.value()["hasMore"]), (vec![&json!(1), &json!(2)], &json!(false)));
    let silent = client.request("events/poll", poll).await;
    assert_eq!(silent.value()["events"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_floods_is_read_no_faster_than_its_client_reads() {
    let (server, _plans) = following([Plan::Events(vec![]), Plan::Flood, Plan::Flood]);
    let client = TestServer::of(&server);
    let begun = client.request("events/poll", json!({ "name": "ticks" })).await;
    let poll = json!({ "name": "ticks", "cursor": begun.value()["cursor"], "timeoutMs": 1000 });
    let polled = client.request("events/poll", poll).await;
    let polled = polled.value();
    assert_eq!((polled["events"].as_array().unwrap().len(), &polled["hasMore"]), (100, &json!(true)));
    let mut events = client.events("ticks", json!({})).await;
    for n in 1..=200 {
        assert_eq!(events.next().await["params"]["data"]["n"], n);
    }
    drop(events);
}

/// Old and new ones.
#[mcp_event]
fn aged() -> EventStream<Tick> {
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    EventStream::iter([
        StreamedEvent::new(Tick { n: 1 }).position("a").time(hour_ago),
        StreamedEvent::new(Tick { n: 2 }).position("b").id("two"),
    ])
    .begins_at("0")
}

#[mcp_type]
struct Text {
    text: String,
}

/// Some are too long.
#[mcp_event]
fn texts() -> EventStream<Text> {
    let text = |len: usize| (len, Text { text: "x".repeat(len) });
    EventStream::iter([text(5), text(200), text(6)]).begins_at(0_u32)
}

/// Is not an object.
#[mcp_event]
fn list() -> EventStream<Vec<u64>> {
    EventStream::iter([(1_u64, vec![1])])
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_or_cannot_be_delivered_is_a_gap_and_the_rest_comes() {
    let builder = mcp_runtime::server!()
        .add(event::of::<aged>())
        .limits(|limits| limits.timeout(Duration::from_secs(9)));
    let server = TestServer::new(builder).unwrap();
    let begun = server.request("events/poll", json!({ "name": "aged" })).await;
    let poll = json!({ "name": "aged", "cursor": begun.value()["cursor"], "maxAgeMs": 60_000 });
    let polled = server.request("events/poll", poll).await;
    let polled = polled.value();
    assert_eq!((&polled["truncated"], polled["events"].as_array().unwrap().len()), (&json!(true), 1));
    assert_eq!(polled["events"][0]["eventId"], "two");

    let small = mcp_runtime::server!().limits(|limits| limits.events(|events| events.max_payload(100)));
    let server = TestServer::new(small.add(event::of::<texts>())).unwrap();
    let mut events = server.events("texts", json!({})).await;
    assert_eq!(events.next().await["params"]["data"]["text"], "xxxxx");
    assert_eq!(pushed(&mut events, 2).await, ["active, truncated: true", "event 'texts' failed"]);
    assert_eq!(events.next().await["params"]["data"]["text"], "xxxxxx");

    let error = mcp_runtime::server!().add(event::of::<list>()).build().unwrap_err().to_string();
    assert!(error.contains("event `list`: its payload is not a JSON object"), "{error}");
}

static OPEN: AtomicUsize = AtomicUsize::new(0);

struct CountsOpen;

impl Drop for CountsOpen {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
        panic!("a bug of the source");
    }
}

/// Counts the open ones.
#[mcp_event(scopes("ticks"))]
fn counted(_caller: Option<&Principal>) -> EventStream<Tick> {
    OPEN.fetch_add(1, Ordering::SeqCst);
    let open = CountsOpen;
    EventStream::new(stream::poll_fn(move |_| {
        let _open = &open;
        Poll::<Option<(u64, Tick)>>::Pending
    }))
}

#[tokio::test]
async fn a_stream_is_dropped_with_its_subscription_even_if_that_panics() {
    let server = mcp_runtime::server!().add(event::of::<counted>()).build().unwrap();
    let client = TestServer::of(&server);
    let streams = [client.events("counted", json!({})).await, client.events("counted", json!({})).await];
    assert_eq!(OPEN.load(Ordering::SeqCst), 2);
    drop(streams);
    assert_eq!(OPEN.load(Ordering::SeqCst), 0);
}

/// Ticks with their times, to which a stream adds as they come.
#[derive(Clone, Default)]
struct Timed(Arc<Mutex<Vec<SystemTime>>>);

impl Timed {
    fn tick(&self, age: Duration) {
        self.0.lock().unwrap().push(SystemTime::now() - age);
    }
}

/// The ticks after a position.
#[mcp_event]
fn timed(#[mcp(position)] since: Option<Position>, timed: &Timed) -> Result<EventStream<Tick>, ToolError> {
    let timed = timed.clone();
    let read: u64 = since.map(|since| since.parse()).transpose()?.unwrap_or_default();
    let ticks = stream::unfold(read, move |read| {
        let timed = timed.clone();
        async move {
            let at = usize::try_from(read).expect("a few");
            loop {
                if let Some(time) = timed.0.lock().unwrap().get(at) {
                    let tick = StreamedEvent::new(Tick { n: read + 1 }).position(read + 1).time(*time);
                    return Some((tick, read + 1));
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
    Ok(EventStream::new(ticks).begins_at(read))
}

#[tokio::test]
async fn the_age_that_a_client_asks_for_bounds_what_its_stream_begins_with_and_nothing_without_a_cursor() {
    within(async {
        let ticks = Timed::default();
        let server = mcp_runtime::server!().state(ticks.clone()).add(event::of::<timed>()).build().unwrap();
        let hour = Duration::from_secs(3600);
        let mut poller = Poller::begin(&server, Transport::Stdio, "timed", json!({})).await;
        for age in [hour, hour, Duration::ZERO, hour] {
            ticks.tick(age);
        }
        let mut client = connect(&server, Transport::Stdio).await;
        let stream = json!({ "name": "timed", "cursor": poller.cursor, "maxAgeMs": 60_000 });
        client.stream_events(stream).await;
        let mut numbers = async |count: usize| {
            let mut numbers = Vec::new();
            while numbers.len() < count {
                let message = client.next_message().await;
                numbers.extend(message["params"]["data"]["n"].as_u64());
            }
            numbers
        };
        assert_eq!(numbers(2).await, [3, 4], "the first one that is not too old, and what follows");
        ticks.tick(hour);
        assert_eq!(numbers(1).await, [5], "what comes late is not too old");
        let polled = poller.poll(json!({ "maxAgeMs": 60_000 })).await;
        let polled = polled["events"].as_array().unwrap().iter().map(|event| event["data"]["n"].as_u64());
        assert_eq!(polled.collect::<Vec<_>>(), [Some(3), Some(4), Some(5)]);

        // a stream without a cursor begins where its source does
        let mut client = connect(&server, Transport::Stdio).await;
        let active = client.stream_events(json!({ "name": "timed", "maxAgeMs": 60_000 })).await;
        assert_eq!(active["truncated"], false);
        assert_eq!(client.next_message().await["params"]["data"]["n"], 1);
    })
    .await;
}
