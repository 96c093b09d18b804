//! Webhooks of replicas in processes of their own, which are killed.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{body::Bytes, http::Uri};
use mcp_tests::support::serve_router;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Replica, redis, serve_as_replica};
use crate::shared::webhooks::{add_at, request, server, subscription};

const PROCESS: &str = "redis::webhooks::a_replica_in_a_process";

#[tokio::test]
async fn a_replica_in_a_process() {
    serve_as_replica(|redis| server(Arc::new(redis))).await;
}

/// What has come: the path and the event of each delivery.
struct Endpoint {
    delivered: Arc<Mutex<Vec<(String, String)>>>,
    url: String,
}

impl Endpoint {
    async fn start() -> Self {
        let delivered = Arc::<Mutex<Vec<(String, String)>>>::default();
        let deliveries = delivered.clone();
        let app = axum::Router::new().fallback(move |uri: Uri, body: Bytes| {
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            if let Some(event) = body["eventId"].as_str() {
                deliveries.lock().unwrap().push((uri.path().to_owned(), event.to_owned()));
            }
            let challenge = body.get("challenge").cloned();
            async move {
                challenge.map_or_else(String::new, |challenge| json!({ "challenge": challenge }).to_string())
            }
        });
        Self { delivered, url: format!("http://{}/hook", serve_router(app).await) }
    }

    /// Those of some events that did not come at a path.
    fn missing(&self, path: &str, ids: &[String]) -> Vec<String> {
        let delivered = self.delivered.lock().unwrap();
        let came: HashSet<_> =
            delivered.iter().filter(|(at, _)| at == path).map(|(_, id)| id.as_str()).collect();
        ids.iter().filter(|id| !came.contains(id.as_str())).cloned().collect()
    }

    /// Waits until all of them have come at both paths.
    async fn gets_all(&self, ids: &[String]) {
        let missing = || [self.missing("/hook/a", ids), self.missing("/hook/b", ids)];
        for _ in 0..12_000 {
            if missing().iter().all(Vec::is_empty) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("of {} events did not come: {:?}", ids.len(), missing());
    }
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
    endpoint.gets_all(&["first".to_owned()]).await;

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
    endpoint.gets_all(&ids).await;
}
