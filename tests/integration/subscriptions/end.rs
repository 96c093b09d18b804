//! How subscriptions end: closed by the server, with a result; by the client, without one; or with the connection.

use super::fixture::{builder, listening, tool};
use crate::prelude::*;

/// Asserts that `message` is the result of the subscription `id`.
#[track_caller]
fn assert_result(message: &Value, id: &Value) {
    assert_eq!(&message["id"], id, "{message}");
    assert_eq!(message["result"]["resultType"], "complete", "{message}");
    assert_eq!(&message["result"]["_meta"][SUBSCRIPTION], id, "{message}");
}

/// Asserts that `message` is the notification that follows the result on a shared channel.
#[track_caller]
fn assert_cancelled(message: &Value, id: &Value) {
    assert_eq!(message["method"], "notifications/cancelled", "{message}");
    assert_eq!(&message["params"]["requestId"], id, "{message}");
    assert!(message.get("id").is_none(), "{message}");
}

#[tokio::test]
async fn a_subscription_in_memory_ends_with_its_result() {
    let server = builder().build().unwrap();
    let mut changes = TestServer::of(&server).listen(json!({ "toolsListChanged": true })).await;
    server.handle().tools_changed();
    server.handle().end_subscriptions();
    assert_eq!(changes.next().await["method"], "notifications/tools/list_changed");
    let result = changes.ended().await;
    assert_eq!((&result["resultType"], &result["_meta"][SUBSCRIPTION]), (&json!("complete"), &json!(1)));
}

#[tokio::test]
async fn over_http_the_stream_ends_after_the_result() {
    let server = builder().build().unwrap();
    let mut served = HttpServer::of(&server).await;
    let filter = json!({ "toolsListChanged": true });
    let mut first = EventStream::open(&listening("first", &filter), served.address).await.unwrap();
    first.next().await.unwrap();
    server.handle().end_subscriptions();
    assert_result(&first.next().await.unwrap(), &json!("first"));
    assert_eq!(first.next().await, None);
    // the connection can be reused, for another stream or any request
    first.connection.send(&listening("again", &filter)).await;
    assert_eq!(first.connection.head().await.status, 200);
    let mut second = EventStream::open(&listening("second", &filter), served.address).await.unwrap();
    second.next().await.unwrap();
    served.stop();
    assert_result(&second.next().await.unwrap(), &json!("second"));
    assert_eq!(second.next().await, None);
    served.stopped().await;
}

#[tokio::test]
async fn on_a_shared_channel_the_cancellation_follows_the_result() {
    let server = builder().build().unwrap();
    let mut pipe = LineConnection::serve(&server, 1 << 16);
    for id in ["a", "b"] {
        pipe.listen(id, json!({ "toolsListChanged": true })).await;
    }
    server.handle().end_subscriptions();
    let mut messages = Vec::new();
    for _ in 0..4 {
        messages.push(pipe.message().await);
    }
    for id in [json!("a"), json!("b")] {
        let of_id = |m: &&Value| m["params"]["requestId"] == id || m["id"] == id;
        let mine: Vec<_> = messages.iter().filter(of_id).collect();
        assert_result(mine[0], &id);
        assert_cancelled(mine[1], &id);
    }
    pipe.listen("a", json!({ "toolsListChanged": true })).await;
    // numbers are valid ids as well
    let params = json!({ "notifications": {}, "_meta": meta() });
    pipe.start(7, "subscriptions/listen", params).await;
    assert_eq!(pipe.message().await["params"]["_meta"], json!({ SUBSCRIPTION: 7 }));
}

#[tokio::test]
async fn a_cancelled_subscription_gets_no_response() {
    let server = builder().limits(|limits| limits.max_subscribers(1)).build().unwrap();
    let handle = server.handle();
    let mut pipe = LineConnection::serve(&server, 1 << 16);
    pipe.listen("a", json!({ "toolsListChanged": true })).await;
    let params = json!({ "notifications": {}, "_meta": meta() });
    let twice = pipe.request("a", "subscriptions/listen", params.clone()).await;
    assert_eq!(twice["error"]["code"], -32600, "the id is in use: {twice}");
    pipe.send(&cancelled("a")).await;
    // its permit is released as soon as its task has ended
    let again = within(async {
        loop {
            pipe.start("b", "subscriptions/listen", params.clone()).await;
            let message = pipe.message().await;
            if message.get("error").is_none() {
                return message;
            }
        }
    });
    assert_eq!(again.await["params"]["_meta"], json!({ SUBSCRIPTION: "b" }));
    handle.tools_changed();
    let list = json!({ "_meta": meta() });
    pipe.request("after", "tools/list", list).await;
}

#[tokio::test]
async fn subscriptions_do_not_delay_the_end_of_a_connection() {
    // a subscription that counted as a call would delay the end
    let server =
        builder().limits(|limits| limits.shutdown_timeout(Duration::from_secs(3600))).build().unwrap();
    let mut pipe = LineConnection::serve(&server, 1 << 16);
    pipe.listen("a", json!({ "toolsListChanged": true })).await;
    pipe.close_input().await;
    assert_result(&pipe.message().await, &json!("a"));
    assert_cancelled(&pipe.message().await, &json!("a"));
    assert_eq!(pipe.next().await, None);
    pipe.served().await;
}

#[tokio::test]
async fn subscriptions_take_no_call_permits() {
    let server = builder()
        .limits(|limits| limits.max_in_flight(1).max_queued(0))
        .http(|http| http.max_requests(1))
        .build()
        .unwrap();
    let mut pipe = LineConnection::serve(&server, 1 << 16);
    for id in ["a", "b", "c"] {
        pipe.listen(id, json!({ "toolsListChanged": true })).await;
    }
    let params = json!({ "name": "publish", "arguments": { "what": "prompts" }, "_meta": meta() });
    assert_eq!(pipe.request("call", "tools/call", params).await["result"]["isError"], json!(null));

    let served = HttpServer::of(&server).await;
    let mut streams = Vec::new();
    for id in ["a", "b", "c"] {
        let filter = json!({ "promptsListChanged": true });
        let mut events = EventStream::open(&listening(id, &filter), served.address).await.unwrap();
        events.next().await.unwrap();
        streams.push(events);
    }
    let params = json!({ "name": "publish", "arguments": { "what": "prompts" } });
    let call = HttpRequest::modern(1, "tools/call", params);
    assert_eq!(text_of(&call.send(served.address).await.json()), "published");
    for events in &mut streams {
        assert_eq!(events.next().await.unwrap()["method"], "notifications/prompts/list_changed");
    }
}

#[tokio::test]
async fn a_listen_request_that_accepts_only_json_is_refused() {
    let server = builder().build().unwrap();
    let served = HttpServer::of(&server).await;
    let request = listening("s", &json!({})).with("Accept", "application/json");
    assert_eq!(request.send(served.address).await.status, 406);
    let request = HttpRequest::modern("s", "subscriptions/listen", json!({ "notifications": 1 }));
    let refused = request.send(served.address).await;
    assert_eq!(refused.code(), -32602);
    server.handle().add(tool("after")).unwrap();
}
