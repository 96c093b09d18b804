//! A Redis that is away, hangs, has a half-open connection, or refuses.

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
use mcp_tests::support::{AnyStore, HttpServer, PATIENCE, PrintedText, soon, subscribe, text_of, within};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};

use super::{redis, until_back};
use crate::shared::replicas::{agreed, call, echo, server};

#[tokio::test]
async fn redis_may_end_hang_refuse_and_come_back() {
    let Some(redis) = redis("redis_may_end_hang_refuse_and_come_back") else { return };
    within(async {
        let store: AnyStore = AnyStore::new(Redis::at(redis.url()));
        let at = HttpServer::start(server(&store)).await;
        let hi = call("echo", json!({ "arguments": { "message": "hi" } }));
        let refused_in_time = async || {
            let retry = agreed(&at).await;
            let sent = retry.send(at.address);
            let reply = timeout(PATIENCE, sent).await.expect("an answer").json();
            let told = text_of(&reply);
            assert!(told.contains("cannot be told"), "{told}");
            assert_eq!(text_of(&hi.send(at.address).await.json()), "hi");
        };
        until_back(&at).await;

        redis.kill();
        refused_in_time().await;
        // a replica can start meanwhile
        let another = HttpServer::start(server(&store)).await;
        assert_eq!(text_of(&hi.send(another.address).await.json()), "hi");
        redis.restart(&[]);
        until_back(&at).await;
        until_back(&another).await;

        redis.pause();
        refused_in_time().await;
        refused_in_time().await;
        redis.go_on();
        until_back(&at).await;

        // a connection that is ended is opened again
        redis.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        until_back(&at).await;

        redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
        refused_in_time().await;
        redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
        until_back(&at).await;

        redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
        refused_in_time().await;
        redis.command(&["REPLICAOF", "NO", "ONE"]);
        until_back(&at).await;
    })
    .await;
}

/// What a proxy does with bytes.
#[derive(Clone, Copy, PartialEq)]
enum Passed {
    All,
    /// Those of the client alone: what is asked is carried out, and no answer comes back.
    Questions,
    None,
}

/// A proxy before Redis whose connections stay open when it passes nothing on, as those behind a firewall that has forgotten
/// them. Returns its port, what sets that, and how many connections it has accepted.
async fn swallowing_proxy(redis: u16) -> (u16, watch::Sender<Passed>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (set, passed) = watch::channel(Passed::All);
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = accepted.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let Ok(server) = TcpStream::connect(("127.0.0.1", redis)).await else { return };
            let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                (client.into_split(), server.into_split());
            let (questions, answers) = (passed.clone(), passed.clone());
            tokio::spawn(async move {
                let mut bytes = vec![0; 16 * 1024];
                while let Ok(length @ 1..) = from_client.read(&mut bytes).await {
                    let is_passed = *questions.borrow() != Passed::None;
                    if is_passed && to_server.write_all(&bytes[..length]).await.is_err() {
                        return;
                    }
                }
            });
            tokio::spawn(async move {
                let mut bytes = vec![0; 16 * 1024];
                while let Ok(length @ 1..) = from_server.read(&mut bytes).await {
                    let is_passed = *answers.borrow() == Passed::All;
                    if is_passed && to_client.write_all(&bytes[..length]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, set, accepted)
}

#[tokio::test]
async fn a_half_open_connection_to_the_store_ends_each_request_in_its_error_and_few_lines_of_the_log() {
    let Some(redis) = redis("a_half_open_connection_to_the_store") else { return };
    let log = PrintedText::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _subscribed = subscribe(subscriber);
    within(async {
        let (port, set, accepted) = swallowing_proxy(redis.port()).await;
        let store: AnyStore = AnyStore::new(Redis::at(format!("redis://127.0.0.1:{port}")));
        let at = HttpServer::start(server(&store)).await;
        let hi = call("echo", json!({ "arguments": { "message": "hi" } }));
        until_back(&at).await;
        let lines = || log.text().lines().filter(|line| line.contains("store")).count();
        for passed in [Passed::Questions, Passed::None] {
            let before = (lines(), accepted.load(Ordering::Relaxed));
            set.send_replace(passed);
            let mut retries = Vec::new();
            for _ in 0..50 {
                retries.push(agreed(&at).await);
            }
            // together, and each of them more than the store's two seconds before it has its answer
            let sent = retries.iter().map(|retry| {
                let (retry, address) = (retry.clone(), at.address);
                tokio::spawn(async move { text_of(&retry.send(address).await.json()).to_owned() })
            });
            let sent: Vec<_> = sent.collect();
            assert_eq!(text_of(&hi.send(at.address).await.json()), "hi", "it needs no store");
            for sent in sent {
                let told = timeout(PATIENCE, sent).await.expect("an answer").expect("no panic");
                assert!(told.contains("cannot be told"), "{told}");
            }
            let (lines, connections) = (lines() - before.0, accepted.load(Ordering::Relaxed) - before.1);
            assert!(lines <= 5, "{lines} lines for 50 requests: {}", log.text());
            assert!(connections <= 20, "{connections} attempts to connect for 50 requests");
            set.send_replace(Passed::All);
            until_back(&at).await;
            for retry in retries {
                let told = text_of(&retry.send(at.address).await.json()).to_owned();
                // what was carried out without an answer was consumed
                let may_be_used = passed == Passed::Questions && told.contains("used before");
                assert!(told == "withdrawn" || may_be_used, "{told}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_password_is_an_error_when_serving_begins() {
    let Some(redis) = redis("a_wrong_password_is_an_error") else { return };
    within(async {
        redis.command(&["CONFIG", "SET", "requirepass", "sesame"]);
        let starts = async |url: String| {
            let store: AnyStore = AnyStore::new(Redis::at(url));
            let server = server(&store).build().expect("a server");
            server.serve(tokio::io::empty(), tokio::io::sink()).await.map_err(|error| error.to_string())
        };
        let with = |user: &str| redis.url().replace("redis://", &format!("redis://{user}"));
        starts(with(":sesame@")).await.expect("the password");
        for wrong in [with(""), with(":open@"), with("eve:sesame@")] {
            let error = starts(wrong).await.expect_err("refused");
            assert!(error.contains("Redis refuses the connection") && !error.contains("open@"), "{error}");
        }
    })
    .await;
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
