//! Redis and Valkey, as stores that replicas share. Each test starts servers of its own, and is skipped without
//! `redis-server`; not every system has Valkey.

mod changes;
mod environment;
mod killed;
mod left;
mod rates;
mod reached;
mod tasks;
mod trouble;
mod webhooks;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use mcp_external_tests::{redis::RedisServer, skip};
use mcp_runtime::{
    ServerBuilder,
    store::{Redis, Shared, Table},
    testing::check_shared,
};
use mcp_tests::{
    programs::{child::Guard, workspace_dir},
    support::{AnyStore, HttpRequest, HttpServer, PATIENCE, text_of, within},
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

use crate::shared::{TestStore, replicas::agreed};

/// A store on a server.
fn store(name: &'static str, server: &Arc<RedisServer>) -> TestStore {
    let url = server.url();
    let open = move || -> AnyStore { AnyStore::new(Redis::at(&url)) };
    let read = server.clone();
    let content = move || (read.everything(), read.keys());
    TestStore {
        name,
        open: Box::new(open),
        content: Some(Box::new(content)),
        _kept: Box::new(server.clone()),
    }
}

/// A server of its own for a test, which is skipped without one.
fn redis(test: &str) -> Option<Arc<RedisServer>> {
    RedisServer::start().map(Arc::new).map_err(|missing| skip(test, &missing)).ok()
}

/// A replica in a process of its own, which is killed when it is dropped.
struct Replica {
    process: Guard,
    address: SocketAddr,
}

const URL: &str = "MCP_TEST_REPLICA";

impl Replica {
    /// Starts the test of this name, which does nothing but [`serve_as_replica`].
    fn start(test: &str, redis: &RedisServer) -> Self {
        let process = Command::new(std::env::current_exe().expect("the test binary"))
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(URL, redis.url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process = Guard(process.expect("it starts"));
        let stdout = BufReader::new(process.0.stdout.take().expect("a pipe"));
        let address = stdout.lines().map_while(Result::ok).find_map(|line| {
            let (_, address) = line.split_once("listens at ")?;
            address.parse().ok()
        });
        Self { process, address: address.expect("it listens") }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.process.0.id()).expect("an id")).expect("an id");
        kill_process(pid, signal).expect("it is ours");
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _status = self.process.0.wait();
    }
}

/// The process of a [`Replica`]; as a test by itself it does nothing.
async fn serve_as_replica(builder: impl FnOnce(Redis) -> ServerBuilder) {
    let Ok(url) = std::env::var(URL) else { return };
    let server = HttpServer::start(builder(Redis::at(url))).await;
    writeln!(std::io::stdout(), "\nlistens at {}", server.address).expect("to say where it listens");
    // it is killed before
    sleep(PATIENCE).await;
}

/// A store on each server that this machine has.
pub(crate) fn stores(test: &str) -> Vec<TestStore> {
    let redis = redis(test).map(|server| store("redis", &server));
    let valkey = RedisServer::start_program("valkey-server", &[]);
    redis.into_iter().chain(valkey.ok().map(|server| store("valkey", &Arc::new(server)))).collect()
}

/// A call that has been served, as soon as the store is reached: until then it cannot be told whether its responses were used.
async fn until_back(at: &HttpServer) -> HttpRequest {
    let mut told = String::new();
    for _ in 0..12_000 {
        let fresh = agreed(at).await;
        told = text_of(&fresh.send(at.address).await.json()).to_owned();
        if told == "withdrawn" {
            return fresh;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("no call was served: {told}");
}

#[tokio::test]
async fn the_user_of_the_page_may_do_what_a_server_needs_and_no_more() {
    let Some(server) = redis("the_user_of_the_page_may_do_what_a_server_needs") else { return };
    let page = std::fs::read_to_string(workspace_dir().join("docs/cluster.md")).expect("the page");
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER mcp ")).expect("a user");
    let answer = server.command(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(answer, "+OK\r\n");
    within(async {
        let url = server.url().replace("redis://", "redis://mcp:password@");
        check_shared(&Redis::at(&url)).await;
        let other = Redis::at(&url).prefix("other");
        let table = Table::new("a", 1, 1, 100);
        assert!(other.get(&table, "a").await.is_err() && other.publish("a", b"").await.is_err());
    })
    .await;
}
