//! What operators see of Redis: readiness, and keys that expire.

use std::{sync::Arc, time::Duration};

use mcp_external_tests::{redis::RedisServer, skip};
use mcp_runtime::Server;
use mcp_tests::support::{HttpRequest, HttpServer, within};
use tokio::time::sleep;

use super::{servers, store};
use crate::shared::{
    operations::{CONNECTED, started, value},
    replicas::{agreed, server},
};

async fn ready(at: &HttpServer) -> u16 {
    HttpRequest::new("GET").path("/readyz").send(at.address).await.status
}

async fn becomes(status: u16, at: &HttpServer) {
    for _ in 0..12_000 {
        if ready(at).await == status {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("/readyz does not become {status}");
}

#[tokio::test]
async fn a_server_may_be_unready_while_its_store_is_away_and_is_not_by_default() {
    for (redis, store) in servers("a_server_may_be_unready") {
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
    let redis = Arc::new(redis);
    let store = store("redis", &redis);
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
