//! Results in pages: the cursor is the server's, whatever a client makes of it.

use mcp_runtime::{
    Revision, ServerBuilder,
    prelude::*,
    testing::{Reply, TestServer},
    tool::{Cursor, Page, ToolCall, ToolDef},
};
use serde_json::{Value, json};

use super::seen_by;
use crate::common::{build_error, failure, only_tool, serve};

#[mcp_type]
struct Hit {
    number: u32,
}

/// Finds numbers
#[mcp_tool]
fn find(from: u32, to: u32, cursor: Option<Cursor>) -> Result<Page<Hit>, ToolError> {
    let start = cursor.map(|cursor| cursor.position()).transpose()?.unwrap_or(from);
    let page = Page::new((start..=to).take(3).map(|number| Hit { number }).collect());
    Ok(if start + 3 <= to { page.next(&(start + 3)) } else { page })
}

/// The same under another name
#[mcp_tool]
fn search(from: u32, to: u32, cursor: Option<Cursor>) -> Result<Page<Hit>, ToolError> {
    find(from, to, cursor)
}

fn builder() -> ServerBuilder {
    mcp_runtime::server!().tool::<find>().tool::<search>()
}

fn numbers(reply: &Reply) -> Vec<u64> {
    let items = reply.value()["structuredContent"]["items"].as_array();
    let items = items.unwrap_or_else(|| panic!("no items: {reply}"));
    items.iter().map(|item| item["number"].as_u64().expect("a number")).collect()
}

fn cursor(reply: &Reply) -> Value {
    reply.value()["structuredContent"]["nextCursor"].clone()
}

fn range(to: u32) -> Value {
    json!({ "from": 1, "to": to })
}

/// The arguments with a cursor.
fn after(mut arguments: Value, cursor: impl Into<Value>) -> Value {
    arguments["cursor"] = cursor.into();
    arguments
}

#[tokio::test]
async fn a_client_follows_the_cursors_to_the_last_page() {
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY, Revision::V2025_03_26] {
        let server = TestServer::new(builder()).expect("a server");
        let server = if revision.is_modern() { server } else { server.legacy(revision) };
        let (mut arguments, mut found) = (range(8), Vec::new());
        for _ in 0..3 {
            let reply = server.call("find", arguments.clone()).await;
            // the text is the same, for models and for clients that read nothing else
            let text: Value = serde_json::from_str(&reply.text()).expect("JSON");
            if revision >= Revision::V2025_06_18 {
                assert_eq!(text, reply.value()["structuredContent"]);
            }
            found.extend(text["items"].as_array().expect("items").iter().map(|item| item["number"].clone()));
            arguments = after(range(8), text["nextCursor"].clone());
        }
        assert_eq!(found, (1..=8).map(Value::from).collect::<Vec<_>>());
        assert_eq!(arguments["cursor"], Value::Null, "it was the last page");
    }
}

#[tokio::test]
async fn a_cursor_opens_for_the_same_caller_tool_and_arguments_only() {
    let built = builder().build().expect("a server");
    let (ada, bob) = (seen_by(&built, "ada"), seen_by(&built, "bob"));
    let next = cursor(&ada.call("find", range(8)).await);
    let sealed = next.as_str().expect("a cursor");
    let refused = "`cursor` is not a cursor of this tool with these arguments\n\
                   send the `nextCursor` of its last result and the same other arguments, or leave it out";
    for (client, tool, arguments) in [
        (&bob, "find", after(range(8), sealed)),
        (&ada, "search", after(range(8), sealed)),
        (&ada, "find", after(range(9), sealed)),
        (&ada, "find", after(range(8), format!("{sealed}A"))),
        (&ada, "find", after(range(8), "4")),
        (&ada, "find", after(range(8), "")),
    ] {
        assert_eq!(failure(&client.call(tool, arguments).await), refused);
    }
    // equal arguments in another order and spelling
    let reply = ada.call("find", json!({ "cursor": sealed, "to": 8.0, "from": 1 })).await;
    assert_eq!(numbers(&reply), [4, 5, 6]);
    // it can be used again
    assert_eq!(numbers(&ada.call("find", after(range(8), sealed)).await), [4, 5, 6]);
    // absent
    assert_eq!(numbers(&ada.call("find", after(range(8), Value::Null)).await), [1, 2, 3]);
    // not a string
    assert!(failure(&ada.call("find", after(range(8), 4)).await).contains("cursor"));
}

#[tokio::test]
async fn replicas_with_the_same_keys_open_each_others_cursors() {
    let replica =
        |first: u8| serve(builder().stores(|stores| stores.keys([mcp_tests::support::server_key(first)])));
    let next = cursor(&replica(1).call("find", range(8)).await);
    assert_eq!(numbers(&replica(1).call("find", after(range(8), next.clone())).await), [4, 5, 6]);
    assert!(failure(&replica(2).call("find", after(range(8), next)).await).contains("is not a cursor"));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Hidden {
    cursor: Option<Cursor>,
}

/// Takes a cursor where dispatch does not look for one
#[mcp_tool]
fn nested(hidden: Hidden) -> String {
    hidden.cursor.map_or_else(|| "none".to_owned(), |cursor| cursor.position().unwrap_or_default())
}

#[tokio::test]
async fn what_a_client_has_made_up_is_never_a_position() {
    let server = serve(mcp_runtime::server!().tool::<nested>());
    server.call("nested", json!({ "hidden": {} })).await.expect_text("none");
    for made_up in ["7", "\"7\""] {
        let reply = server.call("nested", json!({ "hidden": { "cursor": made_up } })).await;
        assert!(failure(&reply).contains("not a cursor of the server"), "{reply}");
    }
}

#[tokio::test]
async fn a_page_publishes_its_schema() {
    let tool = only_tool(&serve(mcp_runtime::server!().tool::<find>())).await;
    let output = &tool["outputSchema"];
    assert_eq!(output["required"], json!(["items"]));
    assert_eq!(output["properties"]["items"]["items"]["properties"]["number"]["type"], "integer");
    assert_eq!(output["properties"]["nextCursor"]["type"], "string");
    let input = &tool["inputSchema"];
    assert_eq!(input["properties"]["cursor"]["type"], "string");
    assert_eq!(input["required"], json!(["from", "to"]));
}

#[test]
fn functions_can_be_called_directly() {
    let page = find(1, 8, Some(Cursor::new(&7).expect("JSON"))).expect("a page");
    assert_eq!(page.items().iter().map(|hit| hit.number).collect::<Vec<_>>(), [7, 8]);
    let wrong = Cursor::new("text").expect("JSON").position::<u32>().expect_err("not a number");
    assert!(wrong.to_string().contains("leave it out"), "{wrong}");
}

#[tokio::test]
async fn tools_made_at_run_time_have_pages() {
    let schema = |properties: Value| json!({ "type": "object", "properties": properties });
    let numbered = |schema: Value| {
        ToolDef::builder("numbered").input_schema(schema).cursor("cursor").handler(
            |call: ToolCall| async move {
                let cursor: Option<Cursor> = call.arg("cursor")?;
                find(call.arg("from")?, call.arg("to")?, cursor)
            },
        )
    };
    let number = || json!({ "type": "integer" });
    let known = json!({ "from": number(), "to": number(), "cursor": { "type": "string" } });
    let server = serve(mcp_runtime::server!().add(numbered(schema(known))));
    let first = server.call("numbered", range(5)).await;
    assert_eq!(numbers(&first), [1, 2, 3]);
    let last = server.call("numbered", after(range(5), cursor(&first))).await;
    assert_eq!((numbers(&last), cursor(&last)), (vec![4, 5], Value::Null));
    let text = failure(&server.call("numbered", after(range(6), cursor(&first))).await);
    assert!(text.contains("`cursor` is not a cursor of this tool with these arguments"), "{text}");
    let text = failure(&server.call("numbered", after(range(5), "made up")).await);
    assert!(text.contains("is not a cursor"), "{text}");
    let error = build_error(mcp_runtime::server!().add(numbered(schema(json!({ "from": number() })))));
    assert!(error.contains("the cursor `cursor` is not a property of the input schema"), "{error}");
}

/// Cannot be continued
#[mcp_tool]
fn endless() -> Result<Option<Page<u32>>, ToolError> {
    Ok(Some(Page::new(vec![1])))
}

#[test]
fn a_page_without_a_cursor_that_continues_it_is_an_error_that_says_what_to_add() {
    let error = build_error(mcp_runtime::server!().tool::<endless>());
    assert!(error.contains("tool `endless`: it returns a `Page`"), "{error}");
    assert!(error.contains("add a parameter `cursor: Option<Cursor>`"), "{error}");
    let made = || ToolDef::builder("made").blocking_handler(|_: ToolCall| Page::new(vec![1]));
    let error = build_error(mcp_runtime::server!().add(made()));
    assert!(error.contains("name it with `.cursor(..)`"), "{error}");
}
