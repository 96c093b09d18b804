//! Schemas of descriptions as clients see them.

use mcp_runtime::serde_json::{Value, json};
use mcp_runtime_openapi::OpenApi;

use crate::support::{Recorder, serve, with_components};

/// What clients see of one schema, as a member of the arguments and as a result.
async fn published(version: &str, schema: &Value, schemas: &Value) -> (Value, Value) {
    let operation = json!({
        "parameters": [{ "name": "p", "in": "query", "schema": schema }],
        "responses": { "200": { "content": { "application/json": { "schema": schema } } } },
    });
    let description = with_components(version, "GET /", &operation, &json!({ "schemas": schemas }));
    let api = OpenApi::parse(description).expect("a description").server("https://x.example");
    let tools = serve(api).list_tools().await;
    let mut input = tools[0]["inputSchema"].clone();
    let mut property = input["properties"]["p"].take();
    if let Some(defs) = input.get_mut("$defs") {
        property["$defs"] = defs.take();
    }
    (property, tools[0]["outputSchema"].clone())
}

async fn input(version: &str, schema: &Value, schemas: &Value) -> Value {
    published(version, schema, schemas).await.0
}

#[tokio::test]
async fn words_of_openapi_3_0_are_those_of_2020_12() {
    for (schema, expected) in [
        (
            json!({ "type": "string", "nullable": true }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
        ),
        (
            json!({ "type": "string", "nullable": true, "enum": ["a"] }),
            json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] }),
        ),
        (
            json!({ "nullable": true, "description": "d", "allOf": [{ "type": "object" }] }),
            json!({ "description": "d", "anyOf": [{ "allOf": [{ "type": "object", "properties": {} }] }, { "type": "null" }] }),
        ),
        (
            json!({ "nullable": true, "$ref": "#/components/schemas/Id" }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
        ),
        (
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true }),
            json!({ "type": "integer", "exclusiveMinimum": 1 }),
        ),
        (
            json!({ "type": "integer", "maximum": 9, "exclusiveMaximum": false }),
            json!({ "type": "integer", "maximum": 9 }),
        ),
        (json!({ "type": "string", "example": "x" }), json!({ "type": "string", "examples": ["x"] })),
        (json!({ "type": "integer", "format": "int64" }), json!({ "type": "integer" })),
        (
            json!({ "type": "string", "format": "byte" }),
            json!({ "type": "string", "contentEncoding": "base64" }),
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!({ "type": "string", "format": "date-time" }),
        ),
        // no keyword of 2020-12, or not with these values
        (
            json!({ "type": "object", "xml": {}, "discriminator": {}, "externalDocs": {}, "x-a": 1, "required": true,
                    "minProperties": -1, "pattern": 3, "title": 4, "enum": "a", "items": [], "allOf": [], "$id": "x" }),
            json!({ "type": "object", "properties": {} }),
        ),
        (json!({ "type": "file", "multipleOf": 0, "maxLength": "3" }), json!({})),
        (
            json!({ "type": "object", "required": ["a", "a"] }),
            json!({ "type": "object", "required": ["a"], "properties": {} }),
        ),
        // siblings of references mean nothing in 3.0
        (json!({ "$ref": "#/components/schemas/Id", "minimum": 5 }), json!({ "type": "integer" })),
    ] {
        let schemas = json!({ "Id": { "type": "integer" } });
        assert_eq!(input("3.0.3", &schema, &schemas).await, expected, "{schema}");
    }
}

#[tokio::test]
async fn keywords_of_openapi_3_1_stay() {
    for (schema, expected) in [
        (json!({ "type": ["string", "null"], "const": "a" }), json!({ "type": "string", "const": "a" })),
        (
            json!({ "$ref": "#/components/schemas/Id", "minimum": 5 }),
            json!({ "minimum": 5, "allOf": [{ "type": "integer" }] }),
        ),
        (
            json!({ "$ref": "#/components/schemas/Id", "description": "d" }),
            json!({ "type": "integer", "description": "d" }),
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "integer" }], "items": false, "contains": {}, "minContains": 1 }),
            json!({ "type": "array", "prefixItems": [{ "type": "integer" }], "items": false, "contains": {}, "minContains": 1 }),
        ),
        (
            json!({ "if": { "minimum": 1 }, "then": { "maximum": 2 }, "else": true, "not": { "const": 3 } }),
            json!({ "if": { "minimum": 1 }, "then": { "maximum": 2 }, "else": true, "not": { "const": 3 } }),
        ),
        (
            json!({ "type": "integer", "exclusiveMinimum": 1, "nullable": true }),
            json!({ "type": "integer", "exclusiveMinimum": 1 }),
        ),
        (
            json!({ "oneOf": [{ "$ref": "#/components/schemas/Id" }, { "$ref": "#/components/schemas/Id/x" }] }),
            json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }] }),
        ),
    ] {
        let schemas = json!({ "Id": { "type": "integer", "x": { "type": "string" } } });
        assert_eq!(input("3.1.0", &schema, &schemas).await, expected, "{schema}");
    }
}

#[tokio::test]
async fn forms_that_clients_refuse_are_published_in_others_that_accept_the_same_values() {
    for (schema, expected) in [
        (json!({ "type": "array" }), json!({ "type": "array", "items": {} })),
        (json!({ "type": "object" }), json!({ "type": "object", "properties": {} })),
        (
            json!({ "type": ["array", "null"], "maxItems": 1 }),
            json!({ "anyOf": [{ "type": "array", "maxItems": 1, "items": {} }, { "type": "null" }] }),
        ),
        (json!({ "enum": ["a", "b", "a"] }), json!({ "enum": ["a", "b"] })),
        (json!({ "enum": [] }), json!({ "not": {} })),
        (
            json!({ "items": { "$ref": "#/components/schemas/L" }, "contains": { "$ref": "#/components/schemas/L" } }),
            json!({
                "items": { "$ref": "#/$defs/L" }, "contains": { "$ref": "#/$defs/L" },
                "$defs": { "L": { "type": "array", "items": {}, "description": "x".repeat(200) } },
            }),
        ),
    ] {
        let schemas = json!({ "L": { "type": "array", "description": "x".repeat(200) } });
        let (input, output) = published("3.1.0", &schema, &schemas).await;
        assert_eq!(input, expected, "{schema}");
        // nothing refuses these forms in results
        assert!(output["type"] == schema["type"] && output["enum"] == schema["enum"], "{schema}: {output}");
    }
    // calls are held to the schema that was described
    let recorder = Recorder::start().await;
    let of = json!({ "name": "p", "in": "query", "schema": { "type": ["integer", "null"], "maximum": 9 } });
    let server =
        recorder.serve(&with_components("3.1.0", "GET /", &json!({ "parameters": [of] }), &json!({})));
    server.call("call", json!({ "p": "10" })).await.expect_failure("p: 10 is greater than the maximum of 9");
    server
        .call("call", json!({ "p": [] }))
        .await
        .expect_failure("p: an empty array is not an integer or null");
    server.call("call", json!({ "p": null })).await.expect_ok();
    server.call("call", json!({ "p": "7" })).await.expect_ok();
    assert_eq!(recorder.last().target, "/?p=7");
}

#[tokio::test]
async fn what_only_the_other_side_writes_is_left_out() {
    let schema = json!({
        "type": "object", "required": ["id", "secret", "name"], "properties": {
            "id": { "type": "integer", "readOnly": true },
            "at": { "$ref": "#/components/schemas/At" },
            "secret": { "type": "string", "writeOnly": true },
            "name": { "type": "string" },
        },
    });
    let schemas = json!({ "At": { "type": "string", "readOnly": true } });
    let (input, output) = published("3.0.3", &schema, &schemas).await;
    let name = json!({ "type": "string" });
    assert_eq!(
        input,
        json!({ "type": "object", "required": ["secret", "name"], "properties": { "name": name, "secret": name } })
    );
    assert_eq!(
        output,
        json!({ "type": "object", "required": ["id", "name"], "properties": { "id": { "type": "integer" }, "at": name, "name": name } })
    );
}

#[tokio::test]
async fn a_reference_that_is_used_once_is_replaced_and_one_that_contains_itself_is_a_definition() {
    let schemas = json!({
        "Node": { "type": "object", "properties": { "value": { "$ref": "#/components/schemas/Value" }, "next": { "$ref": "#/components/schemas/Node" } } },
        "Value": { "type": "object", "properties": { "text": { "type": "string", "description": "x".repeat(200) } } },
        "Alias": { "$ref": "#/components/schemas/Node" },
        "Unused": { "type": "object" },
    });
    let (input, output) =
        published("3.1.0", &json!({ "$ref": "#/components/schemas/Alias" }), &schemas).await;
    assert_eq!(input["$ref"], "#/$defs/Alias");
    let node = &input["$defs"]["Alias"];
    assert_eq!(node["properties"]["next"], json!({ "$ref": "#/$defs/Alias" }));
    assert_eq!(node["properties"]["value"]["properties"]["text"]["type"], "string");
    assert_eq!(input["$defs"].as_object().map(|defs| defs.len()), Some(1), "{input}");
    // clients need the type at the root
    assert_eq!(output["type"], "object");
    assert_eq!(output["properties"]["next"]["$ref"], "#/$defs/Alias");
}

#[tokio::test]
async fn references_that_multiply_do_not_multiply_the_schema() {
    let mut schemas = json!({ "L0": { "type": "object", "description": "x".repeat(200) } });
    for level in 1..40 {
        let inner = json!({ "$ref": format!("#/components/schemas/L{}", level - 1) });
        schemas[format!("L{level}")] =
            json!({ "type": "object", "properties": { "a": inner, "b": inner, "c": inner } });
    }
    let input = input("3.1.0", &json!({ "$ref": "#/components/schemas/L39" }), &schemas).await;
    assert!(input.to_string().len() < 10_000, "{}", input.to_string().len());
    // a chain is cut into parts, since readers of JSON have a limit of depth
    let mut schemas = json!({ "L0": { "type": "object" } });
    for level in 1..60 {
        let inner = json!({ "$ref": format!("#/components/schemas/L{}", level - 1) });
        schemas[format!("L{level}")] = json!({ "type": "object", "properties": { "a": inner } });
    }
    let input = self::input("3.1.0", &json!({ "$ref": "#/components/schemas/L59" }), &schemas).await;
    assert!(input["$defs"].as_object().is_some_and(|defs| (2..10).contains(&defs.len())), "{input}");
}

#[tokio::test]
async fn a_cycle_of_references_without_a_schema_is_an_error() {
    let schemas =
        json!({ "A": { "$ref": "#/components/schemas/B" }, "B": { "$ref": "#/components/schemas/A" } });
    let operation = json!({ "parameters": [{ "name": "p", "in": "query", "schema": { "$ref": "#/components/schemas/A" } }] });
    let description = with_components("3.1.0", "GET /", &operation, &json!({ "schemas": schemas }));
    let api = OpenApi::parse(description).expect("a description").server("https://x.example");
    let error = mcp_runtime::server!().add(api).build().expect_err("a cycle").to_string();
    assert!(error.contains("without an end"), "{error}");
}

#[tokio::test]
async fn arguments_are_checked_before_the_api_is_asked() {
    let recorder = Recorder::start().await;
    let parameters = json!({ "parameters": [
        { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 10 } },
        { "name": "kind", "in": "query", "required": true, "schema": { "type": "string", "enum": ["a", "b"] } },
    ] });
    let server = recorder.serve(&with_components("3.0.0", "GET /", &parameters, &json!({})));
    server
        .call("call", json!({ "limit": 11, "kind": "c" }))
        .await
        .expect_failure("limit: 11 is greater than the maximum of 10");
    server.call("call", json!({ "limit": 1 })).await.expect_failure("kind: is missing");
    assert_eq!(recorder.count(), 0);
    // a slip of a model is repaired
    server.call("call", json!({ "limit": "7", "kind": "a" })).await.expect_ok();
    assert_eq!(recorder.last().target, "/?limit=7&kind=a");
}

#[tokio::test]
async fn what_a_description_forgets_does_no_harm() {
    let recorder = Recorder::start().await;
    let yaml = "openapi: 3.0.0\nservers:\npaths:\n  /a/{id}:\n    parameters:\n    get:\n      deprecated:\n      tags:\n      parameters:\n      responses:\n  /b:\n    post:\n      parameters:\n      - {name: q, in: query, required: , deprecated: , allowReserved: , content: , schema: }\n      requestBody: {required: , description: , content: {multipart/form-data: {schema: , encoding: }}}\n      responses: {200: {content: }}\n  /c:\n    post:\n      requestBody: {content: }\n";
    let server = recorder.serve(yaml);
    let schema = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"], "additionalProperties": false });
    assert_eq!(server.list_tools().await[0]["inputSchema"], schema);
    server.call("get_a_id", json!({ "id": "x" })).await.expect_ok();
    assert_eq!(recorder.last().target, "/a/x");
}

#[tokio::test]
async fn parameters_of_the_path_item_and_its_references_are_those_of_its_operations() {
    let recorder = Recorder::start().await;
    let description = json!({ "openapi": "3.1.0", "paths": {
        "/a/{id}": { "$ref": "#/components/pathItems/One" },
        "/b/{id}": { "$ref": "#/paths/~1a~1{id}" },
    }, "components": {
        "pathItems": { "One": {
            "parameters": [{ "$ref": "#/components/parameters/Id" }, { "name": "q", "in": "query", "schema": { "type": "string" } }],
            "get": { "parameters": [{ "name": "q", "in": "query", "schema": { "type": "integer" } }] },
        } },
        "parameters": { "Id": { "name": "id", "in": "path", "required": true, "schema": { "type": "string" } } },
    } });
    let server = recorder.serve(&description.to_string());
    let tools = server.list_tools().await;
    assert_eq!(
        tools[1]["inputSchema"]["properties"],
        json!({ "id": { "type": "string" }, "q": { "type": "integer" } })
    );
    server.call("get_b_id", json!({ "id": "x", "q": 3 })).await.expect_ok();
    assert_eq!(recorder.last().target, "/b/x?q=3");
}

#[tokio::test]
async fn a_value_of_several_alternatives_is_one() {
    let of =
        |name: &str| json!({ "type": "object", "properties": { "kind": { "type": "string" }, name: {} } });
    for (schema, expected) in [
        (json!({ "oneOf": [of("a"), of("b")] }), json!({ "anyOf": [of("a"), of("b")] })),
        (
            json!({ "oneOf": [of("a"), { "type": "string" }] }),
            json!({ "oneOf": [of("a"), { "type": "string" }] }),
        ),
        (
            json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "number" }] }),
        ),
        (
            json!({ "oneOf": [of("a"), of("b")], "anyOf": [{ "required": ["a"] }, { "required": ["kind"] }] }),
            json!({
                "anyOf": [{ "required": ["a"] }, { "required": ["kind"] }],
                "allOf": [{ "anyOf": [of("a"), of("b")] }],
            }),
        ),
    ] {
        let (input, output) = published("3.1.0", &schema, &json!({})).await;
        assert_eq!((&input, &output), (&expected, &expected), "{schema}");
    }
    let recorder = Recorder::start().await;
    let parameters = json!({ "parameters": [{
        "name": "p", "in": "query", "schema": { "oneOf": [of("a"), of("b")], "discriminator": { "propertyName": "kind" } },
    }] });
    let server = recorder.serve(&with_components("3.0.0", "GET /", &parameters, &json!({})));
    server.call("call", json!({ "p": { "kind": "x", "a": 1, "b": 2 } })).await.expect_ok();
}

#[tokio::test]
async fn a_discriminator_chooses_whose_errors_are_reported_and_is_not_published() {
    let pet = |member: &str| {
        json!({ "type": "object", "required": [member], "properties": {
            "kind": { "type": "string" }, "age": { "type": "integer" }, member: { "type": "integer" },
        } })
    };
    let schemas = json!({ "Cat": pet("lives"), "Dog": pet("barks"), "Eel": pet("volts") });
    let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let all = ["Cat", "Dog", "Eel"].map(of);
    let mapping =
        json!({ "cat": "#/components/schemas/Cat", "dog": "Dog", "puppy": "Dog", "cow": "Cow", "ox": 1 });
    for keyword in ["oneOf", "anyOf"] {
        let body = json!({
            keyword: all, "discriminator": { "propertyName": "kind", "mapping": mapping }
        });
        let operation = json!({ "requestBody": { "required": true, "content": { "application/json": { "schema": body } } } });
        let recorder = Recorder::start().await;
        let server =
            recorder.serve(&with_components("3.0.0", "POST /", &operation, &json!({ "schemas": schemas })));
        let tools = server.request("tools/list", json!({})).await.to_string();
        assert!(!tools.contains("x-mcp") && tools.contains("anyOf"), "{tools}");
        // what the variant is called in the mapping, or in the description if that does not name it
        for (kind, missing) in [("cat", "lives"), ("dog", "barks"), ("puppy", "barks"), ("Eel", "volts")] {
            let failed = server.call("call", json!({ "body": { "kind": kind, "age": "old" } })).await;
            let text = failed.expect_failure("age").text();
            assert!(text.contains(missing) && !text.contains("none of"), "{kind}: {text}");
            let members = json!({ "kind": kind, missing: 1 });
            server.call("call", json!({ "body": members })).await.expect_ok();
        }
        for body in [json!({ "kind": "cow" }), json!({ "kind": 1 }), json!({})] {
            let failed = server.call("call", json!({ "body": body })).await;
            let text = failed.expect_failure("kind").text();
            assert!(text.contains(r#"one of "Eel", "cat", "dog", "puppy""#), "{text}");
        }
        // it refuses nothing by itself
        server.call("call", json!({ "body": { "kind": "cow", "volts": 3 } })).await.expect_ok();
    }
}

#[tokio::test]
async fn a_discriminator_that_leads_nowhere_changes_no_report() {
    let schemas = json!({
        "Cat": { "type": "object", "required": ["lives"] },
        "Node": { "type": "object", "required": ["next"], "properties": { "next": { "$ref": "#/components/schemas/Any" } } },
        "Any": {
            "oneOf": [{ "$ref": "#/components/schemas/Cat" }, { "$ref": "#/components/schemas/Node" }],
            "discriminator": { "propertyName": "kind", "mapping": { "node": "Node", "any": "Any" } },
        },
    });
    let report = async |discriminator: Value| {
        let mut schemas = schemas.clone();
        schemas["Any"]["discriminator"] = discriminator;
        let operation = json!({ "requestBody": { "required": true, "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/Any" } } } } });
        let recorder = Recorder::start().await;
        let server =
            recorder.serve(&with_components("3.1.0", "POST /", &operation, &json!({ "schemas": schemas })));
        let arguments = json!({ "body": { "kind": "node", "next": { "kind": "node" } } });
        server.call("call", arguments).await.expect_failure("").text()
    };
    // a cycle of alternatives
    let told = report(schemas["Any"]["discriminator"].clone()).await;
    assert!(told.contains("next.next") && !told.contains("none of"), "{told}");
    let untold = report(Value::Null).await;
    assert!(untold.contains("none of"), "{untold}");
    let unknown =
        json!({ "propertyName": "kind", "mapping": { "node": "https://example.com/a.json", "any": "Any" } });
    let named = report(unknown).await;
    assert!(named.contains(r#"one of "Cat", "Node""#), "{named}");
    for broken in
        [json!({}), json!({ "propertyName": 1 }), json!({ "mapping": { "node": "Node" } }), json!("kind")]
    {
        assert_eq!(report(broken.clone()).await, untold, "{broken}");
    }
}

#[tokio::test]
async fn a_required_value_has_no_default() {
    let with_default = json!({ "type": "integer", "default": 10, "description": "How many" });
    let schema = json!({
        "type": "object", "required": ["must"],
        "properties": { "must": with_default, "may": with_default, "ref": { "$ref": "#/components/schemas/Ten" } },
    });
    let schemas = json!({ "Ten": with_default });
    let properties = input("3.1.0", &schema, &schemas).await["properties"].clone();
    let told = |name: &str| properties[name]["description"].as_str().expect("a text").to_owned();
    assert_eq!(
        [told("must"), told("may"), told("ref")],
        ["How many", "How many. Default: 10", "How many. Default: 10"]
    );
    let operation = json!({ "parameters": [{ "name": "p", "in": "query", "required": true, "schema": { "$ref": "#/components/schemas/Ten" } }] });
    let description = with_components("3.1.0", "GET /", &operation, &json!({ "schemas": schemas }));
    let api = OpenApi::parse(description).expect("a description").server("https://x.example");
    let published = serve(api).list_tools().await[0]["inputSchema"].clone();
    assert_eq!(published["properties"]["p"]["description"], "How many");
    assert_eq!(published["required"], json!(["p"]));
}
