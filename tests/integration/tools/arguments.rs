//! Which arguments exist, which may be absent, and which keys are ignored.

use crate::prelude::*;

type Maybe<T> = Option<T>;

#[mcp_tool]
fn options(plain: Option<i32>, alias: Maybe<i32>, list: Maybe<Vec<Option<u8>>>) -> String {
    format!("{plain:?} {alias:?} {list:?}")
}

#[tokio::test]
async fn options_may_be_absent_or_null() {
    let server = serve(mcp_runtime::server!().tool::<options>());
    assert_eq!(
        only_tool(&server).await["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "plain": { "type": "integer" },
                "alias": { "type": "integer" },
                "list": { "type": "array", "items": {
                    "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 255 }, { "type": "null" }]
                } }
            }
        })
    );
    let none = "None None None";
    server.call("options", json!({})).await.expect_text(none);
    server.call("options", Value::Null).await.expect_text(none);
    server.call("options", json!({ "plain": null, "alias": null, "list": null })).await.expect_text(none);
    let sent = json!({ "plain": 1, "alias": -2, "list": [null, 3] });
    server.call("options", sent).await.expect_text("Some(1) Some(-2) Some([None, Some(3)])");
}

#[tokio::test]
async fn null_is_absent_next_to_coerced_and_invalid_arguments() {
    let server = serve(mcp_runtime::server!().tool::<options>());
    let slip = server.call("options", json!({ "plain": null, "alias": "7" })).await;
    slip.expect_text("None Some(7) None");
    let mistake = failure(&server.call("options", json!({ "plain": null, "alias": "seven" })).await);
    assert!(mistake.contains("- alias: \"seven\" is not an integer"), "{mistake}");
    assert!(!mistake.contains("- plain"), "{mistake}");
}

#[mcp_type]
#[derive(Debug)]
struct Filter {
    author: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
}

#[tokio::test]
async fn null_is_absent_inside_a_struct() {
    #[mcp_tool]
    fn nested(filter: Filter, n: Option<u8>) -> String {
        let _ = n;
        format!("{:?} {:?}", filter.author, filter.tags)
    }
    let server = serve(mcp_runtime::server!().tool::<nested>());
    server.call("nested", json!({ "filter": { "author": null } })).await.expect_text("None []");
    server.call("nested", json!({ "filter": { "author": null }, "n": "1" })).await.expect_text("None []");
    server.call("nested", json!({ "filter": {} })).await.expect_text("None []");
}

#[mcp_type]
#[derive(Debug, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Tone {
    #[default]
    Formal,
    Casual,
}

#[mcp_tool]
fn defaults(
    #[mcp(default = 10)] max: u32,
    #[mcp(default = "en")] language: String,
    #[mcp(default)] tone: Tone,
    #[mcp(default = vec![1, 2])] list: Vec<i64>,
    #[mcp(default = Some(5))] maybe: Option<u8>,
    #[mcp(default = -0.5)] bias: f64,
) -> String {
    format!("{max} {language} {tone:?} {list:?} {maybe:?} {bias}")
}

#[tokio::test]
async fn defaults_are_published_and_used() {
    let server = serve(mcp_runtime::server!().tool::<defaults>());
    assert_eq!(
        only_tool(&server).await["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "max": { "type": "integer", "minimum": 0, "default": 10 },
                "language": { "type": "string", "default": "en" },
                "tone": { "type": "string", "enum": ["formal", "casual"], "default": "formal" },
                "list": { "type": "array", "items": { "type": "integer" }, "default": [1, 2] },
                "maybe": { "type": "integer", "minimum": 0, "maximum": 255, "default": 5 },
                "bias": { "type": "number", "default": -0.5 }
            }
        })
    );
    let all = "10 en Formal [1, 2] Some(5) -0.5";
    server.call("defaults", json!({})).await.expect_text(all);
    let nulls =
        json!({ "max": null, "language": null, "tone": null, "list": null, "maybe": null, "bias": null });
    server.call("defaults", nulls).await.expect_text(all);
    let sent = json!({ "max": 0, "language": "", "tone": "casual", "list": [], "maybe": 1, "bias": 1 });
    server.call("defaults", sent).await.expect_text("0  Casual [] Some(1) 1");
    let slip = json!({ "max": "7", "tone": null });
    server.call("defaults", slip).await.expect_text("7 en Formal [1, 2] Some(5) -0.5");
}

#[tokio::test]
async fn null_is_not_a_default_in_a_strict_tool() {
    #[mcp_tool(strict)]
    fn exact(#[mcp(default = 10)] max: u32, other: Option<u8>) -> String {
        format!("{max} {other:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<exact>());
    server.call("exact", json!({ "other": null })).await.expect_text("10 None");
    server.call("exact", json!({ "max": null })).await.expect_failure("- max: null is not an integer");
    let text = failure(&server.call("exact", json!({ "max": null, "other": 300 })).await);
    assert!(text.contains("- max: null is not an integer") && text.contains("- other: 300"), "{text}");
}

#[mcp_tool]
fn lenient(query: String, #[mcp(default = 3)] limit: u8) -> String {
    format!("{query} {limit}")
}

#[mcp_tool(strict)]
fn strict(query: String, #[mcp(default = 3)] limit: u8) -> String {
    format!("{query} {limit}")
}

#[tokio::test]
async fn unknown_keys_are_ignored_or_refused() {
    let server = serve(mcp_runtime::server!().tool::<lenient>().tool::<strict>());
    let tools = server.list_tools().await;
    assert_eq!(tools[0]["inputSchema"].get("additionalProperties"), None);
    assert_eq!(tools[1]["inputSchema"]["additionalProperties"], false);
    let sent = json!({ "query": "q", "limt": 5, "other": { "a": [1] } });
    server.call("lenient", sent.clone()).await.expect_text("q 3");
    let text = failure(&server.call("strict", sent).await);
    assert_eq!(
        text,
        "invalid arguments for tool `strict`:\n\
         - unknown argument `limt`; did you mean `limit`?\n\
         - unknown argument `other`\n\
         expected: strict(query: string, limit?: integer 0..=255 = 3)"
    );
    server.call("strict", json!({ "query": "q", "limit": 4 })).await.expect_text("q 4");
}

#[tokio::test]
async fn absent_arguments_are_an_empty_object() {
    let server = serve(mcp_runtime::server!().tool::<options>().tool::<lenient>());
    for params in [json!({}), json!({ "arguments": null }), json!({ "arguments": {} })] {
        let call = async |name: &str| {
            let mut params = params.clone();
            params["name"] = name.into();
            server.request("tools/call", params).await
        };
        call("options").await.expect_text("None None None");
        let text = failure(&call("lenient").await);
        assert_eq!(
            text,
            "invalid arguments for tool `lenient`:\n\
             - query: is missing (a string)\n\
             expected: lenient(query: string, limit?: integer 0..=255 = 3)"
        );
    }
}

#[tokio::test]
async fn an_unknown_tool_gets_a_suggestion() {
    let server = serve(mcp_runtime::server!().tool::<lenient>().tool::<strict>());
    let near = server.call("lenint", json!({})).await;
    assert_eq!(refusal(&near), (-32602, "unknown tool `lenint`; did you mean `lenient`?".into()));
    let far = server.call("zebra_crossing", json!({})).await;
    assert_eq!(refusal(&far), (-32602, "unknown tool `zebra_crossing`".into()));
}

#[mcp_type]
#[derive(Debug)]
#[serde(rename_all = "camelCase")]
struct Search {
    /// Words
    #[schemars(length(min = 1))]
    search_text: String,
    #[serde(default = "ten")]
    max_hits: u8,
    #[serde(rename = "in")]
    place: Option<String>,
}

fn ten() -> u8 {
    10
}

#[tokio::test]
async fn a_flattened_struct_is_the_whole_object() {
    #[mcp_tool]
    fn find(#[mcp(flatten)] search: Search) -> String {
        format!("{} {} {:?}", search.search_text, search.max_hits, search.place)
    }
    #[mcp_tool(strict)]
    fn find_exactly(#[mcp(flatten)] search: Search) -> String {
        search.search_text
    }
    let server = serve(mcp_runtime::server!().tool::<find>().tool::<find_exactly>());
    let mut schema = json!({
        "type": "object",
        "properties": {
            "searchText": { "type": "string", "description": "Words", "minLength": 1 },
            "maxHits": { "type": "integer", "minimum": 0, "maximum": 255, "default": 10 },
            "in": { "type": "string" }
        },
        "required": ["searchText"]
    });
    let tools = server.list_tools().await;
    assert_eq!(tools[0]["inputSchema"], schema);
    schema["additionalProperties"] = false.into();
    assert_eq!(tools[1]["inputSchema"], schema);
    let sent = json!({ "searchText": "x", "in": "town", "extra": 1 });
    server.call("find", sent.clone()).await.expect_text("x 10 Some(\"town\")");
    server.call("find_exactly", sent).await.expect_failure("- unknown argument `extra`\n");
    server.call("find", json!({ "searchText": "x", "maxHits": "7" })).await.expect_text("x 7 None");
    let text = failure(&server.call("find_exactly", json!({ "searchText": "x", "maxHits": "7" })).await);
    assert!(text.contains("- maxHits: \"7\" is not an integer"), "{text}");
    let text = failure(&server.call("find", json!({ "searchText": "", "maxHits": 300 })).await);
    assert!(text.contains("- searchText: \"\" has 0 characters"), "{text}");
    assert!(text.contains("- maxHits: 300 is greater than the maximum of 255"), "{text}");
    let text = failure(&server.call("find", json!({ "search_text": "x" })).await);
    assert!(text.contains("unknown argument `search_text`; did you mean `searchText`?"), "{text}");
}

#[mcp_type]
#[derive(Debug)]
#[serde(deny_unknown_fields)]
struct Closed {
    a: u8,
}

#[tokio::test]
async fn a_struct_can_refuse_unknown_keys_on_its_own() {
    #[mcp_tool]
    fn closed(#[mcp(flatten)] all: Closed) -> String {
        format!("{all:?}")
    }
    #[mcp_tool]
    fn inside(part: Closed, b: Option<u8>) -> String {
        let _ = b;
        format!("{part:?}")
    }
    let server = serve(mcp_runtime::server!().tool::<closed>().tool::<inside>());
    let tools = server.list_tools().await;
    assert_eq!(tools[0]["inputSchema"]["additionalProperties"], false);
    assert_eq!(tools[1]["inputSchema"]["properties"]["part"]["additionalProperties"], false);
    server.call("closed", json!({ "a": 1 })).await.expect_text("Closed { a: 1 }");
    server.call("closed", json!({ "a": 1, "b": 2 })).await.expect_failure("- unknown argument `b`\n");
    let text = failure(&server.call("inside", json!({ "part": { "a": 1, "bee": 2 }, "x": 1 })).await);
    assert!(text.contains("- part: unknown field `bee`"), "{text}");
}

#[mcp_type]
#[derive(Debug)]
struct Node {
    name: String,
    #[serde(default)]
    children: Vec<Node>,
}

#[tokio::test]
async fn a_flattened_recursive_struct_publishes_its_fields() {
    #[mcp_tool(strict)]
    fn plant(#[mcp(flatten)] tree: Node) -> String {
        fn count(node: &Node) -> usize {
            1 + node.children.iter().map(count).sum::<usize>()
        }
        format!("{} {}", tree.name, count(&tree))
    }
    let server = serve(mcp_runtime::server!().tool::<plant>());
    let schema = only_tool(&server).await["inputSchema"].clone();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["name"], json!({ "type": "string" }), "{schema}");
    assert_eq!(schema["required"], json!(["name"]), "{schema}");
    let tree = json!({ "name": "root", "children": [{ "name": "leaf", "children": [] }, { "name": "x" }] });
    server.call("plant", tree).await.expect_text("root 3");
    let text = failure(&server.call("plant", json!({ "name": "root", "leaf": 1 })).await);
    assert!(text.contains("unknown argument `leaf`"), "{text}");
    let text = failure(&server.call("plant", json!({ "name": "r", "children": [{ "name": 1 }] })).await);
    assert!(text.contains("- children[0].name: 1 is not a string"), "{text}");
}

#[tokio::test]
async fn every_tool_of_a_strict_server_is_strict() {
    let made = ToolDef::builder("made")
        .input_schema(json!({ "type": "object", "properties": { "n": { "type": "integer" } } }))
        .handler(|call: ToolCall| async move { call.arg::<i64>("n") });
    let mounted = mcp_runtime::server!().tool::<lenient>();
    let builder = mcp_runtime::server!().tool::<lenient>().add(made).mount("inner", mounted);
    let server = serve(builder.lists(|lists| lists.strict()));
    for name in ["lenient", "inner_lenient"] {
        let text = failure(&server.call(name, json!({ "query": "q", "limit": "4", "surplus": 1 })).await);
        assert!(text.contains("limit") && text.contains("surplus"), "{text}");
        server.call(name, json!({ "query": "q", "limit": 4 })).await.expect_text("q 4");
    }
    let tools = server.list_tools().await;
    let lenient = tools.iter().find(|tool| tool["name"] == "lenient").expect("it is listed");
    assert_eq!(lenient["inputSchema"]["additionalProperties"], false);
    failure(&server.call("made", json!({ "n": "1" })).await);
    server.call("made", json!({ "n": 1 })).await.expect_text("1");
    // without it, both are accepted
    let server = serve(mcp_runtime::server!().tool::<lenient>());
    server.call("lenient", json!({ "query": "q", "limit": "4", "surplus": 1 })).await.expect_text("q 4");
}

/// A struct of which nothing is required
#[mcp_type]
#[derive(Debug, Default)]
struct Purge {
    #[serde(alias = "before")]
    older_than: Option<String>,
    #[serde(default)]
    tags: Vec<Label>,
    of: Option<Keeper>,
    #[serde(default)]
    any: BTreeMap<String, Value>,
}

#[mcp_type]
#[derive(Debug)]
struct Label {
    name: Option<String>,
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Keeper {
    Person { name: Option<String> },
    Team { id: u8 },
}

/// The names that are refused at every depth of a strict tool.
#[tokio::test]
async fn strict_reaches_structs_in_arguments_and_hand_written_schemas() {
    #[mcp_tool(strict)]
    fn delete(filter: Purge, tree: Option<Node>) -> String {
        format!("{filter:?} {}", tree.is_some())
    }
    #[mcp_tool(name = "delete_some")]
    fn leniently(filter: Purge) -> String {
        format!("{filter:?}")
    }
    let by_hand = |name: &str| {
        let filter = json!({ "type": "object", "properties": { "older_than": { "type": "string" }, "of": { "anyOf": [
            { "$ref": "#/$defs/Person" }, { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] }
        ] } } });
        ToolDef::builder(name).input_schema(json!({
            "type": "object",
            "properties": { "filter": filter, "open": { "type": "object", "properties": { "a": {} }, "additionalProperties": true } },
            "$defs": { "Person": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] } }
        }))
    };
    let trusted = ToolDef::builder("trusted")
        .strict()
        .trusted_input_schema(json!({ "type": "object", "properties": { "a": {} } }))
        .handler(|call: ToolCall| async move { call.arguments.to_string() });
    let handler = |call: ToolCall| async move { call.arguments.to_string() };
    let builder = mcp_runtime::server!().tool::<delete>().tool::<leniently>().add(trusted);
    let builder = builder.add(by_hand("by_hand").strict().handler(handler));
    let server = serve(builder.add(by_hand("open").handler(handler)));
    for (arguments, error) in [
        (
            json!({ "filter": { "older_then": "30d" } }),
            "- filter: unknown field `older_then`; did you mean `older_than`?",
        ),
        (json!({ "filter": { "tags": [{ "nam": "x" }] } }), "- filter.tags[0]: unknown field `nam`"),
        (
            json!({ "filter": { "of": { "kind": "person", "nick": "x" } } }),
            "- filter.of: unknown field `nick`",
        ),
        (
            json!({ "filter": {}, "tree": { "name": "a", "children": [{ "name": "b", "nme": 1 }] } }),
            "- tree.children[0]: unknown field `nme`",
        ),
    ] {
        let text = failure(&server.call("delete", arguments.clone()).await);
        assert!(text.contains(error), "{text}");
        if arguments.get("tree").is_none() {
            server.call("delete_some", arguments).await.expect_ok();
        }
    }
    let right = json!({ "filter": {
        "older_than": "30d", "tags": [{ "name": "x" }, {}], "of": { "kind": "team", "id": 1 }, "any": { "k": { "l": 1 } }
    }, "tree": { "name": "a", "children": [{ "name": "b" }] } });
    server.call("delete", right).await.expect_ok();
    let aliased = server.call("delete", json!({ "filter": { "before": "30d" } })).await;
    assert!(aliased.expect_ok().text().contains("30d"));
    server
        .call("by_hand", json!({ "filter": { "of": { "name": "x" } }, "open": { "b": 1 } }))
        .await
        .expect_ok();
    for wrong in [
        json!({ "filtre": {} }),
        json!({ "filter": { "older": 1 } }),
        json!({ "filter": { "of": { "name": "x", "nick": 1 } } }),
    ] {
        failure(&server.call("by_hand", wrong.clone()).await);
        server.call("open", wrong).await.expect_ok();
    }
    server.call("trusted", json!({ "b": 1 })).await.expect_ok();
    // what clients see is what is enforced
    let tools = server.list_tools().await;
    let schema =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).expect("listed")["inputSchema"].clone();
    let published = schema("delete")["properties"]["filter"].clone();
    assert_eq!(published["additionalProperties"], false);
    assert_eq!(published["properties"]["tags"]["items"]["additionalProperties"], false);
    assert_eq!(published["properties"]["of"]["unevaluatedProperties"], false);
    assert_eq!(published["properties"].get("before"), None);
    assert!(!schema("delete_some").to_string().contains("false"));
    assert_eq!(schema("by_hand")["properties"]["filter"]["properties"]["of"]["unevaluatedProperties"], false);
    assert_eq!(schema("trusted").get("additionalProperties"), None);
}

#[tokio::test]
async fn null_differs_from_absence_in_types_that_are_written_so() {
    #[mcp_type]
    #[derive(Debug)]
    struct Change {
        note: Option<Option<String>>,
        plain: Option<String>,
    }
    #[mcp_tool(name = "change")]
    fn change(count: Option<Option<u8>>, other: Option<u8>, change: Option<Change>) -> Json<Vec<Change>> {
        assert!(other.is_none());
        let seen = Change { note: None, plain: Some(format!("{count:?} {change:?}")) };
        Json(vec![seen, Change { note: Some(None), plain: None }])
    }
    let server = serve(mcp_runtime::server!().tool::<change>());
    let listed = server.request("tools/list", json!({})).await;
    let tool = &listed.value()["tools"][0];
    let properties = &tool["inputSchema"]["properties"];
    for property in [&properties["count"], &properties["change"]["properties"]["note"]] {
        assert!(property.to_string().contains("null") && property.get("x-mcp-null").is_none(), "{tool}");
    }
    for property in [&properties["other"], &properties["change"]["properties"]["plain"]] {
        assert!(!property.to_string().contains("null"), "{tool}");
    }
    assert_eq!(tool["inputSchema"].get("required"), None, "{tool}");
    assert!(!tool["outputSchema"].to_string().contains("x-mcp-null"), "{tool}");
    for (sent, seen) in [
        (json!({}), "None None"),
        (json!({ "count": null, "other": null }), "Some(None) None"),
        (json!({ "count": 3, "change": {} }), "Some(Some(3)) Some(Change { note: None, plain: None })"),
        (
            json!({ "count": "3", "change": { "note": null, "plain": null } }),
            "Some(Some(3)) Some(Change { note: Some(None), plain: None })",
        ),
    ] {
        let reply = server.call("change", sent).await;
        let result = &reply.value()["structuredContent"];
        assert_eq!(result[0]["plain"], seen, "{reply}");
        assert_eq!(result[0].get("note"), None, "{reply}");
        assert_eq!(result[1].get("note"), Some(&Value::Null), "{reply}");
    }
}
