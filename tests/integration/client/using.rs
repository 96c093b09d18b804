//! What a program does with a client, over every transport and in every revision.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_runtime::{
    Revision, Server,
    client::{Client, CompletionOf, Error, Refresh},
    content::Role,
    tool::{ToolCall, ToolDef},
};
use mcp_tests::support::{Peer, discovered, notification};
use serde_json::json;

use super::{Point, builder, cells, connect, pinned, within};

#[tokio::test]
async fn lists_have_typed_entries_of_all_pages() {
    let server = builder().lists(|lists| lists.page_size(1)).build().unwrap();
    for (way, revision) in cells() {
        let connected = connect(&server, way, pinned(revision)).await.unwrap();
        let client = &connected.client;
        assert_eq!(client.revision(), Some(revision.unwrap_or(Revision::LATEST)), "{way:?}");
        assert_eq!(client.server_info().0, "shop");
        assert_eq!(client.instructions().as_deref(), Some("Be brief."));
        assert!(client.supports("tools") && !client.supports("logging"));

        let tools = within(client.tools().into_future()).await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        assert_eq!(names, ["echo", "fails", "mirror", "steps"], "{way:?} {revision:?}");
        assert_eq!(tools[0].description(), Some("Echoes its argument"));
        assert_eq!(tools[0].input_schema()["properties"]["message"]["type"], "string");
        if revision.is_none_or(|revision| revision >= Revision::V2025_06_18) {
            assert_eq!((tools[0].title(), tools[0].hint("readOnlyHint")), ("Echo!", Some(true)));
        }
        let resources = client.resources().await.unwrap();
        assert_eq!((resources[0].uri(), resources[0].mime_type()), ("note://one", Some("text/markdown")));
        assert_eq!(client.templates().await.unwrap()[0].uri_template(), "picture://{name}");
        let prompts = client.prompts().await.unwrap();
        assert_eq!(prompts[0].arguments().collect::<Vec<_>>(), [("name", true)]);
        within(client.close()).await;
    }
}

#[tokio::test]
async fn tools_are_called_and_their_results_read() {
    let server = builder().build().unwrap();
    for (way, revision) in cells() {
        let connected = connect(&server, way, pinned(revision)).await.unwrap();
        let client = &connected.client;
        let result =
            within(client.call("echo", json!({ "message": "tea\n☕" })).into_future()).await.unwrap();
        assert_eq!((result.text(), result.is_error), ("tea\n☕".to_owned(), false), "{way:?} {revision:?}");

        let failed = client.call("fails", json!({})).await.unwrap();
        assert!(failed.is_error);
        let Err(Error::Tool { text, result }) = failed.ok() else { panic!("a tool that fails") };
        assert!(text.contains("it does not work") && result.is_error, "{text}");

        client.tools().await.unwrap();
        let mirrored = client.call("mirror", json!({ "x": 1, "y": 2 })).await.unwrap();
        assert_eq!(mirrored.structured::<Point>().unwrap(), Point { x: 2, y: 1 }, "{way:?} {revision:?}");

        let unknown = client.call("unknown", json!({})).await.unwrap_err();
        assert_eq!(unknown.code(), Some(-32602), "{unknown}");
        assert!(matches!(client.call("echo", json!([1])).await, Err(Error::Invalid { .. })));
        client.ping().await.unwrap();
    }
}

#[tokio::test]
async fn resources_are_read_and_prompts_filled_in() {
    let server = builder().build().unwrap();
    for (way, revision) in cells() {
        let connected = connect(&server, way, pinned(revision)).await.unwrap();
        let client = &connected.client;
        let note = within(client.read("note://one").into_future()).await.unwrap();
        assert_eq!(note.text().unwrap(), "noted", "{way:?} {revision:?}");
        assert_eq!(note.contents[0].mime.as_deref(), Some("text/markdown"));
        let picture = client.read("picture://cat").await.unwrap();
        assert_eq!(picture.bytes().unwrap().as_ref(), b"cat");
        assert!(picture.text().is_err());
        let missing = client.read("note://two").await.unwrap_err();
        assert!(matches!(&missing, Error::NotFound { uri } if uri == "note://two"), "{missing:?}");

        let prompt = client.prompt("greet", json!({ "name": "Ada" })).await.unwrap();
        assert_eq!(prompt.messages[0].role, Role::User);
        assert_eq!(prompt.messages[0].content.as_text(), Some("Greet Ada."));
        if revision.is_none_or(|revision| revision >= Revision::V2025_03_26) {
            let found = client.complete(&CompletionOf::Prompt("greet"), "name", "A").await.unwrap();
            assert_eq!(found.values, ["Ada", "Alan"]);
        }
    }
}

#[tokio::test]
async fn progress_reaches_its_own_call_before_the_result() {
    let server = builder().build().unwrap();
    for (way, revision) in cells() {
        let connected = connect(&server, way, pinned(revision)).await.unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        let call = connected
            .client
            .call("steps", json!({}))
            .on_progress(move |update| kept.lock().unwrap().push((update.progress, update.total)));
        assert_eq!(within(call.into_future()).await.unwrap().text(), "worked");
        let seen = seen.lock().unwrap();
        assert!(seen.last() == Some(&(3.0, Some(3.0))), "{way:?} {revision:?}: {seen:?}");
        assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "{seen:?}");
    }
}

#[tokio::test]
async fn what_the_server_does_not_declare_is_unsupported() {
    let echo = ToolDef::builder("echo").handler(|_: ToolCall| async { "x" });
    let server = Server::builder("small", "1").add(echo).build().unwrap();
    for (way, revision) in cells() {
        let connected = connect(&server, way, pinned(revision)).await.unwrap();
        let client = &connected.client;
        let unsupported = |error: Option<Error>| matches!(error, Some(Error::Unsupported { .. }));
        assert!(unsupported(client.resources().await.err()), "{way:?} {revision:?}");
        assert!(unsupported(client.templates().await.err()));
        assert!(unsupported(client.prompts().await.err()));
        assert!(unsupported(client.read("note://one").await.err()));
        assert!(unsupported(client.prompt("greet", json!({})).await.err()));
        assert!(unsupported(client.subscribe("note://one", |_| {}).await.err()));
        assert_eq!(client.tools().refresh(Refresh::Yes).await.unwrap().len(), 1);
    }
}

#[test]
fn clients_can_be_shared_and_sent() {
    fn check<T: Clone + Send + Sync + 'static>() {}
    check::<Client>();
}

/// A client of a server of 2026-07-28 that answers nothing but a call of `slow`, after it has reported progress `steps`
/// times, one each three seconds, in which it reads nothing. It counts the requests that were cancelled.
async fn slow(steps: u32) -> (Client, Arc<AtomicUsize>) {
    let (streams, mut peer) = Peer::new(1 << 16);
    let cancelled = Arc::new(AtomicUsize::new(0));
    let counted = cancelled.clone();
    tokio::spawn(async move {
        while let Some(message) = peer.read().await {
            match message["method"].as_str() {
                Some("server/discover") => {
                    peer.reply(&message, &discovered(json!({ "tools": {} }))).await;
                }
                Some("notifications/cancelled") => drop(counted.fetch_add(1, Ordering::SeqCst)),
                Some("tools/call") if message["params"]["name"] == "slow" => {
                    let token = &message["params"]["_meta"]["progressToken"];
                    for step in 0..steps {
                        tokio::time::sleep(Duration::from_secs(3)).await;
                        let params = json!({ "progressToken": token, "progress": step });
                        peer.send(&notification("notifications/progress", params)).await;
                    }
                    peer.reply(&message, &json!({ "content": [] })).await;
                }
                _ => {}
            }
        }
    });
    let client = Client::builder().timeout(Duration::from_secs(20)).connect(streams).await;
    (client.expect("a connection"), cancelled)
}

#[tokio::test(start_paused = true)]
async fn each_call_has_its_own_time_limit() {
    let (client, cancelled) = slow(0).await;
    let seconds = Duration::from_secs;
    let with = |limit| client.call("never", json!({})).timeout(seconds(limit)).into_future();
    let started = tokio::time::Instant::now();
    // the second is over before the first, which was sent earlier; the last has the client's own limit
    let (long, short, unlimited) =
        tokio::join!(with(7), with(2), client.call("never", json!({})).into_future());
    for (result, limit) in [(long, 7), (short, 2), (unlimited, 20)] {
        assert!(matches!(result, Err(Error::Timeout { after, .. }) if after == seconds(limit)), "{result:?}");
    }
    assert_eq!(started.elapsed().as_secs(), 20);
    client.call("slow", json!({})).await.expect("the connection goes on");
    assert_eq!(cancelled.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn progress_begins_the_time_limit_anew_where_that_is_wanted() {
    let (client, cancelled) = slow(4).await;
    let call = || client.call("slow", json!({})).request_timeout(Duration::from_secs(5));
    call().progress_extends_timeout().await.expect("it goes on");
    let over = call().on_progress(|_| ()).await;
    assert!(matches!(over, Err(Error::Timeout { .. })), "{over:?}");
    let shorter = call().progress_extends_timeout().request_timeout(Duration::from_secs(2)).await;
    assert!(matches!(shorter, Err(Error::Timeout { .. })), "{shorter:?}");
    // the server reads when it has finished
    let last = client.call("slow", json!({})).timeout(Duration::from_secs(60)).await;
    last.expect("the connection goes on");
    assert_eq!(cancelled.load(Ordering::SeqCst), 2);
    let whole = call().progress_extends_timeout().timeout(Duration::from_secs(10)).await;
    assert!(matches!(whole, Err(Error::Timeout { option: Some("timeout"), .. })), "{whole:?}");
}

#[tokio::test]
async fn requests_that_wait_to_be_written_are_bounded_and_others_wait_for_room() {
    // the server reads nothing while the calls are made, and the first fills a write
    const CALLS: usize = 300;
    const QUEUED: usize = 256;
    let (streams, mut peer) = Peer::new(1024);
    let connecting = tokio::spawn(Client::builder().connect(streams));
    peer.answer("server/discover", &discovered(json!({ "tools": {} }))).await;
    let client = within(connecting).await.unwrap().unwrap();

    let text = |n| if n == 0 { "x".repeat(64 << 10) } else { String::new() };
    let call = |n| tokio::spawn(client.call("long", json!({ "text": text(n) })).into_future());
    let calls: Vec<_> = (0..CALLS).map(call).collect();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    for call in calls {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    let last = tokio::spawn(client.call("last", json!({})).into_future());
    let (mut written, mut cancelled) = (0, 0);
    loop {
        let message = peer.next().await;
        match (message["method"].as_str(), message["params"]["name"].as_str()) {
            (Some("tools/call"), Some("long")) => written += 1,
            (Some("notifications/cancelled"), _) => cancelled += 1,
            _ => break peer.reply(&message, &json!({ "content": [] })).await,
        }
    }
    // those in the queue, and the one that was being written; the server hears nothing of the others
    assert_eq!((written, cancelled), (QUEUED + 1, QUEUED + 1));
    within(last).await.unwrap().unwrap();
}
