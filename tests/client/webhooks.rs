//! Webhooks from the side of a client: what a receiver accepts and refuses, and how a subscription is kept. The server is
//! written to the text of the extension; one test has this crate's server instead.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_runtime::{
    Principal, Server,
    client::{Client, EventOccurrence, PendingWebhook, WebhookReceiver, WebhookSubscription},
    event,
    prelude::*,
};
use mcp_tests::support::{HttpServer, serve_router};
use ring::hmac;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::Service as _;

use super::{
    events::{Peer, connected, occurrence},
    until, within,
};

const URL: &str = "https://agent.example.com/hooks/mcp?tenant=7";

/// What a subscription has received.
#[derive(Clone, Default)]
struct Received {
    log: Arc<Mutex<Vec<String>>>,
    /// How many events are not accepted.
    refusals: Arc<AtomicUsize>,
}

impl Received {
    fn texts(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn subscribe(&self, client: &Client, receiver: &WebhookReceiver) -> PendingWebhook {
        let (events, gaps) = (self.clone(), self.log.clone());
        client
            .subscribe_webhook(receiver, "note.added", json!({ "by": "ada" }), move |event| {
                let events = events.clone();
                async move { events.accept(&event) }
            })
            .on_gap(move || gaps.lock().unwrap().push("gap".to_owned()))
    }

    fn accept(&self, event: &EventOccurrence) -> Result<(), &'static str> {
        assert_ne!(event.id, "panics", "as the test wants it");
        let refuses =
            self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if refuses.is_ok() {
            return Err("the disk is full");
        }
        self.log.lock().unwrap().push(event.id.clone());
        Ok(())
    }
}

/// A subscription, and what its server was sent.
struct Subscribed {
    subscription: WebhookSubscription,
    endpoint: Endpoint,
    client: Client,
    peer: Peer,
    received: Received,
}

/// Where a server delivers.
#[derive(Clone)]
struct Endpoint {
    receiver: WebhookReceiver,
    url: String,
    secret: String,
}

impl Endpoint {
    fn of(receiver: &WebhookReceiver, request: &Value) -> Self {
        let delivery = &request["params"]["delivery"];
        let text = |name: &str| delivery[name].as_str().expect("text").to_owned();
        Self { receiver: receiver.clone(), url: text("url"), secret: text("secret") }
    }

    /// A message as a server signs it.
    fn message(&self, id: &str, body: &str) -> Request<Body> {
        self.message_of(id, body, since_epoch())
    }

    fn message_of(&self, id: &str, body: &str, timestamp: u64) -> Request<Body> {
        let key = STANDARD.decode(self.secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let signed = format!("{id}.{timestamp}.{body}");
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes());
        Request::post(&self.url)
            .header("content-type", "application/json; charset=utf-8")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", format!("v1,AAAA v1,{}", STANDARD.encode(signature)))
            .header("x-mcp-subscription-id", "sub_1")
            .body(Body::from(body.to_owned()))
            .expect("a request")
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, String) {
        let sent: Result<_, Infallible> = within(self.receiver.clone().call(request)).await;
        let response = sent.expect("it cannot fail");
        (response.status(), response.into_body())
    }

    async fn event(&self, id: &str, cursor: &str) -> StatusCode {
        let mut event = occurrence(id);
        event["cursor"] = cursor.into();
        self.send(self.message(id, &event.to_string())).await.0
    }

    async fn control(&self, body: Value) -> (StatusCode, String) {
        self.send(self.message("msg_1", &body.to_string())).await
    }
}

fn since_epoch() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs()
}

fn receiver() -> WebhookReceiver {
    WebhookReceiver::new(URL).expect("a receiver")
}

/// What a server answers that forgets the subscription after so many seconds.
fn granted(seconds: u64, cursor: &str) -> Value {
    let until = chrono::DateTime::from_timestamp((since_epoch() + seconds).cast_signed(), 0).expect("a time");
    json!({ "id": "sub_1", "refreshBefore": format!("{until:?}"), "cursor": cursor, "truncated": false })
}

async fn subscribed() -> Subscribed {
    subscribed_at(receiver()).await
}

async fn subscribed_at(receiver: WebhookReceiver) -> Subscribed {
    let (client, mut peer) = connected(&["webhook"]).await;
    let received = Received::default();
    let pending = tokio::spawn(received.subscribe(&client, &receiver).into_future());
    let request = peer.next("events/subscribe").await;
    let endpoint = Endpoint::of(&receiver, &request);
    peer.reply(&request, &granted(1800, "c0"));
    let subscription = within(pending).await.expect("a task").expect("a subscription");
    Subscribed { subscription, endpoint, client, peer, received }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_answers_the_challenge_before_its_subscription_is_confirmed_and_accepts_each_event_once() {
    let (client, mut peer) = connected(&["webhook"]).await;
    let (receiver, received) = (receiver(), Received::default());
    let pending = received.subscribe(&client, &receiver).lifetime(Duration::from_secs(3600));
    let pending = tokio::spawn(pending.cursor("before").max_age(Duration::from_secs(60)).into_future());
    let request = peer.next("events/subscribe").await;
    let params = &request["params"];
    assert_eq!(
        (&params["name"], &params["arguments"], &params["cursor"], &params["ttlMs"], &params["maxAgeMs"]),
        (&json!("note.added"), &json!({ "by": "ada" }), &json!("before"), &json!(3_600_000), &json!(60_000))
    );
    assert_eq!(params["delivery"]["mode"], "webhook");
    let endpoint = Endpoint::of(&receiver, &request);
    assert!(endpoint.url.starts_with(URL) && endpoint.url.contains("&subscription="), "{}", endpoint.url);
    assert_eq!(STANDARD.decode(&endpoint.secret["whsec_".len()..]).expect("base64").len(), 32);

    let (status, echoed) = endpoint.control(json!({ "type": "verification", "challenge": "abc" })).await;
    assert_eq!((status, echoed.as_str()), (StatusCode::OK, r#"{"challenge":"abc"}"#));
    peer.reply(&request, &granted(1800, "c0"));
    let subscription = within(pending).await.expect("a task").expect("a subscription");
    assert_eq!((subscription.id(), subscription.cursor().as_deref()), ("sub_1", Some("c0")));
    for (id, cursor) in [("1", "c1"), ("2", "c2"), ("1", "c2"), ("3", "c3")] {
        assert_eq!(endpoint.event(id, cursor).await, StatusCode::NO_CONTENT);
    }
    assert_eq!(received.texts(), ["1", "2", "3"]);
    assert_eq!(subscription.cursor().as_deref(), Some("c3"));
    let shown = format!("{subscription:?} {receiver:?}");
    assert!(!shown.contains(&endpoint.secret) && !shown.contains("hooks"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn what_no_subscription_is_signed_for_is_refused_before_the_program_sees_it() {
    let Subscribed { endpoint, received, subscription, client: _client, peer: _peer } = subscribed().await;
    let now = since_epoch();
    let event = occurrence("1").to_string();
    let changed = |change: &dyn Fn(&mut Request<Body>)| {
        let mut request = endpoint.message("1", &event);
        change(&mut request);
        request
    };
    let without = |name: &'static str| changed(&move |request| drop(request.headers_mut().remove(name)));
    let with = |name: &'static str, value: &'static str| {
        changed(&move |request| drop(request.headers_mut().insert(name, value.parse().expect("a value"))))
    };
    let stranger = Endpoint { secret: format!("whsec_{}", STANDARD.encode([7; 32])), ..endpoint.clone() };
    let elsewhere = |url: &str| Endpoint { url: url.to_owned(), ..endpoint.clone() }.message("1", &event);
    let large = json!({ "type": "gap", "cursor": "a".repeat(256 << 10) }).to_string();
    let mut other = occurrence("1");
    other["name"] = "other".into();
    for (what, request, status) in [
        ("another method", changed(&|request| *request.method_mut() = "GET".parse().unwrap()), 405),
        ("another type", with("content-type", "text/plain"), 415),
        ("no type", without("content-type"), 415),
        ("no id", without("webhook-id"), 400),
        ("no time", without("webhook-timestamp"), 400),
        ("no signature", without("webhook-signature"), 400),
        ("a signature of another scheme", with("webhook-signature", "v1a,AAAA"), 401),
        ("a signature of another message", with("webhook-id", "2"), 401),
        ("a time that was not signed", with("webhook-timestamp", "1"), 401),
        ("a time that is not one", with("webhook-timestamp", "+1"), 401),
        ("another secret", stranger.message("1", &event), 401),
        ("a message of six minutes ago", endpoint.message_of("1", &event, now - 360), 401),
        ("a message of the future", endpoint.message_of("1", &event, now + 360), 401),
        ("no subscription", elsewhere(URL), 404),
        ("an unknown one", elsewhere(&format!("{URL}&subscription=1")), 503),
        ("a body that is too large", endpoint.message("1", &large), 413),
        ("what is not JSON", endpoint.message("1", "{"), 400),
        ("another event", endpoint.message("1", &other.to_string()), 400),
        ("an event whose id is not that of the message", endpoint.message("2", &event), 400),
        ("an event without data", endpoint.message("1", r#"{"eventId":"1","name":"note.added"}"#), 400),
        ("a challenge without one", endpoint.message("1", r#"{"type":"verification"}"#), 400),
    ] {
        assert_eq!(endpoint.send(request).await.0.as_u16(), status, "{what}");
    }
    assert!(received.texts().is_empty(), "{:?}", received.texts());
    assert_eq!(subscription.cursor().as_deref(), Some("c0"));
    // a message of a later version of the extension
    assert_eq!(endpoint.control(json!({ "type": "unknown" })).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_program_does_not_accept_is_asked_for_again_and_one_that_it_works_on_is_not_begun_twice()
 {
    let Subscribed { endpoint, received, client, subscription, .. } = subscribed().await;
    received.refusals.store(2, Ordering::SeqCst);
    for (id, status) in [("1", 503), ("panics", 503), ("1", 503), ("1", 204), ("1", 204), ("panics", 503)] {
        assert_eq!(endpoint.event(id, "c1").await.as_u16(), status, "{id}");
    }
    assert_eq!(received.texts(), ["1"]);
    assert_eq!(subscription.cursor().as_deref(), Some("c1"));
    drop((subscription, client));

    let receiver = receiver();
    let (client, mut peer) = connected(&["webhook"]).await;
    let (go, count) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (gone, counted) = (go.clone(), count.clone());
    let pending = client.subscribe_webhook(&receiver, "note.added", Value::Null, move |event| {
        let (gone, counted) = (gone.clone(), counted.clone());
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            if event.id == "slow" {
                gone.notified().await;
            }
            Ok::<_, String>(())
        }
    });
    let pending = tokio::spawn(pending.into_future());
    let request = peer.next("events/subscribe").await;
    assert_eq!(request["params"]["arguments"], json!({}));
    let endpoint = Endpoint::of(&receiver, &request);
    peer.reply(
        &request,
        &json!({ "id": "sub_2", "refreshBefore": null, "cursor": null, "truncated": false }),
    );
    let subscription = within(pending).await.expect("a task").expect("a subscription");
    assert_eq!(subscription.cursor(), None);
    let first = tokio::spawn({
        let endpoint = endpoint.clone();
        async move { endpoint.event("slow", "c1").await }
    });
    until(|| count.load(Ordering::SeqCst) == 1).await;
    assert_eq!(endpoint.event("slow", "c1").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(endpoint.event("other", "c1").await, StatusCode::NO_CONTENT, "others do not wait for it");
    go.notify_one();
    assert_eq!(first.await.expect("a task"), StatusCode::NO_CONTENT);
    assert_eq!(endpoint.event("slow", "c1").await, StatusCode::NO_CONTENT);
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_renewed_before_it_expires_and_also_after_the_server_has_failed() {
    let Subscribed { endpoint, mut peer, received, subscription, client: _client } = subscribed().await;
    assert_eq!(endpoint.event("1", "c1").await, StatusCode::NO_CONTENT);
    let before = tokio::time::Instant::now();
    let renewal = peer.next_ever("events/subscribe").await;
    assert!(before.elapsed() < Duration::from_secs(1800), "{:?}", before.elapsed());
    assert_eq!((&renewal["params"]["cursor"], &renewal["params"]["ttlMs"]), (&json!("c1"), &Value::Null));
    let again = Endpoint::of(&endpoint.receiver, &renewal);
    assert_eq!((&again.url, &again.secret), (&endpoint.url, &endpoint.secret));
    peer.refuse(&renewal, -32603);
    let renewal = peer.next_ever("events/subscribe").await;
    assert!(before.elapsed() < Duration::from_secs(1800), "{:?}", before.elapsed());
    let mut lost = granted(60, "c9");
    lost["truncated"] = true.into();
    lost["deliveryStatus"] = json!({ "active": true, "lastError": "timeout" });
    peer.reply(&renewal, &lost);
    until(|| received.texts() == ["1", "gap"]).await;
    assert_eq!(subscription.cursor().as_deref(), Some("c9"));
    let before = tokio::time::Instant::now();
    let renewal = peer.next_ever("events/subscribe").await;
    assert!(before.elapsed() < Duration::from_secs(60), "{:?}", before.elapsed());
    // a server that grants nothing is not asked without end
    peer.reply(&renewal, &granted(0, "c9"));
    let before = tokio::time::Instant::now();
    let renewal = peer.next_ever("events/subscribe").await;
    assert!(before.elapsed() >= Duration::from_secs(20), "{:?}", before.elapsed());
    // one that says that the client may not have the event any more is not asked again
    peer.refuse(&renewal, -32024);
    assert_eq!(within(subscription.ended()).await.code(), Some(-32024));
    assert_eq!(endpoint.event("2", "c2").await, StatusCode::GONE);
}

#[tokio::test(start_paused = true)]
async fn a_server_may_tell_of_a_gap_and_end_a_subscription() {
    let Subscribed { endpoint, received, subscription, client: _client, peer: _peer } = subscribed().await;
    assert_eq!(endpoint.control(json!({ "type": "gap", "cursor": "c5" })).await.0, StatusCode::NO_CONTENT);
    assert_eq!(
        (received.texts().as_slice(), subscription.cursor().as_deref()),
        (&["gap".to_owned()][..], Some("c5"))
    );
    let error = json!({ "code": -32024, "message": "revoked", "data": { "reason": "access" } });
    assert_eq!(
        endpoint.control(json!({ "type": "terminated", "error": error })).await.0,
        StatusCode::NO_CONTENT
    );
    let why = within(subscription.ended()).await;
    assert_eq!(why.code(), Some(-32024), "{why}");
    assert_eq!(endpoint.event("1", "c6").await, StatusCode::GONE);
}

#[tokio::test(start_paused = true)]
async fn both_secrets_are_accepted_while_one_is_replaced() {
    let Subscribed { endpoint, mut peer, subscription, client: _client, .. } = subscribed().await;
    let subscription = Arc::new(subscription);
    let rotating = tokio::spawn({
        let subscription = subscription.clone();
        async move { subscription.rotate_secret().await }
    });
    let request = peer.next("events/subscribe").await;
    let rotated = Endpoint::of(&endpoint.receiver, &request);
    assert_ne!(rotated.secret, endpoint.secret);
    for (id, endpoint) in [("1", &endpoint), ("2", &rotated)] {
        assert_eq!(endpoint.event(id, "c1").await, StatusCode::NO_CONTENT);
    }
    peer.reply(&request, &granted(1800, "c1"));
    within(rotating).await.expect("a task").expect("it is rotated");
    tokio::time::advance(Duration::from_secs(9 * 60)).await;
    assert_eq!(endpoint.event("3", "c1").await, StatusCode::NO_CONTENT, "one that was on its way");
    tokio::time::advance(Duration::from_secs(2 * 60)).await;
    assert_eq!(endpoint.event("4", "c1").await, StatusCode::UNAUTHORIZED);
    assert_eq!(rotated.event("4", "c1").await, StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn the_secret_that_the_server_has_is_accepted_until_it_has_confirmed_a_newer_one() {
    let Subscribed { endpoint, mut peer, subscription, client: _client, .. } = subscribed().await;
    let subscription = Arc::new(subscription);
    let mut rotated = Vec::new();
    for _ in 0..2 {
        let rotating = tokio::spawn({
            let subscription = subscription.clone();
            async move { subscription.rotate_secret().await }
        });
        let request = peer.next("events/subscribe").await;
        rotated.push(Endpoint::of(&endpoint.receiver, &request));
        peer.refuse(&request, -32603);
        assert!(within(rotating).await.expect("a task").is_err());
    }
    // however long the server cannot be reached
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(endpoint.event("1", "c1").await, StatusCode::NO_CONTENT, "the server has no other one");
    // one that fails to answer may have taken the new one
    let renewal = peer.next_ever("events/subscribe").await;
    let last = Endpoint::of(&endpoint.receiver, &renewal);
    assert_eq!(last.secret, rotated[1].secret);
    peer.reply(&renewal, &granted(1800, "c1"));
    until(|| subscription.cursor().as_deref() == Some("c1")).await;
    assert_eq!(last.event("2", "c2").await, StatusCode::NO_CONTENT);
    assert_eq!(endpoint.event("3", "c3").await, StatusCode::NO_CONTENT, "one that was on its way");
    tokio::time::advance(Duration::from_secs(11 * 60)).await;
    assert_eq!(endpoint.event("4", "c4").await, StatusCode::UNAUTHORIZED);
    assert_eq!(last.event("4", "c4").await, StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_dropped_is_ended_at_the_server_and_one_that_is_left_waits_for_another_run() {
    let Subscribed { endpoint, mut peer, subscription, client, .. } = subscribed().await;
    drop(subscription);
    let request = peer.next("events/unsubscribe").await;
    let params = &request["params"];
    let delivery = json!({ "mode": "webhook", "url": endpoint.url });
    assert_eq!(
        (&params["name"], &params["arguments"], &params["delivery"]),
        (&json!("note.added"), &json!({ "by": "ada" }), &delivery)
    );
    peer.reply(&request, &json!({}));
    assert_eq!(endpoint.event("1", "c1").await, StatusCode::GONE);
    drop((client, peer));

    let first = subscribed_at(endpoint.receiver.clone()).await;
    assert_eq!(first.endpoint.url, endpoint.url, "the same again has the same URL");
    let second = subscribed_at(endpoint.receiver.clone()).await;
    assert_ne!(second.endpoint.url, endpoint.url, "two at once have not");
    assert_eq!(second.endpoint.event("1", "c1").await, StatusCode::NO_CONTENT);
    assert!(first.received.texts().is_empty());
    assert_eq!(first.subscription.leave().as_deref(), Some("c0"));
    until(|| true).await;
    let left = first.endpoint.clone();
    within(async {
        while left.event("2", "c2").await != StatusCode::SERVICE_UNAVAILABLE {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let resumed = subscribed_at(endpoint.receiver.clone()).await;
    assert_eq!(resumed.endpoint.url, endpoint.url);
    assert_eq!(resumed.endpoint.event("2", "c2").await, StatusCode::NO_CONTENT);
    assert_eq!(resumed.received.texts(), ["2"]);
    let mut peer = first.peer;
    let asked = tokio::time::timeout(Duration::from_secs(5), peer.next("events/unsubscribe")).await;
    assert!(asked.is_err(), "it stays at the server: {asked:?}");
}

#[test]
fn a_receiver_has_a_url_that_servers_may_deliver_to() {
    for url in ["https://agent.example.com/", "http://127.0.0.1:8080/hook", "http://localhost/hook"] {
        assert!(WebhookReceiver::new(url).is_ok(), "{url}");
    }
    for url in [
        "http://example.com/",
        "ftp://example.com/",
        "example.com",
        "https://a:b@example.com/",
        "https://a.example/#b",
    ] {
        assert!(WebhookReceiver::new(url).is_err(), "{url}");
    }
}

/// A note
#[mcp_type]
#[derive(Debug)]
pub(super) struct Note {
    pub(super) text: String,
}

/// A note was added.
#[mcp_event(name = "note.added")]
pub(super) fn note_added(#[mcp(payload)] _note: &Note, #[mcp(default = "")] by: String) {
    let _anyone = by;
}

/// A server of notes, whose callers say who they are.
pub(super) fn notes_server() -> Server {
    let builder = Server::builder("notes", "1")
        .add(event::of::<note_added>())
        .limits(|limits| limits.events(|events| events.webhooks_on_loopback()))
        .http(|http| {
            http.caller(|parts| {
                let user = parts.headers.get("x-user")?.to_str().ok()?;
                Some(Principal::new("test", user))
            })
        });
    builder.build().expect("a server")
}

#[tokio::test]
async fn a_client_receives_the_events_of_a_server_over_http() {
    let server = notes_server();
    let http = HttpServer::of(&server).await;
    let url = format!("http://{}/mcp", http.address);
    let client =
        within(Client::builder().header("x-user", "ada").connect(url.as_str())).await.expect("a client");
    let target = Arc::new(Mutex::new(None::<WebhookReceiver>));
    let (requests, statuses) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (shared, counted, kept) = (target.clone(), requests.clone(), statuses.clone());
    let router = axum::Router::new().fallback(move |request: Request<Body>| {
        let (receiver, counted, kept) = (shared.lock().unwrap().clone(), counted.clone(), kept.clone());
        async move {
            counted.fetch_add(1, Ordering::SeqCst);
            let response = receiver.expect("a receiver").call(request).await.expect("it cannot fail");
            kept.lock().unwrap().push(response.status().as_u16());
            response
        }
    });
    let address = serve_router(router).await;
    let receiver = WebhookReceiver::new(&format!("http://{address}/hook")).expect("a receiver");
    *target.lock().unwrap() = Some(receiver.clone());
    let notes = Arc::new(Mutex::new(Vec::new()));
    let taken = notes.clone();
    let pending = client.subscribe_webhook(&receiver, "note.added", json!({}), move |event| {
        let note = event.payload::<Note>().map(|note| taken.lock().unwrap().push(note.text));
        async move { note }
    });
    let subscription = within(pending.into_future()).await.expect("a subscription");
    assert!(subscription.id().starts_with("sub_"));
    for n in 0..100 {
        server.handle().emit::<note_added>(&Note { text: n.to_string() }).await.expect("it is emitted");
    }
    until(|| notes.lock().unwrap().len() == 100).await;
    let mut texts = notes.lock().unwrap().clone();
    texts.sort_by_key(|text| text.parse::<usize>().expect("a number"));
    assert_eq!(texts, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    within(subscription.rotate_secret()).await.expect("it is rotated");
    server.handle().emit::<note_added>(&Note { text: "100".into() }).await.expect("it is emitted");
    until(|| notes.lock().unwrap().len() == 101).await;
    assert!(statuses.lock().unwrap().iter().all(|status| [200, 204].contains(status)), "{statuses:?}");
    drop(subscription);
    // the server ends it when it is told to; what is on its way until then is not wanted
    within(async {
        loop {
            let before = requests.load(Ordering::SeqCst);
            server.handle().emit::<note_added>(&Note { text: "late".into() }).await.expect("it is emitted");
            tokio::time::sleep(Duration::from_millis(100)).await;
            if requests.load(Ordering::SeqCst) == before {
                return;
            }
        }
    })
    .await;
    assert_eq!(notes.lock().unwrap().len(), 101);
    // a receiver that does not answer is an error of the subscription
    *target.lock().unwrap() =
        Some(WebhookReceiver::new(&format!("http://{address}/hook")).expect("a receiver"));
    let pending = client.subscribe_webhook(&receiver, "note.added", json!({ "by": "bob" }), |_| async {
        Ok::<_, String>(())
    });
    let error = within(pending.into_future()).await.expect_err("the challenge is not answered");
    assert_eq!(error.code(), Some(-32027), "{error}");
}
