//! `events/list`.

use mcp_runtime::event;

use super::fixture::{incident, incident_created, incident_short, reset, titles};
use crate::prelude::*;

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
    handle.emit::<incident_created>(&incident("both", 1)).await.unwrap();
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
    handle.emit::<incident_created>(&incident("bad", 2)).await.unwrap();
    handle.emit::<incident_created>(&incident("worse", 1)).await.unwrap();
    let poll = json!({ "name": "worst", "arguments": { "severity": 4 }, "cursor": begun.value()["cursor"] });
    let polled = client.request("events/poll", poll).await;
    assert_eq!(titles(polled.value()), ["worse"]);
}
