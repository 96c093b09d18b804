//! Tools made at run time: defined without an attribute.

use crate::prelude::*;

fn shout() -> ToolDef {
    ToolDef::builder("shout")
        .title("Shout")
        .description("Says it louder")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "maxLength": 5 },
                "times": { "type": "integer", "minimum": 1 }
            },
            "required": ["text"]
        }))
        .output_schema(
            json!({ "type": "object", "properties": { "said": { "type": "string" } }, "required": ["said"] }),
        )
        .hints(|hints| hints.read_only = Some(true))
        .meta(json!({ "k": 1 }))
        .handler(|call: ToolCall| async move {
            let text: String = call.arg("text")?;
            let times: Option<usize> = call.arg("times")?;
            Ok::<_, ToolError>(Json(json!({ "said": text.to_uppercase().repeat(times.unwrap_or(1)) })))
        })
}

#[tokio::test]
async fn a_runtime_tool_is_listed_and_called() {
    let server = serve(mcp_runtime::server!().add(shout()));
    assert_eq!(
        only_tool(&server).await,
        json!({
            "name": "shout",
            "title": "Shout",
            "description": "Says it louder",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "text": { "type": "string", "maxLength": 5 },
                    "times": { "type": "integer", "minimum": 1 }
                },
                "required": ["text"]
            },
            "outputSchema": { "type": "object", "properties": { "said": { "type": "string" } }, "required": ["said"] },
            "annotations": { "readOnlyHint": true },
            "_meta": { "k": 1 }
        })
    );
    let reply = server.call("shout", json!({ "text": "ab", "times": "2" })).await;
    assert_eq!(
        result(&reply),
        json!({
            "content": [{ "type": "text", "text": "{\"said\":\"ABAB\"}" }],
            "structuredContent": { "said": "ABAB" }
        })
    );
    let text = failure(&server.call("shout", json!({ "times": 0, "txt": "x" })).await);
    for said in [
        "- text: is missing",
        "- times: 0 is less than the minimum of 1",
        "did you mean `text`?",
        "expected: shout(",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    server.request("tools/call", json!({ "name": "shout", "arguments": [] })).await.expect_code(-32602);
}

#[tokio::test]
async fn runtime_tools_have_the_same_limits_and_failures() {
    let slow =
        ToolDef::builder("slow").timeout(Duration::from_millis(20)).max_concurrency(1).handler(|_| async {
            std::future::pending::<()>().await;
        });
    let panics = ToolDef::builder("panics").handler(|call: ToolCall| async move {
        assert!(call.arguments.get("x").is_none(), "secret");
        "fine"
    });
    let at_once = ToolDef::builder("at_once").handler(|call: ToolCall| {
        assert!(call.arguments.get("x").is_none(), "secret");
        std::future::ready("fine")
    });
    let strict = ToolDef::builder("strict")
        .strict()
        .input_schema(json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false }))
        .handler(|call: ToolCall| async move { call.arguments.to_string() });
    let promises = ToolDef::builder("promises")
        .output_schema(json!({ "type": "integer" }))
        .handler(|_| async { Json("x") });
    let server = serve(mcp_runtime::server!().add(slow).add(panics).add(at_once).add(strict).add(promises));
    for _ in 0..2 {
        let text = failure(&server.call("slow", json!({})).await);
        assert_eq!(text, "tool 'slow' took longer than its limit of 20ms");
    }
    for tool in ["panics", "at_once"] {
        assert_eq!(failure(&server.call(tool, json!({ "x": 1 })).await), format!("tool '{tool}' failed"));
        server.call(tool, json!({})).await.expect_text("fine");
    }
    server.call("strict", json!({ "n": 1.0 })).await.expect_text("{\"n\":1}");
    server.call("strict", json!({ "n": "1" })).await.expect_failure("- n: \"1\" is not an integer");
    server.call("strict", json!({ "m": 1 })).await.expect_failure("unknown argument `m`");
    assert_eq!(failure(&server.call("promises", json!({})).await), "tool 'promises' failed");
}

fn echo(schema: Value) -> ToolDef {
    ToolDef::builder("echo")
        .input_schema(schema)
        .handler(|call: ToolCall| async move { call.arguments.to_string() })
}

#[tokio::test]
async fn absent_arguments_have_the_defaults_of_their_schema() {
    let server = serve(mcp_runtime::server!().add(echo(json!({
        "type": "object",
        "properties": {
            "limit": { "type": "integer", "default": 10 },
            "filter": { "type": "object", "properties": { "tone": { "type": "string", "default": "formal" } } },
            "points": { "type": "array", "items": { "$ref": "#/$defs/Point" } }
        },
        "$defs": { "Point": { "type": "object", "properties": { "x": { "default": 0 }, "y": { "default": 0 } } } }
    }))));
    let got = async |sent: Value| -> Value {
        let reply = server.call("echo", sent).await;
        serde_json::from_str(reply.value()["content"][0]["text"].as_str().unwrap_or_default()).expect("JSON")
    };
    assert_eq!(got(json!({})).await, json!({ "limit": 10 }));
    assert_eq!(
        got(json!({ "limit": 3, "filter": {} })).await,
        json!({ "limit": 3, "filter": { "tone": "formal" } })
    );
    assert_eq!(
        got(json!({ "limit": "7", "points": [{ "x": 1 }, {}] })).await,
        json!({ "limit": 7, "points": [{ "x": 1, "y": 0 }, { "x": 0, "y": 0 }] })
    );
    let many = json!({ "points": vec![json!({}); 20_000] });
    server.call("echo", many).await.expect_failure("more than 10000 members with a default are absent");
}

#[test]
fn a_published_default_conforms_to_its_schema() {
    for (schema, place) in [
        (
            json!({ "type": "object", "properties": { "n": { "type": "integer", "default": "5" } } }),
            "/properties/n`",
        ),
        (
            json!({ "type": "object", "properties": { "n": { "type": "string", "default": null } } }),
            "/properties/n`",
        ),
        (
            json!({ "type": "object", "properties": { "n": { "items": { "maximum": 1, "examples": [1, 2] } } } }),
            "/items`",
        ),
    ] {
        let error = build_error(mcp_runtime::server!().add(echo(schema)));
        assert!(error.contains("does not conform to its schema") && error.contains(place), "{error}");
    }
}

#[test]
fn schemas_that_cannot_be_enforced_are_errors_and_malformed_ones_also_if_they_are_trusted() {
    let build = |tool: ToolDef| mcp_runtime::server!().add(tool).build().err().map(|error| error.to_string());
    let tool = || ToolDef::builder("t");
    let handler = |_: ToolCall| async { "" };
    let root = |keyword: &str, value: &Value| json!({ "type": "object", keyword: value });
    for (keyword, value, is_error_if_trusted) in [
        ("$schema", json!(7), true),
        ("title", json!(1), true),
        ("description", json!(["a"]), true),
        ("deprecated", json!("yes"), true),
        ("examples", json!({ "a": 1 }), true),
        ("readOnly", json!(1), true),
        ("writeOnly", json!(null), true),
        ("format", json!(["date"]), true),
        ("$comment", json!({}), true),
        ("contentEncoding", json!(true), true),
        ("$defs", json!([]), true),
        ("$defs", json!({ "Unused": 3 }), true),
        ("$defs", json!({ "Unused": { "title": 3 } }), true),
        ("$schema", json!("http://json-schema.org/draft-07/schema#"), false),
        ("$id", json!("https://example.com/a#b"), true),
        ("$anchor", json!("no anchor"), true),
        ("$vocabulary", json!({ "a": 1 }), true),
        ("required", json!("a"), true),
        ("exclusiveMinimum", json!(true), true),
        ("multipleOf", json!(0), true),
        ("items", json!([true]), true),
        ("anyOf", json!([]), true),
        ("dependencies", json!({ "a": 1 }), true),
    ] {
        let schema = root(keyword, &value);
        let nested = root("properties", &json!({ "a": { keyword: value } }));
        for tool in [
            tool().input_schema(schema.clone()).handler(handler),
            tool().input_schema(nested.clone()).handler(handler),
            tool().output_schema(schema.clone()).handler(handler),
        ] {
            let error = build(tool).unwrap_or_else(|| panic!("{schema} was published"));
            assert!(error.contains("tool `t`: ") && !error.contains("``"), "{error}");
        }
        let trusted = build(tool().trusted_input_schema(nested.clone()).handler(handler));
        assert_eq!(trusted.is_some(), is_error_if_trusted, "{schema}: {trusted:?}");
    }
    let draft_7 = root("$schema", &json!("http://json-schema.org/draft-07/schema#"));
    let error = build(tool().input_schema(draft_7).handler(handler)).expect("another dialect");
    assert!(
        error.contains("the dialect \"http://json-schema.org/draft-07/schema#\" is not 2020-12")
            && error.contains("`.trusted_input_schema(..)`"),
        "{error}"
    );
    let own = root("$schema", &json!("https://json-schema.org/draft/2020-12/schema"));
    assert_eq!(build(tool().input_schema(own).handler(handler)), None);
}

#[tokio::test]
async fn a_trusted_schema_is_published_as_it_is_and_enforced_as_far_as_possible() {
    let foreign = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "iban": { "type": "string", "nullable": true, "pattern": "^(?!XX)", "example": "DE02", "maxLength": 34 },
            "amount": { "type": "number", "minimum": 0, "exclusiveMinimum": true, "xml": { "name": "a" } },
            "currency": { "$ref": "#/definitions/Currency" }
        },
        "required": ["amount"],
        "definitions": { "Currency": { "enum": ["EUR", "CHF"], "default": "EUR" } }
    });
    let tool = ToolDef::builder("pay")
        .trusted_input_schema(foreign.clone())
        .trusted_output_schema(json!({ "type": "object", "properties": { "ok": { "type": "boolean", "nullable": true } } }))
        .handler(|call: ToolCall| async move { Json(json!({ "ok": call.arguments["iban"] == "bad" || Value::Null == call.arguments["iban"], "all": call.arguments })) });
    let server = serve(mcp_runtime::server!().add(tool));
    assert_eq!(only_tool(&server).await["inputSchema"], foreign);
    for good in [
        json!({ "amount": 1 }),
        json!({ "amount": "1.5", "iban": null }),
        json!({ "amount": 0, "iban": "XX" }),
        json!({ "amount": 1, "currency": "CHF", "other": 1 }),
    ] {
        let reply = server.call("pay", good.clone()).await;
        assert!(!reply.is_error(), "{good}: {reply}");
    }
    for (bad, line) in [
        (json!({}), "- amount: is missing"),
        (json!({ "amount": -1 }), "- amount: -1 is less than"),
        (json!({ "amount": 1, "iban": "x".repeat(35) }), "- iban: "),
        (json!({ "amount": 1, "iban": 3 }), "- iban: 3 is not a string or null"),
        (json!({ "amount": 1, "currency": "USD" }), "- currency: \"USD\" is not one of"),
    ] {
        server.call("pay", bad.clone()).await.expect_failure(line);
    }
}

#[tokio::test]
async fn boolean_schemas_of_properties_are_published_as_objects() {
    let server = serve(
        mcp_runtime::server!()
            .add(echo(json!({ "type": "object", "properties": { "a": true, "b": false } }))),
    );
    assert_eq!(only_tool(&server).await["inputSchema"]["properties"], json!({ "a": {}, "b": { "not": {} } }));
    server.call("echo", json!({ "a": [1] })).await.expect_ok();
    assert!(server.call("echo", json!({ "b": 1 })).await.is_error());
}

#[tokio::test]
async fn errors_of_an_argument_name_its_path_and_value() {
    let tool = ToolDef::builder("ids").handler(|call: ToolCall| async move {
        let ids: Vec<uuid::Uuid> = call.arg("ids")?;
        Ok::<_, ToolError>(ids.len().to_string())
    });
    let server = serve(mcp_runtime::server!().add(tool));
    let text =
        failure(&server.call("ids", json!({ "ids": ["67e55044-10b1-426f-9247-bb680e5fe0c8", "x"] })).await);
    assert!(text.starts_with("ids[1]: \"x\" is not accepted: "), "{text}");
}

#[tokio::test]
async fn an_argument_that_the_schema_does_not_have_is_a_private_failure_that_names_it() {
    let schema = |extra: Value| {
        let mut schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        schema
    };
    let read = |name: &'static str, schema: Value| {
        ToolDef::builder("read")
            .input_schema(schema)
            .handler(move |call: ToolCall| async move { call.arg::<String>(name) })
    };
    let unknown = serve(mcp_runtime::server!().add(read("b", schema(json!({})))));
    let reply = unknown.call("read", json!({ "a": "x" })).await;
    reply.expect_failure("tool 'read' failed");
    let detailed = mcp_runtime::server!().add(read("b", schema(json!({})))).detailed_errors();
    let cause = failure(&serve(detailed).call("read", json!({ "a": "x" })).await);
    assert!(cause.contains("the input schema has no `b`"), "{cause}");
    // what the client can send is its mistake
    let open = serve(mcp_runtime::server!().add(read("b", schema(json!({ "additionalProperties": true })))));
    open.call("read", json!({})).await.expect_failure("`b` is missing");
    let optional = serve(mcp_runtime::server!().add(read("a", schema(json!({})))));
    optional.call("read", json!({})).await.expect_failure("`a` is missing");
    optional.call("read", json!({ "a": "x" })).await.expect_text("x");
}

#[tokio::test]
async fn the_format_of_a_schema_that_is_written_by_hand_is_enforced() {
    let schema = || {
        json!({
            "type": "object",
            "properties": { "day": { "type": "string", "format": "date" }, "id": { "type": "string", "format": "x-id" } }
        })
    };
    let book = ToolDef::builder("book").input_schema(schema()).output_schema(schema()).handler(
        |call: ToolCall| async move {
            Json(json!({ "day": call.arguments["day"].as_str().map(|day| day.replace("2027", "soon")) }))
        },
    );
    let foreign = ToolDef::builder("foreign")
        .trusted_input_schema(schema())
        .handler(|call: ToolCall| async move { call.arguments.to_string() });
    let server = serve(mcp_runtime::server!().add(book).add(foreign));
    server.call("book", json!({ "day": "2026-07-28", "id": "any" })).await.expect_ok();
    server
        .call("book", json!({ "day": "soon" }))
        .await
        .expect_failure("- day: \"soon\" is not a date, as in 2026-07-28");
    assert_eq!(failure(&server.call("book", json!({ "day": "2027-01-01" })).await), "tool 'book' failed");
    // another program may mean something else by it
    server.call("foreign", json!({ "day": "soon" })).await.expect_text("{\"day\":\"soon\"}");
}
