//! HTTP+SSE, the transport of 2024-11-05: one event stream for the server's messages, a POST for each of the client's.

use mcp_runtime::client_request::CreateMessage;

use crate::prelude::*;

/// Echoes its argument
#[mcp_tool]
fn echo(message: String) -> String {
    message
}

/// Samples the client's model
#[mcp_tool]
async fn consult(ctx: &Context) -> Result<String, ToolError> {
    Ok(ctx.sample("q", CreateMessage::user("Who are you?")).await?.text())
}

/// Returns the caller
#[mcp_tool(scopes("read"))]
fn whoami(ctx: &Context) -> String {
    ctx.caller().map_or_else(|| "anonymous".into(), |caller| caller.subject().to_owned())
}

/// Sleeps briefly
#[mcp_tool]
async fn nap() -> &'static str {
    tokio::time::sleep(Duration::from_millis(100)).await;
    "napped"
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .discover_in(module_path!())
        .http(|http| http.legacy_sse("/sse"))
        // no caller has scopes unless a test says otherwise
        .http(|http| http.caller(|_| None))
}

async fn connect(served: &HttpServer) -> HttpSse {
    HttpSse::open(served.address, "/sse", &[]).await
}

async fn shake_hands(client: &mut HttpSse) -> Value {
    client.initialize(&json!({ "sampling": {} })).await
}

async fn call(client: &HttpSse, id: u64, tool: &str, arguments: &Value) {
    client.send(&legacy_call(id, tool, arguments)).await;
}

#[tokio::test]
async fn a_client_initializes_calls_and_answers_sampling() {
    // a response is not a request: it reaches a server that is full
    let served = HttpServer::start(builder().http(|http| http.max_requests(1))).await;
    let mut client = connect(&served).await;
    assert_eq!(shake_hands(&mut client).await["result"]["protocolVersion"], "2024-11-05");
    call(&client, 1, "echo", &json!({ "message": "a\nb" })).await;
    assert_eq!(text_of(&client.message().await), "a\nb");
    call(&client, 2, "consult", &json!({})).await;
    let question = client.message().await;
    assert_eq!(question["method"], "sampling/createMessage");
    let answer = json!({ "role": "assistant", "content": { "type": "text", "text": "me" }, "model": "m" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
    assert_eq!(text_of(&client.message().await), "me");
}

#[tokio::test]
async fn two_clients_get_only_their_own_messages() {
    let served = HttpServer::start(builder()).await;
    let mut clients = [connect(&served).await, connect(&served).await];
    assert_ne!(clients[0].endpoint, clients[1].endpoint);
    for client in &mut clients {
        shake_hands(client).await;
    }
    for (client, name) in clients.iter().zip(["one", "two"]) {
        call(client, 1, "echo", &json!({ "message": name })).await;
    }
    for (client, name) in clients.iter_mut().zip(["one", "two"]) {
        assert_eq!(text_of(&client.message().await), name);
    }
}

#[tokio::test]
async fn messages_are_accepted_only_for_an_open_stream_of_the_caller() {
    let find = |parts: &axum::http::request::Parts| {
        let key = parts.headers.get("x-key")?.to_str().ok()?;
        Some(Principal::new("test", key).with_scopes(["read"]))
    };
    let served = HttpServer::start(builder().http(|http| http.caller(find))).await;
    let ping = || json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for path in ["/sse", "/sse?sessionId=", "/sse?sessionId=00000000000000000000000000000000"] {
        assert_eq!(HttpRequest::post(ping()).path(path).send(served.address).await.status, 404, "{path}");
    }
    let mut alice = HttpSse::open(served.address, "/sse", &[("X-Key", "alice")]).await;
    shake_hands(&mut alice).await;
    call(&alice, 1, "whoami", &json!({})).await;
    assert_eq!(text_of(&alice.message().await), "alice");
    let mut stolen = HttpSse::open(served.address, "/sse", &[("X-Key", "bob")]).await;
    stolen.endpoint.clone_from(&alice.endpoint);
    assert_eq!(stolen.post(ping()).await, 404, "another caller");
    let mut anonymous = connect(&served).await;
    shake_hands(&mut anonymous).await;
    call(&anonymous, 1, "whoami", &json!({})).await;
    assert_eq!(anonymous.message().await["error"]["code"], -32602, "hidden from those without its scope");

    let endpoint = alice.endpoint.clone();
    drop(alice);
    let gone = async {
        while HttpRequest::post(ping())
            .path(&endpoint)
            .header("X-Key", "alice")
            .send(served.address)
            .await
            .status
            != 404
        {
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
}

#[tokio::test]
async fn the_sse_path_is_opt_in_and_guarded() {
    let served = HttpServer::start(builder()).await;
    let get = || HttpRequest::new("GET").path("/sse").header("Accept", "text/event-stream");
    assert_eq!(get().with("Host", "evil.example").send(served.address).await.status, 403);
    assert_eq!(get().header("Origin", "https://evil.example").send(served.address).await.status, 403);
    assert_eq!(get().with("Accept", "application/json").send(served.address).await.status, 406);
    assert_eq!(HttpRequest::new("DELETE").path("/sse").send(served.address).await.status, 405);
    let without = HttpServer::start(mcp_runtime::server!().tool::<echo>()).await;
    assert_eq!(get().send(without.address).await.status, 404);
    let error =
        mcp_runtime::server!().tool::<echo>().http(|http| http.legacy_sse("/mcp")).build().unwrap_err();
    assert!(error.to_string().contains("`/mcp` is the path of both transports"), "{error}");
}

#[tokio::test]
async fn a_shutdown_answers_calls_and_ends_streams() {
    let mut served = HttpServer::start(builder()).await;
    let mut client = connect(&served).await;
    shake_hands(&mut client).await;
    call(&client, 1, "nap", &json!({})).await;
    served.stop();
    assert_eq!(text_of(&client.message().await), "napped");
    assert_eq!(client.next().await, None);
    served.stopped().await;
}
