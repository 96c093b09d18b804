//! A key that an object has twice: what a proxy has checked might not be what the function gets, so the call is refused.

use crate::prelude::*;

#[mcp_type]
#[derive(Debug)]
struct Filter {
    author: Option<String>,
    #[serde(default)]
    tags: BTreeMap<String, u8>,
}

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Op {
    Add { a: i64 },
}

#[mcp_tool]
fn find(
    n: Option<u8>,
    filter: Option<Filter>,
    any: Option<Value>,
    list: Option<Vec<BTreeMap<String, u8>>>,
    op: Option<Op>,
) -> String {
    format!("{n:?} {filter:?} {any:?} {list:?} {op:?}")
}

#[mcp_tool]
fn whole(#[mcp(flatten)] all: BTreeMap<String, Value>) -> usize {
    all.len()
}

#[mcp_prompt]
fn greet(name: String) -> String {
    name
}

fn server() -> LineConnection {
    let dynamic = ToolDef::builder("dynamic")
        .input_schema(json!({ "type": "object", "properties": { "n": { "type": "integer" } } }))
        .handler(|call: ToolCall| async move { call.arguments.to_string() });
    let builder = mcp_runtime::server!().tool::<find>().tool::<whole>().prompt::<greet>().add(dynamic);
    LineConnection::serve(&builder.build().expect("a server"), 1 << 16)
}

async fn request(server: &mut LineConnection, method: &str, name: &str, arguments: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" }
    });
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"{name}","arguments":{arguments},"_meta":{meta}}}}}"#
    );
    server.write(line.as_bytes()).await;
    server.write(b"\n").await;
    server.message().await
}

#[tokio::test]
async fn a_duplicate_key_fails_the_call_at_every_depth_and_in_every_notation() {
    let mut server = server();
    for (tool, arguments, path) in [
        ("find", r#"{"n":1,"n":2}"#, "n"),
        ("find", r#"{"n":1,"\u006e":2}"#, "n"),
        ("find", r#"{"n":"1","n":"2"}"#, "n"),
        ("find", r#"{"unknown":1,"unknown":2}"#, "unknown"),
        ("find", r#"{"unknown":{"a":1,"a":2}}"#, "unknown.a"),
        ("find", r#"{"filter":{"author":"a","author":"b"}}"#, "filter.author"),
        ("find", r#"{"filter":{"other":1,"other":1}}"#, "filter.other"),
        ("find", r#"{"filter":{"tags":{"x":1,"\u0078":2}}}"#, "filter.tags.x"),
        ("find", r#"{"any":[0,{"x":{"y":1,"z":2,"y":3}}]}"#, "any[1].x.y"),
        ("find", r#"{"list":[{"x":1},{"x":1,"x":1}]}"#, "list[1].x"),
        ("find", r#"{"op":{"op":"add","a":1,"a":2}}"#, "op.a"),
        ("find", r#"{"op":{"op":"add","op":"add","a":1}}"#, "op.op"),
        ("whole", r#"{"a":1,"a":2}"#, "a"),
        ("whole", r#"{"a":{"b":1,"b":2}}"#, "a.b"),
        ("dynamic", r#"{"n":1,"n":2}"#, "n"),
        ("dynamic", r#"{"n":"1","other":{"x":1,"x":2}}"#, "other.x"),
    ] {
        let reply = request(&mut server, "tools/call", tool, arguments).await;
        assert_eq!(reply["result"]["isError"], true, "{arguments}: {reply}");
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(&format!("\n- {path}: is given more than once")), "{arguments}: {text}");
    }
    let reply = request(&mut server, "prompts/get", "greet", r#"{"name":"a","name":"b"}"#).await;
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    assert!(
        reply["error"]["message"].as_str().is_some_and(|text| text.contains("name: is given more than once"))
    );
}

#[tokio::test]
async fn equal_keys_of_different_objects_are_not_duplicates() {
    let mut server = server();
    for (tool, arguments) in [
        ("find", r#"{"n":1,"any":{"n":{"n":1}},"other":{"n":1}}"#),
        ("find", r#"{"list":[{"x":1},{"x":1}],"filter":{"tags":{"x":1},"author":"{\"a\":1,\"a\":2}"}}"#),
        ("whole", r#"{"a":{"a":1},"b":{"a":1}}"#),
        ("dynamic", r#"{"n":1,"m":{"n":1}}"#),
    ] {
        let reply = request(&mut server, "tools/call", tool, arguments).await;
        assert_ne!(reply["result"]["isError"], true, "{arguments}: {reply}");
    }
    // an object in a string is not taken for an object if it has a key twice
    let reply =
        request(&mut server, "tools/call", "find", r#"{"filter":"{\"author\":\"a\",\"author\":\"b\"}"}"#)
            .await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
}
