//! Harmless mistakes of models are coerced, at the top level and nested, and refused by strict tools.

use crate::prelude::*;

#[mcp_type]
#[derive(Debug, PartialEq)]
struct Point {
    x: i32,
    y: f64,
}

#[mcp_tool]
fn lenient(
    byte: Option<u8>,
    long: Option<i64>,
    wide: Option<u64>,
    float: Option<f64>,
    flag: Option<bool>,
    text: Option<String>,
    list: Option<Vec<i32>>,
    point: Option<Point>,
    map: Option<BTreeMap<String, u8>>,
    pair: Option<(u8, String)>,
    points: Option<Vec<Point>>,
    any: Option<Value>,
    character: Option<char>,
    #[mcp(default = 7)] last: i8,
) -> String {
    let mut said = Vec::new();
    let mut say = |shown: Option<String>| said.extend(shown);
    say(byte.map(|v| format!("{v:?}")));
    say(long.map(|v| format!("{v:?}")));
    say(wide.map(|v| format!("{v:?}")));
    say(float.map(|v| format!("{v:?}")));
    say(flag.map(|v| format!("{v:?}")));
    say(text.map(|v| format!("{v:?}")));
    say(list.map(|v| format!("{v:?}")));
    say(point.map(|v| format!("{v:?}")));
    say(map.map(|v| format!("{v:?}")));
    say(pair.map(|v| format!("{v:?}")));
    say(points.map(|v| format!("{v:?}")));
    say(any.map(|v| format!("{v}")));
    say(character.map(|v| format!("{v:?}")));
    say((last != 7).then(|| format!("{last}")));
    said.join(" ")
}

#[mcp_tool(strict)]
fn strict(
    byte: Option<u8>,
    float: Option<f64>,
    flag: Option<bool>,
    list: Option<Vec<i32>>,
    point: Option<Point>,
) -> String {
    format!("{byte:?} {float:?} {flag:?} {list:?} {point:?}")
}

#[tokio::test]
async fn harmless_mistakes_are_coerced() {
    let server = serve(mcp_runtime::server!().tool::<lenient>());
    for (argument, sent, seen) in [
        ("byte", json!(30.0), "30"),
        ("byte", json!("42"), "42"),
        ("byte", json!(" 42 "), "42"),
        ("byte", json!(2e2), "200"),
        ("long", json!("-9223372036854775808"), "-9223372036854775808"),
        ("long", json!(-3.0), "-3"),
        ("wide", json!("18446744073709551615"), "18446744073709551615"),
        ("float", json!("0.5"), "0.5"),
        ("float", json!("1e3"), "1000.0"),
        ("float", json!(3), "3.0"),
        ("flag", json!("true"), "true"),
        ("text", json!("42"), "\"42\""),
        ("text", json!("{\"a\":1}"), "\"{\\\"a\\\":1}\""),
        ("list", json!("[1,2]"), "[1, 2]"),
        ("list", json!("[\"1\", 2.0]"), "[1, 2]"),
        ("list", json!(["1", 2.0, 3]), "[1, 2, 3]"),
        ("point", json!("{\"x\":1,\"y\":2}"), "Point { x: 1, y: 2.0 }"),
        ("point", json!({ "x": "1", "y": "2.5" }), "Point { x: 1, y: 2.5 }"),
        ("point", json!("{\"x\":\"1\",\"y\":\"2\"}"), "Point { x: 1, y: 2.0 }"),
        ("map", json!({ "a": "1", "b": 2.0 }), "{\"a\": 1, \"b\": 2}"),
        ("pair", json!(["1", "1"]), "(1, \"1\")"),
        (
            "points",
            json!([{ "x": "1", "y": 1 }, "{\"x\":2,\"y\":2}"]),
            "[Point { x: 1, y: 1.0 }, Point { x: 2, y: 2.0 }]",
        ),
        ("any", json!("42"), "\"42\""),
        ("any", json!("{}"), "\"{}\""),
        // after as many arguments as there is room for on the stack
        ("character", json!("é"), "'é'"),
        ("last", json!("-8"), "-8"),
    ] {
        let reply = server.call("lenient", json!({ argument: sent })).await;
        assert!(!reply.is_error(), "{argument} = {sent}: {reply}");
        assert_eq!(reply.text(), seen, "{argument} = {sent}");
    }
}

#[tokio::test]
async fn ambiguous_values_are_refused() {
    let server = serve(mcp_runtime::server!().tool::<lenient>());
    for (argument, sent, said) in [
        ("byte", json!(30.5), "30.5 is not an integer"),
        ("byte", json!(300), "300 is greater than the maximum of 255"),
        ("byte", json!("300"), "300 is greater than the maximum of 255"),
        ("byte", json!(-1), "-1 is less than the minimum of 0"),
        ("byte", json!("forty"), "\"forty\" is not an integer"),
        ("byte", json!("0x10"), "\"0x10\" is not an integer"),
        ("byte", json!(true), "true is not an integer"),
        ("byte", json!([1]), "an array of 1 item is not an integer"),
        ("long", json!("9223372036854775808"), "9223372036854775808"),
        ("long", json!(1e300), "1e+300"),
        ("float", json!("NaN"), "\"NaN\" is not a number"),
        ("float", json!("1e400"), "\"1e400\" is not a number"),
        ("flag", json!("yes"), "\"yes\" is not a boolean"),
        ("flag", json!(1), "1 is not a boolean"),
        ("text", json!(42), "42 is not a string"),
        ("list", json!("1,2"), "\"1,2\" is not an array"),
        ("list", json!("{\"a\":1}"), "is not an array"),
        ("list", json!("[1,2"), "\"[1,2\" is not an array"),
        ("point", json!("[1,2]"), "\"[1,2]\" is not an object"),
    ] {
        let text = failure(&server.call("lenient", json!({ argument: sent })).await);
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!(lines.len(), 1, "{argument} = {sent}: {text}");
        assert!(lines[0].starts_with(&format!("- {argument}: ")), "{argument} = {sent}: {text}");
        assert!(lines[0].contains(said), "{argument} = {sent}: {text}");
    }
}

#[tokio::test]
async fn strict_refuses_strings_but_never_whole_floats() {
    let server = serve(mcp_runtime::server!().tool::<strict>());
    server.call("strict", json!({ "byte": 30.0 })).await.expect_text("Some(30) None None None None");
    server
        .call("strict", json!({ "byte": 3e1, "list": [1.0] }))
        .await
        .expect_text("Some(30) None None Some([1]) None");
    server
        .call("strict", json!({ "point": { "x": 1.0, "y": 1 } }))
        .await
        .expect_text("None None None None Some(Point { x: 1, y: 1.0 })");
    for (argument, sent, said) in [
        ("byte", json!("42"), "- byte: \"42\" is not an integer"),
        ("float", json!("4.5"), "- float: \"4.5\" is not a number"),
        ("flag", json!("true"), "- flag: \"true\" is not a boolean"),
        ("list", json!("[1]"), "- list: \"[1]\" is not an array"),
        ("list", json!(["1"]), "- list[0]: \"1\" is not an integer"),
        ("point", json!("{\"x\":1,\"y\":2}"), "- point: "),
        ("point", json!({ "x": "1", "y": 2 }), "- point.x: \"1\" is not an integer"),
    ] {
        server.call("strict", json!({ argument: sent })).await.expect_failure(said);
    }
}

#[tokio::test]
async fn of_many_values_only_the_smaller_arguments_are_coerced() {
    let server = serve(mcp_runtime::server!().tool::<lenient>().tool::<strict>().add(sum()));
    let many: Vec<u32> = (0..10_000).collect();
    let shown = server.call("lenient", json!({ "byte": "7", "flag": "true", "list": many })).await;
    assert!(shown.text().starts_with("7 true [0, 1, 2,"), "small arguments are coerced beside a large one");
    let text = failure(&server.call("strict", json!({ "byte": "7", "list": many })).await);
    assert!(text.contains("- byte: \"7\" is not an integer"), "{text}");
    let mut texts: Vec<Value> = many.iter().map(|n| json!(n)).collect();
    texts[5_000] = json!("5000");
    let text = failure(&server.call("lenient", json!({ "byte": "7", "list": texts })).await);
    assert!(text.contains("- list[5000]: ") && !text.contains("- byte"), "{text}");
    let text = failure(&server.call("lenient", json!({ "list": texts, "pints": [] })).await);
    assert!(text.contains("- unknown argument `pints`; did you mean `points`?"), "{text}");
    let few = json!({ "list": texts[4_990..5_010] });
    assert!(server.call("lenient", few).await.text().starts_with("[4990, "), "few are coerced");
    // of a tool without typed parameters as well
    let shown = server.call("sum", json!({ "first": "1", "list": many })).await;
    shown.expect_text("49995001");
    let text = failure(&server.call("sum", json!({ "first": "1", "list": texts })).await);
    assert!(text.contains("- list[5000]: \"5000\" is not an integer") && !text.contains("first:"), "{text}");
}

/// A tool that gets its arguments as a value
fn sum() -> ToolDef {
    let integer = json!({ "type": "integer" });
    ToolDef::builder("sum")
        .input_schema(json!({ "type": "object", "properties": {
            "first": integer, "list": { "type": "array", "items": integer } } }))
        .handler(|call: ToolCall| async move {
            let list = call.arguments["list"].as_array().into_iter().flatten();
            list.chain([&call.arguments["first"]]).filter_map(Value::as_u64).sum::<u64>().to_string()
        })
}
