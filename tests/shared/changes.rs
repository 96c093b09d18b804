//! Changes that are reported at one replica reach the subscribers of all, once each; and those of a replica that was cut
//! off when it is back.

use std::time::Duration;

use mcp_runtime::{Principal, Server, ServerHandle, prelude::*};
use mcp_tests::support::{
    AnyStore, BreakableStore, EventStream, HttpRequest, HttpServer, PATIENCE, server_key,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::TestStore;

/// For everybody
#[mcp_resource(uri = "test://open")]
fn open() -> &'static str {
    "open"
}

/// Differs by caller
#[mcp_resource(uri = "test://own")]
fn own(caller: &Principal) -> String {
    caller.subject().to_owned()
}

/// For admins
#[mcp_resource(uri = "test://admin", scopes("admin"))]
fn admin() -> &'static str {
    "admin"
}

/// Reports an update
#[mcp_tool]
fn report(uri: String, server: &ServerHandle) {
    server.resource_updated(&uri);
}

/// Reports updates of so many resources
#[mcp_tool]
fn report_each(count: u32, server: &ServerHandle) {
    (0..count).for_each(|n| server.resource_updated(&format!("test://{n}")));
}

/// Reports an update that concerns one user
#[mcp_tool]
fn report_for(uri: String, user: String, server: &ServerHandle) {
    server.resource_updated_for(&uri, |principal| principal.subject() == user);
}

/// Ends the streams of a user
#[mcp_tool]
fn end_streams(user: String, server: &ServerHandle) {
    server.end_streams_of(&Principal::new("test", user));
}

/// Reports other tools
#[mcp_tool]
fn retool(server: &ServerHandle) {
    server.tools_changed();
}

pub(crate) async fn replica(store: AnyStore) -> HttpServer {
    let server = Server::builder("changes", "1").stores(|stores| stores.keys([server_key(6)])).http(|http| {
        http.caller(|parts| {
            let user = parts.headers.get("x-user")?.to_str().ok()?;
            let scopes = (user == "root").then_some("admin");
            Some(Principal::new("test", user).with_scopes(scopes))
        })
    });
    let server = server.resource::<open>().resource::<own>().resource::<admin>();
    HttpServer::start(
        server
            .tool::<report>()
            .tool::<report_each>()
            .tool::<report_for>()
            .tool::<retool>()
            .tool::<end_streams>()
            .shared(store),
    )
    .await
}

/// Listens as a user to all that there is; the acknowledgement has been received.
pub(crate) async fn listen(user: &str, at: &HttpServer) -> EventStream {
    let all = ["test://open", "test://own", "test://admin"];
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": all });
    let request = HttpRequest::modern(1, "subscriptions/listen", json!({ "notifications": wanted }));
    let mut stream = EventStream::open(&request.header("x-user", user), at.address).await.expect("a stream");
    assert_eq!(stream.message().await["method"], "notifications/subscriptions/acknowledged");
    stream
}

pub(crate) async fn call(user: &str, name: &str, arguments: Value, at: &HttpServer) {
    let request = HttpRequest::modern(2, "tools/call", json!({ "name": name, "arguments": arguments }));
    let reply = request.header("x-user", user).send(at.address).await.json();
    assert!(reply["error"].is_null() && reply["result"]["isError"] != true, "{reply}");
}

/// What a message is about.
pub(crate) fn about(message: &Value) -> String {
    match message["method"].as_str() {
        Some("notifications/resources/updated") => {
            message["params"]["uri"].as_str().unwrap_or_default().into()
        }
        Some(method) => method.to_owned(),
        None => message.to_string(),
    }
}

const TOOLS: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_change_reaches_the_subscribers_of_every_replica_once() {
    for store in TestStore::all("a_change_reaches_the_subscribers_of_every_replica") {
        let (one, two) = (replica(store.open()).await, replica(store.open()).await);
        let mut streams = [
            (listen("ada", &one).await, "ada"),
            (listen("ada", &two).await, "ada"),
            (listen("bob", &two).await, "bob"),
            (listen("root", &two).await, "root"),
        ];
        // a replica is subscribed soon after its first subscriber is
        sleep(Duration::from_millis(300)).await;
        call("ada", "report", json!({ "uri": "test://open" }), &one).await;
        call("ada", "report", json!({ "uri": "test://own" }), &one).await;
        call("ada", "report", json!({ "uri": "test://admin" }), &one).await;
        call("ada", "report_for", json!({ "uri": "test://own", "user": "bob" }), &one).await;
        call("ada", "retool", json!({}), &one).await;
        // equal changes that have not been sent yet are one
        sleep(Duration::from_millis(500)).await;
        call("ada", "report", json!({ "uri": "test://open" }), &one).await;
        for (stream, user) in &mut streams {
            let mut seen = Vec::new();
            while seen.iter().filter(|about| *about == "test://open").count() < 2 {
                let message = timeout(PATIENCE, stream.message()).await;
                let message = message.unwrap_or_else(|_| panic!("{}: {user} has {seen:?}", store.name));
                seen.push(about(&message));
            }
            let expected: &[&str] = match *user {
                "ada" => &["test://open", "test://own", TOOLS, "test://open"],
                "root" => &["test://open", "test://admin", TOOLS, "test://open"],
                _ => &["test://open", TOOLS, "test://open"],
            };
            assert_eq!(seen, expected, "{}: {user}", store.name);
        }
    }
}

/// Waits for one change of everything that was subscribed to.
pub(crate) async fn everything(stream: &mut EventStream) {
    let mut seen = Vec::new();
    while !(seen.iter().any(|about| about == TOOLS) && seen.iter().any(|about| about == "test://open")) {
        let message = timeout(PATIENCE, stream.message()).await;
        seen.push(about(&message.unwrap_or_else(|_| panic!("no change of everything: {seen:?}"))));
    }
    assert!(!seen.iter().any(|about| about == "test://admin"), "{seen:?}");
}

#[tokio::test]
async fn changes_that_could_not_be_sent_are_told_later_and_too_many_as_a_change_of_everything() {
    let store = BreakableStore::default();
    let (one, two) =
        (replica(AnyStore::new(store.clone())).await, replica(AnyStore::new(store.clone())).await);
    let mut stream = listen("ada", &two).await;
    sleep(Duration::from_millis(100)).await;
    store.set_broken(true);
    for _ in 0..20 {
        call("ada", "report", json!({ "uri": "test://open" }), &one).await;
    }
    store.set_broken(false);
    assert_eq!(about(&stream.message().await), "test://open");
    store.set_broken(true);
    call("ada", "report_each", json!({ "count": 1025 }), &one).await;
    store.set_broken(false);
    everything(&mut stream).await;
}

/// Waits until a stream has ended with its result.
async fn ended(stream: &mut EventStream) {
    while stream.message().await["result"]["resultType"] != "complete" {}
}

#[tokio::test]
async fn the_streams_of_a_principal_end_at_every_replica_also_if_the_store_is_away_at_first() {
    let store = BreakableStore::default();
    let start = || replica(AnyStore::new(store.clone()));
    let replicas = [start().await, start().await, start().await];
    for is_away in [false, true] {
        let (mut of_ada, mut of_bob) = (Vec::new(), Vec::new());
        for at in &replicas {
            of_ada.push(listen("ada", at).await);
            of_bob.push(listen("bob", at).await);
        }
        // a replica is subscribed soon after its first subscriber is
        sleep(Duration::from_millis(300)).await;
        store.set_broken(is_away);
        call("root", "end_streams", json!({ "user": "ada" }), &replicas[0]).await;
        ended(&mut of_ada[0]).await;
        store.set_broken(false);
        for stream in &mut of_ada[1..] {
            timeout(PATIENCE, ended(stream)).await.expect("the end");
        }
        call("root", "report", json!({ "uri": "test://open" }), &replicas[0]).await;
        for stream in &mut of_bob {
            while about(&stream.message().await) != "test://open" {}
        }
    }
}
