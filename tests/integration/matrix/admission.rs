//! Admission of messages before they become calls: the same on a connection and in an HTTP session.

use crate::prelude::*;

/// A server with a tool that never returns.
fn server() -> Server {
    let wait = ToolDef::builder("wait").handler(|_: ToolCall| std::future::pending::<&'static str>());
    Server::builder("edge", "1").add(wait).build().expect("a server")
}

/// A connection and a session of that revision.
async fn both(revision: &str) -> (LineConnection, HttpServer, String) {
    let mut lines = LineConnection::serve(&server(), 1 << 16);
    lines.shake_hands(revision).await;
    let http = HttpServer::of(&server()).await;
    let session = HttpRequest::initialize(revision).send(http.address).await.session();
    (lines, http, session)
}

#[tokio::test]
async fn batches_are_refused_with_the_same_error() {
    let (mut lines, http, session) = both("2025-03-26").await;
    let many = json!((0..51).map(ping).collect::<Vec<_>>());
    lines.send(&many).await;
    // on a connection each request gets the error, since this revision has no errors without an id
    let on_lines = lines.message().await[0]["error"].clone();
    let over_http = HttpRequest::post(many.to_string()).session(&session).send(http.address).await.json();
    assert_eq!(on_lines, over_http["error"]);
    assert_eq!(on_lines["code"], -32600);
}

#[tokio::test]
async fn an_id_in_use_is_refused_within_a_connection_or_session() {
    let (mut lines, http, session) = both("2025-11-25").await;
    let call = legacy_call("same", "wait", &json!({}));
    lines.send(&call).await;
    let on_lines = lines.reply_to(&ping("same")).await["error"].clone();
    // once it has ended, the id is free again
    lines.send(&cancelled("same")).await;
    while lines.reply_to(&ping("same")).await.get("error").is_some() {}

    let at = http.address;
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
