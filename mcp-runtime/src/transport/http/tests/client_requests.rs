//! The server's requests to clients of legacy revisions, and the matching of responses.

use std::sync::Arc;

use serde_json::json;

use super::{BodyReader, Client, HttpHandler, request_roots, server, tool_text};
use crate::core::{
    connection::Principal,
    server::ServerBuilder,
    tool::{ToolCall, ToolDef},
};

fn handler(builder: ServerBuilder) -> Arc<HttpHandler> {
    let roots =
        ToolDef::builder("roots").handler(|call: ToolCall| async move { request_roots(&call.context).await });
    let chatty = ToolDef::builder("chatty").handler(|call: ToolCall| async move {
        for n in 0..10_000 {
            call.context.progress(f64::from(n)).send();
        }
        request_roots(&call.context).await
    });
    HttpHandler::new(&builder.add(roots).add(chatty).build().unwrap(), None)
}

#[tokio::test]
async fn a_response_is_matched_by_session_and_id() {
    let handler = handler(server());
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Client::with_session(&handler, version).await;
        let other = Client::with_session(&handler, version).await;
        let response = client.call(1, "roots").await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut body = BodyReader::new(response);
        let request = body.next_message().await;
        assert_eq!((&request["method"], &request["params"]), (&json!("roots/list"), &json!({})));
        let id = &request["id"];
        let roots = json!({ "roots": [] });
        assert_eq!(other.respond(id, &roots).await, 400, "another session");
        assert_eq!(client.respond(&json!("mcp-0"), &roots).await, 400, "another id");
        assert_eq!(client.respond(&json!(1), &roots).await, 400, "the id of a client's request");
        assert_eq!(client.respond(id, &roots).await, 202);
        assert_eq!(client.respond(id, &roots).await, 400, "a second time");
        let result = body.next_message().await;
        assert_eq!((&result["id"], tool_text(&result)), (&json!(1), "got 0 roots"));
        assert!(body.next_event().await.is_none());
    }
}

#[tokio::test]
async fn errors_are_responses_and_batches_may_contain_responses() {
    let handler = handler(server());
    let client = Client::with_session(&handler, "2025-03-26").await;
    let mut body = BodyReader::new(client.call(1, "roots").await);
    let id = body.next_message().await["id"].clone();
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no roots" } });
    let stray = json!({ "jsonrpc": "2.0", "id": "mcp-0", "result": {} });
    assert_eq!(client.post(&json!([stray])).await.status(), 400);
    assert_eq!(client.post(&json!([error])).await.status(), 202);
    assert!(tool_text(&body.next_message().await).contains("no roots"));
}

#[tokio::test]
async fn a_request_to_the_client_is_not_dropped_with_the_notifications_before_it() {
    let handler = handler(server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut body = BodyReader::new(client.call(1, "chatty").await);
    let request = loop {
        let message = body.next_message().await;
        if message.get("id").is_some() {
            break message;
        }
    };
    assert_eq!(client.respond(&request["id"], &json!({ "roots": [] })).await, 202);
    assert!(tool_text(&body.next_message().await).starts_with("got"));
}

#[tokio::test]
async fn a_stateless_server_cannot_send_requests_to_clients() {
    let handler = handler(server().http(|http| http.stateless()));
    let client = Client::new(&handler);
    let reply = BodyReader::new(client.call(1, "roots").await).json().await;
    assert!(tool_text(&reply).contains("the server is stateless"), "{reply}");
    assert_eq!(client.respond(&json!("mcp-0"), &json!({})).await, 400);
}

#[tokio::test]
async fn a_client_that_does_not_accept_event_streams_cannot_be_sent_requests() {
    let handler = handler(server());
    let client = Client::with_session(&handler, "2025-11-25").await.with_header("accept", "application/json");
    let reply = BodyReader::new(client.call(1, "roots").await).json().await;
    assert_eq!(
        tool_text(&reply),
        "failed: no request can be sent to the client: it does not accept `text/event-stream`"
    );
}

#[tokio::test]
async fn requests_to_clients_fail_when_the_server_stops() {
    let handler = handler(server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut body = BodyReader::new(client.call(1, "roots").await);
    body.next_message().await;
    handler.stop();
    assert!(tool_text(&body.next_message().await).contains("the client left before it answered"));
    let reply = BodyReader::new(client.call(2, "roots").await).json().await;
    assert_eq!(tool_text(&reply), "failed: no request can be sent to the client: the server is stopping");
}

#[tokio::test]
async fn requests_to_clients_end_with_their_session() {
    let handler = handler(server());
    let client = Client::with_session(&handler, "2025-11-25").await;
    let mut body = BodyReader::new(client.call(1, "roots").await);
    let id = body.next_message().await["id"].clone();
    assert_eq!(client.delete().await, 204);
    while let Some(event) = body.next_event().await {
        assert!(!event.data.contains("result"), "the call was cancelled: {event:?}");
    }
    assert_eq!(client.respond(&id, &json!({})).await, 404);
}

#[tokio::test]
async fn only_the_caller_of_the_session_may_respond() {
    let handler = handler(server().http(|http| {
        http.caller(|parts| {
            let user = parts.headers.get("x-user")?.to_str().ok()?;
            Some(Principal::new("test", user))
        })
    }));
    let ada = Client::new(&handler).with_header("x-user", "ada");
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": {} },
        "clientInfo": { "name": "t", "version": "1" } });
    let response = ada.request(0, "initialize", &params).await;
    let ada = ada.with_header("mcp-session-id", response.headers()["mcp-session-id"].to_str().unwrap());
    ada.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let mut body = BodyReader::new(ada.call(1, "roots").await);
    let id = body.next_message().await["id"].clone();
    let bob = ada.clone().with_header("x-user", "bob");
    assert_eq!(bob.respond(&id, &json!({})).await, 404);
    assert_eq!(ada.respond(&id, &json!({ "roots": [] })).await, 202);
    assert!(tool_text(&body.next_message().await).starts_with("got"));
}

#[tokio::test]
async fn a_call_whose_client_has_disconnected_cannot_send_requests() {
    let (outcome_sender, outcome) = tokio::sync::oneshot::channel();
    let (disconnect, disconnected) = tokio::sync::watch::channel(false);
    let outcome_sender = Arc::new(std::sync::Mutex::new(Some(outcome_sender)));
    let late = ToolDef::builder("late").handler(move |call: ToolCall| {
        let (mut disconnected, outcome_sender) = (disconnected.clone(), outcome_sender.clone());
        async move {
            drop(disconnected.wait_for(|disconnected| *disconnected).await);
            let outcome = request_roots(&call.context).await;
            outcome_sender.lock().unwrap().take().unwrap().send(outcome).unwrap();
            "done"
        }
    });
    let handler = handler(server().add(late));
    let client = Client::with_session(&handler, "2025-11-25").await;
    {
        let mut call = std::pin::pin!(client.call(1, "late"));
        let pending = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_pending()));
        assert!(pending.await, "the call is running");
    }
    disconnect.send(true).unwrap();
    assert_eq!(
        outcome.await.unwrap(),
        "failed: no request can be sent to the client: it does not read what is sent to it"
    );
}
