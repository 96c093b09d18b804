//! HTTP+SSE at replicas that share a store: each of them takes the messages for a stream of any.

use std::{sync::Arc, time::Duration};

use mcp_runtime::{Principal, Server, ServerBuilder, prelude::*, store::Shared};
use mcp_tests::support::{
    BreakableStore, HttpRequest, HttpServer, HttpSse, legacy_call, notification, server_key, text_of, within,
};
use serde_json::json;
use tokio::time::sleep;

use crate::{TestStore, sessions::Killable};

/// Echoes its argument
#[mcp_tool]
fn echo(message: String) -> String {
    message
}

/// Asks the client's model
#[mcp_tool]
async fn ask(ctx: &Context) -> Result<String, ToolError> {
    Ok(ctx.sample("q").user("Who are you?").await?.text())
}

/// Has a long result
#[mcp_tool]
fn long() -> String {
    "x".repeat(256 << 10)
}

/// Waits for as long as it is let
#[mcp_tool]
async fn wait(ctx: &Context) -> &'static str {
    ctx.progress(1.0).send();
    std::future::pending::<()>().await;
    "never"
}

fn server(store: &Arc<dyn Shared>) -> ServerBuilder {
    Server::builder("streams", "1")
        .stores(|stores| stores.keys([server_key(9)]))
        .http(|http| {
            http.legacy_sse("/sse")
                .caller(|parts| Some(Principal::new("test", parts.headers.get("x-user")?.to_str().ok()?)))
        })
        .tool::<echo>()
        .tool::<ask>()
        .tool::<long>()
        .tool::<wait>()
        .shared(store.clone())
}

async fn open(at: &HttpServer, user: &str) -> HttpSse {
    HttpSse::open(at.address, "/sse", &[("x-user", user)]).await
}

fn ping(id: u64) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string()
}

#[tokio::test]
async fn messages_of_http_sse_reach_their_stream_at_whichever_replica_they_arrive() {
    for store in TestStore::all("messages_of_http_sse_reach_their_stream") {
        within(async {
            let one = HttpServer::start(server(&store.open())).await;
            let two = HttpServer::start(server(&store.open())).await;
            // each listens to the others soon after it has started
            sleep(Duration::from_millis(200)).await;
            let mut ada = open(&one, "ada").await;
            ada.post_to(two.address);
            let agreed = ada.initialize(&json!({ "sampling": {} })).await;
            assert_eq!(agreed["result"]["protocolVersion"], "2024-11-05", "{}: {agreed}", store.name);
            ada.send(&legacy_call(1, "ask", &json!({}))).await;
            let asked = ada.message().await;
            assert_eq!(asked["method"], "sampling/createMessage", "{asked}");
            let said = json!({ "type": "text", "text": "me" });
            let answer = json!({ "role": "assistant", "content": said, "model": "m" });
            ada.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
            assert_eq!(text_of(&ada.message().await), "me");
            // too large to be sent over a topic
            let long = "x".repeat(200_000);
            ada.send(&legacy_call(2, "echo", &json!({ "message": long }))).await;
            assert_eq!(text_of(&ada.message().await), long);
            let mut call = legacy_call(3, "wait", &json!({}));
            call["params"]["_meta"] = json!({ "progressToken": 3 });
            ada.send(&call).await;
            assert_eq!(ada.message().await["method"], "notifications/progress");
            ada.send(&notification("notifications/cancelled", json!({ "requestId": 3 }))).await;
            let malformed = json!({ "jsonrpc": "2.0", "id": 5, "method": 7 });
            assert_eq!(ada.post(malformed.to_string()).await, 202);
            assert_eq!(
                ada.message().await["error"]["code"],
                -32600,
                "the stream answers, as on its own replica"
            );
            // in the order in which they were accepted, by whichever
            for id in 10..30 {
                ada.post_to(if id % 3 == 0 { one.address } else { two.address });
                assert_eq!(ada.post(ping(id)).await, 202);
            }
            for id in 10..30 {
                assert_eq!(ada.message().await["id"], id);
            }

            let mut bob = open(&two, "bob").await;
            bob.endpoint.clone_from(&ada.endpoint);
            for at in [&one, &two] {
                bob.post_to(at.address);
                assert_eq!(bob.post(ping(1)).await, 404, "{}: the stream of another caller", store.name);
            }
            let mut forged = open(&two, "ada").await;
            forged.endpoint = format!("/sse?sessionId={}", "A".repeat(102));
            assert_eq!(forged.post(ping(1)).await, 404);
            let endpoint = ada.endpoint.clone();
            drop(ada);
            let post = || HttpRequest::post(ping(1)).path(&endpoint).header("x-user", "ada");
            // the replica notices soon that the client has left
            while post().send(two.address).await.status != 404 {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_message_for_a_stream_whose_process_or_store_is_away_is_refused_and_may_be_sent_again() {
    let store = BreakableStore::default();
    let shared: Arc<dyn Shared> = Arc::new(store.clone());
    within(async {
        let (one, two) = (Killable::of(server(&shared)), HttpServer::start(server(&shared)).await);
        sleep(Duration::from_millis(200)).await;
        let mut ada = open(&one.server, "ada").await;
        ada.initialize(&json!({})).await;
        store.set_broken(true);
        assert_eq!(ada.post(ping(1)).await, 202, "the replica with the stream needs none");
        assert_eq!(ada.message().await["id"], 1);
        ada.post_to(two.address);
        assert_eq!(ada.post(ping(2)).await, 503);
        store.set_broken(false);
        assert_eq!(ada.post(ping(2)).await, 202);
        assert_eq!(ada.message().await["id"], 2);
        one.kill();
        assert_eq!(ada.post(ping(3)).await, 503, "it may be slow, or gone");
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_not_read_takes_a_bounded_number_of_messages_of_other_replicas() {
    let shared: Arc<dyn Shared> = Arc::new(BreakableStore::default());
    within(async {
        let bounded = || server(&shared).http(|http| http.max_unread_bytes(2 << 20));
        let (one, two) = (HttpServer::start(bounded()).await, HttpServer::start(bounded()).await);
        sleep(Duration::from_millis(200)).await;
        let mut ada = open(&one, "ada").await;
        ada.initialize(&json!({})).await;
        ada.post_to(two.address);
        let mut taken = 0;
        let refused = loop {
            let status = ada.post(legacy_call(100 + taken, "long", &json!({})).to_string()).await;
            if status != 202 {
                break status;
            }
            taken += 1;
            assert!(taken < 200, "what is not read is bounded");
        };
        assert!([404, 503].contains(&refused), "{refused}");
        // another stream is not affected
        let mut bob = open(&one, "bob").await;
        bob.post_to(two.address);
        bob.initialize(&json!({})).await;
        assert_eq!(bob.post(ping(1)).await, 202);
        assert_eq!(bob.message().await["id"], 1);
    })
    .await;
}
