//! What Redis keeps of rates, and its clock.

use std::time::Duration;

use mcp_runtime::store::{Rate, Redis, Shared as _, Table, Take, Taken};
use mcp_tests::support::within;
use tokio::time::sleep;

use super::{redis, store};
use crate::shared::rates::{let_in, three};

#[tokio::test]
async fn many_callers_free_no_one_and_what_they_have_used_expires_and_names_none_of_them() {
    let Some(redis) = redis("many_callers_free_no_one") else { return };
    within(async {
        let store = store("redis", &redis);
        let replicas = three(&store).await;
        assert_eq!(let_in(&replicas, "ada", "seldom", 30).await, 10);
        for caller in 0..60 {
            assert_eq!(let_in(&replicas, &format!("caller {caller}"), "seldom", 1).await, 1);
        }
        // a replica that has not refused her yet asks the store
        let replicas = three(&store).await;
        assert_eq!(let_in(&replicas, "ada", "seldom", 6).await, 0, "she is not forgotten");
        let keys = redis.keys();
        let rates: Vec<_> = keys.iter().filter(|(key, _)| key.contains("/rate/")).collect();
        assert_eq!(rates.len(), 2, "{keys:?}");
        for (key, expires) in rates {
            assert!((1..=3_600_000).contains(expires), "{key} {expires}");
        }
        let everything = redis.everything();
        assert!(!everything.contains("ada") && !everything.contains("caller 1"), "{everything}");

        assert!(let_in(&replicas, "ada", "briefly", 3).await > 0);
        sleep(Duration::from_millis(800)).await;
        let left = redis.keys();
        assert!(left.iter().all(|(key, _)| !key.contains("/briefly/")), "{left:?}");
    })
    .await;
}

#[tokio::test]
async fn a_clock_of_redis_that_goes_back_locks_no_one_out_for_longer_than_the_period() {
    let Some(redis) = redis("a_clock_of_redis_that_goes_back") else { return };
    within(async {
        let (store, table) = (Redis::at(redis.url()), Table::new("rates", 10, 1000, 100));
        let rate = Rate::new(1, Duration::from_millis(300));
        let take =
            async || store.take(&table, "key", Take { owner: "ada", rate, times: 1 }).await.expect("Redis");
        assert_eq!(take().await, Taken::Granted);
        // in a hundred years
        let answer =
            redis.command(&["ZADD", "mcp:{rates}:restored", "XX", "CH", "4900000000000000", "3:adakey"]);
        assert_eq!(answer.trim(), ":1");
        assert_eq!(take().await, Taken::Wait(Duration::from_millis(300)));
        sleep(Duration::from_millis(600)).await;
        assert_eq!(take().await, Taken::Granted);
    })
    .await;
}
