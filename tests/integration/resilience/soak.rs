//! The attacks of the other files at full size, which takes a while and much of a machine:
//!
//! ```sh
//! cargo test --release -p mcp-tests --test integration -- --ignored soak --nocapture --test-threads 1
//! ```

// the figures are what these tests are run for
#![allow(clippy::print_stdout)]

use std::{net::IpAddr, time::Instant};

use super::{modern, promptly};
use crate::prelude::*;

/// Returns at once
#[mcp_tool]
fn here() -> &'static str {
    "here"
}

/// Ends as a task
#[mcp_tool(task = required)]
async fn report() -> &'static str {
    "reported"
}

#[mcp_type]
struct Answer {
    yes: bool,
}

/// Asks, and uses the answer once
#[mcp_tool]
async fn confirm(ctx: &Context) -> Result<&'static str, ToolError> {
    let Answer { yes } = ctx.elicit::<Answer>("sure", "Sure?").await?;
    ctx.consume_once().await?;
    Ok(if yes { "done" } else { "not done" })
}

/// Reports a lot of progress, and returns
#[mcp_tool]
async fn flood(ctx: &Context, megabytes: u32) -> &'static str {
    let text = "x".repeat(16 << 10);
    for step in 1..=megabytes * 64 {
        ctx.progress(f64::from(step)).message(&text).send();
        tokio::task::yield_now().await;
    }
    "flooded"
}

const ADA: &str = "192.0.2.1";
const BOB: &str = "192.0.2.2";

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<here>()
        .tool::<report>()
        .tool::<confirm>()
        .tool::<flood>()
        .with_handle(drop)
        .http(|http| {
            http.client_address(|parts, _peer| {
                let header = parts.headers.get("x-client")?;
                header.to_str().ok()?.parse::<IpAddr>().ok()
            })
        })
}

async fn serve() -> HttpServer {
    HttpServer::start(builder()).await
}

/// The process's memory in KiB, of this test's client as well.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// How long a fresh client waits for its first answer.
async fn first_answer(client: &str, at: SocketAddr) -> Duration {
    let start = Instant::now();
    let reply = promptly(modern("here").header("x-client", client).send(at)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    start.elapsed()
}

fn listen() -> HttpRequest {
    HttpRequest::modern("s", "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_listen_streams_of_one_address() {
    // without names: all clients really have one address, and files are limited for both ends together
    let served = HttpServer::start(mcp_runtime::server!().tool::<here>().with_handle(drop)).await;
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..4096 {
        match tokio::time::timeout(Duration::from_secs(8), EventStream::open(&listen(), served.address)).await
        {
            Ok(Ok(stream)) => open.push(stream),
            Ok(Err(response)) => {
                assert_eq!(response.status, 503);
                refused += 1;
            }
            Err(_) => panic!("a connection is neither answered nor closed"),
        }
    }
    let start = Instant::now();
    let reply = promptly(modern("here").send(served.address)).await;
    println!(
        "4096 streams of one address: {} open, {refused} refused; a call of the same address: {:?}",
        open.len(),
        start.elapsed()
    );
    assert_eq!(reply.status, 200);
    assert!(!open.is_empty() && refused > 0);
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_sessions_that_are_started_and_ended() {
    let served = serve().await;
    let at = served.address;
    let mut connection = HttpConnection::open(at).await;
    let mut ended = [0; 2];
    for _ in 0..10_001 {
        connection.send(&HttpRequest::initialize("2025-11-25").header("x-client", ADA)).await;
        let session = connection.response().await.session();
        connection.send(&HttpRequest::new("DELETE").session(&session).header("x-client", ADA)).await;
        ended[usize::from(connection.response().await.status == 204)] += 1;
    }
    connection.send(&HttpRequest::initialize("2025-11-25").header("x-client", BOB)).await;
    let session = connection.response().await.session();
    connection.send(&HttpRequest::new("DELETE").session(&session).header("x-client", BOB)).await;
    assert_eq!(connection.response().await.status, 204);
    println!("10001 sessions: {} ended, {} refused; memory {} KiB", ended[1], ended[0], memory());
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_tasks_of_one_client() {
    let served = serve().await;
    let mut connection = HttpConnection::open(served.address).await;
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    let start = HttpRequest::modern(1, "tools/call", json!({ "name": "report", "_meta": meta }));
    let mut made = [0; 2];
    for _ in 0..10_000 {
        connection.send(&start.clone().header("x-client", ADA)).await;
        let reply = connection.response().await.json();
        made[usize::from(reply["result"]["resultType"] == "task")] += 1;
    }
    connection.send(&start.header("x-client", BOB)).await;
    let his = connection.response().await.json();
    println!("10000 tasks: {} kept, {} refused; memory {} KiB", made[1], made[0], memory());
    assert_eq!((his["result"]["resultType"].as_str(), made[1]), (Some("task"), 5_000), "{his}");
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_calls_that_are_used_once() {
    let served = serve().await;
    let mut connection = HttpConnection::open(served.address).await;
    let call = |mut params: Value, client: &str| {
        params["name"] = "confirm".into();
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
        HttpRequest::modern(1, "tools/call", params).header("x-client", client)
    };
    let mut confirm = async |client: &str| {
        connection.send(&call(json!({}), client)).await;
        let asked = connection.response().await.json();
        let answer = json!({ "sure": { "action": "accept", "content": { "yes": true } } });
        let params = json!({ "inputResponses": answer, "requestState": asked["result"]["requestState"] });
        connection.send(&call(params, client)).await;
        text_of(&connection.response().await.json()) == "done"
    };
    let mut done = [0; 2];
    for _ in 0..10_000 {
        done[usize::from(confirm(ADA).await)] += 1;
    }
    println!("10000 consumed calls: {} done, {} refused; memory {} KiB", done[1], done[0], memory());
    assert_eq!(done[1], 5_000);
    assert!(confirm(BOB).await);
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_unfinished_bodies() {
    let served = serve().await;
    let at = served.address;
    let before = memory();
    let text = "x".repeat(3 << 20);
    let bytes = HttpRequest::modern(1, "tools/call", json!({ "name": "here", "_meta": { "note": text } }));
    let bytes = bytes.header("x-client", ADA).bytes();
    let (_, most) = bytes.split_last().expect("a request");
    let mut open = Vec::new();
    for _ in 0..500 {
        let mut connection = HttpConnection::open(at).await;
        let _refused = tokio::time::timeout(Duration::from_millis(50), connection.try_write(most)).await;
        open.push(connection);
    }
    let grown = memory().saturating_sub(before) / 1024;
    let answer = first_answer(BOB, at).await;
    println!(
        "500 unfinished bodies of 3 MiB: {grown} MiB more; the first answer to another client after {answer:?}"
    );
    assert!(grown < 400, "{grown} MiB");
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_clients_that_do_not_read() {
    let served = serve().await;
    let at = served.address;
    let before = memory();
    let mut open = Vec::new();
    for _ in 0..20 {
        let arguments = json!({ "megabytes": 24 });
        let params = json!({ "name": "flood", "arguments": arguments, "_meta": { "progressToken": "p" } });
        let mut connection = HttpConnection::open(at).await;
        connection.send(&HttpRequest::modern(1, "tools/call", params).header("x-client", ADA)).await;
        open.push(connection);
    }
    let mut most = 0;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        most = most.max(memory().saturating_sub(before) / 1024);
    }
    let answer = first_answer(BOB, at).await;
    println!(
        "20 clients that do not read 24 MiB each: {most} MiB more; the first answer to another client after {answer:?}"
    );
    // 64 MiB may be unread
    assert!(most < 120, "{most} MiB");
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_a_rate_for_a_million_addresses() {
    let builder = mcp_runtime::server!().tool::<here>();
    let builder =
        builder.limits(|limits| limits.rate("2/1h")).http(|http| http.trusted_proxies(["127.0.0.1"]));
    let served = HttpServer::start(builder).await;
    let mut connection = HttpConnection::open(served.address).await;
    // all of a batch is written before the first response is read
    let mut from = async |addresses: &[String]| {
        let requests =
            addresses.iter().map(|address| modern("here").header("x-forwarded-for", address).bytes());
        connection.write(&requests.collect::<Vec<_>>().concat()).await;
        let mut statuses = Vec::with_capacity(addresses.len());
        for _ in addresses {
            statuses.push(connection.response().await.status);
        }
        statuses
    };
    let ada = [ADA.to_owned(), ADA.to_owned()];
    assert_eq!(from(&ada).await, [200; 2]);
    let (mut before, start) = (0, Instant::now());
    for batch in 0..50_000_u32 {
        let address = |n: u32| {
            let [_, high, middle, low] = n.to_be_bytes();
            if n.is_multiple_of(2) {
                format!("10.{high}.{middle}.{low}")
            } else {
                // each is a network of its own
                format!("2001:db8:{high:x}:{middle:02x}{low:02x}::1")
            }
        };
        let addresses: Vec<_> = (batch * 20..batch * 20 + 20).map(address).collect();
        assert_eq!(from(&addresses).await, [200; 20]);
        if batch == 5000 {
            // all of the table has been used once
            before = memory();
        }
    }
    let grown = memory().saturating_sub(before);
    println!("1000000 addresses in {:?}: {grown} KiB more since the first 100000", start.elapsed());
    assert!(grown < 4096, "{grown} KiB");
    assert_eq!(from(&ada).await, [429; 2], "she is still over her rate");
}

/// A legacy call of `flood` whose client leaves after the first event; returns that event's id.
async fn flood_and_leave(session: &str, client: &str, id: u32, at: SocketAddr) -> String {
    let meta = json!({ "progressToken": "p" });
    let params = json!({ "name": "flood", "arguments": { "megabytes": 1 }, "_meta": meta });
    let call = HttpRequest::legacy(session, id, "tools/call", &params).header("x-client", client);
    let mut stream = EventStream::open(&call, at).await.expect("a stream");
    let first = stream.next_event().await.expect("an event");
    first.id.expect("an id")
}

/// The last message that is kept of a stream.
async fn last_message(session: &str, client: &str, after: &str, at: SocketAddr) -> Option<Value> {
    let resume =
        HttpRequest::standalone_stream(session).header("x-client", client).header("last-event-id", after);
    let mut stream = EventStream::open(&resume, at).await.ok()?;
    let mut last = None;
    while let Some(message) = promptly(stream.next()).await {
        last = Some(message);
    }
    last
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_events_of_one_client() {
    let served = serve().await;
    let at = served.address;
    let start = async |client: &str| {
        promptly(HttpRequest::initialize("2025-11-25").header("x-client", client).send(at)).await.session()
    };
    let (hers, his) = (start(ADA).await, start(BOB).await);
    let undelivered = flood_and_leave(&his, BOB, 1, at).await;
    // 12 calls of 1 MiB, since what one stream keeps is bounded as well
    for id in 0..12 {
        flood_and_leave(&hers, ADA, id, at).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let result = last_message(&his, BOB, &undelivered, at).await.expect("the result is kept");
    println!("12 MiB of events of one client; memory {} KiB", memory());
    assert_eq!(text_of(&result), "flooded");
}

/// A resource of any name
#[mcp_resource(uri = "note://{+text}")]
fn note(text: String) -> String {
    text
}

/// Reports progress, and returns a text of so many bytes
#[mcp_tool]
async fn large(bytes: usize, ctx: &Context) -> String {
    ctx.progress(1).send();
    tokio::time::sleep(Duration::from_millis(20)).await;
    "x".repeat(bytes)
}

/// How much memory requests of one client take that it sends on a connection each, and whose replies it does not read.
async fn unread(requests: usize, request: &HttpRequest, at: SocketAddr) -> usize {
    let before = memory();
    let (mut open, mut most) = (Vec::new(), 0);
    for _ in 0..requests {
        let mut connection = HttpConnection::open(at).await;
        connection.send(request).await;
        open.push(connection);
        tokio::time::sleep(Duration::from_millis(5)).await;
        most = most.max(memory().saturating_sub(before) / 1024);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    most.max(memory().saturating_sub(before) / 1024)
}

#[tokio::test]
#[ignore = "soak"]
async fn soak_what_one_client_subscribes_to_and_does_not_read() {
    let builder = builder().tool::<large>().resource::<note>();
    let at = HttpServer::start(builder).await;
    let at = at.address;
    let uris: Vec<_> = (0..480).map(|n| format!("note://{n}/{}", "y".repeat(8100))).collect();
    let params = json!({ "notifications": { "resourceSubscriptions": uris } });
    let listen = HttpRequest::modern("s", "subscriptions/listen", params).header("x-client", ADA);
    let arguments =
        json!({ "name": "large", "arguments": { "bytes": 3_000_000 }, "_meta": { "progressToken": 1 } });
    let call = HttpRequest::modern(1, "tools/call", arguments).header("x-client", ADA);
    let session = HttpRequest::initialize("2025-11-25").header("x-client", BOB).send(at).await.session();
    let arguments =
        json!({ "name": "large", "arguments": { "bytes": 7_200_000 }, "_meta": { "progressToken": 1 } });
    let sent =
        HttpRequest::legacy(&session, 1, "tools/call", &arguments).header("x-client", BOB).send(at).await;
    let first = events(sent.text()).into_iter().find_map(|event| event.id).expect("an id");
    let resume =
        HttpRequest::standalone_stream(&session).header("Last-Event-ID", &first).header("x-client", BOB);
    for (what, requests, request, budget) in [
        ("listens with 480 URIs of 8 KiB", 60, &listen, 16),
        ("unread replies of 3 MB", 200, &call, 32),
        ("replays of a stream of 7.2 MB", 150, &resume, 32),
    ] {
        let grown = unread(requests, request, at).await;
        println!("{requests} {what}: {grown} MiB more");
        // and what sockets, one reply at a time, and the allocator keep
        assert!(grown < budget + 60, "{grown} MiB");
    }
}
