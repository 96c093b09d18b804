//! Receives the messages of webhooks: every request is refused that no subscription of this program is signed for, that is
//! too old or too large, and an event is accepted when the program has accepted it, once.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    convert::Infallible,
    fmt,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use hyper::body::{Body, Bytes};
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, timeout},
};
use url::{Url, form_urlencoded};

use crate::{
    client::{
        Error,
        events::{
            EventOccurrence,
            reader::{SeenIds, SentCursor},
        },
        receive::handlers::{AsyncHandler, Listener, call_listener},
    },
    core::{sync::Mutex, webhook_secret::Secret},
};

/// The largest body.
const MAX_BODY: usize = 256 << 10;
/// How long a body may take to arrive.
const BODY_LIMIT: Duration = Duration::from_secs(10);
/// How long a function may take to accept an event.
const HANDLER_LIMIT: Duration = Duration::from_secs(30);
/// The oldest message that is accepted, and how far a server's clock may be ahead.
const MAX_AGE: Duration = Duration::from_secs(5 * 60);
/// Messages that are received at once.
const MAX_AT_ONCE: usize = 256;
/// Subscriptions of one receiver.
const MAX_SUBSCRIPTIONS: usize = 10_000;
/// Subscriptions that are known to have ended.
const MAX_ENDED: usize = 1_000;
/// Secrets that were replaced, and are accepted for some time.
const MAX_PREVIOUS: usize = 4;
/// How long a secret is accepted that was replaced.
const ROTATION: Duration = Duration::from_secs(10 * 60);
/// The parameter of the URL that says which subscription a message is for.
const PARAMETER: &str = "subscription";

pub(super) type AcceptEvent = AsyncHandler<EventOccurrence, Result<(), String>>;

/// Receives events that servers send by webhook (preview): a [tower](https://docs.rs/tower-service) service, which a program
/// serves at a public `https:` URL.
///
/// It finds the subscription of a message, verifies its signature and its age, answers the challenges of servers, and passes
/// each event on once, as far as the last 1,000 of a subscription are concerned. A message is answered with success when the
/// subscription's function has succeeded; otherwise the server sends it again. Bodies are limited to 256 KiB and 10 seconds,
/// functions to 30 seconds, and 256 messages are received at once; further ones are answered with `503`, so that servers send
/// them again. Clones are the same receiver.
///
/// ```no_run
/// use mcp_runtime::client::{Client, WebhookReceiver};
/// use serde_json::json;
///
/// # async fn store(_: &str, _: &serde_json::Value) -> Result<(), String> { Ok(()) }
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let receiver = WebhookReceiver::new("https://agent.example.com/hooks/mcp")?;
/// let app: axum::Router = axum::Router::new().route_service("/hooks/mcp", receiver.clone());
/// // serve it at that URL, before a subscription is made
/// # drop(app);
///
/// let client = Client::connect("https://example.com/mcp").await?;
/// let subscription = client
///     .subscribe_webhook(&receiver, "incident.created", json!({ "severity": "P1" }), |event| async move {
///         store(&event.id, &event.data).await
///     })
///     .await?;
/// let why = subscription.ended().await;
/// # drop(why);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct WebhookReceiver(Arc<ReceiverInner>);

struct ReceiverInner {
    url: Url,
    routes: Mutex<Routes>,
    turns: Arc<Semaphore>,
}

#[derive(Default)]
struct Routes {
    by_key: HashMap<Arc<str>, Arc<Route>>,
    /// The oldest first.
    ended: VecDeque<Arc<str>>,
}

impl fmt::Debug for WebhookReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // the path may be a secret
        f.debug_struct("WebhookReceiver").field("host", &self.0.url.host_str()).finish_non_exhaustive()
    }
}

/// The destination of the events of one subscription.
pub(super) struct Route {
    pub(super) event: String,
    /// The URL at which the server delivers.
    pub(super) url: String,
    key: Arc<str>,
    accept: AcceptEvent,
    on_gap: Option<Listener<()>>,
    state: Mutex<RouteState>,
    terminated: watch::Sender<Option<Error>>,
    receiver: Weak<ReceiverInner>,
}

struct RouteState {
    secret: Secret,
    /// The last one that the server has confirmed, if that is another one: it is accepted until a newer one is confirmed.
    confirmed: Option<Secret>,
    /// Previous secrets, and until when they are accepted; the oldest first.
    previous: VecDeque<(Secret, Instant)>,
    cursor: Option<String>,
    seen: SeenIds,
    /// Events whose function runs.
    running: HashSet<String>,
}

impl RouteState {
    fn keep_for_some_time(&mut self, secret: Secret) {
        self.previous.push_back((secret, Instant::now() + ROTATION));
        if self.previous.len() > MAX_PREVIOUS {
            self.previous.pop_front();
        }
    }
}

impl WebhookReceiver {
    /// A receiver at this URL, where servers reach it: an `https:` URL without credentials, or for tests an `http:` URL of
    /// this machine. Each subscription adds a parameter `subscription` to it.
    ///
    /// # Errors
    /// It is another URL.
    pub fn new(url: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::invalid(format!("the URL of a webhook receiver {why}"));
        let url: Url = url.parse().map_err(|_| invalid("is not a URL"))?;
        if url.scheme() != "https" && !(url.scheme() == "http" && crate::fetch::is_loopback_host(&url)) {
            return Err(invalid("is not an `https:` URL"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(invalid("has credentials or a fragment"));
        }
        let turns = Arc::new(Semaphore::new(MAX_AT_ONCE));
        Ok(Self(Arc::new(ReceiverInner { url, routes: Mutex::default(), turns })))
    }

    /// Begins to receive what a subscription gets that is identified by `identity`. The same identity has the same URL in
    /// another run of the program, so that the server recognizes the subscription.
    pub(super) fn open(
        &self,
        identity: &[u8],
        event: String,
        accept: AcceptEvent,
        on_gap: Option<Listener<()>>,
        cursor: Option<String>,
    ) -> Result<Arc<Route>, Error> {
        let no_randomness = |_| Error::invalid("the operating system provides no randomness");
        let secret = Secret::random().map_err(no_randomness)?;
        let digest = ring::digest::digest(&ring::digest::SHA256, identity);
        let base: String = digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let mut routes = self.0.routes.lock();
        if routes.by_key.len() >= MAX_SUBSCRIPTIONS {
            let text = format!("a webhook receiver has at most {MAX_SUBSCRIPTIONS} subscriptions");
            return Err(Error::invalid(text));
        }
        // subscriptions that look the same are those of several users, for example
        let mut key: Arc<str> = base.as_str().into();
        for number in 2.. {
            if !routes.by_key.contains_key(&key) {
                break;
            }
            key = format!("{base}-{number}").into();
        }
        routes.ended.retain(|ended| *ended != key);
        let mut url = self.0.url.clone();
        url.query_pairs_mut().append_pair(PARAMETER, &key);
        let (seen, running) = (SeenIds::default(), HashSet::new());
        let route = Arc::new(Route {
            event,
            url: url.into(),
            key: key.clone(),
            accept,
            on_gap,
            state: Mutex::new(RouteState {
                secret,
                confirmed: None,
                previous: VecDeque::new(),
                cursor,
                seen,
                running,
            }),
            terminated: watch::Sender::new(None),
            receiver: Arc::downgrade(&self.0),
        });
        routes.by_key.insert(key, route.clone());
        Ok(route)
    }
}

/// An answer without a body.
fn answer(status: StatusCode) -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = status;
    response
}

fn json_answer(value: &Value) -> Response<String> {
    let mut response = Response::new(value.to_string());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The headers that every message has.
struct MessageHeaders<'a> {
    id: &'a str,
    timestamp: &'a str,
    signatures: &'a str,
}

impl<'a> MessageHeaders<'a> {
    fn of(headers: &'a HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        Some(Self {
            id: text("webhook-id").filter(|id| !id.is_empty())?,
            timestamp: text("webhook-timestamp")?,
            signatures: text("webhook-signature")?,
        })
    }

    /// Whether it was signed a short time ago, by the clocks of both.
    fn is_recent(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let digits = self.timestamp.bytes().all(|byte| byte.is_ascii_digit());
        digits && self.timestamp.parse().is_ok_and(|at: u64| now.as_secs().abs_diff(at) <= MAX_AGE.as_secs())
    }
}

impl ReceiverInner {
    fn find(&self, query: Option<&str>) -> Result<Arc<Route>, StatusCode> {
        let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let Some((_, key)) = pairs.find(|(name, _)| name == PARAMETER) else {
            return Err(StatusCode::NOT_FOUND);
        };
        let routes = self.routes.lock();
        match routes.by_key.get(&*key) {
            Some(route) => Ok(route.clone()),
            // it is not wanted any more
            None if routes.ended.iter().any(|ended| **ended == *key) => Err(StatusCode::GONE),
            // of a program that has just started again, for example: the server sends it again
            None => Err(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    async fn receive<B>(self: Arc<Self>, head: Parts, body: B) -> Result<Response<String>, StatusCode>
    where
        B: Body<Data = Bytes> + Send,
    {
        if head.method != Method::POST {
            return Err(StatusCode::METHOD_NOT_ALLOWED);
        }
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !content_type.eq_ignore_ascii_case("application/json") {
            return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let message = MessageHeaders::of(&head.headers).ok_or(StatusCode::BAD_REQUEST)?;
        let route = self.find(head.uri.query())?;
        if !message.is_recent() {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let turns = self.turns.clone();
        let turn = turns.try_acquire_owned().map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        let body = timeout(BODY_LIMIT, read(body)).await.map_err(|_| StatusCode::REQUEST_TIMEOUT)??;
        if !route.verifies(&message, &body) {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let wire: Value = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
        if let Some(kind) = wire.get("type") {
            return route.control(kind.as_str().unwrap_or_default(), &wire);
        }
        let event = EventOccurrence::parse(&wire, &route.event).filter(|event| event.id == message.id);
        let event = event.ok_or(StatusCode::BAD_REQUEST)?;
        if !route.begin(&event.id)? {
            // accepted before
            return Ok(answer(StatusCode::NO_CONTENT));
        }
        let cursor = wire.get("cursor").cloned();
        let accepting = route.clone();
        // the function runs to its end, also if the server does not wait for it
        let accepted = tokio::spawn(async move {
            let _turn = turn;
            let running = Running { route: accepting, id: event.id.clone() };
            let accepted = timeout(HANDLER_LIMIT, (running.route.accept)(event)).await;
            match accepted {
                Ok(Ok(())) => running.accepted(cursor.as_ref()),
                Ok(Err(error)) => running.failed(&error),
                Err(_) => running.failed("it took too long"),
            }
        });
        match accepted.await {
            Ok(true) => Ok(answer(StatusCode::NO_CONTENT)),
            // a panic has been reported by the program's hook
            Ok(false) | Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
        }
    }
}

/// Reads a body that is not too large.
async fn read<B: Body<Data = Bytes>>(body: B) -> Result<Vec<u8>, StatusCode> {
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > MAX_BODY {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// An event whose function runs.
struct Running {
    route: Arc<Route>,
    id: String,
}

impl Running {
    fn accepted(&self, cursor: Option<&Value>) -> bool {
        let mut state = self.route.state.lock();
        state.seen.insert(&self.id);
        SentCursor::of(&self.route.event, cursor).store(&mut state.cursor);
        true
    }

    fn failed(&self, why: &str) -> bool {
        let error: String = why.chars().take(500).collect();
        tracing::warn!(event = %self.route.event, ?error, "an event was not accepted; the server sends it again");
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.route.state.lock().running.remove(&self.id);
    }
}

impl Route {
    /// The secret that the server signs with, or shall sign with.
    pub(super) fn secret(&self) -> String {
        self.state.lock().secret.to_text()
    }

    /// Makes a new secret. Until the server has confirmed it, and some time longer, the one before is accepted too.
    pub(super) fn rotate(&self) -> Result<(), Error> {
        let no_randomness = |_| Error::invalid("the operating system provides no randomness");
        let new = Secret::random().map_err(no_randomness)?;
        let mut state = self.state.lock();
        let old = std::mem::replace(&mut state.secret, new);
        match &state.confirmed {
            None => state.confirmed = Some(old),
            // the server may have it, although it has not said so
            Some(_) => state.keep_for_some_time(old),
        }
        Ok(())
    }

    /// The server has confirmed the secret.
    pub(super) fn confirm(&self) {
        let mut state = self.state.lock();
        if let Some(old) = state.confirmed.take() {
            state.keep_for_some_time(old);
        }
    }

    pub(super) fn cursor(&self) -> Option<String> {
        self.state.lock().cursor.clone()
    }

    /// Keeps a position that the server gave.
    pub(super) fn advance(&self, cursor: Option<&Value>) {
        SentCursor::of(&self.event, cursor).store(&mut self.state.lock().cursor);
    }

    /// Tells the program that events may be missing.
    pub(super) fn gap(&self) {
        tracing::debug!(event = %self.event, "events may have been missed");
        if let Some(on_gap) = &self.on_gap {
            call_listener(on_gap, ());
        }
    }

    /// Returns why the server has ended the subscription, once it has.
    pub(super) async fn terminated(&self) -> Error {
        let mut terminated = self.terminated.subscribe();
        match terminated.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => error,
            // the sender is in `self`
            _ => Error::not_connected("the subscription has ended"),
        }
    }

    /// Receives nothing more. Servers are told that messages are not wanted, or for a subscription that is kept, to send
    /// them again later.
    pub(super) fn close(&self, is_kept: bool) {
        let Some(receiver) = self.receiver.upgrade() else { return };
        let mut routes = receiver.routes.lock();
        if routes.by_key.get(&self.key).is_some_and(|route| std::ptr::eq(&**route, self)) {
            routes.by_key.remove(&self.key);
            if is_kept {
                return;
            }
            routes.ended.push_back(self.key.clone());
            if routes.ended.len() > MAX_ENDED {
                routes.ended.pop_front();
            }
        }
    }

    fn verifies(&self, message: &MessageHeaders<'_>, body: &[u8]) -> bool {
        let state = self.state.lock();
        let now = Instant::now();
        let previous = state.previous.iter().filter(|(_, until)| now < *until).map(|(secret, _)| secret);
        let secrets: Vec<_> =
            [&state.secret].into_iter().chain(&state.confirmed).chain(previous).cloned().collect();
        drop(state);
        let MessageHeaders { id, timestamp, signatures } = message;
        secrets.iter().any(|secret| secret.verifies(signatures, id, timestamp, body))
    }

    /// Answers a message that is not an event.
    fn control(&self, kind: &str, wire: &Value) -> Result<Response<String>, StatusCode> {
        match kind {
            "verification" => {
                let challenge =
                    wire.get("challenge").and_then(Value::as_str).ok_or(StatusCode::BAD_REQUEST)?;
                return Ok(json_answer(&json!({ "challenge": challenge })));
            }
            "gap" => {
                self.advance(wire.get("cursor"));
                self.gap();
            }
            "terminated" => {
                let error = Error::of_event(wire.get("error"));
                self.terminated.send_replace(Some(error));
            }
            // of a later version of the extension
            _ => tracing::debug!(event = %self.event, "a message of an unknown type is ignored"),
        }
        Ok(answer(StatusCode::NO_CONTENT))
    }

    /// Whether an event is new; its function runs from now on.
    ///
    /// # Errors
    /// Its function runs already, and may fail: the server has to ask again.
    fn begin(&self, id: &str) -> Result<bool, StatusCode> {
        let mut state = self.state.lock();
        if state.seen.contains(id) {
            return Ok(false);
        }
        if !state.running.insert(id.to_owned()) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        Ok(true)
    }
}

impl<B> tower_service::Service<Request<B>> for WebhookReceiver
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let receiver = self.0.clone();
        let (head, body) = request.into_parts();
        Box::pin(async move {
            Ok(receiver.receive(head, body).await.unwrap_or_else(|status| {
                let mut refusal = answer(status);
                if status == StatusCode::METHOD_NOT_ALLOWED {
                    refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
                }
                refusal
            }))
        })
    }
}

/// Nothing is accepted that was not signed with the secret of the subscription, and nothing of it may be changed.
#[cfg(all(any(test, feature = "_fuzzing"), feature = "events-webhook"))]
fn fuzz(data: &[u8]) {
    let Some((head, body)) = crate::fuzzing::halves(data) else { return };
    let mut lines = head.split('\n').map(str::trim_end);
    let mut next = || lines.next().unwrap_or_default();
    let (id, timestamp, signatures, query) = (next(), next(), next(), next());
    let receiver = WebhookReceiver::new("https://receiver.example/hook").expect("a URL");
    let accept: AcceptEvent = Arc::new(|_| Box::pin(async { Ok(()) }));
    let route = receiver.open(b"identity", "event".to_owned(), accept, None, None).expect("a subscription");
    if receiver.0.find(Some(query)).is_ok() {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        assert!(pairs.any(|(name, key)| name == PARAMETER && *key == *route.key), "{query}");
    }
    let headers = MessageHeaders { id, timestamp, signatures };
    let _for_a_panic = headers.is_recent();
    let body = body.as_bytes();
    assert!(!route.verifies(&headers, body), "the secret is random, so this cannot have been signed");

    let secret = route.state.lock().secret.clone();
    let at = timestamp.parse().unwrap_or(0);
    let (timestamp, signed) = (format!("{at}"), secret.sign(id, at, body));
    let several = format!("{signed} {signatures}");
    let headers = MessageHeaders { id, timestamp: &timestamp, signatures: &several };
    assert!(route.verifies(&headers, body), "other signatures do not matter: {several}");
    assert!(!route.verifies(&headers, &[body, b" "].concat()));
    let other_time = format!("{at}0");
    assert!(!route.verifies(&MessageHeaders { timestamp: &other_time, ..headers }, body));

    let Ok(wire) = serde_json::from_slice::<Value>(body) else { return };
    match wire.get("type").map(|kind| kind.as_str().unwrap_or_default()) {
        Some(kind) => {
            let answered = route.control(kind, &wire);
            if let ("verification", Ok(answered)) = (kind, answered) {
                let repeated: Value = serde_json::from_str(answered.body()).expect("JSON");
                assert_eq!(repeated["challenge"], wire["challenge"]);
            }
        }
        None => {
            let Some(event) = EventOccurrence::parse(&wire, &route.event) else { return };
            assert_eq!(route.begin(&event.id), Ok(true), "it is new");
            assert_eq!(route.begin(&event.id), Err(StatusCode::SERVICE_UNAVAILABLE), "it runs");
            Running { route: route.clone(), id: event.id.clone() }.accepted(wire.get("cursor"));
            assert_eq!(route.begin(&event.id), Ok(false), "it was accepted");
        }
    }
}

#[cfg(all(any(test, feature = "_fuzzing"), feature = "events-webhook"))]
inventory::submit!(crate::fuzzing::Target { name: "webhooks", run: fuzz });
