//! Three replicas that share a store have the verdict of one, behind nginx.

use mcp_external_tests::{
    manifest_dir,
    nginx::Nginx,
    redis::RedisServer,
    replicas::{Replicas, free_addresses},
    skip,
};
use mcp_tests::{
    programs::{example::binary, lock},
    support::server_key,
};

use crate::{
    passes,
    suite::{self, Suite},
};

/// The `everything` example three times, on a Redis.
struct Cluster {
    replicas: Replicas,
    redis: RedisServer,
}

fn cluster() -> Result<Cluster, mcp_external_tests::Missing> {
    let redis = RedisServer::start()?;
    let key: String = server_key(11).iter().map(|byte| format!("{byte:02x}")).collect();
    let environment = [("MCP_SERVER_KEYS", key.as_str()), ("MCP_SHARED", &redis.url())];
    let replicas = Replicas::start(binary("everything"), manifest_dir().to_owned(), &environment);
    Ok(Cluster { replicas, redis })
}

#[test]
fn replicas_behind_nginx_pass_every_scenario() {
    let set = &suite::ALL;
    let started = Suite::install().and_then(|suite| {
        let cluster = cluster()?;
        let [at] = free_addresses();
        Ok((suite, Nginx::start(at, &cluster.replicas.addresses())?, cluster))
    });
    let (suite, nginx, cluster) = match started {
        Ok(started) => started,
        Err(missing) => return skip(&format!("conformance of replicas {}", set.name), &missing),
    };
    let _lock = lock("conformance");
    passes(&suite, set, &nginx.url());
    let lasting: Vec<_> = cluster.redis.keys().into_iter().filter(|(_, expires)| *expires == -1).collect();
    assert!(lasting.is_empty(), "{lasting:?}");
}
