//! Sessions of older clients at replicas that share a store: any of them answers a plain request, state is at the replica
//! where the client asks for it, and all of them know which sessions have ended.

use std::time::Duration;

use mcp_runtime::{Server, ServerBuilder, ServerHandle, context::LogLevel, prelude::*};
use mcp_tests::support::{
    AnyStore, BreakableStore, Event, EventStream, HttpRequest, HttpServer, HttpSse, server_key, text_of,
    x_user,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::TestStore;

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

/// Logs at two levels
#[mcp_tool]
fn talk(ctx: &Context) -> &'static str {
    ctx.log(LogLevel::Info, "low").send();
    ctx.log(LogLevel::Error, "high").send();
    "talked"
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

fn server(store: &AnyStore) -> ServerBuilder {
    Server::builder("sessions", "1")
        .stores(|stores| stores.keys([server_key(7)]))
        .telemetry(|telemetry| telemetry.client_logging())
        .http(|http| http.legacy_sse("/sse").caller(x_user))
        .discover_in(module_path!())
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
struct Client(String);

impl Client {
    /// Says at another replica that it is initialized, as one behind a proxy does.
    async fn new(at: &HttpServer, other: &HttpServer) -> Self {
        let initialize = HttpRequest::initialize_with("2025-11-25", &json!({ "elicitation": {} }));
        let client = Self(initialize.header("x-user", "ada").send(at.address).await.session());
        let initialized = HttpRequest::notification("notifications/initialized", &json!({}));
        assert_eq!(client.of(initialized).send(other.address).await.status, 202);
        client
    }

    fn of(&self, request: HttpRequest) -> HttpRequest {
        request.session(&self.0).header("x-user", "ada")
    }

    async fn request(&self, method: &str, params: &Value, at: &HttpServer) -> Value {
        let request = HttpRequest::legacy(&self.0, 90, method, params).header("x-user", "ada");
        let reply = request.send(at.address).await.json();
        assert!(reply["error"].is_null() && reply["result"]["isError"] != true, "{method}: {reply}");
        reply["result"].clone()
    }

    async fn call(&self, id: u64, tool: &str, at: &HttpServer) -> EventStream {
        let params = json!({ "name": tool, "_meta": { "progressToken": id } });
        let call = HttpRequest::legacy(&self.0, id, "tools/call", &params).header("x-user", "ada");
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

    async fn listen(&self, at: &HttpServer) -> EventStream {
        let request = self.of(HttpRequest::new("GET").header("Accept", "text/event-stream"));
        EventStream::open(&request, at.address).await.expect("a stream")
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

#[tokio::test]
async fn what_names_state_of_another_process_is_refused_and_the_state_goes_on() {
    for store in TestStore::all("what_names_state_of_another_process") {
        let [one, two] = replicas(&store).await;
        let ada = Client::new(&one, &two).await;
        let mut stream = ada.call(1, "steps", &one).await;
        let (_, after) = progress(&mut stream).await;
        let first = asked(&mut stream).await;
        assert_eq!(ada.answer(&first, &two).await, 400, "{}: it waits for nothing", store.name);
        assert_eq!(ada.cancel(1, &two).await, 202, "a notification is accepted, whatever it names");
        assert_eq!(ada.resume(&after, &two).await.err(), Some(404), "its client starts another session");
        assert_eq!(ada.answer(&first, &one).await, 202, "the call runs on");
        assert_eq!(progress(&mut stream).await.0, 2.0);
        let second = asked(&mut stream).await;
        drop(stream);
        let mut resumed = ada.resume(&after, &one).await.expect("a stream");
        assert_eq!(asked(&mut resumed).await["id"], first["id"]);
        assert_eq!(progress(&mut resumed).await.0, 2.0);
        assert_eq!(asked(&mut resumed).await["id"], second["id"]);
        assert_eq!(ada.answer(&second, &one).await, 202);
        assert_eq!(progress(&mut resumed).await.0, 3.0);
        let result = event(&mut resumed).await;
        assert_eq!(text_of(&result.message().expect("a message")), "true true");
        // also of a stream that has ended, or of one that GET has opened
        let standalone = ada.listen(&one).await.next_event().await.expect("an event");
        for id in [after, standalone.id.expect("an id")] {
            assert_eq!(ada.resume(&id, &two).await.err(), Some(404));
            assert!(ada.resume(&id, &one).await.is_ok());
            let later = HttpServer::start(server(&store.open())).await;
            assert_eq!(ada.resume(&id, &later).await.err(), Some(404), "as after a restart");
        }
        // and a message for a stream of HTTP+SSE
        let mut old = HttpSse::open(one.address, "/sse", &[("x-user", "ada")]).await;
        old.initialize(&json!({})).await;
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let post = HttpRequest::post(ping.to_string()).path(&old.endpoint).header("x-user", "ada");
        assert_eq!(post.send(two.address).await.status, 404);
        assert_eq!(post.send(one.address).await.status, 202);
    }
}

#[tokio::test]
async fn state_of_a_session_is_made_and_holds_at_the_replica_where_it_is_asked_for() {
    for store in TestStore::all("state_of_a_session_is_made_where_it_is_asked_for") {
        let [one, two] = replicas(&store).await;
        let ada = Client::new(&one, &two).await;
        let logged = async |at: &HttpServer| {
            let mut stream = ada.call(1, "talk", at).await;
            let mut logged = Vec::new();
            while let message = stream.message().await
                && message["method"] == "notifications/message"
            {
                logged.push(message["params"]["data"].as_str().expect("a text").to_owned());
            }
            logged
        };
        ada.request("logging/setLevel", &json!({ "level": "error" }), &two).await;
        assert_eq!(
            (logged(&one).await, logged(&two).await),
            (vec!["low".to_owned(), "high".to_owned()], vec!["high".to_owned()])
        );

        ada.request("resources/subscribe", &json!({ "uri": "test://state" }), &two).await;
        let mut without = ada.listen(&one).await;
        let mut with = ada.listen(&two).await;
        // whichever replica reports the change
        for at in [&one, &two] {
            ada.request("tools/call", &json!({ "name": "touch" }), at).await;
            let changed = event(&mut with).await.message().expect("a message");
            assert_eq!(changed["params"]["uri"], "test://state", "{}: {changed}", store.name);
        }
        ada.request("resources/subscribe", &json!({ "uri": "test://state" }), &one).await;
        ada.request("tools/call", &json!({ "name": "touch" }), &two).await;
        let changed = event(&mut without).await.message().expect("a message");
        assert_eq!(changed["params"]["uri"], "test://state", "{}: {changed}", store.name);
    }
}

#[tokio::test]
async fn requests_of_a_session_ask_the_store_once_and_its_streams_and_settings_do_not() {
    let store = BreakableStore::default();
    let shared: AnyStore = AnyStore::new(store.clone());
    let one = HttpServer::start(server(&shared)).await;
    sleep(Duration::from_millis(100)).await;
    let ada = Client::new(&one, &one).await;
    let before = store.operations();
    ada.request("ping", &json!({}), &one).await;
    ada.request("logging/setLevel", &json!({ "level": "error" }), &one).await;
    ada.request("resources/subscribe", &json!({ "uri": "test://state" }), &one).await;
    let mut stream = ada.call(1, "steps", &one).await;
    for _ in 0..2 {
        progress(&mut stream).await;
        let asked = asked(&mut stream).await;
        assert_eq!(ada.answer(&asked, &one).await, 202);
    }
    progress(&mut stream).await;
    assert_eq!(text_of(&stream.message().await), "true true");
    assert_eq!(store.operations() - before, 6, "whether the session has ended, for each request");
}

#[tokio::test]
async fn a_call_whose_client_is_connected_goes_on_while_the_store_is_away() {
    let store = BreakableStore::default();
    let shared: AnyStore = AnyStore::new(store.clone());
    let lenient = server(&shared).stores(|stores| stores.allow_unchecked_sessions());
    let (strict, lenient) = (HttpServer::start(server(&shared)).await, HttpServer::start(lenient).await);
    sleep(Duration::from_millis(100)).await;
    for (at, status) in [(&strict, 503), (&lenient, 202)] {
        let ada = Client::new(at, at).await;
        let mut stream = ada.call(1, "steps", at).await;
        let (_, after) = progress(&mut stream).await;
        let first = asked(&mut stream).await;
        store.set_broken(true);
        assert_eq!(ada.answer(&first, at).await, status, "its session may have ended");
        assert_eq!(ada.resume(&after, at).await.is_ok(), status == 202);
        store.set_broken(false);
        if status == 503 {
            assert_eq!(ada.answer(&first, at).await, 202, "it may be sent again");
        }
        let mut stream = ada.resume(&after, at).await.expect("a stream");
        asked(&mut stream).await;
        assert_eq!(progress(&mut stream).await.0, 2.0);
    }
}
