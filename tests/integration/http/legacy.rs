//! Legacy revisions over HTTP: sessions, version negotiation, cancellation.

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

/// What a tool of a session sees of a client that declared this.
async fn seen_of(name: &str, capabilities: Value) -> String {
    let server = plain().await;
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": name, "version": "1"},
    });
    let initialize = request(0, "initialize", params);
    let reply = HttpRequest::post(initialize.to_string()).send(server.address).await;
    let id = &reply.session();
    let call = HttpRequest::legacy(id, 1, "tools/call", &json!({"name": "whoami"}));
    text_of(&call.send(server.address).await.json()).to_owned()
}

#[tokio::test]
async fn a_session_keeps_what_its_client_declared() {
    let declared = json!({"elicitation": {"form": {}}, "experimental": {"x": {}}});
    assert_eq!(
        seen_of("an inspector", declared).await,
        r#"anonymous an inspector {"elicitation":{"form":{}}}"#
    );
}

#[tokio::test]
async fn a_session_keeps_the_apps_extension_of_its_client() {
    let extensions = json!({
        "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app", "text/x"]},
        "org.example/other": {},
    });
    assert_eq!(
        seen_of("host", json!({"extensions": extensions, "roots": {}})).await,
        r#"anonymous host {"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}},"roots":{}}"#
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
    let version =
        HttpRequest::legacy(&id, 1, "tools/list", &json!({})).header("MCP-Protocol-Version", "1999-01-01");
    assert_eq!(version.send(server.address).await.status, 400);
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
async fn sessions_belong_to_their_caller() {
    let builder = builder(&Gate::default()).http(|http| http.caller(x_user));
    let server = HttpServer::start(builder).await;
    let reply = HttpRequest::initialize("2025-11-25").header("X-User", "ada").send(server.address).await;
    let id = reply.session();
    let who = || HttpRequest::legacy(&id, 1, "tools/call", &json!({"name": "whoami"}));
    let reply = who().header("X-User", "ada").send(server.address).await.json();
    assert!(text_of(&reply).starts_with("ada test "), "{reply}");
    assert_eq!(who().header("X-User", "bob").send(server.address).await.status, 404);
    assert_eq!(who().send(server.address).await.status, 404);
    let end = HttpRequest::new("DELETE").session(&id);
    for foreign in [end.clone(), HttpRequest::standalone_stream(&id)] {
        assert_eq!(foreign.header("X-User", "bob").send(server.address).await.status, 404);
    }
    assert_eq!(end.header("X-User", "ada").send(server.address).await.status, 204);
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
async fn a_legacy_call_is_cancelled_only_within_its_session_and_gets_no_response() {
    let gate = Gate::default();
    let server = HttpServer::start(builder(&gate)).await;
    let (mine, other) = (session(&server, "2025-11-25").await, session(&server, "2025-11-25").await);
    let hold = HttpRequest::legacy(&mine, 1, "tools/call", &json!({"name": "hold"}));
    let at = server.address;
    let held = spawn(async move { hold.send(at).await });
    gate.more_entered(1).await;
    let cancel = async |session: &str, id: Value| {
        let request = HttpRequest::notification("notifications/cancelled", &json!({"requestId": id}));
        assert_eq!(request.session(session).send(server.address).await.status, 202);
    };
    cancel(&other, json!(1)).await;
    cancel(&mine, json!("1")).await;
    cancel(&mine, json!(2)).await;
    assert!(!held.is_finished());
    cancel(&mine, json!(1)).await;
    let reply = held.await.expect("no panic");
    assert_eq!((reply.status, reply.messages().len()), (200, 0));
    gate.until_ended(1, 0).await;
}

#[tokio::test]
async fn ending_a_session_cancels_its_calls() {
    let gate = Gate::default();
    let server = HttpServer::start(builder(&gate)).await;
    let id = session(&server, "2025-11-25").await;
    let hold = HttpRequest::legacy(&id, 1, "tools/call", &json!({"name": "hold"}));
    let at = server.address;
    let held = spawn(async move { hold.send(at).await });
    gate.more_entered(1).await;
    assert_eq!(HttpRequest::new("DELETE").session(&id).send(server.address).await.status, 204);
    gate.until_ended(1, 0).await;
    assert!(held.await.expect("no panic").messages().is_empty());
}
