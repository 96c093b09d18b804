//! Legacy revisions over HTTP: sessions, version negotiation, cancellation.

use mcp_runtime::store::Memory;

use super::fixture::{builder, plain};
use crate::prelude::*;

/// Starts a session.
pub(crate) async fn session(server: &HttpServer, version: &str) -> String {
    let reply = HttpRequest::initialize(version).send(server.address).await;
    assert_eq!((reply.status, &reply.json()["result"]["protocolVersion"]), (200, &json!(version)));
    reply.session()
}

async fn list(server: &HttpServer, session: &str) -> HttpResponse {
    HttpRequest::legacy(session, 1, "tools/list", &json!({})).send(server.address).await
}

#[tokio::test]
async fn a_session_has_its_version_and_no_modern_fields() {
    let server = plain().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let id = session(&server, version).await;
        assert!(id.len() <= 1024 && id.bytes().all(|b| b.is_ascii_graphic()));
        let started = HttpRequest::notification("notifications/initialized", &json!({})).session(&id);
        let reply = started.send(server.address).await;
        assert_eq!((reply.status, reply.text()), (202, ""));
        let listed = list(&server, &id).await.json();
        let result = listed["result"].as_object().expect("a result");
        assert_eq!(result.keys().collect::<Vec<_>>(), ["tools"]);
        assert_eq!(
            HttpRequest::legacy(&id, 2, "ping", &json!({})).send(server.address).await.json()["result"],
            json!({})
        );
        let told = HttpRequest::legacy(
            &id,
            3,
            "tools/call",
            &json!({"name": "echo", "arguments": {"message": "hi"}}),
        );
        let reply = told.header("MCP-Protocol-Version", version).send(server.address).await.json();
        assert_eq!(text_of(&reply), "hi");
        let unknown = HttpRequest::legacy(&id, 4, "no/method", &json!({})).send(server.address).await;
        assert_eq!((unknown.status, unknown.code()), (200, -32601));
    }
    // an unknown version and a modern one are both answered with the newest legacy version
    for asked in ["1999-01-01", "2026-07-28"] {
        let reply = HttpRequest::initialize(asked).send(server.address).await.json();
        assert_eq!(reply["result"]["protocolVersion"], "2025-11-25");
    }
    // headers of modern requests are ignored
    let stray = HttpRequest::initialize("2025-11-25").header("MCP-Protocol-Version", "2025-11-25");
    assert_eq!(stray.header("Mcp-Method", "tools/list").send(server.address).await.status, 200);
}

#[tokio::test]
async fn the_error_for_a_response_has_no_id() {
    let server = plain().await;
    let id = session(&server, "2025-11-25").await;
    // the id belongs to a request of the server: the client would match it against its own requests
    let response = || HttpRequest::post(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }).to_string());
    for (sent, status) in [
        (response(), 400),
        (response().session("unknown"), 404),
        (response().session(&id), 400),
        (response().session(&id).session(&id), 400),
    ] {
        let reply = sent.send(server.address).await;
        assert_eq!((reply.status, reply.json().get("id")), (status, None));
    }
}

#[tokio::test]
async fn a_session_keeps_what_its_client_declared() {
    let server = plain().await;
    let apps = json!({"mimeTypes": ["text/html;profile=mcp-app", "text/x"]});
    let declared = json!({
        "elicitation": {"form": {}},
        "experimental": {"x": {}},
        "extensions": {"io.modelcontextprotocol/ui": apps, "org.example/other": {}},
    });
    let initialize = HttpRequest::initialize_with("2025-11-25", &declared).map_body(|body| {
        body["params"]["clientInfo"]["name"] = "an inspector".into();
    });
    let id = initialize.send(server.address).await.session();
    let call = HttpRequest::legacy(&id, 1, "tools/call", &json!({"name": "whoami"}));
    assert_eq!(
        text_of(&call.send(server.address).await.json()),
        r#"anonymous an inspector {"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#
    );
}

#[tokio::test]
async fn legacy_requests_need_a_valid_session() {
    let server = plain().await;
    let id = session(&server, "2025-11-25").await;
    let missing = HttpRequest::legacy(&id, 1, "tools/list", &json!({}))
        .without("Mcp-Session-Id")
        .send(server.address)
        .await;
    assert_eq!((missing.status, missing.code(), &missing.json()["id"]), (400, -32600, &json!(1)));
    for unknown in ["", "x", &id[1..], &format!("{id}A")] {
        assert_eq!(list(&server, unknown).await.status, 404, "{unknown}");
    }
    let twice = HttpRequest::legacy(&id, 1, "tools/list", &json!({})).session(&id);
    let reply = twice.send(server.address).await;
    assert_eq!((reply.status, reply.code()), (400, -32600));
    for request in [
        HttpRequest::notification("notifications/initialized", &json!({})).session(&id),
        HttpRequest::legacy(&id, 1, "tools/list", &json!({})),
        HttpRequest::standalone_stream(&id),
        HttpRequest::new("DELETE").session(&id),
    ] {
        let unknown = request.header("MCP-Protocol-Version", "1999-01-01").send(server.address).await;
        assert_eq!(unknown.status, 400, "{}", unknown.text());
    }
    let response = HttpRequest::post(json!({"jsonrpc": "2.0", "id": 5, "result": {}}).to_string());
    assert_eq!(response.session(&id).send(server.address).await.status, 400);

    let end = || HttpRequest::new("DELETE").session(&id);
    assert_eq!(end().without("Mcp-Session-Id").send(server.address).await.status, 400);
    assert_eq!(end().with("Mcp-Session-Id", "x").send(server.address).await.status, 404);
    let ended = end().send(server.address).await;
    assert_eq!((ended.status, ended.text()), (204, ""));
    assert_eq!(end().send(server.address).await.status, 404);
    let dead = list(&server, &id).await;
    assert_eq!((dead.status, &dead.json()["id"]), (404, &json!(1)));
    let note = HttpRequest::notification("notifications/initialized", &json!({})).session(&id);
    assert_eq!(note.send(server.address).await.status, 404);
}

#[tokio::test]
async fn sessions_survive_restarts_with_the_same_key_but_expire() {
    let start = |key: u8, lifetime: u64| {
        let builder = builder(&Gate::default()).stores(|stores| stores.keys([server_key(key)]));
        HttpServer::start(builder.http(|http| http.session_lifetime(Duration::from_secs(lifetime))))
    };
    let (one, two, other) = (start(1, 60).await, start(1, 60).await, start(2, 60).await);
    let id = session(&one, "2025-06-18").await;
    assert_eq!(list(&two, &id).await.status, 200);
    assert_eq!(list(&other, &id).await.status, 404);
    let expired = start(1, 0).await;
    let id = session(&expired, "2025-06-18").await;
    assert_eq!(list(&expired, &id).await.status, 404);
    assert_eq!(list(&plain().await, &session(&one, "2025-06-18").await).await.status, 404);
}

#[tokio::test]
async fn without_sessions_every_request_is_independent() {
    let gate = Gate::default();
    let server = HttpServer::start(builder(&gate).http(|http| http.stateless())).await;
    let reply = HttpRequest::initialize("2025-11-25").send(server.address).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    let bare = HttpRequest::legacy("ignored", 1, "tools/list", &json!({}));
    assert_eq!(bare.clone().without("Mcp-Session-Id").send(server.address).await.status, 200);
    assert_eq!(bare.send(server.address).await.status, 200);
    for method in ["GET", "DELETE"] {
        let reply = HttpRequest::new(method).send(server.address).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    }
    // different clients use the same ids, so a cancellation could affect any of them
    let hold = HttpRequest::legacy("", 1, "tools/call", &json!({"name": "hold"})).without("Mcp-Session-Id");
    let at = server.address;
    let held = spawn(async move { hold.send(at).await });
    gate.more_entered(1).await;
    let cancel = HttpRequest::notification("notifications/cancelled", &json!({"requestId": 1}));
    assert_eq!(cancel.send(server.address).await.status, 202);
    gate.open(1);
    assert_eq!(text_of(&held.await.expect("no panic").json()), "let go");
}

#[tokio::test]
async fn a_legacy_call_is_cancelled_only_within_its_session_and_its_stream_cannot_be_resumed() {
    let gate = Gate::default();
    let server = HttpServer::start(builder(&gate)).await;
    let (mine, other) = (session(&server, "2025-11-25").await, session(&server, "2025-11-25").await);
    let params = json!({"name": "hold", "_meta": {"progressToken": 1}});
    let hold = HttpRequest::legacy(&mine, 1, "tools/call", &params);
    let mut events = EventStream::open(&hold, server.address).await.expect("a stream");
    let mut last = events.next_event().await.expect("the priming event");
    while last.message().is_none() {
        last = events.next_event().await.expect("its progress");
    }
    let cancel = async |session: &str, id: Value| {
        let request = HttpRequest::notification("notifications/cancelled", &json!({"requestId": id}));
        assert_eq!(request.session(session).send(server.address).await.status, 202);
    };
    cancel(&other, json!(1)).await;
    cancel(&mine, json!("1")).await;
    cancel(&mine, json!(2)).await;
    assert_eq!(gate.running(), 1);
    cancel(&mine, json!(1)).await;
    gate.until_ended(1, 0).await;
    while let Some(event) = events.next_event().await {
        assert_eq!(event.message(), None, "a cancelled call is not answered");
        last = event;
    }
    // so that its client does not ask for ever
    let resume = HttpRequest::standalone_stream(&mine).header("Last-Event-ID", &last.id.expect("an id"));
    let twice = resume.clone().header("Last-Event-ID", "1").send(server.address).await;
    assert_eq!(twice.status, 400);
    let refused = resume.send(server.address).await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST, DELETE")));
    // the end of a session cancels its calls
    let mut connection = HttpConnection::open(server.address).await;
    connection.send(&HttpRequest::legacy(&other, 1, "tools/call", &json!({"name": "hold"}))).await;
    gate.until_entered(2).await;
    assert_eq!(HttpRequest::new("DELETE").session(&other).send(server.address).await.status, 204);
    gate.until_ended(2, 0).await;
}

#[tokio::test]
async fn every_request_with_the_id_of_an_ended_session_is_404() {
    let gate = Gate::default();
    let shared = builder(&gate).stores(|stores| stores.keys([server_key(1)])).shared(Memory::default());
    for builder in [builder(&gate), shared] {
        let server = HttpServer::start(builder).await;
        for version in ["2025-03-26", "2025-11-25"] {
            let id = session(&server, version).await;
            let initialize = HttpRequest::initialize(version).session(&id);
            let renewed = initialize.send(server.address).await;
            assert_eq!(renewed.status, 200, "the session is open");
            assert_ne!(renewed.session(), id);
            let params = HttpRequest::post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#);
            let params = params.session(&id);
            let refused = params.send(server.address).await;
            assert_eq!((refused.status, refused.code()), (200, -32602));
            let text = HttpRequest::post("{").session(&id);
            let refused = text.send(server.address).await;
            assert_eq!((refused.status, refused.code()), (400, -32700));

            let delete = HttpRequest::new("DELETE").session(&id);
            assert_eq!(delete.send(server.address).await.status, 204);
            let list = HttpRequest::legacy(&id, 1, "tools/list", &json!({}));
            for request in [initialize, params, text, list] {
                assert_eq!(request.send(server.address).await.status, 404, "{version}");
            }
        }
        let unknown = HttpRequest::initialize("2025-11-25").session("unknown").send(server.address).await;
        assert_eq!(unknown.status, 404);
        let told = unknown.json()["error"]["message"].clone();
        assert_eq!(
            told,
            "the session does not exist\nstart a new one: send `initialize` without `Mcp-Session-Id`"
        );
        assert_eq!(unknown.json()["id"], 0);
    }
}
