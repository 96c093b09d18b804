//! Who gets which events.

use std::time::SystemTime;

use mcp_runtime::event;

use super::fixture::{Incident, incident, incident_created, serve, titles};
use crate::prelude::*;

/// For callers with a name.
#[mcp_event]
fn mine(#[mcp(payload)] incident: &Incident, caller: &Principal) -> bool {
    incident.title == caller.subject()
}

fn ada() -> Principal {
    Principal::new("https://example.com", "ada")
}

async fn cursor(client: &TestServer, name: &str) -> Value {
    client.request("events/poll", json!({ "name": name })).await.value()["cursor"].clone()
}

async fn poll(client: &TestServer, name: &str, cursor: &Value) -> Value {
    let reply = client.request("events/poll", json!({ "name": name, "cursor": cursor })).await;
    reply.error().map_or_else(|| reply.value().clone(), |error| json!({ "error": error.code }))
}

#[tokio::test]
async fn an_event_for_callers_is_forbidden_for_anonymous_ones() {
    let server = mcp_runtime::server!().add(event::of::<mine>()).build().unwrap();
    let handle = server.handle();
    let client = TestServer::of(&server).caller(None);
    let refused = client.request("events/poll", json!({ "name": "mine" })).await;
    let error = refused.expect_code(-32024).error().unwrap();
    assert_eq!(error.data.unwrap()["reason"], "the event is for authenticated callers");
    let client = client.caller(ada());
    let cursor = cursor(&client, "mine").await;
    for title in ["ada", "bob"] {
        handle.emit::<mine>(&incident(title, 1)).await.unwrap();
    }
    assert_eq!(titles(&poll(&client, "mine", &cursor).await), ["ada"]);
}

#[tokio::test]
async fn an_event_may_be_for_some_principals_only() {
    let (server, handle) = serve();
    let client = TestServer::of(&server).caller(ada());
    let of_ada = cursor(&client, "incident.created").await;
    let client = client.caller(Principal::new("x", "bob"));
    let of_bob = cursor(&client, "incident.created").await;
    let client = client.caller(None);
    let anonymous = cursor(&client, "incident.created").await;
    let trusted = TestServer::of(&server);
    let of_host = cursor(&trusted, "incident.created").await;
    handle
        .emit::<incident_created>(&incident("for ada", 1))
        .to(|caller| {
            assert!(caller.subject() != "bob", "what panics does not get it");
            caller.subject() == "ada"
        })
        .await
        .unwrap();
    assert_eq!(poll(&client, "incident.created", &anonymous).await["events"], json!([]));
    let client = client.caller(ada());
    assert_eq!(titles(&poll(&client, "incident.created", &of_ada).await), ["for ada"]);
    let client = client.caller(Principal::new("x", "bob"));
    assert_eq!(poll(&client, "incident.created", &of_bob).await["events"], json!([]));
    assert_eq!(titles(&poll(&trusted, "incident.created", &of_host).await), ["for ada"], "the one client");
}

#[tokio::test]
async fn a_poll_that_waits_ends_with_an_error_when_its_caller_expires() {
    let (server, handle) = serve();
    let soon = SystemTime::now() + Duration::from_millis(300);
    let client = TestServer::of(&server).caller(ada().with_expiry(soon));
    let cursor = cursor(&client, "incident.created").await;
    let waiting = client
        .request("events/poll", json!({ "name": "incident.created", "cursor": cursor, "timeoutMs": 20_000 }));
    let emitting = async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        handle.emit::<incident_created>(&incident("late", 1)).await.unwrap();
    };
    let (reply, ()) = tokio::join!(waiting, emitting);
    reply.expect_code(-32024);
}
