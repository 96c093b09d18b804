//! Cursors are sealed: each is valid only for the list and the caller that it was made for.

use crate::prelude::*;

fn tools(builder: ServerBuilder) -> ServerBuilder {
    (0..5).fold(builder.lists(|lists| lists.page_size(2)), |builder, n| {
        let tool = ToolDef::builder(format!("tool_{n}")).handler(|_| async {});
        let hidden = ToolDef::builder(format!("hidden_{n}")).scopes(["admin"]).handler(|_| async {});
        builder.add(tool).add(hidden)
    })
}

fn named(name: &str, key: u8) -> ServerBuilder {
    tools(Server::builder(name, "1").stores(|stores| stores.keys([server_key(key)])))
}

async fn page(server: &TestServer, cursor: &str) -> Reply {
    server.request("tools/list", json!({ "cursor": cursor })).await
}

async fn first(server: &TestServer) -> String {
    let reply = server.request("tools/list", json!({})).await;
    reply.value()["nextCursor"].as_str().expect("more").to_owned()
}

#[tokio::test]
async fn a_cursor_belongs_to_its_server_list_and_revision() {
    let server = serve(named("a", 1));
    let cursor = first(&server).await;
    page(&server, &cursor).await.expect_ok();
    assert_eq!(first(&server).await, cursor, "sealed once for all who see everything");
    // a restart, or a replica, with the same keys
    page(&serve(named("a", 1)), &cursor).await.expect_ok();
    for other in [serve(named("b", 1)), serve(named("a", 2)), serve(named("a", 1)).legacy(LEGACY[3])] {
        let (code, text) = refusal(&page(&other, &cursor).await);
        assert_eq!((code, text.as_str()), (-32602, "`cursor` is not a cursor of this list"));
    }
    for method in ["resources/list", "prompts/list"] {
        // an empty list has no cursors, and the method may not exist
        assert!(server.request(method, json!({ "cursor": cursor })).await.is_error());
    }
}

#[tokio::test]
async fn a_cursor_cannot_be_forged_or_changed() {
    let server = serve(named("a", 1));
    let cursor = first(&server).await;
    for at in [0, cursor.len() / 2, cursor.len() - 1] {
        let mut bytes = cursor.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        assert_eq!(refusal(&page(&server, &changed).await).0, -32602, "{at}");
    }
    for made in ["", "2", "dG9vbHM6Mg", &cursor[..cursor.len() - 4]] {
        assert_eq!(refusal(&page(&server, made).await).0, -32602, "{made}");
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_the_scopes_of_its_caller() {
    let builder = named("a", 1).http(|http| {
        http.caller(|parts| {
            let scopes = parts.headers.get("x-scopes")?.to_str().ok()?;
            Some(Principal::new("test", "ada").with_scopes(scopes.split(' ')))
        })
    });
    let server = HttpServer::start(builder).await;
    let list = async |scopes: Option<&str>, cursor: Option<&str>| -> Value {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let request = HttpRequest::modern(1, "tools/list", params);
        let request = scopes.into_iter().fold(request, |request, scopes| request.header("X-Scopes", scopes));
        request.send(server.address).await.json()
    };
    let names = |reply: &Value| -> Vec<String> {
        let tools = reply["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools: {reply}"));
        tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
    };
    let admin = list(Some("b admin"), None).await;
    assert_eq!(names(&admin), ["tool_0", "hidden_0"]);
    let cursor = admin["result"]["nextCursor"].as_str();
    assert_eq!(names(&list(Some("admin b admin"), cursor).await), ["tool_1", "hidden_1"]);
    for scopes in [Some("b"), Some("admin"), None] {
        assert_eq!(list(scopes, cursor).await["error"]["code"], -32602, "{scopes:?}");
    }
    let anonymous = list(None, None).await;
    assert_eq!(names(&anonymous), ["tool_0", "tool_1"]);
    assert_eq!(names(&list(None, anonymous["result"]["nextCursor"].as_str()).await), ["tool_2", "tool_3"]);
}
