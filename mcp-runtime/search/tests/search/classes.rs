//! Approval by class: every way to have something destructive called through `call_read_only` that was tried.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use mcp_runtime::{
    Revision, Server, ServerBuilder, ToolError,
    testing::TestServer,
    tool::{Hints, TaskMode, ToolCall, ToolDef},
};
use mcp_runtime_search::Search;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::support::{many, to};

/// How often something was destroyed.
#[derive(Clone, Default)]
struct Destroyed(Arc<AtomicUsize>);

impl Destroyed {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn tool(&self, name: &str, hint: impl FnOnce(&mut Hints)) -> ToolDef {
        let destroyed = self.clone();
        ToolDef::builder(name).hints(hint).handler(move |_: ToolCall| {
            destroyed.0.fetch_add(1, Ordering::SeqCst);
            async { "destroyed" }
        })
    }
}

fn read(name: &str) -> ToolDef {
    ToolDef::builder(name).hints(|hints| hints.read_only = Some(true)).handler(|_: ToolCall| async { "read" })
}

fn builder(destroyed: &Destroyed) -> ServerBuilder {
    many(60)
        .add(read("look"))
        .add(destroyed.tool("plain", |_| ()))
        .add(destroyed.tool("delete", |hints| hints.destructive = Some(true)))
        .add(destroyed.tool("writes", |hints| hints.read_only = Some(false)))
        .add(destroyed.tool("both", |hints| {
            hints.read_only = Some(true);
            hints.destructive = Some(true);
        }))
        .add(destroyed.tool("append", |hints| hints.destructive = Some(false)))
        .add(Search::bm25())
}

fn start(destroyed: &Destroyed) -> (Server, TestServer) {
    let server = builder(destroyed).build().unwrap();
    let client = TestServer::of(&server);
    (server, client)
}

#[tokio::test]
async fn each_class_has_its_own_tool_and_the_others_say_which() {
    let destroyed = Destroyed::default();
    let (_server, client) = start(&destroyed);
    let callers = ["call_read_only", "call_tool", "call_destructive"];
    for (name, own) in [
        ("look", "call_read_only"),
        ("append", "call_tool"),
        ("delete", "call_destructive"),
        ("plain", "call_destructive"),
        ("writes", "call_destructive"),
        ("both", "call_destructive"),
    ] {
        let before = destroyed.count();
        for caller in callers.into_iter().filter(|caller| *caller != own) {
            let refused = client.call(caller, to(name, json!({}))).await;
            refused.expect_failure(&format!("`{name}` is not for `{caller}`\ncall it with `{own}`"));
        }
        assert_eq!(destroyed.count(), before, "{name}");
        client.call(own, to(name, json!({}))).await.expect_ok();
    }
    assert_eq!(destroyed.count(), 5);
}

#[tokio::test]
async fn the_three_tools_have_the_hints_of_their_class() {
    let (_server, client) = start(&Destroyed::default());
    let tools = client.list_tools().await;
    let hints: Vec<_> = tools.iter().map(|tool| tool["annotations"].clone()).collect();
    assert_eq!(
        hints,
        [
            json!({ "readOnlyHint": true }),
            json!({ "readOnlyHint": true }),
            json!({ "readOnlyHint": false, "destructiveHint": false }),
            json!({ "readOnlyHint": false, "destructiveHint": true }),
        ]
    );
}

#[tokio::test]
async fn no_call_leads_through_a_tool_that_passes_calls_on() {
    let destroyed = Destroyed::default();
    let relay = ToolDef::builder("relay").hints(|hints| hints.read_only = Some(true));
    let relay = relay.forwards(|_, _| Ok(("delete".to_owned(), json!({}))));
    let server = TestServer::new(builder(&destroyed).add(relay)).unwrap();
    for outer in ["call_read_only", "call_tool", "call_destructive"] {
        for inner in ["call_read_only", "call_tool", "call_destructive", "relay"] {
            let nested = to(inner, to("delete", json!({})));
            let reply = server.call(outer, nested).await;
            assert_eq!(reply.value()["isError"], true, "{outer} {inner}");
        }
    }
    assert_eq!(destroyed.count(), 0);
    // a search is a tool that reads
    let search = to("search_tools", json!({ "query": "part1" }));
    server.call("call_read_only", search).await.expect_ok();
}

#[tokio::test]
async fn names_that_are_almost_those_of_tools_are_unknown() {
    let destroyed = Destroyed::default();
    let (_server, client) = start(&destroyed);
    for name in [
        "Delete",
        "DELETE",
        " delete",
        "delete ",
        "delete\0",
        "de_lete",
        "delete\u{200b}",
        "ｄelete",
        "",
        "tools/delete",
        "server.delete",
    ] {
        client.call("call_read_only", to(name, json!({}))).await.expect_code(-32602);
    }
    for arguments in [
        json!({}),
        json!({ "name": 5 }),
        json!({ "name": ["delete"] }),
        json!({ "name": { "a": 1 } }),
        json!({ "name": null }),
    ] {
        let reply = client.call("call_read_only", arguments).await;
        assert!(reply.is_error() || reply.value()["isError"] == true);
    }
    assert_eq!(destroyed.count(), 0);
}

/// The replies to these lines of a client of 2025-03-26.
async fn replies(server: &Server, lines: &[&str]) -> String {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let sent = format!("{hello}\n{}\n", lines.join("\n"));
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let mut replies = String::new();
    let served = server.serve(std::io::Cursor::new(sent.into_bytes()), theirs);
    let (served, read) = tokio::join!(served, ours.read_to_string(&mut replies));
    served.unwrap();
    read.unwrap();
    replies
}

#[tokio::test]
async fn a_name_that_is_sent_twice_and_one_in_a_batch_are_judged_like_others() {
    let destroyed = Destroyed::default();
    let (server, _client) = start(&destroyed);
    let call = |id: u8, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"call_read_only","arguments":{arguments}}}}}"#
        )
    };
    let one = call(1, r#"{"name":"look","name":"delete"}"#);
    let two = call(2, r#"{"name":"delete","name":"look"}"#);
    let batch = format!("[{},{}]", call(3, r#"{"name":"delete"}"#), call(4, r#"{"name":"look"}"#));
    let replies = replies(&server, &[&one, &two, &batch]).await;
    assert_eq!(replies.matches(r#""isError":true"#).count(), 3, "{replies}");
    assert!(replies.contains("`delete` is not for `call_read_only`"), "{replies}");
    assert_eq!(destroyed.count(), 0);
}

#[tokio::test]
async fn hints_that_a_transform_sets_are_those_that_count() {
    let destroyed = Destroyed::default();
    let builder = builder(&destroyed).transform(|item| {
        let item = item.only("look", |tool| tool.hints(|hints| *hints = Hints::default()));
        item.only("delete", |tool| tool.rename("look_at").hints(|hints| hints.read_only = Some(true)))
    });
    let server = TestServer::new(builder).unwrap();
    server
        .call("call_read_only", to("look", json!({})))
        .await
        .expect_failure("call it with `call_destructive`");
    // both hints were set, one of them by the transform
    server
        .call("call_read_only", to("look_at", json!({})))
        .await
        .expect_failure("call it with `call_destructive`");
    server.call("call_read_only", to("delete", json!({}))).await.expect_code(-32602);
    assert_eq!(destroyed.count(), 0);
}

#[tokio::test]
async fn a_tool_that_becomes_destructive_after_it_was_found_is_not_called() {
    let destroyed = Destroyed::default();
    let (server, client) = start(&destroyed);
    let handle = server.handle();
    handle.add(read("changing")).unwrap();
    let answer = client.call("search_tools", json!({ "query": "changing" })).await.text();
    assert!(answer.contains("by call_read_only"), "{answer}");
    client.call("call_read_only", to("changing", json!({}))).await.expect_text("read");
    handle.add(destroyed.tool("changing", |_| ())).unwrap();
    client.call("call_read_only", to("changing", json!({}))).await.expect_failure("call_destructive");
    let answer = client.call("search_tools", json!({ "query": "changing" })).await.text();
    assert!(answer.contains("by call_destructive"), "{answer}");
    assert_eq!(destroyed.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_changes_while_it_is_called_is_called_as_it_was_judged() {
    let destroyed = Destroyed::default();
    let (server, client) = start(&destroyed);
    let handle = server.handle();
    handle.add(read("changing")).unwrap();
    let (of_thread, tool) = (destroyed.clone(), handle.clone());
    let changes = std::thread::spawn(move || {
        for _ in 0..200 {
            tool.add(of_thread.tool("changing", |_| ())).unwrap();
            tool.add(read("changing")).unwrap();
        }
    });
    while !changes.is_finished() {
        let reply = client.call("call_read_only", to("changing", json!({}))).await;
        assert!(reply.text() == "read" || reply.text().contains("call_destructive"), "{}", reply.text());
    }
    changes.join().unwrap();
    assert_eq!(destroyed.count(), 0);
}

#[tokio::test]
async fn batches_retries_and_tasks_are_judged_like_other_calls() {
    let destroyed = Destroyed::default();
    let job = destroyed.tool("job", |_| ());
    let asks = ToolDef::builder("asks").handler(|call: ToolCall| async move {
        let sure = call.context.elicit::<bool>("sure", "Sure?").await?;
        Ok::<_, ToolError>(format!("sure: {sure}"))
    });
    let task = ToolDef::builder("task").task(TaskMode::Capable).handler(|_: ToolCall| async { "done" });
    let server = builder(&destroyed).add(job).add(asks).add(task).build().unwrap();
    let client = TestServer::of(&server).answering(json!({ "elicitation": {} }), |_, _| {
        Ok(json!({ "action": "accept", "content": { "value": true } }))
    });
    client.call("call_destructive", to("asks", json!({}))).await.expect_text("sure: true");
    client.call("call_read_only", to("asks", json!({}))).await.expect_failure("call_destructive");
    // the state of a call that was approved does not approve another one
    let tools = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } } });
    let asked = |caller: &str, more: Value| {
        let mut params = json!({ "name": caller, "arguments": to("asks", json!({})), "_meta": tools });
        params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        params
    };
    let plain = TestServer::of(&server);
    let first = plain.request("tools/call", asked("call_destructive", json!({}))).await.value().clone();
    assert_eq!(first["resultType"], "input_required", "{first}");
    let answered = json!({
        "requestState": first["requestState"],
        "inputResponses": { "sure": { "action": "accept", "content": { "value": true } } },
    });
    let moved = plain.request("tools/call", asked("call_read_only", answered.clone())).await;
    moved.expect_failure("call_destructive");
    let kept = plain.request("tools/call", asked("call_destructive", answered)).await;
    kept.expect_text("sure: true");
    for (caller, is_task) in [("call_read_only", false), ("call_destructive", true)] {
        let params = json!({ "name": caller, "arguments": to("task", json!({})), "_meta": tools });
        let reply = plain.request("tools/call", params).await.value().clone();
        assert_eq!(reply["resultType"] == "task", is_task, "{reply}");
    }
    let legacy = TestServer::of(&server).legacy(Revision::V2025_03_26);
    legacy.call("call_read_only", to("delete", json!({}))).await.expect_failure("call_destructive");
    assert_eq!(destroyed.count(), 0);
}

#[tokio::test]
async fn what_is_only_for_pages_or_repeats_arguments_in_headers_is_not_passed_on() {
    let destroyed = Destroyed::default();
    let page = |name: &str, meta: Value| {
        let builder = ToolDef::builder(name).hints(|hints| hints.read_only = Some(true)).meta(meta);
        builder.handler(|_: ToolCall| async { "for the page" })
    };
    let header =
        ToolDef::builder("regional").hints(|hints| hints.read_only = Some(true)).input_schema(json!({
            "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        }));
    let builder = builder(&destroyed)
        .add(page("page_only", json!({ "ui": { "visibility": ["app"] } })))
        .add(page("also_models", json!({ "ui": { "visibility": ["app", "model"] } })))
        .add(header.handler(|_: ToolCall| async { "there" }));
    let server = TestServer::new(builder).unwrap();
    for name in ["page_only", "regional"] {
        server.call("call_read_only", to(name, json!({}))).await.expect_failure("call it by its name");
    }
    server.call("call_read_only", to("also_models", json!({}))).await.expect_ok();
}
