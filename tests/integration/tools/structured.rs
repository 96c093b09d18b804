//! Structured results: schema, value and text, wrapped for legacy clients, and validated against the schema.

use crate::prelude::*;

#[mcp_type]
struct Weather {
    /// In °C
    degrees: f64,
    sky: Option<String>,
}

#[tokio::test]
async fn json_is_structured_and_text() {
    #[mcp_tool]
    fn weather() -> Json<Weather> {
        Json(Weather { degrees: -1.5, sky: Some("größtenteils \"klar\"\n☀".into()) })
    }
    let mut server = serve(mcp_runtime::server!().tool::<weather>());
    let schema = json!({
        "type": "object",
        "properties": {
            "degrees": { "type": "number", "description": "In °C" },
            "sky": { "type": ["string", "null"] }
        },
        "required": ["degrees", "sky"]
    });
    let text = "{\"degrees\":-1.5,\"sky\":\"größtenteils \\\"klar\\\"\\n☀\"}";
    let value = json!({ "degrees": -1.5, "sky": "größtenteils \"klar\"\n☀" });
    let expected = json!({ "content": [{ "type": "text", "text": text }], "structuredContent": value });
    assert_eq!(only_tool(&server).await["outputSchema"], schema);
    assert_eq!(result(&server.call("weather", json!({})).await), expected);
    for revision in LEGACY {
        server = server.legacy(revision);
        let shown = only_tool(&server).await.get("outputSchema").cloned();
        let reply = server.call("weather", json!({})).await;
        if revision >= Revision::V2025_06_18 {
            assert_eq!(shown.as_ref(), Some(&schema), "{revision}");
            assert_eq!(*reply.value(), expected, "{revision}");
        } else {
            assert_eq!(shown, None, "{revision}");
            assert_eq!(
                *reply.value(),
                json!({ "content": [{ "type": "text", "text": text }] }),
                "{revision}"
            );
        }
    }
}

#[mcp_tool]
fn number() -> Json<i32> {
    Json(7)
}

#[mcp_tool]
async fn list() -> Result<Json<Vec<String>>, ToolError> {
    Ok(Json(vec!["a".into()]))
}

#[mcp_tool]
fn maybe(present: bool) -> Option<Json<u8>> {
    present.then_some(Json(1))
}

#[mcp_tool]
fn map() -> Json<BTreeMap<String, bool>> {
    Json(BTreeMap::from([("a".into(), true)]))
}

#[mcp_tool]
fn beside() -> (Json<u8>, &'static str) {
    (Json(5), "five")
}

#[tokio::test]
async fn values_are_natural_for_modern_clients_and_objects_for_legacy_ones() {
    let mut server = serve(
        mcp_runtime::server!().tool::<number>().tool::<list>().tool::<maybe>().tool::<map>().tool::<beside>(),
    );
    let (integer, byte) = (json!({ "type": "integer" }), json!({ "minimum": 0, "maximum": 255 }));
    let of_byte = |kind: Value| {
        let mut schema = byte.clone();
        schema["type"] = kind;
        schema
    };
    for revision in [Revision::LATEST, Revision::V2025_06_18, Revision::V2025_11_25] {
        server = server.legacy(revision);
        let tools = server.list_tools().await;
        for (at, sent, schema, texts, value) in [
            (0, json!({}), integer.clone(), &["7"][..], json!(7)),
            (
                1,
                json!({}),
                json!({ "type": "array", "items": { "type": "string" } }),
                &["[\"a\"]"],
                json!(["a"]),
            ),
            (2, json!({ "present": true }), of_byte(json!(["integer", "null"])), &["1"], json!(1)),
            (2, json!({ "present": false }), of_byte(json!(["integer", "null"])), &["null"], Value::Null),
            (
                3,
                json!({}),
                json!({ "type": "object", "additionalProperties": { "type": "boolean" } }),
                &["{\"a\":true}"],
                json!({ "a": true }),
            ),
            (4, json!({}), of_byte(json!("integer")), &["5", "five"], json!(5)),
        ] {
            let tool = tools[at]["name"].as_str().expect("a name");
            let (mut schema, mut value) = (schema, value);
            if !revision.is_modern() && tool != "map" {
                schema =
                    json!({ "type": "object", "properties": { "result": schema }, "required": ["result"] });
                value = json!({ "result": value });
            }
            assert_eq!(tools[at]["outputSchema"], schema, "{tool} {revision}");
            let content: Value = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
            let reply = server.call(tool, sent).await;
            assert_eq!(reply.value().get("structuredContent"), Some(&value), "{tool} {revision}");
            assert_eq!(reply.value()["content"], content, "{tool} {revision}");
        }
    }
}

#[mcp_type]
struct Branch {
    name: String,
    twigs: Vec<Branch>,
}

#[mcp_type]
#[serde(tag = "kind")]
enum Event {
    Started { at: u32 },
    Stopped { reason: Option<String> },
}

#[tokio::test]
async fn recursive_types_keep_their_definitions_also_when_they_are_wrapped() {
    fn branch(name: &str, twigs: Vec<Branch>) -> Branch {
        Branch { name: name.into(), twigs }
    }
    #[mcp_tool]
    fn one() -> Json<Branch> {
        Json(branch("a", vec![branch("b", vec![])]))
    }
    #[mcp_tool]
    fn many() -> Json<Vec<Branch>> {
        Json(vec![branch("a", vec![])])
    }
    let mut server = serve(mcp_runtime::server!().tool::<one>().tool::<many>());
    let modern = server.list_tools().await[0]["outputSchema"].clone();
    assert_eq!(modern["type"], "object", "{modern}");
    assert_eq!(modern["properties"]["name"], json!({ "type": "string" }), "{modern}");
    server = server.legacy(Revision::V2025_06_18);
    let legacy = server.list_tools().await;
    assert_eq!(legacy[0]["outputSchema"], modern);
    let wrapped = &legacy[1]["outputSchema"];
    let list = json!({ "type": "array", "items": { "$ref": "#/$defs/Branch" } });
    assert_eq!((&wrapped["type"], &wrapped["properties"]["result"]), (&json!("object"), &list));
    assert_eq!(wrapped["$defs"]["Branch"]["type"], "object", "{wrapped}");
    for (tool, value) in [
        ("one", json!({ "name": "a", "twigs": [{ "name": "b", "twigs": [] }] })),
        ("many", json!({ "result": [{ "name": "a", "twigs": [] }] })),
    ] {
        assert_eq!(server.call(tool, json!({})).await.value()["structuredContent"], value);
    }
}

#[tokio::test]
async fn enums_of_objects_are_wrapped_alike_in_list_and_result() {
    #[mcp_tool]
    fn event(stop: bool) -> Json<Event> {
        Json(if stop { Event::Stopped { reason: None } } else { Event::Started { at: 1 } })
    }
    let server = serve(mcp_runtime::server!().tool::<event>()).legacy(Revision::V2025_06_18);
    let schema = only_tool(&server).await["outputSchema"].clone();
    assert_eq!(schema["type"], "object", "{schema}");
    let reply = server.call("event", json!({ "stop": false })).await;
    let wrapped = schema["properties"].get("result").is_some();
    let value = json!({ "kind": "Started", "at": 1 });
    let expected = if wrapped { json!({ "result": value }) } else { value };
    assert_eq!(reply.value()["structuredContent"], expected, "{schema}");
    let stopped = server.call("event", json!({ "stop": true })).await;
    assert!(!stopped.is_error(), "{stopped}");
}

#[mcp_tool(output = Weather)]
fn promised(case: u8) -> Result<ToolResult, ToolError> {
    Ok(match case {
        0 => ToolResult::text("fine").structured(&json!({ "degrees": 1, "sky": null }))?,
        1 => ToolResult::text("wrong").structured(&json!({ "degrees": "hot", "sky": null }))?,
        2 => ToolResult::text("nothing"),
        3 => ToolResult::error("failed, so it needs no value"),
        _ => ToolResult::text("missing").structured(&json!({ "sky": null }))?,
    })
}

#[tokio::test]
async fn results_are_validated_against_their_schema() {
    let mut server = serve(mcp_runtime::server!().tool::<promised>());
    let schema = only_tool(&server).await["outputSchema"].clone();
    assert_eq!(schema["required"], json!(["degrees", "sky"]));
    for revision in LEGACY {
        let fine = server.call("promised", json!({ "case": 0 })).await;
        fine.expect_text("fine");
        for case in [1, 2, 4] {
            let reply = server.call("promised", json!({ "case": case })).await;
            assert_eq!(failure(&reply), "tool 'promised' failed", "case {case}");
            assert_eq!(reply.value().get("structuredContent"), None, "case {case}");
        }
        let failed = server.call("promised", json!({ "case": 3 })).await;
        assert_eq!(failure(&failed), "failed, so it needs no value");
        server = server.legacy(revision);
    }
}

#[tokio::test]
async fn validation_errors_name_the_invalid_value() {
    let server = serve(mcp_runtime::server!().tool::<promised>().detailed_errors());
    let text = failure(&server.call("promised", json!({ "case": 1 })).await);
    assert!(text.contains("output schema") && text.contains("degrees: \"hot\" is not a number"), "{text}");
}

#[tokio::test]
async fn unserializable_values_are_private_errors() {
    #[mcp_tool]
    fn nan() -> Json<f64> {
        Json(f64::NAN)
    }
    #[mcp_tool]
    fn keys() -> Json<BTreeMap<String, f32>> {
        Json(BTreeMap::from([("x".into(), f32::INFINITY)]))
    }
    let server = serve(mcp_runtime::server!().tool::<nan>().tool::<keys>());
    assert_eq!(failure(&server.call("nan", json!({})).await), "tool 'nan' failed");
    assert_eq!(failure(&server.call("keys", json!({})).await), "tool 'keys' failed");
}

#[mcp_type]
struct Bounded {
    #[schemars(range(max = 10))]
    n: u64,
}

#[tokio::test]
async fn constraints_apply_to_results_too() {
    #[mcp_tool]
    fn produce(n: u64) -> Json<Bounded> {
        Json(Bounded { n })
    }
    let server = serve(mcp_runtime::server!().tool::<produce>());
    server.call("produce", json!({ "n": 10 })).await.expect_json(&json!({ "n": 10 }));
    assert_eq!(failure(&server.call("produce", json!({ "n": 11 })).await), "tool 'produce' failed");
}

#[tokio::test]
async fn legacy_clients_get_objects_without_a_schema_and_in_failures() {
    #[mcp_tool]
    fn free(case: u8) -> Result<ToolResult, ToolError> {
        let result = ToolResult::text("free");
        Ok(match case {
            0 => result.structured(&[1])?,
            1 => result.structured(&[1])?.failed(),
            2 => result.structured(&Option::<u8>::None)?,
            3 => result.structured(&"{")?,
            _ => result.structured(&json!({ "a": 1 }))?,
        })
    }
    #[mcp_tool(output = Weather)]
    fn of_an_object() -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text("failed").structured(&[1])?.failed())
    }
    #[mcp_tool(output = Vec<u8>)]
    fn of_a_list() -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text("failed").structured(&json!({ "a": 1 }))?.failed())
    }
    let builder = mcp_runtime::server!().tool::<free>().tool::<of_an_object>().tool::<of_a_list>();
    let mut server = serve(builder);
    let cases = [
        ("free", json!({ "case": 0 }), json!([1]), json!({ "result": [1] })),
        ("free", json!({ "case": 1 }), json!([1]), json!({ "result": [1] })),
        ("free", json!({ "case": 2 }), Value::Null, json!({ "result": null })),
        ("free", json!({ "case": 3 }), json!("{"), json!({ "result": "{" })),
        ("free", json!({ "case": 4 }), json!({ "a": 1 }), json!({ "a": 1 })),
        ("of_an_object", json!({}), json!([1]), json!({ "result": [1] })),
        // as the results of the same tool that do not fail
        ("of_a_list", json!({}), json!({ "a": 1 }), json!({ "result": { "a": 1 } })),
    ];
    for revision in [Revision::LATEST, Revision::V2025_06_18, Revision::V2025_11_25] {
        server = server.legacy(revision);
        for (tool, sent, natural, wrapped) in &cases {
            let expected = if revision.is_modern() { natural } else { wrapped };
            let reply = server.call(tool, sent.clone()).await;
            assert_eq!(reply.value()["structuredContent"], *expected, "{tool} {sent} {revision}");
        }
    }
}
