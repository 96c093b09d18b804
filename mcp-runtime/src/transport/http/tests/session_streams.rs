//! The event streams of sessions: standalone streams, and the resumption of streams whose connection broke.

use std::{
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use http::Response;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{BodyReader, Client, Event, HttpHandler, ResponseBody, request_roots, server, tool_text};
use crate::core::{
    changes::SubscriptionLimits,
    config::HttpOptions,
    server::ServerBuilder,
    tool::{ToolCall, ToolDef},
};
use crate::transport::http::endpoint::MAX_WAITING;

/// Blocks the calls of the tools until permits are added.
#[derive(Clone)]
struct Gate {
    permits: Arc<Semaphore>,
    closed: Arc<AtomicBool>,
}

impl Gate {
    fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(0)), closed: Arc::default() }
    }

    async fn pass(&self) {
        self.permits.acquire().await.unwrap().forget();
    }
}

/// A server whose calls send a progress notification, wait at the gate and complete.
fn handler(gate: &Gate, builder: ServerBuilder) -> Arc<HttpHandler> {
    let tool_gate = gate.clone();
    let hold = ToolDef::builder("hold").handler(move |call: ToolCall| {
        let gate = tool_gate.clone();
        async move {
            call.context.progress(1.0).send();
            gate.pass().await;
            call.context.progress(2.0).send();
            "held"
        }
    });
    let tool_gate = gate.clone();
    let poll = ToolDef::builder("poll").handler(move |call: ToolCall| {
        let gate = tool_gate.clone();
        async move {
            gate.closed.store(call.context.close_stream(Duration::from_millis(250)), Ordering::Relaxed);
            gate.pass().await;
            "polled"
        }
    });
    let tool_gate = gate.clone();
    let late = ToolDef::builder("late").handler(move |call: ToolCall| {
        let gate = tool_gate.clone();
        async move {
            call.context.progress(1.0).send();
            gate.pass().await;
            request_roots(&call.context).await
        }
    });
    HttpHandler::new(&builder.add(hold).add(poll).add(late).build().unwrap(), None)
}

impl Client {
    async fn get(&self) -> Response<ResponseBody> {
        self.send("GET", String::new()).await
    }

    async fn resume(&self, id: &str) -> Response<ResponseBody> {
        self.clone().with_header("last-event-id", id).get().await
    }
}

/// Notifies clients that the list of tools has changed.
fn publish_change(handler: &HttpHandler) {
    handler.endpoint.server.handle().tools_changed();
}

#[tokio::test]
async fn a_stream_is_primed_and_resumed_after_the_last_event() {
    let gate = Gate::new();
    let handler = handler(&gate, server());
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Client::with_session(&handler, version).await;
        let mut body = BodyReader::new(client.call(1, "hold").await);
        let mut first = body.next_event().await.unwrap();
        if version == "2025-11-25" {
            assert_eq!(first.data, "", "priming");
            first = body.next_event().await.unwrap();
        }
        assert_eq!(first.message()["params"]["progress"], 1);
        drop(body);
        gate.permits.add_permits(1);
        let id = first.id.unwrap();
        // a client that breaks off before the next event resumes after the same one
        let primed_again = Event { id: Some(id.clone()), data: String::new(), retry: None };
        let is_primed = version == "2025-11-25";
        let mut resumed = BodyReader::new(client.resume(&id).await);
        if is_primed {
            assert_eq!(resumed.next_event().await, Some(primed_again));
        }
        let (second, last) = (resumed.next_event().await.unwrap(), resumed.next_event().await.unwrap());
        assert_eq!(second.message()["params"]["progress"], 2);
        assert_eq!((tool_text(&last.message()), &last.message()["id"]), ("held", &json!(1)));
        assert!(resumed.next_event().await.is_none());
        // once more from another event, now that the call has completed
        let mut again = BodyReader::new(client.resume(second.id.as_deref().unwrap()).await);
        if is_primed {
            let primed_again = Event { id: second.id, data: String::new(), retry: None };
            assert_eq!(again.next_event().await, Some(primed_again), "also of a call that has ended");
        }
        assert_eq!(again.next_event().await, Some(last));
        assert!(again.next_event().await.is_none());
    }
}

#[tokio::test]
async fn event_ids_are_invalid_in_other_sessions() {
    let gate = Gate::new();
    let handler = handler(&gate, server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let other = Client::with_session(&handler, "2025-11-25").await;
    let mut body = BodyReader::new(client.call(1, "hold").await);
    let id = body.next_event().await.unwrap().id.unwrap();
    for running in [true, false] {
        assert_eq!(other.resume(&id).await.status(), 400, "{running}");
        assert_eq!(client.resume(&format!("{id}x")).await.status(), 400);
        assert_eq!(client.resume("c0123456.0").await.status(), 400);
        assert_eq!(client.resume("cAAAAAAAA1.0").await.status(), 404, "another process");
        if running {
            gate.permits.add_permits(1);
            while body.next_event().await.is_some() {}
        }
    }
    assert_eq!(client.resume(&id).await.status(), 200);
    assert_eq!(client.delete().await, 204);
    assert_eq!(client.resume(&id).await.status(), 404);
}

#[tokio::test]
async fn a_call_sends_its_requests_and_its_reply_to_the_client_that_resumes_its_stream() {
    let gate = Gate::new();
    let handler = handler(&gate, server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut body = BodyReader::new(client.call(1, "late").await);
    let id = body.next_event().await.unwrap().id.unwrap();
    drop(body);
    gate.permits.add_permits(1);
    let mut resumed = BodyReader::new(client.resume(&id).await);
    assert_eq!(resumed.next_message().await["params"]["progress"], 1);
    let request = resumed.next_message().await;
    assert_eq!(request["method"], "roots/list");
    assert_eq!(client.respond(&request["id"], &json!({ "roots": [] })).await, 202);
    assert!(tool_text(&resumed.next_message().await).starts_with("got"));
    assert!(resumed.next_event().await.is_none());
}

#[tokio::test]
async fn a_client_that_polls_gets_its_result() {
    let gate = Gate::new();
    let handler = handler(&gate, server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut body = BodyReader::new(client.call(1, "poll").await);
    let first = body.next_event().await.unwrap();
    assert_eq!((first.retry, &*first.data), (Some(250), ""));
    assert!(body.next_event().await.is_none() && gate.closed.load(Ordering::Relaxed));
    let id = first.id.unwrap();
    // the client disconnects once before there is a result
    drop(BodyReader::new(client.resume(&id).await));
    gate.permits.add_permits(1);
    let mut resumed = BodyReader::new(client.resume(&id).await);
    let result = resumed.next_message().await;
    assert_eq!((tool_text(&result), &result["id"]), ("polled", &json!(1)));
    assert!(resumed.next_event().await.is_none());
}

#[tokio::test]
async fn only_streams_of_clients_that_reconnect_are_closed() {
    let gate = Gate::new();
    gate.permits.add_permits(10);
    let resumable = handler(&gate, server());
    let not_resumable = handler(&gate, server().http(|http| http.without_resumption()));
    let stateless = handler(&gate, server().http(|http| http.stateless()));
    let old = Client::with_session(&resumable, "2025-06-18").await;
    let json = Client::with_session(&resumable, "2025-11-25").await.with_header("accept", "application/json");
    let other = Client::with_session(&not_resumable, "2025-11-25").await;
    for client in [old, json, other, Client::new(&stateless)] {
        gate.closed.store(true, Ordering::Relaxed);
        let reply = BodyReader::new(client.call(1, "poll").await).json().await;
        assert_eq!((tool_text(&reply), gate.closed.load(Ordering::Relaxed)), ("polled", false));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_can_resume_is_told_when_to_before_its_stream_is_closed_for_its_age() {
    let gate = Gate::new();
    let aged = || {
        server().http(|mut http| {
            http.max_stream_age = Duration::from_secs(5);
            http
        })
    };
    let resumable = handler(&gate, aged());
    let not_resumable = handler(&gate, aged().http(|http| http.without_resumption()));
    for (handler, version, is_told) in [
        (&resumable, "2025-11-25", true),
        (&resumable, "2025-06-18", false),
        (&not_resumable, "2025-11-25", false),
    ] {
        let client = Client::with_session(handler, version).await;
        let mut bodies = vec![client.get().await];
        // the response to a call that cannot be resumed is not closed
        if !std::ptr::eq(handler, &not_resumable) {
            bodies.push(client.call(1, "hold").await);
        }
        if is_told {
            let mut first = BodyReader::new(client.call(2, "hold").await);
            let id = first.next_event().await.unwrap().id.unwrap();
            bodies.push(client.resume(&id).await);
        }
        for body in bodies {
            let mut body = BodyReader::new(body);
            let mut last = None;
            while let Some(event) = body.next_event().await {
                last = Some(event);
            }
            let retry = last.and_then(|event| event.retry);
            assert_eq!(retry.is_some(), is_told, "{version}: {retry:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_listens_gets_the_result_of_its_request_at_the_maximum_age_of_its_stream() {
    let handler = handler(&Gate::new(), server());
    let client = Client::new(&handler)
        .with_header("mcp-protocol-version", "2026-07-28")
        .with_header("mcp-method", "subscriptions/listen");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let params = json!({ "notifications": {}, "_meta": meta });
    let mut body = BodyReader::new(client.request(1, "subscriptions/listen", &params).await);
    assert_eq!(body.next_message().await["method"], "notifications/subscriptions/acknowledged");
    let opened = tokio::time::Instant::now();
    assert_eq!(body.next_message().await["result"]["resultType"], "complete");
    assert_eq!(opened.elapsed().as_secs(), 2 * 60 * 60);
    assert_eq!(body.next_event().await, None);
}

#[tokio::test]
async fn events_have_no_ids_without_resumption() {
    let gate = Gate::new();
    gate.permits.add_permits(1);
    let handler = handler(&gate, server().http(|http| http.without_resumption()));
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut body = BodyReader::new(client.call(1, "hold").await);
    let mut events = Vec::new();
    while let Some(event) = body.next_event().await {
        events.push(event);
    }
    assert!(events.len() == 3 && events.iter().all(|event| event.id.is_none() && !event.data.is_empty()));
    let mut standalone = BodyReader::new(client.get().await);
    publish_change(&handler);
    let event = standalone.next_event().await.unwrap();
    assert_eq!(
        (event.message()["method"].as_str(), event.id),
        (Some("notifications/tools/list_changed"), None)
    );
}

#[tokio::test]
async fn each_message_is_sent_on_one_of_several_standalone_streams() {
    let handler = handler(&Gate::new(), server());
    let client = Client::with_session(&handler, "2025-06-18").await;
    let (old, mut new) = (BodyReader::new(client.get().await), BodyReader::new(client.get().await));
    tokio::task::yield_now().await;
    publish_change(&handler);
    assert_eq!(new.next_message().await["method"], "notifications/tools/list_changed");
    drop(new);
    let mut old = old;
    tokio::task::yield_now().await;
    publish_change(&handler);
    assert_eq!(old.next_message().await["method"], "notifications/tools/list_changed");
    assert_eq!(client.delete().await, 204);
    assert!(old.next_event().await.is_none(), "one message, and then the end of the session");
}

#[tokio::test]
async fn each_standalone_stream_has_its_own_events_and_resumes_with_those_alone() {
    let handler = handler(&Gate::new(), server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let (mut one, mut other) = (BodyReader::new(client.get().await), BodyReader::new(client.get().await));
    let (primed, other_primed) = (one.next_event().await.unwrap(), other.next_event().await.unwrap());
    assert_ne!(primed.id, other_primed.id);
    publish_change(&handler);
    let of_other = other.next_event().await.unwrap();
    drop(other);
    publish_change(&handler);
    let own = one.next_event().await.unwrap();
    let stream = |id: &Option<String>| id.as_deref().and_then(|id| Some(id.split_once('.')?.0.to_owned()));
    assert_eq!((stream(&own.id), stream(&of_other.id)), (stream(&primed.id), stream(&other_primed.id)));
    drop(one);
    let mut resumed = BodyReader::new(client.resume(primed.id.as_deref().unwrap()).await);
    assert_eq!([resumed.next_event().await, resumed.next_event().await], [Some(primed), Some(own)]);
    // the other one has ended, since its client had gone: the rest is on a new stream
    let mut resumed = BodyReader::new(client.resume(other_primed.id.as_deref().unwrap()).await);
    assert_eq!(
        [resumed.next_event().await, resumed.next_event().await],
        [Some(other_primed), Some(of_other)]
    );
    publish_change(&handler);
    assert_eq!(resumed.next_event().await.unwrap().data, "");
    assert_eq!(resumed.next_message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_resumed_standalone_stream_sends_the_changes_that_its_client_missed() {
    let handler = handler(&Gate::new(), server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut standalone = BodyReader::new(client.get().await);
    let primed = standalone.next_event().await.unwrap();
    assert_eq!(primed.data, "");
    drop(standalone);
    publish_change(&handler);
    let mut resumed = BodyReader::new(client.resume(primed.id.as_deref().unwrap()).await);
    assert_eq!(resumed.next_event().await.as_ref(), Some(&primed), "primed again");
    let change = resumed.next_event().await.unwrap();
    assert_eq!(change.message()["method"], "notifications/tools/list_changed");
    // events after the given id are sent once more, then new ones
    let mut again = BodyReader::new(client.resume(primed.id.as_deref().unwrap()).await);
    assert_eq!(again.next_event().await.as_ref(), Some(&primed));
    assert_eq!(again.next_event().await.as_ref(), Some(&change));
    publish_change(&handler);
    assert_ne!(again.next_event().await.unwrap().id, change.id);
    // clients that have several open them again when they end
    drop(again);
    publish_change(&handler);
    assert_eq!(resumed.next_message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_response_that_its_client_does_not_read_holds_up_no_response_after_it() {
    let handler = handler(&Gate::new(), server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let _unread = client.get().await;
    // more than a response may buffer
    for _ in 0..2_000 {
        publish_change(&handler);
        tokio::task::yield_now().await;
    }
    let mut read = BodyReader::new(client.get().await);
    assert_eq!(read.next_message().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn standalone_streams_are_bounded_and_end_with_the_server() {
    let handler = handler(&Gate::new(), server().http(|http| http.max_streams(2)));
    let client = Client::with_session(&handler, "2025-06-18").await;
    let (one, two) = (client.get().await, client.get().await);
    assert_eq!((one.status().as_u16(), two.status().as_u16()), (200, 200));
    let third = client.get().await;
    assert_eq!(third.status(), 503);
    assert!(third.headers().contains_key("retry-after"));
    drop(one);
    // the stream ends once its task has noticed that the client disconnected
    while client.get().await.status() != 200 {
        tokio::task::yield_now().await;
    }
    let mut two = BodyReader::new(two);
    handler.stop();
    assert!(two.next_event().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn standalone_streams_are_kept_alive_and_end_with_their_session() {
    let handler = handler(&Gate::new(), server().http(|http| http.session_lifetime(Duration::from_secs(40))));
    let client = Client::with_session(&handler, "2025-06-18").await;
    let mut standalone = BodyReader::new(client.get().await);
    while standalone.read_more().await {}
    assert_eq!(standalone.text, ":\n\n:\n\n");
}

#[tokio::test]
async fn get_refuses_requests_without_a_valid_session_or_accept_header() {
    let open = handler(&Gate::new(), server());
    let client = Client::with_session(&open, "2025-11-25").await;
    let json = client.clone().with_header("accept", "application/json").get().await;
    assert_eq!(json.status(), 406);
    assert_eq!(client.clone().with_header("accept", "*/*").get().await.status(), 200);
    assert_eq!(Client::new(&open).get().await.status(), 400, "no session");
    assert_eq!(client.clone().with_header("mcp-session-id", "x").get().await.status(), 404);
    let mut twice = client.clone();
    twice.headers.extend(client.headers.iter().filter(|(name, _)| *name == "mcp-session-id").cloned());
    assert_eq!(twice.get().await.status(), 400, "which session?");
    assert_eq!(twice.delete().await, 400);
    let modern = client.with_header("mcp-protocol-version", "2026-07-28").get().await;
    assert_eq!((modern.status().as_u16(), modern.headers()["allow"].to_str().unwrap()), (405, "POST"));
    let stateless = Client::new(&handler(&Gate::new(), server().http(|http| http.stateless()))).get().await;
    assert_eq!((stateless.status().as_u16(), stateless.headers()["allow"].to_str().unwrap()), (405, "POST"));
}

#[tokio::test]
async fn the_stream_of_a_cancelled_call_ends_without_a_result() {
    let handler = handler(&Gate::new(), server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut body = BodyReader::new(client.call(1, "hold").await);
    let id = body.next_event().await.unwrap().id.unwrap();
    drop(body);
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(client.post(&cancel).await.status(), 202);
    let mut resumed = BodyReader::new(client.resume(&id).await);
    while let Some(event) = resumed.next_event().await {
        assert!(!event.data.contains("result"));
    }
}

#[tokio::test]
async fn a_client_learns_that_a_cancelled_call_has_ended_though_its_stream_had_no_message() {
    let handler = handler(&Gate::new(), server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let id = BodyReader::new(client.call(1, "poll").await).next_event().await.unwrap().id.unwrap();
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(client.post(&cancel).await.status(), 202);
    let status = loop {
        let status = client.resume(&id).await.status();
        if status != 200 {
            break status;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(status, 405, "there is nothing to resume, and it is not an unknown stream");
}

/// Yields to other tasks until the condition holds.
async fn wait_until(mut condition: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if condition() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the condition never held");
}

#[tokio::test]
async fn a_standalone_stream_that_its_client_does_not_read_ends_with_its_session() {
    let handler = handler(&Gate::new(), server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut unread = BodyReader::new(client.get().await);
    // more than a response may buffer
    for _ in 0..2_000 {
        publish_change(&handler);
        tokio::task::yield_now().await;
    }
    assert_eq!(handler.endpoint.server.hub().subscriber_count(), 1);
    assert_eq!(client.delete().await, 204);
    wait_until(|| handler.endpoint.server.hub().subscriber_count() == 0).await;
    let mut read = 0;
    while unread.next_event().await.is_some() {
        read += 1;
    }
    assert!((1..2_000).contains(&read), "the stream was delayed: {read}");
}

#[tokio::test]
async fn a_call_whose_stream_its_client_does_not_read_can_be_cancelled() {
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    for delete in [false, true] {
        let dropped = Arc::<AtomicBool>::default();
        let flag = dropped.clone();
        let chatty = ToolDef::builder("chatty").handler(move |call: ToolCall| {
            let guard = SetOnDrop(flag.clone());
            async move {
                let _guard = guard;
                for step in 1..=20_000 {
                    call.context.progress(f64::from(step)).send();
                }
                std::future::pending::<()>().await;
            }
        });
        let handler = HttpHandler::new(&server().add(chatty).build().unwrap(), None);
        let client = Client::with_session(&handler, "2025-11-25").await;
        let mut unread = BodyReader::new(client.call(1, "chatty").await);
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
        wait_until(|| dropped.load(Ordering::Relaxed)).await;
        let mut read = 0;
        while unread.next_event().await.is_some() {
            read += 1;
        }
        assert!((1..20_000).contains(&read), "the stream was delayed: {read}");
    }
}

#[test]
fn by_default_streams_and_connections_are_bounded_before_subscribers_are() {
    let http = HttpOptions::default();
    let subscribers = SubscriptionLimits::default().subscribers;
    assert!(subscribers >= http.max_connections + MAX_WAITING);
    assert!(subscribers >= http.max_streams + MAX_WAITING);
}
