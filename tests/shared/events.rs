//! Events of replicas on every store: what one emits reaches the subscribers of all once and in one order, and cursors are read
//! anywhere, also by a replica that came later.

use std::sync::Arc;

use mcp_runtime::{
    Server, event,
    prelude::*,
    store::Shared,
    testing::{Changes, TestServer},
};
use mcp_tests::support::server_key;
use serde_json::{Value, json};

use super::TestStore;

/// What happened
#[mcp_type]
struct Step {
    number: u32,
}

/// Something happened.
#[mcp_event(name = "stepped")]
fn stepped(#[mcp(payload)] step: &Step, #[mcp(default = 1)] every: u32) -> bool {
    step.number.is_multiple_of(every)
}

fn replica(store: Arc<dyn Shared>) -> Server {
    let builder = Server::builder("steps", "1").add(event::of::<stepped>()).shared(store);
    builder.stores(|stores| stores.keys([server_key(9)])).build().expect("a server")
}

async fn emit(server: &Server, number: u32) {
    let emitted = server.handle().emit::<stepped>(&Step { number }).id(number.to_string());
    emitted.await.expect("it is emitted");
}

async fn poll(server: &Server, cursor: &Value) -> Value {
    let params = json!({ "name": "stepped", "arguments": { "every": 2 }, "cursor": cursor });
    TestServer::of(server).request("events/poll", params).await.value().clone()
}

fn numbers(polled: &Value) -> Vec<u32> {
    let events = polled["events"].as_array().expect("events").iter();
    events.map(|event| event["data"]["number"].as_u64().unwrap().try_into().unwrap()).collect()
}

/// The next events of a stream.
async fn pushed(events: &mut Changes, count: usize) -> Vec<u32> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let message = events.next().await;
        if message["method"] == "notifications/events/event" {
            seen.push(message["params"]["data"]["number"].as_u64().unwrap().try_into().unwrap());
        }
    }
    seen
}

#[tokio::test]
async fn events_of_one_replica_reach_the_subscribers_of_all_once_on_every_store() {
    for store in TestStore::all("events") {
        let replicas = [replica(store.open()), replica(store.open())];
        let begun = poll(&replicas[0], &Value::Null).await;
        let mut streams = Vec::new();
        for server in &replicas {
            streams.push(TestServer::of(server).events("stepped", json!({})).await);
        }
        for number in 0..20 {
            emit(&replicas[usize::from(number % 3 == 0)], number).await;
        }
        let all: Vec<u32> = (0..20).collect();
        for stream in &mut streams {
            assert_eq!(pushed(stream, 20).await, all, "{}", store.name);
            assert!(stream.try_next().is_none(), "{}: once", store.name);
        }
        let even: Vec<u32> = all.iter().copied().filter(|number| number % 2 == 0).collect();
        let newest = replica(store.open());
        for server in replicas.iter().chain([&newest]) {
            let polled = poll(server, &begun["cursor"]).await;
            assert_eq!(
                (numbers(&polled), &polled["truncated"]),
                (even.clone(), &json!(false)),
                "{}",
                store.name
            );
        }
        // those that were there are gone, and what has happened is not
        drop((streams, replicas));
        emit(&newest, 20).await;
        let polled = poll(&replica(store.open()), &begun["cursor"]).await;
        assert_eq!((numbers(&polled).len(), &polled["truncated"]), (11, &json!(false)), "{}", store.name);
    }
}
