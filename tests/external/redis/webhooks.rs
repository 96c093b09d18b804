//! Webhooks of replicas in processes of their own, which are killed.

use std::collections::HashSet;

use mcp_tests::support::{AnyStore, soon};

use super::{Replica, redis, serve_as_replica};
use crate::shared::webhooks::{Endpoint, add_at, request, server, subscription};

const PROCESS: &str = "redis::webhooks::a_replica_in_a_process";

#[tokio::test]
async fn a_replica_in_a_process() {
    serve_as_replica(|redis| server(AnyStore::new(redis))).await;
}

/// Those of some events that did not come at a path.
fn missing(endpoint: &Endpoint, path: &str, ids: &[String]) -> Vec<String> {
    let received = endpoint.received.lock().unwrap();
    let came = received.iter().filter(|(at, ..)| at == path);
    let came: HashSet<_> = came.filter_map(|(.., body)| body["eventId"].as_str()).collect();
    ids.iter().filter(|id| !came.contains(id.as_str())).cloned().collect()
}

/// Waits until all of them have come at both paths.
async fn gets_all(endpoint: &Endpoint, ids: &[String]) {
    let missing = || ["/hook/a", "/hook/b"].map(|path| missing(endpoint, path, ids));
    assert!(soon(|| missing().iter().all(Vec::is_empty)).await, "of {}: {:?}", ids.len(), missing());
}

#[tokio::test]
async fn every_event_reaches_each_endpoint_also_when_the_processes_that_deliver_are_killed() {
    let Some(redis) = redis("every_event_reaches_each_endpoint") else { return };
    let mut processes = [0; 3].map(|_| Replica::start(PROCESS, &redis)).into_iter();
    let endpoint = Endpoint::start().await;
    let addresses: Vec<_> = processes.as_slice().iter().map(|process| process.address).collect();
    for path in ["a", "b"] {
        let params = subscription(&format!("{}/{path}", endpoint.url), 1);
        let reply = request(addresses[1], "events/subscribe", params).await;
        assert!(reply["result"]["id"].is_string(), "{reply}");
    }
    add_at(addresses[2], "first").await;
    gets_all(&endpoint, &["first".to_owned()]).await;

    let mut ids = Vec::new();
    for gone in 0..3 {
        // any but one are killed, so that the one that delivers is among them, with events on their way
        for n in 0..15 {
            let id = format!("{gone}-{n}");
            add_at(addresses[gone + n % (3 - gone)], &id).await;
            ids.push(id);
        }
        if gone < 2 {
            drop(processes.next());
        }
    }
    gets_all(&endpoint, &ids).await;
}
