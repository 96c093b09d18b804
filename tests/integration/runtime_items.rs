//! What a program adds to a server at run time: definitions that are wrong, what items share with annotated ones, and
//! what stays when others change.

use std::sync::OnceLock;

use mcp_runtime::{
    ErrorKind,
    prompt::{PromptArgument, PromptCall, PromptDef},
    resource::{ResourceBuilder, ResourceCall, ResourceDef},
    tool::ToolBuilder,
};

use crate::prelude::*;

fn tool(edit: impl FnOnce(ToolBuilder) -> ToolBuilder) -> ToolDef {
    edit(ToolDef::builder("made")).handler(|_: ToolCall| async { "done" })
}

fn resource(uri: &str, edit: impl FnOnce(ResourceBuilder) -> ResourceBuilder) -> ResourceDef {
    edit(ResourceDef::builder(uri)).handler(|_: ResourceCall| async { "contents" })
}

fn prompt(name: &str, arguments: &[&str]) -> PromptDef {
    let builder = PromptDef::builder(name);
    let arguments = arguments.iter().map(|name| PromptArgument::new(*name));
    arguments
        .fold(builder, mcp_runtime::prompt::PromptBuilder::argument)
        .handler(|_: PromptCall| async { "hi" })
}

#[mcp_tool]
fn taken() -> &'static str {
    "annotated"
}

#[mcp_resource(uri = "taken://one")]
fn taken_resource() -> &'static str {
    "annotated"
}

#[mcp_prompt]
fn taken_prompt() -> &'static str {
    "annotated"
}

#[tokio::test]
async fn the_items_of_a_server_are_not_changed_by_what_runs_while_they_are_changed() {
    let later: Arc<OnceLock<ServerHandle>> = Arc::default();
    let of_transform = later.clone();
    let refused = Arc::new(Mutex::new(Vec::new()));
    let found = refused.clone();
    let server = mcp_runtime::server!().transform(move |item| {
        if let Some(handle) = of_transform.get() {
            found.lock().unwrap().push(handle.remove_tool("made").unwrap_err().to_string());
        }
        item
    });
    let server = server.build().expect("a server");
    let handle = server.handle();
    later.set(handle.clone()).expect("set once");
    handle
        .update(|items| {
            refused.lock().unwrap().push(handle.add(tool(|t| t)).unwrap_err().to_string());
            items.add(tool(|t| t.description("Added by the update.")));
        })
        .expect("updated");
    let refused = std::mem::take(&mut *refused.lock().unwrap());
    assert_eq!(refused.len(), 2, "by the closure and by the transform");
    assert!(
        refused
            .iter()
            .all(|error| error.starts_with("the items of the server are changed inside of `update`"))
    );
    assert_eq!(TestServer::of(&server).list_tools().await.len(), 1);
    assert!(handle.remove_tool("made").expect("after the update"));
}

type Add = fn(&ServerHandle) -> mcp_runtime::Result<()>;

#[tokio::test]
async fn a_wrong_definition_at_run_time_is_an_error_that_names_the_item_and_changes_nothing() {
    let built = mcp_runtime::server!().tool::<taken>().resource::<taken_resource>().prompt::<taken_prompt>();
    let built = built.build().expect("a server");
    let handle = built.handle();
    handle.add(resource("kept://one", |r| r)).expect("added");
    let server = TestServer::of(&built);
    let listed = async || {
        (
            server.list_tools().await,
            server.list_resources().await,
            server.list_templates().await,
            server.list_prompts().await,
        )
    };
    let before = listed().await;
    let wrong: &[(Add, &str)] = &[
        (|h| h.add(tool(|t| t.input_schema(json!({ "type": "string" })))), "tool `made`: an input schema"),
        (|h| h.add(tool(|t| t.icon("ftp://x"))), "tool `made`: icon `ftp://x`"),
        (|h| h.add(ToolDef::builder("a b").handler(|_| async {})), "`a b` is not a tool name"),
        (|h| h.add(ToolDef::builder("taken").handler(|_| async {})), "two tools are `taken`"),
        (|h| h.add(resource("TAKEN://one", |r| r)), "`TAKEN://one`, which match the same URIs"),
        (|h| h.add(resource("nothing", |r| r)), "`nothing` has no scheme"),
        (|h| h.add(resource("a://{x", |r| r)), "`{x` is not closed"),
        (|h| h.add(resource("a://{x}{y}", |r| r)), "nothing separates `{y}`"),
        (|h| h.add(resource("a://b", |r| r.mime("text"))), "`text` is not a media type"),
        (|h| h.add(resource("a://b", |r| r.icon("ftp://x"))), "resource `a://b`: icon `ftp://x`"),
        (|h| h.add(resource("a://{b}", |r| r.size(1))), "`size` is for a single resource"),
        (|h| h.add(resource("a://b", |r| r.list(|_, _| async { ["a://b"] }))), "`list` is for the instances"),
        (|h| h.add(resource("a://{b}", |r| r.complete("c", ["d"]))), "no variable `c`"),
        (|h| h.add(prompt("taken_prompt", &[])), "two prompts are `taken_prompt`"),
        (|h| h.add(prompt("", &[])), "its name is empty"),
        (|h| h.add(prompt("p", &["a", "a"])), "prompt `p`: two arguments are named `a`"),
        (|h| h.add(prompt("p", &[""])), "the name of an argument is empty"),
    ];
    for (add, part) in wrong {
        let error = add(&handle).expect_err(part);
        assert_eq!(error.kind(), ErrorKind::Build, "{part}");
        let text = error.to_string();
        assert!(text.starts_with("the update was not applied:\n") && text.contains(part), "{part}: {text}");
        assert_eq!(listed().await, before, "{part}");
    }
    // one wrong item among several: none is added
    let update = handle.update(|items| {
        items.add(prompt("fine", &[]));
        items.remove_resource("kept://one");
        items.add(resource("nothing", |r| r));
        items.add(prompt("", &[]));
    });
    let text = update.expect_err("two wrong items").to_string();
    assert!(text.contains("`nothing` has no scheme") && text.contains("its name is empty"), "{text}");
    assert_eq!(listed().await, before);
    // annotated items stay
    assert!(!handle.remove_tool("taken").unwrap());
    assert!(!handle.remove_resource("taken://one").unwrap());
    assert!(!handle.remove_prompt("taken_prompt").unwrap());
}

#[test]
fn a_wrong_definition_in_a_builder_is_a_build_error() {
    let builder = mcp_runtime::server!().add(resource("nothing", |r| r)).add(prompt("p", &["a", "a"]));
    let error = build_error(builder);
    assert!(error.starts_with("the server cannot be built:\n"), "{error}");
    assert!(
        error.contains("`nothing` has no scheme") && error.contains("two arguments are named `a`"),
        "{error}"
    );
    let builder = mcp_runtime::server!().add(prompt("p", &[])).add(resource("a://b", |r| r)).add(tool(|t| t));
    let error = build_error(builder.lists(|lists| lists.require_descriptions()));
    for item in ["prompt `p`", "resource `a://b`", "tool `made`"] {
        assert!(error.contains(&format!("{item} has no description")), "{error}");
    }
}

#[test]
fn a_secret_that_is_not_an_argument_is_a_build_error() {
    let schema = json!({ "type": "object", "properties": { "pin": { "type": "string" } } });
    let builder = |secret: &str| {
        mcp_runtime::server!().add(tool(|tool| tool.input_schema(schema.clone()).secret(secret)))
    };
    assert!(builder("pin").build().is_ok());
    let error = build_error(builder("pim"));
    assert!(error.contains("tool `made`: the secret `pim` is not a property of the input schema"), "{error}");
}

#[tokio::test]
async fn items_of_a_mounted_builder_have_its_prefix_and_state() {
    struct Greeting(&'static str);
    let inner = mcp_runtime::server!()
        .state(Greeting("hello from inside"))
        .add(ResourceDef::builder("note://{id}").name("note").list(|_, _| async { ["note://1"] }).handler(
            |call: ResourceCall| async move {
                let greeting = call.context.state::<Greeting>().ok_or("no greeting")?;
                Ok::<_, ToolError>(format!("{}: {}", call.variable::<u8>("id")?, greeting.0))
            },
        ))
        .add(prompt("greet", &[]));
    let built = mcp_runtime::server!().mount("inner", inner).build().expect("a server");
    let handle = built.handle();
    let server = TestServer::of(&built);
    assert_eq!(server.list_resources().await[0]["uri"], "note://inner/1");
    assert_eq!(server.list_templates().await[0]["name"], "inner_note");
    server.read("note://inner/1").await.expect_text("1: hello from inside");
    server.prompt("inner_greet", json!({})).await.expect_ok();
    assert!(!handle.remove_prompt("greet").unwrap() && handle.remove_prompt("inner_greet").unwrap());
    assert!(!handle.remove_resource("note://{id}").unwrap());
    assert!(handle.remove_resource("note://inner/{id}").unwrap());
}

/// On one thread, a handler that runs in place would hold up the call that lets it go.
#[tokio::test]
async fn blocking_handlers_leave_the_runtime_to_other_calls() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let receiver = Arc::new(Mutex::new(receiver));
    let wait = move || {
        let _released = receiver.lock().unwrap().recv_timeout(PATIENCE);
        "released"
    };
    let (tool, resource, prompt) = (wait.clone(), wait.clone(), wait);
    let server = serve(
        mcp_runtime::server!()
            .tool::<taken>()
            .add(ToolDef::builder("wait").blocking_handler(move |_: ToolCall| tool()))
            .add(ResourceDef::builder("wait://one").blocking_handler(move |_: ResourceCall| resource()))
            .add(PromptDef::builder("wait").blocking_handler(move |_: PromptCall| prompt())),
    );
    let others = async {
        server.call("taken", json!({})).await.expect_text("annotated");
        (0..3).for_each(|_| sender.send(()).unwrap());
    };
    let (tool, read, prompt, ()) = tokio::join!(
        server.call("wait", json!({})),
        server.read("wait://one"),
        server.prompt("wait", json!({})),
        others
    );
    tool.expect_text("released");
    read.expect_text("released");
    assert_eq!(prompt.value()["messages"][0]["content"]["text"], "released");
}

#[tokio::test]
async fn a_panic_of_a_handler_fails_only_its_request() {
    let server = serve(
        mcp_runtime::server!()
            .add(ResourceDef::builder("panics://{id}").handler(|call: ResourceCall| async move {
                assert!(call.uri.ends_with('1'), "secret");
                ""
            }))
            .add(PromptDef::builder("panics").handler(|call: PromptCall| async move {
                assert!(!call.arguments.is_empty(), "secret");
                ""
            })),
    );
    for reply in [server.read("panics://2").await, server.prompt("panics", json!({})).await] {
        assert_eq!(refusal(&reply).0, -32603);
        assert!(!reply.to_string().contains("secret"), "{reply}");
    }
    server.read("panics://1").await.expect_ok();
}

#[mcp_tool(max_concurrency = 1)]
async fn one_at_a_time(gate: &Gate) {
    gate.pass().await;
}

#[tokio::test]
async fn an_update_keeps_the_permits_of_other_tools() {
    let gate = Gate::default();
    let made = gate.clone();
    let made = ToolDef::builder("made").max_concurrency(1).handler(move |_: ToolCall| {
        let gate = made.clone();
        async move { gate.pass().await }
    });
    let built = mcp_runtime::server!().tool::<one_at_a_time>().add(made).state(gate.clone());
    let built = built.build().expect("a server");
    let (handle, server) = (built.handle(), TestServer::of(&built));
    let update = async {
        gate.until_entered(2).await;
        handle.add(prompt("other", &[])).unwrap();
        // these are polled after the update, and wait for the permits of the first calls
        let late =
            async { tokio::join!(server.call("one_at_a_time", json!({})), server.call("made", json!({}))) };
        let released = async {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            assert_eq!(gate.entered(), 2);
            gate.open(4);
        };
        tokio::join!(late, released)
    };
    let (annotated, made, (late, ())) =
        tokio::join!(server.call("one_at_a_time", json!({})), server.call("made", json!({})), update);
    for reply in [annotated, made, late.0, late.1] {
        reply.expect_ok();
    }
    assert_eq!(gate.entered(), 4);
}

#[tokio::test]
async fn a_cursor_of_a_template_that_was_removed_is_invalid() {
    let built = mcp_runtime::server!()
        .add(resource("a://{id}", |r| r.list(|_, _| async { ["a://1", "a://2"] })))
        .add(resource("b://{id}", |r| r.list(|_, _| async { ["b://1"] })))
        .lists(|lists| lists.page_size(1))
        .build()
        .expect("a server");
    let (handle, server) = (built.handle(), TestServer::of(&built));
    let first = server.request("resources/list", json!({})).await;
    let cursor = json!({ "cursor": first.value()["nextCursor"] });
    handle.add(prompt("other", &[])).unwrap();
    let second = server.request("resources/list", cursor.clone()).await;
    assert_eq!(second.value()["resources"][0]["uri"], "a://2", "{second}");
    handle.remove_resource("a://{id}").unwrap();
    let refused = server.request("resources/list", cursor).await;
    assert_eq!(refusal(&refused), (-32602, "`cursor` is not a cursor of this list".to_owned()));
}

#[tokio::test]
async fn items_with_scopes_are_for_callers_that_have_them() {
    let built = mcp_runtime::server!().build().expect("a server");
    let handle = built.handle();
    handle.add(resource("hidden://one", |r| r.scopes(["admin"]))).unwrap();
    handle
        .add(PromptDef::builder("hidden").scopes(["admin"]).handler(|_: PromptCall| async { "hi" }))
        .unwrap();
    for (user, shown) in [("admin", 1), ("guest", 0)] {
        let client = TestServer::of(&built).caller(Principal::new("test", user).with_scopes([user]));
        let listed = (client.list_resources().await.len(), client.list_prompts().await.len());
        assert_eq!(listed, (shown, shown), "{user}");
        let read = client.read("hidden://one").await;
        let got = client.prompt("hidden", json!({})).await;
        assert_eq!((read.is_error(), got.is_error()), (shown == 0, shown == 0), "{user}: {read} {got}");
    }
}
