//! Icons, titles and `_meta`: present wherever the revision defines them, absent everywhere else.

use mcp_runtime::{
    client_request::CreateMessage,
    content::{Icon, Role, Theme},
    resource::ListedResource,
};

use crate::{matrix::sample_server, prelude::*};

/// Has icons in every notation
#[mcp_tool(
    icon("data:image/png;base64,AA", "https://example.org/j.png"),
    icon(theme = "light", sizes = ["48x48", "96x96"], src = "https://example.org/l.png")
)]
fn drawn(#[mcp(title = "How many of them")] count: Option<u8>) -> Option<u8> {
    count
}

fn instances() -> Vec<ListedResource> {
    let plain = ListedResource::new("test://page/plain", "plain");
    let own = ListedResource::new("test://page/own", "own").title("Own page");
    let own = own
        .icon(Icon::new("https://example.org/own.png").theme(Theme::Light))
        .annotated(|hints| hints.audience([Role::Assistant]).last_modified("2026-01-01T00:00:00Z"));
    vec![plain, own.meta("kind", "own").meta("more", 1)]
}

/// A page
#[mcp_resource(
    uri = "test://page/{name}",
    title = "Pages",
    icon(src = "https://example.org/p.png", mime = "image/png"),
    audience("user"),
    priority = 0.5,
    meta(kind = "page", n = 1),
    list = instances
)]
fn page(name: String) -> String {
    name
}

fn builder() -> ServerBuilder {
    let made = ToolDef::builder("made").icon("https://example.org/r.png");
    let made = made.icon(Icon::new("https://example.org/x.png").sizes(["1x2"]));
    let builder = sample_server::builder().tool::<drawn>().resource::<page>();
    builder.add(made.handler(|_: ToolCall| async {}))
}

/// The `icons` of every entry of a list that has some, and of a resource link.
async fn icons(server: &TestServer) -> Value {
    let mut lists = server.list_tools().await;
    lists.extend(server.list_resources().await);
    lists.extend(server.list_templates().await);
    lists.extend(server.list_prompts().await);
    let blocks = server.call("blocks", json!({})).await;
    let mut found = json!({ "link": blocks.value()["content"][3]["icons"] });
    for entry in lists.iter().filter(|entry| entry.get("icons").is_some()) {
        found[entry["name"].as_str().expect("a name")] = entry["icons"].clone();
    }
    found
}

#[tokio::test]
async fn icons_are_serialized_in_full_on_every_kind_of_item() {
    let mut server = serve(builder());
    let icon = json!({ "src": "https://example.com/icon.png" });
    let light = json!([{
        "src": "https://example.com/light.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"
    }]);
    let (of_page, of_bytes) = (
        json!([{ "src": "https://example.org/p.png", "mimeType": "image/png" }]),
        json!([{ "src": "https://example.com/icon.png", "theme": "light" }]),
    );
    let all = json!({
        "every_option": [
            icon,
            {
                "src": "https://example.com/dark.svg", "mimeType": "image/svg+xml", "sizes": ["any", "48x48"],
                "theme": "dark"
            }
        ],
        "drawn": [
            { "src": "data:image/png;base64,AA" },
            { "src": "https://example.org/j.png" },
            { "src": "https://example.org/l.png", "sizes": ["48x48", "96x96"], "theme": "light" }
        ],
        "made": [
            { "src": "https://example.org/r.png" },
            { "src": "https://example.org/x.png", "sizes": ["1x2"] }
        ],
        "text": [icon],
        "bytes": of_bytes,
        "one": light,
        "test://bytes/two": of_bytes,
        "page": of_page,
        "plain": of_page,
        "own": [{ "src": "https://example.org/own.png", "theme": "light" }],
        "messages": [icon],
        "link": light
    });
    assert_eq!(icons(&server).await, all);
    for revision in LEGACY {
        server = server.legacy(revision);
        let known = if revision == Revision::V2025_11_25 { all.clone() } else { json!({ "link": null }) };
        assert_eq!(icons(&server).await, known, "{revision}");
    }
}

#[tokio::test]
async fn server_info_has_the_members_that_the_revision_defines() {
    let server = sample_server::builder().info(|info| info.name("n").version("1")).build().expect("a server");
    let full = json!({
        "name": "n",
        "title": "Everything",
        "version": "1",
        "description": "All that there is",
        "icons": [
            { "src": "https://example.com/icon.png" },
            {
                "src": "https://example.com/light.png", "mimeType": "image/png", "sizes": ["48x48"],
                "theme": "light"
            }
        ],
        "websiteUrl": "https://example.com"
    });
    const INFO: &str = "io.modelcontextprotocol/serverInfo";
    let modern = TestServer::of(&server);
    let found = modern.request("server/discover", json!({})).await;
    assert_eq!(found.value()["_meta"], json!({ INFO: full }));
    // icons can be large, and clients do not read them from every result
    let reply = modern.call("list", json!({})).await;
    assert_eq!(reply.value()["_meta"], json!({ INFO: { "name": "n", "version": "1" } }));

    for revision in LEGACY {
        let mut known = full.clone();
        let members = known.as_object_mut().expect("an object");
        let from = [
            (Revision::V2025_06_18, &["title"][..]),
            (Revision::V2025_11_25, &["description", "icons", "websiteUrl"]),
        ];
        for (_, late) in from.iter().filter(|(since, _)| revision < *since) {
            members.retain(|key, _| !late.contains(&key.as_str()));
        }
        assert_eq!(server_info(&server, revision).await, known, "{revision}");
    }
}

/// The `serverInfo` of an `initialize` result over a byte stream.
async fn server_info(server: &Server, revision: Revision) -> Value {
    let mut connection = LineConnection::serve(server, 1 << 16);
    let result = connection.initialize(revision.as_str()).await;
    connection.close_input().await;
    assert_eq!(connection.next().await, None);
    connection.served().await;
    result["serverInfo"].clone()
}

#[test]
fn icons_that_clients_reject_are_build_errors() {
    let error = build_error(mcp_runtime::server!().info(|info| info.icon("file:///i.png")));
    let words = "the server's icon `file:///i.png` is neither an `https:` nor a `data:` URI";
    assert!(error.contains(words), "{error}");
    let icon = Icon::new("https://example.org/i.png").sizes(["48x48", "large"]);
    let error = build_error(mcp_runtime::server!().info(|info| info.icon(icon.clone())));
    assert!(error.contains("has `large` among its sizes\nwrite width and height"), "{error}");

    let tool = ToolDef::builder("made").icon(icon).handler(|_: ToolCall| async {});
    let error = build_error(mcp_runtime::server!().add(tool));
    assert!(error.contains("tool `made`: icon `https://example.org/i.png` has `large`"), "{error}");
}

#[tokio::test]
async fn arguments_have_titles() {
    let mut server = serve(builder());
    let tools = server.list_tools().await;
    assert_eq!(
        named(&tools, "drawn")["inputSchema"]["properties"]["count"],
        json!({ "type": "integer", "title": "How many of them", "minimum": 0, "maximum": 255 })
    );
    let arguments =
        json!([{ "name": "topic", "title": "What about", "description": "A topic", "required": true }]);
    assert_eq!(named(&server.list_prompts().await, "messages")["arguments"], arguments);
    for revision in LEGACY {
        server = server.legacy(revision);
        let prompts = server.list_prompts().await;
        let shown = &named(&prompts, "messages")["arguments"][0]["title"];
        let known = if revision >= Revision::V2025_06_18 { json!("What about") } else { Value::Null };
        assert_eq!(*shown, known, "{revision}");
    }
}

#[tokio::test]
async fn a_listed_instance_overrides_the_metadata_of_its_template() {
    let mut server = serve(builder());
    let resources = server.list_resources().await;
    let plain = json!({
        "uri": "test://page/plain",
        "name": "plain",
        "description": "A page",
        "icons": [{ "src": "https://example.org/p.png", "mimeType": "image/png" }],
        "mimeType": "text/plain",
        "annotations": { "audience": ["user"], "priority": 0.5 },
        "_meta": { "kind": "page", "n": 1 }
    });
    assert_eq!(*named(&resources, "plain"), plain);
    let own = json!({
        "uri": "test://page/own",
        "name": "own",
        "title": "Own page",
        "description": "A page",
        "icons": [{ "src": "https://example.org/own.png", "theme": "light" }],
        "mimeType": "text/plain",
        "annotations": { "audience": ["assistant"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z" },
        "_meta": { "n": 1, "kind": "own", "more": 1 }
    });
    assert_eq!(*named(&resources, "own"), own);
    for revision in LEGACY {
        server = server.legacy(revision);
        let mut known = own.clone();
        let members = known.as_object_mut().expect("an object");
        if revision < Revision::V2025_11_25 {
            members.remove("icons");
        }
        if revision < Revision::V2025_06_18 {
            members.retain(|key, _| key != "title" && key != "_meta");
            members["annotations"] = json!({ "audience": ["assistant"], "priority": 0.5 });
        }
        assert_eq!(*named(&server.list_resources().await, "own"), known, "{revision}");
    }
}

#[tokio::test]
async fn results_have_meta_in_every_revision_and_contents_have_meta_since_2025_06_18() {
    let mut server = serve(sample_server::builder());
    for &revision in Revision::ALL {
        server = server.legacy(revision);
        let read = server.read("test://meta").await;
        let got = server.prompt("messages", json!({ "topic": "tea" })).await;
        let called = server.call("reports", json!({})).await;
        let metas = [&read, &got, &called].map(|reply| reply.value()["_meta"]["k"].clone());
        assert_eq!(metas, [json!(1), json!(1), json!("v")], "{revision}");
        let blocks = server.call("blocks", json!({})).await;
        let content = &blocks.value()["content"];
        let known = if revision >= Revision::V2025_06_18 { json!(1) } else { Value::Null };
        for inner in [
            &read.value()["contents"][0]["_meta"]["k"],
            &got.value()["messages"][1]["content"]["_meta"]["k"],
            &content[1]["_meta"]["k"],
            &content[4]["_meta"]["k"],
            &content[4]["resource"]["_meta"]["k"],
        ] {
            assert_eq!(*inner, known, "{revision}");
        }
    }
}

#[tokio::test]
async fn meta_of_a_result_cannot_replace_server_info() {
    #[mcp_tool]
    fn pretends() -> ToolResult {
        ToolResult::text("x")
            .meta("io.modelcontextprotocol/serverInfo", json!({ "name": "other", "version": "9" }))
    }
    let server = serve(
        mcp_runtime::server!()
            .info(|info| info.name("n").version("1").icon("https://a.example"))
            .tool::<pretends>(),
    );
    let reply = server.call("pretends", json!({})).await;
    let info = json!({ "io.modelcontextprotocol/serverInfo": { "name": "n", "version": "1" } });
    assert_eq!(reply.value()["_meta"], info);
}

#[tokio::test]
async fn notifications_have_meta_since_2025_11_25() {
    let mut server = serve(sample_server::builder());
    let params = json!({
        "name": "reports", "_meta": { "progressToken": 1, "io.modelcontextprotocol/logLevel": "info" }
    });
    for &revision in Revision::ALL {
        server = server.legacy(revision);
        let reply = server.request("tools/call", params.clone()).await;
        let metas: Vec<_> = reply.notifications().iter().map(|told| told["params"].get("_meta")).collect();
        let meta = json!({ "k": 1 });
        let known = (revision >= Revision::V2025_11_25).then_some(&meta);
        assert_eq!(metas, [known, known], "{revision}");
    }
}

#[tokio::test]
async fn client_requests_have_meta_in_2025_11_25() {
    #[mcp_tool]
    async fn asks_with_meta(ctx: &Context) -> String {
        let meta = [("of".to_owned(), json!("model"))].into_iter().collect();
        let model = CreateMessage { meta, ..CreateMessage::user("Hi") };
        let (form, visit, model, roots) = tokio::join!(
            ctx.elicit::<bool>("form", "Sure?").meta("of", "form").answer(),
            ctx.elicit_url("visit", "Go there.", "https://a.example").meta("of", "visit"),
            ctx.sample("model", model),
            ctx.roots("roots").meta("of", "roots"),
        );
        format!("{} {} {} {}", form.is_ok(), visit.is_ok(), model.is_ok(), roots.is_ok())
    }
    let built = mcp_runtime::server!().tool::<asks_with_meta>().build().expect("a server");
    for &revision in Revision::ALL {
        let features = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        let (server, requests) = answering(TestServer::of(&built), features, |method, _| {
            Ok(match method {
                "elicitation/create" => json!({ "action": "decline" }),
                "roots/list" => json!({ "roots": [] }),
                _ => {
                    json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Hi" } })
                }
            })
        });
        server.legacy(revision).call("asks_with_meta", json!({})).await.expect_ok();
        let mut asked: Vec<_> =
            requests.take().into_iter().map(|(_, params)| params["_meta"]["of"].clone()).collect();
        asked.sort_by_key(Value::to_string);
        let known = match revision {
            Revision::V2025_11_25 => json!(["form", "model", "roots", "visit"]),
            Revision::V2025_06_18 => json!([null, null, null]),
            Revision::V2024_11_05 | Revision::V2025_03_26 => json!([null, null]),
            _ => json!([null, null, null, null]),
        };
        assert_eq!(Value::Array(asked), known, "{revision}");
    }
}
