//! A store that is away, slow, out of order or refuses; servers without keys, and with other keys.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_runtime::{
    Server,
    store::{Redis, Shared, Table},
};
use mcp_tests::support::{AnyStore, BreakableStore, HttpRequest, HttpServer, server_key, soon, text_of};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::sleep,
};

use super::{
    TestStore,
    replicas::{agreed, call, echo, server},
};

#[tokio::test]
async fn a_server_without_keys_does_not_start() {
    let store = BreakableStore::default();
    let built =
        Server::builder("replicas", "1").tool::<echo>().shared(store.clone()).build().expect("a server");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let refused = built.clone().serve_http_on(listener).await.expect_err("no keys").to_string();
    assert!(refused.contains("has no keys") && refused.contains("MCP_SERVER_KEYS"), "{refused}");
    let (read, write) = tokio::io::duplex(64);
    assert!(built.serve(read, write).await.is_err());
    assert!(built.into_service().is_err());
    assert_eq!(store.operations(), 0);
}

#[tokio::test]
async fn a_replica_with_other_keys_does_not_start() {
    for store in TestStore::all("a_replica_with_other_keys_does_not_start") {
        let with = |name: &str, keys: &[u8]| {
            let keys: Vec<_> = keys.iter().map(|first| server_key(*first)).collect();
            let builder = Server::builder(name, "1").stores(|stores| stores.keys(keys));
            builder.tool::<echo>().shared(store.open()).build().expect("a server")
        };
        let starts = async |server: Server| {
            let (read, write) = tokio::io::duplex(64);
            drop(tokio::io::split(write));
            server.serve(read, tokio::io::sink()).await.map_err(|error| error.to_string())
        };
        starts(with("replicas", &[1])).await.expect("the first");
        let refused = starts(with("replicas", &[2])).await.expect_err("other keys");
        assert!(refused.contains("have other keys"), "{}: {refused}", store.name);
        starts(with("another", &[2])).await.expect("another server");
        // each step of a rotation
        for keys in [&[1, 2], &[2, 1], &[2]] as [&[u8]; 3] {
            starts(with("replicas", keys)).await.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        }
        starts(with("replicas", &[1])).await.expect_err("the old key is gone");
    }
}

#[tokio::test]
async fn requests_that_need_no_store_do_not_ask_it() {
    let store = BreakableStore::default();
    let shared: AnyStore = AnyStore::new(store.clone());
    let at = HttpServer::start(server(&shared)).await;
    let hi = call("echo", json!({ "arguments": { "message": "hi" } }));
    assert_eq!(text_of(&hi.send(at.address).await.json()), "hi");
    let before = store.operations();
    for _ in 0..20 {
        assert_eq!(text_of(&hi.send(at.address).await.json()), "hi");
    }
    assert_eq!(store.operations(), before);
}

#[tokio::test]
async fn a_store_out_of_order_refuses_what_needs_it_and_nothing_else() {
    let store = BreakableStore::default();
    let shared: AnyStore = AnyStore::new(store.clone());
    let at = HttpServer::start(server(&shared)).await;
    let lenient = server(&shared).stores(|stores| stores.allow_unchecked_sessions());
    let lenient = HttpServer::start(lenient).await;
    let initialize = HttpRequest::initialize("2025-11-25").header("x-user", "ada");
    let id = initialize.send(at.address).await.session();
    let list = HttpRequest::legacy(&id, 1, "tools/list", &json!({})).header("x-user", "ada");
    let end = HttpRequest::new("DELETE").session(&id).header("x-user", "ada");
    let retry = agreed(&at).await;

    store.set_broken(true);
    let hi = call("echo", json!({ "arguments": { "message": "hi" } }));
    assert_eq!(text_of(&hi.send(at.address).await.json()), "hi");
    assert!(text_of(&retry.send(at.address).await.json()).contains("cannot be told"), "refused, not allowed");
    let statuses = [list.send(at.address).await.status, end.send(at.address).await.status];
    assert_eq!(statuses, [503, 503], "a session may have ended, and does not end");
    assert_eq!(list.send(lenient.address).await.status, 200);

    store.set_broken(false);
    assert_eq!(list.send(at.address).await.status, 200);
    assert_eq!(text_of(&retry.send(at.address).await.json()), "withdrawn");
}

/// The first command in these bytes, which it takes out of them.
fn take_command(bytes: &mut Vec<u8>) -> Option<Vec<String>> {
    let mut at = 0;
    let mut line = |length: Option<usize>| {
        let rest = bytes.get(at..)?;
        let end = length.or_else(|| rest.windows(2).position(|two| two == b"\r\n"))?;
        let text = String::from_utf8_lossy(rest.get(..end)?).into_owned();
        at += end + 2;
        Some(text)
    };
    let number = |text: String| text[1..].parse::<usize>().expect("a number");
    let words = number(line(None)?);
    let command = (0..words).map(|_| {
        let length = number(line(None)?);
        line(Some(length))
    });
    let command: Option<Vec<String>> = command.collect();
    if at > bytes.len() {
        return None;
    }
    bytes.drain(..at);
    command
}

/// What answers as Redis would, with what a function says to a command. Returns its URL, and how many connections it has
/// accepted.
async fn imitated_redis(
    answer: impl Fn(&str) -> &'static str + Clone + Send + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("an address"));
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let answer = answer.clone();
            tokio::spawn(async move {
                let (mut bytes, mut chunk) = (Vec::new(), [0; 1024]);
                while let Ok(length @ 1..) = stream.read(&mut chunk).await {
                    bytes.extend_from_slice(&chunk[..length]);
                    while let Some(command) = take_command(&mut bytes) {
                        if stream.write_all(answer(&command[0]).as_bytes()).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (url, accepted)
}

const HELLO: &str = "%1\r\n$5\r\nproto\r\n:3\r\n";

#[tokio::test]
async fn a_redis_with_too_many_clients_is_tried_again() {
    let is_crowded = Arc::new(AtomicBool::new(true));
    let crowded = is_crowded.clone();
    let (url, _) = imitated_redis(move |command| match command {
        "HELLO" if crowded.load(Ordering::Relaxed) => "-ERR max number of clients reached\r\n",
        "HELLO" => HELLO,
        "HMGET" => "*2\r\n_\r\n_\r\n",
        _ => "+PONG\r\n",
    })
    .await;
    let (store, table) = (Redis::at(url), Table::new("a", 1, 1, 100));
    store.open().await.expect("it may have room later");
    assert!(store.get(&table, "a").await.is_err());
    is_crowded.store(false, Ordering::Relaxed);
    while store.get(&table, "a").await.is_err() {
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_redis_that_has_become_a_replica_is_left_whichever_version_it_has() {
    for refusal in [
        // of a script, up to 6.2 and from 7 on
        "-ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica. \r\n",
        "-READONLY You can't write against a read only replica. script: 0, on @user_script:9.\r\n",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
    ] {
        let (url, accepted) = imitated_redis(move |command| match command {
            "HELLO" => HELLO,
            "EVALSHA" => refusal,
            _ => "+PONG\r\n",
        })
        .await;
        let (store, table) = (Redis::at(url), Table::new("a", 1, 1, 100));
        store.open().await.expect("it is there");
        assert!(store.remove(&table, "a").await.is_err());
        assert!(soon(|| accepted.load(Ordering::Relaxed) == 2).await, "{refusal}");
    }
}

#[test]
fn a_url_that_cannot_work_is_an_error_of_build() {
    let refused = |store: Redis| {
        let built = Server::builder("replicas", "1").tool::<echo>().shared(store).build();
        built.expect_err("not a URL of Redis").to_string()
    };
    for wrong in ["http://127.0.0.1", "redis+cluster://127.0.0.1", "redis://", "redis://:sesame@", "sesame"] {
        let error = refused(Redis::at(wrong));
        assert!(error.contains("Redis") && !error.contains("sesame"), "{wrong}: {error}");
    }
    let error = refused(Redis::at("rediss://127.0.0.1").root_certificates("no certificate"));
    assert!(error.contains("not in PEM"), "{error}");
    let error = refused(Redis::at("redis://127.0.0.1").root_certificates("no certificate"));
    assert!(error.contains("write `rediss://`"), "{error}");
}
