//! Arguments as text that a JSON library might never write: keys that an object has twice, characters and numbers in every
//! notation, deep nesting.

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

#[mcp_tool(strict)]
fn exact(n: u8) -> u8 {
    n
}

#[mcp_tool]
fn echo(message: String) -> String {
    message
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
    let builder = mcp_runtime::server!().tool::<find>().tool::<exact>().tool::<echo>().tool::<whole>();
    LineConnection::serve(&builder.prompt::<greet>().add(dynamic).build().expect("a server"), 1 << 16)
}

/// Sends a request with parameters of this text.
async fn request(server: &mut LineConnection, method: &str, params: &str) -> Value {
    let meta = meta();
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{meta}}}}}"#);
    server.write((line + "\n").as_bytes()).await;
    server.message().await
}

async fn call(server: &mut LineConnection, tool: &str, arguments: &str) -> Value {
    request(server, "tools/call", &format!(r#""name":"{tool}","arguments":{arguments}"#)).await
}

#[tokio::test]
async fn a_duplicate_key_fails_the_call_at_every_depth_and_in_every_notation() {
    let mut server = server();
    for (tool, arguments, path) in [
        ("find", r#"{"n":1,"n":2}"#, "n"),
        ("find", r#"{"n":1,"\u006e":2}"#, "n"),
        ("find", r#"{"unknown":1,"unknown":2}"#, "unknown"),
        ("find", r#"{"unknown":{"a":1,"a":2}}"#, "unknown.a"),
        ("find", r#"{"filter":{"tags":{"x":1,"\u0078":2}}}"#, "filter.tags.x"),
        ("find", r#"{"any":[0,{"x":{"y":1,"z":2,"y":3}}]}"#, "any[1].x.y"),
        ("find", r#"{"op":{"op":"add","op":"add","a":1}}"#, "op.op"),
        ("whole", r#"{"a":{"b":1,"b":2}}"#, "a.b"),
        ("dynamic", r#"{"n":1,"n":2}"#, "n"),
        ("dynamic", r#"{"n":"1","other":{"x":1,"x":2}}"#, "other.x"),
    ] {
        let reply = call(&mut server, tool, arguments).await;
        assert_eq!(reply["result"]["isError"], true, "{arguments}: {reply}");
        let text = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(&format!("\n- {path}: is given more than once")), "{arguments}: {text}");
    }
    for params in [
        r#""name":"exact","name":"echo","arguments":{"n":1}"#,
        r#""name":"exact","arguments":{"n":1},"arguments":{}"#,
    ] {
        assert_eq!(error_code(&request(&mut server, "tools/call", params).await), -32600, "{params}");
    }
}

#[tokio::test]
async fn arguments_of_a_prompt_that_cannot_be_read_are_refused_with_the_reason() {
    let mut server = server();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (value, reason) in [
        (r#""a","name":"b""#, "name: is given more than once"),
        (r#"{"a":1,"a":2}"#, "name.a: is given more than once"),
        (
            r#""\ud800""#,
            "a text has half of a character, such as `\\ud83d` alone; send all of it, or leave it out",
        ),
        (&deep, "recursion limit exceeded"),
    ] {
        let params = format!(r#""name":"greet","arguments":{{"name":{value}}}"#);
        let reply = request(&mut server, "prompts/get", &params).await;
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
        let text = reply["error"]["message"].as_str().unwrap_or_default();
        assert!(text.starts_with("invalid arguments: ") && text.contains(reason), "{text}");
        assert!(!text.contains("at line"), "{text}");
    }
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
        let reply = call(&mut server, tool, arguments).await;
        assert_ne!(reply["result"]["isError"], true, "{arguments}: {reply}");
    }
    // an object in a string is not taken for an object if it has a key twice
    let reply = call(&mut server, "find", r#"{"filter":"{\"author\":\"a\",\"author\":\"b\"}"}"#).await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
}

#[tokio::test]
async fn every_character_survives_on_one_line() {
    let mut server = server();
    let odd: String =
        (0..0x250).chain([0x2028, 0x2029, 0xfeff, 0xffff, 0x1f600]).filter_map(char::from_u32).collect();
    for (params, text) in [
        (format!(r#""name":"echo","arguments":{}"#, json!({ "message": odd })), odd.as_str()),
        (r#""name":"\u0065cho","arguments":{"\u006dessage":"\ud83d\ude00\/\u0000"}"#.into(), "😀/\u{0}"),
    ] {
        let reply = request(&mut server, "tools/call", &params).await;
        assert_eq!(reply["result"]["content"], json!([{ "type": "text", "text": text }]), "{params}");
    }
    for arguments in [r#"{"message":"\ud800"}"#, r#"{"message":"a\udc00b"}"#, r#"{"message":"\ud83d\ud83d"}"#]
    {
        let reply = call(&mut server, "echo", arguments).await;
        assert_eq!(reply["result"]["isError"], true, "{arguments}: {reply}");
        assert!(text_of(&reply).contains("has half of a character"), "{arguments}: {reply}");
    }
    // the value of an unknown key is ignored whatever it is
    let reply = call(&mut server, "echo", r#"{"message":"x","\ud800":1}"#).await;
    assert!(reply["result"]["content"][0]["text"].is_string(), "{reply}");
}

#[tokio::test]
async fn deep_nesting_gets_a_response() {
    let mut server = server();
    for depth in [100, 1_000, 15_000] {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let reply = call(&mut server, "find", &format!(r#"{{"any":{deep}}}"#)).await;
        assert!(reply["result"]["content"][0]["text"].is_string(), "{depth}: {reply}");
    }
    assert_eq!(text_of(&call(&mut server, "echo", r#"{"message":"next"}"#).await), "next");
}

#[tokio::test]
async fn numbers_of_any_size_get_a_response() {
    let mut server = server();
    for (number, good) in [
        ("1e2", true),
        ("1E+1", true),
        ("-0", true),
        ("-0.0", true),
        ("255.000", true),
        ("256", false),
        ("1e400", false),
        ("-1e-400", true),
        ("0.1", false),
        ("123456789012345678901234567890", false),
        ("1e999999999999", false),
    ] {
        let reply = call(&mut server, "exact", &format!(r#"{{"n":{number}}}"#)).await;
        assert_eq!(reply["result"]["isError"] != true, good, "{number}: {reply}");
        if !good {
            let said = reply["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(said.starts_with("invalid arguments for tool `exact`:\n- "), "{number}: {said}");
        }
    }
}

#[tokio::test]
async fn integers_of_128_bits_are_exact_everywhere() {
    #[mcp_type]
    #[derive(Debug)]
    struct Wide {
        big: u128,
        list: Vec<i128>,
    }
    #[mcp_tool]
    fn show(n: u128, wide: Option<Wide>, small: Option<u8>) -> String {
        format!("{n} {wide:?} {small:?}")
    }
    #[mcp_tool]
    fn give() -> Json<Wide> {
        Json(Wide { big: u128::MAX, list: vec![i128::MIN] })
    }
    let built = mcp_runtime::server!().tool::<show>().tool::<give>().build().expect("a server");
    let mut server = LineConnection::serve(&built, 1 << 16);
    let (max, min) = (u128::MAX.to_string(), i128::MIN.to_string());
    let mut call = async |tool: &str, arguments: String| -> String {
        text_of(&call(&mut server, tool, &arguments).await).to_owned()
    };
    assert_eq!(call("show", format!(r#"{{"n":{max}}}"#)).await, format!("{max} None None"));
    let nested = format!("{max} Some(Wide {{ big: {max}, list: [{min}] }}) Some(5)");
    for small in ["5", "\"5\"", "5.0"] {
        let sent = format!(r#"{{"n":{max},"wide":{{"big":{max},"list":[{min}]}},"small":{small}}}"#);
        assert_eq!(call("show", sent).await, nested, "a repair of another argument keeps every digit");
    }
    assert_eq!(call("show", format!(r#"{{"n":"{max}"}}"#)).await, format!("{max} None None"));
    assert!(call("show", r#"{"n":340282366920938463463374607431768211456}"#.into()).await.contains("- n: "));
    assert_eq!(call("give", "{}".into()).await, format!(r#"{{"big":{max},"list":[{min}]}}"#));

    // more digits than the type has, and numbers that are not integers, at the root and inside of values
    let (lowest, highest) = (i128::MIN, i128::MAX);
    for (arguments, line) in [
        (format!(r#"{{"n":{max}0}}"#), format!("n: {max}0 is greater than the maximum of {max}")),
        (r#"{"n":1.5}"#.to_owned(), "n: 1.5 is not an integer".to_owned()),
        (r#"{"n":1e39}"#.to_owned(), format!("n: 1e39 is not an integer from 0 to {max}")),
        (
            format!(r#"{{"n":1,"wide":{{"big":{max}1,"list":[]}}}}"#),
            format!("wide.big: {max}1 is greater than the maximum of {max}"),
        ),
        (
            format!(r#"{{"n":1,"wide":{{"big":1,"list":[0,{max}]}}}}"#),
            format!("wide.list[1]: {max} is greater than the maximum of {highest}"),
        ),
        (
            format!(r#"{{"n":1,"wide":{{"list":[{min}0],"big":1}}}}"#),
            format!("wide.list[0]: {min}0 is less than the minimum of {lowest}"),
        ),
    ] {
        let text = call("show", arguments).await;
        assert!(text.contains(&format!("\n- {line}")), "{line}: {text}");
        assert_eq!(text.matches("\n- ").count(), 1, "{text}");
    }

    #[mcp_tool]
    fn wide_default(#[mcp(default = u128::MAX)] n: u128) -> String {
        n.to_string()
    }
    let error = build_error(mcp_runtime::server!().tool::<wide_default>());
    assert!(error.contains("`n`: its default cannot be published"), "{error}");
}

#[tokio::test]
async fn half_of_a_surrogate_pair_is_replaced_in_results_that_the_program_makes() {
    use serde_json::value::RawValue;

    /// JSON that another program wrote.
    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Foreign(#[schemars(with = "BTreeMap<String, String>")] Box<RawValue>);

    const CUT: &str = r#"{"cut":"a\ud83d","whole":"\ud83d\ude00","escaped":"\\ud83d"}"#;
    const LEGIBLE: &str = r#"{"cut":"a\ufffd","whole":"\ud83d\ude00","escaped":"\\ud83d"}"#;

    fn foreign() -> Foreign {
        Foreign(RawValue::from_string(CUT.to_owned()).expect("JSON"))
    }
    #[mcp_tool]
    fn typed() -> Json<Foreign> {
        Json(foreign())
    }
    #[mcp_tool]
    fn parts() -> Result<ToolResult, ToolError> {
        ToolResult::text("a").structured(&foreign()).map_err(ToolError::private)
    }
    #[mcp_resource(uri = "raw://cut")]
    fn cut() -> Json<Foreign> {
        Json(foreign())
    }
    let server = serve(mcp_runtime::server!().tool::<typed>().tool::<parts>().resource::<cut>());
    let value: Value = serde_json::from_str(LEGIBLE).expect("JSON");
    let reply = server.call("typed", json!({})).await;
    assert_eq!((reply.text(), &reply.value()["structuredContent"]), (LEGIBLE.to_owned(), &value), "{reply}");
    assert_eq!(server.call("parts", json!({})).await.value()["structuredContent"], value);
    assert_eq!(server.read("raw://cut").await.value()["contents"][0]["text"], LEGIBLE);

    // a result of another server is passed on as it came
    let wire = format!(r#"{{"content":[],"structuredContent":{CUT}}}"#);
    let passed = ToolResult::from_wire(&RawValue::from_string(wire).expect("JSON")).expect("a result");
    assert!(passed.structured_content().is_none(), "no text of Rust has it");
}
