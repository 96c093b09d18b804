//! Admission of messages before they become calls: the same on a connection and in an HTTP session.

use tokio::sync::Semaphore;

use crate::prelude::*;

static GATE: Semaphore = Semaphore::const_new(0);

/// A server whose capacity is one call of its tool `hold`.
fn server() -> Server {
    let hold = ToolDef::builder("hold").handler(|_: ToolCall| async {
        GATE.acquire().await.expect("open").forget();
        "held"
    });
    let builder = Server::builder("edge", "1").add(hold);
    builder
        .limits(|limits| limits.max_in_flight(1).max_queued(0))
        .http(|http| http.max_requests(1))
        .build()
        .expect("a server")
}

/// A client of 2025-03-26 that sends raw JSON.
enum Raw {
    Lines(LineConnection),
    Http(HttpServer, String),
}

impl Raw {
    async fn both() -> [Self; 2] {
        let mut lines = LineConnection::serve(&server(), 1 << 16);
        lines.shake_hands("2025-03-26").await;
        let http = HttpServer::of(&server()).await;
        let session = HttpRequest::initialize("2025-03-26").send(http.address).await.session();
        [Self::Lines(lines), Self::Http(http, session)]
    }

    /// Sends a request and waits for its response.
    async fn send(&mut self, message: &Value) -> Value {
        match self {
            Self::Lines(lines) => lines.reply_to(message).await,
            Self::Http(server, session) => {
                HttpRequest::post(message.to_string()).session(session).send(server.address).await.json()
            }
        }
    }

    /// Occupies the server's capacity until the gate is opened.
    async fn fill(&mut self, id: &str) -> Option<tokio::task::JoinHandle<Value>> {
        let call = legacy_call(id, "hold", &json!({}));
        match self {
            Self::Lines(lines) => {
                lines.send(&call).await;
                None
            }
            Self::Http(server, session) => {
                let (address, session) = (server.address, session.clone());
                let held = HttpRequest::post(call.to_string()).session(&session);
                Some(spawn(async move { held.send(address).await.json() }))
            }
        }
    }

    /// Opens the gate, and waits for the response to the call that occupied the server.
    async fn release(&mut self, held: Option<tokio::task::JoinHandle<Value>>) -> Value {
        GATE.add_permits(1);
        match (self, held) {
            (Self::Lines(lines), _) => lines.message().await,
            (_, Some(held)) => held.await.expect("no panic"),
            _ => unreachable!("HTTP has a task for it"),
        }
    }
}

#[tokio::test]
async fn a_full_server_refuses_calls_and_answers_pings() {
    let mut seen = Vec::new();
    for mut client in Raw::both().await {
        let held = client.fill("same").await;
        // until the call has taken its permit, another one could take it
        let busy = loop {
            let reply = client.send(&legacy_call("other", "none", &json!({}))).await;
            if reply["error"]["code"] == -32603 {
                break reply["error"]["code"].clone();
            }
        };
        let alive = client.send(&ping("alive")).await["result"].clone();
        assert_eq!(client.release(held).await["result"]["content"][0]["text"], "held");
        seen.push((busy, alive));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], (json!(-32603), json!({})));
}

#[tokio::test]
async fn batches_are_refused_with_the_same_error() {
    let many = json!((0..51).map(ping).collect::<Vec<_>>());
    let mut seen = Vec::new();
    for client in Raw::both().await {
        let reply = match client {
            Raw::Http(server, session) => {
                let request = HttpRequest::post(many.to_string()).session(&session);
                request.send(server.address).await.json()
            }
            Raw::Lines(mut lines) => {
                lines.send(&many).await;
                lines.message().await
            }
        };
        // on a connection each request gets the error, since this revision has no errors without an id
        seen.push(reply.get(0).unwrap_or(&reply)["error"].clone());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0]["code"], -32600);
}

#[tokio::test]
async fn an_id_in_use_is_refused_within_a_connection_or_session() {
    let open = || {
        let hold = ToolDef::builder("wait").handler(|_: ToolCall| std::future::pending::<&'static str>());
        Server::builder("ids", "1").add(hold).build().expect("a server")
    };
    let call = legacy_call("same", "wait", &json!({}));
    let mut lines = LineConnection::serve(&open(), 1 << 16);
    lines.shake_hands("2025-11-25").await;
    lines.send(&call).await;
    let on_lines = lines.reply_to(&ping("same")).await["error"].clone();

    let http = HttpServer::of(&open()).await;
    let at = http.address;
    let session = HttpRequest::initialize("2025-11-25").send(at).await.session();
    let held = HttpRequest::post(call.to_string()).session(&session);
    let held = spawn(async move { held.send(at).await.status });
    let ping = HttpRequest::post(ping("same").to_string()).session(&session);
    let over_http = loop {
        let reply = ping.send(at).await.json();
        if reply.get("error").is_some() {
            break reply["error"].clone();
        }
    };
    held.abort();
    assert_eq!(on_lines, over_http);
    assert_eq!(on_lines["code"], -32600);
}
