//! What operators see of Redis: readiness, and keys that expire.

use mcp_tests::support::{HttpRequest, HttpServer, text_of, within};

use super::servers;
use crate::shared::{
    operations::{CONNECTED, started, value},
    replicas::{agreed, server},
};

async fn ready(at: &HttpServer) -> u16 {
    HttpRequest::new("GET").path("/readyz").send(at.address).await.status
}

#[tokio::test]
async fn a_server_is_ready_while_its_store_is_away() {
    for (redis, store) in servers("a_server_is_ready_while_its_store_is_away") {
        within(async {
            let shared = store.open();
            let built = server(&shared).telemetry(|telemetry| telemetry.metrics()).build().expect("a server");
            let at = started(&built).await;
            let retry = agreed(&at).await;
            redis.kill();
            assert!(text_of(&retry.send(at.address).await.json()).contains("cannot be told"));
            assert_eq!((ready(&at).await, value(&built, CONNECTED)), (200, Some(0.0)));
        })
        .await;
    }
}
