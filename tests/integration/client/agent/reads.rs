//! Reads are kept as long as the server says, for those that it says, and one request serves all readers of a URI.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_runtime::{
    Revision, Server,
    client::{Client, Refresh},
    prelude::*,
};
use serde_json::json;
use tokio::{sync::Semaphore, task::JoinSet};

use super::{call, scripted, text};
use crate::client::{Transport, connect, pinned, until, within};

/// How often resources were read, and whether reads may end.
struct Reads {
    count: AtomicUsize,
    gate: Semaphore,
}

impl Reads {
    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    async fn next(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        let _open = self.gate.acquire().await;
        number.to_string()
    }
}

/// May not be kept
#[mcp_resource(uri = "count://fleeting")]
async fn fleeting(reads: &Reads) -> String {
    reads.next().await
}

/// May be kept for its caller
#[mcp_resource(uri = "count://kept", cache(ttl = "1h"))]
async fn kept(reads: &Reads) -> String {
    reads.next().await
}

/// May be kept for all
#[mcp_resource(uri = "count://public", cache(ttl = "1h", public))]
async fn public(reads: &Reads) -> String {
    reads.next().await
}

fn server(open: usize) -> (Server, Arc<Reads>) {
    let reads = Arc::new(Reads { count: AtomicUsize::new(0), gate: Semaphore::new(open) });
    let builder = mcp_runtime::server!().resource::<fleeting>().resource::<kept>().resource::<public>();
    (builder.state(reads.clone()).with_handle(drop).build().unwrap(), reads)
}

async fn read(client: &Client, uri: &str) -> String {
    within(client.read(uri).into_future()).await.unwrap().text().unwrap()
}

#[tokio::test]
async fn a_hundred_readers_of_one_uri_make_one_request() {
    for (way, uri) in [
        (Transport::Memory, "count://fleeting"),
        (Transport::Http, "count://fleeting"),
        (Transport::Http, "count://kept"),
    ] {
        let (server, reads) = server(0);
        let connected = connect(&server, way, pinned(None)).await.unwrap();
        let toolset = connected.client.toolset("x");
        within(toolset.tools()).await.unwrap();
        let mut readers = JoinSet::new();
        for _ in 0..100 {
            let toolset = toolset.clone();
            readers.spawn(async move { text(&toolset, "x.resources_read", json!({ "uri": uri })).await });
        }
        until(|| reads.count() == 1).await;
        reads.gate.add_permits(100);
        let texts = within(readers.join_all()).await;
        assert_eq!(texts.iter().filter(|text| *text == "1").count(), 100, "{way:?}");
        assert_eq!(reads.count(), 1);
        assert_eq!((toolset.counters().cache_hits, toolset.counters().cache_misses), (99, 1));

        // which is not a way to keep what must not be kept
        let next = text(&toolset, "x.resources_read", json!({ "uri": uri })).await;
        assert_eq!(next, if uri == "count://kept" { "1" } else { "2" }, "{way:?}");
    }
}

#[tokio::test]
async fn a_reader_who_gives_up_does_not_fail_the_others() {
    let (server, reads) = server(0);
    let client = connect(&server, Transport::Memory, pinned(None)).await.unwrap().client;
    let reader = |client: &Client| {
        let client = client.clone();
        tokio::spawn(async move { read(&client, "count://fleeting").await })
    };
    let first = reader(&client);
    until(|| reads.count() == 1).await;
    let second = reader(&client);
    // the second waits for the first one's request
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(reads.count(), 1);
    first.abort();
    until(|| reads.count() == 2).await;
    reads.gate.add_permits(10);
    assert_eq!(within(second).await.unwrap(), "2");
}

#[tokio::test]
async fn a_reported_change_drops_what_it_names_and_the_next_read_is_fresh() {
    for revision in [None, Some(Revision::V2025_11_25)] {
        let (server, _) = server(100);
        let changes = Arc::new(Mutex::new(0));
        let seen = changes.clone();
        let options = pinned(revision).on_change(move |_| *seen.lock().unwrap() += 1);
        let client = connect(&server, Transport::Memory, options).await.unwrap().client;
        let toolset = client.toolset("x");
        let kept = async || text(&toolset, "x.resources_read", json!({ "uri": "count://kept" })).await;
        let public = async || text(&toolset, "x.resources_read", json!({ "uri": "count://public" })).await;
        let _subscription = within(client.subscribe("count://kept", |_| {})).await.unwrap();
        assert_eq!((kept().await, public().await, kept().await), ("1".into(), "2".into(), "1".into()));

        let handle = server.handle();
        handle.resource_updated("count://kept");
        until(|| *changes.lock().unwrap() == 1).await;
        assert_eq!((kept().await, public().await, kept().await), ("3".into(), "2".into(), "3".into()));

        // the list tells of the change only where the client listens
        let before = *changes.lock().unwrap();
        within(async {
            while *changes.lock().unwrap() == before {
                handle.resources_changed();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        assert_eq!((kept().await, public().await), ("4".into(), "5".into()), "{revision:?}");
        let fresh = within(client.read("count://kept").refresh(Refresh::Yes).into_future()).await.unwrap();
        assert_eq!(fresh.text().unwrap(), "6");
    }
}

#[tokio::test]
async fn what_is_private_never_reaches_another_caller() {
    let (server, _) = server(1000);
    let token = Arc::new(Mutex::new("ada"));
    let current = token.clone();
    let options = Client::builder().headers_with(move |headers| {
        let value = format!("Bearer {}", current.lock().unwrap());
        headers.insert("authorization", value.parse().unwrap());
        // differs each time, and is not the caller's
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let next = NEXT.fetch_add(1, Ordering::SeqCst);
        headers.insert("traceparent", next.to_string().parse().unwrap());
    });
    let connected = connect(&server, Transport::Http, options).await.unwrap();
    let client = &connected.client;
    assert_eq!(
        (read(client, "count://kept").await, read(client, "count://public").await),
        ("1".into(), "2".into())
    );
    assert_eq!(read(client, "count://kept").await, "1");
    *token.lock().unwrap() = "ben";
    assert_eq!(read(client, "count://kept").await, "3");
    assert_eq!(read(client, "count://public").await, "2");
    *token.lock().unwrap() = "ada";
    assert_eq!(read(client, "count://kept").await, "1");
}

#[tokio::test]
async fn what_has_no_lifetime_is_kept_for_toolsets_for_as_long_as_they_say() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let client = scripted(move |_, _| {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        json!({ "contents": [{ "uri": "x://a", "text": number.to_string() }] })
    });
    let client = client.await;
    let arguments = json!({ "uri": "x://a" });
    let (hour, never) = (client.toolset("x"), client.toolset("x").read_ttl(Duration::ZERO));
    assert_eq!(text(&hour, "x.resources_read", arguments.clone()).await, "1");
    assert_eq!(text(&hour, "x.resources_read", arguments.clone()).await, "1");
    // a program that reads by itself gets what the server has
    assert_eq!(read(&client, "x://a").await, "2");
    assert_eq!(text(&never, "x.resources_read", arguments.clone()).await, "3");
    assert_eq!(text(&never, "x.resources_read", arguments.clone()).await, "4");
    let brief = client.toolset("x").read_ttl(Duration::from_nanos(1));
    assert_ne!(text(&brief, "x.resources_read", arguments.clone()).await, "1");
    assert_eq!(call(&hour, "x.resources_read", arguments).await.unwrap().parts.len(), 1);
}

#[tokio::test]
async fn a_cache_without_room_keeps_nothing() {
    let (server, reads) = server(100);
    let options = pinned(None).read_cache(0, 0);
    let client = connect(&server, Transport::Memory, options).await.unwrap().client;
    for number in 1..4 {
        assert_eq!(read(&client, "count://kept").await, number.to_string());
    }
    assert_eq!(reads.count(), 3);
}
