//! Icons, titles and `_meta`: present wherever the revision defines them, absent everywhere else.

use mcp_runtime::{
    client_request::CreateMessage,
    content::{Embedded, Icon, Message, ResourceContents, ResourceLink, Role, Text, Theme},
    context::LogLevel,
    prompt::PromptResult,
    resource::ListedResource,
};

use crate::prelude::*;

/// A tool
#[mcp_tool(
    icon = "https://example.org/i.png",
    icon(src = "https://example.org/d.svg", mime = "image/svg+xml", sizes("any"), theme = "dark"),
    icon("data:image/png;base64,AA", "https://example.org/j.png"),
    icon(theme = "light", sizes = ["48x48", "96x96"], src = "https://example.org/l.png")
)]
fn tool(#[mcp(title = "How many of them")] count: Option<u8>) -> Option<u8> {
    count
}

/// A text
#[mcp_resource(uri = "test://text", icon(src = "https://example.org/t.png", sizes("16x16")))]
fn text() -> &'static str {
    "text"
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

/// A prompt
#[mcp_prompt(icon(src = "https://example.org/m.png", theme = "light"))]
fn prompt(
    /// What about
    #[mcp(title = "Subject matter")]
    topic: String,
    tone: Option<String>,
) -> String {
    format!("{topic} {tone:?}")
}

/// Links
#[mcp_tool]
fn link() -> ResourceLink {
    ResourceLink::new("test://text", "text")
        .title("A text")
        .icon("https://example.org/k.png")
        .icon(Icon::new("https://example.org/o.png").mime("image/png").sizes(["32x32"]).theme(Theme::Dark))
        .meta("k", 1)
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!()
        .discover_in(module_path!())
        .info(|info| {
            info.name("n")
                .version("1")
                .title("Everything")
                .description("All that there is.")
                .website("https://example.org")
                .icon("https://example.org/s.png")
                .icon(
                    Icon::new("https://example.org/big.svg")
                        .mime("image/svg+xml")
                        .sizes(["any"])
                        .theme(Theme::Dark),
                )
        })
        .add(
            ToolDef::builder("made")
                .icon("https://example.org/r.png")
                .icon(Icon::new("https://example.org/x.png").sizes(["1x2"]))
                .handler(|_: ToolCall| async {}),
        )
}

/// The `icons` of every kind of list entry, and of a resource link.
async fn icons(server: &TestServer) -> Value {
    let tools = server.list_tools().await;
    let resources = server.list_resources().await;
    let templates = server.list_templates().await;
    let link = server.call("link", json!({})).await;
    json!({
        "tool": named(&tools, "tool")["icons"],
        "made": named(&tools, "made")["icons"],
        "text": named(&resources, "text")["icons"],
        "plain": named(&resources, "plain")["icons"],
        "own": named(&resources, "own")["icons"],
        "page": named(&templates, "page")["icons"],
        "prompt": named(&server.list_prompts().await, "prompt")["icons"],
        "link": link.value()["content"][0]["icons"],
    })
}

#[tokio::test]
async fn icons_are_serialized_in_full_on_every_kind_of_item() {
    let mut server = serve(builder());
    let page = json!([{ "src": "https://example.org/p.png", "mimeType": "image/png" }]);
    let all = json!({
        "tool": [
            { "src": "https://example.org/i.png" },
            {
                "src": "https://example.org/d.svg", "mimeType": "image/svg+xml", "sizes": ["any"],
                "theme": "dark"
            },
            { "src": "data:image/png;base64,AA" },
            { "src": "https://example.org/j.png" },
            { "src": "https://example.org/l.png", "sizes": ["48x48", "96x96"], "theme": "light" }
        ],
        "made": [
            { "src": "https://example.org/r.png" },
            { "src": "https://example.org/x.png", "sizes": ["1x2"] }
        ],
        "text": [{ "src": "https://example.org/t.png", "sizes": ["16x16"] }],
        "plain": page,
        "own": [{ "src": "https://example.org/own.png", "theme": "light" }],
        "page": page,
        "prompt": [{ "src": "https://example.org/m.png", "theme": "light" }],
        "link": [
            { "src": "https://example.org/k.png" },
            {
                "src": "https://example.org/o.png", "mimeType": "image/png", "sizes": ["32x32"],
                "theme": "dark"
            }
        ]
    });
    assert_eq!(icons(&server).await, all);
    for revision in LEGACY {
        server = server.legacy(revision);
        if revision == Revision::V2025_11_25 {
            assert_eq!(icons(&server).await, all, "{revision}");
        } else {
            let shown = icons(&server).await;
            let none = shown.as_object().is_some_and(|all| all.values().all(Value::is_null));
            assert!(none, "{revision}: {shown}");
        }
    }
}

#[tokio::test]
async fn server_info_has_the_members_that_the_revision_defines() {
    let server = builder().build().expect("a server");
    let full = json!({
        "name": "n",
        "title": "Everything",
        "version": "1",
        "description": "All that there is.",
        "icons": [
            { "src": "https://example.org/s.png" },
            {
                "src": "https://example.org/big.svg", "mimeType": "image/svg+xml", "sizes": ["any"],
                "theme": "dark"
            }
        ],
        "websiteUrl": "https://example.org"
    });
    const INFO: &str = "io.modelcontextprotocol/serverInfo";
    let modern = TestServer::of(&server);
    let found = modern.request("server/discover", json!({})).await;
    assert_eq!(found.value()["_meta"], json!({ INFO: full }));
    // icons can be large, and clients do not read them from every result
    let reply = modern.call("tool", json!({})).await;
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
        named(&tools, "tool")["inputSchema"]["properties"]["count"],
        json!({ "type": "integer", "title": "How many of them", "minimum": 0, "maximum": 255 })
    );
    let arguments = json!([
        { "name": "topic", "title": "Subject matter", "description": "What about", "required": true },
        { "name": "tone", "required": false }
    ]);
    assert_eq!(named(&server.list_prompts().await, "prompt")["arguments"], arguments);
    for revision in LEGACY {
        server = server.legacy(revision);
        let prompts = server.list_prompts().await;
        let shown = &named(&prompts, "prompt")["arguments"][0]["title"];
        let known = if revision >= Revision::V2025_06_18 { json!("Subject matter") } else { Value::Null };
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

/// Returns `_meta` everywhere
#[mcp_resource(uri = "test://meta")]
fn with_meta() -> mcp_runtime::resource::ResourceResult {
    let contents = ResourceContents::text("x").meta("of", "contents");
    mcp_runtime::resource::ResourceResult::new([contents]).meta("of", "result").meta("n", 1)
}

/// Returns `_meta` everywhere
#[mcp_prompt(name = "with_meta", meta(of = "entry"))]
fn prompt_with_meta() -> PromptResult {
    PromptResult::new([Message::user(Text::new("x").meta("of", "block"))]).meta("of", "result")
}

/// Returns `_meta` everywhere
#[mcp_tool(name = "with_meta", meta(of = "entry"))]
fn tool_with_meta() -> ToolResult {
    let embedded = Embedded::new(ResourceContents::text("x").uri("a://b").meta("of", "contents"));
    ToolResult::text("x").with(embedded.meta("of", "block")).meta("of", "result")
}

#[tokio::test]
async fn results_have_meta_in_every_revision_and_contents_have_meta_since_2025_06_18() {
    let server = serve(builder());
    let of = async |server: &TestServer, meta: &dyn Fn(&Reply) -> Value| {
        let read = server.read("test://meta").await;
        let got = server.prompt("with_meta", json!({})).await;
        let called = server.call("with_meta", json!({})).await;
        let inner = json!([
            read.value()["contents"][0]["_meta"]["of"],
            got.value()["messages"][0]["content"]["_meta"]["of"],
            called.value()["content"][1]["_meta"]["of"],
            called.value()["content"][1]["resource"]["_meta"]["of"],
        ]);
        (json!([meta(&read), meta(&got), meta(&called)]), inner)
    };
    let outer = json!([{ "of": "result", "n": 1 }, { "of": "result" }, { "of": "result" }]);
    let inner = json!(["contents", "block", "block", "contents"]);
    let modern = of(&server, &|reply| result(reply)["_meta"].clone()).await;
    assert_eq!(modern, (outer.clone(), inner.clone()));
    let mut server = server;
    for revision in LEGACY {
        server = server.legacy(revision);
        let known =
            if revision >= Revision::V2025_06_18 { inner.clone() } else { json!([null, null, null, null]) };
        let legacy = of(&server, &|reply| reply.value()["_meta"].clone()).await;
        assert_eq!(legacy, (outer.clone(), known), "{revision}");
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
    #[mcp_tool]
    fn logs_with_meta(ctx: &Context) {
        ctx.progress(1.0).meta("of", "progress").meta("n", 1).send();
        ctx.log(LogLevel::Warning, "careful").meta("of", "log").send();
        ctx.log(LogLevel::Warning, "plain").send();
    }
    let mut server = serve(
        mcp_runtime::server!().telemetry(|telemetry| telemetry.client_logging()).tool::<logs_with_meta>(),
    );
    let params = json!({
        "name": "logs_with_meta", "_meta": { "progressToken": 1, "io.modelcontextprotocol/logLevel": "info" }
    });
    let told = async |server: &TestServer| {
        let reply = server.request("tools/call", params.clone()).await;
        Value::from_iter(reply.notifications().iter().map(|told| told["params"]["_meta"].clone()))
    };
    let all = json!([{ "of": "progress", "n": 1 }, { "of": "log" }, null]);
    assert_eq!(told(&server).await, all);
    for revision in LEGACY {
        server = server.legacy(revision);
        let known = if revision >= Revision::V2025_11_25 { all.clone() } else { json!([null, null, null]) };
        assert_eq!(told(&server).await, known, "{revision}");
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
            ctx.roots("roots"),
        );
        format!("{} {} {} {}", form.is_ok(), visit.is_ok(), model.is_ok(), roots.is_ok())
    }
    let built = mcp_runtime::server!().tool::<asks_with_meta>().build().expect("a server");
    for revision in LEGACY.into_iter().chain([Revision::LATEST]) {
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
            Revision::V2025_11_25 => json!(["form", "model", "visit", null]),
            Revision::V2025_06_18 => json!([null, null, null]),
            Revision::V2024_11_05 | Revision::V2025_03_26 => json!([null, null]),
            _ => json!([null, null, null, null]),
        };
        assert_eq!(Value::Array(asked), known, "{revision}");
    }
}
