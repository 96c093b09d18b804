//! Sessions of older clients at replicas that share a store: every request works at any of them.

use std::{sync::Arc, time::Duration};

use mcp_runtime::{Principal, Server, ServerBuilder, prelude::*, store::Shared};
use mcp_tests::support::{
    BreakableStore, Event, EventStream, HttpRequest, HttpServer, server_key, text_of, within,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{TestStore, with_each_store};

/// Asks twice, and reports its progress
#[mcp_tool]
async fn steps(ctx: &Context) -> Result<String, ToolError> {
    ctx.progress(1.0).send();
    let first: bool = ctx.elicit("first", "Go on?").await?;
    ctx.progress(2.0).send();
    let second: bool = ctx.elicit("second", "And on?").await?;
    ctx.progress(3.0).send();
    Ok(format!("{first} {second}"))
}

/// Waits for as long as it is let
#[mcp_tool]
async fn wait(ctx: &Context) -> &'static str {
    ctx.progress(1.0).send();
    std::future::pending::<()>().await;
    "never"
}

/// Reports a change of the state
#[mcp_tool]
fn touch(server: &ServerHandle) {
    server.resource_updated("test://state");
}

/// A state
#[mcp_resource(uri = "test://state")]
fn state() -> &'static str {
    "state"
}

fn server(store: &Arc<dyn Shared>) -> ServerBuilder {
    Server::builder("sessions", "1")
        .stores(|stores| stores.keys([server_key(7)]))
        .http(|http| {
            http.caller(|parts| Some(Principal::new("test", parts.headers.get("x-user")?.to_str().ok()?)))
        })
        .tool::<steps>()
        .tool::<wait>()
        .shared(store.clone())
}

async fn replicas(store: &TestStore) -> [HttpServer; 2] {
    let replicas =
        [HttpServer::start(server(&store.open())).await, HttpServer::start(server(&store.open())).await];
    // each listens to the others soon after it has started
    sleep(Duration::from_millis(200)).await;
    replicas
}

/// A client whose requests are sent to any replica.
struct Client {
    session: String,
    user: &'static str,
}

impl Client {
    async fn new(user: &'static str, at: &HttpServer, other: &HttpServer) -> Self {
        let capabilities = json!({ "elicitation": {} });
        let initialize = HttpRequest::initialize_with("2025-11-25", &capabilities).header("x-user", user);
        let client = Self { session: initialize.send(at.address).await.session(), user };
        let initialized = HttpRequest::notification("notifications/initialized", &json!({}));
        assert_eq!(client.of(initialized).send(other.address).await.status, 202);
        client
    }

    fn of(&self, request: HttpRequest) -> HttpRequest {
        request.session(&self.session).header("x-user", self.user)
    }

    async fn request(&self, method: &str, params: &Value, at: &HttpServer) -> Value {
        let request = HttpRequest::legacy(&self.session, 90, method, params).header("x-user", self.user);
        request.send(at.address).await.json()
    }

    async fn call(&self, id: u64, tool: &str, at: &HttpServer) -> EventStream {
        let params = json!({ "name": tool, "_meta": { "progressToken": id } });
        let call = HttpRequest::legacy(&self.session, id, "tools/call", &params).header("x-user", self.user);
        EventStream::open(&call, at.address).await.expect("a stream")
    }

    async fn answer(&self, asked: &Value, at: &HttpServer) -> u16 {
        let result = json!({ "action": "accept", "content": { "value": true } });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        self.of(HttpRequest::post(answer.to_string())).send(at.address).await.status
    }

    async fn cancel(&self, id: u64, at: &HttpServer) -> u16 {
        let cancel = HttpRequest::notification("notifications/cancelled", &json!({ "requestId": id }));
        self.of(cancel).send(at.address).await.status
    }

    async fn end(&self, at: &HttpServer) -> u16 {
        self.of(HttpRequest::new("DELETE")).send(at.address).await.status
    }

    /// Resumes a stream after an event; the status of a refusal.
    async fn resume(&self, id: &str, at: &HttpServer) -> Result<EventStream, u16> {
        let resume = self.of(HttpRequest::new("GET").header("Accept", "text/event-stream"));
        let opened = EventStream::open(&resume.header("Last-Event-ID", id), at.address).await;
        opened.map_err(|response| response.status)
    }
}

/// The next event with a message.
async fn event(stream: &mut EventStream) -> Event {
    loop {
        let event = stream.next_event().await.expect("an event");
        if event.message().is_some() {
            return event;
        }
    }
}

/// An event that reports progress, and where to resume after it.
async fn progress(stream: &mut EventStream) -> (Value, String) {
    let event = event(stream).await;
    let message = event.message().expect("a message");
    assert_eq!(message["method"], "notifications/progress", "{message}");
    (message["params"]["progress"].clone(), event.id.expect("an id"))
}

async fn asked(stream: &mut EventStream) -> Value {
    let message = event(stream).await.message().expect("a message");
    assert_eq!(message["method"], "elicitation/create", "{message}");
    message
}

/// The stream ends without another message.
async fn assert_ends(stream: &mut EventStream) {
    while let Some(event) = stream.next_event().await {
        assert_eq!(event.message(), None);
    }
}

#[tokio::test]
async fn a_response_reaches_its_call_at_whichever_replica_it_arrives_and_once() {
    for store in TestStore::all("a_response_reaches_its_call") {
        within(async {
            let [one, two] = replicas(&store).await;
            let (ada, bob) = (Client::new("ada", &one, &two).await, Client::new("bob", &two, &one).await);
            let mut stream = ada.call(1, "steps", &one).await;
            progress(&mut stream).await;
            let first = asked(&mut stream).await;
            for at in [&one, &two] {
                assert_eq!(bob.answer(&first, at).await, 400, "another client");
                let forged = json!({ "id": format!("mcp-{}", "A".repeat(90)) });
                assert_eq!(ada.answer(&forged, at).await, 400, "no id of a request");
            }
            assert_eq!(ada.answer(&first, &two).await, 202);
            assert_eq!(ada.answer(&first, &two).await, 400, "once");
            assert_eq!(ada.answer(&first, &one).await, 400, "once");
            assert_eq!(progress(&mut stream).await.0, 2.0);
            let second = asked(&mut stream).await;
            // too large to be sent over a topic
            let large = json!({ "action": "accept", "content": { "value": true }, "_meta": { "x": "x".repeat(200_000) } });
            let answer = json!({ "jsonrpc": "2.0", "id": second["id"], "result": large });
            let answer = ada.of(HttpRequest::post(answer.to_string()));
            assert_eq!(answer.send(two.address).await.status, 202);
            assert_eq!(progress(&mut stream).await.0, 3.0);
            assert_eq!(text_of(&stream.message().await), "true true", "{}", store.name);
        })
        .await;
    }
}

#[tokio::test]
async fn a_call_is_cancelled_and_a_session_ended_at_any_replica() {
    for store in TestStore::all("a_call_is_cancelled") {
        within(async {
            let [one, two] = replicas(&store).await;
            let (ada, bob) = (Client::new("ada", &one, &two).await, Client::new("bob", &two, &one).await);
            let mut stream = ada.call(1, "wait", &one).await;
            let mut other = ada.call(2, "wait", &one).await;
            let mut his = bob.call(1, "wait", &one).await;
            for stream in [&mut stream, &mut other, &mut his] {
                progress(stream).await;
            }
            assert_eq!(ada.cancel(1, &two).await, 202);
            assert_ends(&mut stream).await;
            let standalone = ada.of(HttpRequest::new("GET").header("Accept", "text/event-stream"));
            let mut standalone = EventStream::open(&standalone, one.address).await.expect("a stream");
            assert_eq!(ada.end(&two).await, 204);
            assert_ends(&mut other).await;
            assert_ends(&mut standalone).await;
            assert_eq!(ada.end(&one).await, 404);
            assert_eq!(bob.cancel(1, &two).await, 202);
            assert_ends(&mut his).await;
        })
        .await;
    }
}

#[tokio::test]
async fn a_stream_is_resumed_at_any_replica_with_each_message_once_and_in_order() {
    for store in TestStore::all("a_stream_is_resumed_at_any_replica") {
        within(async {
            let [one, two] = replicas(&store).await;
            let (ada, bob) = (Client::new("ada", &one, &two).await, Client::new("bob", &two, &one).await);
            let mut stream = ada.call(1, "steps", &one).await;
            let (step, after_first) = progress(&mut stream).await;
            assert_eq!(step, 1.0);
            let first = asked(&mut stream).await;
            // no one else reads it
            assert_eq!(bob.resume(&after_first, &two).await.err(), Some(400));
            assert_eq!(bob.resume(&after_first, &one).await.err(), Some(400));
            drop(stream);

            let mut stream = ada.resume(&after_first, &two).await.expect("a stream");
            assert_eq!(asked(&mut stream).await["id"], first["id"]);
            assert_eq!(ada.answer(&first, &two).await, 202);
            let (step, after_second) = progress(&mut stream).await;
            assert_eq!(step, 2.0, "as the other replica produces it");
            asked(&mut stream).await;
            // where the call runs
            let mut back = ada.resume(&after_second, &one).await.expect("a stream");
            let second = asked(&mut back).await;
            assert_ends(&mut stream).await;
            // and away again, without that the connection has broken
            let mut stream = ada.resume(&after_second, &two).await.expect("a stream");
            assert_eq!(asked(&mut stream).await["id"], second["id"]);
            assert_ends(&mut back).await;
            assert_eq!(ada.answer(&second, &one).await, 202);
            assert_eq!(progress(&mut stream).await.0, 3.0);
            let result = event(&mut stream).await;
            assert_eq!(text_of(&result.message().expect("a message")), "true true", "{}", store.name);
            assert_ends(&mut stream).await;
            // what was missed is there once the call has ended, and nothing after its end
            for at in [&one, &two] {
                let mut stream = ada.resume(&after_second, at).await.expect("a stream");
                asked(&mut stream).await;
                assert_eq!(progress(&mut stream).await.0, 3.0);
                assert_eq!(text_of(&stream.message().await), "true true");
                assert_ends(&mut stream).await;
                assert_eq!(ada.resume(result.id.as_deref().expect("an id"), at).await.err(), Some(405));
                assert_eq!(ada.resume(&format!("c{}.1", "A".repeat(22)), at).await.err(), Some(400));
            }
        })
        .await;
    }
}

/// A server that ends as a process does that is killed.
pub(crate) struct Killable {
    pub(crate) server: HttpServer,
    runtime: tokio::runtime::Runtime,
}

impl Killable {
    fn start(store: &TestStore) -> Self {
        Self::of(server(&store.open()))
    }

    pub(crate) fn of(builder: ServerBuilder) -> Self {
        let started = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.expect("a runtime");
            let server = runtime.block_on(HttpServer::start(builder));
            Self { server, runtime }
        });
        started.join().expect("a server")
    }

    pub(crate) fn kill(self) {
        self.runtime.shutdown_background();
    }
}

#[tokio::test]
async fn a_client_whose_process_is_killed_gets_what_was_logged_and_then_an_error() {
    with_each_store("a_client_whose_process_is_killed", async |store| {
        within(async {
            let (one, two) = (Killable::start(store), HttpServer::start(server(&store.open())).await);
            sleep(Duration::from_millis(200)).await;
            let ada = Client::new("ada", &one.server, &two).await;
            let mut stream = ada.call(7, "steps", &one.server).await;
            let (_, after) = progress(&mut stream).await;
            let first = asked(&mut stream).await;
            let mut resumed = ada.resume(&after, &two).await.expect("a stream");
            assert_eq!(asked(&mut resumed).await["id"], first["id"]);
            one.kill();
            // nothing waits for it any more
            assert_eq!(ada.answer(&first, &two).await, 503);
            let error = event(&mut resumed).await.message().expect("a message");
            assert_eq!((&error["id"], &error["error"]["code"]), (&json!(7), &json!(-32603)), "{error}");
            assert_ends(&mut resumed).await;
            let mut again = ada.resume(&after, &two).await.expect("a stream");
            asked(&mut again).await;
            assert_eq!(
                again.message().await,
                error,
                "{}: the same for a client that comes later",
                store.name
            );
            assert_ends(&mut again).await;
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_has_the_head_of_a_stream_has_an_event_to_resume_after() {
    for store in TestStore::all("a_client_that_has_the_head_of_a_stream") {
        within(async {
            let two = HttpServer::start(server(&store.open())).await;
            for id in 1..6 {
                let one = Killable::start(&store);
                let ada = Client::new("ada", &one.server, &two).await;
                let mut stream = ada.call(id, "steps", &one.server).await;
                one.kill();
                let first = stream.next_event().await.and_then(|event| event.id);
                let first = first.unwrap_or_else(|| panic!("{}: nothing to resume after", store.name));
                ada.resume(&first, &two).await.expect("it is logged");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_has_resumed_a_stream_has_an_event_to_resume_after_again() {
    for store in TestStore::all("a_client_that_has_resumed_a_stream") {
        within(async {
            let [one, two] = replicas(&store).await;
            let ada = Client::new("ada", &one, &two).await;
            let mut stream = ada.call(1, "steps", &one).await;
            progress(&mut stream).await;
            let asked = event(&mut stream).await;
            let (id, first) = (asked.id.clone().expect("an id"), asked.message().expect("a message"));
            // the SDK for TypeScript has no other event to resume after, once the connection has broken again
            for at in [&two, &one, &two] {
                let mut resumed = ada.resume(&id, at).await.expect("a stream");
                let primed = resumed.next_event().await.expect("an event");
                assert_eq!((primed.id.as_ref(), primed.message()), (Some(&id), None), "{}", store.name);
            }
            assert_eq!(ada.answer(&first, &one).await, 202);
            let mut resumed = ada.resume(&id, &two).await.expect("a stream");
            let (_, second) = (progress(&mut resumed).await, event(&mut resumed).await);
            assert_eq!(ada.answer(&second.message().expect("a message"), &one).await, 202);
            progress(&mut resumed).await;
            assert_eq!(text_of(&resumed.message().await), "true true");
            assert_ends(&mut resumed).await;
            let mut after_the_end = ada.resume(&id, &two).await.expect("a stream");
            assert_eq!(after_the_end.next_event().await.and_then(|event| event.id), Some(id));
        })
        .await;
    }
}

#[tokio::test]
async fn a_resumed_stream_is_not_ended_by_a_late_notice_for_the_response_that_carried_it_before() {
    let store = BreakableStore::default();
    let of_two = store.of_another_replica();
    within(async {
        let shared: [Arc<dyn Shared>; 2] = [Arc::new(store.clone()), Arc::new(of_two)];
        let (one, two) =
            (HttpServer::start(server(&shared[0])).await, HttpServer::start(server(&shared[1])).await);
        sleep(Duration::from_millis(200)).await;
        let ada = Client::new("ada", &one, &two).await;
        let mut stream = ada.call(1, "steps", &one).await;
        progress(&mut stream).await;
        let asked = event(&mut stream).await;
        let (id, first) = (asked.id.clone().expect("an id"), asked.message().expect("a message"));
        let mut before = ada.resume(&id, &two).await.expect("a stream");
        // once the replica that runs the call has answered the other one, its next message is the notice
        assert_ends(&mut stream).await;
        before.next_event().await.expect("where to resume");
        sleep(Duration::from_millis(100)).await;
        let (release, is_published) = store.hold_message();
        let _at_one = ada.resume(&id, &one).await.expect("a stream");
        let mut resumed = ada.resume(&id, &two).await.expect("a stream");
        resumed.next_event().await.expect("where to resume");
        release.send(()).expect("a notice waits");
        is_published.await.expect("it is published");
        assert!(
            timeout(Duration::from_millis(300), resumed.next_event()).await.is_err(),
            "the stream goes on"
        );
        assert_eq!(ada.answer(&first, &one).await, 202);
        assert_eq!(progress(&mut resumed).await.0, 2.0);
    })
    .await;
}

#[tokio::test]
async fn a_connected_client_gets_its_result_while_the_store_is_away_and_it_is_logged_later() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    within(async {
        let lenient = || server(&shared).stores(|stores| stores.allow_unchecked_sessions());
        let (one, two) = (HttpServer::start(lenient()).await, HttpServer::start(lenient()).await);
        sleep(Duration::from_millis(100)).await;
        let ada = Client::new("ada", &one, &two).await;
        let mut stream = ada.call(1, "steps", &one).await;
        let (_, after) = progress(&mut stream).await;
        let first = asked(&mut stream).await;
        store.set_broken(true);
        assert_eq!(ada.resume(&after, &two).await.err(), Some(503));
        let forged = json!({ "id": format!("mcp-{}", "A".repeat(90)) });
        assert_eq!(ada.answer(&forged, &two).await, 400);
        assert_eq!(ada.answer(&first, &two).await, 202, "it is kept until the store is back");
        assert_eq!(ada.answer(&first, &one).await, 202, "and here it needs none");
        assert_eq!(progress(&mut stream).await.0, 2.0);
        let second = asked(&mut stream).await;
        assert_eq!(ada.answer(&second, &one).await, 202);
        assert_eq!(progress(&mut stream).await.0, 3.0);
        assert_eq!(text_of(&stream.message().await), "true true");
        assert_ends(&mut stream).await;
        store.set_broken(false);
        let mut resumed = ada.resume(&after, &two).await.expect("a stream");
        assert_eq!(asked(&mut resumed).await["id"], first["id"]);
        assert_eq!(progress(&mut resumed).await.0, 2.0);
        asked(&mut resumed).await;
        assert_eq!(progress(&mut resumed).await.0, 3.0);
        assert_eq!(text_of(&resumed.message().await), "true true");
        assert_ends(&mut resumed).await;
    })
    .await;
}

#[tokio::test]
async fn a_response_that_arrives_while_the_store_is_away_reaches_its_call_when_it_is_back() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    within(async {
        let (one, two) = (HttpServer::start(server(&shared)).await, HttpServer::start(server(&shared)).await);
        sleep(Duration::from_millis(200)).await;
        let (ada, bob) = (Client::new("ada", &one, &two).await, Client::new("bob", &two, &one).await);
        let mut stream = ada.call(1, "steps", &one).await;
        progress(&mut stream).await;
        let first = asked(&mut stream).await;
        store.set_broken(true);
        let forged = json!({ "id": format!("mcp-{}", "A".repeat(90)) });
        for at in [&one, &two] {
            assert_eq!(bob.answer(&first, at).await, 503, "another client");
            assert_eq!(ada.answer(&forged, at).await, 503, "no id of a request");
            assert_eq!(ada.answer(&first, at).await, 202);
        }
        store.set_broken(false);
        assert_eq!(progress(&mut stream).await.0, 2.0);
        let second = asked(&mut stream).await;
        store.set_broken(true);
        assert_eq!(ada.answer(&second, &two).await, 202);
        store.set_broken(false);
        assert_eq!(progress(&mut stream).await.0, 3.0);
        assert_eq!(text_of(&stream.message().await), "true true");

        // of a session that has ended meanwhile, nothing is delivered
        let mut stream = bob.call(1, "steps", &one).await;
        progress(&mut stream).await;
        let asked = asked(&mut stream).await;
        store.set_broken(true);
        assert_eq!(bob.answer(&asked, &two).await, 202);
        store.set_broken(false);
        assert_eq!(bob.end(&one).await, 204);
        assert_ends(&mut stream).await;
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_stored_of_a_session_is_refused_with_503() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    within(async {
        let lenient = server(&shared).stores(|stores| stores.allow_unchecked_sessions()).resource::<state>();
        let lenient = lenient.tool::<touch>().telemetry(|telemetry| telemetry.client_logging());
        let one = HttpServer::start(lenient).await;
        let ada = Client::new("ada", &one, &one).await;
        store.set_broken(true);
        for (method, params) in [
            ("logging/setLevel", json!({ "level": "error" })),
            ("resources/subscribe", json!({ "uri": "test://state" })),
            ("resources/unsubscribe", json!({ "uri": "test://state" })),
        ] {
            let request = HttpRequest::legacy(&ada.session, 5, method, &params).header("x-user", "ada");
            let refused = request.send(one.address).await;
            assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{method}");
            let error = refused.json();
            assert_eq!((&error["id"], &error["error"]["code"]), (&json!(5), &json!(-32603)), "{error}");
        }
    })
    .await;
}

#[tokio::test]
async fn requests_of_a_session_ask_the_store_once_and_a_stream_writes_each_event_once() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    within(async {
        let one = HttpServer::start(server(&shared)).await;
        sleep(Duration::from_millis(100)).await;
        let ada = Client::new("ada", &one, &one).await;
        let before = store.operations();
        ada.request("ping", &json!({}), &one).await;
        assert_eq!(store.operations() - before, 1, "whether the session has ended");
        let before = store.operations();
        let mut stream = ada.call(1, "steps", &one).await;
        for _ in 0..2 {
            progress(&mut stream).await;
            let asked = asked(&mut stream).await;
            assert_eq!(ada.answer(&asked, &one).await, 202);
        }
        progress(&mut stream).await;
        stream.message().await;
        assert_ends(&mut stream).await;
        // the call, its two answers, and an entry for each of its six events
        assert_eq!(store.operations() - before, 3 + 6);
    })
    .await;
}
