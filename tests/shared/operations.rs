//! What operators see of the shared store: metrics, and readiness.

use std::{sync::Arc, time::Duration};

use mcp_runtime::{Server, store::Shared};
use mcp_tests::{
    external::{redis::RedisServer, skip},
    support::{BreakableStore, HttpRequest, HttpServer, within},
};
use tokio::time::sleep;

use crate::{
    TestStore,
    replicas::{agreed, server},
};

async fn started(built: &Server) -> HttpServer {
    HttpServer::of(built).await
}

/// The value of a metric.
fn value(built: &Server, line: &str) -> Option<f64> {
    let text = built.metrics().expect("metrics");
    text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' ')?.parse().ok())
}

fn count(built: &Server, operation: &str, outcome: &str) -> Option<f64> {
    let labels = format!("{{operation=\"{operation}\",outcome=\"{outcome}\"}}");
    value(built, &format!("mcp_server_store_operation_duration_seconds_count{labels}"))
}

const CONNECTED: &str = "mcp_server_store_connected";

#[tokio::test]
async fn operations_of_the_shared_store_are_counted_by_kind_and_outcome() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    let built = server(&shared).telemetry(|telemetry| telemetry.metrics()).build().expect("a server");
    within(async {
        let at = started(&built).await;
        let retry = agreed(&at).await;
        retry.send(at.address).await;
        let stored = count(&built, "put", "ok").expect("some");
        retry.send(at.address).await;
        assert_eq!(count(&built, "put", "conflict"), Some(1.0), "it was used before");
        assert_eq!(count(&built, "put", "ok"), Some(stored));
        assert_eq!(value(&built, CONNECTED), Some(1.0));
        store.set_broken(true);
        retry.send(at.address).await;
        assert_eq!(count(&built, "put", "error"), Some(1.0));
        assert_eq!(value(&built, CONNECTED), Some(0.0));
        store.set_broken(false);
        retry.send(at.address).await;
        assert_eq!(value(&built, CONNECTED), Some(1.0));
    })
    .await;
    // a server that shares nothing has none of these
    let alone = Server::builder("alone", "1").telemetry(|telemetry| telemetry.metrics()).build();
    assert!(!alone.expect("a server").metrics().expect("metrics").contains("mcp_server_store"));
}

async fn ready(at: &HttpServer) -> u16 {
    HttpRequest::new("GET").path("/readyz").send(at.address).await.status
}

async fn becomes(status: u16, at: &HttpServer) {
    for _ in 0..200 {
        if ready(at).await == status {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("/readyz does not become {status}");
}

#[tokio::test]
async fn a_server_may_be_unready_while_its_store_is_away_and_is_not_by_default() {
    for store in TestStore::all("a_server_may_be_unready") {
        let Some(redis) = &store.redis else { continue };
        within(async {
            let shared = store.open();
            let strict = server(&shared)
                .http(|http| http.readiness_needs_store())
                .telemetry(|telemetry| telemetry.metrics())
                .build()
                .expect("a server");
            let (at, lenient) = (started(&strict).await, HttpServer::start(server(&store.open())).await);
            becomes(200, &at).await;
            assert_eq!(value(&strict, CONNECTED), Some(1.0));
            redis.kill();
            becomes(503, &at).await;
            assert_eq!((ready(&lenient).await, value(&strict, CONNECTED)), (200, Some(0.0)));
            redis.restart(&[]);
            becomes(200, &at).await;
            redis.pause();
            becomes(503, &at).await;
            redis.go_on();
            becomes(200, &at).await;
        })
        .await;
    }
    let alone = Server::builder("alone", "1").http(|http| http.readiness_needs_store());
    assert_eq!(ready(&HttpServer::start(alone).await).await, 200, "it has no store that could be away");
}

#[tokio::test]
async fn a_replica_that_is_killed_leaves_nothing_in_redis_that_does_not_expire() {
    let redis = match RedisServer::start() {
        Ok(redis) => redis,
        Err(missing) => return skip("a_replica_that_is_killed_leaves_nothing", &missing),
    };
    let store = TestStore::redis(redis);
    let redis = store.redis.as_ref().expect("Redis");
    within(async {
        let at = HttpServer::start(server(&store.open())).await;
        for _ in 0..3 {
            agreed(&at).await.send(at.address).await;
        }
        let keys = redis.keys();
        assert!(keys.len() > 3 && keys.iter().all(|(_, expires)| *expires > 0), "{keys:?}");
    })
    .await;
}
