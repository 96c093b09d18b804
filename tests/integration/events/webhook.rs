//! Webhooks: who may subscribe an endpoint, what it gets, when it gets it again, and what it cannot make the server do.

use std::{collections::VecDeque, time::SystemTime};

use axum::{
    body::Bytes,
    http::{HeaderMap, Uri},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_runtime::{auth::ApiKeys, event};
use ring::hmac;

use crate::prelude::*;

/// A note
#[mcp_type]
pub(super) struct Note {
    pub(super) text: String,
}

/// A note was added.
#[mcp_event(name = "note.added")]
pub(super) fn note_added(#[mcp(payload)] note: &Note, #[mcp(default = "")] word: String) -> bool {
    note.text.contains(&word)
}

/// What came to an endpoint.
#[derive(Debug, Clone)]
pub(super) struct Received {
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).expect("the header").to_str().expect("text")
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Whether one of its signatures is of this secret, by the formula of Standard Webhooks.
    pub(super) fn is_signed_by(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let mut signed =
            format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp")).into_bytes();
        signed.extend_from_slice(&self.body);
        self.header("webhook-signature").split(' ').any(|signature| {
            let signature =
                STANDARD.decode(signature.strip_prefix("v1,").expect("a version")).expect("base64");
            hmac::verify(&key, &signed, &signature).is_ok()
        })
    }
}

/// An endpoint that repeats challenges, and accepts everything that it has no other status for.
#[derive(Clone, Default)]
pub(super) struct Endpoint {
    pub(super) received: Arc<Mutex<Vec<Received>>>,
    pub(super) statuses: Arc<Mutex<VecDeque<u16>>>,
    pub(super) url: String,
}

impl Endpoint {
    pub(super) async fn start() -> Self {
        let endpoint = Self::default();
        let url = format!("http://{}/hook", serve_router(endpoint.router()).await);
        Self { url, ..endpoint }
    }

    /// What answers requests.
    pub(super) fn router(&self) -> axum::Router {
        let kept = self.clone();
        axum::Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let received = Received { path: uri.path().to_owned(), headers, body };
            let message = received.json();
            let challenge = message.get("challenge").cloned();
            let status = match &challenge {
                Some(_) => 200,
                None => kept.statuses.lock().unwrap().pop_front().unwrap_or(204),
            };
            kept.received.lock().unwrap().push(received);
            async move {
                let answer = challenge
                    .map_or_else(String::new, |challenge| json!({ "challenge": challenge }).to_string());
                axum::http::Response::builder()
                    .status(status)
                    .header("location", "/elsewhere")
                    .body(axum::body::Body::from(answer))
                    .unwrap()
            }
        })
    }

    pub(super) fn messages(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The events that came, by id, also those that were refused.
    pub(super) fn events(&self) -> Vec<String> {
        let ids = self
            .messages()
            .into_iter()
            .filter_map(|message| Some(message.json().get("eventId")?.as_str()?.to_owned()));
        ids.collect()
    }

    /// What came besides events.
    pub(super) fn controls(&self) -> Vec<Value> {
        self.messages().iter().map(Received::json).filter(|message| message.get("type").is_some()).collect()
    }
}

pub(super) fn secret(byte: u8) -> String {
    format!("whsec_{}", STANDARD.encode([byte; 32]))
}

pub(super) struct Running {
    pub(super) http: HttpServer,
    pub(super) handle: ServerHandle,
}

/// A server of notes whose webhooks may be on this machine, with more limits.
fn limited(limits: fn(event::EventLimits) -> event::EventLimits) -> ServerBuilder {
    let builder = Server::builder("notes", "1").add(event::of::<note_added>());
    builder.limits(|all| all.events(|events| limits(events.webhooks_on_loopback())))
}

fn notes() -> ServerBuilder {
    limited(|limits| limits)
}

pub(super) async fn running() -> Running {
    start(notes()).await
}

/// A server whose callers say who they are, and for how many milliseconds if that ends.
pub(super) async fn start(builder: ServerBuilder) -> Running {
    let builder = builder.http(|http| {
        http.caller(|parts| {
            let principal = Principal::new("test", parts.headers.get("x-user")?.to_str().ok()?);
            let expires = parts.headers.get("x-expires").and_then(|time| time.to_str().ok()?.parse().ok());
            Some(match expires {
                Some(time) => principal.with_expiry(SystemTime::now() + Duration::from_millis(time)),
                None => principal,
            })
        })
    });
    let server = builder.build().expect("a server");
    Running { handle: server.handle(), http: HttpServer::of(&server).await }
}

impl Running {
    pub(super) async fn request(&self, user: &str, method: &str, params: Value) -> Value {
        let request = HttpRequest::modern(1, method, params).header("X-User", user);
        request.send(self.http.address).await.json()
    }

    pub(super) async fn subscribe(&self, user: &str, url: &str) -> Value {
        self.request(user, "events/subscribe", subscription(url, &secret(1))).await
    }

    pub(super) async fn emit(&self, id: &str, text: &str) {
        self.handle.emit::<note_added>(&Note { text: text.to_owned() }).id(id).await.expect("it is emitted");
    }
}

pub(super) fn subscription(url: &str, secret: &str) -> Value {
    let delivery = json!({ "mode": "webhook", "url": url, "secret": secret });
    json!({ "name": "note.added", "arguments": { "word": "tea" }, "delivery": delivery, "cursor": null, "ttlMs": 120_000 })
}

#[tokio::test]
async fn an_endpoint_that_repeats_the_challenge_gets_the_events_of_its_subscription_signed() {
    let (server, endpoint) = (running().await, Endpoint::start().await);
    let listed = server.request("ada", "events/list", json!({})).await;
    assert!(
        listed["result"]["events"][0]["delivery"].as_array().unwrap().contains(&json!("webhook")),
        "{listed}"
    );
    let reply = server.subscribe("ada", &endpoint.url).await;
    let result = &reply["result"];
    let id = result["id"].as_str().expect("an id");
    assert!(
        id.starts_with("sub_") && result["cursor"].is_string() && result["truncated"] == json!(false),
        "{reply}"
    );
    assert!(result["refreshBefore"].as_str().is_some_and(|time| time.ends_with('Z')), "{reply}");
    for (number, text) in [("1", "green tea"), ("2", "coffee"), ("3", "black tea")] {
        server.emit(number, text).await;
    }
    assert!(soon(|| endpoint.events().len() == 2).await, "{:?}", endpoint.events());
    for message in endpoint.messages() {
        assert!(message.is_signed_by(&secret(1)) && !message.is_signed_by(&secret(2)));
        assert_eq!(
            (message.header("x-mcp-subscription-id"), message.header("content-type")),
            (id, "application/json")
        );
        let body = message.json();
        let message_id = body.get("eventId").and_then(Value::as_str);
        match message_id {
            Some(event) => {
                assert_eq!(message.header("webhook-id"), event);
                assert_eq!((&body["name"], body["cursor"].is_string()), (&json!("note.added"), true));
                assert!(body["data"]["text"].as_str().unwrap().contains("tea"));
            }
            None => assert!(message.header("webhook-id").starts_with("msg_verification_")),
        }
    }
    // the same subscription is renewed, and its endpoint not verified again
    let renewed = server.subscribe("ada", &endpoint.url).await;
    let status = &renewed["result"]["deliveryStatus"];
    assert_eq!(
        (renewed["result"]["id"].as_str(), &status["active"], &status["lastError"]),
        (Some(id), &json!(true), &Value::Null)
    );
    assert!(status["lastDeliveryAt"].is_string(), "{renewed}");
    assert_eq!(endpoint.controls().len(), 1);
    // another principal has another subscription, and its own challenge
    let other = server.subscribe("bob", &endpoint.url).await;
    assert_ne!(other["result"]["id"].as_str(), Some(id));
    assert_eq!(endpoint.controls().len(), 2);
}

#[tokio::test]
async fn urls_and_secrets_that_are_not_allowed_are_refused_before_anything_is_sent() {
    // as it is outside of tests
    let server = start(Server::builder("notes", "1").add(event::of::<note_added>())).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for url in [
        "http://example.com/hook".into(),
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://LOCALHOST.:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://0x7f.1:{port}/"),
        format!("https://0177.0.0.1:{port}/"),
        format!("https://017700000001:{port}/"),
        format!("https://127.1:{port}/"),
        format!("https://0:{port}/"),
        format!("https://0.0.0.0:{port}/"),
        format!("https://[::]:{port}/"),
        format!("https://[0:0:0:0:0:ffff:7f00:1]:{port}/"),
        format!("https://[64:ff9b::7f00:1]:{port}/"),
        format!("https://%6c%6f%63alhost:{port}/"),
        "https://192.168.1.1/".into(),
        "https://100.64.0.1/".into(),
        "https://[fe80::1]/".into(),
        format!("https://[::1]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        "https://10.0.0.1/".into(),
        "https://169.254.169.254/latest/meta-data/".into(),
        "https://[fd00::1]/".into(),
        "https://ada:secret@example.com/".into(),
        "https://example.com/#a".into(),
        format!("https://example.com/{}", "a".repeat(3000)),
        "file:///etc/passwd".into(),
        "not a url".into(),
    ] {
        let refused = server.subscribe("ada", &url).await;
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
    }
    for secret in ["", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
        let refused =
            server.request("ada", "events/subscribe", subscription("https://example.com/hook", secret)).await;
        assert_eq!(refused["error"]["code"], -32602, "{secret}: {refused}");
        assert!(!refused.to_string().contains("LaLaSw"));
    }
    assert!(listener.accept().is_err(), "it was connected to");
    // a webhook needs a principal
    let anonymous =
        HttpRequest::modern(1, "events/subscribe", subscription("https://example.com/hook", &secret(1)));
    let refused = anonymous.send(server.http.address).await.json();
    assert_eq!(refused["error"]["code"], -32024, "{refused}");
    let open = Server::builder("notes", "1").add(event::of::<note_added>());
    let open = HttpServer::start(open).await;
    let listed = HttpRequest::modern(1, "events/list", json!({})).send(open.address).await.json();
    assert_eq!(listed["result"]["events"][0]["delivery"], json!(["poll", "push"]));
    for method in ["events/subscribe", "events/unsubscribe"] {
        let params = subscription("https://example.com/hook", &secret(1));
        let refused = HttpRequest::modern(1, method, params).send(open.address).await.json();
        assert_eq!(refused["error"]["code"], -32024, "{method}: {refused}");
    }
}

#[tokio::test]
async fn an_endpoint_that_does_not_repeat_the_challenge_gets_nothing_else() {
    let server = running().await;
    let reason = |reply: &Value| reply["error"]["data"]["reason"].as_str().map(str::to_owned);
    let requests = Arc::new(Mutex::new(Vec::new()));
    for (status, answer) in
        [(200, "{\"challenge\":\"guessed\"}"), (200, "hello"), (404, ""), (302, ""), (500, "")]
    {
        let seen = requests.clone();
        let app = axum::Router::new().fallback(move |uri: Uri| {
            seen.lock().unwrap().push(uri.path().to_owned());
            async move {
                let response =
                    axum::http::Response::builder().status(status).header("location", "/elsewhere");
                response.body(axum::body::Body::from(answer)).unwrap()
            }
        });
        let url = format!("http://{}/hook", serve_router(app).await);
        let refused = server.subscribe("ada", &url).await;
        assert_eq!(reason(&refused).as_deref(), Some("challenge_failed"), "{status} {answer}: {refused}");
        assert!(!refused.to_string().contains("hello"), "what it answers is not passed on");
    }
    server.emit("1", "tea").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(*requests.lock().unwrap(), ["/hook"; 5], "a challenge each, and no redirect");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", free.local_addr().unwrap());
    drop(free);
    assert_eq!(reason(&server.subscribe("ada", &url).await).as_deref(), Some("connection_refused"));
}

#[tokio::test]
async fn what_was_not_accepted_comes_again_and_holds_up_neither_other_events_nor_other_endpoints() {
    let (server, failing, other) = (running().await, Endpoint::start().await, Endpoint::start().await);
    server.subscribe("ada", &failing.url).await;
    server.subscribe("bob", &other.url).await;
    // a redirect, which is not followed, is a failure like others
    failing.statuses.lock().unwrap().extend([503, 307]);
    server.emit("1", "tea").await;
    server.emit("2", "tea").await;
    assert!(soon(|| failing.events().len() >= 2 && other.events().len() == 2).await);
    let status = server.subscribe("ada", &failing.url).await;
    assert!(status["result"]["deliveryStatus"]["active"] == json!(true), "{status}");
    // the first pause is some seconds long
    assert!(soon(|| failing.events().len() == 4).await, "{:?}", failing.events());
    let messages = failing.messages();
    assert!(messages.iter().all(|message| message.path == "/hook"), "{messages:?}");
    for id in ["1", "2"] {
        let [first, again] =
            messages.iter().filter(|message| message.json()["eventId"] == id).collect::<Vec<_>>()[..]
        else {
            panic!("{messages:?}")
        };
        assert_eq!(first.header("webhook-id"), again.header("webhook-id"));
        let times = [first, again].map(|message| message.header("webhook-timestamp"));
        assert_ne!(times[0], times[1], "each attempt has its time");
        assert!(again.is_signed_by(&secret(1)));
    }
    assert!(failing.controls().iter().all(|control| control["type"] != "gap"), "nothing was lost");
}

#[tokio::test]
async fn what_is_refused_for_good_is_not_sent_again_and_what_is_too_large_is_a_gap() {
    let (server, endpoint) = (running().await, Endpoint::start().await);
    server.subscribe("ada", &endpoint.url).await;
    endpoint.statuses.lock().unwrap().extend([410]);
    server.emit("gone", "tea").await;
    assert!(soon(|| endpoint.events().len() == 1).await);
    let largest = "tea".to_owned() + &"x".repeat((256 << 10) - 40);
    server.emit("large", &largest).await;
    server.emit("2", "tea").await;
    let has_gap = || endpoint.controls().iter().any(|control| control["type"] == "gap");
    assert!(
        soon(|| has_gap() && endpoint.events() == ["gone", "2"]).await,
        "{:?} {:?}",
        endpoint.events(),
        endpoint.controls()
    );
    let gap = endpoint.messages().into_iter().find(|message| message.json()["type"] == "gap").unwrap();
    assert!(gap.header("webhook-id").starts_with("msg_gap_") && gap.is_signed_by(&secret(1)));
    assert!(gap.json()["cursor"].is_string());
    let renewed = server.subscribe("ada", &endpoint.url).await;
    assert_eq!(renewed["result"]["truncated"], true, "{renewed}");
    let renewed = server.subscribe("ada", &endpoint.url).await;
    assert_eq!(renewed["result"]["truncated"], false, "it was said");
}

#[tokio::test]
async fn a_new_secret_signs_besides_the_old_one_and_a_lifetime_is_not_longer_than_the_authentication() {
    let (server, endpoint) = (running().await, Endpoint::start().await);
    server.subscribe("ada", &endpoint.url).await;
    server.request("ada", "events/subscribe", subscription(&endpoint.url, &secret(2))).await;
    server.emit("1", "tea").await;
    assert!(soon(|| endpoint.events().len() == 1).await);
    let message = endpoint.messages().pop().unwrap();
    assert!(message.is_signed_by(&secret(1)) && message.is_signed_by(&secret(2)));
    let before = unix_now();
    for (header, seconds) in [("x-none", 120), ("x-expires", 90)] {
        let request = HttpRequest::modern(1, "events/subscribe", subscription(&endpoint.url, &secret(1)));
        let reply =
            request.header("X-User", "eve").header(header, "90000").send(server.http.address).await.json();
        assert!(granted(&reply) < before + seconds + 10, "{header}: {reply}");
    }
}

/// When a subscription has to be renewed, in seconds since 1970.
fn granted(reply: &Value) -> u64 {
    let time = reply["result"]["refreshBefore"].as_str().expect("a time");
    let time: chrono::DateTime<chrono::Utc> = time.parse().expect("a time");
    time.timestamp().unsigned_abs()
}

#[tokio::test]
async fn a_principal_that_loses_access_is_told_that_its_subscription_has_ended() {
    let may_see = Arc::new(AtomicBool::new(true));
    let seen = may_see.clone();
    let builder = notes().lists(|lists| lists.visible(move |_, _| seen.load(Ordering::SeqCst)));
    let (server, endpoint) = (start(builder).await, Endpoint::start().await);
    server.subscribe("ada", &endpoint.url).await;
    may_see.store(false, Ordering::SeqCst);
    server.emit("1", "tea").await;
    assert!(soon(|| endpoint.controls().len() == 2).await, "{:?}", endpoint.controls());
    let ended = &endpoint.controls()[1];
    assert_eq!((&ended["type"], &ended["error"]["code"]), (&json!("terminated"), &json!(-32024)));
    assert!(endpoint.events().is_empty());
    may_see.store(true, Ordering::SeqCst);
    let again = server.subscribe("ada", &endpoint.url).await;
    assert_eq!(again["result"].get("deliveryStatus"), None, "it is a new one");
}

#[tokio::test]
async fn one_principal_has_half_of_the_subscriptions() {
    let server = start(limited(|limits| limits.max_webhooks(4))).await;
    let endpoint = Endpoint::start().await;
    let subscribe = async |user: &str, word: &str| {
        let mut params = subscription(&endpoint.url, &secret(1));
        params["arguments"]["word"] = word.into();
        server.request(user, "events/subscribe", params).await
    };
    for word in ["a", "b"] {
        assert!(subscribe("ada", word).await["result"].is_object());
    }
    let refused = subscribe("ada", "c").await;
    assert_eq!(refused["error"]["data"]["limit"], "subscriptions", "{refused}");
    assert!(subscribe("ada", "a").await["result"].is_object(), "one that there is can be renewed");
    assert!(subscribe("bob", "c").await["result"].is_object());
    assert_eq!(
        endpoint.controls().len(),
        2,
        "a challenge for each principal, and not for each of its subscriptions"
    );
}

/// An endpoint that repeats challenges, and does something else with a connection on which an event comes.
async fn difficult(drips: bool) -> (String, Arc<Mutex<usize>>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let events = Arc::<Mutex<usize>>::default();
    let seen = events.clone();
    spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let seen = seen.clone();
            spawn(async move {
                let mut read = Vec::new();
                let message = loop {
                    if stream.read_buf(&mut read).await.unwrap_or_default() == 0 {
                        return;
                    }
                    let text = String::from_utf8_lossy(&read);
                    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
                    if let Ok(message) = serde_json::from_str::<Value>(body) {
                        break message;
                    }
                };
                if let Some(challenge) = message.get("challenge") {
                    let body = json!({ "challenge": challenge }).to_string();
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    let _gone = stream.write_all((head + &body).as_bytes()).await;
                    return;
                }
                *seen.lock().unwrap() += 1;
                if !drips {
                    return std::future::pending().await;
                }
                for byte in b"HTTP/1.1 200 OK\r\nx: ".iter().chain(std::iter::repeat(&b'x')) {
                    if stream.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
        }
    });
    (url, events)
}

#[tokio::test]
async fn endpoints_that_never_answer_or_answer_a_byte_at_a_time_hold_up_no_other() {
    let server = running().await;
    let (hanging, hung) = difficult(false).await;
    let (dripping, dripped) = difficult(true).await;
    let (own, other) = (Endpoint::start().await, Endpoint::start().await);
    for (user, url) in [("ada", &hanging), ("ada", &dripping), ("ada", &own.url), ("bob", &other.url)] {
        let reply = server.subscribe(user, url).await;
        assert!(reply["result"]["id"].is_string(), "{url}: {reply}");
    }
    for number in 0..100 {
        server.emit(&number.to_string(), "tea").await;
    }
    // a hundred each, before either of them has timed out once
    assert!(soon(|| own.events().len() == 100 && other.events().len() == 100).await);
    assert!(soon(|| *hung.lock().unwrap() == 4 && *dripped.lock().unwrap() == 4).await);
    for endpoint in [own, other] {
        let mut events = endpoint.events();
        events.sort();
        events.dedup();
        assert_eq!(events.len(), 100);
        assert!(endpoint.controls().iter().all(|control| control["type"] == "verification"));
    }
}

#[tokio::test]
async fn secrets_of_webhooks_are_in_no_log_span_audit_line_or_reply() {
    let (everything, _subscribed) = everything_printed();
    let lines = AuditLines::default();
    let builder = notes().audit(lines.sink().values()).telemetry(|telemetry| telemetry.arguments());
    let (server, endpoint) = (start(builder).await, Endpoint::start().await);
    endpoint.statuses.lock().unwrap().extend([500, 410]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}/", free.local_addr().unwrap());
    drop(free);
    let secrets = [secret(77), secret(78)];
    let mut replies = Vec::new();
    for (url, secret) in [
        (&*endpoint.url, &secrets[0]),
        (&*endpoint.url, &secrets[1]),
        (&*gone, &secrets[0]),
        ("https://10.0.0.1/", &secrets[0]),
    ] {
        let request = HttpRequest::modern(1, "events/subscribe", subscription(url, secret));
        let request = request.header("X-User", "ada").header("Authorization", "Bearer xyzzy-plugh");
        replies.push(request.send(server.http.address).await.json().to_string());
    }
    let mut wrong = subscription(&endpoint.url, &secrets[0]);
    wrong["delivery"]["secret"] = json!([secrets[0]]);
    replies.push(server.request("ada", "events/subscribe", wrong).await.to_string());
    for number in ["1", "2", "3"] {
        server.emit(number, "tea").await;
    }
    assert!(soon(|| endpoint.events().len() >= 3).await);
    assert!(soon(|| lines.0.lock().unwrap().len() >= 5).await);
    let texts = [everything.text(), lines.0.lock().unwrap().join("\n"), replies.join("\n")];
    assert!(texts[0].contains("events/subscribe") && texts[1].contains("note.added"));
    for secret in [secrets[0].as_str(), secrets[1].as_str(), "xyzzy-plugh"] {
        let bare = secret.strip_prefix("whsec_").unwrap_or(secret);
        for text in &texts {
            assert!(!text.contains(bare), "{text}");
        }
    }
    // what the endpoint gets is signed with them, and contains neither
    for message in endpoint.messages() {
        assert!(!format!("{:?}{}", message.headers, message.json()).contains("xyzzy-plugh"));
        assert!(message.is_signed_by(&secrets[0]));
    }
}

/// Waits until an endpoint was told that one of its subscriptions has ended, and returns the error.
async fn terminated(endpoint: &Endpoint) -> Value {
    let found = || endpoint.controls().into_iter().find(|control| control["type"] == "terminated");
    assert!(soon(|| found().is_some()).await, "{:?}", endpoint.controls());
    found().expect("it came")["error"].clone()
}

#[tokio::test]
async fn an_endpoint_is_told_when_the_authentication_of_its_principal_expires() {
    let server = running().await;
    let endpoint = Endpoint::start().await;
    let request = HttpRequest::modern(1, "events/subscribe", subscription(&endpoint.url, &secret(1)));
    let request = request.header("x-user", "ada").header("x-expires", "1500");
    let reply = request.send(server.http.address).await.json();
    assert!(reply["result"]["id"].is_string(), "{reply}");
    let error = terminated(&endpoint).await;
    assert_eq!(error["data"]["reason"], "the authentication of the subscriber has expired", "{error}");
}

/// A server with a shared store, whose callers have API keys.
async fn with_keys(builder: ServerBuilder, store: &BreakableStore, keys: ApiKeys) -> Running {
    let builder = builder.auth(keys).stores(|stores| stores.keys([server_key(5)]));
    let server = builder.shared(store.clone()).build().expect("a server");
    Running { handle: server.handle(), http: HttpServer::of(&server).await }
}

impl Running {
    async fn stop(mut self) {
        self.http.stop();
        self.http.stopped().await;
    }

    /// A request with an API key.
    async fn request_with(&self, key: &str, method: &str, params: Value) -> Value {
        let request = HttpRequest::modern(1, method, params);
        request.header("authorization", &format!("Bearer {key}")).send(self.http.address).await.json()
    }

    async fn subscribe_with(&self, key: &str, url: &str) -> Value {
        let mut params = subscription(url, &secret(1));
        params["ttlMs"] = Value::Null;
        let reply = self.request_with(key, "events/subscribe", params).await;
        assert!(reply["result"]["id"].is_string(), "{reply}");
        reply
    }
}

const HER_KEY: &str = "0123456789abcdef";
const HIS_KEY: &str = "fedcba9876543210";

fn her_key() -> ApiKeys {
    ApiKeys::new([(HER_KEY, Principal::new("keys", "ada"))])
}

#[tokio::test]
async fn webhooks_of_an_api_key_that_is_removed_end_when_the_keys_are_read_again_or_the_server_is_restarted()
{
    let store = BreakableStore::default();
    let folder = TestFolder::default();
    let file = folder.write("keys", format!("ada {HER_KEY} notes tenant=acme\nbob {HIS_KEY}"));
    let server = with_keys(notes(), &store, ApiKeys::from_file(&file)).await;
    let (hers, his) = (Endpoint::start().await, Endpoint::start().await);
    server.subscribe_with(HER_KEY, &hers.url).await;
    server.subscribe_with(HIS_KEY, &his.url).await;
    std::fs::write(&file, format!("bob {HIS_KEY}")).unwrap();
    server.handle.reload_auth().expect("the keys are read");
    let error = terminated(&hers).await;
    assert_eq!(error["code"], -32024, "{error}");
    server.stop().await;

    // one that has both again, and the next one has hers only
    std::fs::write(&file, format!("ada {HER_KEY} notes tenant=acme\nbob {HIS_KEY}")).unwrap();
    let server = with_keys(notes(), &store, ApiKeys::from_file(&file)).await;
    let again = Endpoint::start().await;
    server.subscribe_with(HER_KEY, &again.url).await;
    server.stop().await;
    std::fs::write(&file, format!("ada {HER_KEY} notes tenant=acme")).unwrap();
    let server = with_keys(notes(), &store, ApiKeys::from_file(&file)).await;
    let error = terminated(&his).await;
    assert_eq!(error["code"], -32024, "{error}");
    // hers is delivered, wherever it begins
    let came = async {
        for number in 0.. {
            server.emit(&number.to_string(), "tea").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            if !again.events().is_empty() {
                return;
            }
        }
    };
    came.await;
    let ended =
        |endpoint: &Endpoint| endpoint.controls().iter().any(|control| control["type"] == "terminated");
    assert!(!ended(&again), "{:?}", again.controls());
}

#[tokio::test]
async fn any_replica_ends_the_webhooks_of_a_principal_and_their_endpoints_are_told() {
    let store = BreakableStore::default();
    let keys = || {
        let principal = |name| Principal::new("keys", name);
        ApiKeys::new([(HER_KEY, principal("ada")), (HIS_KEY, principal("bob"))])
    };
    // the first one delivers
    let (one, two) = (with_keys(notes(), &store, keys()).await, with_keys(notes(), &store, keys()).await);
    let (hers, his) = (Endpoint::start().await, Endpoint::start().await);
    for path in 0..8 {
        one.subscribe_with(HER_KEY, &format!("{}/{path}", hers.url)).await;
        two.subscribe_with(HIS_KEY, &format!("{}/{path}", his.url)).await;
    }
    // also while the store cannot be used for a moment
    store.set_broken(true);
    two.handle.end_streams_of(&Principal::new("keys", "ada"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    store.set_broken(false);
    let ended = |endpoint: &Endpoint| {
        let messages = endpoint.messages();
        let ended = messages.iter().filter(|message| message.json()["type"] == "terminated");
        ended.map(|message| message.header("x-mcp-subscription-id").to_owned()).collect::<Vec<_>>()
    };
    let distinct = |ids: Vec<String>| ids.into_iter().collect::<std::collections::BTreeSet<_>>().len();
    assert!(soon(|| distinct(ended(&hers)) == 8).await, "{:?}", ended(&hers));
    assert_eq!(terminated(&hers).await["data"]["reason"], "the access of the subscriber has ended");
    // not again whenever a replica looks at all subscriptions
    let told = ended(&hers).len();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((ended(&hers).len(), ended(&his).len()), (told, 0), "{:?}", ended(&hers));
    let mut params = subscription(&format!("{}/0", hers.url), &secret(1));
    params["ttlMs"] = Value::Null;
    let gone = one.request_with(HER_KEY, "events/unsubscribe", params.clone()).await;
    assert_eq!(gone["error"]["data"]["kind"], "subscription", "{gone}");
    let again = one.request_with(HER_KEY, "events/subscribe", params).await;
    assert_eq!((&again["result"]["truncated"], again["result"].get("deliveryStatus")), (&json!(false), None));
}

#[tokio::test]
async fn an_endpoint_that_refuses_to_be_told_of_a_gap_is_told_again_with_the_next_event_or_renewal() {
    let (server, endpoint) = (running().await, Endpoint::start().await);
    server.subscribe("ada", &endpoint.url).await;
    let gaps = || endpoint.controls().iter().filter(|control| control["type"] == "gap").count();
    endpoint.statuses.lock().unwrap().extend([413; 1000]);
    server.emit("1", "tea").await;
    assert!(soon(|| gaps() == 1).await, "{:?}", endpoint.controls());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(gaps(), 1, "nothing new has happened");
    let renewed = server.subscribe("ada", &endpoint.url).await;
    assert_eq!(renewed["result"]["truncated"], true, "{renewed}");
    assert!(soon(|| gaps() == 2).await);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(gaps(), 2);
    endpoint.statuses.lock().unwrap().clear();
    server.emit("2", "tea").await;
    assert!(soon(|| gaps() == 3 && endpoint.events() == ["1", "2"]).await, "{:?}", endpoint.controls());
    server.emit("3", "tea").await;
    assert!(soon(|| endpoint.events() == ["1", "2", "3"]).await);
    assert_eq!(gaps(), 3, "it was told");
}

/// A note that is not small was added.
#[mcp_event(name = "note.long")]
fn note_long(#[mcp(payload)] note: &Note, number: usize, looks: &Arc<AtomicUsize>) -> bool {
    looks.fetch_add(1, Ordering::SeqCst);
    note.text.len() > number
}

#[tokio::test]
async fn an_event_that_waits_for_a_slow_endpoint_is_read_once_for_each_subscription() {
    let looks = Arc::<AtomicUsize>::default();
    let builder = Server::builder("notes", "1").add(event::of::<note_long>()).state(looks.clone());
    let limits = |events: event::EventLimits| events.webhooks_on_loopback().max_webhook_bytes(4 << 20);
    let server = start(builder.limits(|limited| limited.events(limits))).await;
    let (url, arrived) = difficult(false).await;
    for number in 0..20 {
        let delivery = json!({ "mode": "webhook", "url": url, "secret": secret(1) });
        let wanted = json!({ "name": "note.long", "arguments": { "number": number }, "delivery": delivery });
        let reply = server.request("ada", "events/subscribe", wanted).await;
        assert!(reply["result"]["id"].is_string(), "{reply}");
    }
    let note = Note { text: "tea ".repeat(50_000) };
    server.handle.emit::<note_long>(&note).id("1").await.expect("it is emitted");
    // as many as a quarter of the bytes suffices for
    until(|| *arrived.lock().unwrap() == 4).await;
    // longer than they would wait who look whether there is room
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(*arrived.lock().unwrap(), 4);
    assert_eq!(looks.load(Ordering::SeqCst), 4, "those that have no room have not read it");
}

#[tokio::test]
async fn challenges_are_limited_for_a_principal_at_all_hosts_and_for_all_at_a_host() {
    let limits: fn(event::EventLimits) -> event::EventLimits =
        |limits| limits.webhook_challenges("2/1h").webhook_challenges_per_host("5/1h");
    let server = start(limited(limits)).await;
    let endpoint = Endpoint::start().await;
    let subscribe = async |user: &str, path: &str| {
        let reply = server.subscribe(user, &format!("{}/{user}/{path}", endpoint.url)).await;
        reply["error"]["data"]["limit"].as_str().map(str::to_owned)
    };
    for user in ["ada", "bob"] {
        assert_eq!((subscribe(user, "a").await, subscribe(user, "b").await), (None, None));
        assert_eq!(subscribe(user, "c").await.as_deref(), Some("challenges"), "{user}");
        let elsewhere = endpoint.url.replace("127.0.0.1", "localhost");
        let refused = server.subscribe(user, &elsewhere).await;
        assert_eq!(refused["error"]["data"]["limit"], "challenges", "another host: {refused}");
        assert_eq!(subscribe(user, "a").await, None, "it was verified");
    }
    assert_eq!(subscribe("eve", "a").await, None);
    assert_eq!(subscribe("eve", "b").await.as_deref(), Some("challenges"), "of all");
    assert_eq!(endpoint.controls().len(), 5);

    for wrong in [
        limited(|limits| limits.webhook_challenges("often")),
        limited(|limits| limits.webhook_challenges_per_host("0/1m")),
    ] {
        let error =
            wrong.http(|http| http.caller(|_| None)).build().expect_err("it is not a rate").to_string();
        assert!(error.contains("is not a rate"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_stops_hands_its_webhooks_over_and_no_message_is_lost_or_comes_again_that_was_accepted()
{
    let store = BreakableStore::default();
    let (one, endpoint) = (with_keys(notes(), &store, her_key()).await, Endpoint::start().await);
    let id = one.subscribe_with(HER_KEY, &endpoint.url).await["result"]["id"].clone();
    for event in ["1", "2"] {
        one.emit(event, "tea").await;
    }
    assert!(soon(|| endpoint.events().len() == 2).await);
    let two = with_keys(notes(), &store, her_key()).await;
    let renewed = subscription(&endpoint.url, &secret(2));
    let renewed = two.request_with(HER_KEY, "events/subscribe", renewed).await;
    assert_eq!(renewed["result"]["id"], id, "{renewed}");
    // one that waits to be sent again
    endpoint.statuses.lock().unwrap().push_back(503);
    one.emit("3", "tea").await;
    assert!(soon(|| endpoint.events().len() == 3).await);
    one.stop().await;
    two.emit("4", "tea").await;
    assert!(soon(|| endpoint.events().len() == 5).await, "{:?}", endpoint.events());
    let mut events = endpoint.events();
    events.sort();
    assert_eq!(events, ["1", "2", "3", "3", "4"]);
    let messages = endpoint.messages();
    let last = messages.last().expect("a message");
    assert!(last.is_signed_by(&secret(1)) && last.is_signed_by(&secret(2)));
    assert_eq!(last.header("x-mcp-subscription-id"), id.as_str().expect("text"));
    let mut other = subscription(&endpoint.url, &secret(2));
    other["arguments"]["word"] = "milk".into();
    let reply = two.request_with(HER_KEY, "events/subscribe", other).await;
    assert!(reply["result"]["id"].is_string(), "{reply}");
    let controls = endpoint.controls();
    assert_eq!(controls.len(), 1, "it was verified, by another replica: {controls:?}");
    assert_eq!(controls[0]["type"], "verification");
}

#[tokio::test]
async fn a_lifetime_that_the_server_sets_holds_for_subscriptions_without_an_end_too() {
    let store = BreakableStore::default();
    let builder = limited(|limits| limits.webhook_lifetime(Duration::from_secs(3600)));
    let server = with_keys(builder, &store, her_key()).await;
    let endpoint = Endpoint::start().await;
    let reply = server.subscribe_with(HER_KEY, &endpoint.url).await;
    assert!(granted(&reply) <= unix_now() + 3600, "{reply}");
}
