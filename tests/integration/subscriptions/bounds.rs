//! Bounds of subscriptions: their cost is limited, and closed ones cost nothing.

use tokio::runtime::Handle;

use super::fixture::{builder, listening};
use crate::prelude::*;

#[tokio::test]
async fn a_thousand_subscriptions_of_one_connection_leave_no_task() {
    let server = builder().limits(|limits| limits.max_subscribers(1000)).build().unwrap();
    let mut pipe = LineConnection::serve(&server, 1 << 16);
    pipe.start("warm", "tools/list", json!({ "_meta": meta() })).await;
    pipe.message().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    for id in 0..1000 {
        pipe.listen(&format!("s{id}"), json!({ "toolsListChanged": true })).await;
    }
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks + 1000);
    let params = json!({ "notifications": {}, "_meta": meta() });
    assert_eq!(pipe.request("over", "subscriptions/listen", params).await["error"]["code"], -32603);
    for id in 0..500 {
        pipe.send(&cancelled(format!("s{id}"))).await;
    }
    while Handle::current().metrics().num_alive_tasks() > tasks + 500 {
        tokio::task::yield_now().await;
    }
    // the others end with the connection
    pipe.abort();
    while Handle::current().metrics().num_alive_tasks() >= tasks {
        tokio::task::yield_now().await;
    }
    let mut streams = Vec::new();
    for _ in 0..1000 {
        streams.push(TestServer::of(&server).listen(json!({})).await);
    }
}

#[tokio::test]
async fn hundreds_of_streams_over_http_leave_nothing() {
    let limited = builder().limits(|limits| limits.max_subscribers(200));
    let server = limited.build().unwrap();
    let served = HttpServer::of(&server).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let filter = json!({ "toolsListChanged": true });
    for _ in 0..4 {
        let mut streams = Vec::new();
        while streams.len() < 100 {
            // those of the last iteration end once the server has noticed that they are closed
            match EventStream::open(&listening("s", &filter), served.address).await {
                Ok(events) => streams.push(events),
                Err(refused) => {
                    assert_eq!((refused.status, refused.code()), (503, -32603), "{refused:?}");
                }
            }
        }
        let refused = EventStream::open(&listening("over", &filter), served.address).await.err().unwrap();
        assert_eq!(refused.status, 503);
        // requests are still answered
        let list = HttpRequest::modern(1, "tools/list", json!({})).send(served.address).await;
        assert_eq!(list.status, 200);
    }
    while Handle::current().metrics().num_alive_tasks() > tasks {
        tokio::task::yield_now().await;
    }
}

/// URIs of nearly the longest that a subscription may have, so that few updates of them are many bytes.
fn uris() -> Vec<String> {
    (0..10).map(|n| format!("item://{n}?q={}", "x".repeat(8000))).collect()
}

/// Publishes updates of all of them, each time 80 KB if each were sent.
async fn flood(server: &Server, uris: &[String], times: usize) {
    let handle = server.handle();
    for n in 0..times {
        for uri in uris {
            handle.resource_updated(uri);
        }
        if n % 4 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// About as many bytes as the message of an update has, without encoding it again.
fn text_bytes(message: &Value) -> usize {
    100 + message["params"]["uri"].as_str().map_or(0, str::len)
}

/// A template that accepts any query
#[mcp_resource(uri = "item://{id}{?q}")]
fn queried(id: u32, q: Option<String>) -> String {
    format!("{id}{q:?}")
}

fn flooded() -> Server {
    mcp_runtime::server!().resource::<queried>().with_handle(drop).build().unwrap()
}

#[tokio::test]
async fn a_client_that_does_not_read_its_connection_uses_bounded_memory() {
    let (server, uris) = (flooded(), uris());
    let mut slow = LineConnection::serve(&server, 1 << 16);
    let mut legacy = LineConnection::serve(&server, 1 << 16);
    slow.listen("s", json!({ "resourceSubscriptions": uris })).await;
    legacy.initialize("2025-11-25").await;
    for uri in &uris {
        legacy.request("sub", "resources/subscribe", json!({ "uri": uri })).await;
    }
    flood(&server, &uris, 50).await;
    let mut other = LineConnection::serve(&server, 1 << 16);
    other.request("alive", "resources/templates/list", json!({ "_meta": meta() })).await;
    server.handle().resources_changed();
    // the last update of each resource is not lost, and the server keeps running
    slow.start("end", "resources/templates/list", json!({ "_meta": meta() })).await;
    legacy.start("end", "resources/templates/list", json!({})).await;
    for pipe in [&mut slow, &mut legacy] {
        let mut bytes = 0;
        let mut seen = std::collections::BTreeSet::new();
        loop {
            let message = pipe.message().await;
            bytes += text_bytes(&message);
            if let Some(uri) = message["params"]["uri"].as_str() {
                seen.insert(uri.to_owned());
            }
            if message["id"] == "end" {
                break;
            }
        }
        // the queue of a connection, a full stream, and each change once
        assert!(bytes < 2 << 20, "{bytes} bytes were kept");
        assert_eq!(seen.len(), uris.len());
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_stream_uses_bounded_memory() {
    let (server, uris) = (flooded(), uris());
    let served = HttpServer::of(&server).await;
    let filter = json!({ "resourceSubscriptions": uris });
    let mut connection = HttpConnection::over(narrow_socket(served.address).await);
    connection.send(&listening("s", &filter)).await;
    assert_eq!(connection.head().await.status, 200);
    let mut slow = EventStream::of(connection);
    slow.next().await.unwrap();
    flood(&server, &uris, 200).await;
    let list = HttpRequest::modern(1, "resources/templates/list", json!({})).send(served.address).await;
    assert_eq!(list.status, 200);
    server.handle().end_subscriptions();
    let mut bytes = 0;
    while let Some(message) = slow.next().await {
        bytes += text_bytes(&message);
    }
    // full socket buffers, and each change once
    assert!(bytes < 8 << 20, "{bytes} bytes were kept");
}

#[tokio::test]
async fn the_resources_of_a_subscription_are_limited() {
    let server = builder().limits(|limits| limits.max_subscriptions(2)).build().unwrap();
    let three = json!({ "resourceSubscriptions": ["item://1", "item://2", "item://3"] });
    let changes = TestServer::of(&server).listen(three.clone()).await;
    assert_eq!(changes.acknowledged(), &json!({ "resourceSubscriptions": ["item://1", "item://2"] }));

    let mut pipe = LineConnection::serve(&server, 1 << 16);
    pipe.initialize("2025-11-25").await;
    for (uri, code) in
        [("item://1", None), ("item://2", None), ("item://3", Some(-32603)), ("item://1", None)]
    {
        let reply = pipe.request("sub", "resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(reply["error"]["code"].as_i64(), code, "{reply}");
    }
    pipe.request("un", "resources/unsubscribe", json!({ "uri": "item://2" })).await;
    let reply = pipe.request("sub", "resources/subscribe", json!({ "uri": "item://3" })).await;
    assert_eq!(reply["result"], json!({}));
}

/// The most changes that wait for one subscriber.
const PENDING: usize = 1024;

#[tokio::test]
async fn a_stream_that_loses_a_change_ends_with_an_error() {
    let server = builder().limits(|limits| limits.max_subscriptions(PENDING + 1)).build().unwrap();
    let uris: Vec<_> = (0..=PENDING).map(|n| format!("item://{n}")).collect();
    let listened = json!({ "resourceSubscriptions": uris });
    let modern = TestServer::of(&server);
    let mut changes = modern.listen(listened.clone()).await;
    let legacy = TestServer::of(&server).legacy(Revision::V2025_11_25);
    let mut session = legacy.listen(listened).await;
    for uri in &uris {
        server.handle().resource_updated(uri);
    }
    for stream in [&mut changes, &mut session] {
        for uri in &uris[..PENDING] {
            assert_eq!(stream.next().await["params"]["uri"], **uri);
        }
    }
    assert_eq!(changes.ended().await["resultType"], "complete");
    // a session has no stream to end: it continues
    assert_eq!(session.try_next(), None);
    server.handle().resource_updated("item://3");
    assert_eq!(session.next().await["params"]["uri"], "item://3");
}

#[tokio::test]
async fn a_connection_without_a_subscription_permit_is_still_served() {
    let server = builder().limits(|limits| limits.max_subscribers(0)).build().unwrap();
    let mut pipe = LineConnection::serve(&server, 1 << 16);
    pipe.initialize("2025-11-25").await;
    let params = json!({ "name": "publish", "arguments": { "what": "tools" } });
    let reply = pipe.request("call", "tools/call", params).await;
    assert_eq!(text_of(&reply), "published");
}
