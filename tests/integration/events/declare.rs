//! What a server declares of events, and how wrong declarations are reported.

use mcp_runtime::event;

use super::fixture::{Incident, builder, incident, incident_created};
use crate::prelude::*;

#[tokio::test]
async fn without_a_handle_events_are_declared_without_changes_of_the_list() {
    let server = TestServer::new(builder()).unwrap();
    let declared = server.capabilities().await;
    assert_eq!(declared["events"], json!({}));
    assert_eq!(declared["extensions"]["io.modelcontextprotocol/events"], json!({}));
}

#[tokio::test]
async fn a_server_without_events_does_not_know_them() {
    let without = TestServer::new(mcp_runtime::server!()).unwrap();
    assert!(without.capabilities().await.get("events").is_none());
    for method in ["events/list", "events/poll", "events/stream"] {
        without.request(method, json!({ "name": "incident.created" })).await.expect_code(-32601);
    }
}

#[tokio::test]
async fn a_server_without_events_notifies_of_no_change_of_their_list() {
    let server = mcp_runtime::server!().build().unwrap();
    let handle = server.handle();
    let mut changes =
        TestServer::of(&server).listen(json!({ "eventsListChanged": true, "toolsListChanged": true })).await;
    handle.events_changed();
    handle.tools_changed();
    assert_eq!(changes.next().await["method"], "notifications/tools/list_changed", "it has no events");
}

/// Needs its request.
#[mcp_event]
fn of_context(#[mcp(payload)] _incident: &Incident, _ctx: &Context) {}

#[derive(Clone)]
struct Tenant;

/// Needs what middleware provides.
#[mcp_event]
fn of_request(#[mcp(payload)] _incident: &Incident, _tenant: &Tenant) {}

/// Carries no object.
#[mcp_event]
fn of_text(#[mcp(payload)] _text: &String) {}

/// Is not delivered by anything.
#[mcp_event(deliver(webhook))]
fn by_webhook(#[mcp(payload)] _incident: &Incident) {}

#[test]
fn what_an_event_cannot_have_is_an_error_of_build() {
    let server = || mcp_runtime::server!();
    let of_middleware = server().http(|http| http.from_request::<Tenant>());
    for (builder, problem) in [
        (
            server().add(event::of::<of_context>()),
            "event `of_context`: it takes `&Context`, and an event has no request",
        ),
        (
            server().add(event::of::<of_request>()),
            "event `of_request` takes `&Tenant`, and no state of that type",
        ),
        (
            of_middleware.add(event::of::<of_request>()),
            "which middleware puts into requests, and an event has no request",
        ),
        (server().add(event::of::<of_text>()), "event `of_text`: its payload is not a JSON object"),
        (server().add(event::of::<by_webhook>()), "event `by_webhook`: it has `deliver(..)`"),
        (builder().add(event::of::<incident_created>()), "event `incident.created` is registered twice"),
        (builder().transform(|item| item.rename("same")), "two events are `same`"),
    ] {
        let error = build_error(builder);
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_emitted_is_an_error_and_a_dropped_server_has_no_subscribers() {
    let server = mcp_runtime::server!().build().unwrap();
    let handle = server.handle();
    let error = handle.emit::<incident_created>(&incident("a", 1)).await.unwrap_err().to_string();
    assert!(error.contains("does not offer the event `incident.created`"), "{error}");
    assert!(error.contains(".add(event::of::<..>())"), "{error}");
    drop(server);
    assert!(handle.emit::<incident_created>(&incident("a", 1)).await.unwrap().starts_with("evt_"));
    assert!(Context::for_test().emit::<incident_created>(&incident("a", 1)).await.is_ok());

    let small = builder().limits(|limits| limits.events(|events| events.max_payload(50))).build().unwrap();
    let handle = small.handle();
    let error = handle.emit::<incident_created>(&incident(&"x".repeat(50), 1)).await.unwrap_err();
    assert!(error.to_string().contains("has 75 bytes, and at most 50 are emitted"), "{error}");
    for id in ["", "a b", "é", &"x".repeat(257)] {
        let error = handle.emit::<incident_created>(&incident("a", 1)).id(id).await.unwrap_err();
        assert!(error.to_string().contains("is not 1 to 256 visible characters of ASCII"), "{id}: {error}");
    }
}
