//! HTTP+SSE, the transport of 2024-11-05: one stream for what the server says, a POST for each message.

use std::net::SocketAddr;

use mcp_runtime::{Caller, ServerBuilder, prelude::*};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use super::client::{Ask, Wire, said, within};

/// Says what it is told
#[mcp_tool]
fn echo(message: String) -> String {
    message
}

/// Asks the client's model
#[mcp_tool]
async fn consult(ctx: &Context) -> Result<String, ToolError> {
    Ok(ctx.sample("q").user("Who are you?").await?.text())
}

/// Says who calls
#[mcp_tool(scopes("read"))]
fn whoami(ctx: &Context) -> String {
    ctx.caller().map_or_else(|| "nobody".into(), |caller| caller.subject.clone())
}

/// Takes its time
#[mcp_tool]
async fn nap() -> &'static str {
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    "napped"
}

/// Takes all the time there is
#[mcp_tool]
async fn hang() -> &'static str {
    std::future::pending().await
}

struct Served {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

async fn serve(builder: ServerBuilder) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = builder.build().unwrap();
    let task = tokio::spawn(async move {
        let until = async {
            let _either_way = stopped.await;
        };
        server.serve_http_until(listener, until).await.unwrap();
    });
    Served { address, stop: Some(stop), task }
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .tool::<echo>()
        .tool::<consult>()
        .tool::<whoami>()
        .tool::<nap>()
        .tool::<hang>()
        .legacy_sse("/sse")
}

/// A client of the old transport.
struct Client {
    address: SocketAddr,
    stream: Wire,
    text: String,
    endpoint: String,
    key: Option<&'static str>,
}

impl Client {
    async fn open(address: SocketAddr, key: Option<&'static str>) -> Self {
        let mut stream = Wire::open(address).await;
        let ask = Ask::other("GET").at("/sse").header("Accept", "text/event-stream");
        let ask = key.into_iter().fold(ask, |ask, key| ask.header("X-Key", key));
        stream.write(&ask.bytes()).await;
        let head = stream.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        let mut client = Self { address, stream, text: String::new(), endpoint: String::new(), key };
        let (event, data) = client.event().await.unwrap();
        assert_eq!(event, "endpoint");
        client.endpoint = format!("/sse{data}");
        client
    }

    /// The next event's type and data; `None` at the end.
    async fn event(&mut self) -> Option<(String, String)> {
        within(async {
            while !self.text.contains("\n\n") {
                let chunk = self.stream.chunk().await?;
                self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            }
            let (event, rest) = self.text.split_once("\n\n").unwrap();
            let field = |name: &str| event.lines().find_map(|l| l.strip_prefix(name)).unwrap().to_owned();
            let found = (field("event: "), field("data: "));
            self.text = rest.to_owned();
            Some(found)
        })
        .await
    }

    async fn message(&mut self) -> Value {
        let (event, data) = self.event().await.unwrap();
        assert_eq!(event, "message");
        serde_json::from_str(&data).unwrap()
    }

    async fn post(&self, text: String) -> u16 {
        let ask = Ask::post(text).at(&self.endpoint);
        let ask = self.key.into_iter().fold(ask, |ask, key| ask.header("X-Key", key));
        ask.send(self.address).await.status
    }

    async fn send(&self, message: &Value) {
        // over several lines, as some clients write it
        assert_eq!(self.post(serde_json::to_string_pretty(message).unwrap()).await, 202);
    }

    async fn shake_hands(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2024-11-05",
            "capabilities": { "sampling": {} },
            "clientInfo": { "name": "old", "version": "1" },
        });
        self.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        self.message().await
    }

    async fn call(&self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }
}

#[tokio::test]
async fn an_old_client_shakes_hands_calls_and_is_asked() {
    let served = serve(builder()).await;
    let mut client = Client::open(served.address, None).await;
    assert_eq!(client.shake_hands().await["result"]["protocolVersion"], "2024-11-05");
    client.call(1, "echo", &json!({ "message": "a\nb" })).await;
    assert_eq!(said(&client.message().await), "a\nb");
    client.call(2, "consult", &json!({})).await;
    let question = client.message().await;
    assert_eq!(question["method"], "sampling/createMessage");
    let answer = json!({ "role": "assistant", "content": { "type": "text", "text": "me" }, "model": "m" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer })).await;
    assert_eq!(said(&client.message().await), "me");
}

#[tokio::test]
async fn two_old_clients_hear_only_their_own() {
    let served = serve(builder()).await;
    let mut clients = [Client::open(served.address, None).await, Client::open(served.address, None).await];
    assert_ne!(clients[0].endpoint, clients[1].endpoint);
    for client in &mut clients {
        client.shake_hands().await;
    }
    for (client, name) in clients.iter().zip(["one", "two"]) {
        client.call(1, "echo", &json!({ "message": name })).await;
    }
    for (client, name) in clients.iter_mut().zip(["one", "two"]) {
        assert_eq!(said(&client.message().await), name);
    }
}

#[tokio::test]
async fn messages_reach_a_stream_that_is_open_and_the_callers_own() {
    let find = |parts: &axum::http::request::Parts| {
        let key = parts.headers.get("x-key")?.to_str().ok()?;
        Some(Caller::new("test", key).scopes(["read"]))
    };
    let served = serve(builder().caller(find)).await;
    let ping = || json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for path in ["/sse", "/sse?sessionId=", "/sse?sessionId=00000000000000000000000000000000"] {
        assert_eq!(Ask::post(ping()).at(path).send(served.address).await.status, 404, "{path}");
    }
    let mut alice = Client::open(served.address, Some("alice")).await;
    alice.shake_hands().await;
    alice.call(1, "whoami", &json!({})).await;
    assert_eq!(said(&alice.message().await), "alice");
    let stolen = Client {
        key: Some("bob"),
        endpoint: alice.endpoint.clone(),
        ..Client::open(served.address, None).await
    };
    assert_eq!(stolen.post(ping()).await, 404, "another caller");
    let mut nobody = Client::open(served.address, None).await;
    nobody.shake_hands().await;
    nobody.call(1, "whoami", &json!({})).await;
    assert_eq!(nobody.message().await["error"]["code"], -32602, "hidden from those without its scope");

    let endpoint = alice.endpoint.clone();
    drop(alice);
    let gone = async {
        while Ask::post(ping()).at(&endpoint).header("X-Key", "alice").send(served.address).await.status
            != 404
        {
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
}

#[tokio::test]
async fn the_old_path_is_guarded_and_there_only_on_request() {
    let served = serve(builder()).await;
    let get = || Ask::other("GET").at("/sse").header("Accept", "text/event-stream");
    assert_eq!(get().with("Host", "evil.example").send(served.address).await.status, 403);
    assert_eq!(get().header("Origin", "https://evil.example").send(served.address).await.status, 403);
    assert_eq!(get().with("Accept", "application/json").send(served.address).await.status, 406);
    assert_eq!(Ask::other("DELETE").at("/sse").send(served.address).await.status, 405);
    let without = serve(mcp_runtime::server!().tool::<echo>()).await;
    assert_eq!(get().send(without.address).await.status, 404);
    let error = mcp_runtime::server!().tool::<echo>().legacy_sse("/mcp").build().unwrap_err();
    assert!(error.to_string().contains("`/mcp` is the path of both transports"), "{error}");
}

#[tokio::test]
async fn a_server_that_stops_answers_and_ends_its_old_streams() {
    let mut served = serve(builder()).await;
    let mut client = Client::open(served.address, None).await;
    client.shake_hands().await;
    client.call(1, "nap", &json!({})).await;
    drop(served.stop.take());
    assert_eq!(said(&client.message().await), "napped");
    assert_eq!(client.event().await, None);
    within(served.task).await.unwrap();
}

#[tokio::test]
async fn a_stream_whose_calls_take_all_the_time_there_is_ends_as_it_should() {
    let mut served = serve(builder().drain(std::time::Duration::from_millis(100))).await;
    let mut client = Client::open(served.address, None).await;
    client.shake_hands().await;
    client.call(1, "hang", &json!({})).await;
    client.call(2, "echo", &json!({ "message": "it has begun" })).await;
    assert_eq!(said(&client.message().await), "it has begun");
    drop(served.stop.take());
    // a connection that breaks off is no end, and fails here
    assert_eq!(client.event().await, None);
    within(served.task).await.unwrap();
}
