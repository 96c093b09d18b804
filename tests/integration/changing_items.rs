//! Additions whose items change while the server runs; what is passed on of the results and definitions of other servers.

use mcp_runtime::{
    addition::{AddedItems, Addition, ItemKind},
    client::{Client, Round},
    layer::{LayeredCall, Next, Outcome},
    resource::{ResourceCall, ResourceDef},
    serde_json::{Map, value::RawValue},
};
use tokio::sync::{Notify, oneshot};

use crate::prelude::*;

fn tool(name: &str) -> ToolDef {
    ToolDef::builder(name).handler(|_: ToolCall| async { "done" })
}

fn resource(uri: &str) -> ResourceDef {
    ResourceDef::builder(uri).subscribe(|_, _| false).handler(|_: ResourceCall| async { "contents" })
}

/// An addition, and the place of its items once the server has opened.
fn addition(name: &str) -> (Addition, oneshot::Receiver<AddedItems>) {
    let (sender, items) = oneshot::channel();
    let addition = Addition::changing(name, |items| async move {
        drop(sender.send(items));
        std::future::pending::<()>().await;
    });
    (addition, items)
}

fn names(listed: &[Value]) -> Vec<&str> {
    listed.iter().filter_map(|entry| entry.get("name").or(entry.get("uri"))?.as_str()).collect()
}

/// Opens a server, whose additions begin.
async fn opened(server: &TestServer) {
    server.request("server/discover", json!({})).await.expect_ok();
}

#[mcp_tool]
fn own() -> &'static str {
    "own"
}

#[tokio::test]
async fn items_come_after_those_of_the_program_in_the_order_of_the_additions_and_not_of_time() {
    let ((first, first_items), (second, second_items)) = (addition("first"), addition("second"));
    let server = TestServer::new(mcp_runtime::server!().add(first).add(second).tool::<own>()).unwrap();
    opened(&server).await;
    let (first, second) = (first_items.await.unwrap(), second_items.await.unwrap());

    let refused =
        second.update(|items| ["own", "shared", "b"].iter().for_each(|name| items.add(tool(name)))).unwrap();
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].kind, refused[0].name.as_str()), (ItemKind::Tool, "own"));
    assert_eq!(refused[0].reason, "`this server` has the tool `own`");
    second.arrived();
    assert!(
        first
            .update(|items| ["a", "shared"].iter().for_each(|name| items.add(tool(name))))
            .unwrap()
            .is_empty()
    );
    first.arrived();
    assert_eq!(names(&server.list_tools().await), ["own", "a", "shared", "b"]);

    // what was refused comes back when its name is free, and the error names the other owner
    let error = second.try_add(tool("a")).unwrap_err().to_string();
    assert!(error.contains("`first` has the tool `a`"), "{error}");
    first.update(|items| items.remove(ItemKind::Tool, "shared")).unwrap();
    assert_eq!(names(&server.list_tools().await), ["own", "a", "shared", "b"]);
    first.update(|items| items.clear(ItemKind::Tool)).unwrap();
    assert_eq!(names(&server.list_tools().await), ["own", "shared", "b"]);
}

#[tokio::test]
async fn an_item_that_cannot_be_offered_fails_no_other() {
    let (plugins, items) = addition("plugins");
    let server = TestServer::new(mcp_runtime::server!().add(plugins)).unwrap();
    opened(&server).await;
    let items = items.await.unwrap();
    items.arrived();
    let refused = items.update(|items| {
        items.add(tool("a b"));
        items.add(tool("good"));
        items.add(tool("good"));
        items.add(resource("no scheme"));
        items.add(resource("a://b"));
    });
    let refused = refused.unwrap();
    assert_eq!(
        refused.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(),
        ["a b", "good", "no scheme"]
    );
    assert!(refused[0].reason.contains("is not a tool name"), "{}", refused[0].reason);
    assert!(items.try_add(tool("")).is_err());
    assert_eq!(names(&server.list_tools().await), ["good"]);
    assert_eq!(names(&server.list_resources().await).len(), 1);
    server.call("good", json!({})).await.expect_text("done");
}

#[tokio::test]
async fn items_have_the_prefix_the_layers_the_state_and_the_scopes_of_their_mount() {
    static LAYERED: AtomicUsize = AtomicUsize::new(0);
    async fn count(call: LayeredCall, next: Next) -> Outcome {
        LAYERED.fetch_add(1, Ordering::SeqCst);
        next.run(&call).await
    }
    let (plugins, items) = addition("plugins");
    let mounted = mcp_runtime::server!()
        .state("of the mount".to_owned())
        .transform(|item| item.only("later", |item| item.scopes(["admin"]).describe("It is there now.")))
        .layer(count)
        .add(plugins);
    let server = TestServer::new(mcp_runtime::server!().mount("eu", mounted)).unwrap();
    opened(&server).await;
    let items = items.await.unwrap();
    items.arrived();
    assert_eq!((items.prefix(), items.state::<String>().map(String::as_str)), ("eu", Some("of the mount")));
    items
        .try_add(ToolDef::builder("reads").handler(|call: ToolCall| async move {
            call.context.state::<String>().cloned().unwrap_or_default()
        }))
        .unwrap();
    items.try_add(tool("later")).unwrap();
    let tools = server.list_tools().await;
    assert_eq!(names(&tools), ["eu_reads", "eu_later"]);
    assert_eq!(tools[1]["description"], "It is there now.");
    server.call("eu_reads", json!({})).await.expect_text("of the mount");
    assert_eq!(LAYERED.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_list_waits_for_the_first_items_and_clients_are_told_of_later_ones() {
    let (plugins, items) = addition("plugins");
    let server = TestServer::new(
        mcp_runtime::server!().add(plugins).lists(|lists| lists.ttl(Duration::from_secs(60))),
    )
    .unwrap();
    let capabilities = server.capabilities().await;
    for kind in ["tools", "prompts", "resources"] {
        assert_eq!(capabilities[kind], json!({ "listChanged": true }), "{kind}");
    }
    assert_eq!(capabilities["completions"], json!({}));
    // the first request opens the server, where the addition begins
    let (listed, items) = tokio::join!(server.list_tools(), async {
        let items = items.await.unwrap();
        items.try_add(tool("first")).unwrap();
        items.arrived();
        items
    });
    assert_eq!(names(&listed), ["first"]);

    let mut changes = server.listen(json!({ "toolsListChanged": true })).await;
    items.try_add(tool("second")).unwrap();
    assert_eq!(changes.next().await["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn a_list_goes_without_items_that_do_not_come_and_must_not_be_kept() {
    let (plugins, items) = addition("plugins");
    let server = TestServer::new(
        mcp_runtime::server!().add(plugins).lists(|lists| lists.ttl(Duration::from_secs(60))),
    )
    .unwrap();
    let reply = server.request("tools/list", json!({})).await;
    let list = reply.value();
    assert_eq!(
        (&list["tools"], &list["ttlMs"], &list["cacheScope"]),
        (&json!([]), &json!(0), &json!("private"))
    );
    items.await.unwrap().arrived();
    assert_eq!(server.request("tools/list", json!({})).await.value()["ttlMs"], 60_000);
}

#[tokio::test]
async fn the_function_of_an_addition_ends_with_the_server() {
    struct Ends(Arc<AtomicBool>, Arc<Notify>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
            self.1.notify_one();
        }
    }
    let (has_ended, ended) = (Arc::<AtomicBool>::default(), Arc::<Notify>::default());
    let ends = Ends(has_ended.clone(), ended.clone());
    let plugins = Addition::changing("plugins", |items| async move {
        let _ends = ends;
        items.arrived();
        std::future::pending::<()>().await;
    });
    let server = TestServer::new(mcp_runtime::server!().add(plugins)).unwrap();
    opened(&server).await;
    assert!(!has_ended.load(Ordering::SeqCst));
    drop(server);
    within(ended.notified()).await;
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

#[tokio::test]
async fn unchecked_schemas_are_published_and_neither_arguments_nor_results_are_changed() {
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer", "default": 3 }, "m": { "pattern": "(?<!x)y", "$dynamicRef": "#x" } },
        "required": ["n"],
    });
    let echo = ToolDef::builder("echo")
        .unchecked_input_schema(schema.clone())
        .unchecked_output_schema(json!({ "type": "object", "required": ["missing"] }))
        .member("com.example/price", 3)
        .member("name", "another")
        .member("annotations", json!({ "title": "An echo", "readOnlyHint": false }))
        .hints(|hints| hints.read_only = Some(true))
        .handler(|call: ToolCall| async move {
            let arguments = call.raw_arguments().map(RawValue::get).unwrap_or_default();
            ToolResult::from_wire(&raw(&format!(r#"{{"content":[],"structuredContent":{arguments},"x":1}}"#)))
                .map_err(ToolError::private)
        });
    let server = mcp_runtime::server!().add(echo).build().unwrap();
    let client = Client::connect(&server).await.unwrap();
    let listed = client.send("tools/list", json!({})).await.unwrap();
    let tool = &listed["tools"][0];
    assert_eq!(tool["inputSchema"], schema);
    assert_eq!((&tool["name"], &tool["com.example/price"]), (&json!("echo"), &json!(3)));
    assert_eq!(tool["annotations"], json!({ "title": "An echo", "readOnlyHint": true }));

    let arguments = r#"{"n":"12","z":[1.50,100000000000000000000000]}"#;
    let call = || client.send("tools/call", json!({ "name": "echo" })).arguments(&raw(arguments));
    let result = call().raw().await.unwrap();
    assert!(result.get().contains(&format!(r#""structuredContent":{arguments}"#)), "{result}");
    assert!(result.get().contains(r#""x":1"#), "{result}");
}

#[mcp_type]
struct Consent {
    sure: bool,
}

#[mcp_tool]
async fn ask(ctx: &Context) -> Result<String, ToolError> {
    let consent: Consent = ctx.elicit("sure", "Really?").await?;
    Ok(format!("sure: {}", consent.sure))
}

#[tokio::test]
async fn a_round_gives_the_questions_to_the_program_and_takes_its_answers() {
    let server = mcp_runtime::server!().tool::<ask>().build().unwrap();
    // the client itself can answer nothing
    let client = Client::connect(&server).await.unwrap();
    let call =
        || client.send("tools/call", json!({ "name": "ask" })).capabilities(json!({ "elicitation": {} }));
    let Round::Input { requests, state } = call().round().await.unwrap() else { panic!("a question") };
    assert_eq!(requests.len(), 1);
    let answers: Map<_, _> = requests
        .into_iter()
        .map(|(key, request)| {
            assert_eq!(request["method"], "elicitation/create");
            (key, json!({ "action": "accept", "content": { "sure": true } }))
        })
        .collect();
    let Round::Complete(result) = call().answered(answers, state).round().await.unwrap() else {
        panic!("a result")
    };
    assert!(result.get().contains("sure: true"), "{result}");
    // without the capabilities of the request, those of the client count
    let refused = client.send("tools/call", json!({ "name": "ask" })).round().await.unwrap_err();
    assert_eq!(refused.code(), Some(-32021), "{refused}");
}

#[mcp_tool]
async fn passes_on(ctx: &Context) -> Result<String, ToolError> {
    let form = raw(r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}"#);
    let (one, two) = tokio::join!(
        ctx.ask("1/a", "elicitation/create", &form),
        ctx.ask("1/b", "elicitation/create", &form),
    );
    assert!(ctx.ask("1/c", "tools/call", &form).await.is_err());
    Ok(format!("{} {}", one?, two?))
}

#[tokio::test]
async fn questions_are_passed_on_together_and_their_answers_come_back_as_they_are() {
    let server = mcp_runtime::server!().tool::<passes_on>().build().unwrap();
    let client = Client::connect(&server).await.unwrap();
    let call = || {
        client.send("tools/call", json!({ "name": "passes_on" })).capabilities(json!({ "elicitation": {} }))
    };
    let Round::Input { requests, state } = call().round().await.unwrap() else { panic!("questions") };
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["1/a", "1/b"]);
    assert_eq!(requests["1/a"]["params"]["message"], "Sure?");
    let answers =
        requests.into_iter().map(|(key, _)| (key, json!({ "action": "decline", "x": 1 }))).collect();
    let Round::Complete(result) = call().answered(answers, state).round().await.unwrap() else {
        panic!("a result")
    };
    assert_eq!(result.get().matches("decline").count(), 2, "{result}");
}

#[tokio::test]
async fn an_addition_begins_when_it_is_wanted_and_a_request_for_an_unknown_item_waits_for_it() {
    let plugins = Addition::changing("plugins", |items| async move {
        items.wanted().await;
        items.try_add(tool("later")).unwrap();
        items.try_add(resource("a://b")).unwrap();
        items.arrived();
    });
    let server = mcp_runtime::server!().add(plugins).tool::<own>().build().unwrap();
    let server = TestServer::of(&server);
    server.call("own", json!({})).await.expect_text("own");
    server.call("later", json!({})).await.expect_text("done");
    server.read("a://b").await.expect_text("contents");
    server.call("never", json!({})).await.expect_code(-32602);
}
