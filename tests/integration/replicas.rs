//! Two servers with one key behind a client that takes turns between them, and nothing that they share.

use std::net::SocketAddr;

use mcp_runtime::{Server, prelude::*};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};

use crate::http::client::{Ask, Wire, messages, said, within};

#[mcp_type]
struct Name {
    name: String,
}

/// Greets whoever answers
#[mcp_tool]
async fn greet(ctx: &Context) -> Result<String, ToolError> {
    let quote: u32 = ctx.once("quote", || async { Ok(41) }).await?;
    let Name { name } = ctx.elicit::<Name>("name", "What is your name?").await?;
    Ok(format!("Hello, {name}! {quote}"))
}

/// Says what it is told
#[mcp_tool]
fn echo(message: String) -> String {
    message
}

/// A text
#[mcp_resource(uri = "test://text")]
fn text() -> &'static str {
    "text"
}

/// Greets
#[mcp_prompt]
fn hail(name: String) -> String {
    format!("Hail {name}.")
}

/// One replica, for as long as it is held.
struct Replica {
    at: SocketAddr,
    _stop: oneshot::Sender<()>,
}

async fn replica() -> Replica {
    let server = Server::builder("replicas", "1").keys([[5; 32]]);
    let server = server.tool::<greet>().tool::<echo>().resource::<text>().prompt::<hail>();
    let server = server.build().expect("a server");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(server.serve_http_until(listener, async {
        let _dropped = stopped.await;
    }));
    Replica { at, _stop: stop }
}

async fn session(at: SocketAddr) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let reply = Ask::post(body.to_string()).send(at).await;
    reply.header("mcp-session-id").expect("a session").to_owned()
}

#[tokio::test]
async fn any_replica_serves_what_needs_no_memory() {
    within(async {
        let (one, two) = (replica().await, replica().await);
        let id = session(one.at).await;
        for turn in 0..4 {
            let at = [one.at, two.at][turn % 2];
            let ask = async |method: &str, params: Value| {
                let reply = Ask::legacy(&id, 1, method, &params).send(at).await;
                assert_eq!(reply.status, 200, "{method} at {turn}");
                reply.json()["result"].clone()
            };
            let told = ask("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})).await;
            assert_eq!(told["content"][0]["text"], "hi");
            assert_eq!(ask("tools/list", json!({})).await["tools"].as_array().map(Vec::len), Some(2));
            let read = ask("resources/read", json!({"uri": "test://text"})).await;
            assert_eq!(read["contents"][0]["text"], "text");
            assert_eq!(ask("resources/list", json!({})).await["resources"][0]["uri"], "test://text");
            assert_eq!(ask("prompts/list", json!({})).await["prompts"][0]["name"], "hail");
            let got = ask("prompts/get", json!({"name": "hail", "arguments": {"name": "Ada"}})).await;
            assert_eq!(got["messages"][0]["content"]["text"], "Hail Ada.");
        }
    })
    .await;
}

#[tokio::test]
async fn any_replica_takes_the_next_round_of_a_modern_call() {
    within(async {
        let replicas = [replica().await, replica().await];
        for (first, second) in [(0, 1), (1, 0), (0, 0)] {
            let call = |params: Value| {
                let mut params = params;
                params["name"] = "greet".into();
                let ask = Ask::modern(1, "tools/call", params);
                // what `modern` declares is nothing
                ask.map_body(|body| {
                    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                        json!({"elicitation": {}});
                })
            };
            let asked = call(json!({})).send(replicas[first].at).await.json();
            let result = &asked["result"];
            assert_eq!(result["resultType"], "input_required", "{asked}");
            let answer = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
            let params = json!({"inputResponses": answer, "requestState": result["requestState"]});
            let told = call(params).send(replicas[second].at).await.json();
            assert_eq!(said(&told), "Hello, Ada! 41");
        }
    })
    .await;
}

#[tokio::test]
async fn with_sticky_routing_everything_works_and_without_it_asking_does_not() {
    within(async {
        let (one, two) = (replica().await, replica().await);
        let id = session(two.at).await;
        let mut wire = Wire::open(one.at).await;
        wire.write(&Ask::legacy(&id, 1, "tools/call", &json!({"name": "greet"})).bytes()).await;
        wire.head().await;
        let mut text = String::new();
        while messages(&text).is_empty() {
            text.push_str(std::str::from_utf8(&wire.chunk().await.expect("a question")).expect("UTF-8"));
        }
        let asked = messages(&text).remove(0);
        assert_eq!(asked["method"], "elicitation/create");
        let result = json!({"action": "accept", "content": {"name": "Ada"}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        let answer = Ask::post(answer.to_string()).header("Mcp-Session-Id", &id);
        assert_eq!(answer.send(two.at).await.status, 400, "another replica waits for nothing");
        assert_eq!(answer.send(one.at).await.status, 202);
        let last = wire.chunk().await.expect("a result");
        assert_eq!(said(&messages(std::str::from_utf8(&last).expect("UTF-8"))[0]), "Hello, Ada! 41");
        let standing = Ask::other("GET").header("Accept", "text/event-stream").header("Mcp-Session-Id", &id);
        let mut wire = Wire::open(one.at).await;
        wire.write(&standing.bytes()).await;
        assert_eq!(wire.head().await.status, 200);
        let end = Ask::other("DELETE").header("Mcp-Session-Id", &id);
        assert_eq!(end.send(one.at).await.status, 204);
        while wire.chunk().await.is_some() {}
        assert_eq!(end.send(one.at).await.status, 404);
    })
    .await;
}
