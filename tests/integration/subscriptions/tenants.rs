//! Who is notified of a change, where tenants subscribe to the same URI: those whom it concerns, in both eras.

use std::time::SystemTime;

use mcp_runtime::{auth::Claims, resource::Subscription, testing::Changes};
use serde::Deserialize;

use crate::prelude::*;

#[derive(Deserialize)]
struct Tenant {
    tenant: String,
}

/// The notes of the caller
#[mcp_resource(uri = "notes://mine")]
fn mine(caller: &Principal) -> String {
    format!("the notes of {}", caller.subject())
}

/// The orders of the caller's tenant
#[mcp_resource(uri = "orders://{id}")]
async fn orders(id: u32, #[mcp(inject)] claims: Claims<Tenant>) -> String {
    format!("order {id} of {}", claims.0.tenant)
}

/// A page that greets its reader
#[mcp_resource(uri = "page://{name}", subscribe = anyone)]
fn page(name: String, caller: Option<&Principal>) -> String {
    format!("{name} for {:?}", caller.map(Principal::subject))
}

fn anyone(_: &Subscription) -> bool {
    true
}

/// News for everybody
#[mcp_resource(uri = "news://all")]
fn news() -> &'static str {
    "nothing new"
}

/// Secrets
#[mcp_resource(uri = "secret://all", scopes("secret"))]
fn secret() -> &'static str {
    "hidden"
}

/// Reports a change
#[mcp_tool]
fn touch(uri: String, server: &ServerHandle) -> &'static str {
    server.resource_updated(&uri);
    "touched"
}

/// Reports a change after it has waited
#[mcp_tool]
async fn touch_later(uri: String, server: &ServerHandle) -> &'static str {
    tokio::task::yield_now().await;
    server.resource_updated(&uri);
    "touched"
}

/// Reports a change on a thread
#[mcp_tool(blocking)]
fn touch_blocking(uri: String, server: &ServerHandle) -> &'static str {
    server.resource_updated(&uri);
    "touched"
}

/// Reports a change to a tenant
#[mcp_tool]
async fn touch_for(uri: String, tenant: String, server: &ServerHandle) -> &'static str {
    server.resource_updated_for(&uri, |caller| tenant_of(caller) == Some(&*tenant));
    "touched"
}

fn tenant_of(caller: &Principal) -> Option<&str> {
    caller.claims()?.get("tenant")?.as_str()
}

/// `ada` and `anna` are of one tenant, `bob` is of another.
fn principal(name: &str) -> Principal {
    let tenant = name.get(..1).unwrap_or_default();
    let claims = json!({ "tenant": tenant }).as_object().cloned().unwrap_or_default();
    Principal::new("https://id.example.com", name).with_claims(claims)
}

fn builder() -> ServerBuilder {
    Server::builder("tenants", "1.0.0")
        .discover_in(module_path!())
        .http(|http| http.caller(|parts| Some(principal(parts.headers.get("x-user")?.to_str().ok()?))))
}

const NAMES: [&str; 3] = ["ada", "anna", "bob"];

/// A client for each principal that subscribes to these resources, and their subscriptions.
async fn subscribed(server: &Server, revision: Revision, uris: &[&str]) -> (Vec<TestServer>, Vec<Changes>) {
    let (mut clients, mut changes) = (Vec::new(), Vec::new());
    for name in NAMES {
        let client = TestServer::of(server);
        let client = if revision.is_modern() { client } else { client.legacy(revision) };
        let client = client.caller(principal(name));
        changes.push(client.listen(json!({ "resourceSubscriptions": uris })).await);
        clients.push(client);
    }
    (clients, changes)
}

/// The names of those who are told something, each of which is one change.
fn told(changes: &mut [Changes]) -> Vec<&'static str> {
    let mut told = Vec::new();
    for (name, changes) in NAMES.iter().zip(changes) {
        if changes.try_next().is_some() {
            told.push(*name);
        }
        assert!(changes.try_next().is_none());
    }
    told
}

#[tokio::test]
async fn tenants_learn_of_changes_that_concern_them_only() {
    for revision in [Revision::LATEST, Revision::V2025_11_25] {
        let server = builder().build().expect("a server");
        let uris = ["notes://mine", "orders://1", "page://one", "news://all"];
        let (clients, mut changes) = subscribed(&server, revision, &uris).await;
        for (uri, concerned) in [
            ("notes://mine", &NAMES[..1]),
            ("orders://1", &NAMES[..1]),
            ("page://one", &NAMES),
            ("news://all", &NAMES),
        ] {
            for tool in ["touch", "touch_later", "touch_blocking"] {
                clients[0].call(tool, json!({ "uri": uri })).await.expect_text("touched");
                assert_eq!(told(&mut changes), concerned, "{tool} {uri}");
            }
        }
        for uri in uris {
            clients[2].call("touch_for", json!({ "uri": uri, "tenant": "a" })).await.expect_text("touched");
            assert_eq!(told(&mut changes), ["ada", "anna"], "{uri}");
        }
        let handle = server.handle();
        handle.resource_updated("notes://mine");
        handle.resource_updated("orders://1");
        assert_eq!(told(&mut changes), [""; 0], "outside of a call it is not known whom it concerns");
        handle.resource_updated("news://all");
        assert_eq!(told(&mut changes), NAMES);
        handle.resource_updated_for("ORDERS://1", |caller| caller.subject() == "bob");
        assert_eq!(told(&mut changes), ["bob"]);
        handle.resource_updated_for("news://all", |caller| {
            assert!(caller.subject() != "ada", "a check that panics");
            true
        });
        assert_eq!(told(&mut changes), ["anna", "bob"]);
    }
}

#[tokio::test]
async fn a_client_that_is_trusted_is_notified_of_everything() {
    for revision in [Revision::LATEST, Revision::V2025_11_25] {
        let server = builder().build().expect("a server");
        let client = TestServer::of(&server);
        let client = if revision.is_modern() { client } else { client.legacy(revision) };
        let mut changes =
            client.listen(json!({ "resourceSubscriptions": ["notes://mine", "secret://all"] })).await;
        for uri in ["notes://mine", "secret://all"] {
            server.handle().resource_updated(uri);
            assert!(changes.try_next().is_some(), "{uri}");
            server.handle().resource_updated_for(uri, |_| false);
            assert!(changes.try_next().is_some(), "{uri}");
        }
    }
}

#[tokio::test]
async fn whom_a_change_concerns_must_be_allowed_to_read_it_as_well() {
    let server = builder().build().expect("a server");
    let scoped = |name: &str| TestServer::of(&server).caller(principal(name).with_scopes(["secret"]));
    let uris = json!({ "resourceSubscriptions": ["secret://all"] });
    let mut changes = [scoped("ada").listen(uris.clone()).await, scoped("bob").listen(uris).await];
    server.handle().resource_updated_for("secret://all", |caller| caller.subject() == "bob");
    assert_eq!(changes.each_mut().map(|changes| changes.try_next().is_some()), [false, true]);
}

#[tokio::test]
async fn a_principal_that_has_expired_is_notified_of_nothing_that_concerns_it() {
    let server = builder().build().expect("a server");
    let expiring = principal("ada").with_expiry(SystemTime::now() + Duration::from_millis(300));
    let client = TestServer::of(&server).caller(expiring);
    let mut changes = client.listen(json!({ "resourceSubscriptions": ["notes://mine", "news://all"] })).await;
    server.handle().resource_updated_for("notes://mine", |_| true);
    assert!(changes.try_next().is_some());
    tokio::time::sleep(Duration::from_millis(400)).await;
    server.handle().resource_updated_for("notes://mine", |_| true);
    assert!(changes.try_next().is_none());
}

fn url_of(event: &Value) -> &str {
    event["params"]["uri"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_update_is_not_sent_to_a_client_that_has_unsubscribed_meanwhile() {
    let served = HttpServer::start(builder()).await;
    let at = served.address;
    let session = HttpRequest::initialize("2025-11-25").header("x-user", "ada").send(at).await.session();
    let send = async |id: u32, method: &str, params: Value| {
        let request = HttpRequest::legacy(&session, id, method, &params).header("x-user", "ada");
        assert_eq!(request.send(at).await.status, 200);
    };
    for (id, uri) in [(1, "page://1"), (2, "page://2")] {
        send(id, "resources/subscribe", json!({ "uri": uri })).await;
    }
    let get = HttpRequest::standalone_stream(&session).header("x-user", "ada");
    let mut stream = EventStream::open(&get, at).await.expect("a stream");
    send(3, "resources/unsubscribe", json!({ "uri": "page://1" })).await;
    for (id, uri) in [(4, "page://1"), (5, "page://2")] {
        send(id, "tools/call", json!({ "name": "touch", "arguments": { "uri": uri } })).await;
    }
    assert_eq!(url_of(&stream.message().await), "page://2");
}
