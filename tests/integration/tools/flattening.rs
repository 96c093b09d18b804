//! `flatten`: one value that is the whole `arguments` object: maps, enums, structs with flattened fields.

use crate::prelude::*;

#[mcp_type]
#[derive(Debug)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape {
    Circle { radius: u8 },
    Square { side: f64 },
}

#[mcp_type]
#[derive(Debug)]
struct Styled {
    colour: String,
    #[serde(flatten)]
    shape: Shape,
}

#[mcp_type]
#[derive(Debug)]
struct Open {
    own: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, i64>,
}

#[tokio::test]
async fn an_enum_can_be_the_whole_object() {
    #[mcp_tool]
    fn lenient(#[mcp(flatten)] shape: Shape) -> String {
        format!("{shape:?}")
    }
    #[mcp_tool(strict)]
    fn strict(#[mcp(flatten)] shape: Shape) -> String {
        format!("{shape:?}")
    }
    #[mcp_tool(strict)]
    fn styled(#[mcp(flatten)] styled: Styled) -> String {
        format!("{} {:?}", styled.colour, styled.shape)
    }
    let server = serve(mcp_runtime::server!().tool::<lenient>().tool::<strict>().tool::<styled>());
    let tools = server.list_tools().await;
    assert_eq!(tools.len(), 3);
    for tool in &tools {
        // programs that offer tools to models refuse `oneOf` at the root
        let root = tool["inputSchema"].as_object().cloned().unwrap_or_default();
        assert!(
            root["type"] == "object"
                && ["oneOf", "anyOf", "allOf", "$ref"].iter().all(|keyword| !root.contains_key(*keyword)),
            "{tool}"
        );
    }
    for tool in ["lenient", "strict"] {
        server.call(tool, json!({ "kind": "circle", "radius": 3 })).await.expect_text("Circle { radius: 3 }");
        server.call(tool, json!({ "kind": "square", "side": 2 })).await.expect_text("Square { side: 2.0 }");
        server.call(tool, json!({ "kind": "circle" })).await.expect_failure("- radius: is missing");
        let text = failure(&server.call(tool, json!({ "kind": "circel", "radius": 1 })).await);
        assert!(text.contains("- kind: \"circel\" is not"), "{text}");
    }
    assert_eq!(
        tools[0]["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "kind": {
                    "type": "string",
                    "enum": ["circle", "square"],
                    "description": "`circle` with radius; `square` with side"
                },
                "radius": { "type": "integer", "minimum": 0, "maximum": 255 },
                "side": { "type": "number" }
            },
            "required": ["kind"]
        })
    );
    let text = failure(&server.call("lenient", json!({})).await);
    let signature = "lenient({kind: \"circle\", radius: integer 0..=255} | {kind: \"square\", side: number})";
    assert!(text.ends_with(&format!("expected: {signature}")), "{text}");
    let more = json!({ "kind": "circle", "radius": "3", "side": 1 });
    server.call("lenient", more.clone()).await.expect_text("Circle { radius: 3 }");
    server.call("strict", more).await.expect_failure("- radius: \"3\" is not an integer");
    let text = failure(&server.call("strict", json!({ "kind": "circle", "radius": 3, "side": 1 })).await);
    assert!(text.contains("- unknown argument `side`"), "{text}");
    let red = json!({ "colour": "red", "kind": "circle", "radius": 3 });
    server.call("styled", red).await.expect_text("red Circle { radius: 3 }");
    let text = failure(&server.call("styled", json!({ "kind": "circle", "radius": 3, "x": 1 })).await);
    assert!(text.contains("- colour: is missing") && text.contains("- unknown argument `x`"), "{text}");
}

#[tokio::test]
async fn a_map_can_be_the_whole_object() {
    #[mcp_tool]
    fn sum(#[mcp(flatten)] numbers: BTreeMap<String, i64>) -> i64 {
        numbers.values().sum()
    }
    #[mcp_tool(strict)]
    fn open(#[mcp(flatten)] open: Open) -> String {
        format!("{} {:?}", open.own, open.rest)
    }
    let server = serve(mcp_runtime::server!().tool::<sum>().tool::<open>());
    assert_eq!(
        server.list_tools().await[0]["inputSchema"],
        json!({ "type": "object", "additionalProperties": { "type": "integer" } })
    );
    server.call("sum", json!({ "a": 1, "b": "2", "c": 3.0 })).await.expect_text("6");
    server.call("sum", json!({})).await.expect_text("0");
    let text = failure(&server.call("sum", json!({ "a": "x", "b": null })).await);
    assert!(
        text.contains("- a: \"x\" is not an integer") && text.contains("- b: null is not an integer"),
        "{text}"
    );
    server.call("open", json!({ "own": 1, "x": 2 })).await.expect_text("1 {\"x\": 2}");
    server.call("open", json!({ "own": 1, "x": "2" })).await.expect_failure("- x: \"2\" is not an integer");
}

#[test]
fn flattening_a_type_that_is_not_an_object_is_a_build_error() {
    #[mcp_type]
    enum Level {
        /// Little
        Low,
        High,
    }
    #[mcp_tool]
    fn text(#[mcp(flatten)] text: String) -> String {
        text
    }
    #[mcp_tool]
    fn list(#[mcp(flatten)] list: Vec<u8>) -> usize {
        list.len()
    }
    #[mcp_tool]
    fn level(#[mcp(flatten)] level: Level) -> bool {
        matches!(level, Level::Low)
    }
    let error = build_error(mcp_runtime::server!().tool::<text>().tool::<list>().tool::<level>());
    for name in ["text", "list", "level"] {
        let line = format!("tool `{name}`: `{name}` with `flatten` is not an object");
        assert!(error.contains(&line), "{error}");
    }
}

#[test]
#[allow(unreachable_patterns)]
fn two_fields_of_one_name_are_a_build_error() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Twice {
        #[serde(rename = "b")]
        a: String,
        b: String,
    }
    #[mcp_tool]
    fn find(twice: Vec<Twice>) -> bool {
        let _ = twice;
        true
    }
    let error = build_error(mcp_runtime::server!().tool::<find>());
    assert!(error.contains("tool `find`: two fields of a struct are named \"b\""), "{error}");
}

#[mcp_type]
#[derive(Default)]
struct Settings {
    text: Option<String>,
    #[schemars(range(min = 1))]
    limit: Option<u32>,
    #[serde(default)]
    inner: Inner,
}

#[mcp_type]
#[derive(Default)]
struct Inner {
    note: Option<String>,
}

#[tokio::test]
async fn published_defaults_of_structs_conform_to_their_schema() {
    #[mcp_tool]
    fn show(
        #[mcp(default)] settings: Settings,
        #[mcp(default = vec![Settings { limit: Some(3), ..Settings::default() }])] list: Vec<Settings>,
    ) -> String {
        format!("{:?} {:?} {:?} {}", settings.text, settings.limit, settings.inner.note, list.len())
    }
    let server = serve(mcp_runtime::server!().tool::<show>());
    let properties = only_tool(&server).await["inputSchema"]["properties"].clone();
    assert_eq!(properties["settings"]["default"], json!({ "inner": {} }));
    assert_eq!(properties["settings"]["properties"]["inner"]["default"], json!({}));
    assert_eq!(properties["list"]["default"], json!([{ "limit": 3, "inner": {} }]));
    server.call("show", json!({})).await.expect_text("None None None 1");

    #[mcp_tool]
    fn wrong(
        #[mcp(default = Settings { limit: Some(0), ..Settings::default() })] settings: Settings,
    ) -> bool {
        settings.limit.is_none()
    }
    let error = build_error(mcp_runtime::server!().tool::<wrong>());
    assert!(error.contains("tool `wrong`: the default at `#/properties/settings` does not conform to its schema: limit: 0 is less than"), "{error}");
}
