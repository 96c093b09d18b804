//! Two servers that share a sealing key and no state, behind a client that alternates between them.

use crate::prelude::*;

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

async fn session(address: SocketAddr) -> String {
    let initialize = HttpRequest::initialize_with("2025-11-25", &json!({"elicitation": {}}));
    initialize.send(address).await.session()
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
    let mut padded = [0; 32];
    padded[..8].copy_from_slice(b"password");
    let keys = |keys: &[[u8; 32]]| {
        let keys = keys.to_vec();
        Server::builder("keys", "1").stores(|stores| stores.keys(keys))
    };
    const SET: &str = "`.stores(|stores| stores.keys(..))` got ";
    for (builder, part) in [
        (keys(&[server_key(1), [7; 32]]), format!("{SET}an invalid key: it can be guessed")),
        (keys(&[server_key(1), padded]), format!("{SET}an invalid key: it can be guessed")),
        (keys(&[]), format!("{SET}no key\ngive it at least one")),
        (
            keys(&[server_key(1)]).stores(|stores| stores.keys_from_file("keys")),
            "keys are set twice, with and without a file".to_owned(),
        ),
        (
            Server::builder("keys", "1").stores(|stores| stores.keys_from_file("/nonexistent/keys")),
            "`/nonexistent/keys` cannot be read".to_owned(),
        ),
    ] {
        let error = build_error(builder);
        assert_eq!(error.matches(&part).count(), 1, "{error}");
    }
    assert!(keys(&[server_key(1), server_key(2)]).build().is_ok());
    let server = Server::builder("keys", "1").build().expect("a server");
    assert!(server.handle().reload_keys().is_err(), "the keys are not from a file");
}

#[tokio::test]
async fn without_a_shared_store_only_one_process_knows_that_a_session_has_ended() {
    let (one, two) = (with_keys(&[5]).await, with_keys(&[5]).await);
    let id = session(one.address).await;
    let status = async |at: &HttpServer| {
        HttpRequest::legacy(&id, 1, "tools/list", &json!({})).send(at.address).await.status
    };
    assert_eq!(HttpRequest::new("DELETE").session(&id).send(one.address).await.status, 204);
    assert_eq!((status(&one).await, status(&two).await), (404, 200));
}
