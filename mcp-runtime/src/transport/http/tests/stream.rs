//! Streams of sessions: what is said unasked, and what is taken up again after a connection broke.

use std::{
    pin::Pin,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use http::Response;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{super::legacy::MemoryEvents, Client, Coming, Endpoint, ResponseBody, ask, said, server};
use crate::{
    config::HttpOptions,
    events::SubscriptionLimits,
    server::ServerBuilder,
    store::{EventBounds, EventStore, StoredEvent},
    tool::{RuntimeTool, ToolCall},
};

/// Lets calls to `hold` go.
#[derive(Clone)]
struct Gate {
    go: Arc<Semaphore>,
    closed: Arc<AtomicBool>,
}

impl Gate {
    fn new() -> Self {
        Self { go: Arc::new(Semaphore::new(0)), closed: Arc::default() }
    }

    async fn pass(&self) {
        self.go.acquire().await.unwrap().forget();
    }
}

/// Calls report once, wait at the gate, report again, and end.
fn endpoint(gate: &Gate, builder: ServerBuilder) -> Arc<Endpoint> {
    let own = gate.clone();
    let hold = RuntimeTool::builder("hold").handler(move |call: ToolCall| {
        let gate = own.clone();
        async move {
            call.context.progress(1.0).send();
            gate.pass().await;
            call.context.progress(2.0).send();
            "held"
        }
    });
    let own = gate.clone();
    let poll = RuntimeTool::builder("poll").handler(move |call: ToolCall| {
        let gate = own.clone();
        async move {
            gate.closed.store(call.context.close_stream(Duration::from_millis(250)), Ordering::Relaxed);
            gate.pass().await;
            "polled"
        }
    });
    let own = gate.clone();
    let late = RuntimeTool::builder("late").handler(move |call: ToolCall| {
        let gate = own.clone();
        async move {
            call.context.progress(1.0).send();
            gate.pass().await;
            ask(&call.context).await
        }
    });
    Endpoint::new(&builder.add_tool(hold).add_tool(poll).add_tool(late).build().unwrap())
}

impl Client {
    async fn get(&self) -> Response<ResponseBody> {
        self.send("GET", String::new()).await
    }

    async fn resume(&self, id: &str) -> Response<ResponseBody> {
        self.clone().with("last-event-id", id).get().await
    }
}

/// A tool that clients have not heard of.
fn news(endpoint: &Endpoint) {
    endpoint.server.handle().tools_changed();
}

#[tokio::test]
async fn a_stream_is_primed_and_resumed_after_the_last_event() {
    let gate = Gate::new();
    let endpoint = endpoint(&gate, server());
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Client::with_session(&endpoint, version).await;
        let mut coming = Coming::new(client.call(1, "hold").await);
        let mut first = coming.event().await.unwrap();
        if version == "2025-11-25" {
            assert_eq!(first.data, "", "priming");
            first = coming.event().await.unwrap();
        }
        assert_eq!(first.message()["params"]["progress"], 1);
        drop(coming);
        gate.go.add_permits(1);
        let id = first.id.unwrap();
        let mut resumed = Coming::new(client.resume(&id).await);
        let (second, last) = (resumed.event().await.unwrap(), resumed.event().await.unwrap());
        assert_eq!(second.message()["params"]["progress"], 2);
        assert_eq!((said(&last.message()), &last.message()["id"]), ("held", &json!(1)));
        assert!(resumed.event().await.is_none());
        // again, from another place, now that the call is over
        let mut again = Coming::new(client.resume(&second.id.unwrap()).await);
        assert_eq!(again.event().await, Some(last));
        assert!(again.event().await.is_none());
    }
}

#[tokio::test]
async fn event_ids_mean_nothing_in_other_sessions() {
    let gate = Gate::new();
    let endpoint = endpoint(&gate, server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let other = Client::with_session(&endpoint, "2025-11-25").await;
    let mut coming = Coming::new(client.call(1, "hold").await);
    let id = coming.event().await.unwrap().id.unwrap();
    for running in [true, false] {
        assert_eq!(other.resume(&id).await.status(), 400, "{running}");
        assert_eq!(client.resume(&format!("{id}x")).await.status(), 400);
        assert_eq!(client.resume("c0123456789012345678901.0").await.status(), 400);
        if running {
            gate.go.add_permits(1);
            while coming.event().await.is_some() {}
        }
    }
    assert_eq!(client.resume(&id).await.status(), 200);
    assert_eq!(client.delete().await, 204);
    assert_eq!(client.resume(&id).await.status(), 404);
}

#[tokio::test]
async fn a_call_whose_client_has_gone_asks_and_answers_whoever_comes_back() {
    let gate = Gate::new();
    let endpoint = endpoint(&gate, server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut coming = Coming::new(client.call(1, "late").await);
    let id = coming.event().await.unwrap().id.unwrap();
    drop(coming);
    gate.go.add_permits(1);
    let mut resumed = Coming::new(client.resume(&id).await);
    assert_eq!(resumed.message().await["params"]["progress"], 1);
    let asked = resumed.message().await;
    assert_eq!(asked["method"], "roots/list");
    assert_eq!(client.respond(&asked["id"], &json!({ "roots": [] })).await, 202);
    assert!(said(&resumed.message().await).starts_with("got"));
    assert!(resumed.event().await.is_none());
}

#[tokio::test]
async fn a_client_that_polls_gets_its_result() {
    let gate = Gate::new();
    let endpoint = endpoint(&gate, server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut coming = Coming::new(client.call(1, "poll").await);
    let first = coming.event().await.unwrap();
    assert_eq!((first.retry, &*first.data), (Some(250), ""));
    assert!(coming.event().await.is_none() && gate.closed.load(Ordering::Relaxed));
    let id = first.id.unwrap();
    // in vain, and then not
    let vain = Coming::new(client.resume(&id).await);
    drop(vain);
    gate.go.add_permits(1);
    let mut resumed = Coming::new(client.resume(&id).await);
    let result = resumed.message().await;
    assert_eq!((said(&result), &result["id"]), ("polled", &json!(1)));
    assert!(resumed.event().await.is_none());
}

#[tokio::test]
async fn only_clients_that_come_back_have_their_streams_closed() {
    let gate = Gate::new();
    gate.go.add_permits(10);
    let plain = endpoint(&gate, server());
    let without = endpoint(&gate, server().resumable(false));
    let stateless = endpoint(&gate, server().stateless());
    let old = Client::with_session(&plain, "2025-06-18").await;
    let json = Client::with_session(&plain, "2025-11-25").await.with("accept", "application/json");
    let other = Client::with_session(&without, "2025-11-25").await;
    for client in [old, json, other, Client::new(&stateless)] {
        gate.closed.store(true, Ordering::Relaxed);
        let reply = Coming::new(client.call(1, "poll").await).json().await;
        assert_eq!((said(&reply), gate.closed.load(Ordering::Relaxed)), ("polled", false));
    }
}

#[tokio::test]
async fn events_have_no_ids_where_nothing_is_kept() {
    let gate = Gate::new();
    gate.go.add_permits(1);
    let endpoint = endpoint(&gate, server().resumable(false));
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut coming = Coming::new(client.call(1, "hold").await);
    let mut events = Vec::new();
    while let Some(event) = coming.event().await {
        events.push(event);
    }
    assert!(events.len() == 3 && events.iter().all(|event| event.id.is_none() && !event.data.is_empty()));
    let mut standing = Coming::new(client.get().await);
    news(&endpoint);
    let event = standing.event().await.unwrap();
    assert_eq!(
        (event.message()["method"].as_str(), event.id),
        (Some("notifications/tools/list_changed"), None)
    );
}

#[tokio::test]
async fn of_several_standing_streams_one_brings_each_message() {
    let endpoint = endpoint(&Gate::new(), server());
    let client = Client::with_session(&endpoint, "2025-06-18").await;
    let (old, mut new) = (Coming::new(client.get().await), Coming::new(client.get().await));
    tokio::task::yield_now().await;
    news(&endpoint);
    assert_eq!(new.message().await["method"], "notifications/tools/list_changed");
    drop(new);
    let mut old = old;
    tokio::task::yield_now().await;
    news(&endpoint);
    assert_eq!(old.message().await["method"], "notifications/tools/list_changed");
    assert_eq!(client.delete().await, 204);
    assert!(old.event().await.is_none(), "one message, and then the end of the session");
}

#[tokio::test]
async fn a_standing_stream_tells_what_happened_while_its_connection_was_broken() {
    let endpoint = endpoint(&Gate::new(), server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut standing = Coming::new(client.get().await);
    let primed = standing.event().await.unwrap();
    assert_eq!(primed.data, "");
    drop(standing);
    news(&endpoint);
    let mut resumed = Coming::new(client.resume(primed.id.as_deref().unwrap()).await);
    let told = resumed.event().await.unwrap();
    assert_eq!(told.message()["method"], "notifications/tools/list_changed");
    // what was sent and perhaps not received comes once more, then what is new
    let mut again = Coming::new(client.resume(primed.id.as_deref().unwrap()).await);
    assert_eq!(again.event().await.as_ref(), Some(&told));
    assert!(resumed.event().await.is_none(), "the connection before it is of no use any more");
    news(&endpoint);
    assert_ne!(again.event().await.unwrap().id, told.id);
}

#[tokio::test]
async fn standing_streams_are_bounded_and_end_with_the_server() {
    let endpoint = endpoint(&Gate::new(), server().max_streams(2));
    let client = Client::with_session(&endpoint, "2025-06-18").await;
    let (one, two) = (client.get().await, client.get().await);
    assert_eq!((one.status().as_u16(), two.status().as_u16()), (200, 200));
    let third = client.get().await;
    assert_eq!(third.status(), 503);
    assert!(third.headers().contains_key("retry-after"));
    drop(one);
    // the stream notices that by itself
    while client.get().await.status() != 200 {
        tokio::task::yield_now().await;
    }
    let mut two = Coming::new(two);
    endpoint.stop();
    assert!(two.event().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn standing_streams_are_kept_alive_and_end_with_their_session() {
    let endpoint = endpoint(&Gate::new(), server().session_lifetime(Duration::from_secs(40)));
    let client = Client::with_session(&endpoint, "2025-06-18").await;
    let mut standing = Coming::new(client.get().await);
    while standing.more().await {}
    assert_eq!(standing.text, ":\n\n:\n\n");
}

#[tokio::test]
async fn what_get_refuses() {
    let open = endpoint(&Gate::new(), server());
    let client = Client::with_session(&open, "2025-11-25").await;
    let json = client.clone().with("accept", "application/json").get().await;
    assert_eq!(json.status(), 406);
    assert_eq!(client.clone().with("accept", "*/*").get().await.status(), 200);
    assert_eq!(Client::new(&open).get().await.status(), 400, "no session");
    assert_eq!(client.clone().with("mcp-session-id", "x").get().await.status(), 404);
    let modern = client.with("mcp-protocol-version", "2026-07-28").get().await;
    assert_eq!((modern.status().as_u16(), modern.headers()["allow"].to_str().unwrap()), (405, "POST"));
    let stateless = Client::new(&endpoint(&Gate::new(), server().stateless())).get().await;
    assert_eq!((stateless.status().as_u16(), stateless.headers()["allow"].to_str().unwrap()), (405, "POST"));
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing_to_wait_for() {
    let endpoint = endpoint(&Gate::new(), server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut coming = Coming::new(client.call(1, "hold").await);
    let id = coming.event().await.unwrap().id.unwrap();
    drop(coming);
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(client.post(&cancel).await.status(), 202);
    let mut resumed = Coming::new(client.resume(&id).await);
    while let Some(event) = resumed.event().await {
        assert!(!event.data.contains("result"));
    }
}

/// A store that two servers share.
#[derive(Clone)]
struct Shared(Arc<MemoryEvents>);

type Kept<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl EventStore for Shared {
    fn append<'a>(&'a self, session: &'a str, stream: &'a str, event: StoredEvent) -> Kept<'a, ()> {
        self.0.append(session, stream, event)
    }

    fn read<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        after: u64,
    ) -> Kept<'a, Option<Vec<StoredEvent>>> {
        self.0.read(session, stream, after)
    }

    fn forget<'a>(&'a self, session: &'a str) -> Kept<'a, ()> {
        self.0.forget(session)
    }
}

#[tokio::test]
async fn with_a_store_that_replicas_share_any_of_them_resumes() {
    let gate = Gate::new();
    let store = Shared(Arc::new(MemoryEvents::new(EventBounds::default())));
    let one = endpoint(&gate, server().event_store(store.clone()));
    let two = endpoint(&gate, server().event_store(store.clone()));
    let client = Client::with_session(&one, "2025-11-25").await;
    let elsewhere = Client { endpoint: two, ..client.clone() };
    let mut coming = Coming::new(client.call(1, "hold").await);
    let first = coming.event().await.unwrap().id.unwrap();
    let second = coming.event().await.unwrap();
    // still running: what there is, and when to come back
    let mut resumed = Coming::new(elsewhere.resume(&first).await);
    assert_eq!(resumed.event().await.as_ref(), Some(&second));
    assert_eq!(resumed.event().await.unwrap().retry, Some(1000));
    assert!(resumed.event().await.is_none());
    gate.go.add_permits(1);
    while coming.event().await.is_some() {}
    let mut resumed = Coming::new(elsewhere.resume(&second.id.unwrap()).await);
    assert_eq!(resumed.message().await["params"]["progress"], 2);
    assert_eq!(said(&resumed.message().await), "held");
    assert!(resumed.event().await.is_none());
    assert_eq!(client.delete().await, 204);
    assert_eq!(store.0.size(), (0, 0));
}

/// Lets others work until it is so.
async fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to that");
}

#[tokio::test]
async fn a_standing_stream_that_nobody_reads_ends_with_its_session() {
    let endpoint = endpoint(&Gate::new(), server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut unread = Coming::new(client.get().await);
    // more than may wait for a connection
    for _ in 0..2_000 {
        news(&endpoint);
        tokio::task::yield_now().await;
    }
    assert_eq!(endpoint.server.hub().subscriber_count(), 1);
    assert_eq!(client.delete().await, 204);
    until(|| endpoint.server.hub().subscriber_count() == 0).await;
    let mut read = 0;
    while unread.event().await.is_some() {
        read += 1;
    }
    assert!((1..2_000).contains(&read), "it was held up: {read}");
}

#[tokio::test]
async fn a_call_whose_stream_nobody_reads_can_be_cancelled() {
    struct Inside(Arc<AtomicBool>);
    impl Drop for Inside {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    for delete in [false, true] {
        let dropped = Arc::<AtomicBool>::default();
        let flag = dropped.clone();
        let chatty = RuntimeTool::builder("chatty").handler(move |call: ToolCall| {
            let inside = Inside(flag.clone());
            async move {
                let _inside = inside;
                for step in 1..=20_000 {
                    call.context.progress(f64::from(step)).send();
                }
                std::future::pending::<()>().await;
            }
        });
        let endpoint = Endpoint::new(&server().add_tool(chatty).build().unwrap());
        let client = Client::with_session(&endpoint, "2025-11-25").await;
        let mut unread = Coming::new(client.call(1, "chatty").await);
        for _ in 0..500 {
            tokio::task::yield_now().await;
        }
        assert!(!dropped.load(Ordering::Relaxed));
        if delete {
            assert_eq!(client.delete().await, 204);
        } else {
            let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
            assert_eq!(client.post(&cancel).await.status(), 202);
        }
        until(|| dropped.load(Ordering::Relaxed)).await;
        let mut read = 0;
        while unread.event().await.is_some() {
            read += 1;
        }
        assert!((1..20_000).contains(&read), "it was held up: {read}");
    }
}

#[test]
fn by_default_streams_and_connections_are_bounded_before_subscribers_are() {
    let http = HttpOptions::default();
    let max_subscribers = SubscriptionLimits::default().subscribers;
    assert!(max_subscribers >= http.max_connections + http.max_waiting);
    assert!(max_subscribers >= http.max_streams + http.max_waiting);
}
