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
    let built = named("a", 1).build().expect("a server");
    let client = |scopes: &[&str]| {
        let caller = Principal::new("test", "ada").with_scopes(scopes.iter().copied());
        TestServer::of(&built).caller(caller)
    };
    let names = |reply: &Reply| -> Vec<String> {
        let tools = reply.value()["tools"].as_array().unwrap_or_else(|| panic!("no tools: {reply}"));
        tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
    };
    let cursor = first(&client(&["b", "admin"])).await;
    let second = page(&client(&["admin", "b", "admin"]), &cursor).await;
    assert_eq!(names(&second), ["tool_1", "hidden_1"]);
    let anonymous = TestServer::of(&built).caller(None);
    for other in [&client(&["b"]), &client(&["admin"]), &anonymous] {
        page(other, &cursor).await.expect_code(-32602);
    }
    let cursor = first(&anonymous).await;
    assert_eq!(names(&page(&anonymous, &cursor).await), ["tool_2", "tool_3"]);
}
