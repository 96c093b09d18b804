//! Two servers that share a store, behind clients that use either.

use mcp_runtime::{Server, ServerBuilder, prelude::*};
use mcp_tests::support::{AnyStore, EventStream, HttpRequest, HttpServer, server_key, text_of, x_user};
use serde_json::{Value, json};

use super::TestStore;

/// Withdraws, once
#[mcp_tool]
async fn withdraw(ctx: &Context) -> Result<&'static str, ToolError> {
    let _agreed: bool = ctx.elicit("agreed", "Withdraw?").await?;
    ctx.consume_once().await?;
    Ok("withdrawn")
}

/// Echoes its argument
#[mcp_tool]
pub(crate) fn echo(message: String) -> String {
    message
}

pub(crate) fn server(store: &AnyStore) -> ServerBuilder {
    Server::builder("replicas", "1")
        .stores(|stores| stores.keys([server_key(5)]))
        .http(|http| http.caller(x_user))
        .tool::<withdraw>()
        .tool::<echo>()
        .shared(store.clone())
}

async fn two(store: &TestStore) -> [HttpServer; 2] {
    [HttpServer::start(server(&store.open())).await, HttpServer::start(server(&store.open())).await]
}

pub(crate) fn call(name: &str, mut params: Value) -> HttpRequest {
    params["name"] = name.into();
    let request = HttpRequest::modern(1, "tools/call", params);
    request.header("x-user", "ada").map_body(|body| {
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    })
}

/// A call that has its client's agreement, ready to be sent again and again.
pub(crate) async fn agreed(at: &HttpServer) -> HttpRequest {
    let asked = call("withdraw", json!({})).send(at.address).await.json();
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let answer = json!({ "agreed": { "action": "accept", "content": { "value": true } } });
    call("withdraw", json!({ "inputResponses": answer, "requestState": result["requestState"] }))
}

#[tokio::test]
async fn a_call_consumes_its_responses_once_at_all_replicas_together() {
    for store in TestStore::all("a_call_consumes_its_responses_once") {
        let [one, two] = two(&store).await;
        for _ in 0..5 {
            let retry = agreed(&one).await;
            let sent = (0..6).map(|n| {
                let (retry, at) = (retry.clone(), [one.address, two.address][n % 2]);
                tokio::spawn(async move { text_of(&retry.send(at).await.json()).to_owned() })
            });
            let mut texts = Vec::new();
            for sent in sent.collect::<Vec<_>>() {
                texts.push(sent.await.expect("no panic"));
            }
            let done = texts.iter().filter(|text| *text == "withdrawn").count();
            assert_eq!(done, 1, "{}: {texts:?}", store.name);
            assert!(texts.iter().all(|text| text == "withdrawn" || text.contains("used before")));
        }
        // a process that starts later knows it too
        let retry = agreed(&one).await;
        assert_eq!(text_of(&retry.send(two.address).await.json()), "withdrawn");
        let later = HttpServer::start(server(&store.open())).await;
        assert!(text_of(&retry.send(later.address).await.json()).contains("used before"));
    }
}

async fn session(at: &HttpServer) -> String {
    let initialize = HttpRequest::initialize("2025-11-25").header("x-user", "ada");
    initialize.send(at.address).await.session()
}

async fn lists(id: &str, at: &HttpServer) -> u16 {
    HttpRequest::legacy(id, 1, "tools/list", &json!({})).header("x-user", "ada").send(at.address).await.status
}

#[tokio::test]
async fn the_end_of_a_session_is_known_at_every_replica_and_after_a_restart() {
    for store in TestStore::all("the_end_of_a_session_is_known") {
        let [one, two] = two(&store).await;
        let [first, second] = [session(&one).await, session(&one).await];
        assert_eq!((lists(&first, &one).await, lists(&first, &two).await), (200, 200));
        let end = HttpRequest::new("DELETE").session(&first).header("x-user", "ada");
        assert_eq!(end.send(one.address).await.status, 204);
        assert_eq!((lists(&first, &one).await, lists(&first, &two).await), (404, 404), "{}", store.name);
        let get = HttpRequest::standalone_stream(&first).header("x-user", "ada");
        assert!(EventStream::open(&get, two.address).await.is_err());
        assert_eq!(end.send(two.address).await.status, 404);
        let later = HttpServer::start(server(&store.open())).await;
        assert_eq!((lists(&first, &later).await, lists(&second, &later).await), (404, 200));
        if let Some(content) = &store.content {
            let (_, keys) = content();
            assert!(keys.iter().all(|(_, expires)| *expires > 0), "{keys:?}");
        }
    }
}
