//! Two servers that share a sealing key and no state, behind a client that alternates between them.

use crate::prelude::*;

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

async fn replica() -> HttpServer {
    let server = Server::builder("replicas", "1").stores(|stores| stores.keys([server_key(5)]));
    HttpServer::start(server.tool::<greet>().tool::<echo>()).await
}

async fn session(address: SocketAddr) -> String {
    let initialize = HttpRequest::initialize_with("2025-11-25", &json!({"elicitation": {}}));
    initialize.send(address).await.session()
}

#[tokio::test]
async fn client_requests_of_a_session_need_sticky_routing() {
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
}

/// A server with these keys.
async fn with_keys(keys: &[u8]) -> HttpServer {
    let server = Server::builder("replicas", "1")
        .stores(|stores| stores.keys(keys.iter().map(|key| server_key(*key))));
    HttpServer::start(server.tool::<greet>().tool::<echo>()).await
}

/// Whether a session that one replica starts is served by the other.
async fn shares_sessions(from: &HttpServer, to: &HttpServer) -> bool {
    let id = session(from.address).await;
    let reply = HttpRequest::legacy(&id, 1, "tools/list", &json!({})).send(to.address).await;
    assert!([200, 404].contains(&reply.status), "{reply:?}");
    reply.status == 200
}

/// Whether a call that asks its client at one replica goes on at the other.
async fn shares_calls(from: &HttpServer, to: &HttpServer) -> bool {
    let call = |mut params: Value| {
        params["name"] = "greet".into();
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
        HttpRequest::modern(1, "tools/call", params)
    };
    let asked = call(json!({})).send(from.address).await.json();
    let answer = json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let params = json!({ "inputResponses": answer, "requestState": asked["result"]["requestState"] });
    call(params).send(to.address).await.json()["result"]["content"][0]["text"] == "Hello, Ada! 41"
}

#[tokio::test]
async fn each_step_of_a_key_rotation_can_be_rolled_out_replica_by_replica() {
    let (old, new) = (1, 2);
    let steps: [&[u8]; 4] = [&[old], &[old, new], &[new, old], &[new]];
    for step in steps.windows(2) {
        let (before, after) = (with_keys(step[0]).await, with_keys(step[1]).await);
        for (from, to) in [(&before, &after), (&after, &before)] {
            // the last step drops what only the old key opens, but nothing that was sealed since the step before
            assert!(shares_sessions(from, to).await, "{step:?}");
            assert!(shares_calls(from, to).await, "{step:?}");
        }
    }
    // without the first step, replicas that are not restarted yet do not know the new key
    let (before, after) = (with_keys(&[old]).await, with_keys(&[new, old]).await);
    assert!(shares_sessions(&before, &after).await && !shares_sessions(&after, &before).await);
}

fn hex(key: u8) -> String {
    server_key(key).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn keys_in_a_file_are_rotated_without_a_restart() {
    let directory = TestFolder::default();
    let replica = async |name: &str, keys: &str| {
        let file = directory.join(name);
        std::fs::write(&file, keys).expect("written");
        let server = Server::builder("replicas", "1").stores(|stores| stores.keys_from_file(&file));
        let server = server.tool::<greet>().tool::<echo>().build().expect("a server");
        (HttpServer::of(&server).await, server.handle(), file)
    };
    let (old, new) = (hex(1), hex(2));
    let replicas = [replica("one", &old).await, replica("two", &old).await];
    let [(one, ..), (two, ..)] = &replicas;
    let early = session(one.address).await;
    let lists = async |id: &str, at: &HttpServer| {
        HttpRequest::legacy(id, 1, "tools/list", &json!({})).send(at.address).await.status
    };
    for keys in [format!("{old}\n{new}\n"), format!("{new},{old}"), new.clone()] {
        for (_, handle, file) in &replicas {
            assert_eq!((lists(&early, one).await, lists(&early, two).await), (200, 200));
            std::fs::write(file, &keys).expect("written");
            handle.reload_keys().expect("keys");
            assert!(shares_sessions(one, two).await && shares_sessions(two, one).await);
            assert!(shares_calls(one, two).await && shares_calls(two, one).await);
            if keys == new {
                break;
            }
        }
    }
    // an id whose key was removed is not served from a cache
    assert_eq!((lists(&early, one).await, lists(&early, two).await), (404, 200));
    let (_, handle, file) = &replicas[0];
    let late = session(one.address).await;
    for bad in [String::new(), "00".repeat(32), format!("{new},{}", "ab".repeat(31))] {
        std::fs::write(file, bad).expect("written");
        let error = handle.reload_keys().expect_err("refused").to_string();
        assert!(error.contains("contains an invalid key") && !error.contains("abab"), "{error}");
        assert_eq!(lists(&late, one).await, 200, "the keys are unchanged");
    }
    std::fs::remove_file(file).expect("removed");
    assert!(handle.reload_keys().is_err());
    assert_eq!(lists(&late, one).await, 200);
}

#[tokio::test]
async fn a_first_page_that_was_listed_before_has_a_cursor_of_the_present_keys() {
    let directory = TestFolder::default();
    let file = directory.join("keys");
    let (old, new) = (hex(1), hex(2));
    std::fs::write(&file, &old).expect("written");
    let server = Server::builder("replicas", "1")
        .stores(|stores| stores.keys_from_file(&file))
        .lists(|lists| lists.page_size(1))
        .tool::<greet>()
        .tool::<echo>()
        .build()
        .expect("a server");
    let (served, handle) = (HttpServer::of(&server).await, server.handle());
    let list =
        async |params: Value| HttpRequest::modern(1, "tools/list", params).send(served.address).await.json();
    for keys in [old.clone(), format!("{old}\n{new}\n"), format!("{new},{old}"), new.clone()] {
        std::fs::write(&file, &keys).expect("written");
        handle.reload_keys().expect("keys");
        let cursor = list(json!({})).await["result"]["nextCursor"].clone();
        assert_eq!(list(json!({})).await["result"]["nextCursor"], cursor, "sealed once for these keys");
        let second = list(json!({ "cursor": cursor })).await;
        assert_eq!(second["result"]["tools"][0]["name"], "echo", "{second}");
    }
}

#[tokio::test]
async fn a_session_id_in_a_modern_request_is_ignored() {
    let store = BreakableStore::default();
    let server = Server::builder("replicas", "1").stores(|stores| stores.keys([server_key(5)]));
    let server = HttpServer::start(server.tool::<echo>().shared(store.clone())).await;
    let ended = session(server.address).await;
    let list = HttpRequest::legacy(&ended, 1, "tools/list", &json!({}));
    assert_eq!(list.send(server.address).await.status, 200);
    assert_eq!(HttpRequest::new("DELETE").session(&ended).send(server.address).await.status, 204);
    assert_eq!(list.send(server.address).await.status, 404);
    for is_broken in [false, true] {
        store.set_broken(is_broken);
        for id in [&*ended, "unknown"] {
            let modern = HttpRequest::modern(1, "tools/list", json!({})).session(id);
            assert_eq!(modern.send(server.address).await.status, 200, "{id} {is_broken}");
            // the metadata alone makes it modern
            let reply = modern.without("MCP-Protocol-Version").send(server.address).await;
            assert_eq!((reply.status, reply.code()), (400, -32020), "{id} {is_broken}");
        }
    }
}

#[test]
fn weak_keys_are_refused() {
    let build = |key: [u8; 32]| {
        Server::builder("keys", "1").stores(|stores| stores.keys([server_key(1), key])).build()
    };
    let mut padded = [0; 32];
    padded[..8].copy_from_slice(b"password");
    for key in [[0; 32], [7; 32], padded] {
        let error = build(key).expect_err("refused").to_string();
        assert_eq!(
            error
                .matches("`.stores(|stores| stores.keys(..))` got an invalid key: it can be guessed")
                .count(),
            1,
            "{error}"
        );
    }
    assert!(build(server_key(2)).is_ok());
    let none = Server::builder("keys", "1").stores(|stores| stores.keys([]));
    let error = none.build().expect_err("refused").to_string();
    assert!(
        error.contains("`.stores(|stores| stores.keys(..))` got no key\ngive it at least one"),
        "{error}"
    );
    let twice =
        Server::builder("keys", "1").stores(|stores| stores.keys([server_key(1)]).keys_from_file("keys"));
    let error = twice.build().expect_err("refused").to_string();
    assert!(error.contains("keys are set twice, with and without a file"), "{error}");
    let missing = Server::builder("keys", "1").stores(|stores| stores.keys_from_file("/nonexistent/keys"));
    let error = missing.build().expect_err("refused").to_string();
    assert!(error.contains("`/nonexistent/keys` cannot be read"), "{error}");
    let server = Server::builder("keys", "1").build().expect("a server");
    assert!(server.handle().reload_keys().is_err(), "the keys are not from a file");
}

#[tokio::test]
async fn without_a_shared_store_only_one_process_knows_that_a_session_has_ended() {
    let (one, two) = (replica().await, replica().await);
    let id = session(one.address).await;
    let status = async |at: &HttpServer| {
        HttpRequest::legacy(&id, 1, "tools/list", &json!({})).send(at.address).await.status
    };
    assert_eq!(HttpRequest::new("DELETE").session(&id).send(one.address).await.status, 204);
    assert_eq!((status(&one).await, status(&two).await), (404, 200));
}
