//! What sessions of older clients listen to, at replicas that share a store: log levels, subscriptions and standalone
//! streams, whichever replica gets a request.

use std::{sync::Arc, time::Duration};

use mcp_runtime::{Principal, Server, ServerBuilder, context::LogLevel, prelude::*, store::Shared};
use mcp_tests::support::{BreakableStore, EventStream, HttpRequest, HttpServer, server_key, text_of, within};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{TestStore, sessions::Killable, with_each_store};

/// One of many
#[mcp_resource(uri = "test://item/{id}")]
fn item(id: u32) -> String {
    id.to_string()
}

/// Reports an update
#[mcp_tool]
fn report(id: u32, server: &ServerHandle) {
    server.resource_updated(&uri(id));
}

/// Reports other tools
#[mcp_tool]
fn retool(server: &ServerHandle) {
    server.tools_changed();
}

/// Logs, asks, and logs again
#[mcp_tool]
async fn talk(ctx: &Context) -> Result<&'static str, ToolError> {
    ctx.log(LogLevel::Info, "a").send();
    ctx.log(LogLevel::Error, "b").send();
    let _agreed: bool = ctx.elicit("agreed", "Go on?").await?;
    ctx.log(LogLevel::Info, "c").send();
    ctx.log(LogLevel::Error, "d").send();
    Ok("talked")
}

fn uri(id: u32) -> String {
    format!("test://item/{id}")
}

fn server(store: &Arc<dyn Shared>) -> ServerBuilder {
    Server::builder("listeners", "1")
        .stores(|stores| stores.keys([server_key(8)]))
        .http(|http| {
            http.caller(|parts| Some(Principal::new("test", parts.headers.get("x-user")?.to_str().ok()?)))
        })
        .telemetry(|telemetry| telemetry.client_logging())
        .resource::<item>()
        .tool::<report>()
        .tool::<retool>()
        .tool::<talk>()
        .shared(store.clone())
}

async fn three(store: &TestStore) -> [HttpServer; 3] {
    let replicas = [
        HttpServer::start(server(&store.open())).await,
        HttpServer::start(server(&store.open())).await,
        HttpServer::start(server(&store.open())).await,
    ];
    // each listens to the others soon after it has started
    sleep(Duration::from_millis(300)).await;
    replicas
}

/// A client whose requests are sent to any replica.
struct Client(String);

impl Client {
    async fn new(at: &HttpServer) -> Self {
        let initialize = HttpRequest::initialize_with("2025-11-25", &json!({ "elicitation": {} }));
        let client = Self(initialize.header("x-user", "ada").send(at.address).await.session());
        let initialized = HttpRequest::notification("notifications/initialized", &json!({}));
        assert_eq!(client.of(initialized).send(at.address).await.status, 202);
        client
    }

    fn of(&self, request: HttpRequest) -> HttpRequest {
        request.session(&self.0).header("x-user", "ada")
    }

    async fn error(&self, method: &str, params: &Value, at: &HttpServer) -> String {
        let request = HttpRequest::legacy(&self.0, 5, method, params).header("x-user", "ada");
        let reply = request.send(at.address).await.json();
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
        reply["error"]["message"].as_str().expect("a message").to_owned()
    }

    async fn request(&self, method: &str, params: &Value, at: &HttpServer) {
        let request = HttpRequest::legacy(&self.0, 5, method, params).header("x-user", "ada");
        let reply = request.send(at.address).await.json();
        assert!(reply["error"].is_null() && reply["result"]["isError"] != true, "{reply}");
    }

    async fn subscribe(&self, id: u32, at: &HttpServer) {
        self.request("resources/subscribe", &json!({ "uri": uri(id) }), at).await;
    }

    async fn unsubscribe(&self, id: u32, at: &HttpServer) {
        self.request("resources/unsubscribe", &json!({ "uri": uri(id) }), at).await;
    }

    async fn report(&self, id: u32, at: &HttpServer) {
        self.request("tools/call", &json!({ "name": "report", "arguments": { "id": id } }), at).await;
    }

    async fn listen(&self, at: &HttpServer) -> EventStream {
        EventStream::open(&self.of(listening()), at.address).await.expect("a stream")
    }

    async fn listen_after(&self, last: &str, at: &HttpServer) -> EventStream {
        let request = self.of(listening()).header("Last-Event-ID", last);
        EventStream::open(&request, at.address).await.expect("a stream")
    }
}

fn listening() -> HttpRequest {
    HttpRequest::new("GET").header("Accept", "text/event-stream")
}

/// The next changes on a stream, up to one of a resource, and the last event's id.
async fn changes_up_to(stream: &mut EventStream, id: u32) -> (Vec<String>, String) {
    let mut seen = Vec::new();
    loop {
        let event = timeout(Duration::from_secs(20), stream.next_event()).await;
        let event = event.unwrap_or_else(|_| panic!("{id} is not among {seen:?}")).expect("an event");
        let Some(message) = event.message() else { continue };
        let uri_of = message["params"]["uri"].as_str();
        let about = uri_of.or_else(|| message["method"].as_str()).expect("a change");
        seen.push(about.rsplit('/').next().unwrap_or_default().to_owned());
        if uri_of == Some(&uri(id)) {
            return (seen, event.id.expect("an id"));
        }
    }
}

async fn assert_changes(stream: &mut EventStream, expected: &[u32], store: &TestStore) -> String {
    let last = *expected.last().expect("a change");
    let (seen, id) = changes_up_to(stream, last).await;
    let expected: Vec<_> = expected.iter().map(u32::to_string).collect();
    assert_eq!(seen, expected, "{}", store.name);
    id
}

#[tokio::test]
async fn a_log_level_holds_at_every_replica_and_for_calls_that_run() {
    with_each_store("a_log_level_holds_at_every_replica", async |store| {
        within(async {
            let [one, two, three] = three(store).await;
            let ada = Client::new(&one).await;
            let talk = json!({ "name": "talk" });
            let call = HttpRequest::legacy(&ada.0, 1, "tools/call", &talk).header("x-user", "ada");
            for (n, level) in ["error", "emergency", "debug"].into_iter().enumerate() {
                let mut stream = EventStream::open(&call, one.address).await.expect("a stream");
                let mut logged = String::new();
                let text = loop {
                    let message = stream.message().await;
                    match message["method"].as_str() {
                        Some("notifications/message") => {
                            logged += message["params"]["data"].as_str().expect("a text");
                        }
                        Some(_) => {
                            let level = json!({ "level": level });
                            ada.request("logging/setLevel", &level, [&two, &three][n % 2]).await;
                            // another replica is told soon
                            sleep(Duration::from_millis(300)).await;
                            let result = json!({ "action": "accept", "content": { "value": true } });
                            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                            let answer = ada.of(HttpRequest::post(answer.to_string()));
                            assert_eq!(answer.send(three.address).await.status, 202);
                        }
                        None => break text_of(&message).to_owned(),
                    }
                };
                let expected = ["abd", "b", "cd"][n];
                assert_eq!((&*text, &*logged), ("talked", expected), "{}: {level}", store.name);
            }
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_subscription_is_made_and_ended_at_any_replica_and_each_change_sent_once() {
    for store in TestStore::all("a_subscription_is_made_and_ended_at_any_replica") {
        within(async {
            let [one, two, three] = three(&store).await;
            let ada = Client::new(&one).await;
            ada.subscribe(1, &two).await;
            let mut stream = ada.listen(&one).await;
            ada.subscribe(2, &three).await;
            ada.subscribe(3, &one).await;
            for id in [1, 2, 3, 9] {
                ada.report(id, &two).await;
            }
            assert_changes(&mut stream, &[1, 2, 3], &store).await;
            ada.unsubscribe(2, &two).await;
            ada.unsubscribe(1, &one).await;
            for id in [1, 2, 3] {
                ada.report(id, &three).await;
            }
            assert_changes(&mut stream, &[3], &store).await;
            // at once, at replicas that do not have the stream
            for round in 0..5 {
                tokio::join!(ada.subscribe(4, &two), ada.unsubscribe(4, &three));
                if round % 2 == 0 {
                    ada.subscribe(4, &three).await;
                } else {
                    ada.unsubscribe(4, &two).await;
                }
                ada.subscribe(5 + round, &two).await;
                ada.report(4, &three).await;
                ada.report(5 + round, &three).await;
                let expected = if round % 2 == 0 { vec![4, 5 + round] } else { vec![5 + round] };
                assert_changes(&mut stream, &expected, &store).await;
            }
        })
        .await;
    }
}

/// Within this time, every replica has noticed a change, and that a stream began or ended, on a loaded machine too.
const NOTICED: Duration = Duration::from_secs(2);

#[tokio::test]
async fn changes_follow_the_client_to_the_replica_where_it_listens() {
    with_each_store("changes_follow_the_client", async |store| {
        within(async {
            let [one, two, three] = three(store).await;
            let ada = Client::new(&one).await;
            ada.subscribe(1, &three).await;
            ada.subscribe(2, &three).await;
            let mut first = ada.listen(&one).await;
            ada.report(1, &three).await;
            let after_first = assert_changes(&mut first, &[1], store).await;
            // replicas look at their stores at different times: until then, a stream that begins at another one gets it again
            sleep(NOTICED).await;
            // the newest stream has the changes
            let mut second = ada.listen(&two).await;
            ada.report(2, &three).await;
            assert_changes(&mut second, &[2], store).await;
            // and the one before, if its client goes
            drop(second);
            sleep(NOTICED).await;
            ada.report(1, &three).await;
            assert_changes(&mut first, &[1], store).await;
            drop(first);
            sleep(NOTICED).await;
            // collected until it comes back, elsewhere, after what was sent to it before that it has not received
            ada.report(2, &two).await;
            sleep(NOTICED).await;
            let mut third = ada.listen_after(&after_first, &three).await;
            assert_changes(&mut third, &[1, 2], store).await;
            ada.request("tools/call", &json!({ "name": "retool" }), &one).await;
            ada.report(2, &one).await;
            assert_eq!(changes_up_to(&mut third, 2).await.0, ["list_changed", "2"]);
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_client_whose_replica_is_killed_is_told_that_everything_has_changed() {
    with_each_store("a_client_whose_replica_is_killed", async |store| {
        within(async {
            let (one, two) =
                (Killable::of(server(&store.open())), HttpServer::start(server(&store.open())).await);
            sleep(Duration::from_millis(300)).await;
            let ada = Client::new(&two).await;
            ada.subscribe(1, &two).await;
            let mut stream = ada.listen(&one.server).await;
            ada.report(1, &two).await;
            let last = assert_changes(&mut stream, &[1], store).await;
            one.kill();
            ada.report(1, &two).await;
            drop(stream);
            let mut stream = ada.listen_after(&last, &two).await;
            let (seen, _) = changes_up_to(&mut stream, 1).await;
            assert!(seen.iter().any(|about| about == "list_changed"), "{}: {seen:?}", store.name);
            // and then as ever
            ada.subscribe(2, &two).await;
            ada.report(2, &two).await;
            assert_changes(&mut stream, &[2], store).await;
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_stored_while_the_store_is_away_is_refused_and_kept_when_it_is_tried_again() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    within(async {
        let lenient = || server(&shared).stores(|stores| stores.allow_unchecked_sessions());
        let (one, two) = (HttpServer::start(lenient()).await, HttpServer::start(lenient()).await);
        sleep(Duration::from_millis(200)).await;
        let ada = Client::new(&one).await;
        ada.subscribe(1, &two).await;
        let mut stream = ada.listen(&one).await;
        store.set_broken(true);
        let (wanted, level) = (json!({ "uri": uri(2) }), json!({ "level": "error" }));
        for at in [&one, &two] {
            assert!(ada.error("resources/subscribe", &wanted, at).await.contains("try again"));
            assert!(ada.error("logging/setLevel", &level, at).await.contains("try again"));
        }
        // what is subscribed to at the process with the stream goes on
        ada.report(1, &one).await;
        changes_up_to(&mut stream, 1).await;
        store.set_broken(false);
        ada.request("resources/subscribe", &wanted, &two).await;
        ada.request("logging/setLevel", &level, &two).await;
        ada.report(2, &two).await;
        changes_up_to(&mut stream, 2).await;
    })
    .await;
}
