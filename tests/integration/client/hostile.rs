//! Servers that are slow, fat or endless on purpose: every call ends with an error that names the limit and its option,
//! and what the client keeps and opens meanwhile is bounded.

use std::{
    future::{IntoFuture as _, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    http::{Method, Response},
};
use mcp_runtime::{
    Revision,
    client::{Client, ClientBuilder, ElicitAnswer, Error, SampleAnswer},
};
use mcp_tests::support::{Act, Peer, discovered, initialized, notification, play, request, with_handshake};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use super::{
    played,
    raw_http::{Raw, raw_http},
    site::{ReplyFuture, empty, event_stream, legacy_handshake, serve_async},
    until, within,
};

const SECOND: Duration = Duration::from_secs(1);
/// A time limit of tests in real time.
const SHORT: Duration = Duration::from_millis(300);

fn capabilities() -> Value {
    json!({ "tools": {}, "resources": { "subscribe": true }, "prompts": {}, "completions": {}, "logging": {},
        "tasks": { "requests": { "tools": { "call": {} } } } })
}

async fn over_streams(
    revision: Revision,
    builder: ClientBuilder,
    answer: impl FnMut(&str, &Value) -> Act + Send + 'static,
) -> (Client, mpsc::UnboundedSender<Value>) {
    played(revision, capabilities(), builder, answer).await
}

fn silent() -> ReplyFuture {
    Box::pin(pending())
}

fn ready(response: Response<Body>) -> ReplyFuture {
    Box::pin(async { response })
}

/// Checks that a call was ended by the limit of this option, and that its message says so.
#[track_caller]
fn assert_timed_out<T: std::fmt::Debug>(result: &Result<T, Error>, expected: &str) {
    let Err(error @ Error::Timeout { option: Some(option), .. }) = result else { panic!("{result:?}") };
    assert_eq!(*option, expected);
    assert!(error.to_string().ends_with(&format!("raise `{expected}`")), "{error}");
}

#[track_caller]
fn assert_too_many<T: std::fmt::Debug>(result: &Result<T, Error>, expected: &str) {
    let Err(error @ Error::TooMany { option, .. }) = result else { panic!("{result:?}") };
    assert_eq!(*option, expected);
    assert!(error.to_string().ends_with(&format!("raise `{expected}`")), "{error}");
}

#[track_caller]
fn assert_too_large<T: std::fmt::Debug>(result: &Result<T, Error>, expected: &str) {
    let Err(error @ Error::TooLarge { option: Some(option), .. }) = result else { panic!("{result:?}") };
    assert_eq!(*option, expected);
    assert!(error.to_string().ends_with(&format!("raise `{expected}`")), "{error}");
}

#[tokio::test]
async fn connecting_ends_at_every_step_that_a_server_does_not_answer() {
    for stuck in ["server/discover", "initialize", "notifications/initialized"] {
        let (url, _) = serve_async(move |seen| match legacy_handshake(seen, "s") {
            Some(response) if seen.message["method"] != stuck => ready(response),
            _ => silent(),
        })
        .await;
        let builder = Client::builder().limits(|limits| limits.connect_timeout(SHORT));
        assert_timed_out(&within(builder.connect(&url)).await, "connect_timeout");
        if stuck == "notifications/initialized" {
            let failed = within(Client::builder().request_timeout(SHORT).connect(&url)).await;
            assert_timed_out(&failed, "request_timeout");
            let failed = within(Client::builder().timeout(SHORT).connect(&url)).await;
            assert_timed_out(&failed, "timeout");
        }
    }
    // over byte streams, and with headers that arrive while the body does not
    let (streams, _peer) = Peer::new(1 << 10);
    let builder = Client::builder().limits(|limits| limits.connect_timeout(SHORT));
    assert_timed_out(&within(builder.connect(streams)).await, "connect_timeout");
    let url = raw_http(|_| Raw::Endless(": still there\n\n".into(), Duration::from_millis(20))).await;
    let builder = Client::builder().limits(|limits| limits.connect_timeout(SHORT));
    assert_timed_out(&within(builder.connect(&url)).await, "connect_timeout");
}

#[tokio::test]
async fn a_lost_session_whose_new_handshake_hangs_fails_the_call_and_later_calls_try_again() {
    let handshakes = Arc::new(AtomicUsize::new(0));
    let counted = handshakes.clone();
    let (url, _) = serve_async(move |seen| {
        if seen.message["method"] == "initialize" {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        let handshakes = counted.load(Ordering::SeqCst);
        match legacy_handshake(seen, "s") {
            // the second one hangs at its last step
            Some(_) if seen.message["method"] == "notifications/initialized" && handshakes == 2 => silent(),
            Some(response) => ready(response),
            None if seen.method == Method::GET => ready(empty(405)),
            None if handshakes < 3 => ready(empty(404)),
            None => ready(seen.reply(&json!({ "content": [] }))),
        }
    })
    .await;
    let builder = Client::builder().limits(|limits| limits.connect_timeout(SHORT));
    let client = within(builder.connect(&url)).await.unwrap();
    let call = || within(client.call("t", json!({})).into_future());
    // two at once: the second does not wait for a handshake of its own
    let (one, other) = tokio::join!(call(), call());
    assert_timed_out(&one, "connect_timeout");
    assert_timed_out(&other, "connect_timeout");
    assert_eq!(handshakes.load(Ordering::SeqCst), 2);
    call().await.expect("a new handshake");
    assert_eq!(handshakes.load(Ordering::SeqCst), 3);
}

/// A list without an end; `page` makes the entries of one page.
async fn endless_list(
    builder: ClientBuilder,
    delay: Duration,
    page: impl Fn(usize) -> (Vec<Value>, Value) + Send + 'static,
) -> (Client, Arc<AtomicUsize>) {
    let pages = Arc::new(AtomicUsize::new(0));
    let counted = pages.clone();
    let (client, _out) = over_streams(Revision::V2026_07_28, builder, move |_, _| {
        let (tools, cursor) = page(counted.fetch_add(1, Ordering::SeqCst));
        Act::Later(delay, json!({ "resultType": "complete", "tools": tools, "nextCursor": cursor }))
    })
    .await;
    (client, pages)
}

fn next(page: usize) -> Value {
    format!("page {page}").into()
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_pages_trickle_ends_in_time() {
    let (client, pages) = endless_list(Client::builder(), SECOND, |page| (Vec::new(), next(page))).await;
    let start = Instant::now();
    assert_timed_out(&client.tools().await, "list_timeout");
    assert_eq!(start.elapsed().as_secs(), 300, "five minutes by default");
    assert!(pages.load(Ordering::SeqCst) <= 301);

    let start = Instant::now();
    assert_timed_out(&client.tools().timeout(10 * SECOND).await, "timeout");
    assert_eq!(start.elapsed().as_secs(), 10);
    // the call's own time counts also where it is longer
    let start = Instant::now();
    assert_timed_out(&client.tools().timeout(400 * SECOND).await, "timeout");
    assert_eq!(start.elapsed().as_secs(), 400);

    let builder = Client::builder().limits(|limits| limits.list_timeout(5 * SECOND));
    let (client, _) = endless_list(builder, SECOND, |page| (Vec::new(), next(page))).await;
    let start = Instant::now();
    assert_timed_out(&client.tools().await, "list_timeout");
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_list_with_too_many_bytes_entries_or_pages_ends_at_its_limit() {
    let fat = |page| {
        let tool =
            json!({ "name": format!("t{page}"), "description": "x".repeat(10_000), "inputSchema": {} });
        (vec![tool], next(page))
    };
    let builder = Client::builder().limits(|limits| {
        assert!(format!("{limits:?}").contains(&format!("list_bytes: {}", 16 << 20)), "16 MiB by default");
        limits.list_bytes(100_000)
    });
    let (client, pages) = endless_list(builder, Duration::ZERO, fat).await;
    assert_too_large(&within(client.tools().into_future()).await, "list_bytes");
    assert_eq!(pages.load(Ordering::SeqCst), 10);

    let many = |page| (vec![json!({ "name": "t", "inputSchema": {} }); 500], next(page));
    let builder = Client::builder().limits(|limits| limits.list_entries(2000));
    let (client, pages) = endless_list(builder, Duration::ZERO, many).await;
    assert_too_many(&within(client.tools().into_future()).await, "list_entries");
    assert_eq!(pages.load(Ordering::SeqCst), 5);

    let builder = Client::builder().limits(|limits| limits.list_pages(7));
    let (client, pages) = endless_list(builder, Duration::ZERO, |page| (Vec::new(), next(page))).await;
    assert_too_many(&within(client.tools().into_future()).await, "list_pages");
    assert_eq!(pages.load(Ordering::SeqCst), 7);

    // the last page counts too
    let last = |_| (vec![json!({ "name": "t", "inputSchema": {} }); 11], Value::Null);
    let builder = Client::builder().limits(|limits| limits.list_entries(10));
    let (client, _) = endless_list(builder, Duration::ZERO, last).await;
    assert_too_many(&within(client.tools().into_future()).await, "list_entries");
}

#[tokio::test]
async fn a_list_in_a_circle_ends_with_an_error_that_says_so() {
    for circle in [1, 2, 3] {
        let page = move |page| (Vec::new(), next(page % circle));
        let (client, pages) = endless_list(Client::builder(), Duration::ZERO, page).await;
        let error = within(client.tools().into_future()).await.unwrap_err();
        assert!(
            matches!(&error, Error::Invalid { what } if what.contains("`nextCursor` repeats")),
            "{error:?}"
        );
        assert_eq!(pages.load(Ordering::SeqCst), circle + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_another_one_keeps_its_own_time_limit() {
    let (client, _out) = over_streams(Revision::V2026_07_28, Client::builder(), |_, _| Act::Silence).await;
    let start = Instant::now();
    let (first, second) = tokio::join!(client.tools(), client.tools().timeout(2 * SECOND).into_future());
    assert_timed_out(&second, "timeout");
    assert_timed_out(&first, "list_timeout");
    assert!(start.elapsed() < 301 * SECOND, "{:?}", start.elapsed());
    let start = Instant::now();
    let second = async {
        let read = client.read("a://b").timeout(2 * SECOND).await;
        (read, start.elapsed().as_secs())
    };
    let (first, (second, elapsed)) =
        tokio::join!(client.read("a://b").timeout(20 * SECOND).into_future(), second);
    assert_timed_out(&first, "timeout");
    assert_timed_out(&second, "timeout");
    assert_eq!(elapsed, 2);
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_ends_whatever_it_waits_for() {
    let cancelled = Arc::new(AtomicUsize::new(0));
    let counted = cancelled.clone();
    let builder = Client::builder().on_elicit(|_| pending::<ElicitAnswer>());
    let (client, _out) = over_streams(Revision::V2026_07_28, builder, move |method, message| {
        let question = json!({ "method": "elicitation/create", "params": { "message": "?" } });
        match (method, message["params"]["name"].as_str()) {
            (_, Some("asks")) => Act::Result(
                json!({ "resultType": "input_required", "requestState": "s", "inputRequests": { "q": question } }),
            ),
            (_, Some("again")) => Act::Result(json!({ "resultType": "input_required", "requestState": "s" })),
            (method, _) => {
                counted.fetch_add(usize::from(method == "notifications/cancelled"), Ordering::SeqCst);
                Act::Silence
            }
        }
    })
    .await;
    // only a request that is in progress is cancelled
    for (tool, cancellations) in [("silent", 1), ("asks", 1), ("again", 1), ("silent", 2)] {
        let start = Instant::now();
        assert_timed_out(&client.call(tool, json!({})).timeout(5 * SECOND).await, "timeout");
        assert_eq!(start.elapsed().as_secs(), 5, "{tool}");
        sleep(SECOND).await;
        assert_eq!(cancelled.load(Ordering::SeqCst), cancellations, "{tool}");
    }
}

#[tokio::test]
async fn a_server_over_http_that_ends_within_its_reply_fails_the_call() {
    for kind in ["application/json", "text/event-stream"] {
        let url = raw_http(move |message| match message["method"].as_str() {
            Some("tools/call") => Raw::Cut(kind),
            _ => Raw::of(message, &discovered(capabilities())),
        })
        .await;
        let client = within(Client::connect(url)).await.unwrap();
        let failed = within(client.call("t", json!({})).into_future()).await;
        assert!(matches!(failed, Err(Error::NotConnected { .. })), "{failed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_to_a_silent_server_ends() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let is_ready = Arc::new(AtomicUsize::new(0));
        let probes = is_ready.clone();
        let mut handshake = with_handshake(revision, capabilities(), |_, _| Act::Silence);
        let (streams, _) = play(move |method, message| match method {
            // `ping` in 2026-07-28
            "server/discover" if probes.load(Ordering::SeqCst) == 1 => Act::Silence,
            _ => handshake(method, message),
        });
        let builder = Client::builder().request_timeout(3 * SECOND).on_change(|_| ());
        let client = builder.connect(streams).await.unwrap();
        is_ready.store(1, Ordering::SeqCst);
        let start = Instant::now();
        assert_timed_out(&client.ping().await, "request_timeout");
        assert_timed_out(&client.read("a://b").await, "request_timeout");
        assert_timed_out(&client.prompt("p", json!({})).await, "request_timeout");
        assert_timed_out(&client.resources().await, "request_timeout");
        assert_timed_out(&client.send("x/y", json!({})).await, "request_timeout");
        assert_timed_out(&client.call_task("t", json!({})).await, "request_timeout");
        let of = mcp_runtime::client::CompletionOf::Prompt("p");
        assert_timed_out(&client.complete(&of, "a", "b").await, "request_timeout");
        assert_eq!(start.elapsed().as_secs(), 21);
        let subscribed = client.subscribe("a://b", |_| ()).await;
        assert!(matches!(subscribed, Err(Error::Timeout { .. })), "{subscribed:?}");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_to_a_server_that_does_not_read_end() {
    let (streams, mut peer) = Peer::new(1 << 16);
    let builder = Client::builder().revision(Revision::V2025_11_25).request_timeout(SECOND);
    let connecting = tokio::spawn(builder.connect(streams));
    peer.answer("initialize", &initialized("2025-11-25", capabilities())).await;
    let client = connecting.await.unwrap().unwrap();
    assert_eq!(peer.next().await["method"], "notifications/initialized");
    let mut failed = Ok(());
    for _ in 0..5000 {
        failed = client.roots_changed().await;
        if failed.is_err() {
            break;
        }
    }
    assert_timed_out(&failed, "request_timeout");
}

/// Answers `tools/call` with a task that never ends.
fn endless_task(method: &str, legacy: bool) -> Act {
    let task = json!({ "taskId": "1", "status": "working", "pollIntervalMs": 5000, "pollInterval": 5000,
        "ttlMs": null, "ttl": null, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z" });
    match method {
        "tools/call" if legacy => Act::Result(json!({ "task": task })),
        "tools/call" => {
            let mut task = task;
            task["resultType"] = "task".into();
            Act::Result(task)
        }
        _ => {
            let mut task = task;
            task["resultType"] = "complete".into();
            Act::Result(task)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_is_that_of_its_task_too_which_is_cancelled_then() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let cancelled = Arc::new(AtomicUsize::new(0));
        let counted = cancelled.clone();
        let legacy = revision == Revision::V2025_11_25;
        let (client, _out) = over_streams(revision, Client::builder(), move |method, _| {
            counted.fetch_add(usize::from(method == "tasks/cancel"), Ordering::SeqCst);
            endless_task(method, legacy)
        })
        .await;
        // a legacy call is a task if the tool says that it must be
        let definition = json!({ "name": "t", "inputSchema": { "type": "object" },
            "execution": { "taskSupport": "required" } });
        client.add_known_tools([definition]).unwrap();
        let start = Instant::now();
        assert_timed_out(&client.call("t", json!({})).timeout(30 * SECOND).await, "timeout");
        assert_eq!(start.elapsed().as_secs(), 30);
        until(|| cancelled.load(Ordering::SeqCst) == 1).await;
        // an hour by default
        let start = Instant::now();
        assert_timed_out(&client.call("t", json!({})).await, "timeout");
        assert_eq!(start.elapsed().as_secs(), 3600);
        until(|| cancelled.load(Ordering::SeqCst) == 2).await;
        // a task in the hands of the program has a limit of its own
        let task = client.call_task("t", json!({})).timeout(SECOND).await.unwrap();
        let start = Instant::now();
        assert_timed_out(&task.timeout(60 * SECOND).result().await, "timeout");
        assert_eq!(start.elapsed().as_secs(), 60);
        until(|| cancelled.load(Ordering::SeqCst) == 3).await;
    }
}

#[tokio::test]
async fn cancellations_of_dropped_calls_over_http_take_a_few_connections() {
    static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    struct Ended;
    impl Drop for Ended {
        fn drop(&mut self) {
            AT_ONCE.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let (url, _) = serve_async(|seen| match legacy_handshake(seen, "s") {
        Some(response) => ready(response),
        None if seen.method == Method::GET => ready(empty(405)),
        None if seen.message["method"] == "notifications/cancelled" => Box::pin(async {
            let _ended = Ended;
            MOST.fetch_max(AT_ONCE.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            pending().await
        }),
        None => {
            CALLS.fetch_add(1, Ordering::SeqCst);
            silent()
        }
    })
    .await;
    let client = within(Client::connect(&url)).await.unwrap();
    let calls: Vec<_> = (0..300).map(|_| tokio::spawn(client.call("t", json!({})).into_future())).collect();
    until(|| CALLS.load(Ordering::SeqCst) == 300).await;
    calls.iter().for_each(|call| call.abort());
    until(|| AT_ONCE.load(Ordering::SeqCst) == 8).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(MOST.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn closing_a_client_sends_the_cancellations_that_wait() {
    let (calls, cancelled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (called, counted) = (calls.clone(), cancelled.clone());
    let (url, _) =
        serve_async(move |seen| match (seen.message["method"].as_str(), legacy_handshake(seen, "s")) {
            (_, Some(response)) => ready(response),
            (Some("tools/call"), _) => {
                called.fetch_add(1, Ordering::SeqCst);
                silent()
            }
            (method, _) => {
                counted.fetch_add(usize::from(method == Some("notifications/cancelled")), Ordering::SeqCst);
                ready(empty(202))
            }
        })
        .await;
    let client = within(Client::connect(url)).await.unwrap();
    let pending_calls: Vec<_> =
        (0..20).map(|_| tokio::spawn(client.call("t", json!({})).into_future())).collect();
    until(|| calls.load(Ordering::SeqCst) == 20).await;
    for call in pending_calls {
        call.abort();
        assert!(call.await.is_err());
    }
    within(client.close()).await;
    assert_eq!(cancelled.load(Ordering::SeqCst), 20);

    // on a stream, whose end the server sees after them
    let (cancelled, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, at_end) = (cancelled.clone(), ended.clone());
    let (streams, mut peer) = Peer::new(256);
    tokio::spawn(async move {
        while let Some(message) = peer.read().await {
            match message["method"].as_str() {
                Some("server/discover") => peer.reply(&message, &discovered(capabilities())).await,
                Some("notifications/cancelled") => drop(counted.fetch_add(1, Ordering::SeqCst)),
                _ => {}
            }
        }
        at_end.fetch_add(1, Ordering::SeqCst);
    });
    let client = within(Client::connect(streams)).await.unwrap();
    let mut calls: Vec<_> = (0..20).map(|_| Box::pin(client.call("t", json!({})).into_future())).collect();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(calls.iter_mut().all(|call| call.as_mut().poll(&mut cx).is_pending()));
    drop(calls);
    within(client.close()).await;
    until(|| ended.load(Ordering::SeqCst) == 1).await;
    assert_eq!(cancelled.load(Ordering::SeqCst), 20);
}

fn form() -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": { "type": "object" } } })
}

fn questions(number: usize) -> Value {
    let requests: serde_json::Map<_, _> = (0..number).map(|key| (key.to_string(), form())).collect();
    json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" })
}

/// A client that counts the forms that it is shown.
fn counting() -> (ClientBuilder, Arc<AtomicUsize>) {
    let shown = Arc::new(AtomicUsize::new(0));
    let counted = shown.clone();
    let builder = Client::builder().on_elicit(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { ElicitAnswer::Accept(json!({})) }
    });
    (builder, shown)
}

#[tokio::test]
async fn a_result_with_too_many_questions_is_refused_before_any_is_asked() {
    let (builder, shown) = counting();
    let (client, _out) =
        over_streams(Revision::V2026_07_28, builder, |_, _| Act::Result(questions(65))).await;
    assert_too_many(&within(client.call("t", json!({})).into_future()).await, "input_requests");
    assert_too_many(&within(client.read("a://b").into_future()).await, "input_requests");
    assert_eq!(shown.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn the_questions_of_one_call_and_of_one_minute_are_bounded() {
    let (builder, shown) = counting();
    let builder = builder.limits(|limits| limits.elicitation_rate("1000/1m").input_requests_per_call(100));
    let (client, _out) =
        over_streams(Revision::V2026_07_28, builder, |_, _| Act::Result(questions(30))).await;
    assert_too_many(&client.call("t", json!({})).await, "input_requests_per_call");
    assert_eq!(shown.load(Ordering::SeqCst), 90);

    let (builder, shown) = counting();
    let (client, _out) =
        over_streams(Revision::V2026_07_28, builder, |_, _| Act::Result(questions(10))).await;
    assert_too_many(&client.call("t", json!({})).await, "elicitation_rate");
    assert_eq!(shown.load(Ordering::SeqCst), 60, "60 in a minute by default");
    sleep(60 * SECOND).await;
    assert_too_many(&client.call("t", json!({})).await, "elicitation_rate");
    assert_eq!(shown.load(Ordering::SeqCst), 120);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_asks_without_an_end_is_bounded() {
    let (builder, shown) = counting();
    let builder = builder.limits(|limits| limits.elicitation_rate("1000/1m"));
    let mut polls = 0;
    let (client, _out) = over_streams(Revision::V2026_07_28, builder, move |method, _| {
        let Act::Result(mut task) = endless_task(method, false) else { unreachable!() };
        if method == "tasks/get" {
            task["status"] = "input_required".into();
            // a question is asked once for its key
            polls += 1;
            let asked = questions(10)["inputRequests"].as_object().unwrap().clone();
            task["inputRequests"] =
                asked.into_iter().map(|(key, question)| (format!("{key} {polls}"), question)).collect();
        }
        Act::Result(task)
    })
    .await;
    assert_too_many(&client.call("t", json!({})).await, "input_requests_per_call");
    assert_eq!(shown.load(Ordering::SeqCst), 250);
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_gets_so_many_samples_in_a_minute_and_refusals_after_that() {
    let sampled = Arc::new(AtomicUsize::new(0));
    let counted = sampled.clone();
    let builder = Client::builder().limits(|limits| limits.sampling_rate("5/1m")).on_sample(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(SampleAnswer::text("m", "x")) }
    });
    let refused = Arc::new(AtomicUsize::new(0));
    let refusals = refused.clone();
    let (_client, out) = over_streams(Revision::V2025_11_25, builder, move |_, message| {
        refusals.fetch_add(usize::from(message.get("error").is_some()), Ordering::SeqCst);
        Act::Silence
    })
    .await;
    let ask = |id: usize| {
        let params = json!({ "messages": [], "maxTokens": 1 });
        out.send(request(id, "sampling/createMessage", params)).unwrap();
    };
    (0..20).for_each(ask);
    sleep(SECOND).await;
    assert_eq!((sampled.load(Ordering::SeqCst), refused.load(Ordering::SeqCst)), (5, 15));
    sleep(60 * SECOND).await;
    (20..40).for_each(ask);
    sleep(SECOND).await;
    assert_eq!(sampled.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn requests_of_a_legacy_server_are_bounded_in_bytes() {
    let shown = Arc::new(AtomicUsize::new(0));
    let counted = shown.clone();
    let builder =
        Client::builder().limits(|limits| limits.server_request_bytes(1 << 20)).on_elicit(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            pending()
        });
    let refused = Arc::new(AtomicUsize::new(0));
    let refusals = refused.clone();
    let (_client, out) = within(over_streams(Revision::V2025_11_25, builder, move |_, message| {
        refusals.fetch_add(usize::from(message.get("error").is_some()), Ordering::SeqCst);
        Act::Silence
    }))
    .await;
    for id in 0..10 {
        let params = json!({ "message": "x".repeat(1 << 18), "requestedSchema": { "type": "object" } });
        out.send(request(id, "elicitation/create", params)).unwrap();
    }
    until(|| refused.load(Ordering::SeqCst) == 7).await;
    assert_eq!(shown.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn an_event_stream_of_notifications_without_an_end_is_bounded_in_bytes_and_time() {
    let log = json!({ "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": "info", "data": "x".repeat(1 << 16) } });
    let chunk = format!("data: {log}\n\n");
    let url = raw_http(move |message| match message["method"].as_str() {
        Some("server/discover") => Raw::of(message, &discovered(capabilities())),
        Some("resources/read") => Raw::Endless(": x\n\n".into(), Duration::from_millis(20)),
        _ => Raw::Endless(chunk.clone(), Duration::ZERO),
    })
    .await;
    let builder = Client::builder().limits(|limits| limits.call_bytes(4 << 20));
    let client = within(builder.connect(url)).await.unwrap();
    assert_too_large(&within(client.call("t", json!({})).into_future()).await, "call_bytes");
    assert_too_large(&within(client.tools().into_future()).await, "call_bytes");
    let read = client.read("a://b").timeout(SHORT);
    assert_timed_out(&within(read.into_future()).await, "timeout");
}

#[tokio::test]
async fn a_stream_that_is_to_be_resumed_in_a_thousand_years_does_not_hold_its_call() {
    let (url, _) = serve_async(|seen| match legacy_handshake(seen, "s") {
        Some(response) => ready(response),
        None if seen.method == Method::GET => ready(empty(405)),
        None => ready(event_stream("id: 1\nretry: 31536000000000\ndata:\n\n")),
    })
    .await;
    let client = within(Client::connect(url)).await.unwrap();
    let call = client.call("t", json!({})).timeout(SHORT);
    assert_timed_out(&within(call.into_future()).await, "timeout");
    let call = client.call("t", json!({})).request_timeout(SHORT);
    assert_timed_out(&within(call.into_future()).await, "request_timeout");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_not_acknowledged_is_asked_for_again_after_a_pause() {
    let listens = Arc::new(AtomicUsize::new(0));
    let counted = listens.clone();
    let (client, _out) = over_streams(Revision::V2026_07_28, Client::builder(), move |method, _| {
        counted.fetch_add(usize::from(method == "subscriptions/listen"), Ordering::SeqCst);
        Act::Silence
    })
    .await;
    let start = Instant::now();
    let failed = client.subscribe("a://b", |_| ()).await;
    assert!(matches!(failed, Err(Error::Timeout { .. })), "{failed:?}");
    assert_eq!(start.elapsed().as_secs(), 30);
    let held = client.subscribe("a://c", |_| ());
    let _ = tokio::time::timeout(600 * SECOND, held).await;
    let listens = listens.load(Ordering::SeqCst);
    assert!((2..=25).contains(&listens), "{listens}");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_task_notifications_does_not_make_the_client_poll_as_often() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let (client, out) = over_streams(Revision::V2026_07_28, Client::builder(), move |method, _| {
        counted.fetch_add(usize::from(method == "tasks/get"), Ordering::SeqCst);
        endless_task(method, false)
    })
    .await;
    tokio::spawn(async move {
        let changed = notification("notifications/tasks", json!({ "taskId": "1" }));
        while out.send(changed.clone()).is_ok() {
            sleep(Duration::from_micros(200)).await;
        }
    });
    assert_timed_out(&client.call("t", json!({})).timeout(SECOND).await, "timeout");
    let polls = polls.load(Ordering::SeqCst);
    assert!(polls <= 110, "{polls} polls in a second");
}
