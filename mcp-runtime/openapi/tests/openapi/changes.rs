//! Descriptions of which any part is something else, or is missing: they are refused, or become a server.

use mcp_runtime::{
    serde_json::{Value, json},
    testing::TestServer,
    tool::{ToolCall, ToolDef},
};
use mcp_runtime_openapi::OpenApi;

/// A description with a part of most kinds.
fn seed() -> Value {
    let whole = json!({ "$ref": "#/components/schemas/A" });
    let change =
        json!({ "allOf": [whole, { "properties": { "b": { "readOnly": true } }, "minProperties": 1 }] });
    let form = json!({
        "schema": { "properties": { "f": { "type": "array", "items": { "format": "binary" } } } },
        "encoding": { "f": { "contentType": "image/png" } },
    });
    json!({
        "openapi": "3.0.0",
        "servers": [{ "url": "https://x.example" }],
        "paths": {
            "/a/{id}?v=1": {
                "parameters": [
                    { "name": "id", "in": "path", "required": true, "schema": { "type": "integer", "default": 1 } },
                ],
                "patch": {
                    "operationId": "change", "tags": ["t"], "summary": "Change", "deprecated": false,
                    "parameters": [{
                        "name": "q", "in": "query", "style": "deepObject", "explode": true,
                        "content": { "application/json": { "schema": {} } },
                    }],
                    "requestBody": { "required": true, "content": { "application/json": { "schema": change } } },
                    "responses": { "200": { "content": { "application/json": { "schema": whole } } } },
                },
            },
            "/b": { "post": {
                "requestBody": { "content": { "multipart/form-data": form } },
                "responses": { "default": { "$ref": "#/components/responses/R" } },
            } },
            "/c": { "$ref": "#/paths/~1b" },
        },
        "components": {
            "responses": { "R": { "content": { "text/plain": {} } } },
            "schemas": { "A": { "type": "object", "required": ["a"], "properties": {
                "a": { "oneOf": [{ "type": "string" }, whole], "nullable": true },
            } } },
        },
    })
}

/// The same kinds of parts as YAML.
const YAML: &str = r##"openapi: 3.1.0
paths:
  /a/{id}:
    parameters: [&p {name: id, in: path, required: , schema: {type: integer}}]
    get: &get
      summary: |
        Two
        lines
      responses: {200: {content: {"application/json": {schema: &s {type: object, items: {<<: *p}}}}}}
  /b:
    get: {<<: *get, tags: ['a', "b\n", !!str c], parameters: [{<<: [*p, *s], in: query}]}
"##;

/// What a part is replaced by.
fn replacements() -> [Value; 9] {
    [
        json!(null),
        json!(true),
        json!(-1),
        json!("x"),
        json!([]),
        json!([{}]),
        json!({}),
        json!({ "$ref": "#" }),
        json!({ "$ref": "#/components/schemas/A", "allOf": [{ "$ref": "#/components/schemas/A" }] }),
    ]
}

fn find_places(value: &Value, place: &str, found: &mut Vec<String>) {
    found.push(place.to_owned());
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, member)| find_places(member, &format!("{place}/{}", escaped(name)), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| find_places(item, &format!("{place}/{index}"), found));
        }
        _ => {}
    }
}

/// A server of a description, whose tools are listed and called; returns how many it has.
async fn tools(description: String) -> usize {
    let Ok(api) = OpenApi::parse(description) else { return 0 };
    let api = api.server("http://127.0.0.1:1").allow_all();
    // a server without tools does not list any
    let own = ToolDef::builder("own").handler(|_: ToolCall| async { "own" });
    let Ok(server) = TestServer::new(mcp_runtime::server!().add(api).add(own)) else { return 0 };
    let mut tools = server.list_tools().await;
    tools.retain(|tool| tool["name"] != "own");
    for tool in &tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        let name = tool["name"].as_str().expect("a name");
        for arguments in [json!({}), json!({ "id": 1, "a": "x", "body": { "a": "x" }, "f": ["aGk="] })] {
            server.call(name, arguments).await.expect_failure("");
        }
    }
    tools.len()
}

#[tokio::test]
async fn a_description_of_which_a_part_is_something_else_is_refused_or_a_server() {
    let seed = seed();
    assert_eq!(tools(seed.to_string()).await, 3);
    let mut places = Vec::new();
    find_places(&seed, "", &mut places);
    assert!(places.len() > 80, "{}", places.len());
    let mut built = 0;
    for place in places {
        for replacement in replacements() {
            let mut changed = seed.clone();
            *changed.pointer_mut(&place).expect("a place") = replacement;
            built += usize::from(tools(changed.to_string()).await > 0);
        }
    }
    assert!(built > 300, "{built}");
}

#[tokio::test]
async fn yaml_that_ends_anywhere_is_refused_or_a_server() {
    assert_eq!(tools(YAML.to_owned()).await, 2);
    for end in 0..YAML.len() {
        tools(YAML.get(..end).unwrap_or_default().to_owned()).await;
    }
}
