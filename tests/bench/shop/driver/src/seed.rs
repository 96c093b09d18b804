//! What Redis has before a run: 100 popular products, and 1,000 users with a cart and 20 orders.

use crate::Failure;

pub(crate) const USERS: u64 = 1000;

pub(crate) async fn seed(url: &str) -> Result<(), Failure> {
    let mut redis = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    redis::cmd("FLUSHALL").exec_async(&mut redis).await?;
    let mut pipeline = redis::pipe();
    for product in 0..100 {
        pipeline.zadd("popular", product * 10, product).ignore();
    }
    for user in 0..USERS {
        let items: Vec<(u64, u64)> = (0..3).map(|item| (user * 3 + item, item + 1)).collect();
        pipeline.hset_multiple(format!("cart:{user}"), &items).ignore();
        let orders: Vec<String> = (0..20).map(|order| format!("{order}x1")).collect();
        pipeline.rpush(format!("history:{user}"), orders).ignore();
    }
    pipeline.exec_async(&mut redis).await?;
    Ok(())
}
