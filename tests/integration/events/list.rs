//! `events/list`.

use mcp_runtime::{Principal, event, testing::TestServer};
use mcp_tests::support::Transport;
use serde_json::{Value, json};

use super::fixture::{builder, connect, incident_created, incident_short, reset, serve};

#[tokio::test]
async fn the_list_has_arguments_payload_and_ways_of_delivery_over_every_transport() {
    for transport in Transport::ALL {
        let (server, _handle) = serve();
        let (entries, _) = connect(&server, transport).await.list("events/list", "events").await;
        let names: Vec<_> = entries.iter().map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["incident.created", "incident.short", "reset"]);
        assert_eq!(
            entries[0],
            json!({
                "name": "incident.created",
                "description": "A new incident was opened.",
                "delivery": entries[0]["delivery"],
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "severity": {
                            "type": "integer",
                            "description": "The least severity",
                            "default": 4,
                            "minimum": 1,
                            "maximum": 4
                        }
                    }
                },
                "payloadSchema": {
                    "type": "object",
                    "properties": {
                        "title": { "type": "string" },
                        "severity": { "type": "integer", "description": "1 is the worst", "minimum": 0, "maximum": 255 }
                    },
                    "required": ["title", "severity"]
                },
                "_meta": { "team": "ops" }
            }),
            "{transport:?}"
        );
        assert!(entries[0]["delivery"].as_array().unwrap().contains(&json!("poll")));
        assert_eq!(entries[2]["delivery"], json!(["poll"]));
        let summary = &entries[1]["payloadSchema"]["properties"];
        assert!(summary.get("seen_by").is_some() && summary.get("severity").is_none(), "{summary}");
    }
}

#[tokio::test]
async fn the_list_has_pages_and_those_events_that_a_caller_may_see() {
    let paged = builder().lists(|lists| lists.page_size(2)).build().unwrap();
    let (entries, pages) = connect(&paged, Transport::Stdio).await.list("events/list", "events").await;
    assert_eq!((entries.len(), pages), (3, 2));

    let hidden = builder().lists(|lists| {
        lists.visible(|caller, item| {
            caller.is_some_and(|ada| ada.subject() == "ada") || item.name() != "reset"
        })
    });
    let server = TestServer::new(hidden).unwrap();
    let names = |page: &Value| page["events"].as_array().unwrap().len();
    let server = server.caller(Principal::new("x", "ada"));
    assert_eq!(names(server.request("events/list", json!({})).await.value()), 3);
    let server = server.caller(Principal::new("x", "bob"));
    assert_eq!(names(server.request("events/list", json!({})).await.value()), 2);
    let refused = server.request("events/poll", json!({ "name": "reset" })).await;
    let error = refused.expect_code(-32023);
    assert_eq!(error.error().unwrap().data, Some(json!({ "kind": "event" })));
}

#[tokio::test]
async fn a_mount_has_its_own_names_and_one_emission_reaches_both() {
    let of = || mcp_runtime::server!().add(event::of::<incident_created>());
    let server = mcp_runtime::server!().mount("eu", of()).mount("us", of()).build().unwrap();
    let handle = server.handle();
    let client = TestServer::of(&server);
    let mut cursors = Vec::new();
    for name in ["eu_incident.created", "us_incident.created"] {
        let begun = client.request("events/poll", json!({ "name": name })).await;
        cursors.push((name, begun.value()["cursor"].clone()));
    }
    handle.emit::<incident_created>(&super::fixture::incident("both", 1)).await.unwrap();
    for (name, cursor) in cursors {
        let polled = client.request("events/poll", json!({ "name": name, "cursor": cursor })).await;
        assert_eq!(polled.value()["events"][0]["name"], name);
    }
}

#[tokio::test]
async fn transforms_change_what_clients_see_of_events_and_what_functions_get() {
    let changed = mcp_runtime::server!()
        .add(event::of::<incident_created>())
        .add(event::of::<incident_short>())
        .add(event::of::<reset>())
        .transform(|item| {
            item.only("incident.created", |item| {
                item.describe("The worst.").fix("severity", 1).rename("worst")
            })
        });
    let server = changed.build().unwrap();
    let handle = server.handle();
    let client = TestServer::of(&server);
    let list = client.request("events/list", json!({})).await;
    let worst = &list.value()["events"][0];
    assert_eq!((&worst["name"], &worst["description"]), (&json!("worst"), &json!("The worst.")));
    assert_eq!(worst["inputSchema"], json!({ "type": "object", "properties": {} }));
    let begun =
        client.request("events/poll", json!({ "name": "worst", "arguments": { "severity": 4 } })).await;
    handle.emit::<incident_created>(&super::fixture::incident("bad", 2)).await.unwrap();
    handle.emit::<incident_created>(&super::fixture::incident("worse", 1)).await.unwrap();
    let poll = json!({ "name": "worst", "arguments": { "severity": 4 }, "cursor": begun.value()["cursor"] });
    let polled = client.request("events/poll", poll).await;
    assert_eq!(super::fixture::titles(polled.value()), ["worse"]);
}
