//! Questions to clients of the handshake era, and where their answers go.

use std::sync::Arc;

use serde_json::json;

use super::{Client, Coming, Endpoint, ask, said, server};
use crate::{
    connection::Caller,
    server::ServerBuilder,
    tool::{RuntimeTool, ToolCall},
};

fn endpoint(builder: ServerBuilder) -> Arc<Endpoint> {
    let asks = RuntimeTool::builder("ask").handler(|call: ToolCall| async move { ask(&call.context).await });
    let chatty = RuntimeTool::builder("chatty").handler(|call: ToolCall| async move {
        for n in 0..10_000 {
            call.context.progress(f64::from(n)).send();
        }
        ask(&call.context).await
    });
    Endpoint::new(&builder.add_tool(asks).add_tool(chatty).build().unwrap())
}

#[tokio::test]
async fn the_answer_is_matched_by_session_and_id() {
    let endpoint = endpoint(server());
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Client::with_session(&endpoint, version).await;
        let other = Client::with_session(&endpoint, version).await;
        let response = client.call(1, "ask").await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut coming = Coming::new(response);
        let asked = coming.message().await;
        assert_eq!((&asked["method"], &asked["params"]), (&json!("roots/list"), &json!({})));
        let id = &asked["id"];
        let roots = json!({ "roots": [] });
        assert_eq!(other.respond(id, &roots).await, 400, "another session");
        assert_eq!(client.respond(&json!("mcp-0"), &roots).await, 400, "another id");
        assert_eq!(client.respond(&json!(1), &roots).await, 400, "an id of the client's");
        assert_eq!(client.respond(id, &roots).await, 202);
        assert_eq!(client.respond(id, &roots).await, 400, "a second time");
        let result = coming.message().await;
        assert_eq!((&result["id"], said(&result)), (&json!(1), "got 0 roots"));
        assert!(coming.event().await.is_none());
    }
}

#[tokio::test]
async fn an_error_is_an_answer_and_arrays_may_hold_answers() {
    let endpoint = endpoint(server());
    let client = Client::with_session(&endpoint, "2025-03-26").await;
    let mut coming = Coming::new(client.call(1, "ask").await);
    let id = coming.message().await["id"].clone();
    let refused = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no roots here" } });
    let stray = json!({ "jsonrpc": "2.0", "id": "mcp-0", "result": {} });
    assert_eq!(client.post(&json!([stray])).await.status(), 400);
    assert_eq!(client.post(&json!([refused])).await.status(), 202);
    assert!(said(&coming.message().await).contains("no roots here"));
}

#[tokio::test]
async fn a_question_is_not_dropped_with_the_notifications_before_it() {
    let endpoint = endpoint(server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut coming = Coming::new(client.call(1, "chatty").await);
    let asked = loop {
        let message = coming.message().await;
        if message.get("id").is_some() {
            break message;
        }
    };
    assert_eq!(client.respond(&asked["id"], &json!({ "roots": [] })).await, 202);
    assert!(said(&coming.message().await).starts_with("got"));
}

#[tokio::test]
async fn without_sessions_nobody_can_be_asked() {
    let endpoint = endpoint(server().stateless());
    let client = Client::new(&endpoint);
    let reply = Coming::new(client.call(1, "ask").await).json().await;
    assert!(said(&reply).contains("this server keeps no sessions"), "{reply}");
    assert_eq!(client.respond(&json!("mcp-0"), &json!({})).await, 400);
}

#[tokio::test]
async fn a_client_without_event_streams_cannot_be_asked() {
    let endpoint = endpoint(server());
    let client = Client::with_session(&endpoint, "2025-11-25").await.with("accept", "application/json");
    let reply = Coming::new(client.call(1, "ask").await).json().await;
    assert_eq!(said(&reply), "failed: no request can be sent to the client: it accepts no event stream");
}

#[tokio::test]
async fn questions_fail_when_the_server_stops() {
    let endpoint = endpoint(server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut coming = Coming::new(client.call(1, "ask").await);
    coming.message().await;
    endpoint.stop();
    assert!(said(&coming.message().await).contains("the client left before it answered"));
    let reply = Coming::new(client.call(2, "ask").await).json().await;
    assert_eq!(said(&reply), "failed: no request can be sent to the client: the server is stopping");
}

#[tokio::test]
async fn questions_end_with_their_session() {
    let endpoint = endpoint(server());
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    let mut coming = Coming::new(client.call(1, "ask").await);
    let id = coming.message().await["id"].clone();
    assert_eq!(client.delete().await, 204);
    while let Some(event) = coming.event().await {
        assert!(!event.data.contains("result"), "the call was cancelled: {event:?}");
    }
    assert_eq!(client.respond(&id, &json!({})).await, 404);
}

#[tokio::test]
async fn only_the_caller_who_was_asked_may_answer() {
    let endpoint = endpoint(server().caller(|parts| {
        let user = parts.headers.get("x-user")?.to_str().ok()?;
        Some(Caller::new("test", user))
    }));
    let ada = Client::new(&endpoint).with("x-user", "ada");
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "roots": {} },
        "clientInfo": { "name": "t", "version": "1" } });
    let response = ada.request(0, "initialize", &params).await;
    let ada = ada.with("mcp-session-id", response.headers()["mcp-session-id"].to_str().unwrap());
    let mut coming = Coming::new(ada.call(1, "ask").await);
    let id = coming.message().await["id"].clone();
    let bob = ada.clone().with("x-user", "bob");
    assert_eq!(bob.respond(&id, &json!({})).await, 404);
    assert_eq!(ada.respond(&id, &json!({ "roots": [] })).await, 202);
    assert!(said(&coming.message().await).starts_with("got"));
}

#[tokio::test]
async fn a_call_whose_client_has_gone_cannot_ask() {
    let (told, tell) = tokio::sync::oneshot::channel();
    let (go, gone) = tokio::sync::watch::channel(false);
    let told = Arc::new(std::sync::Mutex::new(Some(told)));
    let late = RuntimeTool::builder("late").handler(move |call: ToolCall| {
        let (mut gone, told) = (gone.clone(), told.clone());
        async move {
            drop(gone.wait_for(|gone| *gone).await);
            let said = ask(&call.context).await;
            told.lock().unwrap().take().unwrap().send(said).unwrap();
            "over"
        }
    });
    let endpoint = endpoint(server().add_tool(late));
    let client = Client::with_session(&endpoint, "2025-11-25").await;
    {
        let mut call = std::pin::pin!(client.call(1, "late"));
        let pending = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_pending()));
        assert!(pending.await, "nothing to answer yet");
    }
    go.send(true).unwrap();
    let said = tell.await.unwrap();
    assert_eq!(said, "failed: no request can be sent to the client: it does not read what is sent to it");
}
