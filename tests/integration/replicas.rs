//! Two servers that share a sealing key and no state, behind a client that alternates between them.

use std::net::SocketAddr;

use mcp_runtime::{Server, prelude::*};
use mcp_tests::support::{EventStream, HttpRequest, HttpServer, text_of, within};
use serde_json::{Value, json};

#[mcp_type]
struct Name {
    name: String,
}

/// Greets the user by name
#[mcp_tool]
async fn greet(ctx: &Context) -> Result<String, ToolError> {
    let quote: u32 = ctx.once("quote", || async { Ok(41) }).await?;
    let Name { name } = ctx.elicit::<Name>("name", "What is your name?").await?;
    Ok(format!("Hello, {name}! {quote}"))
}

/// Echoes its argument
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

async fn replica() -> HttpServer {
    let server = Server::builder("replicas", "1").keys([[5; 32]]);
    HttpServer::start(server.tool::<greet>().tool::<echo>().resource::<text>().prompt::<hail>()).await
}

async fn session(address: SocketAddr) -> String {
    let initialize = HttpRequest::initialize_with("2025-11-25", &json!({"elicitation": {}}));
    initialize.send(address).await.session()
}

#[tokio::test]
async fn any_replica_serves_requests_without_session_state() {
    within(async {
        let (one, two) = (replica().await, replica().await);
        let id = session(one.address).await;
        for turn in 0..4 {
            let at = [one.address, two.address][turn % 2];
            let request = async |method: &str, params: Value| {
                let reply = HttpRequest::legacy(&id, 1, method, &params).send(at).await;
                assert_eq!(reply.status, 200, "{method} at {turn}");
                reply.json()["result"].clone()
            };
            let told = request("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}})).await;
            assert_eq!(told["content"][0]["text"], "hi");
            assert_eq!(request("tools/list", json!({})).await["tools"].as_array().map(Vec::len), Some(2));
            let read = request("resources/read", json!({"uri": "test://text"})).await;
            assert_eq!(read["contents"][0]["text"], "text");
            assert_eq!(request("resources/list", json!({})).await["resources"][0]["uri"], "test://text");
            assert_eq!(request("prompts/list", json!({})).await["prompts"][0]["name"], "hail");
            let got = request("prompts/get", json!({"name": "hail", "arguments": {"name": "Ada"}})).await;
            assert_eq!(got["messages"][0]["content"]["text"], "Hail Ada.");
        }
    })
    .await;
}

#[tokio::test]
async fn any_replica_continues_a_multi_round_trip_request() {
    within(async {
        let replicas = [replica().await, replica().await];
        for (first, second) in [(0, 1), (1, 0), (0, 0)] {
            let call = |params: Value| {
                let mut params = params;
                params["name"] = "greet".into();
                let request = HttpRequest::modern(1, "tools/call", params);
                // `modern` declares no capabilities
                request.map_body(|body| {
                    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                        json!({"elicitation": {}});
                })
            };
            let asked = call(json!({})).send(replicas[first].address).await.json();
            let result = &asked["result"];
            assert_eq!(result["resultType"], "input_required", "{asked}");
            let answer = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
            let params = json!({"inputResponses": answer, "requestState": result["requestState"]});
            let told = call(params).send(replicas[second].address).await.json();
            assert_eq!(text_of(&told), "Hello, Ada! 41");
        }
    })
    .await;
}

#[tokio::test]
async fn client_requests_of_a_session_need_sticky_routing() {
    within(async {
        let (one, two) = (replica().await, replica().await);
        let id = session(two.address).await;
        let call = HttpRequest::legacy(&id, 1, "tools/call", &json!({"name": "greet"}));
        let mut events = EventStream::open(&call, one.address).await.expect("a stream");
        let asked = events.message().await;
        assert_eq!(asked["method"], "elicitation/create");
        let result = json!({"action": "accept", "content": {"name": "Ada"}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        let answer = HttpRequest::post(answer.to_string()).session(&id);
        assert_eq!(answer.send(two.address).await.status, 400, "another replica waits for nothing");
        assert_eq!(answer.send(one.address).await.status, 202);
        assert_eq!(text_of(&events.message().await), "Hello, Ada! 41");
        let standalone = HttpRequest::standalone_stream(&id);
        let mut events = EventStream::open(&standalone, one.address).await.expect("a stream");
        let end = HttpRequest::new("DELETE").session(&id);
        assert_eq!(end.send(one.address).await.status, 204);
        while events.next_event().await.is_some() {}
        assert_eq!(end.send(one.address).await.status, 404);
    })
    .await;
}
