//! A replica that Redis has cut off.

use std::time::Duration;

use mcp_tests::support::{PATIENCE, within};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{redis, store};
use crate::shared::changes::{about, call, everything, listen, replica};

#[tokio::test]
async fn a_replica_that_was_cut_off_tells_its_subscribers_when_it_is_back() {
    let Some(redis) = redis("a_replica_that_was_cut_off_tells_its_subscribers") else { return };
    let store = store("redis", &redis);
    within(async {
        let (one, two) = (replica(store.open()).await, replica(store.open()).await);
        let mut stream = listen("ada", &two).await;
        sleep(Duration::from_millis(300)).await;
        redis.kill();
        call("ada", "report", json!({ "uri": "test://open" }), &one).await;
        redis.restart(&[]);
        everything(&mut stream).await;
        // and changes arrive again, after what may have been said twice
        sleep(Duration::from_secs(2)).await;
        call("bob", "report", json!({ "uri": "test://own" }), &one).await;
        call("ada", "report", json!({ "uri": "test://own" }), &one).await;
        while about(&timeout(PATIENCE, stream.message()).await.expect("a change")) != "test://own" {}
    })
    .await;
}
