//! Events of replicas that share a store: what one emits reaches the subscribers of all, once, and cursors are read anywhere.

use std::error::Error as _;

use mcp_runtime::testing::Changes;

use super::fixture::{builder, incident, incident_created, titles};
use crate::prelude::*;

const NAME: &str = "incident.created";

fn replica(store: &BreakableStore) -> Server {
    let builder = builder().info(|info| info.name("replicas")).shared(store.clone());
    builder.stores(|stores| stores.keys([server_key(5)])).build().expect("a server")
}

async fn emit(server: &Server, title: &str) {
    let emitted = server.handle().emit::<incident_created>(&incident(title, 1)).id(title).await;
    assert_eq!(emitted.expect("it is emitted"), title);
}

/// Polls at a replica.
async fn poll(server: &Server, cursor: &Value, more: Value) -> Value {
    let mut params = json!({ "name": NAME, "cursor": cursor });
    params.as_object_mut().expect("params").extend(more.as_object().cloned().unwrap_or_default());
    TestServer::of(server).request("events/poll", params).await.value().clone()
}

/// The titles of the next events that a stream has.
async fn pushed(events: &mut Changes, count: usize) -> Vec<String> {
    let mut titles = Vec::new();
    while titles.len() < count {
        let message = events.next().await;
        if message["method"] == "notifications/events/event" {
            titles.push(message["params"]["data"]["title"].as_str().expect("a title").to_owned());
        }
    }
    titles
}

#[tokio::test]
async fn what_one_replica_emits_reaches_the_subscribers_of_all_once_and_in_one_order() {
    let store = BreakableStore::default();
    let replicas = [replica(&store), replica(&store), replica(&store)];
    let mut streams = Vec::new();
    for server in &replicas {
        streams.push(TestServer::of(server).events(NAME, json!({})).await);
    }
    let begun = poll(&replicas[0], &Value::Null, json!({})).await;
    let waiting = {
        let (server, cursor) = (replicas[2].clone(), begun["cursor"].clone());
        spawn(async move { poll(&server, &cursor, json!({ "timeoutMs": 10_000 })).await })
    };
    for n in 0..9 {
        emit(&replicas[n % 3], &n.to_string()).await;
    }
    let expected: Vec<_> = (0..9).map(|n| n.to_string()).collect();
    for stream in &mut streams {
        assert_eq!(pushed(stream, 9).await, expected);
        assert!(stream.try_next().is_none(), "once");
    }
    assert_eq!(titles(&waiting.await.unwrap())[0], "0");
    // a cursor of one replica is read by each, also by one that was not there
    let newest = replica(&store);
    let first = poll(&replicas[1], &begun["cursor"], json!({ "maxEvents": 4 })).await;
    assert_eq!((titles(&first), &first["truncated"]), (expected[..4].to_vec(), &json!(false)));
    for server in replicas.iter().chain([&newest]) {
        let rest = poll(server, &first["cursor"], json!({})).await;
        assert_eq!((titles(&rest), &rest["truncated"]), (expected[4..].to_vec(), &json!(false)));
    }
    // "now" is the same everywhere
    let now = poll(&newest, &Value::Null, json!({})).await;
    emit(&replicas[0], "later").await;
    assert_eq!(titles(&poll(&replicas[1], &now["cursor"], json!({})).await), ["later"]);
}

#[tokio::test]
async fn replicas_that_emit_at_once_lose_and_repeat_nothing() {
    let store = BreakableStore::default();
    let replicas = [replica(&store), replica(&store)];
    let begun = poll(&replicas[0], &Value::Null, json!({})).await;
    let mut emitting = tokio::task::JoinSet::new();
    for n in 0..40 {
        let server = replicas[n % 2].clone();
        emitting.spawn(async move { emit(&server, &n.to_string()).await });
    }
    emitting.join_all().await;
    let mut orders = Vec::new();
    for server in &replicas {
        let polled = poll(server, &begun["cursor"], json!({})).await;
        assert_eq!(polled["truncated"], false);
        orders.push(titles(&polled));
    }
    assert_eq!(orders[0], orders[1]);
    let mut all: Vec<u32> = orders[0].iter().map(|title| title.parse().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..40).collect::<Vec<_>>());
}

/// A stream of each replica, all of which have had the first event.
async fn followed(replicas: &[Server]) -> Vec<Changes> {
    let mut streams = Vec::new();
    for server in replicas {
        streams.push(TestServer::of(server).events(NAME, json!({})).await);
    }
    emit(&replicas[0], "before").await;
    for stream in &mut streams {
        assert_eq!(pushed(stream, 1).await, ["before"]);
    }
    streams
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_emitting_is_its_error_and_what_is_emitted_again_comes_once_and_without_a_gap()
 {
    let store = BreakableStore::default();
    let replicas = [replica(&store), replica(&store), replica(&store)];
    let mut streams = followed(&replicas).await;
    let begun = poll(&replicas[1], &Value::Null, json!({})).await;
    store.set_broken(true);
    for title in ["one", "two"] {
        let emit = replicas[0].handle().emit::<incident_created>(&incident(title, 1)).id(title);
        let error = emit.await.expect_err("the store is away");
        assert!(error.to_string().contains("the event `incident.created`"), "{error}");
        assert!(error.source().is_some(), "the error of the store: {error:?}");
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    store.set_broken(false);
    tokio::time::sleep(Duration::from_secs(20)).await;
    emit(&replicas[0], "one").await;
    emit(&replicas[1], "after").await;
    let expected = ["one", "after"];
    for stream in &mut streams {
        for title in expected {
            let message = stream.next().await;
            assert_eq!(message["params"]["data"]["title"], title, "without a gap before it: {message}");
        }
        assert!(stream.try_next().is_none(), "once");
    }
    for server in &replicas {
        let polled = poll(server, &begun["cursor"], json!({})).await;
        assert_eq!(
            (titles(&polled), &polled["truncated"]),
            (expected.map(String::from).to_vec(), &json!(false))
        );
    }
}

#[tokio::test]
async fn what_a_function_of_one_process_decides_is_an_error_where_replicas_share_a_store() {
    let server = replica(&BreakableStore::default());
    let emit = server.handle().emit::<incident_created>(&incident("a", 1)).to(|_: &Principal| true);
    let error = emit.await.unwrap_err().to_string();
    assert!(error.contains("is emitted with `.to(..)`") && error.contains("Option<&Principal>"), "{error}");
}
